/* One row of `exact` as its blocks see it: shared memory and the block's part of the row. */
#ifndef TOPP_KERNELS_CUDA_EXACT_ROW_CUH
#define TOPP_KERNELS_CUDA_EXACT_ROW_CUH

#include "kernels/cuda/exact_args.h"
#include "kernels/cuda/exact_exp.cuh"
#include "kernels/cuda/ptx.cuh"

#include <math_constants.h>
#include <stdint.h>

#ifndef EXACT_THREADS
#error "threads a block: set by the file that includes this"
#endif

enum {
    EXACT_WARPS = EXACT_THREADS / 32,
    EXACT_BUCKETS = 4096,       /* of 1/64 logit: a window of 64 logits, used as a ring */
    EXACT_BINS_COARSE = 64,     /* of a logit, 64 buckets each: the same window */
    EXACT_BINS = EXACT_THREADS, /* finer division of one bucket; one bin a thread */
    EXACT_LIST_MOST = 1022,     /* the same of one block, at most */
    EXACT_SHORT_LIST = 128,     /* a block's list in binary64 */
    EXACT_FINAL = 64,           /* tokens compared one by one at the end */
    EXACT_NARROW_KEYS = 8,      /* of a row that is solved by counts of its keys */
};

struct exact_entry {
    float logit;
    int32_t token;
};

/* What blocks of a row send each other, in this order. Sizes are multiples of 16 bytes. */
struct exact_coarse {
    double mass[EXACT_BINS_COARSE]; /* by logit modulo 64, in units of 2^-31 e^(the logit) */
    int32_t early_max, chunk_max;   /* ordered keys; early: of the part that came first */
    int32_t narrow_min, narrow_max; /* extreme keys of a chunk that is counted by key */
};

struct exact_fine {
    uint64_t fixed[EXACT_BUCKETS / EXACT_BINS_COARSE];
};

/* Tokens of the boundary's bucket; entries follow while they fit. */
struct exact_list {
    int32_t count, key_min, key_max, pad;
};

/* Fixed part of a block's shared memory. */
struct __align__(16) exact_shared {
    /* Halves of sums of 32-bit weights, and a place a lane for what does not count. Once they are
     * read out: low holds the lists that came in, high the bins and, behind them, the block's own
     * list. */
    uint32_t low[EXACT_BUCKETS + 32], high[EXACT_BUCKETS + 32];
    struct exact_coarse coarse;
    struct exact_fine fine;
    uint64_t barrier[2]; /* mbarriers, by turns: one arrival of each block of the row. By turns,
                            since a block that is ahead may arrive at the next before all have
                            arrived here at this one. */
    uint32_t phase;      /* times that all have met */
    int32_t warp_max[EXACT_WARPS], warp_min[EXACT_WARPS];
    uint32_t spans[EXACT_WARPS]; /* of exact_tie_count */
    double scan[EXACT_WARPS];
    struct exact_sum warp_sum[EXACT_WARPS];
    struct exact_entry final_list[EXACT_FINAL];
    uint64_t bin_base;
    double target, found_above, found_unit; /* of exact_locate */
    uint32_t found_bits;
    int32_t found, bin_first, bin_last, final_count, verdict;
    float max;
    struct exact_entry result;      /* last kept token */
    int32_t narrow_low;             /* least key of the window that a block counted in */
    int32_t ties_before, ties_here; /* of a narrow row's last value: in blocks before, in this */
    /* read by other blocks of the row, on the slow paths only */
    struct exact_sum total[2];
    uint32_t ties;
    int32_t count, key_min, key_max;
    struct exact_entry list[EXACT_SHORT_LIST]; /* or what a block counts by key */
};

/* A block's part of a row. Vector v holds tokens first + 4v .. first + 4v + 3; the row's first and
 * last vector may be partial. */
struct exact_chunk {
    const struct exact_args *args; /* in the kernel: its parameter, read from constant memory */
    float *base;                   /* 16-byte aligned: token `first` */
    int32_t first;                 /* -3 or more */
    int32_t vectors, rank;
};

/* The block's shared memory: the fixed part, and behind it what came in from each block, third
 * limbs, the row. */
static __device__ __forceinline__ struct exact_shared *exact_memory() {
    return (struct exact_shared *)ptx_dynamic_shared();
}

static __device__ __forceinline__ struct exact_coarse *exact_coarse_in() {
    return (struct exact_coarse *)(exact_memory() + 1);
}

static __device__ __forceinline__ struct exact_fine *exact_fine_in(int32_t ranks) {
    return (struct exact_fine *)(exact_coarse_in() + ranks);
}

/* A block's message: what it sent, or the block's own, which it does not send itself. */
template <bool kCluster>
static __device__ __forceinline__ const struct exact_coarse *
exact_coarse_of(const struct exact_shared *s, int32_t own, int32_t rank) {
    return kCluster && rank != own ? exact_coarse_in() + rank : &s->coarse;
}

template <bool kCluster>
static __device__ __forceinline__ const struct exact_fine *
exact_fine_of(const struct exact_shared *s, int32_t own, int32_t rank, int32_t ranks) {
    return kCluster && rank != own ? exact_fine_in(ranks) + rank : &s->fine;
}

static __device__ __forceinline__ uint32_t *exact_over(int32_t ranks) {
    return (uint32_t *)(exact_fine_in(ranks) + ranks);
}

static __device__ __forceinline__ float4 *exact_cache(const struct exact_args *args) {
    return (float4 *)(exact_over(args->ranks) + (args->wide ? EXACT_BUCKETS : 0));
}

