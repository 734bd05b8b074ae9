#include "tests/kernels/gpu_gumbel.h"

#include "tests/kernels/gpu_matrix.h"
#include "tests/kernels/gpu_run.h"

#include "kernels/gumbel.h"
#include "oracle/gumbel_gate.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARIANTS = 4, GOLDEN_ROWS = 64, MOST_ROWS = 80, PADDING = 3 };
static const char *const names[VARIANTS] = {"log", "log1p", "fp64", "murmur"};

/* Rows to draw from, on host and GPU. */
struct draws {
    const float *logits; /* host, [batch, stride] */
    int64_t batch, vocab, stride;
    int64_t seed[MOST_ROWS], position[MOST_ROWS], token[MOST_ROWS];
    float temperature[MOST_ROWS];
    void *memory[4];               /* what `problem` points to, logits' allocation first */
    struct gumbel_problem problem; /* on the GPU */
};

static void *upload(const void *host, size_t bytes) {
    void *const memory = device_memory(bytes);
    gpu_require(cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice), "upload");
    return memory;
}

/* misaligned: elements by which the rows' copy is shifted. */
static void draws_upload(struct draws *d, int misaligned) {
    const size_t batch = (size_t)d->batch, rows = d->stride ? batch : 1;
    const size_t bytes = rows * (size_t)(d->stride ? d->stride : d->vocab) * sizeof(float);
    float *const logits = device_memory(bytes + 64);
    gpu_require(cudaMemcpy(logits + misaligned, d->logits, bytes, cudaMemcpyHostToDevice),
                "upload logits");
    d->memory[0] = logits;
    d->memory[1] = upload(d->seed, batch * sizeof *d->seed);
    d->memory[2] = upload(d->position, batch * sizeof *d->position);
    d->memory[3] = upload(d->temperature, batch * sizeof *d->temperature);
    d->problem = (struct gumbel_problem){
        .logits = logits + misaligned,
        .batch = d->batch,
        .vocab = d->vocab,
        .stride = d->stride,
        .seed = d->memory[1],
        .position = d->memory[2],
        .temperature = d->memory[3],
        .token = device_memory(batch * sizeof(int64_t)),
    };
}

static void draws_free(struct draws *d) {
    cudaFree(d->problem.token);
    for (int i = 0; i < 4; i++)
        cudaFree(d->memory[i]);
}

/* Draws into d->token; ids and workspace are poisoned before. */
static void draw(struct draws *d, const char *name, enum gpu_launch how) {
    const struct gumbel_variant *const variant = gumbel_find(name, KERNEL_DEVICE_CUDA);
    const size_t ids = (size_t)d->batch * sizeof *d->token;
    const size_t bytes = variant->workspace_size(&d->problem);
    void *const workspace = device_memory(bytes ? bytes : 1);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    gpu_require(cudaStreamCreate(&stream), "stream");
    gpu_require(cudaMemsetAsync(workspace, 0xa5, bytes, stream), "poison");
    gpu_require(cudaMemsetAsync(d->problem.token, 0xa5, ids, stream), "poison");
    if (how == GPU_STREAM) {
        gpu_require(variant->launch(&d->problem, workspace, bytes, stream), name);
    } else {
        gpu_require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
        gpu_require(variant->launch(&d->problem, workspace, bytes, stream), name);
        gpu_require(cudaStreamEndCapture(stream, &graph), "end capture");
        gpu_require(cudaGraphInstantiate(&replay, graph, 0), "instantiate");
        gpu_require(cudaGraphLaunch(replay, stream), "replay");
        gpu_require(cudaStreamSynchronize(stream), name);
        cudaGraphExecDestroy(replay);
        cudaGraphDestroy(graph);
    }
    gpu_require(cudaMemcpyAsync(d->token, d->problem.token, ids, cudaMemcpyDeviceToHost, stream),
                "download");
    gpu_require(cudaStreamSynchronize(stream), name);
    cudaStreamDestroy(stream);
    cudaFree(workspace);
}

/* The oracle's verdict on ids that somebody drew from these rows. */
static struct gumbel_result judge(const struct draws *d, const char *name, const int64_t *token) {
    struct tb_error error = TB_ERROR_INIT;
    struct gumbel_result result;
    struct gumbel_case the_case = {
        .logits = d->logits,
        .batch = d->batch,
        .vocab = d->vocab,
        .stride = d->stride,
        .seed = d->seed,
        .position = d->position,
        .temperature = d->temperature,
        .token = token,
    };
    matrix_require(noise_parse(name, &the_case.noise), name, NULL);
    matrix_require(gumbel_gate_check(&the_case, NULL, &result, &error) == TB_OK, name, &error);
    return result;
}

/* ---- Golden ids ---- */

struct golden_tally {
    long rows, equal, ours_near, theirs_near, refused;
};

