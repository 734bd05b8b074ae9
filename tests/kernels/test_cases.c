/* Faults from public bug reports, as rows named by the report's id: what other kernels got wrong.
 * ker-04 (rows past 2^31 elements) is gpu_far.c, on a GPU machine. */
#include "tests/kernels/variant_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NINF (-INFINITY)
#ifdef __SANITIZE_ADDRESS__
enum { SCALE = 8 }; /* instrumented: fewer rows and repetitions, same shapes */
#else
enum { SCALE = 1 };
#endif

static const char *const all_variants[] = {"stock", "patched", "patched_fine", "sort", "exact"};
enum { VARIANTS = 5 };

static float *rows_new(int64_t count) {
    float *const rows = malloc((size_t)count * sizeof *rows);
    assert_non_null(rows);
    return rows;
}

static void launch(const char *variant, float *rows, const float *p, int64_t batch, int64_t vocab,
                   int64_t stride, int slices) {
    struct run run = {variant, rows, p, batch, vocab, stride, slices, NULL, 0};
    assert_int_equal(run_variant(&run), KERNEL_OK);
}

static int64_t count_kept(const float *row, int64_t vocab) {
    int64_t kept = 0;
    for (int64_t i = 0; i < vocab; i++)
        kept += row[i] != NINF;
    return kept;
}

/* One logit of 1e9: only it stays, but stock masks every token. */
static void ker_01(void **state) {
    (void)state;
    enum { VOCAB = 151936 };
    static const int64_t ids[] = {0, 13, VOCAB - 1, VOCAB / 8192 * 8192};
    static const float ps[] = {0.1f, 0.95f, 0.9999999f};
    float *const in = rows_new(VOCAB), *const out = rows_new(VOCAB);
    for (int dead = 0; dead < 2; dead++)
        for (size_t k = 0; k < 4; k++)
            for (int v = 0; v < VARIANTS; v++) {
                const float p = ps[(k + (size_t)v) % 3];
                for (int64_t i = 0; i < VOCAB; i++)
                    in[i] = dead ? NINF : random_normal(1, 0, (uint32_t)i);
                in[ids[k]] = 1e9f;
                memcpy(out, in, VOCAB * sizeof *out);
                launch(all_variants[v], out, &p, 1, VOCAB, VOCAB, 0);
                /* One valid token leaves the split search nothing to do, for stock too. */
                const int masked = !strcmp(all_variants[v], "stock") && !dead;
                assert_int_equal(count_kept(out, VOCAB), masked ? 0 : 1);
                assert_true(masked || out[ids[k]] == 1e9f);
            }
    free(in);
    free(out);
}

/* Rows of several kinds in one batch: each masked once, the same in batches of 1, 64 and 65. */
static void ker_02(void **state) {
    (void)state;
    enum { BATCH = 65, VOCAB = 1000 };
    float *const in = rows_new(BATCH * VOCAB), p[BATCH];
    for (int r = 0; r < BATCH; r++) {
        p[r] = r % 4 == 1 || r % 4 == 3 ? 0.9f : 1.0f;
        for (int i = 0; i < VOCAB; i++)
            in[r * VOCAB + i] =
                r % 4 == 3 && i % 200 != 7 ? NINF : random_normal(2, (uint32_t)r, (uint32_t)i);
    }
    for (int v = 0; v < VARIANTS; v++) {
        const int many = v >= 3; /* the split variants end at 64, and refuse 65 */
        float *const one = rows_copy(in, BATCH * VOCAB), *const all = rows_copy(in, BATCH * VOCAB);
        launch(all_variants[v], all, p, many ? 65 : 64, VOCAB, VOCAB, 8);
        for (int r = 0; r < 64; r++) {
            float *const row = one + r * VOCAB;
            launch(all_variants[v], row, &p[r], 1, VOCAB, VOCAB, 8);
            assert_false(rows_differ(row, all + r * VOCAB, VOCAB));
            if (r % 4 == 3)
                assert_in_range(count_kept(row, VOCAB), 1, 5);
            else
                assert_int_equal(p[r] >= 1.0f, !rows_differ(row, in + r * VOCAB, VOCAB));
        }
        if (many) {
            float *const most = rows_copy(in, BATCH * VOCAB);
            launch(all_variants[v], most, p, 64, VOCAB, VOCAB, 0);
            assert_false(rows_differ(most, all, 64 * VOCAB));
            free(most);
        } else {
            struct run run = {all_variants[v], one, p, 65, VOCAB, VOCAB, 0, NULL, 0};
            assert_int_equal(run_variant(&run), KERNEL_UNSUPPORTED);
        }
        if (!strcmp(all_variants[v], "exact"))
            assert_oracle_mask(in, all, 65, VOCAB, VOCAB, p, "ker-02");
        free(one);
        free(all);
    }
    free(in);
}

