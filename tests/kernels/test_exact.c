/* `exact` against the binary64 reference: every row equal, alone or in company, and rows planted
 * on the target, which the fast sums can not decide, escalated and still equal. */
#include "tests/kernels/variant_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NINF (-INFINITY)

enum shape {
    NORMAL,
    PEAKED,
    STEPS,
    PLATEAU,
    ADJACENT,
    MASKED,
    FORCED,
    HUGE_SPREAD,
    SUBNORMAL,
    NEGATIVE,
    SHAPES
};

static float logit_of(enum shape shape, uint32_t seed, uint32_t row, uint32_t token,
                      int64_t vocab) {
    const float x = random_normal(seed, row, token);
    const uint32_t word = random_word(seed, row, token);
    const uint32_t one = 0x3F800000u + word % 8;
    float adjacent;
    memcpy(&adjacent, &one, sizeof adjacent);
    switch (shape) {
    case PEAKED:
        return x * 2.5f + (token < 64 ? random_normal(seed, row + 99, token) * 6.0f : 0.0f);
    case STEPS:
        return rintf(x * 4.0f) * 0.25f;
    case PLATEAU:
        return word % 4 ? 1.0f : x;
    case ADJACENT:
        return adjacent;
    case MASKED:
        return word % 10 && token != 3 ? NINF : x;
    case FORCED:
        return token == (uint32_t)vocab - 1 ? 1e9f / 0.6f : x;
    case HUGE_SPREAD:
        return x * 3e37f;
    case SUBNORMAL:
        return x * 0x1p-140f;
    case NEGATIVE:
        return x * 5.0f - 3e4f;
    default:
        return x;
    }
}

static const float ps[] = {
    0.1f,   0.3f, 0.5f, 0.8f, 0.9f, 0.95f, 0.99f, 0.999f, 1e-6f, 1.0f - 0x1p-10f, 1.0f - 0x1p-24f,
    1e-45f, 1.0f, 0.7f};

/* Batches of mixed p, padded strides, rows that start anywhere in a cache line. */
static void test_against_oracle(void **state) {
    (void)state;
    static const int64_t vocabs[] = {1, 2, 7, 8, 9, 63, 64, 65, 511, 513, 1000, 4099, 20011};
    int64_t rows = 0, escalated = 0;
    for (size_t k = 0; k < sizeof vocabs / sizeof *vocabs; k++)
        for (int shape = 0; shape < SHAPES; shape++) {
            enum { BATCH = sizeof ps / sizeof *ps };
            const int64_t vocab = vocabs[k], stride = vocab + 1 + (int64_t)(k + (size_t)shape) % 5;
            const int64_t count = (BATCH - 1) * stride + vocab;
            float *const in = malloc((size_t)count * sizeof *in);
            assert_non_null(in);
            for (int64_t i = 0; i < count; i++)
                in[i] = i % stride < vocab
                            ? logit_of((enum shape)shape, (uint32_t)k, (uint32_t)(i / stride),
                                       (uint32_t)(i % stride), vocab)
                            : 3e38f;
            float *const out = rows_copy(in, count);
            struct run run = {"exact", out, ps, BATCH, vocab, stride, 0, NULL, 0};
            assert_int_equal(run_variant(&run), KERNEL_OK);
            assert_oracle_mask(in, out, BATCH, vocab, stride, ps, "exact");
            if (shape == NORMAL || shape == PEAKED) {
                rows += BATCH;
                escalated += run.escalated;
            }
            free(out);
            free(in);
        }
    /* Ordinary rows are decided by the fast sums, or the kernel is fast for nothing. */
    assert_true(escalated * 20 < rows);
}

/* Sums that meet the target exactly: 2^k equal logits at p = j / 2^k, with and without a dead tail.
 */