static void golden_rows(const char *line, struct logits *rows, struct draws *d) {
    struct tb_error error = TB_ERROR_INIT;
    char text[FAMILY_TEXT_BYTES];
    long long input_seed, vocab, batch, seed;
    float temperature;
    struct family family;
    matrix_require(sscanf(line, "case %95s %lld %lld %lld %lld %f", text, &input_seed, &vocab,
                          &batch, &seed, &temperature) == 6 &&
                       batch == GOLDEN_ROWS,
                   line, NULL);
    matrix_require(family_parse(text, &family, &error) == TB_OK, text, &error);
    const struct input_request request = {&family, batch, vocab, 0, 0, input_seed, NULL};
    draws_free(d);
    logits_free(rows);
    matrix_require(input_make(&request, rows, &error) == TB_OK, text, &error);
    *d = (struct draws){
        .logits = rows->data, .batch = batch, .vocab = vocab, .stride = rows->stride};
    for (int i = 0; i < GOLDEN_ROWS; i++) {
        d->seed[i] = seed;
        d->position[i] = i;
        d->temperature[i] = temperature;
    }
    draws_upload(d, 0);
}

static void golden_compare(struct draws *d, const char *name, char *ids,
                           struct golden_tally *tally) {
    int64_t golden[GOLDEN_ROWS];
    for (int i = 0; i < GOLDEN_ROWS; i++) {
        const char *const field = strsep(&ids, "\t");
        matrix_require(field, "golden_gumbel.tsv: too few ids", NULL);
        golden[i] = strtoll(field, NULL, 10);
    }
    draw(d, name, GPU_STREAM);
    for (int i = 0; i < GOLDEN_ROWS; i++)
        tally->equal += d->token[i] == golden[i];
    tally->rows += GOLDEN_ROWS;
    const struct gumbel_result ours = judge(d, name, d->token);
    tally->ours_near += (long)ours.rows_near;
    tally->refused += (long)ours.rows_failed;
    if (memcmp(d->token, golden, sizeof golden)) {
        const struct gumbel_result theirs = judge(d, name, golden);
        tally->theirs_near += (long)theirs.rows_near;
        tally->refused += (long)theirs.rows_failed;
    }
}

bool gumbel_conformance(const char *directory) {
    char path[1024];
    struct golden_tally tally[VARIANTS] = {0};
    struct logits rows = {0};
    struct draws d = {0};
    char *line = NULL;
    size_t size = 0;
    bool good = true;
    snprintf(path, sizeof path, "%s/golden_gumbel.tsv", directory);
    FILE *const file = fopen(path, "r");
    matrix_require(file, path, NULL);
    while (getline(&line, &size, file) > 0) {
        if (line[0] == '#')
            continue;
        if (!strncmp(line, "case\t", 5)) {
            golden_rows(line, &rows, &d);
            continue;
        }
        char *ids = line;
        const char *const name = strsep(&ids, "\t");
        for (int v = 0; v < VARIANTS; v++)
            if (!strcmp(name, names[v]))
                golden_compare(&d, names[v], ids, &tally[v]);
    }
    printf("\ngolden_gumbel.tsv\n%-8s %6s %10s %8s   %s\n", "", "ids", "identical", "share",
           "not the binary64 winner, within rounding: ours, the original's; refused");
    for (int v = 0; v < VARIANTS; v++) {
        const struct golden_tally *const t = &tally[v];
        const double share = 100.0 * (double)t->equal / (double)(t->rows ? t->rows : 1);
        good = good && t->rows > 0 && share >= 99.9 && t->refused == 0;
        printf("%-8s %6ld %10ld %7.2f%%   %ld, %ld; %ld\n", names[v], t->rows, t->equal, share,
               t->ours_near, t->theirs_near, t->refused);
    }
    fflush(stdout);
    draws_free(&d);
    logits_free(&rows);
    free(line);
    fclose(file);
    return good;
}

/* ---- Shapes ---- */

struct gumbel_shape {
    const char *family;
    int64_t vocab, batch;
    bool small, shared; /* shared: stride 0, every draw from one row */
};
static const struct gumbel_shape shapes[] = {
    {"normal", 1, 3, true, false},
    {"normal", 999, 5, true, false},
    {"peaked", 1024, 2, true, true},
    {"flat=1", 4097, 4, true, false},
    {"masked=keep2", 1000, 6, true, false},
    {"hazard=nan", 1000, 4, true, false},
    {"hazard=inf", 1000, 4, false, false},
    {"hazard=empty", 1000, 4, true, false},
    {"ties=plateau", 40001, 65, false, false},
    {"forced=3e38@last", 50257, 3, false, false},
    {"peaked", 128256, 64, false, false},
    {"normal", 262144, 80, false, true},
};

struct shape_tally {
    int64_t rows, near, twin;
    double noise, share_of_bound;
    int failures;
};