/* A padded vocabulary: the same mask as a packed copy, the padding neither read nor written. */
static void ker_03(void **state) {
    (void)state;
    enum { VOCAB = 100278, STRIDE = 100288, BATCH = 192 / SCALE / 4 * 4 };
    float *const padded = rows_new((int64_t)BATCH * STRIDE);
    float *const packed = rows_new((int64_t)BATCH * VOCAB), p[BATCH];
    for (int v = 0; v < VARIANTS; v++) {
        const int64_t batch = v >= 3 ? BATCH : 8;
        for (int64_t r = 0; r < batch; r++) {
            p[r] = 0.95f;
            for (int64_t i = 0; i < STRIDE; i++)
                padded[r * STRIDE + i] =
                    i < VOCAB ? (float)(int32_t)random_word(3, (uint32_t)r, (uint32_t)i) * 0x1p-28f
                              : 3e38f;
            memcpy(packed + r * VOCAB, padded + r * STRIDE, VOCAB * sizeof *packed);
        }
        launch(all_variants[v], padded, p, batch, VOCAB, STRIDE, 0);
        launch(all_variants[v], packed, p, batch, VOCAB, VOCAB, 0);
        for (int64_t r = 0; r < batch; r++) {
            assert_false(rows_differ(padded + r * STRIDE, packed + r * VOCAB, VOCAB));
            for (int64_t i = VOCAB; i < STRIDE; i++)
                assert_true(padded[r * STRIDE + i] == 3e38f);
        }
    }
    free(padded);
    free(packed);
}

/* Sharp rows and p near 1: the nucleus, whatever the number of slices is. */
static void ker_05(void **state) {
    (void)state;
    enum { VOCAB = 154880, BATCH = 4 };
    static const float ps[BATCH] = {0.99f, 0.999f, 0.9999f, 0.999999f};
    float *const in = rows_new((int64_t)BATCH * VOCAB);
    for (int64_t i = 0; i < (int64_t)BATCH * VOCAB; i++)
        in[i] = random_normal(5, (uint32_t)(i / VOCAB), (uint32_t)(i % VOCAB));
    for (int64_t r = 0; r < BATCH; r++)
        for (int64_t k = 0; k <= r; k++)
            in[r * VOCAB + 1000 * k + 77] = 30.0f - (float)k;
    float *const exact = rows_copy(in, (int64_t)BATCH * VOCAB);
    launch("exact", exact, ps, BATCH, VOCAB, VOCAB, 0);
    assert_oracle_mask(in, exact, BATCH, VOCAB, VOCAB, ps, "ker-05");
    for (int slices = 1; slices <= 32; slices *= 4) {
        float *const out = rows_copy(in, (int64_t)BATCH * VOCAB);
        launch("patched", out, ps, BATCH, VOCAB, VOCAB, slices);
        assert_false(rows_differ(out, exact, (int64_t)BATCH * VOCAB));
        free(out);
    }
    free(exact);
    free(in);
}

