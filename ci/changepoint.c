/* Binary segmentation with a step on a straight line: least squares at every place, the best one
 * kept if its t is high. Outliers are cut first (Hampel's filter), the residuals' lag-1
 * autocorrelation widens the standard error, and in the end each point is tested again between its
 * neighbours. T_LEAST is set by simulation (tests/ci/test_changepoint.c): the greatest of ~100
 * correlated t values under the null rarely passes it. */
#include "ci/changepoint.h"

#include "ci/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define T_LEAST 5.0
#define OUTLIER 4.5
enum { WINDOW = 3, WINDOW_LEAST = 20 };

/* Far from its neighbours' median, for them and for the series: where every fifth value is as far
 * off (a clock of two modes), it is no outlier. scratch: count doubles. */
static void cut_outliers(const double *values, size_t count, double *clean, double *scratch) {
    double near[2 * WINDOW + 1], spread[2 * WINDOW + 1];
    for (int pass = 0; pass < 2; pass++) {
        double usual = 0.0;
        if (pass == 1) {
            sort_ascending(scratch, count);
            usual = 3.0 * scratch[count * 4 / 5];
        }
        for (size_t i = 0; i < count; i++) {
            size_t used = 0;
            for (size_t j = i > WINDOW ? i - WINDOW : 0; j < count && j <= i + WINDOW; j++)
                near[used++] = values[j];
            double local = OUTLIER * robust_deviation(near, used, spread);
            double middle = median_of(near, used), off = fabs(values[i] - middle);
            if (pass == 0)
                scratch[i] = off;
            else
                clean[i] = off > local && off > usual ? middle : values[i];
        }
    }
}

struct fit {
    double intercept, slope, step;
    double step_factor; /* variance of step over that of a residual */
    double squares;     /* of the residuals */
};

/* values ~ intercept + slope (i - centre) + step [i >= at]. */
static bool fit_step(const double *values, size_t count, size_t at, struct fit *fit) {
    double n = (double)count, after = (double)(count - at), centre = 0.5 * (n - 1.0);
    double sum = 0.0, sum_time = 0.0, sum_after = 0.0, time_after = 0.0, time_time = 0.0;
    for (size_t i = 0; i < count; i++) {
        double time = (double)i - centre;
        sum += values[i];
        sum_time += time * values[i];
        time_time += time * time;
        if (i >= at) {
            sum_after += values[i];
            time_after += time;
        }
    }
    /* The step's column, freed of intercept and slope (which are orthogonal to each other). */
    double mean = after / n, slope = time_after / time_time;
    double own = after - after * mean - slope * time_after;
    if (!(own > 1e-9))
        return false;
    fit->step = (sum_after - mean * sum - slope * sum_time) / own;
    fit->slope = sum_time / time_time - slope * fit->step;
    fit->intercept = sum / n - mean * fit->step;
    fit->step_factor = 1.0 / own;
    fit->squares = 0.0;
    for (size_t i = 0; i < count; i++) {
        double residual = values[i] - fit->intercept - fit->slope * ((double)i - centre) -
                          (i >= at ? fit->step : 0.0);
        fit->squares += residual * residual;
    }
    return true;
}

static double residual_at(const double *values, size_t count, size_t at, const struct fit *fit,
                          size_t i) {
    return values[i] - fit->intercept - fit->slope * ((double)i - 0.5 * ((double)count - 1.0)) -
           (i >= at ? fit->step : 0.0);
}

/* The step's t; lag-1 autocorrelation is corrected for the bias of its own estimate. */
static double t_of(const double *values, size_t count, size_t at, const struct fit *fit) {
    double lagged = 0.0, n = (double)count;
    for (size_t i = 1; i < count; i++)
        lagged +=
            residual_at(values, count, at, fit, i) * residual_at(values, count, at, fit, i - 1);
    double rho = fit->squares > 0.0 ? lagged / fit->squares : 0.0;
    rho = fmin(0.9, fmax(0.0, rho + (1.0 + 4.0 * rho) / n));
    double noise = fit->squares / fmax(1.0, n - 3.0) * (1.0 + rho) / (1.0 - rho);
    /* Runs of one binary differ by this at least; identical values are no proof of no noise. */
    noise = fmax(noise, 1e-4 * 1e-4);
    return fit->step / sqrt(noise * fit->step_factor);
}

