#include "oracle/gate.h"

#include <string.h>

static const char *const output_names[] = {
    [GATE_MASKED_LOGITS] = "masked_logits",
    [GATE_PROBABILITIES] = "probabilities",
    [GATE_IDS] = "ids",
};

static const char *const contract_names[] = {
    [GATE_EXACT] = "exact",
    [GATE_BOUNDED] = "bounded",
    [GATE_CONSERVATIVE] = "conservative",
    [GATE_ENVELOPE] = "envelope",
};

static const char *const verdict_names[] = {
    [GATE_ACCEPTED] = "accepted",
    [GATE_REJECTED] = "rejected",
    [GATE_AMBIGUOUS] = "ambiguous",
    [GATE_UNREADABLE] = "unreadable",
    [GATE_DRIFT] = "drift",
    [GATE_TIMEOUT] = "timeout",
    [GATE_UNSUPPORTED] = "unsupported",
};

static const struct {
    const char *name, *text;
} rules[GATE_RULE_COUNT] = {
    [GATE_RULE_NONE] = {"none", "The row passes."},
    [GATE_RULE_NAN] = {"nan", "The output holds a NaN and the input row had none."},
    [GATE_RULE_CHANGED_VALUE] =
        {"changed_value", "A token's output is neither the input's bits nor the mask value."},
    [GATE_RULE_PADDING] = {"padding", "An element past the vocabulary was written."},
    [GATE_RULE_UNTOUCHED] = {"untouched", "A row with p >= 1 was changed."},
    [GATE_RULE_EMPTY_MASK] = {"empty_mask", "No token of the row is kept."},
    [GATE_RULE_RESURRECTED] = {"resurrected", "A token masked in the input (-inf) came back."},
    [GATE_RULE_NOT_PREFIX] = {"not_prefix",
                              "A token is dropped while one of lower logit is kept (a hole)."},
    [GATE_RULE_TIE_ORDER] = {"tie_order", "Of equal logits a higher token id is kept and a lower "
                                          "one dropped."},
    [GATE_RULE_EQUAL_PROBABILITY] = {"equal_probability",
                                     "A token is dropped while one of lower logit but the same "
                                     "binary32 probability is kept."},
    [GATE_RULE_UNDERKEEP] = {"underkeep", "A token of the oracle's nucleus is dropped."},
    [GATE_RULE_ENVELOPE] = {"envelope", "The count kept is more than 3 and at least 0.5% away from "
                                        "the oracle's."},
    [GATE_RULE_NOT_ORACLE_SET] = {"not_oracle_set", "The kept set is not the oracle's nucleus."},
    [GATE_RULE_ORDER] = {"order", "A kept logit lies below a dropped one."},
    [GATE_RULE_STOCK_UNDERKEEP] = {"stock_underkeep",
                                   "Stock drops a token of the nucleus here, so that nothing can "
                                   "be compared with it."},
    [GATE_RULE_STOCK_NEARER] = {"stock_nearer", "Stock's mask is nearer to the oracle's."},
    [GATE_RULE_STOCK_MISSING] = {"stock_missing", "Stock did not run on these bytes."},
    [GATE_RULE_FORCED_DROPPED] = {"forced_dropped",
                                  "The forced token is masked or not the greatest any more."},
    [GATE_RULE_FORCED_COUNT] = {"forced_count", "More than the forced token is kept."},
    [GATE_RULE_INPUT_NAN] = {"nonfinite_input", "The input row holds NaN or +inf."},
    [GATE_RULE_INPUT_EMPTY] = {"empty_row", "The input row holds nothing but -inf."},
    [GATE_RULE_ORACLE_BOUNDARY] = {"oracle_boundary_ambiguous",
                                   "The oracle could not certify this row's boundary."},
    [GATE_RULE_PROBABILITY_SUM] = {"probability_sum",
                                   "The probabilities do not add up to 1: every one is off."},
    [GATE_RULE_PROBABILITY_VALUE] = {"probability_value",
                                     "A probability is further from the oracle's weight over the "
                                     "kept mass than rounding explains."},
    [GATE_RULE_OUT_OF_RANGE] = {"out_of_range", "An id is not in [0, vocab)."},
    [GATE_RULE_OUTSIDE_NUCLEUS] = {"outside_nucleus",
                                   "A token was drawn that is not in the oracle's nucleus."},
    [GATE_RULE_CHI_SQUARE] = {"chi_square",
                              "The tokens were drawn with other frequencies than the oracle's."},
    [GATE_RULE_DEPENDENT] = {"dependent",
                             "A draw tells about the one before it, or about its neighbour row's."},
    [GATE_RULE_SEED_IGNORED] = {"seed_ignored", "Another seed draws the same ids."},
    [GATE_RULE_NOT_REPEATED] = {"not_repeated",
                                "The same logits, p, seed and position gave another id when they "
                                "came again beside rows of another seed."},
    [GATE_RULE_INPUT_CHANGED] = {"input_changed",
                                 "The kernel wrote to one of its inputs (p, seed, position, or "
                                 "the logits of a sampler)."},
};

bool gate_output_parse(const char *name, enum gate_output *output) {
    for (size_t i = 0; i < sizeof output_names / sizeof *output_names; i++) {
        if (strcmp(name, output_names[i]) == 0) {
            *output = (enum gate_output)i;
            return true;
        }
    }
    return false;
}

const char *gate_output_name(enum gate_output output) {
    return (size_t)output < sizeof output_names / sizeof *output_names ? output_names[output]
                                                                       : "unknown";
}

bool gate_contract_parse(const char *name, enum gate_contract *contract) {
    for (size_t i = 0; i < sizeof contract_names / sizeof *contract_names; i++) {
        if (strcmp(name, contract_names[i]) == 0) {
            *contract = (enum gate_contract)i;
            return true;
        }
    }
    return false;
}

const char *gate_contract_name(enum gate_contract contract) {
    return (size_t)contract < sizeof contract_names / sizeof *contract_names
               ? contract_names[contract]
               : "unknown";
}

const char *gate_verdict_name(enum gate_verdict verdict) {
    return (size_t)verdict < sizeof verdict_names / sizeof *verdict_names ? verdict_names[verdict]
                                                                          : "unknown";
}

const char *gate_rule_name(enum gate_rule rule) {
    return (size_t)rule < GATE_RULE_COUNT ? rules[rule].name : "unknown";
}

const char *gate_rule_text(enum gate_rule rule) {
    return (size_t)rule < GATE_RULE_COUNT ? rules[rule].text : "Unknown rule.";
}
