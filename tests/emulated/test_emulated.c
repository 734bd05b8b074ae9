/* The CUDA variants on the emulated device beside the CPU variants of the same name: the same
 * masks, ids and noise. Both use the C library's exp and log here, so nothing may differ but the
 * order in which binary32 sums are taken. */
#include "kernels/cpu/variants.h"
#include "kernels/cuda/variants.h"
#include "tests/kernels/variant_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BATCH = 5, GUARD = 256, POISON = 0xA5 };
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { SLOW = 1 }; /* the least of everything */
#else
enum { SLOW = 0 };
#endif
static const float ps[BATCH] = {0.9f, 0.5f, 0.999f, 1.0f, 1e-6f};

static float logit_of(int kind, uint32_t row, uint32_t token, uint32_t vocab) {
    const float x = 3.0f * random_normal(5, row, token);
    switch (kind) {
    case 1: /* steps */
        return rintf(x * 4.0f) * 0.25f;
    case 2: /* forced: what upstream got wrong */
        return token == vocab - 1 ? 1e9f : x;
    case 3: /* masked */
        return random_word(6, row, token) % 10 ? -INFINITY : x;
    default:
        return x;
    }
}

static float *rows_of(int kind, int64_t batch, int64_t vocab, int64_t stride) {
    float *const rows = malloc((size_t)(batch * stride) * sizeof *rows);
    assert_non_null(rows);
    for (int64_t row = 0; row < batch; row++)
        for (int64_t t = 0; t < stride; t++)
            rows[row * stride + t] =
                t < vocab ? logit_of(kind, (uint32_t)row, (uint32_t)t, (uint32_t)vocab) : 3e38f;
    return rows;
}

/* Workspace as the contract demands it: aligned, poisoned, guarded. */
static void *workspace_of(size_t bytes) {
    unsigned char *const memory = aligned_alloc(256, (bytes + GUARD + 255) & ~(size_t)255);
    assert_non_null(memory);
    memset(memory, POISON, bytes + GUARD);
    return memory;
}

static void workspace_free(void *workspace, size_t bytes) {
    for (size_t i = 0; i < GUARD; i++)
        assert_int_equal(((unsigned char *)workspace)[bytes + i], POISON);
    free(workspace);
}

static void launch(const struct topp_variant *variant, float *rows, int64_t batch, int64_t vocab,
                   int64_t stride, int slices, const struct topp_boundary *boundary) {
    const struct topp_problem problem = {.logits = rows,
                                         .p = ps,
                                         .batch = batch,
                                         .vocab = vocab,
                                         .stride = stride,
                                         .mask_value = -INFINITY,
                                         .sm_count = 20, /* few slices: each is a block */
                                         .slices = slices,
                                         .boundary = boundary};
    const size_t bytes = variant->workspace_size(&problem);
    void *const workspace = workspace_of(bytes);
    assert_int_equal(variant->launch(&problem, workspace, bytes, NULL), KERNEL_OK);
    workspace_free(workspace, bytes);
}

/* Rows whose masks differ; padding never may. */
static int rows_unlike(const float *a, const float *b, int64_t vocab, int64_t stride) {
    int unlike = 0;
    for (int64_t row = 0; row < BATCH; row++) {
        unlike += rows_differ(a + row * stride, b + row * stride, vocab) != 0;
        assert_false(
            rows_differ(a + row * stride + vocab, b + row * stride + vocab, stride - vocab));
    }
    return unlike;
}

/* most: rows in a hundred that another order of sums may change. */
static void check_twin(const struct topp_variant *cuda, const struct topp_variant *cpu, int most) {
    static const int64_t vocabs[] = {1027, 1, 7, 6007};
    int rows = 0, unlike = 0;
    for (size_t k = 0; k < (SLOW ? 1 : sizeof vocabs / sizeof *vocabs); k++)
        for (int kind = 0; kind < 4; kind += SLOW ? 2 : 1) {
            const int64_t vocab = vocabs[k], stride = vocab + (int64_t)k % 3;
            float *const mine = rows_of(kind, BATCH, vocab, stride);
            float *const twin = rows_copy(mine, BATCH * stride);
            launch(cuda, mine, BATCH, vocab, stride, 0, NULL);
            launch(cpu, twin, BATCH, vocab, stride, 0, NULL);
            rows += BATCH;
            unlike += rows_unlike(mine, twin, vocab, stride);
            free(mine);
            free(twin);
        }
    if (unlike * 100 > most * rows)
        fail_msg("%s: %d of %d rows are masked unlike the CPU's", cuda->name, unlike, rows);
}

