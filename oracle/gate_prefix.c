#include "oracle/gate_row.h"

#include <math.h>

static const float log2_e = 1.44269504f;

/* How far, in units in the last place, a binary32 sum of all weights may lie from the exact one and
 * still be some legitimate order of summation. */
enum { Z_STEPS = 2 };

static bool same_quotient(float a, float b, float z) {
    return gate_bits(a / z) == gate_bits(b / z) && a / z > 0.0f;
}

/* Do two logits share one binary32 probability P = exp(x - M) / Z in a binary32 evaluation that
 * topp.h's split variants are free to use: either common form of exp, any Z near the exact one?
 * No distance is tolerated: within one evaluation the bits of P must be equal, and above 0. */
static bool share_probability(float a, float b, const struct nucleus *oracle) {
    const float da = a - oracle->max_logit, db = b - oracle->max_logit;
    const float ea = expf(da), eb = expf(db);
    const float pa = exp2f(da * log2_e), pb = exp2f(db * log2_e);
    float z = (float)oracle->normalizer;
    for (int i = 0; i < Z_STEPS; i++)
        z = nextafterf(z, 0.0f);
    for (int i = 0; i <= 2 * Z_STEPS; i++) {
        if (same_quotient(ea, eb, z) || same_quotient(pa, pb, z))
            return true;
        z = nextafterf(z, INFINITY);
    }
    return false;
}

/* The greatest logit below `above` and not below `least`; NaN if there is none. */
static float next_logit(const float *input, int64_t vocab, float above, float least) {
    float next = NAN;
    for (int64_t t = 0; t < vocab; t++) {
        if (input[t] < above && input[t] >= least && !(input[t] <= next))
            next = input[t];
    }
    return next;
}

/* Are the tokens of this very logit kept by ascending id? */
static bool tie_in_order(const float *input, const float *output, int64_t vocab, float logit) {
    bool dropped = false;
    for (int64_t t = 0; t < vocab; t++) {
        if (input[t] != logit)
            continue;
        const bool kept = gate_keeps(input[t], output[t]);
        if (kept && dropped)
            return false;
        dropped = dropped || !kept;
    }
    return true;
}

enum gate_rule gate_prefix_rule(const float *input, const float *output, int64_t vocab,
                                const struct nucleus *oracle, struct gate_token lowest_kept,
                                struct gate_token highest_dropped) {
    if (highest_dropped.id < 0 || highest_dropped.logit < lowest_kept.logit)
        return GATE_RULE_NONE;
    if (highest_dropped.logit == lowest_kept.logit)
        return highest_dropped.id < lowest_kept.id ? GATE_RULE_TIE_ORDER : GATE_RULE_NONE;
    /* P descends with the logit, so when the two ends share it, all between them do. */
    if (!share_probability(highest_dropped.logit, lowest_kept.logit, oracle))
        return GATE_RULE_NOT_PREFIX;
    for (float logit = highest_dropped.logit; logit >= lowest_kept.logit;
         logit = next_logit(input, vocab, logit, lowest_kept.logit)) {
        if (!tie_in_order(input, output, vocab, logit))
            return GATE_RULE_TIE_ORDER;
    }
    return GATE_RULE_EQUAL_PROBABILITY;
}
