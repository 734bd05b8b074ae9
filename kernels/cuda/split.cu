/* stock, patched and patched_fine on the GPU, in the launch geometry of the original: 7 launches
 * (stats, 5 x step, mask), one block of 256 threads per (row, slice).
 *
 * The search is split_search.h's; here are the sweeps over the logits. Every block works the chain
 * of decisions out again from the partials in the workspace, so no launch depends on more than the
 * partials of those before it. exp, division and the order of sums are those that the original's
 * compiler emits (a power of two on the special-function unit, a division of 2 units in the last
 * place, one reduction over the block per pivot): masks agree with it the better for it. */
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
#ifndef SPLIT_EXPERIMENT_EXPF
#define SPLIT_EXPF(x) split_exp2_scaled(x)
#endif
#ifndef SPLIT_EXPERIMENT_DIVRN
#define SPLIT_DIV(a, b) split_quotient((a), (b))
#endif

#ifdef SPLIT_EXPERIMENT_FMA
#define SPLIT_MUL(a, b) ((a) * (b))
#endif
#include "kernels/split_search.h"

#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/variants.h"

namespace {

enum { THREADS = 256, WARPS = THREADS / LANES, REP = THREADS * VECTOR };

/* Mask rules; ties in a slice are numbered per tile by the first two. */
enum rule { RULE_STOCK, RULE_PATCHED, RULE_FINE };

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

/* ---- stats ---- */

__global__ void __launch_bounds__(THREADS) split_stats_kernel(struct split_launch launch) {
    enum { PER_THREAD = SPLIT_STATS_TILE / THREADS };
    if (launch.p[blockIdx.y] >= 1.0f)
        return;
    __shared__ struct reduction shared[2];
    const struct slice_view view = slice_of(launch);
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    float max = -INFINITY, sum = 0.0f, min = INFINITY;
    int32_t finite = 0;
    for (int64_t tile = 0; tile < view.length; tile += SPLIT_STATS_TILE) {
        float x[PER_THREAD];
#pragma unroll
        for (int i = 0; i < PER_THREAD; i += VECTOR)
            rows_load(view.begin, tile + i / VECTOR * REP + threadIdx.x * VECTOR, view.length,
                      view.aligned, x + i);
        float greatest = -INFINITY, least = INFINITY;
        int32_t count = 0;
#pragma unroll
        for (int i = 0; i < PER_THREAD; i++) {
            greatest = fmaxf(greatest, x[i]);
            least = x[i] > -INFINITY ? fminf(least, x[i]) : least;
            count += x[i] > -INFINITY;
        }
        greatest = warp_join<greatest_of>(greatest);
        least = warp_join<least_of>(least);
        count = warp_join<sum_of>(count);
        if (lane == 0) {
            shared[0].a[warp] = greatest;
            shared[0].b[warp] = least;
            shared[0].n[warp] = count;
        }
        __syncthreads();
        const float above = fmaxf(max, warps_join<greatest_of>(shared[0].a));
        min = fminf(min, warps_join<least_of>(shared[0].b));
        finite += warps_join<sum_of>(shared[0].n);
        float part = 0.0f;
#pragma unroll
        for (int i = 0; i < PER_THREAD; i++)
            part += x[i] > -INFINITY ? SPLIT_EXPF(x[i] - above) : 0.0f;
        part = warp_join<sum_of>(part);
        if (lane == 0)
            shared[1].a[warp] = part;
        __syncthreads();
        part = warps_join<sum_of>(shared[1].a);
        /* Nothing valid so far: the sum is 0 and stays so (exp(-inf + inf) is no number). */
        sum = max > -INFINITY ? sum * SPLIT_EXPF(max - above) + part : part;
        max = above;
    }
    if (threadIdx.x == 0) {
        struct split_stats *out = &launch.stats[(int64_t)blockIdx.y * launch.slices + blockIdx.x];
        out->max = max;
        out->sum = sum;
        out->min = min;
        out->finite = finite;
    }
}

/* ---- The chain, by the whole block ---- */

struct chain {
    struct split_stats stats[SPLIT_MAX_SLICES];
    struct split_step steps[SPLIT_MAX_SLICES]; /* of the round being merged */
    struct split_pivot merged[SPLIT_PIVOTS];
    struct split_row row;
    struct split_search search;
    float pivot[SPLIT_PIVOTS]; /* of the round to come */
};

/* Words to shared memory, by the whole block; both sides 4-byte aligned. */
__device__ __forceinline__ void block_copy(void *to, const void *from, int words) {
    for (int i = threadIdx.x; i < words; i += THREADS)
        static_cast<uint32_t *>(to)[i] = static_cast<const uint32_t *>(from)[i];
}

/* What split_search_chain does, a thread per pivot. Rounds after the end of the search are not
 * read: nobody wrote them. Ends with a barrier; chain.row and chain.search are then set. */
__device__ __forceinline__ void chain_run(struct chain *chain, const struct split_launch &launch,
                                          int rounds, float p) {
    const int64_t row = blockIdx.y;
    const int slices = launch.slices;
    block_copy(chain->stats, launch.stats + row * slices,
               slices * (int)(sizeof(struct split_stats) / 4));
    __syncthreads();
    if (threadIdx.x == 0) {
        chain->row = split_combine_row(chain->stats, slices);
        chain->search = split_search_begin(&chain->row);
    }
    __syncthreads();
    for (int round = 0; round < rounds && !chain->search.done; round++) {
        block_copy(chain->steps, launch.steps + (row * SPLIT_ROUNDS + round) * slices,
                   slices * (int)(sizeof(struct split_step) / 4));
        __syncthreads();
        if (threadIdx.x < LANES) {
            const int f = threadIdx.x;
            if (f < SPLIT_PIVOTS)
                chain->merged[f] =
                    split_merge_slices(chain->steps, slices, round, f,
                                       split_ladder(chain->search.lo, chain->search.hi, f));
            __syncwarp();
            if (f == 0)
                split_search_round(&chain->search, chain->merged, p);
        }
        __syncthreads();
    }
}

/* ---- step ---- */

__global__ void __launch_bounds__(THREADS)
    split_step_kernel(struct split_launch launch, int round) {
    enum { PER_THREAD = SPLIT_STEP_TILE / THREADS };
    __shared__ struct chain chain;
    __shared__ struct reduction shared[2];
    const float p = launch.p[blockIdx.y];
    if (p >= 1.0f)
        return;
    chain_run(&chain, launch, round, p);
    if (chain.search.done)
        return;
    if (threadIdx.x < SPLIT_PIVOTS)
        chain.pivot[threadIdx.x] = split_ladder(chain.search.lo, chain.search.hi, (int)threadIdx.x);
    __syncthreads();

    const struct slice_view view = slice_of(launch);
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const float max = chain.row.max, z = chain.row.z;
    float mass[SPLIT_PIVOTS], min[SPLIT_PIVOTS];
    int32_t count[SPLIT_PIVOTS];
#pragma unroll
    for (int f = 0; f < SPLIT_PIVOTS; f++)
        mass[f] = 0.0f, min[f] = 1.0f, count[f] = 0;
    for (int64_t tile = 0; tile < view.length; tile += SPLIT_STEP_TILE) {
        float prob[PER_THREAD];
#pragma unroll
        for (int i = 0; i < PER_THREAD; i += VECTOR)
            rows_load(view.begin, tile + i / VECTOR * REP + threadIdx.x * VECTOR, view.length,
                      view.aligned, prob + i);
#pragma unroll
        for (int i = 0; i < PER_THREAD; i++)
            prob[i] = split_probability(prob[i], max, z); /* -inf, also past the end: 0 */
#pragma unroll
        for (int f = 0; f < SPLIT_PIVOTS; f++) {
            const float pivot = chain.pivot[f];
            float part = 0.0f, least = 1.0f;
#pragma unroll
            for (int i = 0; i < PER_THREAD; i++) {
                part += prob[i] > pivot ? prob[i] : 0.0f;
                least = prob[i] > pivot ? fminf(least, prob[i]) : least;
            }
            part = warp_join<sum_of>(part);
            least = warp_join<least_of>(least);
            if (lane == 0) {
                shared[0].a[warp] = part;
                shared[0].b[warp] = least;
            }
            __syncthreads();
            mass[f] += warps_join<sum_of>(shared[0].a);
            least = warps_join<least_of>(shared[0].b);
            int32_t ties = 0;
#pragma unroll
            for (int i = 0; i < PER_THREAD; i++)
                ties += prob[i] > pivot && prob[i] - least < SPLIT_BAND;
            ties = warp_join<sum_of>(ties);
            if (lane == 0)
                shared[1].n[warp] = ties;
            __syncthreads();
            split_merge_tile(&min[f], &count[f], least, warps_join<sum_of>(shared[1].n));
        }
    }
    if (threadIdx.x == 0) {
        struct split_step *out =
            &launch
                 .steps[((int64_t)blockIdx.y * SPLIT_ROUNDS + round) * launch.slices + blockIdx.x];
#pragma unroll
        for (int f = 0; f < SPLIT_PIVOTS; f++) {
            out->mass[f] = mass[f];
            out->min[f] = min[f];
            out->count[f] = count[f];
        }
    }
}

/* ---- mask ---- */

/* Numbers the tied tokens of a tile: bit i of `tied` says whether this thread's token i is one;
 * rank receives each token's running number within the tile. Returns how many the tile holds. */
template <int REPS>
__device__ __forceinline__ int32_t tile_ranks(uint32_t tied, int32_t rank[REPS * VECTOR],
                                              int32_t (&before)[REPS * WARPS + 1]) {
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const uint32_t below = (1u << lane) - 1;
#pragma unroll
    for (int r = 0; r < REPS; r++) {
        const uint32_t mine = tied >> (r * VECTOR) & 15u;
        int32_t lower = 0, all = 0;
#pragma unroll
        for (int i = 0; i < VECTOR; i++) {
            const uint32_t votes = __ballot_sync(~0u, mine >> i & 1u);
            lower += __popc(votes & below);
            all += __popc(votes);
        }
#pragma unroll
        for (int i = 0; i < VECTOR; i++)
            rank[r * VECTOR + i] = lower + __popc(mine & ((2u << i) - 1));
        if (lane == 0)
            before[r * WARPS + warp] = all;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        int32_t running = 0;
        for (int i = 0; i < REPS * WARPS; i++) {
            const int32_t here = before[i];
            before[i] = running;
            running += here;
        }
        before[REPS * WARPS] = running;
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < REPS; r++)
#pragma unroll
        for (int i = 0; i < VECTOR; i++)
            rank[r * VECTOR + i] += before[r * WARPS + warp];
    return before[REPS * WARPS];
}

template <int RULE>
__global__ void __launch_bounds__(THREADS) split_mask_kernel(struct split_launch launch) {
    enum { PER_THREAD = SPLIT_MASK_TILE / THREADS, REPS = PER_THREAD / VECTOR };
    __shared__ struct chain chain;
    __shared__ struct split_cut cut;
    __shared__ int32_t first_number;
    __shared__ int32_t before[REPS * WARPS + 1];
    const float p = launch.p[blockIdx.y];
    if (p >= 1.0f)
        return;
    chain_run(&chain, launch, SPLIT_ROUNDS, p);
    if (threadIdx.x == 0) {
        cut = split_finish(&chain.row, &chain.search, p);
        first_number = 0;
        if (!cut.whole && cut.numkeep < cut.n) {
            const int64_t at = (int64_t)blockIdx.y * SPLIT_ROUNDS + cut.round;
            first_number =
                split_ties_before(&cut, launch.steps + at * launch.slices, (int)blockIdx.x);
        }
    }
    __syncthreads();
    if (cut.whole)
        return;

    const struct slice_view view = slice_of(launch);
    const float max = chain.row.max, z = chain.row.z;
    int32_t number = first_number;
    for (int64_t tile = 0; tile < view.length; tile += SPLIT_MASK_TILE) {
        float x[PER_THREAD];
#pragma unroll
        for (int i = 0; i < PER_THREAD; i += VECTOR)
            rows_load(view.begin, tile + i / VECTOR * REP + threadIdx.x * VECTOR, view.length,
                      view.aligned, x + i);
        uint32_t keep = 0, tied = 0; /* bit i: this thread's token i */
#pragma unroll
        for (int i = 0; i < PER_THREAD; i++) {
            const float prob = split_probability(x[i], max, z);
            const bool above =
                RULE == RULE_STOCK ? x[i] > cut.threshold : prob > cut.pivot || x[i] == max;
            keep |= (uint32_t)above << i;
            tied |= (uint32_t)(prob == cut.gmin) << i;
        }
        if (cut.numkeep < cut.n && __syncthreads_or(tied != 0)) {
            int32_t rank[PER_THREAD];
            const int32_t in_tile = tile_ranks<REPS>(tied, rank, before);
#pragma unroll
            for (int i = 0; i < PER_THREAD; i++)
                if ((tied >> i & 1u) && number + rank[i] > cut.numkeep)
                    keep &= ~(1u << i);
            /* The fault of the first two: every tile starts from the slice's first number. */
            if (RULE == RULE_FINE)
                number += in_tile;
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < PER_THREAD; i += VECTOR) {
#pragma unroll
            for (int k = i; k < i + VECTOR; k++)
                x[k] = keep >> k & 1u ? x[k] : launch.mask_value;
            if ((keep >> i & 15u) != 15u)
                rows_store(view.begin, tile + i / VECTOR * REP + threadIdx.x * VECTOR, view.length,
                           view.aligned, x + i);
        }
    }
}

/* ---- Launch ---- */

int split_slices_of(const struct topp_problem *problem, bool fine) {
    if (problem->slices > 0)
        return problem->slices;
    return split_slices(problem->batch, problem->vocab, problem->sm_count, fine);
}

size_t split_workspace(const struct topp_problem *problem, bool fine) {
    const size_t cells = (size_t)problem->batch * (size_t)split_slices_of(problem, fine);
    return cells * (sizeof(struct split_stats) + SPLIT_ROUNDS * sizeof(struct split_step));
}

template <int RULE>
int split_enqueue(const struct topp_problem *problem, void *workspace, size_t workspace_bytes,
                  void *stream_pointer) {
    const bool fine = RULE == RULE_FINE;
    const int slices = split_slices_of(problem, fine);
    if (problem->batch > SPLIT_MAX_BATCH || problem->slices < 0 || slices > SPLIT_MAX_SLICES)
        return KERNEL_UNSUPPORTED;
    if (workspace_bytes < split_workspace(problem, fine))
        return KERNEL_WORKSPACE;
    struct split_launch launch;
    launch.logits = problem->logits;
    launch.p = problem->p;
    launch.vocab = problem->vocab;
    launch.stride = problem->stride;
    launch.mask_value = problem->mask_value;
    launch.slices = slices;
    launch.stats = static_cast<struct split_stats *>(workspace);
    launch.steps = reinterpret_cast<struct split_step *>(launch.stats + problem->batch * slices);
    const dim3 grid((unsigned)slices, (unsigned)problem->batch);
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_pointer);
    split_stats_kernel<<<grid, THREADS, 0, stream>>>(launch);
    for (int round = 0; round < SPLIT_ROUNDS; round++)
        split_step_kernel<<<grid, THREADS, 0, stream>>>(launch, round);
    split_mask_kernel<RULE><<<grid, THREADS, 0, stream>>>(launch);
    return (int)cudaGetLastError();
}

size_t split_workspace_coarse(const struct topp_problem *problem) {
    return split_workspace(problem, false);
}

size_t split_workspace_fine(const struct topp_problem *problem) {
    return split_workspace(problem, true);
}

} // namespace

const struct topp_variant topp_cuda_stock = {
    "stock",
    "split pivot search, threshold in logit space, as shipped before the forced-token fix",
    KERNEL_DEVICE_CUDA,
    "bounded",
    SPLIT_MAX_BATCH,
    0,
    split_workspace_coarse,
    split_enqueue<RULE_STOCK>,
};

const struct topp_variant topp_cuda_patched = {
    "patched",
    "stock with the fix: threshold in probability space, the maximum always kept",
    KERNEL_DEVICE_CUDA,
    "conservative",
    SPLIT_MAX_BATCH,
    0,
    split_workspace_coarse,
    split_enqueue<RULE_PATCHED>,
};

const struct topp_variant topp_cuda_patched_fine = {
    "patched_fine",
    "patched in finer slices, ties numbered through the whole slice: what ships today",
    KERNEL_DEVICE_CUDA,
    "bounded",
    SPLIT_MAX_BATCH,
    0,
    split_workspace_fine,
    split_enqueue<RULE_FINE>,
};
