/* `exact` for short parts of a row: see exact_args.h. */
#define EXACT_THREADS 512
#define EXACT_QUICK
#include "kernels/cuda/exact_kernel.cuh"

extern const struct exact_kernel exact_kernel_short;
const struct exact_kernel exact_kernel_short = EXACT_KERNEL;
