/* `exact`: the oracle's nucleus, bit for bit, in one launch.
 *
 * A row belongs to one cluster of blocks (or to one block on GPUs without clusters), which keeps it
 * in registers and shared memory: read once, written once. Steps: buckets of 1/64 logit with
 * fixed-point masses, the boundary's bucket, its tokens, the boundary with a certificate, or, where
 * the certificate fails, the same boundary in binary64 exactly as the oracle computes it; then the
 * mask. Why it is exact: docs/exact.md. */
#include "kernels/cuda/exact_args.h"
#include "kernels/cuda/variants.h"

#include <cuda_runtime.h>

enum { EXACT_DEVICES = 64 };

/* What a device offers, asked once. */
struct exact_device {
    int ready;
    int shared_bytes;                         /* most a block can have */
    int clusters[EXACT_GREATEST_CLUSTER + 1]; /* at a time, by size; 0: size not possible */
};

static cudaLaunchConfig_t exact_config(const struct exact_kernel *kernel, int64_t blocks,
                                       size_t shared, int ranks, cudaLaunchAttribute *attribute,
                                       cudaStream_t stream) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3((unsigned)kernel->threads);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    attribute->id = cudaLaunchAttributeClusterDimension;
    attribute->val.clusterDim.x = (unsigned)ranks;
    attribute->val.clusterDim.y = attribute->val.clusterDim.z = 1;
    config.attrs = attribute;
    config.numAttrs = ranks > 1 ? 1 : 0;
    return config;
}

static cudaError_t exact_prepare_kernel(const struct exact_kernel *kernel,
                                        const struct exact_device *device, int major) {
    cudaError_t error =
        cudaFuncSetAttribute((const void *)kernel->single,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, device->shared_bytes);
    if (error || major < 9)
        return error;
    exact_function *const clustered[] = {kernel->cluster, kernel->quick};
    for (int i = 0; i < 2 && !error; i++) {
        const void *const function = (const void *)clustered[i];
        if (!function)
            continue;
        error = cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     device->shared_bytes);
        if (!error)
            error =
                cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    }
    return error;
}

static cudaError_t exact_ask(int index, struct exact_device *device) {
    int major = 0;
    cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index);
    if (!error)
        error = cudaDeviceGetAttribute(&device->shared_bytes,
                                       cudaDevAttrMaxSharedMemoryPerBlockOptin, index);
    if (!error)
        error = exact_prepare_kernel(&exact_kernel_short, device, major);
    if (!error)
        error = exact_prepare_kernel(&exact_kernel_long, device, major);
    if (!error)
        error = cudaDeviceGetAttribute(&device->clusters[1], cudaDevAttrMultiProcessorCount, index);
    for (int ranks = 2; !error && major >= 9 && ranks <= EXACT_GREATEST_CLUSTER; ranks++) {
        cudaLaunchAttribute attribute;
        const cudaLaunchConfig_t config = exact_config(
            &exact_kernel_long, ranks, (size_t)device->shared_bytes, ranks, &attribute, NULL);
        if (cudaOccupancyMaxActiveClusters(&device->clusters[ranks],
                                           (const void *)exact_kernel_long.cluster, &config)) {
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
        device->shared_bytes = fresh.shared_bytes;
        for (int i = 0; i <= EXACT_GREATEST_CLUSTER; i++)
            device->clusters[i] = fresh.clusters[i];
        __atomic_store_n(&device->ready, 1, __ATOMIC_RELEASE);
    }
    *found = device;
    return cudaSuccess;
}

/* What a launch costs with so many blocks a row, in logits that a block takes in the same time: as
 * measured on an H200, a row of a block costs what 36,000 of its logits do besides those, and what
 * shared memory has no room for, beside some 36 KiB of sums and lists, half as much again. */
static int64_t exact_cost(const struct exact_device *device, const struct topp_problem *problem,
                          int ranks) {
    const int64_t row = 36000, room = (device->shared_bytes - 36 * 1024) / (int)sizeof(float);
    const int64_t part = (problem->vocab + ranks - 1) / ranks, at_once = device->clusters[ranks];
    const int64_t waves = (problem->batch + at_once - 1) / at_once;
    return waves * (row + part + (part > room ? (part - room) / 2 : 0));
}

