/* The statistical half of a comparison: from located estimates to outcomes. */
#include "ci/compare.h"

#include "ci/statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct estimate *estimate_of(struct verdict *verdict, enum measure measure) {
    return measure == MEASURE_CYCLES ? &verdict->cycles : &verdict->time;
}

/* Lower quartile over cells and sides of a process's block variance: no cell is believed to be much
 * quieter than its neighbours because its few blocks happen to agree. */
static double typical_variance(struct verdict *verdicts, size_t count, enum measure measure,
                               double *scratch) {
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const struct estimate *estimate = estimate_of(&verdicts[i], measure);
        const struct side_estimate *sides[2] = {&estimate->base, &estimate->new_side};
        for (int side = 0; estimate->valid && side < 2; side++)
            if (!isnan(sides[side]->variance))
                scratch[used++] = sides[side]->variance * (double)sides[side]->processes;
    }
    sort_ascending(scratch, used);
    return used ? scratch[used / 4] : 0.0;
}

static double common_shift(struct verdict *verdicts, size_t count, enum measure measure,
                           double *scratch, double *median) {
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        if (estimate_of(&verdicts[i], measure)->valid)
            scratch[used++] = estimate_of(&verdicts[i], measure)->shift;
    *median = used ? median_of(scratch, used) : 0.0;
    return used >= DRIFT_CELLS ? fmax(-DRIFT_MOST, fmin(DRIFT_MOST, *median)) : 0.0;
}

/* The greatest p that is rejected over all cells, in one direction. */
static double limit_of(struct verdict *verdicts, size_t count, enum measure measure, bool worse,
                       double fdr, double *scratch) {
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const struct estimate *estimate = estimate_of(&verdicts[i], measure);
        if (estimate->valid)
            scratch[used++] = worse ? estimate->p_worse : estimate->p_better;
    }
    return used ? false_discovery_limit(scratch, used, fdr, scratch + used) : -1.0;
}

/* Which way a measure moved, beyond doubt and beyond the margin: 1 worse, -1 better, 0 neither. A
 * reliable rank test may take an alarm back; an unreliable one has no say. */
static int direction(const struct estimate *estimate, double change, double limit_worse,
                     double limit_better, double margin) {
    const double rank_veto = 0.05;
    if (!estimate->valid)
        return 0;
    if (estimate->p_worse <= limit_worse && change >= margin)
        return !estimate->rank_reliable || estimate->rank_worse <= rank_veto;
    if (estimate->p_better <= limit_better && -change >= margin)
        return !estimate->rank_reliable || estimate->rank_better <= rank_veto ? -1 : 0;
    return 0;
}

static enum outcome by_interval(const struct estimate *estimate, double common, double margin) {
    return estimate->low - common >= -margin && estimate->high - common <= margin
               ? OUTCOME_EQUIVALENT
               : OUTCOME_UNDECIDED;
}

static double percent(double log_change) {
    return 100.0 * expm1(log_change);
}

static void name_clock(struct verdict *verdict, double time, double cycles) {
    double from = verdict->base ? verdict->base->sm_mhz : (double)NAN;
    double to = verdict->new_side ? verdict->new_side->sm_mhz : (double)NAN;
    char clock[80] = "";
    if (from > 0.0 && to > 0.0)
        snprintf(clock, sizeof clock, " (SM clock %.0f -> %.0f MHz)", from, to);
    verdict->outcome = OUTCOME_CLOCK;
    snprintf(verdict->reason, sizeof verdict->reason,
             "time %+.1f%%, cycles %+.1f%%: the clock changed, not the kernel%s", percent(time),
             percent(cycles), clock);
}

/* What one cell's two measures say together. Cycles up and time not is left for later (returns
 * true): a slowdown that a faster clock hides, or a memory-bound kernel that a faster clock does
 * not help, look alike from one cell. */
