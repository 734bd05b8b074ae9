/* `exact` for long parts of a row: see exact_args.h. */
#define EXACT_THREADS 1024
#include "kernels/cuda/exact_kernel.cuh"

extern const struct exact_kernel exact_kernel_long;
const struct exact_kernel exact_kernel_long = EXACT_KERNEL;
