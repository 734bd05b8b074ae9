#include "tests/kernels/gpu_replay.h"

#include "tests/kernels/gpu_run.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

/* A fresh process finds the GPU at a low clock: replays until it is up. */
enum { REPLAY_WARMUP = 20 };

static int compare_floats(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Median microseconds of a call within a replay; variant NULL: of restoring alone. */
static double replay(const struct topp_variant *variant, const struct topp_problem *problem,
                     const float *pristine, void *workspace, size_t workspace_bytes) {
    const size_t bytes = (size_t)(problem->batch * problem->stride) * sizeof(float);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    cudaEvent_t begin, end;
    float times[REPLAY_COUNT];
    gpu_require(cudaStreamCreate(&stream), "stream");
    gpu_require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
    for (int i = 0; i < REPLAY_CALLS; i++) {
        gpu_require(
            cudaMemcpyAsync(problem->logits, pristine, bytes, cudaMemcpyDeviceToDevice, stream),
            "restore");
        if (variant)
            gpu_require(variant->launch(problem, workspace, workspace_bytes, stream),
                        variant->name);
    }
    gpu_require(cudaStreamEndCapture(stream, &graph), "end capture");
    gpu_require(cudaGraphInstantiate(&ready, graph, 0), "instantiate");
    gpu_require(cudaEventCreate(&begin), "event");
    gpu_require(cudaEventCreate(&end), "event");
    for (int i = -REPLAY_WARMUP; i < REPLAY_COUNT; i++) {
        gpu_require(cudaEventRecord(begin, stream), "record");
        gpu_require(cudaGraphLaunch(ready, stream), "replay");
        gpu_require(cudaEventRecord(end, stream), "record");
        gpu_require(cudaEventSynchronize(end), "wait");
        if (i >= 0)
            gpu_require(cudaEventElapsedTime(&times[i], begin, end), "elapsed");
    }
    qsort(times, REPLAY_COUNT, sizeof times[0], compare_floats);
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    cudaStreamDestroy(stream);
    const double median = ((double)times[REPLAY_COUNT / 2 - 1] + times[REPLAY_COUNT / 2]) / 2;
    return median * 1e3 / REPLAY_CALLS;
}

double replay_restore(const struct topp_problem *problem, const float *pristine) {
    return replay(NULL, problem, pristine, NULL, 0);
}

double replay_time(const struct topp_variant *variant, const struct topp_problem *problem,
                   const float *pristine, double restore_us) {
    const size_t bytes = variant->workspace_size(problem);
    void *workspace = NULL;
    gpu_require(cudaMalloc(&workspace, bytes ? bytes : 1), "cudaMalloc");
    const double time = replay(variant, problem, pristine, workspace, bytes);
    cudaFree(workspace);
    return time - restore_us;
}
