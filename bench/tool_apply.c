/* --apply: one top-p kernel on anyone's logits, for chasing a doubt. Nothing is judged here. */
#include "bench/once.h"
#include "bench/tools.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_NAMED = 8 };

enum row_kind { ROW_ORDINARY, ROW_EMPTY, ROW_NONFINITE };

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

/* The split kernels take at most max_batch rows at once: the file's rows go in that many. */
static enum tb_status run_all(const struct options *options, struct device *device,
                              const struct topp_variant *variant, const struct logits *input,
                              struct logits *output, struct tb_error *error) {
    const int64_t most = variant->max_batch;
    const int64_t chunk = most && most < input->batch ? most : input->batch;
    float *p = calloc((size_t)chunk, sizeof *p);
    if (!p)
        return tb_fail(error, TB_NO_MEMORY, "no memory for %lld rows", (long long)chunk);
    for (int64_t r = 0; r < chunk; r++)
        p[r] = options->p[0];
    if (chunk < input->batch)
        fprintf(stderr,
                "%s takes at most %lld rows at once: the %lld rows go in so many launches\n",
                variant->name, (long long)chunk, (long long)input->batch);
    enum tb_status status = TB_OK;
    for (int64_t first = 0; status == TB_OK && first < input->batch; first += chunk) {
        const int64_t left = input->batch - first;
        const struct topp_once once = {.variant = variant,
                                       .input = input->data + first * input->stride,
                                       .output = output->data + first * output->stride,
                                       .batch = left < chunk ? left : chunk,
                                       .vocab = input->vocab,
                                       .stride = input->stride,
                                       .p = p,
                                       .slices = options->slices};
        status = topp_once(device, &once, error);
    }
    free(p);
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
    char why[256] = "";
    *variant = topp_find(options->subject, kind);
    if (kind == KERNEL_DEVICE_CUDA && topp_find(options->subject, KERNEL_DEVICE_CPU) &&
        !device_cuda_usable(why, sizeof why))
        return tb_fail(error, TB_UNAVAILABLE, "no usable CUDA device: %s", why);
    if (*variant)
        return TB_OK;
    return tb_fail(error, TB_USAGE,
                   "--apply: no top-p kernel '%s' on device %s: --variants lists them",
                   options->subject, kind == KERNEL_DEVICE_CUDA ? "cuda" : "cpu");
}

/* A matrix of the same shape, contents arbitrary. */
static enum tb_status same_shape(const struct logits *like, struct logits *out,
                                 struct tb_error *error) {
    *out = *like;
    out->data = malloc((size_t)like->batch * (size_t)like->stride * sizeof *out->data);
    return out->data ? TB_OK : tb_fail(error, TB_NO_MEMORY, "no memory for the masked rows");
}

int tool_apply(const struct options *options) {
    struct tb_error error = TB_ERROR_INIT;
    const struct topp_variant *variant = NULL;
    struct device *device = NULL;
    struct logits input = {0}, output = {0};
    int64_t refused = 0;
    const enum kernel_device kind = tool_pick_device(options);
    const struct device_options settings = {.gate_only = true};
    enum tb_status status = find_variant(options, kind, &variant, &error);
    if (status == TB_OK)
        status = tool_check_writable(options->out, &error);
    if (status == TB_OK)
        status = npy_read(options->input, options->bfloat16, &input, &error);
    if (status == TB_OK)
        status = same_shape(&input, &output, &error);
    if (status == TB_OK)
        status = tool_open_device(kind, &settings, &device, &error);
    if (status == TB_OK)
        status = run_all(options, device, variant, &input, &output, &error);
    if (status == TB_OK) {
        refused = restore_refused(options->input, &input, &output);
        status =
            npy_write(options->out, output.data, output.batch, output.vocab, output.stride, &error);
    }
    if (device)
        device->ops->close(device);
    free(output.data);
    logits_free(&input);
    if (status != TB_OK)
        return tool_fail(&error);
    return refused ? tb_exit_code(TB_UNREADABLE) : 0;
}
