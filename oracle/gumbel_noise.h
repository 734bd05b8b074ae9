/* What noise a variant should add, in binary64, from the variant's own uniform; and how far a
 * kernel's binary32 noise may be from it. Written apart from the kernels on purpose: own words,
 * own hash, the C library's logarithms. */
#ifndef TOPP_ORACLE_GUMBEL_NOISE_H
#define TOPP_ORACLE_GUMBEL_NOISE_H

#include <stdbool.h>
#include <stdint.h>

enum noise_kind {
    NOISE_LOG,    /* -log(-log(u)), binary32, u >= 2^-126 */
    NOISE_LOG1P,  /* -log(-log1p(-u)), binary32, u >= 4.6566127342e-10 */
    NOISE_FP64,   /* -log(-log(u)), binary64, 2^-1022 <= u <= 1 - 2^-53 */
    NOISE_MURMUR, /* -log(-l(u)), binary32, hashed words */
    NOISE_COUNT
};

bool noise_parse(const char *name, enum noise_kind *kind); /* log, log1p, fp64, murmur */
const char *noise_name(enum noise_kind kind);

/* The integer words behind a token's noise. log, log1p: high is Philox word 0, low 0. fp64: words
 * 1 and 0. murmur: high is the hash, low 0. */
struct noise_word {
    uint32_t high, low;
};

void noise_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4]);
uint32_t noise_row_key(int64_t seed, int64_t position);

/* Words of tokens first .. first + n of a row. */
void noise_words(enum noise_kind kind, int64_t seed, int64_t position, int64_t first, int64_t n,
                 struct noise_word *words);

/* The uniform exactly as the variant rounds it (before its clamp). */
double noise_uniform(enum noise_kind kind, struct noise_word word);

/* A number that never falls while the noise grows: the word itself, turned where small u is the
 * tail. */
uint64_t noise_order(enum noise_kind kind, struct noise_word word);

/* The variant's noise of a word, in binary64 (error a few 2^-53 of it). Finite for every word. */
double noise_value(enum noise_kind kind, struct noise_word word);

/* Least and greatest noise that any word can make. */
double noise_least(enum noise_kind kind);
double noise_greatest(enum noise_kind kind);

/* Can a variant's noise decide against a gap between logits at all? */
enum noise_reach {
    NOISE_REACHES,      /* greatest noise at or above the gap */
    NOISE_DISTORTED,    /* up to 3 below: rare wins happen, but not as often as they should */
    NOISE_CANNOT_REACH, /* 3 or more below: rare wins do not happen */
};
enum noise_reach noise_reach(enum noise_kind kind, double gap);

/* Greatest |kernel's noise - noise_value| that the variant's arithmetic allows (derived in
 * gumbel_noise.c). */
double noise_bound(enum noise_kind kind, double noise);

/* How a kernel's dumped noise compares: dumped is binary64 [batch, vocab]. */
struct noise_error {
    double greatest;       /* greatest |dumped - noise_value|; infinite if one is NaN or infinite */
    double share_of_bound; /* greatest error / bound; <= 1 passes */
    int64_t row, token;    /* of the greatest share */
};
void noise_check(enum noise_kind kind, const int64_t *seed, const int64_t *position, int64_t batch,
                 int64_t vocab, const double *dumped, struct noise_error *error);

#endif
