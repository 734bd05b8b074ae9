/* Deterministic gate of a Gumbel-max draw: is each drawn token the winner, given the very words
 * that the variant draws? Needs no statistics, so it runs on every case.
 *
 * Rules, the same as the kernels': a score of NaN or -inf is never drawn; equal scores go to the
 * lowest id; a row in which nothing can be drawn gives id 0; a quotient logit / T that overflows
 * binary32 is infinite. */
#ifndef TOPP_ORACLE_GUMBEL_GATE_H
#define TOPP_ORACLE_GUMBEL_GATE_H

#include "oracle/gate.h"
#include "oracle/gumbel_noise.h"

enum gumbel_rule {
    GUMBEL_RULE_NONE = 0,
    GUMBEL_RULE_OUT_OF_RANGE, /* id outside [0, vocab) */
    GUMBEL_RULE_MASKED_DRAWN, /* logit -inf drawn while others could be */
    GUMBEL_RULE_NAN_DRAWN,    /* logit NaN drawn while others could be */
    GUMBEL_RULE_EMPTY_ROW,    /* nothing can be drawn, and the id is not 0 */
    GUMBEL_RULE_NOT_ARGMAX,   /* T = 0: not the first of the greatest logits */
    GUMBEL_RULE_WRONG_WINNER, /* another score is greater by more than rounding explains */
    GUMBEL_RULE_TIE_ORDER,    /* a lower id has the same logit and the same noise */
    GUMBEL_RULE_COUNT
};

/* What ran and what came out. All pointers host memory, the caller's. */
struct gumbel_case {
    enum noise_kind noise;
    const float *logits;            /* binary32 [batch, vocab]; row i at logits + i * stride */
    int64_t batch, vocab, stride;   /* stride >= vocab, or 0: all rows are one */
    const int64_t *seed, *position; /* [batch] */
    const float *temperature;       /* [batch], >= 0 */
    const int64_t *token;           /* [batch]: what the kernel drew */
};

struct gumbel_row {
    enum gumbel_rule rule;
    int64_t token, winner; /* drawn; the oracle's */
    double gap;   /* winner's score less the drawn one's, in binary64; 0 if they are the same */
    double bound; /* greatest gap that rounding explains; 0 for T = 0 */
};

struct gumbel_result {
    enum gate_verdict verdict;  /* GATE_ACCEPTED or GATE_REJECTED */
    enum gumbel_rule rule;      /* of the first offending row */
    int64_t row, token, winner; /* of that row; -1 when accepted */
    double gap, bound;          /* of that row; when accepted the greatest gap and its bound */
    int64_t rows_failed;
    int64_t rows_near; /* accepted rows whose token is not the oracle's winner */
    int64_t rows_by_rule[GUMBEL_RULE_COUNT];
};

/* Judges a case, single-threaded (rows are independent: a caller may split the batch by pointer).
 * rows: [batch] or NULL. TB_USAGE for a shape or temperature outside the contract. */
enum tb_status gumbel_gate_check(const struct gumbel_case *the_case, struct gumbel_row *rows,
                                 struct gumbel_result *result, struct tb_error *error);

const char *gumbel_rule_name(enum gumbel_rule rule); /* "wrong_winner", ... */
const char *gumbel_rule_text(enum gumbel_rule rule); /* one sentence for people */

#endif
