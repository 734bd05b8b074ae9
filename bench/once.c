#include "bench/once.h"

#include "oracle/nucleus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { RUN_SECONDS = 120, MOST_BUFFERS = 8 };

/* One call and the memory that it holds on the device. */
struct running {
    struct device *device;
    const struct topp_variant *topp;
    const struct gumbel_variant *gumbel;
    struct topp_problem topp_problem;
    struct gumbel_problem gumbel_problem;
    void *buffers[MOST_BUFFERS];
    int buffer_count;
    void *workspace;
    size_t workspace_bytes;
};

/* Device memory with a copy of the host's bytes, or as it comes when host is NULL. */
static void *place(struct running *running, const void *host, size_t bytes, enum tb_status *status,
                   struct tb_error *error) {
    const struct device_ops *ops = running->device->ops;
    void *memory = NULL;
    if (*status == TB_OK)
        *status = ops->alloc(running->device, bytes ? bytes : 1, &memory, error);
    if (*status != TB_OK)
        return NULL;
    running->buffers[running->buffer_count++] = memory;
    if (host)
        *status = ops->upload(running->device, memory, host, bytes, error);
    return memory;
}

static void release(struct running *running) {
    for (int i = 0; i < running->buffer_count; i++)
        running->device->ops->free(running->device, running->buffers[i]);
}

static int prepare_nothing(void *context, void *stream) {
    (void)context;
    (void)stream;
    return KERNEL_OK;
}

static int launch(void *context, void *stream) {
    struct running *running = context;
    if (running->topp)
        return running->topp->launch(&running->topp_problem, running->workspace,
                                     running->workspace_bytes, stream);
    return running->gumbel->launch(&running->gumbel_problem, running->workspace,
                                   running->workspace_bytes, stream);
}

static enum tb_status run(struct running *running, struct tb_error *error) {
    const char *name = running->topp ? running->topp->name : running->gumbel->name;
    const bool cuda = running->device->kind == KERNEL_DEVICE_CUDA;
    const struct timed_call call = {.context = running,
                                    .prepare = prepare_nothing,
                                    .run = launch,
                                    .name = name,
                                    .launch = cuda ? LAUNCH_STREAM : LAUNCH_NONE};
    bool timed_out = false;
    enum tb_status status = TB_OK;
    running->workspace = place(running, NULL, running->workspace_bytes, &status, error);
    if (status == TB_OK)
        status =
            running->device->ops->run_once(running->device, &call, RUN_SECONDS, &timed_out, error);
    if (status == TB_OK && timed_out)
        status = tb_fail(error, TB_UNAVAILABLE, "%s did not end within %d s", name, RUN_SECONDS);
    return status;
}

/* One more run of the same call, traced. The rows are masked by then: what is launched does not
 * depend on them. */
static enum tb_status trace(struct running *running, struct once_evidence *evidence,
                            struct tb_error *error) {
    if (!evidence)
        return TB_OK;
    const struct timed_call call = {.context = running,
                                    .prepare = prepare_nothing,
                                    .run = launch,
                                    .name =
                                        running->topp ? running->topp->name : running->gumbel->name,
                                    .l2 = evidence->l2,
                                    .launch = evidence->launch};
    static const struct timing_settings settings = {
        .blocks = 1, .min_samples = 1, .max_samples = 1, .precision = 1.0, .block_seconds = 1.0};
    const struct block_request request = {
        .calls = &call, .draws = 1, .settings = &settings, .limit_seconds = RUN_SECONDS};
    struct block_result result = {0};
    const enum tb_status status =
        running->device->ops->time_block(running->device, &request, &result, error);
    evidence->kernels = result.kernels;
    evidence->count = result.kernel_count;
    snprintf(evidence->refused, sizeof evidence->refused, "%s",
             result.timed_out ? "did not end in time" : result.refused);
    free(result.samples);
    json_decref(result.conditions);
    return status;
}

static enum tb_status place_boundary(struct running *running, const struct topp_once *once,
                                     struct tb_error *error) {
    const size_t rows = (size_t)once->batch;
    struct nucleus *nucleus = calloc(rows, sizeof *nucleus);
    struct topp_boundary *boundary = calloc(rows, sizeof *boundary);
    enum tb_status status = TB_OK;
    if (!nucleus || !boundary)
        status = tb_fail(error, TB_NO_MEMORY, "no memory for %zu boundaries", rows);
    else
        status = nucleus_rows(once->input, once->batch, once->vocab, once->stride, once->p, 1, 0,
                              nucleus, error);
    for (size_t r = 0; status == TB_OK && r < rows; r++) {
        const bool cut = nucleus[r].status == NUCLEUS_OK && !nucleus[r].untouched;
        boundary[r].logit = cut ? nucleus[r].boundary_logit : -INFINITY;
        boundary[r].token = cut ? (int32_t)nucleus[r].boundary_token : -1;
    }
    running->topp_problem.boundary =
        place(running, boundary, rows * sizeof *boundary, &status, error);
    free(boundary);
    free(nucleus);
    return status;
}

enum tb_status topp_once(struct device *device, const struct topp_once *once,
                         struct tb_error *error) {
    struct running running = {.device = device, .topp = once->variant};
    const size_t rows = (size_t)once->batch;
    const size_t bytes = rows * (size_t)once->stride * sizeof(float);
    enum tb_status status = TB_OK;
    struct topp_problem *problem = &running.topp_problem;
    *problem = (struct topp_problem){.batch = once->batch,
                                     .vocab = once->vocab,
                                     .stride = once->stride,
                                     .mask_value = -INFINITY,
                                     .sm_count = device->sm_count,
                                     .slices = once->slices};
    problem->logits = place(&running, once->input, bytes, &status, error);
    problem->p = place(&running, once->p, rows * sizeof *once->p, &status, error);
    if (status == TB_OK && once->variant->needs_boundary)
        status = place_boundary(&running, once, error);
    running.workspace_bytes = once->variant->workspace_size(problem);
    if (status == TB_OK)
        status = run(&running, error);
    if (status == TB_OK)
        status = device->ops->download(device, once->output, problem->logits, bytes, error);
    if (status == TB_OK)
        status = trace(&running, once->evidence, error);
    release(&running);
    return status;
}

enum tb_status gumbel_once(struct device *device, const struct gumbel_once *once,
                           struct tb_error *error) {
    struct running running = {.device = device, .gumbel = once->variant};
    const size_t rows = (size_t)once->batch, words = rows * sizeof(int64_t);
    enum tb_status status = TB_OK;
    struct gumbel_problem *problem = &running.gumbel_problem;
    *problem =
        (struct gumbel_problem){.batch = once->batch, .vocab = once->vocab, .stride = once->stride};
    problem->logits =
        place(&running, once->input, rows * (size_t)once->stride * sizeof(float), &status, error);
    problem->seed = place(&running, once->seed, words, &status, error);
    problem->position = place(&running, once->position, words, &status, error);
    problem->temperature = place(&running, once->temperature, rows * sizeof(float), &status, error);
    problem->token = place(&running, NULL, words, &status, error);
    running.workspace_bytes = once->variant->workspace_size(problem);
    if (status == TB_OK)
        status = run(&running, error);
    if (status == TB_OK)
        status = device->ops->download(device, once->token, problem->token, words, error);
    if (status == TB_OK)
        status = trace(&running, once->evidence, error);
    release(&running);
    return status;
}
