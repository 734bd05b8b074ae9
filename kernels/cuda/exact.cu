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

/* Greatest logit of what came first, for the whole block; and shared memory ready for sums. */
static __device__ __forceinline__ float exact_prepare(struct exact_shared *s,
                                                      const struct exact_chunk *chunk) {
    const int32_t warp_max = __reduce_max_sync(~0u, exact_key(exact_max4(exact_first(chunk))));
    if (exact_lane() == 0)
        s->warp_max[threadIdx.x / 32] = warp_max;
    __syncthreads();
    const int32_t early_max = __reduce_max_sync(~0u, s->warp_max[exact_lane() % EXACT_WARPS]);
    if (threadIdx.x == 0)
        s->coarse.early_max = early_max;
    return exact_logit(early_max);
}

/* Sums the row and finds the boundary's bucket, in a second try with a better floor if the first
 * left the ring's window. Everything ends up in s->found and its neighbours. */
template <bool kCluster>
static __device__ __forceinline__ void exact_find(struct exact_shared *s,
                                                  const struct exact_chunk *chunk, float p) {
    const double scale = exact_e_place[threadIdx.x % EXACT_SHARERS];
    const double scale_coarse = exact_e_coarse[exact_lane()];
    const double scale_fine = exact_e_fine[exact_lane()];
    float least = exact_floor(exact_prepare(s, chunk));
#pragma unroll 1
    for (int again = 0;; again++) {
        const float mine = exact_histogram(s, chunk, least);
        const int32_t warp_max = __reduce_max_sync(~0u, exact_key(mine));
        if (exact_lane() == 0)
            atomicMax(&s->coarse.chunk_max, warp_max);
        __syncthreads();
        exact_coarsen(s, chunk, scale);
        exact_publish();
        if (!again)
            exact_meet<kCluster>();
        __syncthreads();
        if (threadIdx.x < 32)
            exact_locate<kCluster>(s, chunk, p, scale_coarse, scale_fine);
        __syncthreads();
        if (s->found != EXACT_ALIASED || again)
            return;
        least = exact_floor(s->max);
        exact_barrier<kCluster>(s, chunk->args->ranks);
        exact_clear(s, chunk->args);
        if (threadIdx.x == 0) /* what floor the sums have now */
            s->coarse.early_max = exact_key(s->max);
        __syncthreads();
    }
}

/* From a bracket to the boundary in s->result. Returns the number of tokens kept at its logit, 0
 * for "up to the token"; *sure false where only binary64 can tell. */