/* Blocks a row: the number that costs least, none with too little to do. */
static int exact_ranks(const struct exact_device *device, const struct topp_problem *problem) {
    const int64_t least_work = 3072; /* logits a block */
    int ranks = 1;
    int64_t least = exact_cost(device, problem, 1);
    for (int more = 2; more <= EXACT_GREATEST_CLUSTER; more++) {
        if (device->clusters[more] <= 0 || problem->vocab / more < least_work)
            continue;
        const int64_t cost = exact_cost(device, problem, more);
        if (cost < least) {
            ranks = more;
            least = cost;
        }
    }
    return ranks;
}

static size_t exact_workspace_size(const struct topp_problem *problem) {
    return (size_t)problem->batch * sizeof(uint32_t);
}

/* Cuts the row into chunks and picks the kernel. Returns the shared memory of a block, in bytes. */
static size_t exact_cut(const struct exact_device *device, const struct topp_problem *problem,
                        struct exact_args *args, const struct exact_kernel **kernel,
                        exact_function **function) {
    const int64_t short_most = 16384; /* vectors: what shared memory holds, and not much more */
    const bool aligned =
        (uintptr_t)problem->logits % 16 == 0 && (problem->stride % 4 == 0 || problem->batch == 1);
    const int64_t vectors = (problem->vocab + (aligned ? 0 : 3) + 3) / 4;
    const int64_t chunk = (vectors + args->ranks - 1) / args->ranks;
    *kernel = chunk <= short_most ? &exact_kernel_short : &exact_kernel_long;
    args->chunk = (int32_t)chunk;
    args->wide = chunk > EXACT_SEGMENT / 4;
    const size_t vector = 4 * sizeof(float);
    size_t fixed = (*kernel)->fixed_bytes + (size_t)args->ranks * (*kernel)->rank_bytes +
                   (args->wide ? (*kernel)->wide_bytes : 0);
    /* The short way keeps its whole part on chip. */
    const bool quick =
        args->ranks > 1 && (*kernel)->quick &&
        chunk <= (int64_t)EXACT_QUICK_VECTORS * (*kernel)->threads &&
        fixed + (*kernel)->quick_bytes + (size_t)chunk * vector <= (size_t)device->shared_bytes;
    *function = quick ? (*kernel)->quick : args->ranks > 1 ? (*kernel)->cluster : (*kernel)->single;
    fixed += quick ? (*kernel)->quick_bytes : 0;
    const int64_t room = (int64_t)(((size_t)device->shared_bytes - fixed) / vector);
    args->cached = (int32_t)(chunk < room ? chunk : room);
    return fixed + (size_t)args->cached * vector;
}

static int exact_start(const struct topp_problem *problem, void *workspace, size_t workspace_bytes,
                       void *stream, bool portable) {
    const struct exact_device *device;
    const struct exact_kernel *kernel;
    exact_function *function;
    struct exact_args args = {};
    cudaLaunchAttribute attribute;
    if (problem->vocab > INT32_MAX - 64 * 1024)
        return KERNEL_UNSUPPORTED;
    if (workspace_bytes < exact_workspace_size(problem))
        return KERNEL_WORKSPACE;
    cudaError_t error = exact_current_device(&device);
    if (error)
        return (int)error;
    args.logits = problem->logits;
    args.p = problem->p;
    args.escalated = (uint32_t *)workspace;
    args.vocab = problem->vocab;
    args.stride = problem->stride;
    args.mask_value = problem->mask_value;
    args.ranks = portable ? 1 : exact_ranks(device, problem);
    args.listed = EXACT_LISTED / args.ranks / 2 * 2;
    if (problem->batch > INT32_MAX / args.ranks)
        return KERNEL_UNSUPPORTED;
    const size_t shared = exact_cut(device, problem, &args, &kernel, &function);
    const cudaLaunchConfig_t config = exact_config(kernel, problem->batch * args.ranks, shared,
                                                   args.ranks, &attribute, (cudaStream_t)stream);
    (void)cudaLaunchKernelEx(&config, function, args); /* an error is the last error, too */
    return (int)cudaGetLastError();
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
    TOPP_MASKED_LOGITS,
    "exact",
    0,
    0,
    0,
    exact_workspace_size,
    exact_launch,
};
const struct topp_variant topp_cuda_exact_portable = {
    "exact_portable",
    "exact without clusters, one block a row: what GPUs before Hopper run",
    KERNEL_DEVICE_CUDA,
    TOPP_MASKED_LOGITS,
    "exact",
    0,
    0,
    0,
    exact_workspace_size,
    exact_portable_launch,
};
