#include "tests/kernels/gpu_shapes.h"

#include "tests/kernels/gpu_matrix.h"
#include "tests/kernels/gpu_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARIANTS = 5, PADDING = 3 };
static const char *const names[VARIANTS] = {"stock", "patched", "patched_fine", "sort", "floor"};

struct shape {
    int64_t vocab, batch;
    bool small;
};
static const struct shape shapes[] = {
    {1, 3, true},      {2, 64, false},     {7, 5, true},      {33, 64, true},
    {1000, 2, true},   {1027, 65, false},  {8193, 3, true},   {40001, 64, false},
    {50257, 1, false}, {128256, 2, false}, {70003, 9, false},
};
static const char *const families[] = {
    "peaked",   "normal",     "mixed",        "ties=step",    "ties=plateau",
    "adjacent", "masked=0.9", "masked=keep2", "forced=1e9@0", "forced=3e38@last",
    "flat=1",   "hazard=nan", "hazard=inf",   "hazard=empty", "hazard=subnormal",
};
enum { FAMILIES = sizeof families / sizeof families[0], SMALL_FAMILIES = 7 };

struct seen {
    int64_t rows, twin_equal, failures;
};

static bool same_bits(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

/* What holds for every variant: padding and p >= 1 rows untouched, each logit its own or the mask
 * value, something kept; floor: the oracle's set. Prints the first break of the case. */
static bool row_sound(const struct gpu_case *c, int64_t row, const float *out,
                      const struct nucleus *oracle, bool exact, bool stock) {
    const float *const in = c->rows + row * c->stride;
    const float *const got = out + row * c->stride;
    const bool ordinary = oracle->status == NUCLEUS_OK || oracle->status == NUCLEUS_AMBIGUOUS;
    int64_t kept = 0;
    for (int64_t t = 0; t < c->stride; t++) {
        const bool whole = t >= c->vocab || c->p[row] >= 1.0f;
        const bool stays = same_bits(in[t], got[t]);
        kept += t < c->vocab && stays && in[t] > -INFINITY;
        if (!stays && (whole || !same_bits(got[t], c->mask_value)))
            return false;
        if (exact && !whole && oracle->status == NUCLEUS_OK &&
            nucleus_keeps(oracle, in[t], t) != stays && in[t] > -INFINITY)
            return false;
    }
    return kept > 0 || !ordinary || stock;
}

static void check_variant(const struct gpu_case *c, const char *name, const struct nucleus *oracle,
                          float *out, float *twin_out, struct seen *seen) {
    const struct topp_variant *const variant = topp_find(name, KERNEL_DEVICE_CUDA);
    const struct topp_variant *const twin = topp_find(name, KERNEL_DEVICE_CPU);
    const size_t elements = (size_t)(c->batch * c->stride);
    if (variant->max_batch && c->batch > variant->max_batch)
        return;
    gpu_run(variant, c, c->batch % 2 ? GPU_GRAPH : GPU_STREAM, out, NULL);
    memcpy(twin_out, c->rows, elements * sizeof *twin_out);
    const struct topp_problem problem = {
        .logits = twin_out,
        .p = c->p,
        .batch = c->batch,
        .vocab = c->vocab,
        .stride = c->stride,
        .mask_value = c->mask_value,
        .sm_count = MATRIX_SM_COUNT,
        .boundary = c->boundary,
    };
    const size_t bytes = twin->workspace_size(&problem);
    void *const workspace = aligned_alloc(256, (bytes / 256 + 1) * 256);
    gpu_require(twin->launch(&problem, workspace, bytes, NULL), "twin");
    free(workspace);
    for (int64_t row = 0; row < c->batch; row++) {
        seen->rows++;
        seen->twin_equal += !memcmp(out + row * c->stride, twin_out + row * c->stride,
                                    (size_t)c->stride * sizeof *out);
        if (!row_sound(c, row, out, &oracle[row], variant->needs_boundary,
                       !strcmp(name, "stock"))) {
            printf("UNSOUND %s %s vocab %lld batch %lld row %lld\n", name, c->name,
                   (long long)c->vocab, (long long)c->batch, (long long)row);
            seen->failures++;
            return;
        }
    }
}

static void check_case(const struct shape *shape, const char *text, float p, int32_t misaligned,
                       struct seen *seen) {
    struct tb_error error = TB_ERROR_INIT;
    struct family family;
    struct logits rows = {0};
    const int64_t batch = shape->batch, vocab = shape->vocab;
    matrix_require(family_parse(text, &family, &error) == TB_OK, text, &error);
    const struct input_request request = {&family, batch, vocab, vocab + PADDING, 0, 42, NULL};
    matrix_require(input_make(&request, &rows, &error) == TB_OK, text, &error);
    float *const out = malloc((size_t)(batch * rows.stride) * sizeof *out);
    float *const twin = malloc((size_t)(batch * rows.stride) * sizeof *twin);
    float *const row_p = malloc((size_t)batch * sizeof *row_p);
    struct nucleus *const oracle = malloc((size_t)batch * sizeof *oracle);
    struct topp_boundary *const boundary = malloc((size_t)batch * sizeof *boundary);
    matrix_require(out && twin && row_p && oracle && boundary, text, NULL);
    for (int64_t row = 0; row < batch; row++)
        row_p[row] = family_row_p(&family, p, row);
    matrix_require(
        nucleus_rows(rows.data, batch, vocab, rows.stride, row_p, 1, 0, oracle, &error) == TB_OK,
        text, &error);
    for (int64_t row = 0; row < batch; row++) {
        boundary[row].logit =
            oracle[row].status == NUCLEUS_OK ? oracle[row].boundary_logit : -INFINITY;
        boundary[row].token = (int32_t)oracle[row].boundary_token;
    }
    const struct gpu_case c = {
        text,       rows.data, row_p, batch, vocab, rows.stride, misaligned % 2 ? -1e4f : -INFINITY,
        misaligned, boundary};
    for (int v = 0; v < VARIANTS; v++)
        check_variant(&c, names[v], oracle, out, twin, &seen[v]);
    free(out);
    free(twin);
    free(row_p);
    free(oracle);
    free(boundary);
    logits_free(&rows);
}

bool shapes_check(bool small) {
    static const float ps[] = {0.4f, 0.95f, 0.999f};
    struct seen seen[VARIANTS] = {0};
    bool good = true;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int f = 0; f < (small ? SMALL_FAMILIES : FAMILIES); f++)
            for (int i = 0; i < (small ? 1 : 3); i++)
                if (!small || shapes[s].small)
                    check_case(&shapes[s], families[f], ps[(i + f) % 3], (int32_t)(s + f) % 4,
                               seen);
    printf("\nshapes: strided, misaligned, every family\n");
    for (int v = 0; v < VARIANTS; v++) {
        printf("%-13s rows %lld, same as the CPU twin %lld (%.2f%%), unsound %lld\n", names[v],
               (long long)seen[v].rows, (long long)seen[v].twin_equal,
               100.0 * (double)seen[v].twin_equal / (double)seen[v].rows,
               (long long)seen[v].failures);
        good &= seen[v].failures == 0;
    }
    fflush(stdout);
    return good;
}
