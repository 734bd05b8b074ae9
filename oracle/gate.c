#include "oracle/gate_probabilities.h"
#include "oracle/gate_row.h"
#include "oracle/parallel.h"

#include <openssl/evp.h>
#include <stdlib.h>

enum { SHA256_BYTES = 32, SHA8_HEX_DIGITS = 16, SMALL_CASE = 1 << 16 /* tokens */ };

static void write_hex(const unsigned char *bytes, size_t digits, char *text) {
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < digits; i++)
        text[i] = hex[bytes[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15];
    text[digits] = '\0';
}

static size_t bits_bytes(int64_t vocab) {
    return (size_t)(vocab / 8 + (vocab % 8 != 0));
}

void gate_kept_bits(const float *input, const float *output, int64_t vocab, uint8_t *bits) {
    const int64_t whole = vocab / 8;
    for (int64_t byte = 0; byte < whole; byte++) {
        unsigned packed = 0;
        for (int bit = 0; bit < 8; bit++)
            packed |= (unsigned)gate_keeps(input[byte * 8 + bit], output[byte * 8 + bit]) << bit;
        bits[byte] = (uint8_t)packed;
    }
    if (vocab % 8 != 0)
        bits[whole] = 0;
    for (int64_t t = whole * 8; t < vocab; t++)
        bits[whole] |= (uint8_t)(gate_keeps(input[t], output[t]) << (t % 8));
}

enum tb_status gate_row_sha8(const uint8_t *bits, int64_t vocab, char sha8[GATE_SHA8_BYTES],
                             struct tb_error *error) {
    unsigned char digest[SHA256_BYTES];
    if (EVP_Digest(bits, bits_bytes(vocab), digest, NULL, EVP_sha256(), NULL) != 1)
        return tb_fail(error, TB_NO_MEMORY, "libcrypto could not hash a row's mask");
    write_hex(digest, SHA8_HEX_DIGITS, sha8);
    return TB_OK;
}

bool gate_rule_of_contract(enum gate_rule rule) {
    return rule >= GATE_RULE_NOT_PREFIX && rule <= GATE_RULE_STOCK_MISSING;
}

bool gate_rule_excusable(enum gate_rule rule) {
    return rule == GATE_RULE_EQUAL_PROBABILITY || rule == GATE_RULE_UNDERKEEP ||
           rule == GATE_RULE_ENVELOPE || rule == GATE_RULE_STOCK_UNDERKEEP ||
           rule == GATE_RULE_STOCK_NEARER;
}

enum gate_verdict gate_rule_verdict(enum gate_rule rule) {
    switch (rule) {
    case GATE_RULE_NONE:
        return GATE_ACCEPTED;
    case GATE_RULE_INPUT_NAN:
    case GATE_RULE_INPUT_EMPTY:
        return GATE_UNREADABLE;
    case GATE_RULE_ORACLE_BOUNDARY:
        return GATE_AMBIGUOUS;
    default:
        return GATE_REJECTED;
    }
}

/* Which of two offending rows speaks for the case: an input that cannot be judged, then a boundary
 * that cannot, then what nothing excuses, then the rest; among equals the first row. */
static int weight_of_rule(const struct gate_case *the_case, enum gate_rule rule) {
    switch (gate_rule_verdict(rule)) {
    case GATE_ACCEPTED:
        return 0;
    case GATE_UNREADABLE:
        return 4;
    case GATE_AMBIGUOUS:
        return 3;
    default:
        return the_case->either && gate_rule_excusable(rule) ? 1 : 2;
    }
}

static void count_row(const struct gate_case *the_case, int64_t index, const struct gate_row *row,
                      struct gate_result *result) {
    result->rows_by_rule[row->rule]++;
    result->rows_failed += row->rule != GATE_RULE_NONE;
    result->rows_excused += the_case->either && gate_rule_excusable(row->rule);
    result->rows_equal += row->equal;
    if (row->surplus > result->most_surplus)
        result->most_surplus = row->surplus;
    if (row->missing > result->most_missing)
        result->most_missing = row->missing;
    if (row->surplus_mass > result->surplus_mass)
        result->surplus_mass = row->surplus_mass;
    if (row->missing_mass > result->missing_mass)
        result->missing_mass = row->missing_mass;
    if (row->value_error > result->value_error)
        result->value_error = row->value_error;
    if (row->sum_error > result->sum_error)
        result->sum_error = row->sum_error;
    if (weight_of_rule(the_case, row->rule) > weight_of_rule(the_case, result->rule)) {
        result->rule = row->rule;
        result->row = index;
        result->token = row->token;
        result->kept = row->kept;
        result->oracle = row->oracle;
    }
}

