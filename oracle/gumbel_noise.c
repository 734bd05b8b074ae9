#include "oracle/gumbel_noise.h"

#include <math.h>
#include <string.h>

static const char *const names[NOISE_COUNT] = {
    [NOISE_LOG] = "log",
    [NOISE_LOG1P] = "log1p",
    [NOISE_FP64] = "fp64",
    [NOISE_MURMUR] = "murmur",
};

bool noise_parse(const char *name, enum noise_kind *kind) {
    for (int k = 0; k < NOISE_COUNT; k++)
        if (!strcmp(name, names[k])) {
            *kind = (enum noise_kind)k;
            return true;
        }
    return false;
}

const char *noise_name(enum noise_kind kind) {
    return names[kind];
}

void noise_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4]) {
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]};
    for (uint32_t round = 0; round < 10; round++) {
        const uint64_t even = (uint64_t)c[0] * 0xD2511F53u, odd = (uint64_t)c[2] * 0xCD9E8D57u;
        const uint32_t k0 = key[0] + round * 0x9E3779B9u, k1 = key[1] + round * 0xBB67AE85u;
        const uint32_t next[4] = {(uint32_t)(odd >> 32) ^ c[1] ^ k0, (uint32_t)odd,
                                  (uint32_t)(even >> 32) ^ c[3] ^ k1, (uint32_t)even};
        memcpy(c, next, sizeof c);
    }
    memcpy(words, c, sizeof c);
}

uint32_t noise_row_key(int64_t seed, int64_t position) {
    const uint64_t s = (uint64_t)seed;
    const uint32_t counter[4] = {(uint32_t)(uint64_t)position, 0, 0, 0};
    const uint32_t key[2] = {(uint32_t)s, (uint32_t)(s >> 32)};
    uint32_t words[4];
    noise_philox(counter, key, words);
    return words[0];
}

static uint32_t rotated(uint32_t x, int bits) {
    return x << bits | x >> (32 - bits);
}

/* MurmurHash3's body over whole words, then its avalanche. */
static uint32_t murmur(const uint32_t *data, int count) {
    uint32_t h = 0;
    for (int i = 0; i < count; i++) {
        h ^= rotated(data[i] * 0xCC9E2D51u, 15) * 0x1B873593u;
        h = 5 * rotated(h, 13) + 0xE6546B64u;
    }
    h ^= (uint32_t)count * 4;
    h = (h ^ h >> 16) * 0x85EBCA6Bu;
    h = (h ^ h >> 13) * 0xC2B2AE35u;
    return h ^ h >> 16;
}

/* Words 0 and 1 of LANES consecutive tokens, round by round for all of them: gcc keeps the lanes in
 * vectors. */
enum { LANES = 64 };

static void philox_lanes(uint32_t first, uint32_t row_key, uint32_t w0[LANES], uint32_t w1[LANES]) {
    uint32_t c0[LANES], c1[LANES] = {0}, c2[LANES] = {0}, c3[LANES] = {0};
    for (uint32_t l = 0; l < LANES; l++)
        c0[l] = first + l;
    for (uint32_t round = 0; round < 10; round++) {
        const uint32_t k0 = row_key + round * 0x9E3779B9u, k1 = round * 0xBB67AE85u;
        for (int l = 0; l < LANES; l++) {
            const uint64_t even = (uint64_t)c0[l] * 0xD2511F53u;
            const uint64_t odd = (uint64_t)c2[l] * 0xCD9E8D57u;
            c0[l] = (uint32_t)(odd >> 32) ^ c1[l] ^ k0;
            c1[l] = (uint32_t)odd;
            c2[l] = (uint32_t)(even >> 32) ^ c3[l] ^ k1;
            c3[l] = (uint32_t)even;
        }
    }
    memcpy(w0, c0, sizeof c0);
    memcpy(w1, c1, sizeof c1);
}

static void philox_row(enum noise_kind kind, uint32_t row_key, int64_t first, int64_t n,
                       struct noise_word *out) {
    for (int64_t i = 0; i < n; i += LANES) {
        uint32_t w0[LANES], w1[LANES];
        philox_lanes((uint32_t)(first + i), row_key, w0, w1);
        for (int64_t l = 0; l < LANES && i + l < n; l++) {
            out[i + l].high = kind == NOISE_FP64 ? w1[l] : w0[l];
            out[i + l].low = kind == NOISE_FP64 ? w0[l] : 0;
        }
    }
}

static void murmur_row(int64_t seed, int64_t position, int64_t first, int64_t n,
                       struct noise_word *out) {
    const uint64_t s = (uint64_t)seed;
    uint32_t data[4] = {(uint32_t)s, (uint32_t)(s >> 32), (uint32_t)(uint64_t)position, 0};
    for (int64_t i = 0; i < n; i++) {
        data[3] = (uint32_t)(first + i);
        out[i].high = murmur(data, 4);
        out[i].low = 0;
    }
}

void noise_words(enum noise_kind kind, int64_t seed, int64_t position, int64_t first, int64_t n,
                 struct noise_word *words) {
    if (kind == NOISE_MURMUR)
        murmur_row(seed, position, first, n, words);
    else
        philox_row(kind, noise_row_key(seed, position), first, n, words);
}

/* A word read as int32 w: w, or -w - 1 if it is negative. */
static uint32_t folded(uint32_t word) {
    return word < 0x80000000u ? word : 0xFFFFFFFFu - word;
}

