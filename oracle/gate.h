/* The predeclared rules: may this output be timed? No tolerance is derived from what is seen. */
#ifndef TOPP_ORACLE_GATE_H
#define TOPP_ORACLE_GATE_H

#include "oracle/nucleus.h"

/* What a kernel left behind (kernels/topp.h says the same of variants, in the same order). */
enum gate_output { GATE_MASKED_LOGITS = 0, GATE_PROBABILITIES, GATE_IDS };

enum gate_contract { GATE_EXACT, GATE_BOUNDED, GATE_CONSERVATIVE, GATE_ENVELOPE };

enum gate_verdict {
    GATE_ACCEPTED = 0,
    GATE_REJECTED,    /* a rule of the contract broke: rule, row and token say which */
    GATE_AMBIGUOUS,   /* the oracle could not certify a row */
    GATE_UNREADABLE,  /* the input is not an ordinary row: nonfinite_input or empty_row */
    GATE_DRIFT,       /* the timed buffer is not the gated mask */
    GATE_TIMEOUT,     /* the case ran past its limit */
    GATE_UNSUPPORTED, /* past the variant's limits */
};

enum gate_rule {
    GATE_RULE_NONE = 0,
    GATE_RULE_NAN,               /* NaN in an output row that had none */
    GATE_RULE_CHANGED_VALUE,     /* neither the input's bits nor the mask value */
    GATE_RULE_PADDING,           /* an element past vocab was written */
    GATE_RULE_UNTOUCHED,         /* a row with p >= 1 was changed */
    GATE_RULE_EMPTY_MASK,        /* nothing kept */
    GATE_RULE_RESURRECTED,       /* a -inf token is neither -inf nor the mask value any more */
    GATE_RULE_NOT_PREFIX,        /* a hole: kept set is no canonical prefix (logits differ) */
    GATE_RULE_TIE_ORDER,         /* a tie cut not by ascending token id */
    GATE_RULE_EQUAL_PROBABILITY, /* no prefix, but only among logits of one binary32 probability */
    GATE_RULE_UNDERKEEP,         /* an oracle token is missing */
    GATE_RULE_ENVELOPE,          /* count too far from the oracle's */
    GATE_RULE_NOT_ORACLE_SET,    /* contract exact: sets differ */
    GATE_RULE_ORDER,             /* contract envelope: a kept logit is below a dropped one */
    GATE_RULE_STOCK_UNDERKEEP,   /* stock dropped an oracle token: no comparison is defined */
    GATE_RULE_STOCK_NEARER,      /* further from the oracle than stock */
    GATE_RULE_STOCK_MISSING,     /* stock did not run on these bytes */
    GATE_RULE_FORCED_DROPPED,    /* the forced token is masked or not the argmax */
    GATE_RULE_FORCED_COUNT,      /* split path: not exactly one token kept on a forced row */
    GATE_RULE_INPUT_NAN,
    GATE_RULE_INPUT_EMPTY,
    GATE_RULE_ORACLE_BOUNDARY,   /* oracle_boundary_ambiguous */
    GATE_RULE_PROBABILITY_SUM,   /* probabilities: all off alike, they do not add up to 1 */
    GATE_RULE_PROBABILITY_VALUE, /* probabilities: one is too far from the oracle's */
    GATE_RULE_OUT_OF_RANGE,      /* ids: not in [0, vocab) */
    GATE_RULE_OUTSIDE_NUCLEUS,   /* ids: a token that is not in the nucleus was drawn */
    GATE_RULE_CHI_SQUARE,        /* ids: drawn with other frequencies than the oracle's */
    GATE_RULE_DEPENDENT,         /* ids: a draw tells about the one beside it */
    GATE_RULE_SEED_IGNORED,      /* ids: another seed draws the same */
    GATE_RULE_NOT_REPEATED,      /* ids: the same seed and position draw another id */
    GATE_RULE_INPUT_CHANGED,     /* an input (p, seed, position; for ids the logits) was written */
    GATE_RULE_COUNT
};

