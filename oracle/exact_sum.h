/* The correctly rounded sum of binary64 values: what Python's math.fsum returns, incrementally.
 *
 * Method: J. R. Shewchuk, "Adaptive Precision Floating-Point Arithmetic and Fast Robust Geometric
 * Predicates" (1997), grow-expansion and compress: the exact sum is held as few non-overlapping
 * partials. The sum of a set does not depend on the order in which it was added.
 *
 * Values that are not finite: the result is their plain sum (an infinity, or NaN for NaN and for
 * infinities of both signs), as math.fsum has it. A finite running sum of magnitude 2^1024 or more
 * cannot be held: math.fsum raises OverflowError there, here the value is NaN from then on, so that
 * every comparison with it fails. */
#ifndef TOPP_ORACLE_EXACT_SUM_H
#define TOPP_ORACLE_EXACT_SUM_H

#include <stdbool.h>
#include <stddef.h>

/* Partials in ascending magnitude. Compressed ones overlap in no bit of 53, and binary64 spans
 * 2098 bits, so at most 41 remain: the array is never full after a compression. */
enum { EXACT_SUM_PARTIALS = 64 };

/* A plain value: copy it to keep a running sum where it stands. */
struct exact_sum {
    double partial[EXACT_SUM_PARTIALS];
    int count;
    bool overflowed;
    bool has_special; /* a NaN or an infinity was added */
    double special;   /* the sum of those */
};

/* Starts at zero. */
void exact_sum_clear(struct exact_sum *sum);

void exact_sum_add(struct exact_sum *sum, double value);

/* The same as adding each of values[0..count) in turn; about a nanosecond a value when neighbours
 * share sign and exponent, as sorted weights do. */
void exact_sum_add_many(struct exact_sum *sum, const double *values, size_t count);

/* The sum so far, rounded once, to nearest, ties to even; 0.0 for an empty sum. */
double exact_sum_value(const struct exact_sum *sum);

#endif