/* Rows do not depend on each other: judged and packed in parallel, counted and hashed in order. */
struct judging {
    const struct gate_case *the_case; /* masked logits */
    struct gate_row *rows;
    uint8_t *bits;                         /* [batch, bits_bytes(vocab)] */
    const struct gate_case *probabilities; /* NULL, or what the_case was made from: */
    float *masked;                         /* its output, to be filled row by row */
};

static void judge_row(void *context, int64_t index) {
    const struct judging *judging = context;
    const struct gate_case *the_case = judging->the_case;
    if (judging->probabilities)
        gate_probabilities_mask(judging->probabilities, index,
                                judging->masked + index * the_case->stride);
    gate_judge_row(the_case, index, &judging->rows[index]);
    if (judging->probabilities)
        gate_probabilities_values(judging->probabilities, index, &judging->rows[index]);
    gate_kept_bits(the_case->input + index * the_case->stride,
                   the_case->output + index * the_case->stride, the_case->vocab,
                   judging->bits + (size_t)index * bits_bytes(the_case->vocab));
}

enum tb_status gate_check(const struct gate_case *the_case, struct gate_row *rows,
                          struct gate_result *result, struct tb_error *error) {
    enum tb_status status = TB_OK;
    unsigned char digest[SHA256_BYTES];
    int64_t kept = 0, oracle = 0;
    const size_t batch = (size_t)the_case->batch;
    const size_t bits_total = batch * bits_bytes(the_case->vocab);
    *result = (struct gate_result){.verdict = GATE_ACCEPTED, .row = -1, .token = -1};
    struct gate_row *const own = rows != NULL ? NULL : malloc(batch * sizeof *own);
    uint8_t *const bits = malloc(bits_total);
    const bool probabilities = the_case->kind == GATE_PROBABILITIES;
    float *const masked =
        probabilities ? malloc(batch * (size_t)the_case->stride * sizeof *masked) : NULL;
    struct gate_case as_mask = *the_case;
    struct judging judging = {the_case, rows != NULL ? rows : own, bits, NULL, masked};
    if (probabilities) {
        as_mask.output = masked;
        as_mask.mask_value = -__builtin_inff();
        judging.the_case = &as_mask;
        judging.probabilities = the_case;
    }
    if (bits == NULL || judging.rows == NULL || (probabilities && masked == NULL)) {
        status = tb_fail(error, TB_NO_MEMORY, "no memory for the masks of %zu rows", batch);
        goto cleanup;
    }
    /* Small cases are done before a thread has started. */
    parallel_rows(the_case->batch, batch * (size_t)the_case->vocab < SMALL_CASE ? 1 : 0, judge_row,
                  &judging);
    for (int64_t i = 0; i < the_case->batch; i++) {
        count_row(the_case, i, &judging.rows[i], result);
        kept += judging.rows[i].kept;
        oracle += judging.rows[i].oracle;
    }
    if (EVP_Digest(bits, bits_total, digest, NULL, EVP_sha256(), NULL) != 1) {
        status = tb_fail(error, TB_NO_MEMORY, "libcrypto could not hash the masks");
        goto cleanup;
    }
    write_hex(digest, 2 * SHA256_BYTES, result->mask_sha256);
    result->verdict = gate_rule_verdict(result->rule);
    if (result->verdict == GATE_ACCEPTED) {
        result->kept = kept;
        result->oracle = oracle;
    }
cleanup:
    free(own);
    free(bits);
    free(masked);
    return status;
}

bool gate_excused(const struct gate_case *the_case, const struct gate_result *result) {
    /* The share is written in decimal: a hair above it, 0.29 of 100 rows is 29 rows. */
    const double allowed = the_case->either_share * (double)the_case->batch + 1e-9;
    return the_case->either && result->verdict == GATE_REJECTED &&
           result->rows_failed == result->rows_excused && (double)result->rows_failed <= allowed;
}

bool gate_same_mask(const struct gate_case *the_case, const float *output_again) {
    const size_t bytes =
        (size_t)the_case->batch * (size_t)the_case->stride * sizeof *the_case->output;
    return memcmp(the_case->output, output_again, bytes) == 0;
}
