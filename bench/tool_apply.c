/* --apply: one top-p kernel on anyone's logits, for chasing a doubt. Nothing is judged here. */
#include "bench/tools.h"
#include "oracle/nucleus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UPSTREAM_SM_COUNT = 132, RUN_SECONDS = 120, ROWS_NAMED = 8 };

enum row_kind { ROW_ORDINARY, ROW_EMPTY, ROW_NONFINITE };

/* Everything that one launch needs; the memory is the device's. */
struct application {
    const struct topp_variant *variant;
    struct device *device;
    struct topp_problem problem;
    void *workspace, *p, *boundary;
    size_t workspace_bytes;
};

static enum row_kind kind_of_row(const float *row, int64_t vocab, int64_t *token) {
    bool any = false;
    for (int64_t t = 0; t < vocab; t++) {
        if (isnan(row[t]) || row[t] == INFINITY) {
            *token = t;
            return ROW_NONFINITE;
        }
        any = any || row[t] != -INFINITY;
    }
    return any ? ROW_ORDINARY : ROW_EMPTY;
}

static int prepare_nothing(void *context, void *stream) {
    (void)context;
    (void)stream;
    return KERNEL_OK;
}

static int run_kernel(void *context, void *stream) {
    struct application *apply = context;
    return apply->variant->launch(&apply->problem, apply->workspace, apply->workspace_bytes,
                                  stream);
}

/* The split kernels take at most max_batch rows at once: the file's rows go in that many. */
static int64_t chunk_rows(const struct topp_variant *variant, int64_t batch) {
    return variant->max_batch && variant->max_batch < batch ? variant->max_batch : batch;
}

/* `floor` is told the boundary; the oracle knows it. */
static enum tb_status make_boundary(struct application *apply, const struct logits *logits,
                                    int64_t first, int64_t rows, const float *p,
                                    struct tb_error *error) {
    struct nucleus *nucleus = calloc((size_t)rows, sizeof *nucleus);
    struct topp_boundary *boundary = calloc((size_t)rows, sizeof *boundary);
    enum tb_status status = TB_OK;
    if (!nucleus || !boundary)
        status = tb_fail(error, TB_NO_MEMORY, "no memory for %lld boundaries", (long long)rows);
    else
        status = nucleus_rows(logits->data + first * logits->stride, rows, logits->vocab,
                              logits->stride, p, 1, 0, nucleus, error);
    for (int64_t r = 0; status == TB_OK && r < rows; r++) {
        const bool cut = nucleus[r].status == NUCLEUS_OK && !nucleus[r].untouched;
        boundary[r].logit = cut ? nucleus[r].boundary_logit : -INFINITY;
        boundary[r].token = cut ? (int32_t)nucleus[r].boundary_token : 0;
    }
    if (status == TB_OK)
        status = apply->device->ops->upload(apply->device, apply->boundary, boundary,
                                            (size_t)rows * sizeof *boundary, error);
    apply->problem.boundary = apply->boundary;
    free(boundary);
    free(nucleus);
    return status;
}

static enum tb_status allocate(struct application *apply, const struct logits *logits,
                               int64_t chunk, struct tb_error *error) {
    const struct device_ops *ops = apply->device->ops;
    void *memory = NULL;
    apply->problem.batch = chunk;
    apply->workspace_bytes = apply->variant->workspace_size(&apply->problem);
    enum tb_status status = ops->alloc(
        apply->device, (size_t)chunk * (size_t)logits->stride * sizeof(float), &memory, error);
    apply->problem.logits = memory;
    if (status == TB_OK)
        status = ops->alloc(apply->device, (size_t)chunk * sizeof(float), &apply->p, error);
    apply->problem.p = apply->p;
    if (status == TB_OK)
        status = ops->alloc(apply->device, (size_t)chunk * sizeof(struct topp_boundary),
                            &apply->boundary, error);
    if (status == TB_OK && apply->workspace_bytes)
        status = ops->alloc(apply->device, apply->workspace_bytes, &apply->workspace, error);
    return status;
}

/* Rows first .. first + rows, in place in logits->data. */
static enum tb_status run_chunk(struct application *apply, struct logits *logits, int64_t first,
                                int64_t rows, const float *p, struct tb_error *error) {
    struct device *device = apply->device;
    const size_t bytes = (size_t)rows * (size_t)logits->stride * sizeof(float);
    float *host = logits->data + first * logits->stride;
    bool timed_out = false;
    const struct timed_call call = {.context = apply,
                                    .prepare = prepare_nothing,
                                    .run = run_kernel,
                                    .name = apply->variant->name,
                                    .launch = device->kind == KERNEL_DEVICE_CUDA ? LAUNCH_STREAM
                                                                                 : LAUNCH_NONE};
    apply->problem.batch = rows;
    enum tb_status status = TB_OK;
    if (apply->variant->needs_boundary)
        status = make_boundary(apply, logits, first, rows, p, error);
    if (status == TB_OK)
        status = device->ops->upload(device, apply->problem.logits, host, bytes, error);
    if (status == TB_OK)
        status = device->ops->upload(device, apply->p, p, (size_t)rows * sizeof *p, error);
    if (status == TB_OK)
        status = device->ops->run_once(device, &call, RUN_SECONDS, &timed_out, error);
    if (status == TB_OK && timed_out)
        status = tb_fail(error, TB_UNAVAILABLE, "%s did not end within %d s", apply->variant->name,
                         RUN_SECONDS);
    if (status == TB_OK)
        status = device->ops->download(device, host, apply->problem.logits, bytes, error);
    return status;
}

