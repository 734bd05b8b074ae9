#include "oracle/gumbel_sample.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Full: the sizes of the published figures. CPU: an eightieth of the heavy tail's work and a
 * two-thousandth of the whole vocabulary's. */
const struct statistic_size statistic_full = {"full", 200000, 500000, 200000, 4000000, 1048576};
const struct statistic_size statistic_cpu = {"cpu", 200000, 40000, 2000, 200000, 131072};

static const double z_limit = 10;

/* ---- heavy tail ------------------------------------------------------------------------ */

static double heavy_tail_share(int64_t vocab) { /* mean count of the tail is 2 */
    const double tail = 2.0 * (double)(vocab - 1);
    return tail / (tail + exp(18));
}

static double heavy_tail_power(const struct statistic_size *size) {
    const double share = heavy_tail_share(size->heavy_vocab);
    return z_limit * sqrt((1 - share) / (share * (double)size->heavy_draws));
}

static enum tb_status heavy_tail(const struct statistic_size *size, statistic_draw draw,
                                 void *context, struct statistic_result *result,
                                 struct tb_error *error) {
    *result = (struct statistic_result){.verdict = GATE_ACCEPTED, .first_bad = -1};
    result->power = heavy_tail_power(size);
    struct sample *sample = sample_new(size->heavy_vocab, draw, context, error);
    if (!sample)
        return TB_NO_MEMORY;
    const int64_t head = sample->vocab / 3;
    for (int64_t v = 0; v < sample->vocab; v++)
        sample->weight[v] = v == head ? rint(exp(18)) : 1 + sample_frozen_word(v, 0) % 3;
    const double total = sample_settle(sample);
    const enum tb_status status = sample_count(sample, size->heavy_draws, result, error);
    if (status == TB_OK && result->verdict == GATE_ACCEPTED) {
        const double n = (double)size->heavy_draws, p = sample->weight[head] / total;
        const double deviation = sqrt(n * p * (1 - p));
        result->observed = size->heavy_draws - sample->seen[head];
        result->expected = n * (1 - p);
        result->z_head = ((double)sample->seen[head] - n * p) / deviation;
        result->z_tail = ((double)result->observed - result->expected) / deviation;
        snprintf(result->why, sizeof result->why,
                 "%lld tail draws of %.1f expected, z = %+.1f, limit %g",
                 (long long)result->observed, result->expected, result->z_tail, z_limit);
        if (!(fabs(result->z_head) < z_limit && fabs(result->z_tail) < z_limit))
            result->verdict = GATE_REJECTED;
    }
    sample_free(sample);
    return status;
}

/* ---- whole vocabulary ------------------------------------------------------------------ */

/* A defect that moves each token's probability by a share d, up or down, adds draws * d^2. */
static double whole_power(const struct statistic_size *size) {
    return sqrt(SAMPLE_CHI2_DEVIATIONS * sqrt(2.0 * (double)(size->whole_vocab - 1)) /
                (double)size->whole_draws);
}

static enum tb_status whole_vocabulary(const struct statistic_size *size, statistic_draw draw,
                                       void *context, struct statistic_result *result,
                                       struct tb_error *error) {
    *result = (struct statistic_result){.verdict = GATE_ACCEPTED, .first_bad = -1};
    result->power = whole_power(size);
    struct sample *sample = sample_new(size->whole_vocab, draw, context, error);
    if (!sample)
        return TB_NO_MEMORY;
    for (int64_t v = 0; v < sample->vocab; v++)
        sample->weight[v] = 500 + sample_frozen_word(v, 1) % 1001;
    const double total = sample_settle(sample), n = (double)size->whole_draws;
    const enum tb_status status = sample_count(sample, size->whole_draws, result, error);
    if (status == TB_OK && result->verdict == GATE_ACCEPTED) {
        for (int64_t v = 0; v < sample->vocab; v++) {
            const double expected = n * sample->weight[v] / total;
            const double off = (double)sample->seen[v] - expected;
            result->chi2 += off * off / expected;
            result->observed += sample->seen[v] > 0;
        }
        result->expected = (double)sample->vocab;
        result->chi2_limit = sample_chi2_limit((double)(sample->vocab - 1));
        snprintf(result->why, sizeof result->why,
                 "%lld of %lld tokens seen, chi-square %.0f, limit %.0f",
                 (long long)result->observed, (long long)sample->vocab, result->chi2,
                 result->chi2_limit);
        if (!(result->chi2 < result->chi2_limit) ||
            !((double)result->observed > 0.99 * (double)sample->vocab))
            result->verdict = GATE_REJECTED;
    }
    sample_free(sample);
    return status;
}

/* ---- the table ------------------------------------------------------------------------- */

static const struct gumbel_statistic table[] = {
    {
        .name = "heavy_tail",
        .summary = "one token of count e^18 against a vocabulary of counts 1 to 3",
        .power = "share of the tail's draws that is missing or too much",
        .run = heavy_tail,
        .smallest_defect = heavy_tail_power,
    },
    {
        .name = "whole_vocabulary",
        .summary = "counts 500 to 1500: every token seen as often as it should be",
        .power = "relative deviation of every token's probability",
        .run = whole_vocabulary,
        .smallest_defect = whole_power,
    },
    {
        .name = "greedy",
        .summary = "temperature 0, masked tokens, a lone token, awkward vocabularies",
        .power = "none: one wrong draw is rejected",
        .run = sample_greedy,
        .smallest_defect = sample_greedy_power,
    },
    {
        .name = "streams",
        .summary = "draft and target, neighbouring positions and seeds draw independently",
        .power = "share of draws that copy the other stream's token",
        .run = sample_streams,
        .smallest_defect = sample_streams_power,
    },
};

const struct gumbel_statistic *gumbel_statistics(int64_t *count) {
    *count = sizeof table / sizeof table[0];
    return table;
}

const struct gumbel_statistic *gumbel_statistic_find(const char *name) {
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (!strcmp(table[i].name, name))
            return &table[i];
    return NULL;
}

bool gumbel_statistic_expected(const char *statistic, const char *noise) {
    return strcmp(statistic, "heavy_tail") != 0 || strcmp(noise, "log") != 0;
}
