/* How much two runs of one binary differ: found by selftest, used by compare. */
#ifndef TOPP_CI_CALIBRATION_H
#define TOPP_CI_CALIBRATION_H

#include "oracle/status.h"

#include <jansson.h>
#include <stddef.h>

/* Standard deviation of the log between processes when nothing was calibrated. */
#define PROCESS_SIGMA 0.003

struct calibration_cell {
    char *name;
    double sigma;
};

struct calibration {
    double sigma;                   /* of a cell that is not listed */
    struct calibration_cell *cells; /* ascending by name; owned */
    size_t count;
};

/* Schema "topp-bench.calibration/1". */
enum tb_status calibration_load(const char *file, struct calibration *calibration,
                                struct tb_error *error);
void calibration_free(struct calibration *calibration);
double calibration_sigma(const struct calibration *calibration, const char *name);

#endif
