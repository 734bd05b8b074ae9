/* The CPU variants of top-p, for registry.c. */
#ifndef TOPP_KERNELS_CPU_VARIANTS_H
#define TOPP_KERNELS_CPU_VARIANTS_H

#include "kernels/topp.h"

extern const struct topp_variant topp_cpu_stock;
extern const struct topp_variant topp_cpu_patched;
extern const struct topp_variant topp_cpu_patched_fine;
extern const struct topp_variant topp_cpu_sort;
extern const struct topp_variant topp_cpu_exact;
extern const struct topp_variant topp_cpu_floor;

#endif