/* The best place in values[count]; false when none is beyond doubt. */
static bool best_step(const double *values, size_t count, double margin,
                      struct changepoint *point) {
    struct fit best = {.squares = INFINITY}, fit;
    size_t place = 0;
    if (count < 2 * CHANGEPOINT_LEAST)
        return false;
    for (size_t at = CHANGEPOINT_LEAST; at + CHANGEPOINT_LEAST <= count; at++)
        if (fit_step(values, count, at, &fit) && fit.squares < best.squares) {
            best = fit;
            place = at;
        }
    if (place == 0)
        return false;
    *point = (struct changepoint){place, best.step, t_of(values, count, place, &best)};
    return fabs(point->t) >= T_LEAST && fabs(point->step) >= margin;
}

/* Steps that take each other back hide from one look at the whole: shorter windows, each half
 * overlapping the next, see one of them at a time. The clearest step of the first length at which
 * any shows is taken. */
static bool best_in_windows(const double *values, size_t count, double margin,
                            struct changepoint *best) {
    if (best_step(values, count, margin, best))
        return true;
    for (size_t length = count * 2 / 3; length >= WINDOW_LEAST; length = length * 2 / 3) {
        bool any = false;
        for (size_t from = 0; from < count; from += length / 2) {
            size_t start = from + length <= count ? from : count - length;
            struct changepoint point;
            if (best_step(values + start, length, margin, &point) &&
                (!any || fabs(point.t) > fabs(best->t))) {
                any = true;
                *best = point;
                best->index += start;
            }
        }
        if (any)
            return true;
    }
    return false;
}

static size_t split(const double *values, size_t from, size_t to, double margin,
                    struct changepoint *points, size_t count, size_t most) {
    struct changepoint point;
    if (count == most || !best_in_windows(values + from, to - from, margin, &point))
        return count;
    size_t at = from + point.index;
    count = split(values, from, at, margin, points, count, most);
    if (count < most) {
        point.index = at;
        points[count++] = point;
    }
    return split(values, at, to, margin, points, count, most);
}

/* Places again, each point alone between its neighbours; returns false when one was dropped. */
static bool settle(const double *values, size_t length, double margin, struct changepoint *points,
                   size_t *count) {
    for (size_t i = 0; i < *count; i++) {
        size_t from = i > 0 ? points[i - 1].index : 0;
        size_t to = i + 1 < *count ? points[i + 1].index : length;
        struct changepoint point;
        if (best_step(values + from, to - from, margin, &point)) {
            points[i] = point;
            points[i].index += from;
            continue;
        }
        memmove(&points[i], &points[i + 1], (*count - i - 1) * sizeof *points);
        --*count;
        return false;
    }
    return true;
}

int changepoint_find(const double *values, size_t count, double margin, struct changepoint *points,
                     size_t most) {
    if (count < 2 * CHANGEPOINT_LEAST || most == 0)
        return 0;
    double *clean = malloc(2 * count * sizeof *clean);
    if (!clean)
        return -1;
    cut_outliers(values, count, clean, clean + count);
    size_t found = split(clean, 0, count, margin, points, 0, most);
    while (!settle(clean, count, margin, points, &found))
        ;
    free(clean);
    return (int)found;
}

int changepoint_find_epochs(const double *values, const int *epochs, size_t count, double margin,
                            struct changepoint *points, size_t most) {
    size_t found = 0;
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && epochs[to] == epochs[from]; to++)
            ;
        int here = changepoint_find(values + from, to - from, margin, points + found, most - found);
        if (here < 0)
            return -1;
        for (int i = 0; i < here; i++)
            points[found + (size_t)i].index += from;
        found += (size_t)here;
    }
    return (int)found;
}