static enum tb_status run_all(struct application *apply, struct logits *logits, float p,
                              struct tb_error *error) {
    const int64_t chunk = chunk_rows(apply->variant, logits->batch);
    float *ps = calloc((size_t)chunk, sizeof *ps);
    enum tb_status status = TB_OK;
    if (!ps)
        status = tb_fail(error, TB_NO_MEMORY, "no memory for %lld rows", (long long)chunk);
    for (int64_t r = 0; status == TB_OK && r < chunk; r++)
        ps[r] = p;
    if (status == TB_OK)
        status = allocate(apply, logits, chunk, error);
    if (status == TB_OK && chunk < logits->batch)
        fprintf(stderr,
                "%s takes at most %lld rows at once: %lld rows go in launches of that many\n",
                apply->variant->name, (long long)chunk, (long long)logits->batch);
    for (int64_t first = 0; status == TB_OK && first < logits->batch; first += chunk) {
        const int64_t left = logits->batch - first;
        status = run_chunk(apply, logits, first, left < chunk ? left : chunk, ps, error);
    }
    free(ps);
    return status;
}

/* Rows that are not to be judged are the user's, whatever the kernel made of them. */
static int64_t restore_refused(const char *file, const struct logits *input,
                               struct logits *output) {
    int64_t nonfinite = 0, empty = 0;
    for (int64_t r = 0; r < input->batch; r++) {
        const float *row = input->data + r * input->stride;
        int64_t token = -1;
        const enum row_kind kind = kind_of_row(row, input->vocab, &token);
        if (kind == ROW_ORDINARY)
            continue;
        memcpy(output->data + r * output->stride, row, (size_t)input->vocab * sizeof *row);
        if (kind == ROW_EMPTY && empty++ < ROWS_NAMED)
            fprintf(stderr, "%s: row %lld: empty_row (only -inf), left as it is\n", file,
                    (long long)r);
        if (kind == ROW_NONFINITE && nonfinite++ < ROWS_NAMED)
            fprintf(stderr,
                    "%s: row %lld, token %lld: nonfinite_input (NaN or +inf), the row is left as "
                    "it is\n",
                    file, (long long)r, (long long)token);
    }
    if (nonfinite > ROWS_NAMED || empty > ROWS_NAMED)
        fprintf(stderr, "%s: %lld empty and %lld nonfinite rows in all\n", file, (long long)empty,
                (long long)nonfinite);
    return nonfinite;
}

static enum tb_status find_variant(const struct options *options, enum kernel_device kind,
                                   const struct topp_variant **variant, struct tb_error *error) {
    *variant = topp_find(options->subject, kind);
    if (*variant)
        return TB_OK;
    return tb_fail(error, TB_USAGE,
                   "--apply: no top-p kernel '%s' on device %s: --variants lists them",
                   options->subject, kind == KERNEL_DEVICE_CUDA ? "cuda" : "cpu");
}

static void release(struct application *apply) {
    struct device *device = apply->device;
    if (!device)
        return;
    void *const memory[] = {apply->problem.logits, apply->p, apply->boundary, apply->workspace};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        if (memory[i])
            device->ops->free(device, memory[i]);
    device->ops->close(device);
}

int tool_apply(const struct options *options) {
    struct tb_error error = TB_ERROR_INIT;
    struct application apply = {0};
    struct logits input = {0}, output = {0};
    int64_t refused = 0;
    const enum kernel_device kind = tool_pick_device(options);
    const struct device_options settings = {.gate_only = true};
    enum tb_status status = find_variant(options, kind, &apply.variant, &error);
    if (status == TB_OK)
        status = tool_check_writable(options->out, &error);
    if (status == TB_OK)
        status = npy_read(options->input, options->bfloat16, &input, &error);
    if (status == TB_OK)
        status = npy_read(options->input, options->bfloat16, &output, &error);
    if (status == TB_OK)
        status = tool_open_device(kind, &settings, &apply.device, &error);
    if (status == TB_OK) {
        apply.problem = (struct topp_problem){
            .vocab = output.vocab,
            .stride = output.stride,
            .mask_value = -INFINITY,
            .slices = options->slices,
            .sm_count = kind == KERNEL_DEVICE_CUDA ? apply.device->sm_count : UPSTREAM_SM_COUNT};
        status = run_all(&apply, &output, options->p[0], &error);
    }
    if (status == TB_OK) {
        refused = restore_refused(options->input, &input, &output);
        status =
            npy_write(options->out, output.data, output.batch, output.vocab, output.stride, &error);
    }
    release(&apply);
    logits_free(&input);
    logits_free(&output);
    if (status != TB_OK)
        return tool_fail(&error);
    return refused ? tb_exit_code(TB_UNREADABLE) : 0;
}
