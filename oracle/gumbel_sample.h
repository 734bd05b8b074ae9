/* What the Gumbel statistics share: a frozen distribution, and draws from it. */
#ifndef TOPP_ORACLE_GUMBEL_SAMPLE_H
#define TOPP_ORACLE_GUMBEL_SAMPLE_H

#include "oracle/gumbel_statistics.h"

enum { SAMPLE_SEED = 0xABCD, SAMPLE_CHI2_DEVIATIONS = 10 };

struct sample {
    statistic_draw draw;
    void *context;
    int64_t vocab;
    double *weight; /* [vocab]: counts */
    float *logits;  /* [vocab]: log(weight), -inf for 0 */
    int64_t *seen;  /* [vocab] */
    int64_t seeds[STATISTIC_BATCH], positions[STATISTIC_BATCH], tokens[STATISTIC_BATCH];
};

struct sample *sample_new(int64_t vocab, statistic_draw draw, void *context,
                          struct tb_error *error);
void sample_free(struct sample *sample);

/* Weights become binary32 logits, and then the weights that those logits stand for; their sum. */
double sample_settle(struct sample *sample);

/* Frozen random numbers for making distributions. */
uint32_t sample_frozen_word(int64_t token, uint32_t purpose);

/* Draws tokens[0 .. n) with seeds and positions; *bad is the first id outside the vocabulary. */
enum tb_status sample_draw(struct sample *sample, int64_t n, float temperature, int64_t *bad,
                           struct tb_error *error);

/* Draws positions 0 .. draws - 1 at temperature 1 into seen; an impossible id rejects. */
enum tb_status sample_count(struct sample *sample, int64_t draws, struct statistic_result *result,
                            struct tb_error *error);

/* The first reason stays. */
void sample_reject(struct statistic_result *result, const char *why);
void sample_reject_id(struct statistic_result *result, int64_t draw, int64_t token);

double sample_chi2_limit(double degrees); /* df + 10 sqrt(2 df) */

/* The tests of gumbel_rules.c. */
enum tb_status sample_greedy(const struct statistic_size *size, statistic_draw draw, void *context,
                             struct statistic_result *result, struct tb_error *error);
double sample_greedy_power(const struct statistic_size *size);
enum tb_status sample_streams(const struct statistic_size *size, statistic_draw draw, void *context,
                              struct statistic_result *result, struct tb_error *error);
double sample_streams_power(const struct statistic_size *size);

#endif
