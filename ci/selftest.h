/* The tool measured by itself: how often it cries wolf, what it misses. */
#ifndef TOPP_CI_SELFTEST_H
#define TOPP_CI_SELFTEST_H

#include "ci/compare.h"
#include "ci/synthetic.h"

enum { EFFECTS = 5 };
extern const double selftest_effects[EFFECTS]; /* 0.01 ... 0.10 */

/* Trials and how many of them. */
struct rate {
    size_t hits, trials;
};
double rate_of(struct rate rate); /* NAN without trials */
/* True when so many (or so few) hits would be seen in under 1% of cases if the true rate were
 * `limit`: the target is refuted, not only missed by chance. */
bool rate_above(struct rate rate, double limit);
bool rate_below(struct rate rate, double limit);

struct synthetic_result {
    enum noise_kind kind;
    struct rate alarms;          /* A/A runs with any regression */
    struct rate caught[EFFECTS]; /* runs in which the one slowed cell was found regressed */
};

struct synthetic_plan {
    size_t runs, cells;
    double within, between;
    int32_t blocks, samples;
    uint64_t seed;
};
bool selftest_synthetic(const struct synthetic_plan *plan, const struct compare_options *options,
                        struct synthetic_result results[NOISE_COUNT]);

struct recorded_cell {
    const char *name;      /* borrowed from the results */
    double within;         /* standard deviation of a process's location, from its blocks */
    double between;        /* between processes, of time */
    double between_cycles; /* NAN without */
    double sigma;          /* for the calibration: shrunk towards the other cells' */
    double smallest;       /* change that is caught in 95% of runs */
    struct rate caught[EFFECTS];
};

struct recorded_result {
    size_t processes;
    bool halves;                /* one process only: its odd against its even blocks */
    double sigma;               /* of a typical cell */
    struct rate alarms;         /* runs as recorded, pairs of processes */
    struct rate alarms_default; /* the same with the default noise, uncalibrated */
    struct rate alarms_wide;    /* runs of `wide_cells` cells put together from random pairs */
    size_t wide_cells;
    struct recorded_cell *cells; /* owned */
    size_t count;
};

struct recorded_plan {
    size_t pairs; /* most pairs of processes */
    size_t wide_runs, wide_cells;
    size_t plants;      /* trials a cell and effect */
    size_t most_judged; /* verdicts on planted runs: with more cells fewer trials a cell; 0: any */
    uint64_t seed;
};

/* files: the processes, of one sweep. */
enum tb_status selftest_recorded(const struct results_set *set, const struct recorded_plan *plan,
                                 const struct compare_options *options,
                                 struct recorded_result *result, struct tb_error *error);
void recorded_result_free(struct recorded_result *result);

#endif
