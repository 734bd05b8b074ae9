/* The gate's look at one row. Internal to oracle/. */
#ifndef TOPP_ORACLE_GATE_ROW_H
#define TOPP_ORACLE_GATE_ROW_H

#include "oracle/gate.h"

#include <string.h>

#define GATE_MINUS_INFINITY_BITS 0xff800000u

static inline uint32_t gate_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Kept: the very bits of the input, and a token that was there to be kept. */
static inline bool gate_keeps(float input, float output) {
    const uint32_t bits = gate_bits(input);
    return bits == gate_bits(output) && bits != GATE_MINUS_INFINITY_BITS;
}

/* What a rule broken by one row makes of the whole case. */
enum gate_verdict gate_rule_verdict(enum gate_rule rule);

/* Judges row `index` of the case. */
void gate_judge_row(const struct gate_case *the_case, int64_t index, struct gate_row *row);

/* Breaks of the mask's shape, from its lowest kept and highest dropped token. */
struct gate_token {
    int64_t id; /* -1: there is none */
    float logit;
};

/* GATE_RULE_NONE when the kept set is a canonical prefix; otherwise which rule it breaks. */
enum gate_rule gate_prefix_rule(const float *input, const float *output, int64_t vocab,
                                const struct nucleus *oracle, struct gate_token lowest_kept,
                                struct gate_token highest_dropped);

#endif
