/* One pass that masks rows by a threshold that is known: reads each logit once, writes the 16-byte
 * pieces that change. Shared by floor and by the last step of sort. */
#ifndef TOPP_KERNELS_CUDA_MASKING_CUH
#define TOPP_KERNELS_CUDA_MASKING_CUH

#include "kernels/cuda/launch.cuh"
#include "kernels/topp.h"

#include <cuda_runtime.h>
#include <stdint.h>

enum { MASKING_THREADS = 256, MASKING_MANY = 2 /* pieces of a thread when there are many */ };

/* What a launch looks at; chunks: blocks per row, each of MASKING_THREADS * VECTORS pieces. */
struct masking_launch {
    float *logits;
    const float *p; /* rows with p >= 1 stay as they are */
    int64_t vocab, stride;
    float mask_value;
    uint32_t chunks;
};

/* Masks `count` logits that start at `at`, token `token`. True when a bit changed. */
template <typename Keep>
__device__ __forceinline__ bool masking_piece(float *x, int count, int64_t token, Keep keep,
                                              float mask_value) {
    bool changed = false;
    for (int i = 0; i < count; i++)
        if (!keep(x[i], token + i)) {
            changed |= __float_as_uint(x[i]) != __float_as_uint(mask_value);
            x[i] = mask_value;
        }
    return changed;
}

/* Rows::open(row, &keep) is false when the row stays whole; keep(logit, token) says who stays. */
template <int VECTORS, typename Rows>
__global__ void __launch_bounds__(MASKING_THREADS)
    masking_kernel(struct masking_launch launch, Rows rows) {
    const int64_t row = blockIdx.x / launch.chunks;
    const int64_t chunk = blockIdx.x % launch.chunks;
    float *const start = launch.logits + row * launch.stride;
    /* Pieces are cut at 16-byte borders, also where a row starts between two. */
    const int shift = (int)((reinterpret_cast<uintptr_t>(start) & 15) / sizeof(float));
    float *const base = start - shift;
    const int64_t end = launch.vocab + shift;
    const int64_t first = chunk * (MASKING_THREADS * VECTORS) + threadIdx.x;
    float4 x[VECTORS];
#pragma unroll
    for (int i = 0; i < VECTORS; i++) { /* before anything else: the loads take longest */
        const int64_t at = (first + i * MASKING_THREADS) * 4;
        if (at >= shift && at + 4 <= end)
            x[i] = *reinterpret_cast<const float4 *>(base + at);
    }
    typename Rows::keep keep;
    if (launch.p[row] >= 1.0f || !rows.open(row, &keep))
        return;
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        const int64_t at = (first + i * MASKING_THREADS) * 4;
        if (at >= shift && at + 4 <= end) {
            float v[4] = {x[i].x, x[i].y, x[i].z, x[i].w};
            /* Not read again here: leave the cache to what is still to be read. */
            if (masking_piece(v, 4, at - shift, keep, launch.mask_value))
                __stcs(reinterpret_cast<float4 *>(base + at), make_float4(v[0], v[1], v[2], v[3]));
        } else {
            const int64_t from = at < shift ? shift : at, to = at + 4 < end ? at + 4 : end;
            for (int64_t k = from; k < to; k++) {
                float v = base[k];
                if (masking_piece(&v, 1, k - shift, keep, launch.mask_value))
                    base[k] = v;
            }
        }
    }
}

/* Enqueues the pass. Few rows: one piece a thread, so that all multiprocessors take part. */
template <typename Rows>
int masking_enqueue(const struct topp_problem *problem, const Rows &rows, cudaStream_t stream) {
    struct masking_launch launch = {};
    launch.logits = problem->logits;
    launch.p = problem->p;
    launch.vocab = problem->vocab;
    launch.stride = problem->stride;
    launch.mask_value = problem->mask_value;
    const int64_t pieces = problem->vocab / 4 + 2; /* a row may begin and end inside a piece */
    const bool few = pieces * problem->batch <= 1 << 19;
    const int64_t per_block = MASKING_THREADS * (few ? 1 : MASKING_MANY);
    const int64_t chunks = (pieces + per_block - 1) / per_block;
    if (chunks * problem->batch > INT32_MAX)
        return KERNEL_UNSUPPORTED;
    launch.chunks = (uint32_t)chunks;
    const unsigned grid = (unsigned)(chunks * problem->batch);
    return launch_kernel(few ? masking_kernel<1, Rows> : masking_kernel<MASKING_MANY, Rows>, grid,
                         MASKING_THREADS, 0, stream, launch, rows);
}

#endif
