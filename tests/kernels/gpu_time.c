/* Times the CUDA top-p variants side by side: graphs of 10 calls on pristine input, the time of the
 * restoring copies subtracted, median of 31 replays, data warm in L2 where it fits. For tuning by
 * hand and for docs/measured; what counts in a comparison is bench_topp.
 * Usage: gpu_time CAPTURED_DIRECTORY [FAMILY VOCAB BATCH P]; all cells below by default. */
#include "tests/kernels/gpu_run.h"

#include "bench/inputs.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 10, REPLAYS = 31, VARIANTS = 6 };

static const char *const variants[VARIANTS] = {"floor",   "exact",        "exact_portable",
                                               "patched", "patched_fine", "sort"};

struct timed_cell {
    const char *family;
    int64_t vocab, batch;
    float p;
};

static const struct timed_cell cells[] = {
    {"normal", 32000, 1, 0.95f},
    {"peaked", 32000, 64, 0.95f},
    {"normal", 128256, 1, 0.95f},
    {"peaked", 128256, 1, 0.95f},
    {"peaked", 128256, 4, 0.95f},
    {"peaked", 128256, 16, 0.95f},
    {"normal", 128256, 64, 0.95f},
    {"peaked", 128256, 64, 0.95f},
    {"peaked", 128256, 128, 0.95f},
    {"peaked", 128256, 256, 0.95f},
    {"peaked", 151936, 64, 0.95f},
    {"peaked", 262144, 1, 0.95f},
    {"peaked", 262144, 4, 0.95f},
    {"peaked", 262144, 16, 0.95f},
    {"peaked", 262144, 64, 0.95f},
    {"captured=smollm2_135m_decode", 49152, 1, 0.95f},
    {"captured=smollm2_135m_decode", 49152, 16, 0.95f},
    {"captured=smollm2_135m_decode", 49152, 64, 0.95f},
    {"masked=0.9", 128256, 1, 0.95f},
    {"masked=0.9", 128256, 16, 0.95f},
    {"masked=0.99", 128256, 64, 0.95f},
    {"forced=1e9@13", 128256, 64, 0.95f},
    {"flat=1", 128256, 64, 0.5f},
    {"ties=step", 128256, 64, 0.95f},
    {"ties=plateau", 128256, 64, 0.4f},
    {"adjacent", 128256, 64, 0.95f},
    {"normal", 128256, 16, 0.95f},
    {"flat=1", 128256, 1, 0.5f},
    {"flat=1", 128256, 16, 0.5f},
    {"adjacent", 128256, 1, 0.95f},
    {"adjacent", 128256, 16, 0.95f},
    {"forced=1e9@13", 128256, 1, 0.95f},
    {"ties=step", 128256, 1, 0.95f},
    {"ties=plateau", 128256, 1, 0.4f},
};

struct timing {
    struct topp_problem problem;
    const float *pristine;
    size_t bytes;
    void *workspace;
    size_t workspace_bytes;
    cudaStream_t stream;
};

static int compare_floats(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Median time in us of a restore, with a call of variant behind it unless NULL. */
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

static void *device_copy(const void *host, size_t bytes) {
    void *memory;
    gpu_require(cudaMalloc(&memory, bytes), "cudaMalloc");
    gpu_require(cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice), "upload");
    return memory;
}

/* The oracle's boundaries, for `floor`. */
static struct topp_boundary *make_boundaries(const struct logits *rows, const float *p) {
    struct tb_error error = TB_ERROR_INIT;
    const size_t batch = (size_t)rows->batch;
    struct nucleus *const nucleus = malloc(batch * sizeof *nucleus);
    struct topp_boundary *const boundary = malloc(batch * sizeof *boundary);
    if (!nucleus || !boundary ||
        nucleus_rows(rows->data, rows->batch, rows->vocab, rows->stride, p, 1, 0, nucleus, &error))
        gpu_require(-1, error.message);
    for (size_t row = 0; row < batch; row++) {
        boundary[row].logit = nucleus[row].boundary_logit;
        boundary[row].token = (int32_t)nucleus[row].boundary_token;
    }
    free(nucleus);
    return boundary;
}

static int count_escalated(const struct timing *timing) {
    const size_t batch = (size_t)timing->problem.batch;
    uint32_t *const escalated = malloc(batch * sizeof *escalated);
    int sum = 0;
    gpu_require(
        cudaMemcpy(escalated, timing->workspace, batch * sizeof *escalated, cudaMemcpyDeviceToHost),
        "download");
    for (size_t row = 0; row < batch; row++)
        sum += escalated[row] != 0;
    free(escalated);
    return sum;
}

