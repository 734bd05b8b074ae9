#include "oracle/gate_row.h"

#include <math.h>

/* What one look at an ordinary row finds. */
struct survey {
    int64_t kept, surplus, missing;
    double surplus_weight, missing_weight;
    int64_t first_surplus, first_missing; /* lowest ids, -1 if none */
    struct gate_token lowest_kept, highest_dropped;
};

static const float *row_of(const struct gate_case *the_case, const float *rows, int64_t index) {
    return rows + index * the_case->stride;
}

static bool is_nan_bits(float value) {
    return (gate_bits(value) & 0x7fffffffu) > 0x7f800000u;
}

static int64_t first_nan(const float *values, int64_t vocab) {
    for (int64_t t = 0; t < vocab; t++) {
        if (is_nan_bits(values[t]))
            return t;
    }
    return -1;
}

/* First element of [from, to) whose bits differ, -1 if none. */
static int64_t first_difference(const float *a, const float *b, int64_t from, int64_t to) {
    if (memcmp(a + from, b + from, (size_t)(to - from) * sizeof *a) == 0)
        return -1;
    while (gate_bits(a[from]) == gate_bits(b[from]))
        from++;
    return from;
}

/* First token that is neither as it was nor masked; a -inf token may be either -inf or masked. */
static int64_t first_changed(const float *input, const float *output, int64_t vocab,
                             uint32_t mask_bits) {
    for (int64_t t = 0; t < vocab; t++) {
        const uint32_t bits = gate_bits(output[t]);
        if (bits != gate_bits(input[t]) && bits != mask_bits)
            return t;
    }
    return -1;
}

static int64_t count_kept(const float *input, const float *output, int64_t vocab) {
    int64_t kept = 0;
    for (int64_t t = 0; t < vocab; t++)
        kept += gate_keeps(input[t], output[t]);
    return kept;
}

/* Tokens of [from, to) that are not as the oracle has them: kept at or above `least`, else masked.
 * Free of branches: nearly every row of a good kernel passes through here alone. */
static int32_t count_deviations(const float *input, const float *output, int64_t from, int64_t to,
                                float boundary, int32_t with_boundary, uint32_t mask_bits) {
    int32_t deviations = 0;
    for (int64_t t = from; t < to; t++) {
        const uint32_t in = gate_bits(input[t]), out = gate_bits(output[t]);
        const int32_t keep = (input[t] > boundary) | ((input[t] == boundary) & with_boundary);
        const int32_t same = out == in, masked = out == mask_bits;
        const int32_t gone = in == GATE_MINUS_INFINITY_BITS;
        deviations |= keep ? !same : !((masked & !same) | (gone & (same | masked)));
    }
    return deviations;
}

/* Is the row exactly the oracle's nucleus, and everything else exactly the mask value? */
static bool is_oracle_row(const float *input, const float *output, int64_t vocab,
                          const struct nucleus *oracle, float mask_value) {
    const int64_t split = oracle->boundary_token + 1;
    const uint32_t mask_bits = gate_bits(mask_value);
    return count_deviations(input, output, 0, split, oracle->boundary_logit, 1, mask_bits) == 0 &&
           count_deviations(input, output, split, vocab, oracle->boundary_logit, 0, mask_bits) == 0;
}

static double weight_of(const struct nucleus *oracle, float logit) {
    return exp((double)logit - (double)oracle->max_logit);
}

static struct survey survey_row(const float *input, const float *output, int64_t vocab,
                                const struct nucleus *oracle) {
    struct survey survey = {.first_surplus = -1, .first_missing = -1};
    survey.lowest_kept = (struct gate_token){-1, INFINITY};
    survey.highest_dropped = (struct gate_token){-1, -INFINITY};
    for (int64_t t = 0; t < vocab; t++) {
        const float logit = input[t];
        if (logit == -INFINITY)
            continue;
        const bool kept = gate_keeps(logit, output[t]), wanted = nucleus_keeps(oracle, logit, t);
        survey.kept += kept;
        if (kept && logit <= survey.lowest_kept.logit)
            survey.lowest_kept = (struct gate_token){t, logit};
        if (!kept && logit > survey.highest_dropped.logit)
            survey.highest_dropped = (struct gate_token){t, logit};
        if (kept && !wanted) {
            survey.first_surplus = survey.surplus++ == 0 ? t : survey.first_surplus;
            survey.surplus_weight += weight_of(oracle, logit);
        } else if (wanted && !kept) {
            survey.first_missing = survey.missing++ == 0 ? t : survey.first_missing;
            survey.missing_weight += weight_of(oracle, logit);
        }
    }
    return survey;
}

