/* Times CUDA top-p variants: graphs of N calls on pristine input, the time of the restoring copies
 * subtracted. A tool for tuning by hand; what counts is bench_topp.
 * Arguments: family vocab batch p [variant ...]; several such groups are separated by "--". */
#include "tests/kernels/gpu_run.h"

#include "bench/inputs.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 10, REPLAYS = 31 };

static int compare_floats(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

struct timing {
    struct topp_problem problem;
    const float *pristine;
    size_t bytes;
    void *workspace;
    size_t workspace_bytes;
    cudaStream_t stream;
};

/* Median time in us of a graph of CALLS restores, each with a call of variant unless NULL. */
static double replay(const struct timing *timing, const struct topp_variant *variant) {
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    cudaEvent_t begin, end;
    float times[REPLAYS];
    gpu_require(cudaStreamBeginCapture(timing->stream, cudaStreamCaptureModeGlobal), "capture");
    for (int i = 0; i < CALLS; i++) {
        gpu_require(cudaMemcpyAsync(timing->problem.logits, timing->pristine, timing->bytes,
                                    cudaMemcpyDeviceToDevice, timing->stream),
                    "restore");
        if (variant)
            gpu_require(variant->launch(&timing->problem, timing->workspace,
                                        timing->workspace_bytes, timing->stream),
                        variant->name);
    }
    gpu_require(cudaStreamEndCapture(timing->stream, &graph), "end capture");
    gpu_require(cudaGraphInstantiate(&ready, graph, 0), "instantiate");
    gpu_require(cudaEventCreate(&begin), "event");
    gpu_require(cudaEventCreate(&end), "event");
    for (int i = -5; i < REPLAYS; i++) {
        gpu_require(cudaEventRecord(begin, timing->stream), "record");
        gpu_require(cudaGraphLaunch(ready, timing->stream), "replay");
        gpu_require(cudaEventRecord(end, timing->stream), "record");
        gpu_require(cudaEventSynchronize(end), "wait");
        if (i >= 0)
            gpu_require(cudaEventElapsedTime(&times[i], begin, end), "elapsed");
    }
    qsort(times, REPLAYS, sizeof times[0], compare_floats);
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return (double)times[REPLAYS / 2] * 1e3 / CALLS;
}

static void time_group(int count, char **words, const char *directory) {
    struct tb_error error = TB_ERROR_INIT;
    struct family family;
    struct logits rows = {0};
    if (count < 4)
        gpu_require(-1, "need: family vocab batch p");
    if (family_parse(words[0], &family, &error) != TB_OK)
        gpu_require(-1, error.message);
    const struct input_request request = {
        &family, strtoll(words[2], NULL, 10), strtoll(words[1], NULL, 10), 0, 0, 42, directory};
    if (input_make(&request, &rows, &error) != TB_OK)
        gpu_require(-1, error.message);
    struct timing timing = {.bytes = (size_t)(rows.batch * rows.stride) * sizeof(float)};
    float *pristine, *logits, *p;
    float *const host_p = malloc((size_t)rows.batch * sizeof *host_p);
    for (int64_t row = 0; row < rows.batch; row++)
        host_p[row] = family_row_p(&family, strtof(words[3], NULL), row);
    gpu_require(cudaStreamCreate(&timing.stream), "stream");
    gpu_require(cudaMalloc((void **)&pristine, timing.bytes), "malloc");
    gpu_require(cudaMalloc((void **)&logits, timing.bytes), "malloc");
    gpu_require(cudaMalloc((void **)&p, (size_t)rows.batch * sizeof *p), "malloc");
    gpu_require(cudaMemcpy(pristine, rows.data, timing.bytes, cudaMemcpyHostToDevice), "upload");
    gpu_require(cudaMemcpy(p, host_p, (size_t)rows.batch * sizeof *p, cudaMemcpyHostToDevice),
                "upload");
    timing.pristine = pristine;
    timing.problem = (struct topp_problem){.logits = logits,
                                           .p = p,
                                           .batch = rows.batch,
                                           .vocab = rows.vocab,
                                           .stride = rows.stride,
                                           .mask_value = -INFINITY,
                                           .sm_count = 132};
    const double restore = replay(&timing, NULL);
    printf("%-14s vocab %-7s batch %-4s p %-6s restore %6.2f", words[0], words[1], words[2],
           words[3], restore);
    static char *every[] = {"exact", "exact_portable"};
    for (int i = 4; i < (count > 4 ? count : 6); i++) {
        const char *const name = count > 4 ? words[i] : every[i - 4];
        const struct topp_variant *const variant = topp_find(name, KERNEL_DEVICE_CUDA);
        if (!variant || variant->needs_boundary)
            continue;
        timing.workspace_bytes = variant->workspace_size(&timing.problem);
        gpu_require(cudaMalloc(&timing.workspace, timing.workspace_bytes), "malloc");
        printf("  %s %7.2f", name, replay(&timing, variant) - restore);
        if (!strncmp(name, "exact", 5)) {
            uint32_t *const escalated = malloc((size_t)rows.batch * sizeof *escalated);
            gpu_require(cudaMemcpy(escalated, timing.workspace,
                                   (size_t)rows.batch * sizeof *escalated, cudaMemcpyDeviceToHost),
                        "download");
            int sum = 0;
            for (int64_t row = 0; row < rows.batch; row++)
                sum += escalated[row] != 0;
            printf(" (%d escalated)", sum);
            free(escalated);
        }
#ifdef TRACE /* stamps between phases, in a build of the kernel that has them */
        void exact_trace_read(long long *);
        long long stamps[64];
        exact_trace_read(stamps);
        for (int s = 1; s < 13; s++)
            printf(" %d:%lld", s, stamps[s] - stamps[s - 1]);
        printf(" all:%lld\n", stamps[12] - stamps[0]);
#endif
        cudaFree(timing.workspace);
    }
    printf("\n");
    fflush(stdout);
    cudaFree(pristine);
    cudaFree(logits);
    cudaFree(p);
    free(host_p);
    logits_free(&rows);
}

int main(int argc, char **argv) {
    const char *const directory = argc > 1 ? argv[1] : "";
    if (!gpu_present())
        return 77;
    for (int i = 2; i < argc;) {
        int end = i;
        while (end < argc && strcmp(argv[end], "--"))
            end++;
        time_group(end - i, argv + i, directory);
        i = end + 1;
    }
    return 0;
}
