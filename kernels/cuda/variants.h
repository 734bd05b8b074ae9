/* The CUDA variants, for registry.c. */
#ifndef TOPP_KERNELS_CUDA_VARIANTS_H
#define TOPP_KERNELS_CUDA_VARIANTS_H

#include "kernels/gumbel.h"
#include "kernels/topp.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct topp_variant topp_cuda_stock;
extern const struct topp_variant topp_cuda_patched;
extern const struct topp_variant topp_cuda_patched_fine;
extern const struct topp_variant topp_cuda_sort;
extern const struct topp_variant topp_cuda_floor;
extern const struct topp_variant topp_cuda_exact;
extern const struct topp_variant topp_cuda_exact_portable;

extern const struct gumbel_variant gumbel_cuda_log;
extern const struct gumbel_variant gumbel_cuda_log1p;
extern const struct gumbel_variant gumbel_cuda_fp64;
extern const struct gumbel_variant gumbel_cuda_murmur;

#ifdef __cplusplus
}
#endif
#endif
