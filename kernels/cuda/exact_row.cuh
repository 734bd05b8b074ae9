/* One row of `exact` as its blocks see it: shared memory, the block's part of the row, barriers. */
#ifndef TOPP_KERNELS_CUDA_EXACT_ROW_CUH
#define TOPP_KERNELS_CUDA_EXACT_ROW_CUH

#include "kernels/cuda/exact_exp.cuh"

#include <cooperative_groups.h>
#include <math_constants.h>
#include <stdint.h>

enum {
    EXACT_THREADS = 1024,
    EXACT_WARPS = EXACT_THREADS / 32,
    EXACT_TILE = 4,        /* vectors of four logits that a thread keeps in registers */
    EXACT_BUCKETS = 4096,  /* of 1/64 logit: a window of 64 logits, used as a ring */
    EXACT_BINS = 1024,     /* finer division of one bucket; one bin a thread */
    EXACT_LIST = 512,      /* tokens of the boundary's bucket that a block lists */
    EXACT_LISTED = 2048,   /* the same of all blocks of a row: two a thread */
    EXACT_FINAL = 64,      /* tokens compared one by one at the end */
    EXACT_SEGMENT = 65536, /* logits that 32-bit sums of 16-bit halves surely hold */
    EXACT_CACHE_MOST = EXACT_SEGMENT / 4 - EXACT_TILE * EXACT_THREADS, /* vectors */
};

struct exact_entry {
    float logit;
    int32_t token;
};

/* Fixed part of a block's shared memory. Blocks of a cluster read each other's. */
struct __align__(16) exact_shared {
    uint32_t low[EXACT_BUCKETS], high[EXACT_BUCKETS]; /* halves of sums of 32-bit weights */
    struct exact_entry list[EXACT_LIST];
    /* read by other blocks of the row */
    double slice_total;
    struct exact_sum total[2];
    int32_t tile_max, chunk_max; /* ordered keys */
    int32_t count, key_min, key_max;
    uint32_t ties;
    /* the block's own */
    double scan[EXACT_WARPS];
    int32_t warp_max[EXACT_WARPS];
    struct exact_sum warp_sum[EXACT_WARPS];
    struct exact_entry final_list[EXACT_FINAL];
    uint64_t bin_base;
    double found_above;
    int32_t found_bucket, bin_first, bin_last, final_count;
    int32_t verdict;
    struct exact_entry result; /* last kept token */
    uint32_t found_slot, found_before;
};

struct exact_args {
    float *logits;
    const float *p;
    uint32_t *escalated; /* [batch] */
    int64_t vocab, stride;
    float mask_value;
    int32_t ranks;  /* blocks a row: 1, or the cluster's size, a power of two up to 16 */
    int32_t chunk;  /* vectors a block */
    int32_t cached; /* most vectors that fit shared memory */
    int32_t wide;   /* a chunk passes EXACT_SEGMENT: a third limb of sums */
};

/* A block's part of a row. Vector v holds tokens first + 4v .. first + 4v + 3; the row's first and
 * last vector may be partial. */
struct exact_chunk {
    const struct exact_args *args; /* in the kernel: its parameter, read from constant memory */
    float *base;                   /* 16-byte aligned: token `first` */
    int32_t first;                 /* -3 or more */
    int32_t vectors, rank;
};

extern __shared__ uint4 exact_memory[]; /* struct exact_shared, third limbs, row cache */

static __device__ __forceinline__ uint32_t *exact_over() {
    return (uint32_t *)((struct exact_shared *)exact_memory + 1);
}

static __device__ __forceinline__ float4 *exact_cache(const struct exact_args *args) {
    return (float4 *)(exact_over() + (args->wide ? EXACT_BUCKETS : 0));
}

/* Vectors of the chunk that are kept in shared memory, behind those in registers. */
static __device__ __forceinline__ int32_t exact_cached(const struct exact_chunk *chunk) {
    return max(min(chunk->vectors - EXACT_TILE * EXACT_THREADS, chunk->args->cached), 0);
}

/* Orders as the logits do, -0 and +0 alike; its own inverse but for -0. */
static __device__ __forceinline__ int32_t exact_key(float logit) {
    const int32_t bits = __float_as_int(logit + 0.0f);
    return bits ^ (bits >> 31 & 0x7fffffff);
}

static __device__ __forceinline__ float exact_logit(int32_t key) {
    return __int_as_float(key ^ (key >> 31 & 0x7fffffff));
}

