#include "tests/kernels/gpu_matrix.h"

#include "tests/kernels/gpu_run.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void matrix_require(bool good, const char *what, const struct tb_error *error) {
    if (!good) {
        fprintf(stderr, "%s: %s\n", what, error ? error->message : "out of memory");
        exit(2);
    }
}

void *device_memory(size_t bytes) {
    void *memory;
    gpu_require(cudaMalloc(&memory, bytes), "cudaMalloc");
    return memory;
}

void matrix_free(struct matrix *m) {
    cudaFree(m->pristine);
    cudaFree(m->work);
    cudaFree(m->device_p);
    cudaFree(m->boundary);
    free(m->nucleus);
    logits_free(&m->rows);
    memset(m, 0, sizeof *m);
}

void matrix_make(struct matrix *m, const char *text, int64_t vocab, int64_t batch, long long seed,
                 const char *captured_dir) {
    struct tb_error error = TB_ERROR_INIT;
    struct family family;
    matrix_free(m);
    snprintf(m->family, sizeof m->family, "%s", text);
    m->vocab = vocab;
    matrix_require(family_parse(text, &family, &error) == TB_OK, text, &error);
    const struct input_request request = {&family, batch, vocab, 0, 0, seed, captured_dir};
    matrix_require(input_make(&request, &m->rows, &error) == TB_OK, text, &error);
    const size_t bytes = (size_t)(batch * vocab) * sizeof(float);
    m->pristine = device_memory(bytes);
    m->work = device_memory(bytes);
    m->device_p = device_memory((size_t)batch * sizeof(float));
    m->boundary = device_memory((size_t)batch * sizeof *m->boundary);
    gpu_require(cudaMemcpy(m->pristine, m->rows.data, bytes, cudaMemcpyHostToDevice), "upload");
}

void matrix_solve(struct matrix *m) {
    struct tb_error error = TB_ERROR_INIT;
    const size_t count = (size_t)m->rows.batch * m->p_count;
    float *const all = malloc(count * sizeof *all);
    m->nucleus = malloc(count * sizeof *m->nucleus);
    matrix_require(all && m->nucleus, "oracle", NULL);
    for (size_t i = 0; i < count; i++)
        all[i] = m->p[i % m->p_count];
    matrix_require(nucleus_rows(m->rows.data, m->rows.batch, m->vocab, m->vocab, all, m->p_count, 0,
                                m->nucleus, &error) == TB_OK,
                   "oracle", &error);
    free(all);
}

struct topp_problem matrix_problem(const struct matrix *m, int64_t batch, float p) {
    float rows_p[MATRIX_MAX_BATCH];
    matrix_require(batch <= MATRIX_MAX_BATCH, "batch", NULL);
    for (int64_t i = 0; i < batch; i++)
        rows_p[i] = p;
    gpu_require(
        cudaMemcpy(m->device_p, rows_p, (size_t)batch * sizeof *rows_p, cudaMemcpyHostToDevice),
        "upload p");
    return (struct topp_problem){
        .logits = m->work,
        .p = m->device_p,
        .batch = batch,
        .vocab = m->vocab,
        .stride = m->vocab,
        .mask_value = -INFINITY,
        .sm_count = MATRIX_SM_COUNT,
        .boundary = m->boundary,
    };
}