/* What ran and what came out. All pointers host memory, the caller's. */
struct gate_case {
    enum gate_output kind;       /* GATE_MASKED_LOGITS or GATE_PROBABILITIES; ids: gate_ids.h */
    const float *input, *output; /* binary32 [batch, stride]; whole rows, padding included */
    int64_t batch, vocab, stride;
    float mask_value;
    const float *p;               /* [batch] */
    const struct nucleus *oracle; /* [batch] */
    enum gate_contract contract;
    const float
        *stock_output;    /* contract conservative: stock's output on the same bytes, or NULL */
    int64_t forced_token; /* forced family: the token of the huge logit; else -1 */
    bool split_path;      /* forced family: exactly one token must be kept */
    bool hazard;          /* robustness only: ordinary rows of the batch must be right */
    bool either;          /* the profile tolerates the excusable rules ... */
    double either_share;  /* ... on at most this share of rows */
};

/* Row i of what a kernel kept, beside the oracle. */
struct gate_row {
    enum gate_rule rule;               /* GATE_RULE_NONE: the row passes its contract */
    int64_t token;                     /* first offending token, -1 if none */
    int64_t kept, oracle;              /* counts */
    int64_t surplus, missing;          /* kept but not in the nucleus; in the nucleus but dropped */
    double surplus_mass, missing_mass; /* as shares of the normalizer */
    bool equal;                        /* same set as the oracle */
    bool minimal; /* dropping the lowest kept token brings the mass below p (diagnostic) */
    /* Probabilities of a row whose kept set passes; 0 otherwise. */
    double value_error; /* greatest error, as a share of what is allowed there */
    double sum_error;   /* |sum - 1| */
};

struct gate_result {
    enum gate_verdict verdict;
    enum gate_rule rule;  /* of the first offending row; one that `either` does not excuse first */
    int64_t row, token;   /* first offending row and token, -1 if none */
    int64_t kept, oracle; /* counts of that row; sums over rows when accepted */
    int64_t rows_failed, rows_equal; /* equal: same set as the oracle's */
    int64_t rows_excused;            /* of rows_failed: by a rule that `either` excuses */
    int64_t rows_by_rule[GATE_RULE_COUNT];
    int64_t most_surplus, most_missing; /* over rows */
    double surplus_mass, missing_mass;  /* greatest over rows */
    double value_error, sum_error;      /* probabilities: greatest over rows */
    char mask_sha256[65]; /* of all rows' kept bits, row after row, each packed little-endian */
};

/* Judges a case. rows: [batch] or NULL, filled per row. TB_OK unless memory is short. A case with
 * `either` whose offending rows are all excusable and few enough is still GATE_REJECTED (it may
 * not be timed): gate_excused() says that the exit code is unmoved. */
enum tb_status gate_check(const struct gate_case *the_case, struct gate_row *rows,
                          struct gate_result *result, struct tb_error *error);
bool gate_excused(const struct gate_case *the_case, const struct gate_result *result);

/* True for the rules that a contract adds to those of every kernel. */
bool gate_rule_of_contract(enum gate_rule rule);

/* True for the rules that `either` can excuse: underkeep, envelope, equal_probability and the two
 * comparisons with stock. */
bool gate_rule_excusable(enum gate_rule rule);

/* After timing: is `output_again` [batch, stride] still the gated output? Bit for bit, padding
 * included. */
bool gate_same_mask(const struct gate_case *the_case, const float *output_again);

/* Packs which tokens of a row are kept: bit t % 8 of byte t / 8; bits: (vocab + 7) / 8 bytes.
 * A token is kept when its output bits equal its input bits and its input is not -inf. */
void gate_kept_bits(const float *input, const float *output, int64_t vocab, uint8_t *bits);

/* The first 16 hex digits of the SHA-256 of a row's kept bits, as golden files spell a mask. */
enum { GATE_SHA8_BYTES = 17 };
enum tb_status gate_row_sha8(const uint8_t *bits, int64_t vocab, char sha8[GATE_SHA8_BYTES],
                             struct tb_error *error);

bool gate_output_parse(const char *name, enum gate_output *output);
const char *gate_output_name(enum gate_output output); /* "masked_logits", "probabilities", "ids" */
bool gate_contract_parse(const char *name, enum gate_contract *contract);
const char *gate_contract_name(enum gate_contract contract);
const char *gate_verdict_name(enum gate_verdict verdict); /* "accepted", "rejected", ... */
const char *gate_rule_name(enum gate_rule rule);          /* "underkeep", "not_prefix", ... */
const char *gate_rule_text(enum gate_rule rule);          /* one sentence for people */

#endif