double noise_uniform(enum noise_kind kind, struct noise_word word) {
    if (kind == NOISE_FP64)
        return (double)((uint64_t)word.high << 32 | word.low) * 0x1p-64;
    if (kind == NOISE_MURMUR)
        return (double)(float)(((double)word.high + 0.5) * 0x1p-32);
    const float product = (float)folded(word.high) * 4.6566127342e-10f;
    return (double)product;
}

uint64_t noise_order(enum noise_kind kind, struct noise_word word) {
    switch (kind) {
    case NOISE_LOG:
        return folded(word.high);
    case NOISE_LOG1P:
        return UINT32_MAX - folded(word.high);
    case NOISE_FP64:
        return (uint64_t)word.high << 32 | word.low;
    default:
        return UINT32_MAX - word.high;
    }
}

/* -log(1 - u) as murmur defines it: eight terms, or the logarithm of a binary32 difference. */
static double murmur_exponential(double u) {
    if (u < 0.25) {
        double sum = 0, power = 1;
        for (int j = 1; j <= 8; j++) {
            power *= u;
            sum += power / j;
        }
        return sum;
    }
    const float rest = 1.0f - (float)u;
    return -log(fmax((double)rest, 0x1p-24));
}

static double noise_of_uniform(enum noise_kind kind, double u) {
    switch (kind) {
    case NOISE_LOG:
        return -log(-log(fmax(u, 0x1p-126)));
    case NOISE_LOG1P:
        return -log(-log1p(-fmax(u, (double)4.6566127342e-10f)));
    case NOISE_FP64:
        return -log(-log(fmin(fmax(u, 0x1p-1022), 1 - 0x1p-53)));
    default:
        return -log(murmur_exponential(u));
    }
}

double noise_value(enum noise_kind kind, struct noise_word word) {
    return noise_of_uniform(kind, noise_uniform(kind, word));
}

/* Noise is monotone in u, and these are the ends of each uniform's range. */
static double noise_at_end(enum noise_kind kind, bool upper) {
    static const struct noise_word ends[NOISE_COUNT][2] = {
        [NOISE_LOG] = {{0, 0}, {0x7FFFFFFFu, 0}},
        [NOISE_LOG1P] = {{0x7FFFFFFFu, 0}, {0, 0}},
        [NOISE_FP64] = {{0, 0}, {UINT32_MAX, UINT32_MAX}},
        [NOISE_MURMUR] = {{UINT32_MAX, 0}, {0, 0}},
    };
    return noise_value(kind, ends[kind][upper]);
}

double noise_least(enum noise_kind kind) {
    return noise_at_end(kind, false);
}
double noise_greatest(enum noise_kind kind) {
    return noise_at_end(kind, true);
}

enum noise_reach noise_reach(enum noise_kind kind, double gap) {
    const double shortfall = gap - noise_greatest(kind);
    return shortfall <= 0 ? NOISE_REACHES : shortfall < 3 ? NOISE_DISTORTED : NOISE_CANNOT_REACH;
}

/* Derivation. Let t be the inner value (-log u, -log1p(-u), -l(u)), g = -log t, and ulp = 2^-23
 * (binary32) or 2^-52 (binary64), so that one place of x is at most ulp * |x|.
 *   inner:  t' = t (1 + a), |a| <= inner_places * ulp
 *   outer:  g' = -log(t') (1 + b), |b| <= outer_places * ulp
 *   so      |g' - g| <= ulp (inner_places + outer_places |g|) (1 + 2^-20),
 * the factor for products of errors. Places, the greater of what CUDA documents (logf, log1pf, log:
 * 1 each) and the GNU C library (logf 1, log1pf 2, log 1). murmur's series by Horner's rule in
 * binary32: term j, u^j/(j + 1), passes 2j + 2 roundings of half a place, and the product with u
 * one more; at u <= 1/4 the weights make that at most 1.7 places: 2. Its 1 - u is a binary32
 * operation of the definition, and carries no error. Binary64's own logarithms here add at most
 * the same form with 2^-52, which only fp64 has to count. */
double noise_bound(enum noise_kind kind, double noise) {
    static const double inner_places[NOISE_COUNT] = {1, 2, 1 + 1, 2},
                        outer_places[NOISE_COUNT] = {1, 1, 1 + 1, 1};
    const double ulp = kind == NOISE_FP64 ? 0x1p-52 : 0x1p-23;
    return ulp * (inner_places[kind] + outer_places[kind] * fabs(noise)) * (1 + 0x1p-20);
}

void noise_check(enum noise_kind kind, const int64_t *seed, const int64_t *position, int64_t batch,
                 int64_t vocab, const double *dumped, struct noise_error *error) {
    enum { CHUNK = 512 };
    struct noise_word words[CHUNK];
    *error = (struct noise_error){0, 0, -1, -1};
    for (int64_t row = 0; row < batch; row++)
        for (int64_t first = 0; first < vocab; first += CHUNK) {
            const int64_t n = vocab - first < CHUNK ? vocab - first : CHUNK;
            noise_words(kind, seed[row], position[row], first, n, words);
            for (int64_t i = 0; i < n; i++) {
                const double right = noise_value(kind, words[i]);
                double off = fabs(dumped[row * vocab + first + i] - right);
                if (!(off < INFINITY))
                    off = INFINITY;
                const double share = off / noise_bound(kind, right);
                error->greatest = fmax(error->greatest, off);
                if (share > error->share_of_bound) {
                    error->share_of_bound = share;
                    error->row = row;
                    error->token = first + i;
                }
            }
        }
}