template <bool kCluster>
static __device__ __forceinline__ uint32_t exact_settle(struct exact_shared *s,
                                                        const struct exact_chunk *chunk,
                                                        struct exact_bracket *bracket, bool *sure) {
    const int most = 8; /* each round divides the bracket by up to 1,024 */
    *sure = false;
    if (threadIdx.x == 0)
        exact_list_clear(s);
    __syncthreads();
#pragma unroll 1
    for (int round = 0; round < most; round++) {
        if (round) {
            exact_barrier<kCluster>(s, chunk->args->ranks);
            if (threadIdx.x == 0)
                exact_list_clear(s);
            __syncthreads();
        }
        exact_gather(s, chunk, bracket);
        exact_share<kCluster>(s, chunk);
        const struct exact_found found = exact_join<kCluster>(s, chunk);
        if (found.count <= 0)
            return 0;
        if (found.key_min == found.key_max && found.count > EXACT_FINAL) {
            const uint32_t kept = exact_settle_ties(found, *bracket);
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

/* Writes the row's first or last vector, which other rows or the padding share. */
static __device__ __noinline__ void exact_store_partial(float *at, int32_t token, int32_t vocab,
                                                        float4 v) {
    if (token >= 0)
        at[0] = v.x;
    if (token + 1 >= 0 && token + 1 < vocab)
        at[1] = v.y;
    if (token + 2 >= 0 && token + 2 < vocab)
        at[2] = v.z;
    if (token + 3 < vocab)
        at[3] = v.w;
}

/* Masks all but what is above the boundary, or equal and up to its token. */
static __device__ __forceinline__ void exact_write(const struct exact_chunk *chunk, float logit,
                                                   int32_t token, float mask) {
    exact_each<false>(chunk, [&](float4 v, int32_t i) {
        const int32_t first = chunk->first + 4 * i;
        const float x[4] = {v.x, v.y, v.z, v.w};
        float out[4];
        bool equal = false;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            out[j] = x[j] > logit ? x[j] : mask;
            equal |= x[j] == logit;
        }
        if (equal) {
#pragma unroll
            for (int j = 0; j < 4; j++)
                out[j] = x[j] == logit && first + j <= token ? x[j] : out[j];
        }
        uint32_t changed = 0;
#pragma unroll
        for (int j = 0; j < 4; j++)
            changed |= __float_as_uint(out[j]) ^ __float_as_uint(x[j]);
        if (!changed || i >= chunk->vectors)
            return;
        float *const at = chunk->base + 4 * (int64_t)i;
        if (exact_whole(chunk, first)) /* left to the compiler, it becomes four stores */
            asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(at), "f"(out[0]),
                         "f"(out[1]), "f"(out[2]), "f"(out[3])
                         : "memory");
        else
            exact_store_partial(at, first, (int32_t)chunk->args->vocab,
                                make_float4(out[0], out[1], out[2], out[3]));
    });
}

/* The boundary of the row, into s->result. False: leave the row as it is. Each block may see its
 * own token: what it keeps of ties. */
template <bool kCluster>
static __device__ __forceinline__ bool exact_boundary(struct exact_shared *s,
                                                      const struct exact_chunk *chunk, float p,
                                                      uint32_t *escalated) {
    exact_find<kCluster>(s, chunk, p);
    if (s->found == EXACT_EMPTY)
        return false;
    struct exact_bracket bracket = {INT32_MIN, INT32_MAX, 0.0, 0.0, 0.0};
    bool sure = false;
    uint32_t ties = 0;
    if (s->found == EXACT_FOUND) {
        const double error = EXACT_WEIGHT_ERROR + chunk->args->vocab * EXACT_BELOW_WEIGHT + 1e-13;
        bracket.target = s->target - s->found_above;
        bracket.margin = 2.1 * error * s->target;
        bracket.unit = s->found_unit;
        exact_bucket_keys(s->found_bits, &bracket);
        ties = exact_settle<kCluster>(s, chunk, &bracket, &sure);
    }
    if (!sure) {
        const struct exact_chunk chunk_copy = *chunk;
        const struct exact_solver solver = {s, &chunk_copy, s->max, p};
        exact_barrier<kCluster>(s, chunk->args->ranks);
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
    const int64_t row = blockIdx.x >> args.rank_bits;
    const int32_t rank = blockIdx.x & (args.ranks - 1);
    const float p = args.p[row];
    const bool first = rank == 0 && threadIdx.x == 0;
    if (!(p < 1.0f)) { /* the whole cluster leaves */
        if (first)
            args.escalated[row] = EXACT_FAST;
        return;
    }
    struct exact_chunk chunk;
    exact_open(&args, row, rank, &chunk);
    exact_fetch_first(&chunk);
    exact_barrier_init<kCluster>(s, args.ranks);
    exact_clear(s, &args);
    if (threadIdx.x == 0)
        s->coarse.chunk_max = INT32_MIN;
    uint32_t escalated = EXACT_FAST;
    const bool masked = exact_boundary<kCluster>(s, &chunk, p, &escalated);
    /* Others may still read this block's shared memory: it must not leave before them. */
    exact_arrive<kCluster>();
    if (masked)
        exact_write(&chunk, s->result.logit, s->result.token, args.mask_value);
    if (first)
        args.escalated[row] = escalated;
    exact_meet<kCluster>();
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
    while (1 << args.rank_bits < args.ranks)
        args.rank_bits++;
    if (problem->batch > INT32_MAX / args.ranks)
        return KERNEL_UNSUPPORTED;
    const bool aligned =
        (uintptr_t)problem->logits % 16 == 0 && (problem->stride % 4 == 0 || problem->batch == 1);
    const int64_t vectors = (problem->vocab + (aligned ? 0 : 3) + 3) / 4;
    args.chunk = (int32_t)((vectors + args.ranks - 1) / args.ranks);
    args.wide = args.chunk > EXACT_SEGMENT / 4;
    const size_t fixed =
        sizeof(struct exact_shared) +
        (size_t)args.ranks * (sizeof(struct exact_coarse) + sizeof(struct exact_fine)) +
        (args.wide ? EXACT_BUCKETS * sizeof(uint32_t) : 0);
    const int64_t room = (int64_t)(((size_t)device->shared_bytes - fixed) / sizeof(float4));
    const int64_t cached = args.chunk < room ? args.chunk : room;
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
