#include "bench/verify_mask.h"

#include "oracle/gate.h"
#include "oracle/receipt.h"

#include <stdlib.h>

static enum tb_status hash_kept(const struct logits *logits, const float *output,
                                char mask_sha256[65], struct tb_error *error) {
    const size_t row_bytes = ((size_t)logits->vocab + 7) / 8;
    uint8_t *bits = malloc(row_bytes * (size_t)logits->batch);
    if (!bits)
        return tb_fail(error, TB_NO_MEMORY, "no memory for the kept bits");
    for (int64_t r = 0; r < logits->batch; r++)
        gate_kept_bits(logits->data + r * logits->stride, output + r * logits->stride,
                       logits->vocab, bits + (size_t)r * row_bytes);
    sha256_memory(bits, row_bytes * (size_t)logits->batch, mask_sha256);
    free(bits);
    return TB_OK;
}

static enum tb_status topp_again(struct device *device, const struct cell *cell, int32_t slices,
                                 const struct logits *logits, int32_t draw,
                                 struct once_evidence *evidence, char mask_sha256[65],
                                 struct tb_error *error) {
    const size_t elements = (size_t)logits->batch * (size_t)logits->stride;
    float *p = calloc((size_t)logits->batch, sizeof *p);
    float *output = malloc(elements * sizeof *output);
    enum tb_status status = TB_OK;
    if (!p || !output)
        status = tb_fail(error, TB_NO_MEMORY, "no memory for the output of %s", cell->name);
    for (int64_t r = 0; status == TB_OK && r < logits->batch; r++)
        p[r] = family_row_p(&cell->family, cell->p, draw * logits->batch + r);
    const struct topp_once once = {.variant = cell->topp,
                                   .input = logits->data,
                                   .output = output,
                                   .batch = logits->batch,
                                   .vocab = logits->vocab,
                                   .stride = logits->stride,
                                   .p = p,
                                   .slices = slices,
                                   .evidence = evidence};
    if (status == TB_OK)
        status = topp_once(device, &once, error);
    if (status == TB_OK)
        status = hash_kept(logits, output, mask_sha256, error);
    free(output);
    free(p);
    return status;
}

static enum tb_status gumbel_again(struct device *device, const struct cell *cell,
                                   const struct logits *logits, int32_t draw,
                                   struct once_evidence *evidence, char mask_sha256[65],
                                   struct tb_error *error) {
    const size_t rows = (size_t)logits->batch;
    int64_t *words = calloc(3 * rows, sizeof *words);
    float *temperature = calloc(rows, sizeof *temperature);
    enum tb_status status = TB_OK;
    if (!words || !temperature)
        status = tb_fail(error, TB_NO_MEMORY, "no memory for the ids of %s", cell->name);
    for (size_t r = 0; status == TB_OK && r < rows; r++) {
        words[r] = cell->seed;
        words[rows + r] = draw * logits->batch + (int64_t)r;
        temperature[r] = cell->temperature;
    }
    const struct gumbel_once once = {.variant = cell->gumbel,
                                     .input = logits->data,
                                     .batch = logits->batch,
                                     .vocab = logits->vocab,
                                     .stride = logits->stride,
                                     .seed = words,
                                     .position = words + rows,
                                     .temperature = temperature,
                                     .token = words + 2 * rows,
                                     .evidence = evidence};
    if (status == TB_OK)
        status = gumbel_once(device, &once, error);
    if (status == TB_OK)
        sha256_memory(once.token, rows * sizeof *once.token, mask_sha256);
    free(temperature);
    free(words);
    return status;
}

enum tb_status mask_again(struct device *device, const struct cell *cell, int32_t slices,
                          const struct logits *logits, int32_t draw, struct once_evidence *evidence,
                          char mask_sha256[65], struct tb_error *error) {
    mask_sha256[0] = '\0';
    return cell->kind == CELL_TOPP
               ? topp_again(device, cell, slices, logits, draw, evidence, mask_sha256, error)
               : gumbel_again(device, cell, logits, draw, evidence, mask_sha256, error);
}
