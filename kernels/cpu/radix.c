/* Three passes of 11 bits over the key, all counted in one sweep; a digit that all share is
 * skipped. */
#include "kernels/cpu/radix.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, PASSES = 3, KEY_SHIFT = 32 };

uint64_t *radix_sort(uint64_t *items, uint64_t *spare, size_t count) {
    uint32_t starts[PASSES][DIGITS] = {{0}};
    for (size_t i = 0; i < count; i++) {
        const uint64_t key = items[i] >> KEY_SHIFT;
        for (int pass = 0; pass < PASSES; pass++)
            starts[pass][key >> (pass * DIGIT_BITS) & (DIGITS - 1)]++;
    }
    for (int pass = 0; pass < PASSES; pass++) {
        const int shift = KEY_SHIFT + pass * DIGIT_BITS;
        uint32_t *start = starts[pass], sum = 0;
        if (count == 0 || start[items[0] >> shift & (DIGITS - 1)] == count)
            continue;
        for (int d = 0; d < DIGITS; d++) {
            const uint32_t here = start[d];
            start[d] = sum;
            sum += here;
        }
        for (size_t i = 0; i < count; i++)
            spare[start[items[i] >> shift & (DIGITS - 1)]++] = items[i];
        uint64_t *const swap = items;
        items = spare;
        spare = swap;
    }
    return items;
}