static void check_noise(struct draws *d, const char *name, struct shape_tally *tally) {
    const struct gumbel_variant *const variant = gumbel_find(name, KERNEL_DEVICE_CUDA);
    struct gumbel_problem problem = d->problem;
    struct noise_error error;
    enum noise_kind kind;
    problem.batch = d->batch < 2 ? d->batch : 2;
    const size_t bytes = (size_t)(problem.batch * d->vocab) * sizeof(double);
    double *const noise = malloc(bytes), *const on_device = device_memory(bytes);
    matrix_require(noise && noise_parse(name, &kind), name, NULL);
    gpu_require(cudaMemset(on_device, 0xff, bytes), "poison"); /* NaN */
    gpu_require(variant->noise(&problem, on_device, NULL), name);
    gpu_require(cudaMemcpy(noise, on_device, bytes, cudaMemcpyDeviceToHost), "download");
    noise_check(kind, d->seed, d->position, problem.batch, d->vocab, noise, &error);
    tally->noise = fmax(tally->noise, error.greatest);
    tally->share_of_bound = fmax(tally->share_of_bound, error.share_of_bound);
    tally->failures += !(error.share_of_bound <= 1.0);
    cudaFree(on_device);
    free(noise);
}

static void check_draws(struct draws *d, const struct gumbel_shape *shape, const char *name,
                        struct shape_tally *tally) {
    int64_t eager[MOST_ROWS], twin[MOST_ROWS];
    struct gumbel_problem host = d->problem;
    host.logits = d->logits;
    host.seed = d->seed;
    host.position = d->position;
    host.temperature = d->temperature;
    host.token = twin;
    draw(d, name, GPU_STREAM);
    memcpy(eager, d->token, (size_t)d->batch * sizeof *eager);
    draw(d, name, GPU_GRAPH);
    const struct gumbel_result result = judge(d, name, d->token);
    const bool steady = !memcmp(eager, d->token, (size_t)d->batch * sizeof *eager);
    if (!steady || result.rows_failed) {
        printf("WRONG %s %s vocab %lld batch %lld: %s\n", name, shape->family, (long long)d->vocab,
               (long long)d->batch,
               steady ? gumbel_rule_text(result.rule) : "stream and graph draw different ids");
        tally->failures++;
    }
    gpu_require(gumbel_find(name, KERNEL_DEVICE_CPU)->launch(&host, NULL, 0, NULL), "twin");
    for (int64_t i = 0; i < d->batch; i++)
        tally->twin += twin[i] == d->token[i];
    tally->rows += d->batch;
    tally->near += result.rows_near;
    check_noise(d, name, tally);
}

static void check_shape(const struct gumbel_shape *shape, int misaligned,
                        struct shape_tally tally[VARIANTS]) {
    static const float temperatures[] = {1.0f, 0.0f, 0.6f, 0.7f, 3.0f};
    struct tb_error error = TB_ERROR_INIT;
    struct family family;
    struct logits rows = {0};
    matrix_require(family_parse(shape->family, &family, &error) == TB_OK, shape->family, &error);
    const struct input_request request = {
        &family, shape->shared ? 1 : shape->batch, shape->vocab, shape->vocab + PADDING, 0, 42,
        NULL};
    matrix_require(input_make(&request, &rows, &error) == TB_OK, shape->family, &error);
    struct draws d = {
        .logits = rows.data,
        .batch = shape->batch,
        .vocab = shape->vocab,
        .stride = shape->shared ? 0 : rows.stride,
    };
    for (int i = 0; i < shape->batch; i++) {
        d.seed[i] = 0x123456789abcdef * (i + 1); /* both halves of the key */
        d.position[i] = ((int64_t)1 << 30) * (i % 3) + 7 * i;
        d.temperature[i] = temperatures[i % 5];
    }
    draws_upload(&d, misaligned);
    for (int v = 0; v < VARIANTS; v++)
        check_draws(&d, shape, names[v], &tally[v]);
    draws_free(&d);
    logits_free(&rows);
}

bool gumbel_shapes(bool small) {
    struct shape_tally tally[VARIANTS] = {0};
    bool good = true;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        if (!small || shapes[s].small)
            check_shape(&shapes[s], (int)(s % 4), tally);
    printf("\ngumbel shapes: strided, misaligned, T = 0 among the rows, stream and graph\n");
    for (int v = 0; v < VARIANTS; v++) {
        const struct shape_tally *const t = &tally[v];
        printf("%-8s rows %lld, same as the CPU twin %lld, near %lld, noise off by at most %.2g "
               "(%.2f of its bound), failed %d\n",
               names[v], (long long)t->rows, (long long)t->twin, (long long)t->near, t->noise,
               t->share_of_bound, t->failures);
        good = good && t->failures == 0;
    }
    fflush(stdout);
    return good;
}
