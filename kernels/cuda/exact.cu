/* `exact`: the oracle's nucleus, bit for bit, in one launch.
 *
 * A row belongs to one cluster of blocks (or to one block on GPUs without clusters), which keeps it
 * in registers and shared memory: read once, written once. Steps: buckets of 1/64 logit with
 * fixed-point masses, the boundary's bucket, its tokens, the boundary with a certificate, or, where
 * the certificate fails, the same boundary in binary64 exactly as the oracle computes it; then the
 * mask. Why it is exact: docs/exact.md. */
#include "kernels/cuda/exact_escalate.cuh"
#include "kernels/cuda/variants.h"

#include <cuda_runtime.h>

/* What becomes of a row; written to the workspace for whoever wants to count. */
enum exact_path { EXACT_FAST = 0, EXACT_ESCALATED = 1 };

static __device__ __forceinline__ void exact_open(const struct exact_args *args, int64_t row,
                                                  int32_t rank, struct exact_chunk *chunk) {
    float *const start = args->logits + row * args->stride;
    const int32_t shift = (int32_t)((uintptr_t)start / 4 % 4);
    const int64_t vectors = (args->vocab + shift + 3) / 4;
    const int64_t begin = (int64_t)rank * args->chunk;
    const int64_t left = vectors - begin;
    chunk->args = args;
    chunk->base = start - shift + 4 * begin;
    chunk->first = (int32_t)(4 * begin) - shift;
    chunk->vectors = left <= 0 ? 0 : left < args->chunk ? (int32_t)left : args->chunk;
    chunk->rank = rank;
}

/* Greatest logit of the block's first tile, and shared memory ready for sums. */
static __device__ __forceinline__ float exact_tile_max(struct exact_shared *s,
                                                       const float4 (&tile)[EXACT_TILE]) {
    float max = -CUDART_INF_F;
#pragma unroll
    for (int k = 0; k < EXACT_TILE; k++)
        max = fmaxf(max, fmaxf(fmaxf(tile[k].x, tile[k].y), fmaxf(tile[k].z, tile[k].w)));
    const int32_t warp_max = __reduce_max_sync(~0u, exact_key(max));
    if (exact_lane() == 0)
        s->warp_max[threadIdx.x / 32] = warp_max;
    if (threadIdx.x == 0) {
        exact_found_clear(s);
        s->chunk_max = INT32_MIN;
        s->found_bucket = -1;
    }
    __syncthreads();
    const int32_t tile_max = __reduce_max_sync(~0u, s->warp_max[exact_lane()]);
    if (threadIdx.x == 0)
        s->tile_max = tile_max;
    return exact_logit(tile_max);
}

static __device__ __forceinline__ float exact_floor(float max) {
    return fmaxf(max - EXACT_BELOW, -EXACT_GREATEST);
}

/* The row's greatest logit; *aliased when some block summed logits outside the ring's window. */
template <bool kCluster>
static __device__ __forceinline__ float
exact_row_max(struct exact_shared *s, const struct exact_chunk *chunk, bool *aliased) {
    const int lane = exact_lane();
    int32_t tile_max = INT32_MIN, chunk_max = INT32_MIN;
    if (lane < chunk->args->ranks) {
        tile_max = *exact_peer<kCluster>(&s->tile_max, lane);
        chunk_max = *exact_peer<kCluster>(&s->chunk_max, lane);
    }
    const float max = exact_logit(__reduce_max_sync(~0u, chunk_max));
    bool out = false;
    if (lane < chunk->args->ranks) {
        const float least = exact_floor(exact_logit(tile_max));
        out = exact_logit(chunk_max) >= least && !(max - least <= EXACT_WINDOW);
    }
    *aliased = __any_sync(~0u, out);
    return max;
}

/* Histogram of the row, again with a better floor if the first try left the ring's window. */
template <bool kCluster>
static __device__ __forceinline__ float exact_sum_buckets(struct exact_shared *s,
                                                          const struct exact_chunk *chunk,
                                                          const float4 (&tile)[EXACT_TILE]) {
    float least = exact_floor(exact_tile_max(s, tile)), max;
    for (int again = 0;; again++) {
        const float mine = exact_histogram(s, chunk, tile, least);
        const int32_t warp_max = __reduce_max_sync(~0u, exact_key(mine));
        if (exact_lane() == 0)
            atomicMax(&s->chunk_max, warp_max);
        exact_barrier<kCluster>();
        bool aliased;
        max = exact_row_max<kCluster>(s, chunk, &aliased);
        if (!aliased || again || !(fabsf(max) < EXACT_GREATEST - EXACT_WINDOW))
            return max;
        least = exact_floor(max);
        exact_clear(s, chunk->args->wide);
        __syncthreads();
    }
}

