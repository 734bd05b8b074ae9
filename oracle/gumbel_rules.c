/* Gumbel tests that need no chance (greedy), and independence of streams. */
#include "oracle/gumbel_sample.h"

#include <math.h>
#include <stdio.h>

/* ---- greedy ---------------------------------------------------------------------------- */

enum { GREEDY_DRAWS = 256 };

static const int64_t vocabularies[] = {1, 999, 1024, 4097};
enum { VOCABULARIES = sizeof vocabularies / sizeof vocabularies[0] };

double sample_greedy_power(const struct statistic_size *size) {
    (void)size;
    return 0;
}

/* Draws once a position and demands: the token `only` if it is >= 0, else a token of weight > 0. */
static enum tb_status demand(struct sample *sample, float temperature, int64_t only,
                             const char *what, struct statistic_result *result,
                             struct tb_error *error) {
    for (int64_t i = 0; i < GREEDY_DRAWS; i++) {
        sample->seeds[i] = SAMPLE_SEED + i;
        sample->positions[i] = i * i;
    }
    int64_t bad;
    const enum tb_status status = sample_draw(sample, GREEDY_DRAWS, temperature, &bad, error);
    if (status != TB_OK)
        return status;
    for (int64_t i = 0; i < GREEDY_DRAWS; i++, result->draws++) {
        const int64_t token = sample->tokens[i];
        const bool right = token >= 0 && token < sample->vocab &&
                           (only >= 0 ? token == only : sample->weight[token] > 0);
        if (right || result->verdict == GATE_REJECTED)
            continue;
        char why[STATISTIC_WHY_BYTES];
        snprintf(why, sizeof why, "%s, vocabulary %lld: id %lld drawn", what,
                 (long long)sample->vocab, (long long)token);
        result->first_bad = result->draws;
        result->vocab = sample->vocab;
        sample_reject(result, why);
    }
    return TB_OK;
}

/* T = 0 on a row whose greatest weight stands twice: the lower id. */
static enum tb_status demand_argmax(struct sample *sample, struct statistic_result *result,
                                    struct tb_error *error) {
    for (int64_t v = 0; v < sample->vocab; v++)
        sample->weight[v] = 1 + sample_frozen_word(v, 2) % 1000;
    const int64_t first = sample->vocab / 2, second = sample->vocab - 1;
    sample->weight[first] = sample->weight[second] = 1001;
    sample_settle(sample);
    return demand(sample, 0.0f, first, "temperature 0", result, error);
}

/* Three quarters of the counts 0; token 0 keeps one, so that something is left. */
static enum tb_status demand_unmasked(struct sample *sample, struct statistic_result *result,
                                      struct tb_error *error) {
    for (int64_t v = 0; v < sample->vocab; v++)
        sample->weight[v] = v > 0 && sample_frozen_word(v, 3) % 4 ? 0 : 1;
    sample_settle(sample);
    enum tb_status status = demand(sample, 1.0f, -1, "tokens of count 0", result, error);
    if (status == TB_OK)
        status = demand(sample, 0.0f, -1, "tokens of count 0 at temperature 0", result, error);
    return status;
}

static enum tb_status demand_lone(struct sample *sample, int64_t token,
                                  struct statistic_result *result, struct tb_error *error) {
    for (int64_t v = 0; v < sample->vocab; v++)
        sample->weight[v] = v == token ? 1e-12 : 0;
    sample_settle(sample);
    return demand(sample, 1.0f, token, "a lone token", result, error);
}

enum tb_status sample_greedy(const struct statistic_size *size, statistic_draw draw, void *context,
                             struct statistic_result *result, struct tb_error *error) {
    (void)size;
    *result = (struct statistic_result){.verdict = GATE_ACCEPTED, .first_bad = -1};
    enum tb_status status = TB_OK;
    for (int i = 0; i < VOCABULARIES && status == TB_OK; i++) {
        struct sample *sample = sample_new(vocabularies[i], draw, context, error);
        if (!sample)
            return TB_NO_MEMORY;
        status = demand_argmax(sample, result, error);
        if (status == TB_OK)
            status = demand_unmasked(sample, result, error);
        for (int third = 0; third < 3 && status == TB_OK; third++)
            status = demand_lone(sample, (sample->vocab - 1) * third / 2, result, error);
        sample_free(sample);
    }
    if (status == TB_OK && result->verdict == GATE_ACCEPTED)
        snprintf(result->why, sizeof result->why, "%lld draws, each as it must be",
                 (long long)result->draws);
    return status;
}

/* ---- streams --------------------------------------------------------------------------- */

enum { STREAM_VOCAB = 3, PAIRS = 3 };

