/* Every CPU variant on rows small enough to work out by hand; the registry; the parts shared with
 * the GPU: philox words, slices, the vector exponentials. */
#include "kernels/cpu/vector_exp.h"
#include "kernels/gumbel.h"
#include "kernels/philox.h"
#include "kernels/split_search.h"
#include "tests/kernels/variant_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define NINF (-INFINITY)

enum { SMALL = 8 };

/* Expected masks: '1' kept, '0' dropped. A '=' row stays as it is, -inf included. */
struct small_case {
    const char *name;
    float p;
    int64_t vocab;
    float logits[SMALL];
    const char *stock, *patched, *fine, *sort, *exact;
};

static const struct small_case small_cases[] = {
    {"0.50 0.35 0.10 0.05 crosses 0.9 in the third",
     0.9f,
     4,
     {-0.6931472f, -1.0498221f, -2.3025851f, -2.9957323f},
     "1110",
     "1110",
     "1110",
     "1110",
     "1110"},
    {"0.4 0.3 0.2 0.1 crosses 0.8 in the third",
     0.8f,
     4,
     {-0.9162907f, -1.2039728f, -1.6094379f, -2.3025851f},
     "1110",
     "1110",
     "1110",
     "1110",
     "1110"},
    {"order of ids does not matter",
     0.8f,
     4,
     {-2.3025851f, -1.6094379f, -1.2039728f, -0.9162907f},
     "0111",
     "0111",
     "0111",
     "0111",
     "0111"},
    /* sort counts from below: ids 1 and 2 of the tie fall, 3 stays. */
    {"a tie across the boundary: 1 2 2 2 3",
     0.7f,
     5,
     {1, 2, 2, 2, 3},
     "01101",
     "01101",
     "01101",
     "00111",
     "01101"},
    {"+0 and -0 are one logit", 0.5f, 3, {0.0f, -0.0f, -3.0f}, "110", "110", "110", "110", "110"},
    {"tiny p keeps the argmax", 1e-8f, 4, {0, 1, 5, 2}, "0010", "0010", "0010", "0010", "0010"},
    {"p of 1 leaves the row", 1.0f, 4, {0, NINF, 5, 2}, "=", "=", "=", "=", "="},
    {"p above 1 leaves the row", 1.5f, 3, {0, 1, 5}, "=", "=", "=", "=", "="},
    {"a row of only -inf is left", 0.5f, 3, {NINF, NINF, NINF}, "=", "=", "=", "=", "="},
    {"one valid token", 0.5f, 3, {NINF, -7, NINF}, "=", "=", "=", "010", "010"},
    {"-inf never counts",
     0.9f,
     5,
     {NINF, 0, NINF, -1, -9},
     "01010",
     "01010",
     "01010",
     "01010",
     "01010"},
    /* The split search leaves rows of equal probabilities whole; sort keeps the higher ids. */
    {"all equal", 0.5f, 4, {1, 1, 1, 1}, "=", "=", "=", "0011", "1100"},
    /* log(pivot) + log(Z) + M rounds to M: stock masks everything. */
    {"a forced token", 0.95f, 4, {0, 1e9f, 1, 2}, "0000", "0100", "0100", "0100", "0100"},
    {"a forced token at 3e38",
     0.1f,
     4,
     {3e38f, -3e38f, 1, 2},
     "0000",
     "1000",
     "1000",
     "1000",
     "1000"},
    {"a vocabulary of one", 0.5f, 1, {-3}, "=", "=", "=", "1", "1"},
    {"subnormal logits", 0.5f, 4, {1e-45f, 0, 2e-45f, -1e-45f}, "=", "=", "=", "1010", "1010"},
    {"binary32 p just over the paper sum",
     0.8f,
     4,
     {-1.2039728f, -2.3025851f, -2.3025851f, -0.6931472f},
     NULL,
     NULL,
     NULL,
     NULL,
     "1101"},
};

static void check_small(const struct small_case *c, const char *variant, const char *want) {
    float row[SMALL], out[SMALL];
    if (!want)
        return;
    for (int i = 0; i < SMALL; i++)
        row[i] = out[i] = i < c->vocab ? c->logits[i] : 42.0f;
    struct run run = {variant, out, &c->p, 1, c->vocab, c->vocab, 0, NULL, 0};
    assert_int_equal(run_variant(&run), KERNEL_OK);
    for (int i = 0; i < SMALL; i++) {
        const int keep = i >= c->vocab || want[0] == '=' || want[i] == '1';
        const float expect = keep ? row[i] : NINF;
        if (memcmp(&expect, &out[i], sizeof expect))
            fail_msg("%s, %s: token %d is %g, not %g", variant, c->name, i, (double)out[i],
                     (double)expect);
    }
}

static void test_small_rows(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof small_cases / sizeof *small_cases; i++) {
        const struct small_case *const c = &small_cases[i];
        check_small(c, "stock", c->stock);
        check_small(c, "patched", c->patched);
        check_small(c, "patched_fine", c->fine);
        check_small(c, "sort", c->sort);
        check_small(c, "exact", c->exact);
    }
}

