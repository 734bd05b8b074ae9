/* The host's side: see include/cuda_runtime_api.h. */
#include "cuda_runtime.h"

#include <cstdlib>
#include <vector>

typedef std::vector<std::function<void()>> launches;
struct CUstream_st {
    bool captures;
    launches captured;
};
struct CUgraph_st {
    launches list;
};
struct CUgraphExec_st {
    launches list;
};

/* As an H200 says it; the environment can ask for less. EMULATED_SHARED: bytes of a block's shared
 * memory, EMULATED_CLUSTER: blocks of a cluster, at most. */
enum { MAJOR = 9, SHARED_MOST = 232448, SHARED_ALL = 233472, MULTIPROCESSORS = 132 };

static int at_most(const char *name, int otherwise) {
    const char *const text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static cudaError_t latest;

static cudaError_t say(cudaError_t error) {
    if (error)
        latest = error;
    return error;
}

cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    if (device)
        return say(cudaErrorInvalidDevice);
    *value = attribute == cudaDevAttrComputeCapabilityMajor ? MAJOR
             : attribute == cudaDevAttrMultiProcessorCount  ? MULTIPROCESSORS
             : attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin
                 ? at_most("EMULATED_SHARED", SHARED_MOST)
                 : SHARED_ALL;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    const cudaError_t error = latest;
    latest = cudaSuccess;
    return error;
}

const char *cudaGetErrorString(cudaError_t error) {
    return error ? "an error of the emulated device" : "no error";
}

cudaError_t cudaMalloc(void **memory, size_t bytes) {
    return posix_memalign(memory, 256, bytes ? bytes : 1) ? say(cudaErrorMemoryAllocation)
                                                          : cudaSuccess;
}

cudaError_t cudaFree(void *memory) {
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind) {
    memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *to, int value, size_t bytes) {
    memset(to, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    *stream = new CUstream_st();
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t) {
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode) {
    stream->captures = true;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    *graph = new CUgraph_st{stream->captured};
    stream->captured.clear();
    stream->captures = false;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long) {
    *exec = new CUgraphExec_st{graph->list};
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t) {
    for (const std::function<void()> &launch : exec->list)
        launch();
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    delete exec;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute attribute, int value) {
    return attribute == cudaFuncAttributeMaxDynamicSharedMemorySize && value > SHARED_MOST
               ? say(cudaErrorInvalidValue)
               : cudaSuccess;
}

static unsigned cluster_of(const cudaLaunchConfig_t *config) {
    return config->numAttrs ? config->attrs->val.clusterDim.x : 1;
}

cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *,
                                           const cudaLaunchConfig_t *config) {
    const int size = (int)cluster_of(config);
    *clusters = size > at_most("EMULATED_CLUSTER", 16) ? 0 : MULTIPROCESSORS / size;
    return cudaSuccess;
}

cudaError_t emulated::enqueue(const cudaLaunchConfig_t *config,
                              const std::function<void()> &kernel) {
    const dim3 grid = config->gridDim, block = config->blockDim;
    if (config->dynamicSmemBytes > SHARED_MOST || !grid.x || !grid.y || !block.x)
        return say(cudaErrorInvalidConfiguration);
    const emulated::shape shape = {{grid.x, grid.y, grid.z},
                                   {block.x, block.y, block.z},
                                   cluster_of(config),
                                   config->dynamicSmemBytes};
    return enqueue_host(config->stream, [=]() { emulated::run(shape, kernel); });
}

cudaError_t emulated::enqueue_host(cudaStream_t stream, const std::function<void()> &work) {
    if (stream && stream->captures)
        stream->captured.push_back(work);
    else
        work();
    return cudaSuccess;
}
