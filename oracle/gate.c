#include "oracle/gate_row.h"

#include <openssl/evp.h>
#include <stdlib.h>

enum { SHA256_BYTES = 32, SHA8_HEX_DIGITS = 16 };

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

bool gate_rule_excusable(enum gate_rule rule) {
    return rule == GATE_RULE_EQUAL_PROBABILITY || rule == GATE_RULE_UNDERKEEP ||
           rule == GATE_RULE_ENVELOPE || rule == GATE_RULE_STOCK_UNDERKEEP ||
           rule == GATE_RULE_STOCK_NEARER;
}

static enum gate_verdict verdict_of(enum gate_rule rule) {
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
    switch (verdict_of(rule)) {
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
    if (weight_of_rule(the_case, row->rule) > weight_of_rule(the_case, result->rule)) {
        result->rule = row->rule;
        result->row = index;
        result->token = row->token;
        result->kept = row->kept;
        result->oracle = row->oracle;
    }
}

static bool hash_row(EVP_MD_CTX *hash, const struct gate_case *the_case, int64_t index,
                     uint8_t *bits) {
    gate_kept_bits(the_case->input + index * the_case->stride,
                   the_case->output + index * the_case->stride, the_case->vocab, bits);
    return EVP_DigestUpdate(hash, bits, bits_bytes(the_case->vocab)) == 1;
}

enum tb_status gate_check(const struct gate_case *the_case, struct gate_row *rows,
                          struct gate_result *result, struct tb_error *error) {
    enum tb_status status = TB_OK;
    unsigned char digest[SHA256_BYTES];
    int64_t kept = 0, oracle = 0;
    *result = (struct gate_result){.verdict = GATE_ACCEPTED, .row = -1, .token = -1};
    uint8_t *const bits = malloc(bits_bytes(the_case->vocab));
    EVP_MD_CTX *const hash = EVP_MD_CTX_new();
    if (bits == NULL || hash == NULL || EVP_DigestInit_ex(hash, EVP_sha256(), NULL) != 1)
        goto no_memory;
    for (int64_t i = 0; i < the_case->batch; i++) {
        struct gate_row own, *const row = rows != NULL ? &rows[i] : &own;
        gate_judge_row(the_case, i, row);
        count_row(the_case, i, row, result);
        kept += row->kept;
        oracle += row->oracle;
        if (!hash_row(hash, the_case, i, bits))
            goto no_memory;
    }
    if (EVP_DigestFinal_ex(hash, digest, NULL) != 1)
        goto no_memory;
    write_hex(digest, 2 * SHA256_BYTES, result->mask_sha256);
    result->verdict = verdict_of(result->rule);
    if (result->verdict == GATE_ACCEPTED) {
        result->kept = kept;
        result->oracle = oracle;
    }
    goto cleanup;
no_memory:
    status = tb_fail(error, TB_NO_MEMORY, "no memory to hash the mask of a row of %lld tokens",
                     (long long)the_case->vocab);
cleanup:
    EVP_MD_CTX_free(hash);
    free(bits);
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