/* From a bracket to the boundary in s->result. Returns the number of tokens kept at its logit, 0
 * for "up to the token"; *sure false where only binary64 can tell. */
template <bool kCluster>
static __device__ __forceinline__ uint32_t exact_settle(struct exact_shared *s,
                                                        const struct exact_chunk *chunk,
                                                        const float4 (&tile)[EXACT_TILE],
                                                        struct exact_bracket *bracket, bool *sure) {
    const int most = 8; /* each round divides the bracket by up to 1,024 */
    *sure = false;
    for (int round = 0; round < most; round++) {
        if (round) {
            exact_barrier<kCluster>();
            if (threadIdx.x == 0)
                exact_found_clear(s);
            __syncthreads();
        }
        exact_gather(s, chunk, tile, bracket);
        exact_barrier<kCluster>();
        const struct exact_found found = exact_join<kCluster>(s, chunk);
        if (found.count <= 0)
            return 0;
        if (found.key_min == found.key_max && found.count > EXACT_FINAL) {
            const uint32_t kept = exact_settle_ties(&found, bracket);
            bracket->key_low = bracket->key_high = found.key_max;
            *sure = kept > 0;
            if (threadIdx.x == 0)
                s->result.logit = exact_logit(found.key_max);
            __syncthreads();
            return kept;
        }
        if (found.listed) {
            const enum exact_verdict verdict =
                exact_settle_list<kCluster>(s, chunk, &found, bracket);
            *sure = verdict == EXACT_DONE;
            if (verdict == EXACT_NARROWED)
                continue;
            if (verdict == EXACT_UNSURE && (s->bin_first < 0 || s->bin_last < 0))
                bracket->key_low = INT32_MIN, bracket->key_high = INT32_MAX;
            return 0;
        }
        /* Copies: what a called function gets by address would live in memory for all. */
        const struct exact_chunk chunk_copy = *chunk;
        const struct exact_found found_copy = found;
        struct exact_bracket narrower = *bracket;
        const bool inside = exact_settle_crowd<kCluster>(s, &chunk_copy, &found_copy, &narrower);
        *bracket = narrower;
        if (!inside) {
            bracket->key_low = INT32_MIN, bracket->key_high = INT32_MAX;
            return 0;
        }
    }
    return 0;
}

static __device__ __forceinline__ void exact_write(const struct exact_chunk *chunk,
                                                   const float4 (&tile)[EXACT_TILE], float logit,
                                                   int32_t token, float mask) {
    exact_each(chunk, tile, [&](float4 v, int32_t i) {
        const int32_t first = chunk->first + 4 * i;
        const float x[4] = {v.x, v.y, v.z, v.w};
        float out[4];
        bool changed = false;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const bool kept = x[j] > logit || (x[j] == logit && first + j <= token);
            out[j] = kept ? x[j] : mask;
            changed |= __float_as_int(out[j]) != __float_as_int(x[j]);
        }
        if (!changed || i >= chunk->vectors)
            return;
        float *const at = chunk->base + 4 * (int64_t)i;
        if (exact_whole(chunk, first)) {
            *(float4 *)at = make_float4(out[0], out[1], out[2], out[3]);
            return;
        }
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (first + j >= 0 && first + j < chunk->args->vocab)
                at[j] = out[j];
    });
}

/* The boundary of the row, into s->result. False: leave the row as it is. Each block may see its
 * own token: what it keeps of ties. */
template <bool kCluster>
static __device__ __forceinline__ bool
exact_boundary(struct exact_shared *s, const struct exact_chunk *chunk,
               const float4 (&tile)[EXACT_TILE], float p, uint32_t *escalated) {
    const float max = exact_sum_buckets<kCluster>(s, chunk, tile);
    if (!(max > -CUDART_INF_F))
        return false;
    struct exact_bracket bracket = {INT32_MIN, INT32_MAX, 0.0, 0.0};
    bool sure = false;
    uint32_t ties = 0;
    if (fabsf(max) < EXACT_GREATEST - EXACT_WINDOW) {
        const uint32_t top_bits = exact_weigh(max).bits;
        exact_slice<kCluster>(s, chunk, top_bits);
        exact_barrier<kCluster>();
        const double target = exact_find<kCluster>(s, chunk, top_bits, p);
        __syncthreads();
        if (s->found_bucket >= 0) {
            const double units = 1.0 / exact_scale(s->found_bucket);
            const double error =
                EXACT_WEIGHT_ERROR + chunk->args->vocab * EXACT_BELOW_WEIGHT + 1e-13;
            bracket.target = (target - s->found_above) * units;
            bracket.margin = 2.1 * error * target * units;
            exact_bucket_keys(top_bits - s->found_bucket, &bracket);
            ties = exact_settle<kCluster>(s, chunk, tile, &bracket, &sure);
        }
    }
    if (!sure) {
        const struct exact_chunk chunk_copy = *chunk;
        const struct exact_solver solver = {s, &chunk_copy, max, p};
        exact_barrier<kCluster>();
        ties = exact_escalate<kCluster>(&solver, bracket);
    }
    *escalated = sure ? EXACT_FAST : EXACT_ESCALATED;
    if (ties) {
        const struct exact_chunk chunk_copy = *chunk;
        const int32_t token = exact_tie<kCluster>(s, &chunk_copy, s->result.logit, ties);
        if (threadIdx.x == 0)
            s->result.token = token;
        __syncthreads();
    }
    return true;
}