static __device__ __forceinline__ struct exact_list *exact_list_out(struct exact_shared *s) {
    return (struct exact_list *)(s->high + 2 * EXACT_BINS);
}

/* A rank's list as it came in; without clusters the block's own is it. */
template <bool kCluster>
static __device__ __forceinline__ struct exact_list *
exact_list_in(struct exact_shared *s, const struct exact_args *args, int32_t rank) {
    if (!kCluster)
        return exact_list_out(s);
    return (struct exact_list *)((struct exact_entry *)s->low + rank * args->listed);
}

/* Tokens that fit a list: its header takes the room of two. */
static __device__ __forceinline__ int32_t exact_list_room(const struct exact_args *args) {
    return min(args->listed - 2, (int32_t)EXACT_LIST_MOST);
}

/* Vectors of the chunk that are kept in shared memory. */
static __device__ __forceinline__ int32_t exact_cached(const struct exact_chunk *chunk) {
    return min(chunk->vectors, chunk->args->cached);
}

/* Orders as the logits do, -0 and +0 alike; its own inverse but for -0. */
static __device__ __forceinline__ int32_t exact_key(float logit) {
    const int32_t bits = __float_as_int(logit + 0.0f);
    return bits ^ (bits >> 31 & 0x7fffffff);
}

static __device__ __forceinline__ float exact_logit(int32_t key) {
    return __int_as_float(key ^ (key >> 31 & 0x7fffffff));
}

static __device__ __forceinline__ int exact_lane() {
    return threadIdx.x & 31;
}

static __device__ __forceinline__ bool exact_whole(const struct exact_chunk *chunk, int32_t token) {
    return token >= 0 && token + 3 < (int32_t)chunk->args->vocab;
}

/* The row's first or last vector; -inf where there is no token. */
static __device__ __noinline__ float4 exact_load_partial(const float *at, int32_t token,
                                                         int32_t vocab) {
    float4 x = {-CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F};
    if (token >= 0)
        x.x = at[0];
    if (token + 1 >= 0 && token + 1 < vocab)
        x.y = at[1];
    if (token + 2 >= 0 && token + 2 < vocab)
        x.z = at[2];
    if (token + 3 < vocab)
        x.w = at[3];
    return x;
}

/* Vector v from global memory; -inf where there is no token. */
static __device__ __forceinline__ float4 exact_load(const struct exact_chunk *chunk, int32_t v) {
    const int32_t token = chunk->first + 4 * v;
    const float *const at = chunk->base + 4 * (int64_t)v;
    if (v >= chunk->vectors)
        return make_float4(-CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F);
    if (exact_whole(chunk, token))
        return *(const float4 *)at;
    return exact_load_partial(at, token, (int32_t)chunk->args->vocab);
}

/* Vectors a thread takes at a time, EXACT_THREADS apart; batches on their way at a time. */
enum { EXACT_BATCH = 4, EXACT_STEP = EXACT_BATCH * EXACT_THREADS, EXACT_AHEAD = 2 };
static_assert((int)EXACT_QUICK_VECTORS <= (int)EXACT_BATCH * (int)EXACT_AHEAD,
              "exact_fetch_first brings all that the short way reads");

/* Starts the thread's batch from vector v on its way to shared memory; itself will read it. */
static __device__ __forceinline__ void exact_fetch(const struct exact_chunk *chunk, int32_t v) {
    const int32_t end = exact_cached(chunk);
    float4 *const cache = exact_cache(chunk->args);
#pragma unroll
    for (int k = 0; k < EXACT_BATCH; k++, v += EXACT_THREADS) {
        if (v >= end)
            break;
        if (exact_whole(chunk, chunk->first + 4 * v))
            ptx_copy_async(cache + v, chunk->base + 4 * (int64_t)v);
        else
            cache[v] = exact_load(chunk, v);
    }
    ptx_copy_commit();
}

/* To be called once, before the first exact_each. */
static __device__ __forceinline__ void exact_fetch_first(const struct exact_chunk *chunk) {
#pragma unroll 1
    for (int b = 0; b < EXACT_AHEAD; b++)
        exact_fetch(chunk, b * EXACT_STEP + threadIdx.x);
}

/* Calls visit(vectors, v) for each batch of the chunk: vectors v + k * EXACT_THREADS, from shared
 * or global memory. The whole block takes part; past the end there are -inf. kFetch: the first
 * pass, which brings the chunk to shared memory. */
template <bool kFetch, class Visit>
static __device__ __forceinline__ void exact_each(const struct exact_chunk *chunk, Visit visit) {
    const int32_t end = exact_cached(chunk);
    const float4 *const cache = exact_cache(chunk->args);
#pragma unroll 1
    for (int32_t first = 0; first < chunk->vectors; first += EXACT_STEP) {
        const int32_t v = first + threadIdx.x;
        float4 x[EXACT_BATCH];
        if (kFetch) {
            if (first + EXACT_AHEAD * EXACT_STEP < end)
                exact_fetch(chunk, v + EXACT_AHEAD * EXACT_STEP);
            else
                ptx_copy_commit();
            ptx_copy_wait<EXACT_AHEAD>();
        }
        if (first + EXACT_STEP <= end) {
#pragma unroll
            for (int k = 0; k < EXACT_BATCH; k++)
                x[k] = cache[v + k * EXACT_THREADS];
        } else {
#pragma unroll
            for (int k = 0; k < EXACT_BATCH; k++) {
                const int32_t at = v + k * EXACT_THREADS;
                x[k] = at < end ? cache[at] : exact_load(chunk, at);
            }
        }
        visit(x, v);
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
    T before = lane < EXACT_WARPS ? scan[lane] : 0;
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
