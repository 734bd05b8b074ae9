#include "oracle/gate_probabilities.h"

#include <math.h>

static const double error_reach = 32.0; /* up to this d the error does not grow */

/* Neumaier's sum: far below what is looked for, whatever the order. */
struct running_sum {
    double sum, lost;
};

static void add(struct running_sum *total, double value) {
    const double sum = total->sum + value;
    total->lost +=
        fabs(total->sum) >= fabs(value) ? (total->sum - sum) + value : (value - sum) + total->sum;
    total->sum = sum;
}

double gate_probability_error(double d) {
    return GATE_PROBABILITY_ERROR * fmax(1.0, d / error_reach);
}

static double weight_of(const struct nucleus *oracle, float logit) {
    return exp((double)logit - (double)oracle->max_logit);
}

static bool has_nan(const float *values, int64_t vocab) {
    bool found = false;
    for (int64_t t = 0; t < vocab; t++)
        found = found || isnan(values[t]);
    return found;
}

void gate_probabilities_mask(const struct gate_case *the_case, int64_t index, float *masked) {
    const float *const input = the_case->input + index * the_case->stride;
    const float *const values = the_case->output + index * the_case->stride;
    const struct nucleus *const oracle = &the_case->oracle[index];
    const int64_t vocab = the_case->vocab;
    const bool nonfinite = oracle->status == NUCLEUS_NONFINITE_INPUT;
    const bool survive_only = nonfinite && has_nan(input, vocab);
    for (int64_t t = 0; t < vocab; t++) {
        bool kept = values[t] != 0.0f;
        /* A whole row: what hardware flushes to 0 was not dropped. */
        if (!kept && oracle->untouched && oracle->status == NUCLEUS_OK)
            kept = weight_of(oracle, input[t]) / oracle->normalizer < GATE_PROBABILITY_FLOOR;
        if (survive_only)
            masked[t] = input[t];
        else if (isnan(values[t]))
            masked[t] = values[t];
        else if (nonfinite)
            masked[t] = input[t];
        else if (input[t] == -INFINITY)
            masked[t] = values[t] != 0.0f ? 0.0f : input[t];
        else
            masked[t] = kept ? input[t] : -INFINITY;
    }
    for (int64_t t = vocab; t < the_case->stride; t++)
        masked[t] = values[t];
}

/* The oracle's weight of all tokens that were kept. */
static double kept_mass(const float *input, const float *values, int64_t vocab,
                        const struct nucleus *oracle) {
    struct running_sum mass = {0.0, 0.0};
    for (int64_t t = 0; t < vocab; t++)
        if (values[t] != 0.0f)
            add(&mass, weight_of(oracle, input[t]));
    return mass.sum + mass.lost;
}

void gate_probabilities_values(const struct gate_case *the_case, int64_t index,
                               struct gate_row *row) {
    const float *const input = the_case->input + index * the_case->stride;
    const float *const values = the_case->output + index * the_case->stride;
    const struct nucleus *const oracle = &the_case->oracle[index];
    if (row->rule != GATE_RULE_NONE || oracle->status != NUCLEUS_OK)
        return;
    const double mass = oracle->untouched ? oracle->normalizer
                        : row->equal      ? oracle->prefix
                                          : kept_mass(input, values, the_case->vocab, oracle);
    struct running_sum sum = {0.0, 0.0};
    int64_t kept = 0, off = 0, first_off = -1;
    for (int64_t t = 0; t < the_case->vocab; t++) {
        if (values[t] == 0.0f) /* dropped, or flushed: the kept set is right */
            continue;
        const double value = (double)values[t], want = weight_of(oracle, input[t]) / mass;
        const double d = (double)oracle->max_logit - (double)input[t];
        const double allowed = gate_probability_error(d) * want + GATE_PROBABILITY_FLOOR;
        const double share = fabs(value - want) / allowed;
        add(&sum, value);
        kept++;
        row->value_error = fmax(row->value_error, share);
        if (share <= 1.0)
            continue;
        first_off = off++ == 0 ? t : first_off;
    }
    row->sum_error = fabs(sum.sum + sum.lost - 1.0);
    const bool sum_off = !(row->sum_error <= GATE_PROBABILITY_ERROR);
    if (off == 0 && !sum_off)
        return;
    row->token = first_off;
    row->rule = sum_off && (off == 0 || off == kept) ? GATE_RULE_PROBABILITY_SUM
                                                     : GATE_RULE_PROBABILITY_VALUE;
}