static const double target[STREAM_VOCAB] = {0.10, 0.60, 0.30};

/* How the second draw of a pair differs from the first. */
static const struct pair {
    const char *name;
    int64_t step, second_position, second_seed; /* first: position i * step, seed SAMPLE_SEED */
} pairs[PAIRS] = {
    {"draft and target (position + 2^30)", 1, INT64_C(1) << 30, 0},
    {"neighbouring positions", 2, 1, 0},
    {"neighbouring seeds", 1, 0, 1},
};

/* A share s of copied tokens adds draws * s^2 * (vocab - 1) to chi-square. */
double sample_streams_power(const struct statistic_size *size) {
    const double cells = STREAM_VOCAB * STREAM_VOCAB - 1;
    return sqrt(SAMPLE_CHI2_DEVIATIONS * sqrt(2 * cells) /
                ((STREAM_VOCAB - 1) * (double)size->stream_draws));
}

/* Draws one side of a batch of pairs. */
static enum tb_status draw_side(struct sample *sample, const struct pair *pair, int64_t first,
                                int64_t n, bool second, struct statistic_result *result,
                                struct tb_error *error) {
    for (int64_t i = 0; i < n; i++) {
        sample->seeds[i] = SAMPLE_SEED + (second ? pair->second_seed : 0);
        sample->positions[i] = (first + i) * pair->step + (second ? pair->second_position : 0);
    }
    int64_t bad;
    const enum tb_status status = sample_draw(sample, n, 1.0f, &bad, error);
    if (status == TB_OK && bad >= 0)
        sample_reject_id(result, first + bad, sample->tokens[bad]);
    return status;
}

static double table_chi2(int64_t seen[STREAM_VOCAB][STREAM_VOCAB], double draws) {
    double chi2 = 0;
    for (int a = 0; a < STREAM_VOCAB; a++)
        for (int b = 0; b < STREAM_VOCAB; b++) {
            const double expected = draws * target[a] * target[b];
            const double off = (double)seen[a][b] - expected;
            chi2 += off * off / expected;
        }
    return chi2;
}

static enum tb_status judge_pair(struct sample *sample, const struct pair *pair, int64_t draws,
                                 struct statistic_result *result, struct tb_error *error) {
    int64_t seen[STREAM_VOCAB][STREAM_VOCAB] = {{0}}, firsts[STATISTIC_BATCH];
    for (int64_t first = 0; first < draws; first += STATISTIC_BATCH) {
        const int64_t n = draws - first < STATISTIC_BATCH ? draws - first : STATISTIC_BATCH;
        enum tb_status status = draw_side(sample, pair, first, n, false, result, error);
        for (int64_t i = 0; i < n; i++)
            firsts[i] = sample->tokens[i];
        if (status == TB_OK && result->verdict == GATE_ACCEPTED)
            status = draw_side(sample, pair, first, n, true, result, error);
        if (status != TB_OK || result->verdict != GATE_ACCEPTED)
            return status;
        for (int64_t i = 0; i < n; i++)
            seen[firsts[i]][sample->tokens[i]]++;
    }
    result->draws += draws;
    const double chi2 = table_chi2(seen, (double)draws);
    char why[STATISTIC_WHY_BYTES];
    snprintf(why, sizeof why, "%s: chi-square %.1f, limit %.1f", pair->name, chi2,
             result->chi2_limit);
    if (!(chi2 < result->chi2_limit))
        sample_reject(result, why);
    else if (!(chi2 < result->chi2))
        snprintf(result->why, sizeof result->why, "%s", why);
    result->chi2 = fmax(result->chi2, chi2);
    return TB_OK;
}

enum tb_status sample_streams(const struct statistic_size *size, statistic_draw draw, void *context,
                              struct statistic_result *result, struct tb_error *error) {
    *result = (struct statistic_result){.verdict = GATE_ACCEPTED, .first_bad = -1};
    result->power = sample_streams_power(size);
    result->vocab = STREAM_VOCAB;
    result->chi2_limit = sample_chi2_limit(STREAM_VOCAB * STREAM_VOCAB - 1);
    struct sample *sample = sample_new(STREAM_VOCAB, draw, context, error);
    if (!sample)
        return TB_NO_MEMORY;
    for (int v = 0; v < STREAM_VOCAB; v++)
        sample->weight[v] = target[v];
    sample_settle(sample);
    enum tb_status status = TB_OK;
    for (int i = 0; i < PAIRS && status == TB_OK && result->verdict == GATE_ACCEPTED; i++)
        status = judge_pair(sample, &pairs[i], size->stream_draws, result, error);
    sample_free(sample);
    return status;
}
