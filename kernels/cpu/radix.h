/* Stable least-significant-digit radix sort of (key, token id) pairs. */
#ifndef TOPP_KERNELS_CPU_RADIX_H
#define TOPP_KERNELS_CPU_RADIX_H

#include <stddef.h>
#include <stdint.h>

/* Sorts pairs (key in the high 32 bits) by key ascending; equal keys keep their order. items and
 * spare: [count] each, host memory; returns the one of them that holds the result. */
uint64_t *radix_sort(uint64_t *items, uint64_t *spare, size_t count);

#endif