/* Tokens in which stock's mask and the oracle's differ; *dropped: the first that stock misses. */
static int64_t stock_difference(const float *input, const float *stock, int64_t vocab,
                                const struct nucleus *oracle, int64_t *dropped) {
    int64_t difference = 0;
    *dropped = -1;
    for (int64_t t = 0; t < vocab; t++) {
        const bool kept = gate_keeps(input[t], stock[t]);
        const bool wanted = nucleus_keeps(oracle, input[t], t);
        difference += kept != wanted;
        if (wanted && !kept && *dropped < 0)
            *dropped = t;
    }
    return difference;
}

static void fail(struct gate_row *row, enum gate_rule rule, int64_t token) {
    row->rule = rule;
    row->token = token;
}

static bool envelope_holds(int64_t kept, int64_t oracle) {
    const int64_t difference = kept > oracle ? kept - oracle : oracle - kept;
    return difference <= 3 || difference * 200 < oracle; /* / oracle < 0.005, in integers */
}

/* Is some token ahead of the forced one for an argmax that takes the first of equals? */
static int64_t ahead_of_forced(const float *output, int64_t vocab, int64_t forced) {
    for (int64_t t = 0; t < vocab; t++) {
        if (output[t] > output[forced] || (t < forced && output[t] == output[forced]))
            return t;
    }
    return -1;
}

static bool judge_forced(const struct gate_case *the_case, const float *input, const float *output,
                         const struct survey *survey, struct gate_row *row) {
    const int64_t forced = the_case->forced_token;
    if (forced < 0)
        return true;
    if (!gate_keeps(input[forced], output[forced])) {
        fail(row, GATE_RULE_FORCED_DROPPED, forced);
    } else if (ahead_of_forced(output, the_case->vocab, forced) >= 0) {
        fail(row, GATE_RULE_FORCED_DROPPED, ahead_of_forced(output, the_case->vocab, forced));
    } else if (the_case->split_path && survey->kept != 1) {
        fail(row, GATE_RULE_FORCED_COUNT, survey->first_surplus);
    }
    return row->rule == GATE_RULE_NONE;
}

static int64_t lower_id(int64_t a, int64_t b) {
    return a >= 0 && (b < 0 || a < b) ? a : b;
}

static void judge_stock(const struct gate_case *the_case, int64_t index, const float *input,
                        const struct survey *survey, struct gate_row *row) {
    if (the_case->stock_output == NULL) {
        fail(row, GATE_RULE_STOCK_MISSING, -1);
        return;
    }
    int64_t dropped;
    const int64_t difference =
        stock_difference(input, row_of(the_case, the_case->stock_output, index), the_case->vocab,
                         &the_case->oracle[index], &dropped);
    if (dropped >= 0)
        fail(row, GATE_RULE_STOCK_UNDERKEEP, dropped);
    else if (survey->surplus + survey->missing > difference)
        fail(row, GATE_RULE_STOCK_NEARER, lower_id(survey->first_surplus, survey->first_missing));
}

/* The contract, its rules that nothing excuses first. */
static void judge_contract(const struct gate_case *the_case, int64_t index, const float *input,
                           const float *output, const struct survey *survey, struct gate_row *row) {
    const int64_t differs = lower_id(survey->first_surplus, survey->first_missing);
    const struct gate_token kept = survey->lowest_kept, dropped = survey->highest_dropped;
    if (the_case->contract == GATE_EXACT) {
        if (!row->equal)
            fail(row, GATE_RULE_NOT_ORACLE_SET, differs);
        return;
    }
    if (the_case->contract == GATE_ENVELOPE) {
        if (dropped.id >= 0 && dropped.logit > kept.logit)
            fail(row, GATE_RULE_ORDER, dropped.id);
        else if (!envelope_holds(row->kept, row->oracle))
            fail(row, GATE_RULE_ENVELOPE, differs);
        return;
    }
    const enum gate_rule prefix =
        gate_prefix_rule(input, output, the_case->vocab, &the_case->oracle[index], kept, dropped);
    if (prefix != GATE_RULE_NONE)
        fail(row, prefix, dropped.id);
    else if (survey->missing > 0)
        fail(row, GATE_RULE_UNDERKEEP, survey->first_missing);
    else if (!envelope_holds(row->kept, row->oracle))
        fail(row, GATE_RULE_ENVELOPE, differs);
    else if (the_case->contract == GATE_CONSERVATIVE && the_case->forced_token < 0)
        judge_stock(the_case, index, input, survey, row);
}

/* Would the mass kept fall below target without the lowest kept token? For a prefix that is a
 * question of counts; otherwise the binary64 weights answer it. */
