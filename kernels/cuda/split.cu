/* stock, patched and patched_fine on the GPU, in the launch geometry of the original: 7 launches
 * (stats, 5 x step, mask), one block of 256 threads per (row, slice).
 *
 * The search is split_search.h's; here are the sweeps over the logits. Every block works the chain
 * of decisions out again from the partials in the workspace, so no launch depends on more than the
 * partials of those before it. exp, division and the order of sums are those that the original's
 * compiler emits (a power of two on the special-function unit, a division of 2 units in the last
 * place, one reduction over the block per pivot): masks agree with it the better for it. */
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/split_block.cuh"
#include "kernels/cuda/variants.h"

namespace {

/* Mask rules; ties in a slice are numbered per tile by the first two. */
enum rule { RULE_STOCK, RULE_PATCHED, RULE_FINE };

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
        count = __reduce_add_sync(~0u, count);
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

/* ---- step ---- */

/* Shared memory of one pivot at a time. */
struct step_shared {
    float mass[WARPS], min[WARPS];
    int32_t count[WARPS];
};

/* Adds a tile's P above one pivot to the slice's partials. */
template <int PER_THREAD>
__device__ __forceinline__ void step_pivot(const float (&prob)[PER_THREAD], float pivot,
                                           struct step_shared *shared, float *mass, float *min,
                                           int32_t *count) {
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    float part = 0.0f, least = 1.0f;
#pragma unroll
    for (int i = 0; i < PER_THREAD; i++) {
        part += prob[i] > pivot ? prob[i] : 0.0f;
        least = prob[i] > pivot ? fminf(least, prob[i]) : least;
    }
    part = warp_join<sum_of>(part);
    least = warp_join<least_of>(least);
    if (lane == 0) {
        shared->mass[warp] = part;
        shared->min[warp] = least;
    }
    __syncthreads();
    *mass += warps_join<sum_of>(shared->mass);
    least = warps_join<least_of>(shared->min);
    int32_t ties = 0;
#pragma unroll
    for (int i = 0; i < PER_THREAD; i++)
        ties += prob[i] > pivot && prob[i] - least < SPLIT_BAND;
    ties = __reduce_add_sync(~0u, ties);
    if (lane == 0)
        shared->count[warp] = ties;
    __syncthreads();
    split_merge_tile(min, count, least, warps_join<sum_of>(shared->count));
}

__global__ void __launch_bounds__(THREADS)
    split_step_kernel(struct split_launch launch, int round) {
    enum { PER_THREAD = SPLIT_STEP_TILE / THREADS };
    __shared__ struct split_pivot merged[2][SPLIT_PIVOTS];
    __shared__ struct step_shared shared;
    const float p = launch.p[blockIdx.y];
    if (p >= 1.0f)
        return;
    const struct split_row row = chain_row(launch);
    const struct split_search search = chain_search(launch, row, round, p, merged);
    if (search.done)
        return;
    const struct slice_view view = slice_of(launch);
    float pivot[SPLIT_PIVOTS], mass[SPLIT_PIVOTS], min[SPLIT_PIVOTS];
    int32_t count[SPLIT_PIVOTS];
#pragma unroll
    for (int f = 0; f < SPLIT_PIVOTS; f++) {
        pivot[f] = split_ladder(search.lo, search.hi, f);
        mass[f] = 0.0f, min[f] = 1.0f, count[f] = 0;
    }
    for (int64_t tile = 0; tile < view.length; tile += SPLIT_STEP_TILE) {
        float prob[PER_THREAD];
#pragma unroll
        for (int i = 0; i < PER_THREAD; i += VECTOR)
            rows_load(view.begin, tile + i / VECTOR * REP + threadIdx.x * VECTOR, view.length,
                      view.aligned, prob + i);
#pragma unroll
        for (int i = 0; i < PER_THREAD; i++)
            prob[i] = split_probability(prob[i], row.max, row.z); /* past the end: 0 */
#pragma unroll
        for (int f = 0; f < SPLIT_PIVOTS; f++)
            step_pivot(prob, pivot[f], &shared, &mass[f], &min[f], &count[f]);
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
    __shared__ struct split_pivot merged[2][SPLIT_PIVOTS];
    __shared__ int32_t before[REPS * WARPS + 1];
    const float p = launch.p[blockIdx.y];
    if (p >= 1.0f)
        return;
    const struct split_row row = chain_row(launch);
    const struct split_search search = chain_search(launch, row, SPLIT_ROUNDS, p, merged);
    const struct split_cut cut = split_finish(&row, &search, p);
    if (cut.whole)
        return;
    int32_t first_number = 0;
    if (cut.numkeep < cut.n) {
        const struct split_step *const partials =
            launch.steps + ((int64_t)blockIdx.y * SPLIT_ROUNDS + cut.round) * launch.slices;
        const int lane = threadIdx.x % LANES;
        first_number =
            warp_join<sum_of>(split_ties_before(&cut, partials + lane, lane < (int)blockIdx.x));
    }

    const struct slice_view view = slice_of(launch);
    const float max = row.max, z = row.z;
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

/* Bytes of shared memory, unused, that keep more than two blocks of `step` off a multiprocessor.
 * That is what the original's times imply: cutting a batch of 64 into up to 16 times as many slices
 * hardly helps it. Three of ours would fit, and patched_fine would no longer cost what it does in
 * a server. */
cudaError_t step_reserve(int *bytes) {
    int device = 0, shared = 0;
    cudaError_t code = cudaGetDevice(&device);
    if (code == cudaSuccess)
        code = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    *bytes = (shared / 3 + 1023) / 1024 * 1024;
    if (code == cudaSuccess)
        code = cudaFuncSetAttribute(split_step_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    *bytes);
    return code;
}

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
    int reserve = 0;
    int code = (int)step_reserve(&reserve);
    if (!code)
        code = launch_kernel(split_stats_kernel, grid, THREADS, 0, stream, launch);
    for (int round = 0; round < SPLIT_ROUNDS && !code; round++)
        code =
            launch_kernel(split_step_kernel, grid, THREADS, (size_t)reserve, stream, launch, round);
    if (!code)
        code = launch_kernel(split_mask_kernel<RULE>, grid, THREADS, 0, stream, launch);
    return code;
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
    TOPP_MASKED_LOGITS,
    "bounded",
    SPLIT_MAX_BATCH,
    0,
    0,
    split_workspace_coarse,
    split_enqueue<RULE_STOCK>,
};

const struct topp_variant topp_cuda_patched = {
    "patched",
    "stock with the fix: threshold in probability space, the maximum always kept",
    KERNEL_DEVICE_CUDA,
    TOPP_MASKED_LOGITS,
    "conservative",
    SPLIT_MAX_BATCH,
    0,
    0,
    split_workspace_coarse,
    split_enqueue<RULE_PATCHED>,
};

const struct topp_variant topp_cuda_patched_fine = {
    "patched_fine",
    "patched in finer slices, ties numbered through the whole slice: what ships today",
    KERNEL_DEVICE_CUDA,
    TOPP_MASKED_LOGITS,
    "bounded",
    SPLIT_MAX_BATCH,
    0,
    0,
    split_workspace_fine,
    split_enqueue<RULE_FINE>,
};
