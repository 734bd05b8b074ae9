/* The CUDA split, sort and floor kernels on awkward shapes and families. */
#ifndef TOPP_TESTS_KERNELS_GPU_SHAPES_H
#define TOPP_TESTS_KERNELS_GPU_SHAPES_H

#include <stdbool.h>

/* small: a few tiny shapes, for compute-sanitizer. False when a check failed; prints which. */
bool shapes_check(bool small);

#endif
