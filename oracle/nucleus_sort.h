/* Puts the logits of a row into canonical order for the binary64 reference. Internal to oracle/. */
#ifndef TOPP_ORACLE_NUCLEUS_SORT_H
#define TOPP_ORACLE_NUCLEUS_SORT_H

#include "oracle/nucleus.h"

/* Three digits of 11 bits: few passes, counters that stay in the first-level cache. */
enum { SORT_DIGITS = 3, SORT_DIGIT_BITS = 11, SORT_BUCKETS = 1 << SORT_DIGIT_BITS };

struct sorted_row {
    enum nucleus_status status; /* NUCLEUS_OK, NUCLEUS_EMPTY_ROW or NUCLEUS_NONFINITE_INPUT */
    const uint32_t *keys;       /* the finite logits, greatest first; in one of the buffers given */
    void *spare;                /* the other buffer, free for use */
    int64_t finite;             /* how many */
};

/* Sorts row [vocab]. a, b: [vocab] each; counts: [SORT_DIGITS * SORT_BUCKETS].
 *
 * Equal logits have equal keys, so keys alone are sorted: the id of the k-th of some equal logits
 * is the k-th in the row, and one look through the row finds it. That is the stable order, at
 * 8 bytes of memory a token. */
struct sorted_row nucleus_sort(const float *row, int64_t vocab, uint32_t *a, uint32_t *b,
                               int64_t *counts);

/* The logit of a key (-0 comes back as +0). */
static inline float sort_key_logit(uint32_t key) {
    union {
        uint32_t bits;
        float value;
    } logit = {.bits = key & 0x80000000u ? key : key ^ 0x7fffffffu};
    return logit.value;
}

#endif