static void test_split(void **state) {
    (void)state;
    check_twin(&topp_cuda_patched_fine, &topp_cpu_patched_fine, 2);
    if (SLOW) /* the others differ in a rule and a size */
        return;
    check_twin(&topp_cuda_stock, &topp_cpu_stock, 2);
    check_twin(&topp_cuda_patched, &topp_cpu_patched, 2);
}

static void test_sort(void **state) {
    (void)state;
    check_twin(&topp_cuda_sort, &topp_cpu_sort, 2);
}

static void test_exact(void **state) {
    (void)state;
    check_twin(&topp_cuda_exact, &topp_cpu_exact, 0);
    check_twin(&topp_cuda_exact_portable, &topp_cpu_exact, 0);
}

static void test_floor(void **state) {
    (void)state;
    enum { VOCAB = 5003, STRIDE = 5004 };
    const struct topp_boundary boundary[BATCH] = {
        {1.5f, 4000}, {0.0f, -1}, {-1.0f, INT32_MAX}, {0.0f, 0}, {2.25f, 17}};
    float *const mine = rows_of(1, BATCH, VOCAB, STRIDE);
    float *const twin = rows_copy(mine, BATCH * STRIDE);
    launch(&topp_cuda_floor, mine, BATCH, VOCAB, STRIDE, 0, boundary);
    launch(&topp_cpu_floor, twin, BATCH, VOCAB, STRIDE, 0, boundary);
    assert_int_equal(rows_unlike(mine, twin, VOCAB, STRIDE), 0);
    free(mine);
    free(twin);
}

static void draw(const struct gumbel_variant *variant, const float *rows, int64_t vocab,
                 int64_t stride, int64_t *token, double *noise) {
    const int64_t seed[BATCH] = {1, -1, 0xABCD, INT64_MIN, 7};
    const int64_t position[BATCH] = {0, 3, 1 << 20, 5, 5};
    const float temperature[BATCH] = {1.0f, 0.5f, 2.0f, 0.0f, 1.0f};
    const struct gumbel_problem problem = {rows, BATCH,    vocab,       stride,
                                           seed, position, temperature, token};
    const size_t bytes = variant->workspace_size(&problem);
    void *const workspace = workspace_of(bytes);
    assert_int_equal(variant->launch(&problem, workspace, bytes, NULL), KERNEL_OK);
    workspace_free(workspace, bytes);
    assert_int_equal(variant->noise(&problem, noise, NULL), KERNEL_OK);
}

/* Ids are the same; noise is, but for the last places of two logarithms. */
static void test_gumbel(void **state) {
    (void)state;
    static const int64_t vocabs[] = {1000, 33, 1, 12345};
    static const struct gumbel_variant *const variants[] = {&gumbel_cuda_log, &gumbel_cuda_log1p,
                                                            &gumbel_cuda_fp64, &gumbel_cuda_murmur};
    for (size_t n = 0; n < sizeof variants / sizeof *variants; n++)
        for (size_t k = 0; k < (SLOW ? 1 : sizeof vocabs / sizeof *vocabs); k++) {
            const struct gumbel_variant *const cpu =
                gumbel_find(variants[n]->name, KERNEL_DEVICE_CPU);
            const int64_t vocab = vocabs[k], stride = vocab + (int64_t)k;
            float *const rows = rows_of((int)k, BATCH, vocab, stride);
            double *const mine = calloc((size_t)(BATCH * vocab), sizeof *mine);
            double *const twin = calloc((size_t)(BATCH * vocab), sizeof *twin);
            int64_t token[BATCH], token_twin[BATCH];
            assert_true(cpu && mine && twin);
            draw(variants[n], rows, vocab, stride, token, mine);
            draw(cpu, rows, vocab, stride, token_twin, twin);
            assert_memory_equal(token, token_twin, sizeof token);
            for (int64_t i = 0; i < BATCH * vocab; i++)
                if (!(fabs(mine[i] - twin[i]) <= 1e-5 * (1.0 + fabs(twin[i]))) &&
                    mine[i] != twin[i])
                    fail_msg("%s: noise %lld is %.9g, on the CPU %.9g", variants[n]->name,
                             (long long)i, mine[i], twin[i]);
            free(rows);
            free(mine);
            free(twin);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split), cmocka_unit_test(test_sort),   cmocka_unit_test(test_exact),
        cmocka_unit_test(test_floor), cmocka_unit_test(test_gumbel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
