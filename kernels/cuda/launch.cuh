/* The one way in which kernels are launched here, but for those in clusters (exact.cu). */
#ifndef TOPP_KERNELS_CUDA_LAUNCH_CUH
#define TOPP_KERNELS_CUDA_LAUNCH_CUH

#include <cuda_runtime.h>

/* Enqueues kernel(actual...) on the stream; returns what became of it, as an int for a variant's
 * launch. shared_bytes: dynamic shared memory of a block. */
template <class... Formal, class... Actual>
static inline int launch_kernel(void (*kernel)(Formal...), dim3 grid, unsigned threads,
                                size_t shared_bytes, cudaStream_t stream, Actual &&...actual) {
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    (void)cudaLaunchKernelEx(&config, kernel, actual...); /* an error is the last error, too */
    return (int)cudaGetLastError();
}

#endif