/* 20000 equal logits above a floor, in one slice: tiles of 8192 restart stock's and patched's
 * numbering of the tied tokens, patched_fine's runs through. */
static void test_tie_fault(void **state) {
    (void)state;
    enum { TIED = 20000, VOCAB = 30000 };
    enum { NUCLEUS = 4998, LAST_TILE = TIED - 2 * SPLIT_MASK_TILE };
    static const struct {
        const char *variant;
        int64_t kept, tolerance;
    } cases[] = {{"exact", NUCLEUS, 0},
                 {"patched_fine", NUCLEUS, 3},
                 {"patched", 2 * NUCLEUS + LAST_TILE, 6},
                 {"stock", 2 * NUCLEUS + LAST_TILE, 6}};
    float *const row = malloc(VOCAB * sizeof *row);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const float p = 0.2499f;
        for (int i = 0; i < VOCAB; i++)
            row[i] = i < TIED ? 1.0f : -20.0f;
        struct run run = {cases[k].variant, row, &p, 1, VOCAB, VOCAB, 1, NULL, 0};
        assert_int_equal(run_variant(&run), KERNEL_OK);
        int64_t kept = 0;
        for (int i = 0; i < VOCAB; i++)
            kept += row[i] != NINF;
        /* The split search's mass is a binary32 sum: its count may be off by a few a restart. */
        if (llabs(kept - cases[k].kept) > cases[k].tolerance)
            fail_msg("%s keeps %lld ties", cases[k].variant, (long long)kept);
    }
    free(row);
}

static void test_floor(void **state) {
    (void)state;
    float rows[3][6] = {{1, 2, 2, 2, 3, 9}, {1, 2, 3, 4, 5, 9}, {1, NINF, 3, 4, 5, 9}};
    const float want[3][6] = {{NINF, 2, 2, NINF, 3, 9}, {1, 2, 3, 4, 5, 9}, {1, NINF, 3, 4, 5, 9}};
    const float p[3] = {0.7f, 1.0f, 0.5f};
    const struct topp_boundary boundary[3] = {{2, 2}, {5, 4}, {NINF, 0}};
    struct run run = {"floor", rows[0], p, 3, 5, 6, 0, boundary, 0};
    assert_int_equal(run_variant(&run), KERNEL_OK);
    assert_memory_equal(rows, want, sizeof rows);
    run.boundary = NULL;
    assert_int_equal(run_variant(&run), KERNEL_UNSUPPORTED);
}

static void test_registry(void **state) {
    (void)state;
    size_t count, gumbels;
    const struct topp_variant *const *const v = topp_variants(&count);
    const struct gumbel_variant *const *const g = gumbel_variants(&gumbels);
    assert_true(count >= 6);
    for (size_t i = 0; i < count; i++) {
        assert_true(v[i]->name && v[i]->name[0] && v[i]->summary && v[i]->summary[0]);
        assert_true(v[i]->contract && v[i]->workspace_size && v[i]->launch);
        assert_true(!strcmp(v[i]->contract, "exact") || !strcmp(v[i]->contract, "bounded") ||
                    !strcmp(v[i]->contract, "conservative") || !strcmp(v[i]->contract, "envelope"));
        assert_ptr_equal(topp_find(v[i]->name, v[i]->device), v[i]); /* the first of its name */
        assert_true(i == 0 || v[i - 1]->device <= v[i]->device);
    }
    assert_null(v[count]);
    assert_null(topp_find("no such variant", KERNEL_DEVICE_CPU));
    for (size_t i = 0; i < gumbels; i++) {
        assert_true(g[i]->name && g[i]->summary && g[i]->workspace_size && g[i]->launch);
        assert_ptr_equal(gumbel_find(g[i]->name, g[i]->device), g[i]);
    }
}

/* Limits: no launch beyond max_batch, none with too small a workspace; nothing written then. */
static void test_limits(void **state) {
    (void)state;
    size_t count;
    const struct topp_variant *const *const v = topp_variants(&count);
    float logits[65 * 4], p[65];
    for (int i = 0; i < 65; i++) {
        p[i] = 0.5f;
        for (int k = 0; k < 4; k++)
            logits[4 * i + k] = (float)k;
    }
    float *const before = rows_copy(logits, 65 * 4);
    for (size_t i = 0; i < count && v[i]->device == KERNEL_DEVICE_CPU; i++) {
        if (v[i]->max_batch == 0)
            continue;
        struct run run = {v[i]->name, logits, p, v[i]->max_batch + 1, 4, 4, 0, NULL, 0};
        assert_int_equal(run_variant(&run), KERNEL_UNSUPPORTED);
    }
    for (size_t i = 0; i < count && v[i]->device == KERNEL_DEVICE_CPU; i++) {
        const struct topp_problem problem = {
            .logits = logits, .p = p, .batch = 2, .vocab = 4, .stride = 4, .sm_count = 132};
        const size_t bytes = v[i]->workspace_size(&problem);
        if (bytes)
            assert_int_equal(v[i]->launch(&problem, NULL, bytes - 1, NULL), KERNEL_WORKSPACE);
    }
    assert_false(rows_differ(before, logits, 65 * 4));
    free(before);
}

