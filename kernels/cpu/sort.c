/* Top-p by sorting the whole row, as a serving library's fallback path does it.
 *
 * Ascending stable sort, binary32 softmax of the sorted row, binary32 cumulative sum from the
 * smallest up, drop where it is <= 1 - p, never the last. Among equal logits the higher ids come
 * later and so are kept: value-compatible with the reference, not canonical. */
#include "kernels/cpu/radix.h"
#include "kernels/cpu/row.h"
#include "kernels/cpu/variants.h"
#include "kernels/cpu/vector_exp.h"
#include "kernels/vector.h"

enum { SCAN_BLOCK = 256 }; /* the sum is scanned in blocks, as parallel scans do */

static size_t sort_workspace(const struct topp_problem *problem) {
    return (size_t)problem->vocab * 2 * sizeof(uint64_t);
}

/* (key, id) of every token, and back: the sorted logits' weights exp(x - max) and their sum. */
VECTOR_CLONES
static void sort_keys(const float *row, int64_t vocab, uint64_t *items) {
    for (int64_t i = 0; i < vocab; i++)
        items[i] = (uint64_t)row_key(row[i]) << 32 | (uint32_t)i;
}

VECTOR_CLONES
static float sort_weights(const uint64_t *items, int64_t vocab, float max, float *weights) {
    f32x16 sum = f32x16_set(0.0f);
    for (int64_t i = 0; i < vocab; i += 16) {
        float x[16];
        const int64_t n = vocab - i < 16 ? vocab - i : 16;
        for (int64_t k = 0; k < 16; k++) {
            /* The key back to its logit; past the end, weight 0. */
            const uint32_t key = k < n ? (uint32_t)(items[i + k] >> 32) : 0x007FFFFFu;
            const uint32_t bits = key & 0x80000000u ? key ^ 0x80000000u : ~key;
            memcpy(&x[k], &bits, sizeof bits);
        }
        const f32x16 w = exp_f32x16(f32x16_load(x) - f32x16_set(max));
        sum += w;
        memcpy(weights + i, &w, (size_t)n * sizeof *weights);
    }
    return f32x16_sum(sum);
}

/* How many of the smallest are dropped: the cumulative sum is monotone, so up to the first
 * position where it passes limit. */
static int64_t sort_dropped(const float *weights, int64_t vocab, float sum, float limit) {
    float base = 0.0f;
    for (int64_t i = 0; i < vocab; i += SCAN_BLOCK) {
        const int64_t end = i + SCAN_BLOCK < vocab ? i + SCAN_BLOCK : vocab;
        float inner = 0.0f;
        for (int64_t k = i; k < end; k++) {
            inner += weights[k] / sum;
            if (!(base + inner <= limit))
                return k;
        }
        base += inner;
    }
    return vocab;
}

static void sort_row(float *row, int64_t vocab, float p, float mask, uint64_t *items) {
    const float max = row_max(row, vocab);
    if (max == -INFINITY)
        return;
    sort_keys(row, vocab, items);
    uint64_t *const sorted = radix_sort(items, items + vocab, (size_t)vocab);
    float *const weights = (float *)(void *)(sorted == items ? items + vocab : items);
    const float sum = sort_weights(sorted, vocab, max, weights);
    int64_t dropped = sort_dropped(weights, vocab, sum, 1.0f - p);
    dropped = dropped < vocab ? dropped : vocab - 1;
    for (int64_t i = 0; i < dropped; i++)
        row[(uint32_t)sorted[i]] = mask;
}

static int sort_launch(const struct topp_problem *problem, void *workspace, size_t workspace_bytes,
                       void *stream) {
    (void)stream;
    if (problem->vocab > UINT32_MAX)
        return KERNEL_UNSUPPORTED;
    if (workspace_bytes < sort_workspace(problem))
        return KERNEL_WORKSPACE;
    for (int64_t i = 0; i < problem->batch; i++)
        if (!(problem->p[i] >= 1.0f))
            sort_row(problem->logits + i * problem->stride, problem->vocab, problem->p[i],
                     problem->mask_value, workspace);
    return KERNEL_OK;
}

const struct topp_variant topp_cpu_sort = {
    .name = "sort",
    .summary = "stable radix sort, binary32 softmax and cumulative sum; keeps the higher tied ids",
    .device = KERNEL_DEVICE_CPU,
    .contract = "envelope",
    .max_batch = 0,
    .workspace_size = sort_workspace,
    .launch = sort_launch,
};
