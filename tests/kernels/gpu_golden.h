/* The CUDA split variants against the golden masks, the oracle and their CPU twins. */
#ifndef TOPP_TESTS_KERNELS_GPU_GOLDEN_H
#define TOPP_TESTS_KERNELS_GPU_GOLDEN_H

#include "tests/kernels/golden_file.h"

/* Runs every case of directory/name, prints a table; equal: share of rows, in percent, on which the
 * original equals the reference. True when at least 98% of each variant's rows are identical to the
 * golden ones and its share equal to the reference is within 1 point of the original's. */
bool golden_conformance(const char *directory, const char *name, const char *captured,
                        const double equal[GOLDEN_VARIANTS]);

#endif