/* A thousand seeds: not one row may stop short of p. */
static void ker_06(void **state) {
    (void)state;
    enum { VOCAB = 500, SEEDS = 1024, BATCH = 64 };
    float *const in = rows_new(BATCH * VOCAB), p[BATCH];
    for (uint32_t first = 0; first < SEEDS; first += BATCH) {
        for (int64_t r = 0; r < BATCH; r++) {
            p[r] = 0.9f;
            for (int64_t i = 0; i < VOCAB; i++)
                in[r * VOCAB + i] = random_normal(first + (uint32_t)r, 6, (uint32_t)i);
        }
        float *const out = rows_copy(in, BATCH * VOCAB);
        launch("exact", out, p, BATCH, VOCAB, VOCAB, 0);
        assert_oracle_mask(in, out, BATCH, VOCAB, VOCAB, p, "ker-06");
        free(out);
    }
    free(in);
}

/* A few distinct values (bfloat16 logits), and rows with one valid token: every search ends. */
static void ker_07(void **state) {
    (void)state;
    enum { VOCAB = 100352, BATCH = 4 };
    static const float values[3][4] = {{-25.125f, -25.0f, -24.875f, -25.0f},
                                       {-14.0625f, -14.0f, -13.9375f, -13.875f},
                                       {-7.90625f, -7.78125f, -7.6875f, -7.59375f}};
    const float p[BATCH] = {0.9f, 0.5f, 0.99f, 0.7f};
    float *const in = rows_new((int64_t)BATCH * VOCAB);
    for (int64_t i = 0; i < (int64_t)BATCH * VOCAB; i++) {
        const int64_t r = i / VOCAB, token = i % VOCAB;
        in[i] = r == 3 ? (token == 5 ? -2.0f : NINF)
                       : values[r][random_word(7, (uint32_t)r, (uint32_t)token) % 4];
    }
    for (int v = 0; v < VARIANTS; v++) {
        float *const out = rows_copy(in, (int64_t)BATCH * VOCAB);
        launch(all_variants[v], out, p, BATCH, VOCAB, VOCAB, 0);
        if (!strcmp(all_variants[v], "exact"))
            assert_oracle_mask(in, out, BATCH, VOCAB, VOCAB, p, "ker-07");
        for (int64_t r = 0; r < BATCH; r++)
            assert_true(count_kept(out + r * VOCAB, VOCAB) >= 1);
        assert_int_equal(count_kept(out + 3 * VOCAB, VOCAB), 1);
        free(out);
    }
    free(in);
}

/* NaN and empty rows: the launch ends, invents nothing and leaves the neighbours right. */
static void ker_08_09(void **state) {
    (void)state;
    enum { VOCAB = 5000, BATCH = 6, LAST = BATCH - 1 };
    float *const in = rows_new(BATCH * VOCAB), p[BATCH];
    for (int64_t i = 0; i < BATCH * VOCAB; i++)
        in[i] = random_normal(8, (uint32_t)(i / VOCAB), (uint32_t)(i % VOCAB));
    for (int64_t i = 0; i < VOCAB; i++) {
        in[1 * VOCAB + i] = NAN;                 /* all NaN */
        in[3 * VOCAB + i] = i == 9 ? NAN : NINF; /* -inf with one NaN */
        in[4 * VOCAB + i] = NINF;                /* nothing allowed */
    }
    in[2 * VOCAB + 4321] = NAN; /* one NaN among finite ones */
    for (int r = 0; r < BATCH; r++)
        p[r] = 0.9f;
    for (int v = 0; v < VARIANTS; v++) {
        float *const out = rows_copy(in, BATCH * VOCAB), *const alone =
                                                             rows_copy(in, BATCH * VOCAB);
        launch(all_variants[v], out, p, BATCH, VOCAB, VOCAB, 8);
        for (int r = 0; r < BATCH; r += LAST) {
            launch(all_variants[v], alone + r * VOCAB, p, 1, VOCAB, VOCAB, 8);
            assert_false(rows_differ(out + r * VOCAB, alone + r * VOCAB, VOCAB));
        }
        assert_false(rows_differ(out + 4 * VOCAB, in + 4 * VOCAB, VOCAB));
        for (int64_t i = 0; i < VOCAB; i++) /* no NaN where none was */
            assert_true(isnan(in[2 * VOCAB + i]) || !isnan(out[2 * VOCAB + i]));
        free(out);
        free(alone);
    }
    free(in);
}

