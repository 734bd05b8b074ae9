/* ker-04: rows that lie past 2^31 elements. Every CUDA variant on the same rows, side by side and
 * 2^26 elements apart: the same bits and ids must come back. Takes 10.8 GB of device memory. Exit
 * code 77 without a GPU or without that much memory. */
#include "tests/kernels/gpu_matrix.h"
#include "tests/kernels/gpu_run.h"

#include "kernels/gumbel.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VOCAB = 32000, BATCH = 40 };
static const int64_t FAR_STRIDE = (int64_t)1 << 26; /* row 32 begins at 2^31 */

static struct matrix rows;
static float *far_rows, *near_out, *far_out;
static int failures;

/* Rows between host (packed) and device (packed or far). */
static void copy_rows(void *to, int64_t to_stride, const void *from, int64_t from_stride,
                      enum cudaMemcpyKind kind) {
    gpu_require(cudaMemcpy2D(to, (size_t)to_stride * sizeof(float), from,
                             (size_t)from_stride * sizeof(float), VOCAB * sizeof(float), BATCH,
                             kind),
                "copying rows");
}

static void *workspace_of(size_t bytes) {
    return device_memory(bytes ? bytes : 1);
}

static void run_topp(const struct topp_variant *variant, struct topp_problem problem, float *out) {
    const size_t bytes = variant->workspace_size(&problem);
    void *const workspace = workspace_of(bytes);
    copy_rows(problem.logits, problem.stride, rows.rows.data, VOCAB, cudaMemcpyHostToDevice);
    gpu_require(variant->launch(&problem, workspace, bytes, NULL), variant->name);
    gpu_require(cudaDeviceSynchronize(), variant->name);
    copy_rows(out, VOCAB, problem.logits, problem.stride, cudaMemcpyDeviceToHost);
    cudaFree(workspace);
}

static void report(const char *name, bool same) {
    printf("%-16s %s\n", name, same ? "same" : "DIFFERS");
    failures += !same;
}

static void check_topp(const struct topp_variant *variant) {
    struct topp_problem problem = matrix_problem(&rows, BATCH, rows.p[0]);
    run_topp(variant, problem, near_out);
    problem.logits = far_rows;
    problem.stride = FAR_STRIDE;
    run_topp(variant, problem, far_out);
    /* Something must have been masked: two runs that did nothing are the same, too. */
    const bool masked =
        memcmp(near_out, rows.rows.data, (size_t)BATCH * VOCAB * sizeof *near_out) != 0;
    report(variant->name,
           masked && !memcmp(near_out, far_out, (size_t)BATCH * VOCAB * sizeof *near_out));
}

static void run_gumbel(const struct gumbel_variant *variant, const float *logits, int64_t stride,
                       int64_t ids[BATCH]) {
    int64_t numbers[BATCH];
    float temperature[BATCH];
    for (int i = 0; i < BATCH; i++) {
        numbers[i] = i;
        temperature[i] = 1.0f;
    }
    int64_t *const device_numbers = device_memory(sizeof numbers);
    int64_t *const token = device_memory(sizeof numbers);
    float *const device_temperature = device_memory(sizeof temperature);
    gpu_require(cudaMemcpy(device_numbers, numbers, sizeof numbers, cudaMemcpyHostToDevice), "ids");
    gpu_require(
        cudaMemcpy(device_temperature, temperature, sizeof temperature, cudaMemcpyHostToDevice),
        "temperatures");
    const struct gumbel_problem problem = {
        logits, BATCH, VOCAB, stride, device_numbers, device_numbers, device_temperature, token};
    const size_t bytes = variant->workspace_size(&problem);
    void *const workspace = workspace_of(bytes);
    gpu_require(variant->launch(&problem, workspace, bytes, NULL), variant->name);
    gpu_require(cudaMemcpy(ids, token, sizeof numbers, cudaMemcpyDeviceToHost), variant->name);
    cudaFree(workspace);
    cudaFree(device_temperature);
    cudaFree(token);
    cudaFree(device_numbers);
}

static void check_gumbel(const struct gumbel_variant *variant) {
    int64_t near_ids[BATCH], far_ids[BATCH];
    run_gumbel(variant, rows.pristine, VOCAB, near_ids);
    copy_rows(far_rows, FAR_STRIDE, rows.rows.data, VOCAB, cudaMemcpyHostToDevice);
    run_gumbel(variant, far_rows, FAR_STRIDE, far_ids);
    report(variant->name, !memcmp(near_ids, far_ids, sizeof near_ids));
}

static void upload_boundaries(void) {
    struct topp_boundary boundary[BATCH];
    for (int i = 0; i < BATCH; i++)
        boundary[i] = (struct topp_boundary){rows.nucleus[i].boundary_logit,
                                             (int32_t)rows.nucleus[i].boundary_token};
    gpu_require(cudaMemcpy(rows.boundary, boundary, sizeof boundary, cudaMemcpyHostToDevice),
                "boundaries");
}

int main(void) {
    if (!gpu_present()) {
        printf("no CUDA device here: skipped\n");
        return 77;
    }
    matrix_make(&rows, "peaked", VOCAB, BATCH, 42, NULL);
    rows.p[rows.p_count++] = 0.9f;
    matrix_solve(&rows);
    upload_boundaries();
    const size_t far_bytes = (size_t)FAR_STRIDE * BATCH * sizeof(float);
    if (cudaMalloc((void **)&far_rows, far_bytes) != cudaSuccess) {
        printf("no %zu bytes of device memory: skipped\n", far_bytes);
        return 77;
    }
    near_out = malloc((size_t)BATCH * VOCAB * sizeof *near_out);
    far_out = malloc((size_t)BATCH * VOCAB * sizeof *far_out);
    matrix_require(near_out && far_out, "rows", NULL);
    size_t count;
    const struct topp_variant *const *topp = topp_variants(&count);
    for (size_t i = 0; i < count; i++)
        if (topp[i]->device == KERNEL_DEVICE_CUDA)
            check_topp(topp[i]);
    const struct gumbel_variant *const *gumbel = gumbel_variants(&count);
    for (size_t i = 0; i < count; i++)
        if (gumbel[i]->device == KERNEL_DEVICE_CUDA)
            check_gumbel(gumbel[i]);
    printf(failures ? "%d FAILED\n" : "rows past 2^31 elements: passed\n", failures);
    free(near_out);
    free(far_out);
    cudaFree(far_rows);
    matrix_free(&rows);
    return failures != 0;
}
