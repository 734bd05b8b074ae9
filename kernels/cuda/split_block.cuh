/* What the sweeps of split.cu stand on: the original's arithmetic, reductions over a block, and the
 * chain of decisions of split_search.h worked out by a whole block. For split.cu alone. */
#ifndef TOPP_KERNELS_CUDA_SPLIT_BLOCK_CUH
#define TOPP_KERNELS_CUDA_SPLIT_BLOCK_CUH

#include <cuda_runtime.h>
#include <stdint.h>

/* exp as 2^(x log2 e) in the hardware's approximation: within 2 units in the last place near 0. */
static __host__ __device__ __forceinline__ float split_exp2_scaled(float x) {
#ifdef __CUDA_ARCH__
    float y;
    asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(__fmul_rn(x, 1.4426950408889634f)));
    return y;
#else
    return expf(x);
#endif
}
static __host__ __device__ __forceinline__ float split_quotient(float a, float b) {
#ifdef __CUDA_ARCH__
    float y;
    asm("div.full.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
#else
    return a / b;
#endif
}
#define SPLIT_EXPF(x) split_exp2_scaled(x)
#define SPLIT_DIV(a, b) split_quotient((a), (b))

#include "kernels/split_search.h"

#include "kernels/cuda/rows.cuh"

namespace {

enum { THREADS = 256, WARPS = THREADS / LANES, REP = THREADS * VECTOR };

/* A launch's view of problem and workspace. */
struct split_launch {
    float *logits;
    const float *p;
    int64_t vocab, stride;
    float mask_value;
    int32_t slices;
    struct split_stats *stats; /* [batch, slices] */
    struct split_step *steps;  /* [batch, SPLIT_ROUNDS, slices] */
};

struct sum_of {
    template <typename T> static __device__ __forceinline__ T join(T a, T b) {
        return a + b;
    }
};
struct least_of {
    static __device__ __forceinline__ float join(float a, float b) {
        return fminf(a, b);
    }
};
struct greatest_of {
    static __device__ __forceinline__ float join(float a, float b) {
        return fmaxf(a, b);
    }
};

template <typename How, typename T> __device__ __forceinline__ T warp_join(T value) {
#pragma unroll
    for (int away = LANES / 2; away > 0; away /= 2)
        value = How::join(value, __shfl_xor_sync(~0u, value, away));
    return value;
}

/* Joins one value per warp; every thread of the block gets the result. */
template <typename How, typename T>
__device__ __forceinline__ T warps_join(const T (&of_warps)[WARPS]) {
    T v[WARPS];
#pragma unroll
    for (int w = 0; w < WARPS; w++)
        v[w] = of_warps[w];
#pragma unroll
    for (int away = WARPS / 2; away > 0; away /= 2)
#pragma unroll
        for (int w = 0; w < away; w++)
            v[w] = How::join(v[w], v[w + away]);
    return v[0];
}

/* Shared memory of one reduction over the block. Two are used in turn, so that one barrier per
 * reduction is enough. */
struct reduction {
    float a[WARPS], b[WARPS];
    int32_t n[WARPS];
};

/* The slice of this block. */
struct slice_view {
    float *begin;
    int64_t length;
    bool aligned;
};
__device__ __forceinline__ struct slice_view slice_of(const struct split_launch &launch) {
    const int64_t from = split_slice_begin(launch.vocab, launch.slices, (int)blockIdx.x);
    const int64_t to = split_slice_begin(launch.vocab, launch.slices, (int)blockIdx.x + 1);
    struct slice_view view;
    view.begin = launch.logits + (int64_t)blockIdx.y * launch.stride + from;
    view.length = to - from;
    view.aligned = rows_aligned(view.begin);
    return view;
}

/* ---- The chain, by the whole block: a warp per pivot, a lane per slice ---- */

static_assert((int)WARPS == (int)SPLIT_PIVOTS && (int)LANES >= (int)SPLIT_MAX_SLICES,
              "a warp per pivot, a lane per slice");

/* What split_combine_row does; every thread gets the row. */
__device__ __forceinline__ struct split_row chain_row(const struct split_launch &launch) {
    const int lane = threadIdx.x % LANES;
    struct split_stats mine = {-INFINITY, 0.0f, INFINITY, 0};
    if (lane < launch.slices)
        mine = launch.stats[(int64_t)blockIdx.y * launch.slices + lane];
    const float max = warp_join<greatest_of>(mine.max), min = warp_join<least_of>(mine.min);
    const float z = warp_join<sum_of>(
        mine.sum != 0.0f ? SPLIT_MUL(mine.sum, SPLIT_EXPF(mine.max - max)) : 0.0f);
    return split_row_of(max, min, z, __reduce_add_sync(~0u, mine.finite));
}

/* What split_search_chain does; every thread gets the search. Rounds after its end are not read:
 * nobody wrote them. merged: shared memory, two rounds in turn, so that one barrier each will do.
 */
__device__ __forceinline__ struct split_search
chain_search(const struct split_launch &launch, const struct split_row &row, int rounds, float p,
             struct split_pivot (&merged)[2][SPLIT_PIVOTS]) {
    const int f = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    struct split_search search = split_search_begin(&row);
    for (int round = 0; round < rounds && !search.done; round++) {
        const struct split_step *const partials =
            launch.steps + ((int64_t)blockIdx.y * SPLIT_ROUNDS + round) * launch.slices;
        const int mine = lane < launch.slices; /* how many slices this lane has */
        struct split_pivot pivot = split_merge_slices(partials + lane, mine, round, f,
                                                      split_ladder(search.lo, search.hi, f));
        const float smallest = pivot.gmin;
        pivot.mass = warp_join<sum_of>(pivot.mass);
        pivot.gmin = warp_join<least_of>(pivot.gmin);
        pivot.n = __reduce_add_sync(~0u, smallest - pivot.gmin < SPLIT_BAND ? pivot.n : 0);
        if (lane == 0)
            merged[round % 2][f] = pivot;
        __syncthreads();
        split_search_round(&search, merged[round % 2], p);
    }
    return search;
}

} // namespace

#endif
