#include "oracle/exact_sum.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum {
    EXPONENT_SHIFT = 52,
    EXPONENT_MASK = 0x7ff,
    SIGN_SHIFT = 11, /* of the sign above the exponent, once both are shifted down */
    /* 53-bit significands are added as integers: 2^11 of them fit 64 bits. */
    RUN_GREATEST = 1 << 11,
    TOP_BINADES = 12, /* a run of these may pass the greatest double */
    LOW_BITS = 32,
};

void exact_sum_clear(struct exact_sum *sum) {
    sum->count = 0;
    sum->overflowed = false;
    sum->has_special = false;
    sum->special = 0.0;
}

/* Shewchuk's compress: the same sum in the fewest partials, ascending, zeros left out. */
static void compress(struct exact_sum *sum) {
    double kept[EXACT_SUM_PARTIALS];
    int bottom = EXACT_SUM_PARTIALS;
    double running = sum->partial[sum->count - 1];
    for (int i = sum->count - 2; i >= 0; i--) {
        const double total = running + sum->partial[i];
        const double rest = sum->partial[i] - (total - running);
        running = total;
        if (rest != 0.0) {
            kept[--bottom] = total;
            running = rest;
        }
    }
    int count = 0;
    for (int i = bottom; i < EXACT_SUM_PARTIALS; i++) {
        const double total = kept[i] + running;
        const double rest = running - (total - kept[i]);
        running = total;
        if (rest != 0.0)
            sum->partial[count++] = rest;
    }
    sum->partial[count++] = running;
    sum->count = count;
}

void exact_sum_add(struct exact_sum *sum, double value) {
    if (!isfinite(value)) {
        sum->has_special = true;
        sum->special += value;
        return;
    }
    if (sum->overflowed)
        return;
    int count = 0;
    for (int i = 0; i < sum->count; i++) {
        double large = value, small = sum->partial[i];
        if (fabs(large) < fabs(small)) {
            large = sum->partial[i];
            small = value;
        }
        value = large + small;
        const double rest = small - (value - large);
        if (rest != 0.0)
            sum->partial[count++] = rest;
    }
    sum->count = count;
    if (!isfinite(value)) {
        sum->overflowed = true;
        return;
    }
    if (value == 0.0)
        return;
    sum->partial[sum->count++] = value;
    if (sum->count == EXACT_SUM_PARTIALS)
        compress(sum);
}

/* Adds significands * 2^(unit - 1075) with the sign given: two halves, each exact in binary64. */
static void add_run(struct exact_sum *sum, uint64_t significands, unsigned sign_exponent) {
    const unsigned exponent = sign_exponent & EXPONENT_MASK;
    const int unit = (exponent == 0 ? 1 : (int)exponent) - 1075;
    const double sign = sign_exponent >> SIGN_SHIFT ? -1.0 : 1.0;
    const uint64_t low = significands & ((UINT64_C(1) << LOW_BITS) - 1);
    const uint64_t high = significands >> LOW_BITS;
    exact_sum_add(sum, sign * ldexp((double)low, unit));
    if (high != 0)
        exact_sum_add(sum, sign * ldexp((double)high, unit + LOW_BITS));
}

void exact_sum_add_many(struct exact_sum *sum, const double *values, size_t count) {
    const uint64_t fraction_mask = (UINT64_C(1) << EXPONENT_SHIFT) - 1;
    size_t i = 0;
    while (i < count) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        const uint64_t sign_exponent = bits >> EXPONENT_SHIFT;
        /* The top binades, infinities and NaN are left to exact_sum_add: a run of them may pass the
         * greatest double although the sum with what is there already would not. */
        if ((sign_exponent & EXPONENT_MASK) >= EXPONENT_MASK - TOP_BINADES) {
            exact_sum_add(sum, values[i++]);
            continue;
        }
        const size_t end = count - i > RUN_GREATEST ? i + RUN_GREATEST : count;
        const uint64_t hidden =
            (sign_exponent & EXPONENT_MASK) != 0 ? UINT64_C(1) << EXPONENT_SHIFT : 0;
        uint64_t significands = 0;
        do {
            significands += (bits & fraction_mask) | hidden;
            i++;
            if (i == end)
                break;
            memcpy(&bits, &values[i], sizeof bits);
        } while (bits >> EXPONENT_SHIFT == sign_exponent);
        add_run(sum, significands, (unsigned)sign_exponent);
    }
}

double exact_sum_value(const struct exact_sum *sum) {
    if (sum->overflowed)
        return (double)NAN;
    if (sum->has_special)
        return sum->special;
    int i = sum->count - 1;
    if (i < 0)
        return 0.0;
    double high = sum->partial[i--];
    double low = 0.0;
    while (i >= 0 && low == 0.0) {
        const double before = high, part = sum->partial[i--];
        high = before + part;
        low = part - (high - before);
    }
    /* Half-way cases went to even without a look at the partials below: if those pull the same
     * way as what was rounded off, the exact sum is past the half-way point. */
    if (i >= 0 && (low < 0.0) == (sum->partial[i] < 0.0)) {
        const double twice = low * 2.0, next = high + twice;
        if (twice == next - high)
            high = next;
    }
    return high;
}
