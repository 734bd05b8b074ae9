#include "oracle/gumbel_sample.h"

#include "oracle/gumbel_noise.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

double sample_chi2_limit(double degrees) {
    return degrees + SAMPLE_CHI2_DEVIATIONS * sqrt(2 * degrees);
}

void sample_free(struct sample *sample) {
    if (sample) {
        free(sample->weight);
        free(sample->logits);
        free(sample->seen);
        free(sample);
    }
}

struct sample *sample_new(int64_t vocab, statistic_draw draw, void *context,
                          struct tb_error *error) {
    struct sample *sample = calloc(1, sizeof *sample);
    if (sample) {
        sample->draw = draw;
        sample->context = context;
        sample->vocab = vocab;
        sample->weight = calloc((size_t)vocab, sizeof *sample->weight);
        sample->logits = calloc((size_t)vocab, sizeof *sample->logits);
        sample->seen = calloc((size_t)vocab, sizeof *sample->seen);
        if (sample->weight && sample->logits && sample->seen)
            return sample;
    }
    sample_free(sample);
    tb_fail(error, TB_NO_MEMORY, "Gumbel statistics: no memory for a vocabulary of %lld",
            (long long)vocab);
    return NULL;
}

/* Weights become binary32 logits, and then the weights that those logits really stand for. */
double sample_settle(struct sample *sample) {
    double total = 0;
    for (int64_t v = 0; v < sample->vocab; v++) {
        sample->logits[v] = sample->weight[v] > 0 ? (float)log(sample->weight[v]) : -INFINITY;
        sample->weight[v] = exp((double)sample->logits[v]);
        total += sample->weight[v];
    }
    return total;
}

/* Frozen random counts: a word of the counter-based generator for each token. */
uint32_t sample_frozen_word(int64_t token, uint32_t purpose) {
    const uint32_t counter[4] = {(uint32_t)token, 0, purpose, 1}, key[2] = {SAMPLE_SEED, 0};
    uint32_t words[4];
    noise_philox(counter, key, words);
    return words[0];
}

/* One batch of draws; ids outside the vocabulary are an end of the test: *bad is the draw. */
enum tb_status sample_draw(struct sample *sample, int64_t n, float temperature, int64_t *bad,
                           struct tb_error *error) {
    for (int64_t i = 0; i < n; i++)
        sample->tokens[i] = -1;
    const int code = sample->draw(sample->context, sample->logits, sample->vocab, sample->seeds,
                                  sample->positions, temperature, n, sample->tokens);
    if (code)
        return tb_fail(error, TB_INTERNAL, "Gumbel statistics: the sampler failed with code %d",
                       code);
    *bad = -1;
    for (int64_t i = 0; i < n && *bad < 0; i++)
        if (sample->tokens[i] < 0 || sample->tokens[i] >= sample->vocab)
            *bad = i;
    return TB_OK;
}

void sample_reject(struct statistic_result *result, const char *why) {
    if (result->verdict == GATE_ACCEPTED) {
        result->verdict = GATE_REJECTED;
        snprintf(result->why, sizeof result->why, "%s", why);
    }
}

void sample_reject_id(struct statistic_result *result, int64_t draw, int64_t token) {
    char why[STATISTIC_WHY_BYTES];
    snprintf(why, sizeof why, "draw %lld gave id %lld, which cannot be drawn", (long long)draw,
             (long long)token);
    result->first_bad = draw;
    sample_reject(result, why);
}

/* Draws positions 0 .. draws - 1 and counts them. */
enum tb_status sample_count(struct sample *sample, int64_t draws, struct statistic_result *result,
                            struct tb_error *error) {
    result->vocab = sample->vocab;
    result->draws = draws;
    for (int64_t first = 0; first < draws; first += STATISTIC_BATCH) {
        const int64_t n = draws - first < STATISTIC_BATCH ? draws - first : STATISTIC_BATCH;
        for (int64_t i = 0; i < n; i++) {
            sample->seeds[i] = SAMPLE_SEED;
            sample->positions[i] = first + i;
        }
        int64_t bad;
        const enum tb_status status = sample_draw(sample, n, 1.0f, &bad, error);
        if (status != TB_OK)
            return status;
        if (bad >= 0) {
            sample_reject_id(result, first + bad, sample->tokens[bad]);
            return TB_OK;
        }
        for (int64_t i = 0; i < n; i++)
            sample->seen[sample->tokens[i]]++;
    }
    return TB_OK;
}