static void test_planted_escalation(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t valid, vocab;
        float p;
    } cases[] = {
        {"two at a half", 2, 2, 0.5f},           {"eight at a quarter", 8, 8, 0.25f},
        {"1024 at 3/4", 1024, 1024, 0.75f},      {"4096 at 1/8, tail -inf", 4096, 9000, 0.125f},
        {"16384 at a half", 16384, 16384, 0.5f}, {"one above, at 1/2", 2, 5000, 0.5f}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const int64_t vocab = cases[k].vocab;
        float *const in = malloc((size_t)vocab * sizeof *in);
        assert_non_null(in);
        for (int64_t i = 0; i < vocab; i++)
            in[i] = i >= vocab - cases[k].valid ? -2.5f : NINF;
        float *const out = rows_copy(in, vocab);
        struct run run = {"exact", out, &cases[k].p, 1, vocab, vocab, 0, NULL, 0};
        assert_int_equal(run_variant(&run), KERNEL_OK);
        if (run.escalated != 1)
            fail_msg("%s: %lld rows escalated", cases[k].name, (long long)run.escalated);
        assert_oracle_mask(in, out, 1, vocab, vocab, &cases[k].p, cases[k].name);
        int64_t kept = 0;
        for (int64_t i = 0; i < vocab; i++)
            kept += out[i] != NINF;
        assert_int_equal(kept, (int64_t)(cases[k].p * (float)cases[k].valid));
        free(out);
        free(in);
    }
}

/* The same bits in 20 repetitions, each row alone and together. */
static void test_alone_and_together(void **state) {
    (void)state;
    enum { BATCH = 6, VOCAB = 3001 };
    float *const in = malloc(BATCH * VOCAB * sizeof *in), p[BATCH];
    assert_non_null(in);
    for (int r = 0; r < BATCH; r++) {
        p[r] = r == 2 ? 1.0f : 0.9f;
        for (int i = 0; i < VOCAB; i++)
            in[r * VOCAB + i] = logit_of((enum shape)r, 9, (uint32_t)r, (uint32_t)i, VOCAB);
    }
    float *const together = rows_copy(in, BATCH * VOCAB);
    struct run run = {"exact", together, p, BATCH, VOCAB, VOCAB, 0, NULL, 0};
    assert_int_equal(run_variant(&run), KERNEL_OK);
    for (int repeat = 0; repeat < 20; repeat++) {
        const int r = repeat % BATCH;
        float *const again = rows_copy(in, BATCH * VOCAB), *const alone = again + r * VOCAB;
        struct run one = {"exact", alone, &p[r], 1, VOCAB, VOCAB, 0, NULL, 0};
        if (repeat < BATCH) {
            assert_int_equal(run_variant(&one), KERNEL_OK);
            assert_false(rows_differ(alone, together + r * VOCAB, VOCAB));
        } else {
            run.logits = again;
            assert_int_equal(run_variant(&run), KERNEL_OK);
            assert_false(rows_differ(again, together, BATCH * VOCAB));
        }
        free(again);
    }
    free(together);
    free(in);
}

/* NaN and +inf: the launch ends, the row is left alone, its neighbours are right. */
static void test_hazard(void **state) {
    (void)state;
    enum { VOCAB = 777 };
    static const float poison[] = {NAN, INFINITY, -NAN};
    for (size_t k = 0; k < sizeof poison / sizeof *poison; k++) {
        float in[3 * VOCAB], out[3 * VOCAB];
        const float p[3] = {0.9f, 0.9f, 0.9f};
        for (int i = 0; i < 3 * VOCAB; i++)
            in[i] = random_normal(3, 0, (uint32_t)i);
        in[VOCAB + 7] = poison[k];
        memcpy(out, in, sizeof in);
        struct run run = {"exact", out, p, 3, VOCAB, VOCAB, 0, NULL, 0};
        assert_int_equal(run_variant(&run), KERNEL_OK);
        assert_false(rows_differ(in + VOCAB, out + VOCAB, VOCAB));
        assert_oracle_mask(in, out, 1, VOCAB, VOCAB, p, "row before");
        assert_oracle_mask(in + 2 * VOCAB, out + 2 * VOCAB, 1, VOCAB, VOCAB, p, "row after");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_oracle),
        cmocka_unit_test(test_planted_escalation),
        cmocka_unit_test(test_alone_and_together),
        cmocka_unit_test(test_hazard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
