/* Steps in a series of runs. Deterministic; slow trends, single outliers and neighbours that are
 * alike by themselves are no steps. */
#ifndef TOPP_CI_CHANGEPOINT_H
#define TOPP_CI_CHANGEPOINT_H

#include <stdbool.h>
#include <stddef.h>

/* A step can be dated no nearer than this to an end of its epoch. */
enum { CHANGEPOINT_LEAST = 5 };

struct changepoint {
    size_t index; /* first run of the new level */
    double step;  /* log: positive = slower */
    double t;     /* the step over its standard error, autocorrelation counted in */
};

/* Finds at most `most` points in values[count] (logs, finite), ascending by index. margin: least
 * step, as a log. Returns how many; -1 without memory. */
int changepoint_find(const double *values, size_t count, double margin, struct changepoint *points,
                     size_t most);

/* The same within each run of equal epoch numbers; no point is found at their borders. */
int changepoint_find_epochs(const double *values, const int *epochs, size_t count, double margin,
                            struct changepoint *points, size_t most);

#endif
