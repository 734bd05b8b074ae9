/* The CPU variants, for registry.c. */
#ifndef TOPP_KERNELS_CPU_VARIANTS_H
#define TOPP_KERNELS_CPU_VARIANTS_H

#include "kernels/gumbel.h"
#include "kernels/topp.h"

extern const struct topp_variant topp_cpu_stock;
extern const struct topp_variant topp_cpu_patched;
extern const struct topp_variant topp_cpu_patched_fine;
extern const struct topp_variant topp_cpu_sort;
/* After a launch the first int64 of its workspace holds how many rows were escalated: redone in
 * binary64 because their boundary lay within the error bound of the fast sums. */
extern const struct topp_variant topp_cpu_exact;
extern const struct topp_variant topp_cpu_floor;

extern const struct gumbel_variant gumbel_cpu_log;
extern const struct gumbel_variant gumbel_cpu_log1p;
extern const struct gumbel_variant gumbel_cpu_fp64;
extern const struct gumbel_variant gumbel_cpu_murmur;

#endif