/* Repeated runs give the same bits; a tie across the boundary is cut alike alone and in a batch. */
static void ker_10(void **state) {
    (void)state;
    enum { VOCAB = 1000000, RUNS = 100 / SCALE, TIED = 4000, BATCH = 8 };
    float *const in = rows_new(VOCAB), *const first = rows_new(VOCAB), *const out = rows_new(VOCAB);
    const float p[BATCH] = {0.9f, 0.9f, 0.9f, 0.9f, 0.9f, 0.9f, 0.9f, 0.9f};
    for (int64_t i = 0; i < VOCAB; i++) {
        const double x = (double)i * 3.14159265358979323846;
        in[i] = (float)log(x - floor(x)); /* token 0 has weight 0: -inf */
    }
    for (int v = 3; v < VARIANTS; v++)
        for (int run = 0; run < (v == 3 ? RUNS / 4 : RUNS); run++) {
            float *const to = run ? out : first;
            memcpy(to, in, VOCAB * sizeof *in);
            launch(all_variants[v], to, p, 1, VOCAB, VOCAB, 0);
            assert_false(run && rows_differ(first, out, VOCAB));
        }
    assert_oracle_mask(in, first, 1, VOCAB, VOCAB, p, "ker-10");
    for (int64_t i = 0; i < BATCH * TIED; i++)
        in[i] =
            i % TIED % 3 < 2 && i % TIED < 3072 ? 4.0f : random_normal(10, 0, (uint32_t)(i % TIED));
    for (int v = 0; v < VARIANTS; v++) {
        memcpy(first, in, TIED * sizeof *in);
        memcpy(out, in, BATCH * TIED * sizeof *in);
        launch(all_variants[v], first, p, 1, TIED, TIED, 4);
        launch(all_variants[v], out, p, BATCH, TIED, TIED, 4);
        for (int r = 0; r < BATCH; r++)
            assert_false(rows_differ(first, out + r * TIED, TIED));
    }
    free(in);
    free(first);
    free(out);
}

/* Nearly all logits in one coarse bucket, far more than a side buffer would hold. */
static void ker_11(void **state) {
    (void)state;
    static const int64_t vocabs[] = {65536, 1048576};
    for (size_t k = 0; k < 2; k++)
        for (uint32_t seed = 0; seed < (SCALE > 1 && k ? 1u : 4u); seed++) {
            const float p = 0.6f;
            float *const in = rows_new(vocabs[k]);
            for (int64_t i = 0; i < vocabs[k]; i++)
                in[i] = i % 5000 == 17 ? random_normal(seed, 11, (uint32_t)i)
                                       : 5.0f + random_normal(seed, 11, (uint32_t)i) * 0x1p-13f;
            float *const out = rows_copy(in, vocabs[k]);
            launch("exact", out, &p, 1, vocabs[k], vocabs[k], 0);
            assert_oracle_mask(in, out, 1, vocabs[k], vocabs[k], &p, "ker-11");
            free(out);
            free(in);
        }
}

/* All probability on token 1: p = 1 leaves the row, less leaves that token. */
static void ker_12(void **state) {
    (void)state;
    enum { VOCAB = 32000 };
    static const float ps[] = {1.0f, 0.99f};
    float *const in = rows_new(VOCAB), *const out = rows_new(VOCAB);
    for (int64_t i = 0; i < VOCAB; i++)
        in[i] = i == 1 ? 0.0f : -200.0f;
    for (int v = 0; v < VARIANTS; v++)
        for (int k = 0; k < 2; k++) {
            memcpy(out, in, VOCAB * sizeof *in);
            launch(all_variants[v], out, &ps[k], 1, VOCAB, VOCAB, 0);
            assert_int_equal(count_kept(out, VOCAB), k ? 1 : VOCAB);
            assert_true(out[1] == 0.0f);
        }
    free(in);
    free(out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ker_01),    cmocka_unit_test(ker_02), cmocka_unit_test(ker_03),
        cmocka_unit_test(ker_05),    cmocka_unit_test(ker_06), cmocka_unit_test(ker_07),
        cmocka_unit_test(ker_08_09), cmocka_unit_test(ker_10), cmocka_unit_test(ker_11),
        cmocka_unit_test(ker_12),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