template <bool kCluster>
static __global__ void __launch_bounds__(EXACT_THREADS, 1)
    exact_kernel(const __grid_constant__ struct exact_args args) {
    struct exact_shared *const s = (struct exact_shared *)exact_memory;
    const int64_t row = blockIdx.x / args.ranks;
    const int32_t rank = blockIdx.x % args.ranks;
    const float p = args.p[row];
    const bool first = rank == 0 && threadIdx.x == 0;
    if (!(p < 1.0f)) {
        if (first)
            args.escalated[row] = EXACT_FAST;
        return;
    }
    struct exact_chunk chunk;
    exact_open(&args, row, rank, &chunk);
    exact_fetch(&chunk);
    float4 tile[EXACT_TILE];
#pragma unroll
    for (int k = 0; k < EXACT_TILE; k++)
        tile[k] = exact_load(&chunk, k * EXACT_THREADS + threadIdx.x);
    exact_clear(s, args.wide);
    uint32_t escalated = EXACT_FAST;
    const bool masked = exact_boundary<kCluster>(s, &chunk, tile, p, &escalated);
    /* Others may still read this block's shared memory: it must not leave before them. */
#if __CUDA_ARCH__ >= 900
    if (kCluster)
        asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
#endif
    if (masked)
        exact_write(&chunk, tile, s->result.logit, s->result.token, args.mask_value);
    if (first)
        args.escalated[row] = escalated;
#if __CUDA_ARCH__ >= 900
    if (kCluster)
        asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
}

enum { EXACT_DEVICES = 64, EXACT_GREATEST_CLUSTER = 16 };

/* What a device offers, asked once. */
struct exact_device {
    int ready;
    int processors, shared_bytes;
    int clusters[EXACT_GREATEST_CLUSTER + 1]; /* at a time, by size; 0: size not possible */
};

static cudaLaunchConfig_t exact_config(int64_t blocks, size_t shared, int ranks,
                                       cudaLaunchAttribute *attribute, cudaStream_t stream) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3(EXACT_THREADS);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    attribute->id = cudaLaunchAttributeClusterDimension;
    attribute->val.clusterDim.x = (unsigned)ranks;
    attribute->val.clusterDim.y = attribute->val.clusterDim.z = 1;
    config.attrs = attribute;
    config.numAttrs = ranks > 1 ? 1 : 0;
    return config;
}

static cudaError_t exact_ask(int index, struct exact_device *device) {
    int major = 0;
    cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index);
    if (!error)
        error = cudaDeviceGetAttribute(&device->processors, cudaDevAttrMultiProcessorCount, index);
    if (!error)
        error = cudaDeviceGetAttribute(&device->shared_bytes,
                                       cudaDevAttrMaxSharedMemoryPerBlockOptin, index);
    if (!error)
        error = cudaFuncSetAttribute(
            exact_kernel<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, device->shared_bytes);
    if (error || major < 9)
        return error;
    error = cudaFuncSetAttribute(exact_kernel<true>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 device->shared_bytes);
    if (!error)
        error = cudaFuncSetAttribute(exact_kernel<true>,
                                     cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    for (int ranks = 2; !error && ranks <= EXACT_GREATEST_CLUSTER; ranks *= 2) {
        cudaLaunchAttribute attribute;
        const cudaLaunchConfig_t config =
            exact_config(ranks, (size_t)device->shared_bytes, ranks, &attribute, NULL);
        if (cudaOccupancyMaxActiveClusters(&device->clusters[ranks], exact_kernel<true>, &config)) {
            device->clusters[ranks] = 0;
            (void)cudaGetLastError();
        }
    }
    return error;
}