/* A Markdown line of times and ratios. */
static void print_cell(const struct timed_cell *cell, const double *times, int escalated) {
    printf("| %s | %lld | %lld | %g |", cell->family, (long long)cell->vocab,
           (long long)cell->batch, cell->p);
    for (int i = 0; i < VARIANTS; i++)
        printf(isnan(times[i]) ? " - |" : " %.2f |", times[i]);
    for (int i = 0; i < VARIANTS; i++) {
        if (i == 0)
            printf(isnan(times[0]) ? " - |" : " %.2f |", times[1] / times[0]);
        else if (i > 2)
            printf(isnan(times[i]) ? " - |" : " %.1f |", times[i] / times[1]);
    }
    printf(" %d |\n", escalated);
    fflush(stdout);
}

static void time_cell(const struct timed_cell *cell, const char *directory) {
    struct tb_error error = TB_ERROR_INIT;
    struct family family;
    struct logits rows = {0};
    if (family_parse(cell->family, &family, &error) != TB_OK)
        gpu_require(-1, error.message);
    const struct input_request request = {&family, cell->batch, cell->vocab, 0, 0, 42, directory};
    if (input_make(&request, &rows, &error) != TB_OK)
        gpu_require(-1, error.message);
    const size_t batch = (size_t)rows.batch;
    float *const p = malloc(batch * sizeof *p);
    for (int64_t row = 0; row < rows.batch; row++)
        p[row] = family_row_p(&family, cell->p, row);
    struct topp_boundary *const boundary = make_boundaries(&rows, p);
    struct timing timing = {.bytes = batch * (size_t)rows.stride * sizeof(float)};
    timing.pristine = device_copy(rows.data, timing.bytes);
    timing.problem =
        (struct topp_problem){.logits = device_copy(rows.data, timing.bytes),
                              .p = device_copy(p, batch * sizeof *p),
                              .batch = rows.batch,
                              .vocab = rows.vocab,
                              .stride = rows.stride,
                              .mask_value = -INFINITY,
                              .sm_count = 132,
                              .boundary = device_copy(boundary, batch * sizeof *boundary)};
    gpu_require(cudaStreamCreate(&timing.stream), "stream");
    const double restore = replay(&timing, NULL);
    double times[VARIANTS];
    int escalated = 0;
    for (int i = 0; i < VARIANTS; i++) {
        const struct topp_variant *const variant = topp_find(variants[i], KERNEL_DEVICE_CUDA);
        times[i] = NAN;
        if (!variant || (variant->max_batch && rows.batch > variant->max_batch))
            continue;
        timing.workspace_bytes = variant->workspace_size(&timing.problem);
        gpu_require(cudaMalloc(&timing.workspace, timing.workspace_bytes + 256), "cudaMalloc");
        times[i] = replay(&timing, variant) - restore;
        if (i == 1)
            escalated = count_escalated(&timing);
        cudaFree(timing.workspace);
    }
    print_cell(cell, times, escalated);
    cudaStreamDestroy(timing.stream);
    cudaFree((void *)timing.pristine);
    cudaFree(timing.problem.logits);
    cudaFree((void *)timing.problem.p);
    cudaFree((void *)timing.problem.boundary);
    free(p);
    free(boundary);
    logits_free(&rows);
}

int main(int argc, char **argv) {
    if (argc != 2 && argc != 6) {
        fprintf(stderr, "usage: gpu_time CAPTURED_DIRECTORY [FAMILY VOCAB BATCH P]\n");
        return 2;
    }
    if (!gpu_present()) {
        fprintf(stderr, "no CUDA device here: skipped\n");
        return 77;
    }
    printf("| family | vocab | batch | p |");
    for (int i = 0; i < VARIANTS; i++)
        printf(" %s us |", variants[i]);
    printf(
        " exact / floor | patched / exact | patched_fine / exact | sort / exact | escalated |\n");
    printf("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    if (argc == 6) {
        const struct timed_cell cell = {argv[2], strtoll(argv[3], NULL, 10),
                                        strtoll(argv[4], NULL, 10), strtof(argv[5], NULL)};
        time_cell(&cell, argv[1]);
        return 0;
    }
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
        time_cell(&cells[i], argv[1]);
    return 0;
}