static bool is_minimal(const struct nucleus *oracle, const struct survey *survey) {
    const struct gate_token kept = survey->lowest_kept, dropped = survey->highest_dropped;
    const bool prefix = dropped.id < 0 || dropped.logit < kept.logit ||
                        (dropped.logit == kept.logit && dropped.id > kept.id);
    if (prefix)
        return survey->kept <= oracle->kept;
    const double mass = oracle->prefix + survey->surplus_weight - survey->missing_weight;
    return mass - weight_of(oracle, kept.logit) < oracle->target;
}

/* A row with p < 1 and a certified nucleus. */
static void judge_ordinary(const struct gate_case *the_case, int64_t index, const float *input,
                           const float *output, struct gate_row *row) {
    const struct nucleus *const oracle = &the_case->oracle[index];
    const int64_t vocab = the_case->vocab;
    struct survey survey = {.kept = oracle->kept, .first_surplus = -1, .first_missing = -1};
    survey.lowest_kept = (struct gate_token){oracle->boundary_token, oracle->boundary_logit};
    survey.highest_dropped.id = -1; /* a prefix: no dropped token stands before a kept one */
    if (!is_oracle_row(input, output, vocab, oracle, the_case->mask_value)) {
        survey = survey_row(input, output, vocab, oracle);
        row->token = first_changed(input, output, vocab, gate_bits(the_case->mask_value));
        if (row->token >= 0)
            row->rule =
                input[row->token] == -INFINITY ? GATE_RULE_RESURRECTED : GATE_RULE_CHANGED_VALUE;
    }
    row->kept = survey.kept;
    row->surplus = survey.surplus;
    row->missing = survey.missing;
    row->surplus_mass = survey.surplus_weight / oracle->normalizer;
    row->missing_mass = survey.missing_weight / oracle->normalizer;
    row->equal = survey.surplus == 0 && survey.missing == 0 && row->rule == GATE_RULE_NONE;
    row->minimal = survey.kept > 0 && is_minimal(oracle, &survey);
    if (row->rule != GATE_RULE_NONE)
        return;
    if (survey.kept == 0)
        fail(row, GATE_RULE_EMPTY_MASK, survey.first_missing);
    else if (judge_forced(the_case, input, output, &survey, row))
        judge_contract(the_case, index, input, output, &survey, row);
}

/* A row that the oracle refuses: no mask of it can be right. In a hazard case it only has to be
 * survived; an empty row has to be left empty. */
static void judge_refused(const struct gate_case *the_case, enum nucleus_status status,
                          const float *input, const float *output, struct gate_row *row) {
    row->kept = count_kept(input, output, the_case->vocab);
    if (!the_case->hazard) {
        fail(row, status == NUCLEUS_EMPTY_ROW ? GATE_RULE_INPUT_EMPTY : GATE_RULE_INPUT_NAN, -1);
        return;
    }
    if (status != NUCLEUS_EMPTY_ROW)
        return;
    const int64_t changed =
        first_changed(input, output, the_case->vocab, gate_bits(the_case->mask_value));
    if (changed >= 0)
        fail(row, GATE_RULE_RESURRECTED, changed);
}

void gate_judge_row(const struct gate_case *the_case, int64_t index, struct gate_row *row) {
    const float *const input = row_of(the_case, the_case->input, index);
    const float *const output = row_of(the_case, the_case->output, index);
    const struct nucleus *const oracle = &the_case->oracle[index];
    const int64_t vocab = the_case->vocab;
    const bool refused =
        oracle->status == NUCLEUS_EMPTY_ROW || oracle->status == NUCLEUS_NONFINITE_INPUT;
    *row = (struct gate_row){.rule = GATE_RULE_NONE, .token = -1, .oracle = oracle->kept};
    if (refused && !the_case->hazard) {
        judge_refused(the_case, oracle->status, input, output, row);
        return;
    }
    int64_t token = first_nan(output, vocab);
    if (token >= 0 && first_nan(input, vocab) < 0) {
        fail(row, GATE_RULE_NAN, token);
        row->kept = count_kept(input, output, vocab);
        return;
    }
    token = first_difference(input, output, vocab, the_case->stride);
    if (token >= 0) {
        fail(row, GATE_RULE_PADDING, token);
        row->kept = count_kept(input, output, vocab);
        return;
    }
    if (oracle->untouched) {
        token = first_difference(input, output, 0, vocab);
        if (token >= 0)
            fail(row, GATE_RULE_UNTOUCHED, token);
        row->kept = count_kept(input, output, vocab);
        row->equal = row->minimal = token < 0 && oracle->status == NUCLEUS_OK;
    } else if (refused) {
        judge_refused(the_case, oracle->status, input, output, row);
    } else if (oracle->status == NUCLEUS_AMBIGUOUS) {
        row->kept = count_kept(input, output, vocab);
        fail(row, GATE_RULE_ORACLE_BOUNDARY, -1);
    } else {
        judge_ordinary(the_case, index, input, output, row);
    }
}
