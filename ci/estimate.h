/* One cell, two sides: how much slower is the new one, how sure is that.
 *
 * Samples are put on a log scale around the base's median of their draw. A block's location is the
 * midmean of its samples, a process's that of its blocks, a side's the mean of its processes. The
 * standard error has two parts: blocks (bootstrap, docs/perfwatch.md) and process noise, since two
 * runs of one binary differ by more than their blocks tell. */
#ifndef TOPP_CI_ESTIMATE_H
#define TOPP_CI_ESTIMATE_H

#include "ci/results.h"

enum measure { MEASURE_TIME, MEASURE_CYCLES };
enum { MEASURES = 2, RANK_LEAST = 9 };

/* Standard deviation of the log of a lone value of which nothing else is known. */
#define LONE_VALUE_SIGMA 0.10

struct side_estimate {
    double location; /* log, relative to the base's draws */
    double variance; /* of location, from blocks alone; NAN when it cannot be told */
    double df;       /* its degrees of freedom */
    double spread;   /* between processes: variance of their locations; NAN below 3 */
    size_t processes, blocks, samples;
};

struct estimate {
    bool valid;
    bool lone; /* a side has too few values to tell its noise: LONE_VALUE_SIGMA was assumed */
    struct side_estimate base, new_side;
    double shift; /* log ratio, positive = worse */
    double se, df;
    double p_worse, p_better; /* one-sided, of shift - common */
    double low, high;         /* 95% interval of shift */
    bool rank_reliable;       /* both sides have RANK_LEAST values */
    size_t rank_base, rank_new;
    double rank_worse, rank_better; /* one-sided Mann-Whitney */
};

/* One side's processes. */
struct side {
    const struct sample_set *const *sets;
    size_t count;
};

/* First step: locations, block variances and the rank test. false without memory. An estimate that
 * is not valid: a side without samples, or no draw in common. */
bool estimate_locations(const struct side *base, const struct side *new_side, enum measure measure,
                        bool higher_is_better, struct estimate *estimate);

/* Second step, when the noise of all cells is known. typical_variance: a lower bound of a
 * process's block variance, from all cells: few blocks may agree by chance. process_sigma: see
 * above. common: log shift that all cells share (drift). */
void estimate_finish(struct estimate *estimate, double typical_variance, double process_sigma,
                     double common);

/* Location and block variance of one process, for calibration: centres on its own medians of
 * draws' logs in `reference` (NULL: its own). */
bool estimate_process(const struct sample_set *set, const struct sample_set *reference,
                      enum measure measure, struct side_estimate *side);

#endif
