/* Statistics of a comparison: small, deterministic, no I/O. Everything works on plain arrays of
 * doubles; NAN never goes in. */
#ifndef TOPP_CI_STATISTICS_H
#define TOPP_CI_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

/* xoshiro256**: the same stream everywhere. */
struct random_state {
    uint64_t word[4];
};
void random_seed(struct random_state *state, uint64_t seed);
uint64_t random_word(struct random_state *state);
double random_uniform(struct random_state *state); /* [0, 1) */
double random_normal(struct random_state *state);
size_t random_below(struct random_state *state, size_t bound); /* bound > 0 */

void sort_ascending(double *values, size_t count);
/* Of values in any order (they are sorted); NAN when there are none. */
double median_of(double *values, size_t count);
/* 1.4826 x the median distance from the median: the standard deviation of a normal sample. */
double robust_deviation(const double *values, size_t count, double *scratch);

/* Mean of the middle half of sorted values, the outermost kept ones in part; the median for up to
 * two values. Half the samples may be spikes on either side, and two modes are averaged rather than
 * jumped between. */
double midmean_sorted(const double *sorted, size_t count);

/* The bootstrap's variance of midmean_sorted over `count` independent blocks, times count /
 * (count - 1); the resampling is the same in every call (seeded, done once per count and kept), so
 * equal input gives equal output. NAN below 2. Thread-safe. */
double midmean_bootstrap_variance(const double *sorted, size_t count);

double normal_tail(double z);               /* P(Z > z) */
double normal_quantile(double probability); /* in (0, 1) */
double student_tail(double t, double df);   /* P(T > t); df may be INFINITY */
double student_quantile(double probability, double df);

/* Mann-Whitney: P(U as large or larger) when right is drawn as left is, one-sided: small when
 * right's values are greater. Normal approximation with ties and continuity; exact up to 16 values
 * without ties. */
double rank_test(const double *left, size_t left_count, const double *right, size_t right_count);

/* Benjamini-Hochberg: the greatest p that is still rejected at rate q among count values, or -1
 * when none is. scratch: count doubles. */
double false_discovery_limit(const double *p, size_t count, double q, double *scratch);

#endif