/* sort against the same definition with qsort and long sums. */
static int ascending(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void test_sort_reference(void **state) {
    (void)state;
    static const int64_t vocabs[] = {1, 2, 17, 255, 256, 257, 5000};
    static const float ps[] = {0.1f, 0.5f, 0.9f, 0.999f};
    for (size_t k = 0; k < sizeof vocabs / sizeof *vocabs; k++)
        for (size_t q = 0; q < sizeof ps / sizeof *ps; q++) {
            const int64_t vocab = vocabs[k];
            float *const row = malloc((size_t)vocab * sizeof *row);
            for (int64_t i = 0; i < vocab; i++)
                row[i] = rintf(random_normal(5, (uint32_t)k, (uint32_t)i) * 64.0f) / 32.0f;
            float *const sorted = rows_copy(row, vocab);
            qsort(sorted, (size_t)vocab, sizeof *sorted, ascending);
            double sum = 0.0, running = 0.0;
            for (int64_t i = 0; i < vocab; i++)
                sum += exp((double)sorted[i] - (double)sorted[vocab - 1]);
            int64_t want = vocab, got = 0;
            for (int64_t i = 0; i < vocab - 1; i++) {
                running += exp((double)sorted[i] - (double)sorted[vocab - 1]) / sum;
                want -= running <= (double)(1.0f - ps[q]);
            }
            struct run run = {"sort", row, &ps[q], 1, vocab, vocab, 0, NULL, 0};
            assert_int_equal(run_variant(&run), KERNEL_OK);
            for (int64_t i = 0; i < vocab; i++) {
                got += row[i] != NINF;
                assert_true(row[i] == NINF || row[i] >= sorted[vocab - want]);
            }
            if (llabs(got - want) > 1)
                fail_msg("vocab %lld p %g: %lld kept, %lld expected", (long long)vocab,
                         (double)ps[q], (long long)got, (long long)want);
            free(sorted);
            free(row);
        }
}

static void test_slices(void **state) {
    (void)state;
    static const struct {
        int64_t batch, vocab;
        int sms, fine, slices;
    } cases[] = {{1, 1000, 132, 0, 32},    {4, 128256, 132, 0, 32},  {16, 128256, 132, 0, 8},
                 {64, 128256, 132, 0, 2},  {64, 128256, 132, 1, 16}, {64, 32000, 132, 1, 4},
                 {64, 262144, 132, 1, 32}, {64, 1000, 132, 1, 2},    {64, 1000, 16, 0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(split_slices(cases[i].batch, cases[i].vocab, cases[i].sms, cases[i].fine),
                         cases[i].slices);
    assert_int_equal(split_slice_begin(10, 4, 3), 9);
    assert_int_equal(split_slice_begin(10, 4, 4), 10);
    assert_int_equal(split_slice_begin(1, 32, 31), 1);
}

static void test_philox(void **state) {
    (void)state;
    const struct philox_words zero = philox4x32(0, 0, 0, 0, 0, 0);
    assert_int_equal(zero.w0, 0x6627e8d5);
    assert_int_equal(zero.w1, 0xe169c58d);
    assert_int_equal(zero.w2, 0xbc57ac4c);
    assert_int_equal(zero.w3, 0x9b00dbd8);
    assert_int_equal(philox4x32(7, 0, 0, 0, 0xABCD, 0).w0, 78255843);
}

static void test_vector_exp(void **state) {
    (void)state;
    double worst32 = 0.0, worst64 = 0.0;
    for (int i = 0; i < 200000; i++) {
        const float x = -87.0f * (float)i / 200000.0f, y = -708.0f * (float)i / 200000.0f;
        const float e = exp_f32x16(f32x16_set(x))[0];
        const double d = exp_f64x8(f64x8_set((double)y))[0];
        const double off32 = fabs((double)e / exp((double)x) - 1.0);
        const double off64 = fabs(d / exp((double)y) - 1.0);
        worst32 = off32 > worst32 ? off32 : worst32;
        worst64 = off64 > worst64 ? off64 : worst64;
    }
    assert_true(worst32 < 0x1p-23);
    assert_true(worst64 < EXP_F64X8_ERROR);
    assert_true(exp_f32x16(f32x16_set(0.0f))[0] == 1.0f);
    assert_true(exp_f32x16(f32x16_set(NINF))[0] == 0.0f);
    assert_true(isnan(exp_f32x16(f32x16_set(NAN))[0]));
    assert_true(exp_f64x8(f64x8_set(NINF))[0] == 0.0);
    assert_true(isnan(exp_f64x8(f64x8_set((double)NAN))[0]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_rows), cmocka_unit_test(test_tie_fault),
        cmocka_unit_test(test_floor),      cmocka_unit_test(test_registry),
        cmocka_unit_test(test_limits),     cmocka_unit_test(test_sort_reference),
        cmocka_unit_test(test_slices),     cmocka_unit_test(test_philox),
        cmocka_unit_test(test_vector_exp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