/* A barrier of all blocks of the row; orders shared memory among them. */
template <bool kCluster> static __device__ __forceinline__ void exact_barrier() {
#if __CUDA_ARCH__ >= 900
    if (kCluster) {
        cooperative_groups::this_cluster().sync();
        return;
    }
#endif
    __syncthreads();
}

template <bool kCluster, class T>
static __device__ __forceinline__ T *exact_peer(T *mine, int32_t rank) {
#if __CUDA_ARCH__ >= 900
    if (kCluster)
        return cooperative_groups::this_cluster().map_shared_rank(mine, rank);
#endif
    (void)rank;
    return mine;
}

static __device__ __forceinline__ int exact_lane() {
    return threadIdx.x & 31;
}

static __device__ __forceinline__ bool exact_whole(const struct exact_chunk *chunk, int32_t token) {
    return token >= 0 && token + 3 < (int32_t)chunk->args->vocab;
}

static __device__ __noinline__ float4 exact_load_partial(const float *at, int32_t token,
                                                         int32_t vocab) {
    float4 v = {-CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F};
    if (token >= 0 && token < vocab)
        v.x = at[0];
    if (token + 1 >= 0 && token + 1 < vocab)
        v.y = at[1];
    if (token + 2 >= 0 && token + 2 < vocab)
        v.z = at[2];
    if (token + 3 >= 0 && token + 3 < vocab)
        v.w = at[3];
    return v;
}

/* Vector v from global memory; -inf where there is no token. */
static __device__ __forceinline__ float4 exact_load(const struct exact_chunk *chunk, int32_t v) {
    if (v >= chunk->vectors)
        return make_float4(-CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F);
    const int32_t token = chunk->first + 4 * v;
    const float *const at = chunk->base + 4 * (int64_t)v;
    if (exact_whole(chunk, token))
        return *(const float4 *)at;
    return exact_load_partial(at, token, (int32_t)chunk->args->vocab);
}

/* Calls visit(vector, v) for each vector of the chunk, from registers, shared or global memory.
 * Whole warps take part: lanes past the end see -inf and v >= chunk->vectors. */
template <class Visit>
static __device__ __forceinline__ void exact_each(const struct exact_chunk *chunk,
                                                  const float4 (&tile)[EXACT_TILE], Visit visit) {
    const int32_t warp_first = threadIdx.x & ~31;
#pragma unroll
    for (int k = 0; k < EXACT_TILE; k++)
        if (k * EXACT_THREADS + warp_first < chunk->vectors)
            visit(tile[k], (int32_t)(k * EXACT_THREADS + threadIdx.x));
    const int32_t cached_end = EXACT_TILE * EXACT_THREADS + exact_cached(chunk);
#pragma unroll 2
    for (int32_t w = EXACT_TILE * EXACT_THREADS + warp_first; w < chunk->vectors;
         w += EXACT_THREADS) {
        const int32_t v = w + exact_lane();
        visit(v < cached_end ? exact_cache(chunk->args)[v - EXACT_TILE * EXACT_THREADS]
                             : exact_load(chunk, v),
              v);
    }
}

/* The same without the registers' copy, for functions that are rarely called: taking it along by
 * reference would force it into memory for all. */
template <class Visit>
static __device__ __forceinline__ void exact_each_again(const struct exact_chunk *chunk,
                                                        Visit visit) {
    const int32_t cached_end = EXACT_TILE * EXACT_THREADS + exact_cached(chunk);
    for (int32_t w = threadIdx.x & ~31; w < chunk->vectors; w += EXACT_THREADS) {
        const int32_t v = w + exact_lane();
        const bool cached = v >= EXACT_TILE * EXACT_THREADS && v < cached_end;
        visit(cached ? exact_cache(chunk->args)[v - EXACT_TILE * EXACT_THREADS]
                     : exact_load(chunk, v),
              v);
    }
}

/* Inclusive sum over the block's threads, in a fixed order. scan: [EXACT_WARPS] shared, free for
 * this call; a barrier of the block must lie between two calls. */
template <class T> static __device__ __forceinline__ T exact_scan(T value, T *scan) {
    const int lane = exact_lane(), warp = threadIdx.x / 32;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const T other = __shfl_up_sync(~0u, value, step);
        if (lane >= step)
            value += other;
    }
    if (lane == 31)
        scan[warp] = value;
    __syncthreads();
    T before = scan[lane];
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const T other = __shfl_up_sync(~0u, before, step);
        if (lane >= step)
            before += other;
    }
    before = __shfl_sync(~0u, before, warp ? warp - 1 : 0);
    return warp ? before + value : value;
}

#endif
