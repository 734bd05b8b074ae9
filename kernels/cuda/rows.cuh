/* What the kernels here share: addressing of rows that may start at any element, four logits at a
 * time where the address allows it. */
#ifndef TOPP_KERNELS_CUDA_ROWS_CUH
#define TOPP_KERNELS_CUDA_ROWS_CUH

#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>

enum { LANES = 32, VECTOR = 4 /* logits in a 16-byte access */ };

/* True when four logits at `address` may be moved in one access. */
__device__ __forceinline__ bool rows_aligned(const float *address) {
    return (reinterpret_cast<uintptr_t>(address) & 15) == 0;
}

/* Logits begin[at .. at + 4); those at or past `length` read as -inf. */
__device__ __forceinline__ void rows_load(const float *begin, int64_t at, int64_t length,
                                          bool aligned, float x[VECTOR]) {
    if (aligned && at + VECTOR <= length) {
        const float4 v = *reinterpret_cast<const float4 *>(begin + at);
        x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
        return;
    }
#pragma unroll
    for (int i = 0; i < VECTOR; i++)
        x[i] = at + i < length ? begin[at + i] : -INFINITY;
}

__device__ __forceinline__ void rows_store(float *begin, int64_t at, int64_t length, bool aligned,
                                           const float x[VECTOR]) {
    if (aligned && at + VECTOR <= length) {
        *reinterpret_cast<float4 *>(begin + at) = make_float4(x[0], x[1], x[2], x[3]);
        return;
    }
#pragma unroll
    for (int i = 0; i < VECTOR; i++)
        if (at + i < length)
            begin[at + i] = x[i];
}

#endif