static cudaError_t exact_current_device(const struct exact_device **found) {
    static struct exact_device devices[EXACT_DEVICES];
    int index = 0;
    cudaError_t error = cudaGetDevice(&index);
    if (error)
        return error;
    if (index >= EXACT_DEVICES)
        return cudaErrorInvalidDevice;
    struct exact_device *const device = &devices[index];
    if (!__atomic_load_n(&device->ready, __ATOMIC_ACQUIRE)) {
        struct exact_device fresh = {};
        error = exact_ask(index, &fresh);
        if (error)
            return error;
        /* Two threads that come here at once write the same values. */
        device->processors = fresh.processors;
        device->shared_bytes = fresh.shared_bytes;
        for (int i = 0; i <= EXACT_GREATEST_CLUSTER; i++)
            device->clusters[i] = fresh.clusters[i];
        __atomic_store_n(&device->ready, 1, __ATOMIC_RELEASE);
    }
    *found = device;
    return cudaSuccess;
}

/* Blocks a row: as many as keep all rows running at once, none with too little to do; and enough to
 * keep most of a row on chip. */
static int exact_ranks(const struct exact_device *device, const struct topp_problem *problem) {
    const int64_t least_work = 2048, most_work = 80000; /* logits a block */
    int ranks = 1;
    while (ranks < EXACT_GREATEST_CLUSTER) {
        const int more = ranks * 2;
        const bool room =
            device->clusters[more] >= problem->batch && problem->vocab / more >= least_work;
        const bool need = problem->vocab / ranks > most_work && device->clusters[more] > 0;
        if (!room && !need)
            break;
        ranks = more;
    }
    return ranks;
}

static size_t exact_workspace_size(const struct topp_problem *problem) {
    return (size_t)problem->batch * sizeof(uint32_t);
}

static int exact_start(const struct topp_problem *problem, void *workspace, size_t workspace_bytes,
                       void *stream, bool portable) {
    if (problem->vocab > INT32_MAX - 64 * 1024)
        return KERNEL_UNSUPPORTED;
    if (workspace_bytes < exact_workspace_size(problem))
        return KERNEL_WORKSPACE;
    const struct exact_device *device;
    cudaError_t error = exact_current_device(&device);
    if (error)
        return (int)error;
    struct exact_args args = {};
    args.logits = problem->logits;
    args.p = problem->p;
    args.escalated = (uint32_t *)workspace;
    args.vocab = problem->vocab;
    args.stride = problem->stride;
    args.mask_value = problem->mask_value;
    args.ranks = portable ? 1 : exact_ranks(device, problem);
    if (problem->batch > INT32_MAX / args.ranks)
        return KERNEL_UNSUPPORTED;
    const bool aligned =
        (uintptr_t)problem->logits % 16 == 0 && (problem->stride % 4 == 0 || problem->batch == 1);
    const int64_t vectors = (problem->vocab + (aligned ? 0 : 3) + 3) / 4;
    args.chunk = (int32_t)((vectors + args.ranks - 1) / args.ranks);
    args.wide = args.chunk > EXACT_SEGMENT / 4;
    const size_t fixed =
        sizeof(struct exact_shared) + (args.wide ? EXACT_BUCKETS * sizeof(uint32_t) : 0);
    const int64_t room = (int64_t)(((size_t)device->shared_bytes - fixed) / sizeof(float4));
    const int64_t past = args.chunk - EXACT_TILE * EXACT_THREADS;
    int64_t cached = past < 0 ? 0 : past < room ? past : room;
    if (cached > EXACT_CACHE_MOST)
        cached = EXACT_CACHE_MOST;
    args.cached = (int32_t)cached;
    cudaLaunchAttribute attribute;
    const cudaLaunchConfig_t config =
        exact_config(problem->batch * args.ranks, fixed + (size_t)cached * sizeof(float4),
                     args.ranks, &attribute, (cudaStream_t)stream);
    error = args.ranks > 1 ? cudaLaunchKernelEx(&config, exact_kernel<true>, args)
                           : cudaLaunchKernelEx(&config, exact_kernel<false>, args);
    return (int)error;
}

static int exact_launch(const struct topp_problem *problem, void *workspace, size_t workspace_bytes,
                        void *stream) {
    return exact_start(problem, workspace, workspace_bytes, stream, false);
}

static int exact_portable_launch(const struct topp_problem *problem, void *workspace,
                                 size_t workspace_bytes, void *stream) {
    return exact_start(problem, workspace, workspace_bytes, stream, true);
}

const struct topp_variant topp_cuda_exact = {
    "exact",
    "the binary64 nucleus, certified or escalated; a cluster of blocks keeps a row on chip",
    KERNEL_DEVICE_CUDA,
    "exact",
    0,
    0,
    exact_workspace_size,
    exact_launch,
};
const struct topp_variant topp_cuda_exact_portable = {
    "exact_portable",
    "exact without clusters, one block a row: what GPUs before Hopper run",
    KERNEL_DEVICE_CUDA,
    "exact",
    0,
    0,
    exact_workspace_size,
    exact_portable_launch,
};
