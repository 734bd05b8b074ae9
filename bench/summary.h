/* Order statistics of samples: medians, quantiles, the median's confidence interval, and the rule
 * that says when a block has enough. Pure functions. */
#ifndef TOPP_BENCH_SUMMARY_H
#define TOPP_BENCH_SUMMARY_H

#include "bench/record.h"

/* Sorts ascending; no NaN allowed. */
void summary_sort(double *values, size_t count);

/* Quantile q in [0, 1] of sorted values, linear between neighbours (R's type 7); NAN for none. */
double summary_quantile(const double *sorted, size_t count, double q);

/* Largest k so that the interval from the k-th smallest to the k-th greatest of n values covers
 * their population's median with at least 95% (binomial order statistics); 0 when n < 6: even
 * the whole range covers less. */
size_t summary_median_rank(size_t count);

/* The summary of a cell's (or one block's) time_ns. With several draws the spread over draws is
 * taken out first: each sample is scaled by (median over draws) / (median of its draw), and
 * interval and quantiles describe what is left. Samples without a time are skipped. False when
 * memory is short. */
bool summary_of_samples(const struct sample *samples, size_t count, struct cell_summary *summary);

/* Half the width of the median's interval over the median; INFINITY when there is none yet. */
double summary_relative_half_width(const struct cell_summary *summary);

/* Enough samples? count >= min_samples and the precision is reached, or max_samples is. */
bool summary_block_done(const struct timing_settings *settings, const struct sample *samples,
                        size_t count, int32_t draws);

/* How many more samples to take before asking summary_block_done() again: sparse enough that the
 * sorting costs little. */
size_t summary_next_check(const struct timing_settings *settings, size_t count, int32_t draws);

#endif
