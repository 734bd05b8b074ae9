/* Canonical order by a stable sort, weights by libm's binary64 exp, sums correctly rounded from
 * exact partials (Shewchuk, "Adaptive precision floating-point arithmetic and fast robust
 * geometric predicates", 1997), the boundary found by comparing such sums with p * Z. */
#include "kernels/cpu/exact_escalate.h"

#include "kernels/cpu/radix.h"
#include "kernels/cpu/row.h"

#include <math.h>

/* An exact sum: partials of increasing magnitude that do not overlap. Weights lie in [0, 1] on a
 * grid of 2^-1074 and come the greatest first, so that each takes up what is smaller than itself:
 * about one partial for 53 of 1,105 bits. A search for the worst rows came to 21. */
struct exact_sum {
    int count;
    double partial[64];
};

static void sum_add(struct exact_sum *sum, double x) {
    int kept = 0;
    for (int i = 0; i < sum->count; i++) {
        double y = sum->partial[i];
        if (fabs(x) < fabs(y)) {
            const double swap = x;
            x = y;
            y = swap;
        }
        const double high = x + y, low = y - (high - x);
        if (low != 0.0)
            sum->partial[kept++] = low;
        x = high;
    }
    sum->partial[kept++] = x;
    sum->count = kept;
}

/* The correctly rounded value, ties to even. */
static double sum_round(const struct exact_sum *sum) {
    int i = sum->count - 1;
    if (i < 0)
        return 0.0;
    double high = sum->partial[i], low = 0.0;
    while (i > 0) {
        const double x = high, y = sum->partial[--i];
        high = x + y;
        low = y - (high - x);
        if (low != 0.0)
            break;
    }
    /* Half-way as far as low tells: the next partial decides which side it is on. */
    if (i > 0 &&
        ((low < 0.0 && sum->partial[i - 1] < 0.0) || (low > 0.0 && sum->partial[i - 1] > 0.0))) {
        const double twice = low * 2.0, moved = high + twice;
        if (twice == moved - high)
            high = moved;
    }
    return high;
}

size_t exact_escalate_bytes(int64_t vocab) {
    return (size_t)vocab * (2 * sizeof(uint64_t) + sizeof(double));
}

void exact_escalate(const float *row, int64_t vocab, float max, float p, void *memory,
                    struct exact_boundary *boundary) {
    double *const weights = memory;
    uint64_t *const items = (uint64_t *)(void *)(weights + vocab);
    for (int64_t i = 0; i < vocab; i++)
        items[i] = (uint64_t)~row_key(row[i]) << 32 | (uint32_t)i;
    const uint64_t *const order = radix_sort(items, items + vocab, (size_t)vocab);

    struct exact_sum all = {0}, prefix = {0};
    for (int64_t n = 0; n < vocab; n++) {
        weights[n] = exp((double)row[(uint32_t)order[n]] - (double)max);
        sum_add(&all, weights[n]);
    }
    const double target = (double)p * sum_round(&all);
    /* The plain running sum tells where an exact one is worth rounding: it is off by less than
     * vocab 2^-53 of itself, far under this margin. */
    const double near = target * (1.0 - 0x1p-20);
    double running = 0.0;
    int64_t last = 0;
    for (; last < vocab - 1; last++) {
        sum_add(&prefix, weights[last]);
        running += weights[last];
        if (running >= near && sum_round(&prefix) >= target)
            break;
    }
    boundary->whole = false;
    boundary->token = (uint32_t)order[last];
    boundary->logit = row[boundary->token];
}
