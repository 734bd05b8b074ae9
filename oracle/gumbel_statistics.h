/* Statistical tests of a sampler that is seen through its draws alone: what the deterministic gate
 * cannot tell, namely whether the variant's noise itself is good enough. Seeds, counts, sizes and
 * limits are frozen; nothing is tuned to what comes out. */
#ifndef TOPP_ORACLE_GUMBEL_STATISTICS_H
#define TOPP_ORACLE_GUMBEL_STATISTICS_H

#include "oracle/gate.h"

/* Draws n tokens from one distribution: draw i with seeds[i] and positions[i], all from the same
 * logits[vocab] and temperature, into tokens[i]. Returns 0, or any other value to give up. n is at
 * most STATISTIC_BATCH. */
typedef int (*statistic_draw)(void *context, const float *logits, int64_t vocab,
                              const int64_t *seeds, const int64_t *positions, float temperature,
                              int64_t n, int64_t *tokens);

enum { STATISTIC_BATCH = 4096 };

/* How much is drawn. The tests are the same at every size; what shrinks is their power. */
struct statistic_size {
    const char *name;
    int64_t heavy_vocab, heavy_draws;
    int64_t whole_vocab, whole_draws;
    int64_t stream_draws;
};
extern const struct statistic_size statistic_full; /* for a GPU: 1e11 and 8e11 token noises */
extern const struct statistic_size statistic_cpu;  /* for CPUs: 8e9 and 4e8 token noises */

enum { STATISTIC_WHY_BYTES = 256 };

struct statistic_result {
    enum gate_verdict verdict;     /* GATE_ACCEPTED or GATE_REJECTED */
    char why[STATISTIC_WHY_BYTES]; /* the first limit that broke, or what was measured */
    int64_t vocab, draws;
    int64_t observed, first_bad; /* tail draws or tokens seen; first offending draw, -1 if none */
    double expected;             /* of observed */
    double z_head, z_tail;       /* heavy_tail; limit |z| < 10 */
    double chi2, chi2_limit;     /* whole_vocabulary, streams (worst table); df + 10 sqrt(2 df) */
    double power;                /* smallest defect that is rejected in half of all runs */
};

struct gumbel_statistic {
    const char *name;    /* heavy_tail, whole_vocabulary, greedy, streams */
    const char *summary; /* one line */
    const char *power;   /* what `power` is a share of */
    /* TB_OK when the test ran, whatever its verdict; TB_INTERNAL when draw gave up. */
    enum tb_status (*run)(const struct statistic_size *size, statistic_draw draw, void *context,
                          struct statistic_result *result, struct tb_error *error);
    /* Smallest defect that this size rejects in half of all runs, from the limits alone. */
    double (*smallest_defect)(const struct statistic_size *size);
};

const struct gumbel_statistic *gumbel_statistics(int64_t *count);
const struct gumbel_statistic *gumbel_statistic_find(const char *name); /* NULL: none */

/* Is a variant with this noise expected to be accepted by this test? Only `log` on heavy_tail is
 * not: its noise ends near 16.6. */
bool gumbel_statistic_expected(const char *statistic, const char *noise);

#endif
