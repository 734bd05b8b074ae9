/* BASE against NEW: which cells got wrong, slower, faster; may the two be compared at all. */
#ifndef TOPP_CI_COMPARE_H
#define TOPP_CI_COMPARE_H

#include "ci/calibration.h"
#include "ci/environment.h"
#include "ci/estimate.h"

/* Of a cell, worst first: the order of the table. The exit code of the whole is that of the
 * gravest: correctness and regressed 1, then incomparable 3, then missing 1. */
enum outcome {
    OUTCOME_CORRECTNESS, /* verdict, kept count or mask changed */
    OUTCOME_REGRESSED,
    OUTCOME_INCOMPARABLE, /* no valid samples on a side, or no valid baseline */
    OUTCOME_MISSING,      /* in BASE alone */
    OUTCOME_CLOCK,        /* slower or faster in time, not in cycles */
    OUTCOME_UNDECIDED,
    OUTCOME_IMPROVED,
    OUTCOME_NEW,        /* in NEW alone */
    OUTCOME_EQUIVALENT, /* the interval lies within the margin */
    OUTCOME_GATED,      /* never timed, or refused alike on both sides: nothing changed */
    OUTCOME_COUNT
};
const char *outcome_name(enum outcome outcome);

struct compare_options {
    double margin; /* of the ratio: 0.02 */
    double fdr;    /* false discovery rate over the cells: 0.01 */
    bool subset;   /* a cell that NEW lacks is no failure */
    bool strict;   /* undecided counts as a failure */
    bool allow_unfrozen;
    bool keep_common;           /* what all cells share is no drift: two kernels of one process */
    bool accept_correctness;    /* a changed gate outcome is shown, and no failure */
    const char *const *ignored; /* fields of --ignore-environment */
    size_t ignored_count;
    const struct calibration *calibration; /* NULL: the default noise */
};

struct verdict {
    const struct result_cell *base, *new_side; /* of the first process; NULL on one side */
    const char *name;
    char reason[256];             /* one sentence for people; "" where the outcome says it all */
    struct estimate time, cycles; /* not valid where there is none */
    double typical_time;          /* variance floor that was used, for the explanation */
    double process_sigma;
    double ratio;  /* new over base in the cell's own unit; NAN without */
    double change; /* log, positive = worse, common drift taken out; NAN without */
    enum outcome outcome;
    bool significant; /* in time, at the false discovery rate */
    bool significant_cycles;
    bool excused; /* shown, but not counted: --subset, --accept-correctness */
};

struct comparison {
    struct verdict *verdicts; /* owned, worst first */
    size_t count;
    size_t by_outcome[OUTCOME_COUNT];
    size_t judged; /* cells compared in time */
    struct differences differences;
    bool *ignored_used;            /* owned, one a field of --ignore-environment */
    char refused[256];             /* why nothing was compared; "" when it was */
    double common[MEASURES];       /* log shift that all cells share, taken out of each */
    double median_shift[MEASURES]; /* before it was limited to DRIFT_MOST */
    bool same_sources;             /* kernels' sources are the same: a difference is environment */
    bool sources_known;
    int exit_code;
};

/* Drift common to all cells that is taken out, at most; and the fewest cells that can show it. */
#define DRIFT_MOST 0.005
enum { DRIFT_CELLS = 20 };

void compare_defaults(struct compare_options *options);

/* The verdicts borrow from both sets. A refusal (exit code 3) is a finished comparison, not an
 * error. */
enum tb_status compare_sets(const struct results_set *base, const struct results_set *new_side,
                            const struct compare_options *options, struct comparison *comparison,
                            struct tb_error *error);
void comparison_free(struct comparison *comparison);

/* The statistical part alone, also for selftest: fills estimates' p, intervals, significance and
 * outcome of verdicts whose time (and cycles) estimates have been located. */
bool compare_judge(struct verdict *verdicts, size_t count, const struct compare_options *options,
                   struct comparison *comparison);

#endif
