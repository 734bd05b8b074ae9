#include "oracle/nucleus_sort.h"

#include <string.h>

#define SIGN_BIT 0x80000000u
#define INFINITY_BITS 0x7f800000u

static unsigned digit_of(uint32_t key, int digit) {
    return key >> (digit * SORT_DIGIT_BITS) & (SORT_BUCKETS - 1);
}

/* Unsigned integers that ascend as the logits descend. */
static uint32_t key_of(uint32_t bits) {
    if (bits == SIGN_BIT)
        bits = 0; /* -0 is the same logit as +0 */
    return bits & SIGN_BIT ? bits : bits ^ ~SIGN_BIT;
}

/* Keys of the finite logits into `keys`, their digits counted; -1 if there is a NaN or +inf. */
static int64_t make_keys(const float *row, int64_t vocab, uint32_t *keys, int64_t *counts) {
    int64_t finite = 0;
    uint32_t refused = 0;
    for (int64_t t = 0; t < vocab; t++) {
        uint32_t bits;
        memcpy(&bits, &row[t], sizeof bits);
        refused |= (bits & ~SIGN_BIT) > INFINITY_BITS || bits == INFINITY_BITS;
        const uint32_t key = key_of(bits);
        keys[finite] = key;
        if (bits != (SIGN_BIT | INFINITY_BITS)) {
            finite++;
            for (int digit = 0; digit < SORT_DIGITS; digit++)
                counts[digit * SORT_BUCKETS + digit_of(key, digit)]++;
        }
    }
    return refused ? -1 : finite;
}

/* One stable pass by one digit. Returns false, and moves nothing, if all keys share the digit. */
static bool sort_pass(const uint32_t *from, uint32_t *to, int64_t finite, int digit,
                      int64_t *count) {
    if (count[digit_of(from[0], digit)] == finite)
        return false;
    int64_t start = 0;
    for (int bucket = 0; bucket < SORT_BUCKETS; bucket++) {
        const int64_t here = count[bucket];
        count[bucket] = start;
        start += here;
    }
    for (int64_t i = 0; i < finite; i++)
        to[count[digit_of(from[i], digit)]++] = from[i];
    return true;
}

struct sorted_row nucleus_sort(const float *row, int64_t vocab, uint32_t *a, uint32_t *b,
                               int64_t *counts) {
    struct sorted_row sorted = {NUCLEUS_OK, a, b, 0};
    memset(counts, 0, sizeof *counts * SORT_DIGITS * SORT_BUCKETS);
    sorted.finite = make_keys(row, vocab, a, counts);
    if (sorted.finite < 0) {
        sorted.status = NUCLEUS_NONFINITE_INPUT;
        return sorted;
    }
    if (sorted.finite == 0) {
        sorted.status = NUCLEUS_EMPTY_ROW;
        return sorted;
    }
    uint32_t *from = a, *to = b;
    for (int digit = 0; digit < SORT_DIGITS; digit++) {
        if (sort_pass(from, to, sorted.finite, digit, counts + digit * SORT_BUCKETS)) {
            uint32_t *const swap = from;
            from = to;
            to = swap;
        }
    }
    sorted.keys = from;
    sorted.spare = to;
    return sorted;
}
