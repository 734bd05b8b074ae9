/* The CUDA Gumbel variants against the original's ids, the oracle and their CPU twins. */
#ifndef TOPP_TESTS_KERNELS_GPU_GUMBEL_H
#define TOPP_TESTS_KERNELS_GPU_GUMBEL_H

#include <stdbool.h>

/* Draws every case of directory/golden_gumbel.tsv and prints a table. True when at least 99.9% of
 * each variant's ids are golden's, and where they are not both are within what rounding explains:
 * the oracle accepts ours and the original's alike. */
bool gumbel_conformance(const char *directory);

/* Awkward shapes and families, padded and misaligned rows, T = 0 among the rows, one row shared by
 * all draws: the oracle accepts every id, stream and graph draw the same, the noise is within its
 * bound. small: a few tiny shapes, for compute-sanitizer. Prints what failed. */
bool gumbel_shapes(bool small);

#endif