static bool decide(struct verdict *verdict, const struct comparison *comparison, int time,
                   int cycles, double margin) {
    double slower = verdict->change;
    double more = verdict->cycles.shift - comparison->common[MEASURE_CYCLES];
    verdict->significant = time != 0;
    verdict->significant_cycles = cycles != 0;
    verdict->outcome = time > 0 ? OUTCOME_REGRESSED
                       : time < 0
                           ? OUTCOME_IMPROVED
                           : by_interval(&verdict->time, comparison->common[MEASURE_TIME], margin);
    if (!verdict->cycles.valid)
        return false;
    if (time != 0 && cycles != time) {
        name_clock(verdict, slower, more);
    } else if (time == 0 && cycles != 0 && slower * cycles >= 0.5 * more * cycles) {
        verdict->outcome = cycles > 0 ? OUTCOME_REGRESSED : OUTCOME_IMPROVED;
        snprintf(
            verdict->reason, sizeof verdict->reason,
            "decided in cycles (%+.1f%%); time agrees (%+.1f%%) but is too noisy to tell alone",
            percent(more), percent(slower));
    }
    return time == 0 && cycles > 0 && verdict->outcome != OUTCOME_REGRESSED;
}

/* Cells whose cycles rose at constant time. Where the other cells followed the clock, a lone one
 * that did not is slower; where many behave so, they are bound by memory. */
static void settle_hidden(struct verdict *verdicts, size_t count, const bool *hidden,
                          const struct comparison *comparison) {
    size_t with_cycles = 0, hiding = 0;
    for (size_t i = 0; i < count; i++) {
        with_cycles += verdicts[i].cycles.valid;
        hiding += hidden[i];
    }
    bool lone = with_cycles >= DRIFT_CELLS && 20 * hiding <= with_cycles;
    for (size_t i = 0; i < count; i++) {
        if (!hidden[i])
            continue;
        double more = verdicts[i].cycles.shift - comparison->common[MEASURE_CYCLES];
        if (!lone) {
            name_clock(&verdicts[i], verdicts[i].change, more);
            continue;
        }
        verdicts[i].outcome = OUTCOME_REGRESSED;
        snprintf(verdicts[i].reason, sizeof verdicts[i].reason,
                 "cycles %+.1f%% while time %+.1f%%: a faster clock hides the slowdown, which the "
                 "other cells do not show",
                 percent(more), percent(verdicts[i].change));
    }
}

bool compare_judge(struct verdict *verdicts, size_t count, const struct compare_options *options,
                   struct comparison *comparison) {
    double *scratch = malloc((2 * count + 1) * sizeof *scratch);
    bool *hidden = calloc(count + 1, sizeof *hidden);
    double limits[MEASURES][2], margin = log1p(options->margin);
    if (!scratch || !hidden) {
        free(scratch);
        free(hidden);
        return false;
    }
    for (enum measure m = MEASURE_TIME; m <= MEASURE_CYCLES; m++) {
        double typical = typical_variance(verdicts, count, m, scratch);
        double common = common_shift(verdicts, count, m, scratch, &comparison->median_shift[m]);
        if (options->keep_common)
            common = 0.0;
        comparison->common[m] = common;
        for (size_t i = 0; i < count; i++) {
            verdicts[i].process_sigma = calibration_sigma(options->calibration, verdicts[i].name);
            if (m == MEASURE_TIME)
                verdicts[i].typical_time = typical;
            estimate_finish(estimate_of(&verdicts[i], m), typical, verdicts[i].process_sigma,
                            common);
        }
        for (int worse = 0; worse < 2; worse++)
            limits[m][worse] = limit_of(verdicts, count, m, worse, options->fdr, scratch);
    }
    for (size_t i = 0; i < count; i++) {
        struct verdict *verdict = &verdicts[i];
        if (!verdict->time.valid)
            continue;
        verdict->change = verdict->time.shift - comparison->common[MEASURE_TIME];
        int time = direction(&verdict->time, verdict->change, limits[MEASURE_TIME][1],
                             limits[MEASURE_TIME][0], margin);
        int cycles =
            direction(&verdict->cycles, verdict->cycles.shift - comparison->common[MEASURE_CYCLES],
                      limits[MEASURE_CYCLES][1], limits[MEASURE_CYCLES][0], margin);
        hidden[i] = decide(verdict, comparison, time, cycles, margin);
    }
    settle_hidden(verdicts, count, hidden, comparison);
    free(scratch);
    free(hidden);
    return true;
}
