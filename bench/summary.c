#include "bench/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

void summary_sort(double *values, size_t count) {
    if (count > 1)
        qsort(values, count, sizeof *values, ascending);
}

double summary_quantile(const double *sorted, size_t count, double q) {
    if (count == 0)
        return NAN;
    double place = q * (double)(count - 1);
    size_t below = (size_t)place;
    if (below + 1 >= count)
        return sorted[count - 1];
    double share = place - (double)below;
    return sorted[below] + share * (sorted[below + 1] - sorted[below]);
}

size_t summary_median_rank(size_t count) {
    /* Binomial(count, 1/2): the k-th order statistics miss the median with 2 P(X <= k - 1). */
    double n = (double)count, tail = 0.0;
    size_t rank = 0;
    double log_all = n * log(2.0);
    for (size_t k = 0; 2 * k < count; k++) {
        double chosen = lgamma(n + 1.0) - lgamma((double)k + 1.0) - lgamma(n - (double)k + 1.0);
        tail += exp(chosen - log_all);
        if (2.0 * tail > 0.05)
            break;
        rank = k + 1;
    }
    return rank;
}

static double median_of(double *values, size_t count) {
    summary_sort(values, count);
    return summary_quantile(values, count, 0.5);
}

/* Median of one column of the samples, skipping NAN; scratch holds count values. */
static double column_median(const struct sample *samples, size_t count, size_t offset,
                            double *scratch) {
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        double value;
        memcpy(&value, (const char *)&samples[i] + offset, sizeof value);
        if (!isnan(value))
            scratch[used++] = value;
    }
    return median_of(scratch, used);
}

static void no_summary(struct cell_summary *summary) {
    *summary = (struct cell_summary){0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
}

/* Each draw's median into medians[0..draws), NAN where a draw has no sample. */
static void medians_of_draws(const struct sample *samples, size_t count, int32_t draws,
                             double *medians, double *scratch) {
    for (int32_t draw = 0; draw < draws; draw++) {
        size_t used = 0;
        for (size_t i = 0; i < count; i++)
            if (samples[i].draw == draw && !isnan(samples[i].time_ns))
                scratch[used++] = samples[i].time_ns;
        medians[draw] = median_of(scratch, used);
    }
}

bool summary_of_samples(const struct sample *samples, size_t count, struct cell_summary *summary) {
    no_summary(summary);
    int32_t draws = 0;
    for (size_t i = 0; i < count; i++)
        if (samples[i].draw >= draws)
            draws = samples[i].draw + 1;
    if (count == 0 || draws == 0)
        return true;
    double *scratch = calloc(count, sizeof *scratch);
    double *medians = calloc(2 * (size_t)draws, sizeof *medians);
    if (!scratch || !medians) {
        free(scratch);
        free(medians);
        return false;
    }
    summary->busy_ns = column_median(samples, count, offsetof(struct sample, busy_ns), scratch);
    summary->cycles = column_median(samples, count, offsetof(struct sample, cycles), scratch);
    summary->sm_mhz = column_median(samples, count, offsetof(struct sample, sm_mhz), scratch);
    medians_of_draws(samples, count, draws, medians, scratch);
    double *present = medians + draws;
    size_t present_count = 0;
    for (int32_t draw = 0; draw < draws; draw++)
        if (!isnan(medians[draw]))
            present[present_count++] = medians[draw];
    double median = median_of(present, present_count);
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(samples[i].time_ns)) {
            double own = medians[samples[i].draw];
            scratch[used++] = own > 0.0 ? samples[i].time_ns * (median / own) : samples[i].time_ns;
        }
    summary->samples = used;
    if (used > 0) {
        summary_sort(scratch, used);
        summary->median_ns = median;
        summary->draw_low_ns = present[0];
        summary->draw_high_ns = present[present_count - 1];
        summary->p05_ns = summary_quantile(scratch, used, 0.05);
        summary->p95_ns = summary_quantile(scratch, used, 0.95);
        size_t rank = summary_median_rank(used);
        if (rank > 0) {
            summary->ci_low_ns = scratch[rank - 1];
            summary->ci_high_ns = scratch[used - rank];
        }
    }
    free(scratch);
    free(medians);
    return true;
}

double summary_relative_half_width(const struct cell_summary *summary) {
    double width = (summary->ci_high_ns - summary->ci_low_ns) / (2.0 * summary->median_ns);
    return isnan(width) ? (double)INFINITY : width;
}

static size_t least_samples(const struct timing_settings *settings, int32_t draws) {
    size_t least = settings->min_samples > 0 ? (size_t)settings->min_samples : 1;
    return least < (size_t)draws ? (size_t)draws : least;
}

bool summary_block_done(const struct timing_settings *settings, const struct sample *samples,
                        size_t count, int32_t draws) {
    if (count < least_samples(settings, draws))
        return false;
    if (settings->max_samples > 0 && count >= (size_t)settings->max_samples)
        return true;
    struct cell_summary summary;
    if (!summary_of_samples(samples, count, &summary))
        return true;
    return summary_relative_half_width(&summary) <= settings->precision;
}

size_t summary_next_check(const struct timing_settings *settings, size_t count, int32_t draws) {
    size_t least = least_samples(settings, draws);
    if (count < least)
        return least - count;
    size_t step = count / 8 > 0 ? count / 8 : 1;
    /* Whole rounds over the draws, so that each has as many samples as the others. */
    step = (step + (size_t)draws - 1) / (size_t)draws * (size_t)draws;
    size_t most = settings->max_samples > 0 ? (size_t)settings->max_samples : SIZE_MAX;
    if (count < most && step > most - count)
        step = most - count;
    return step;
}
