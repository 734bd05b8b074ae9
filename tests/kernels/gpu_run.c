#include "tests/kernels/gpu_run.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gpu_require(int code, const char *what) {
    if (!code)
        return;
    fprintf(stderr, "%s: %s (%d)\n", what,
            code > 0 ? cudaGetErrorString((cudaError_t)code) : "kernel status", code);
    exit(1);
}

bool gpu_present(void) {
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

/* Device memory that grows and stays. */
static void *keep(size_t which, size_t bytes) {
    static struct {
        void *memory;
        size_t bytes;
    } kept[5];
    if (kept[which].bytes < bytes) {
        gpu_require(cudaFree(kept[which].memory), "cudaFree");
        gpu_require(cudaMalloc(&kept[which].memory, bytes), "cudaMalloc");
        kept[which].bytes = bytes;
    }
    return kept[which].memory;
}

static void launch_once(const struct topp_variant *variant, const struct topp_problem *problem,
                        void *workspace, size_t bytes, enum gpu_launch launch) {
    static cudaStream_t stream;
    if (!stream)
        gpu_require(cudaStreamCreate(&stream), "cudaStreamCreate");
    if (launch == GPU_STREAM) {
        gpu_require(variant->launch(problem, workspace, bytes, stream), "launch");
    } else {
        cudaGraph_t graph;
        cudaGraphExec_t replay;
        gpu_require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
        gpu_require(variant->launch(problem, workspace, bytes, stream), "launch under capture");
        gpu_require(cudaStreamEndCapture(stream, &graph), "end capture");
        gpu_require(cudaGraphInstantiate(&replay, graph, 0), "instantiate");
        gpu_require(cudaGraphLaunch(replay, stream), "graph launch");
        gpu_require(cudaStreamSynchronize(stream), "graph");
        cudaGraphExecDestroy(replay);
        cudaGraphDestroy(graph);
    }
    gpu_require(cudaGetLastError(), "after launch");
    gpu_require(cudaStreamSynchronize(stream), "kernel");
}

void gpu_run(const struct topp_variant *variant, const struct gpu_case *the_case,
             enum gpu_launch launch, float *out, uint32_t *escalated) {
    const size_t bytes = (size_t)(the_case->batch * the_case->stride) * sizeof(float);
    float *const logits = (float *)keep(0, bytes + 64) + the_case->misaligned;
    float *const p = keep(1, (size_t)the_case->batch * sizeof(float));
    struct topp_problem problem = {
        .logits = logits,
        .p = p,
        .batch = the_case->batch,
        .vocab = the_case->vocab,
        .stride = the_case->stride,
        .mask_value = the_case->mask_value,
        .sm_count = 132,
    };
    if (the_case->boundary) {
        const size_t size = (size_t)the_case->batch * sizeof *problem.boundary;
        void *const boundary = keep(4, size);
        gpu_require(cudaMemcpy(boundary, the_case->boundary, size, cudaMemcpyHostToDevice),
                    "upload boundary");
        problem.boundary = boundary;
    }
    const size_t workspace_bytes = variant->workspace_size(&problem);
    void *const workspace = keep(2, workspace_bytes);
    gpu_require(cudaMemcpy(logits, the_case->rows, bytes, cudaMemcpyHostToDevice), "upload");
    gpu_require(
        cudaMemcpy(p, the_case->p, (size_t)the_case->batch * sizeof(float), cudaMemcpyHostToDevice),
        "upload p");
    gpu_require(cudaMemset(workspace, 0xa5, workspace_bytes), "poison");
    launch_once(variant, &problem, workspace, workspace_bytes, launch);
    gpu_require(cudaMemcpy(out, logits, bytes, cudaMemcpyDeviceToHost), "download");
    if (escalated)
        gpu_require(cudaMemcpy(escalated, workspace, (size_t)the_case->batch * sizeof(uint32_t),
                               cudaMemcpyDeviceToHost),
                    "download escalated");
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static bool row_equal(const struct gpu_case *the_case, const struct nucleus *nucleus,
                      const float *in, const float *out, int64_t *token) {
    const uint32_t mask = bits_of(the_case->mask_value);
    for (int64_t t = 0; t < the_case->stride; t++) {
        const bool kept = t >= the_case->vocab || nucleus->untouched ||
                          nucleus->status == NUCLEUS_EMPTY_ROW || nucleus_keeps(nucleus, in[t], t);
        if (bits_of(out[t]) != (kept ? bits_of(in[t]) : mask)) {
            *token = t;
            return false;
        }
    }
    return true;
}

bool gpu_compare(const struct gpu_case *the_case, const struct nucleus *nucleus, const float *out,
                 struct gpu_count *count) {
    bool good = true;
    for (int64_t row = 0; row < the_case->batch; row++) {
        const struct nucleus *const want = &nucleus[row];
        const float *const in = the_case->rows + row * the_case->stride;
        const float *const got = out + row * the_case->stride;
        int64_t token = -1;
        count->rows++;
        if (want->status == NUCLEUS_AMBIGUOUS || want->status == NUCLEUS_NONFINITE_INPUT)
            continue;
        count->certified++;
        if (row_equal(the_case, want, in, got, &token)) {
            count->equal++;
            continue;
        }
        if (good) {
            int64_t kept = 0;
            for (int64_t t = 0; t < the_case->vocab; t++)
                kept += bits_of(got[t]) == bits_of(in[t]) && in[t] > -3e38f;
            printf("DIFFERS %s vocab %lld batch %lld row %lld p %.9g token %lld in %a out %a: kept "
                   "%lld oracle %lld boundary %a@%lld prefix %.17g %.17g target %.17g\n",
                   the_case->name, (long long)the_case->vocab, (long long)the_case->batch,
                   (long long)row, the_case->p[row], (long long)token, in[token], got[token],
                   (long long)kept, (long long)want->kept, want->boundary_logit,
                   (long long)want->boundary_token, want->prefix_less, want->prefix, want->target);
        }
        good = false;
    }
    return good;
}

bool gpu_check(const struct topp_variant *variant, const struct gpu_case *the_case,
               enum gpu_launch launch, struct gpu_count *count) {
    const size_t elements = (size_t)(the_case->batch * the_case->stride);
    float *const out = malloc(elements * sizeof *out);
    uint32_t *const escalated = malloc((size_t)the_case->batch * sizeof *escalated);
    struct nucleus *const nucleus = malloc((size_t)the_case->batch * sizeof *nucleus);
    struct tb_error error = TB_ERROR_INIT;
    bool good = false;
    if (out && escalated && nucleus &&
        nucleus_rows(the_case->rows, the_case->batch, the_case->vocab, the_case->stride,
                     the_case->p, 1, 0, nucleus, &error) == TB_OK) {
        gpu_run(variant, the_case, launch, out, escalated);
        good = gpu_compare(the_case, nucleus, out, count);
        for (int64_t row = 0; row < the_case->batch; row++)
            count->escalated += escalated[row];
        count->cases++;
    } else {
        printf("%s: %s\n", the_case->name, error.message);
    }
    free(out);
    free(escalated);
    free(nucleus);
    return good;
}
