/* The arithmetic of exact's binary64 path, on the host: it must be the oracle's, bit for bit. */
#include "kernels/cuda/exact_exp.cuh"

#include "oracle/nucleus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t state = 0x9e3779b97f4a7c15ull;

static double uniform(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) * 0x1p-53;
}

/* Differences of two binary32 logits, as the oracle forms them, and plain arguments. Without fused
 * multiply-add in the processor, the C library takes another path: nothing to compare then. */
static void test_exp_is_the_librarys(void **context) {
    (void)context;
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("fma"))
        skip();
#endif
    for (int i = 0; i < 400000; i++) {
        const float max = (float)(80.0 * uniform() - 40.0), logit = max - (float)(70.0 * uniform());
        const double narrow = (double)logit - (double)max, wide = -500.0 * uniform();
        assert_true(exact_bits(exact_exp(narrow)) == exact_bits(exp(narrow)));
        assert_true(exact_bits(exact_exp(wide)) == exact_bits(exp(wide)));
    }
    assert_true(exact_exp(0.0) == 1.0);
    assert_true(exp(EXACT_LEAST_EXPONENT) > 0.0);
    assert_true(exp(nextafter(EXACT_LEAST_EXPONENT, -1000.0)) == 0.0);
}

static void test_sum_is_correctly_rounded(void **context) {
    enum { VOCAB = 3000 };
    (void)context;
    float row[VOCAB];
    const float p = 0.5f;
    void *const scratch = aligned_alloc(64, (nucleus_scratch_bytes(VOCAB) + 63) / 64 * 64);
    assert_non_null(scratch);
    for (int spread = 1; spread < 200; spread += 3) {
        struct exact_sum sum = {{0, 0, 0}, 0};
        struct nucleus nucleus;
        for (int t = 0; t < VOCAB; t++)
            row[t] = (float)((uniform() - 0.5) * spread);
        nucleus_row(row, VOCAB, &p, 1, &nucleus, scratch);
        for (int t = VOCAB - 1; t >= 0; t--)
            exact_sum_add(&sum, (double)row[t] - (double)nucleus.max_logit);
        assert_true(exact_sum_round(&sum) == nucleus.normalizer);
    }
    free(scratch);
}

/* Ties of rounding: to even, and broken by bits that the grid has lost. */
static void test_ties_of_rounding(void **context) {
    (void)context;
    struct exact_sum sum = {{0, 0, 1ull << 32}, 0}; /* 1 */
    sum.limb[1] += 1ull << 11;                      /* + 2^-53: half of the last place */
    assert_true(exact_sum_round(&sum) == 1.0);
    exact_sum_add(&sum, -100.0); /* below the grid, but there */
    assert_int_equal(sum.inexact, 1);
    assert_true(exact_sum_round(&sum) == 1.0 + 0x1p-52);
    struct exact_sum odd = {{0, 0, 1ull << 32}, 0};
    odd.limb[1] += 3ull << 11; /* 1 + 3 * 2^-53: up to even */
    assert_true(exact_sum_round(&odd) == 1.0 + 0x1p-51);
}

static void test_times_is_repeated_addition(void **context) {
    (void)context;
    struct exact_sum one = {{0, 0, 0}, 0}, many = {{0, 0, 0}, 0}, times = {{0, 0, 0}, 0};
    exact_sum_add(&one, -3.25);
    for (int i = 0; i < 1000; i++)
        exact_sum_add(&many, -3.25);
    exact_sum_add_times(&times, &one, 1000);
    assert_true(exact_sum_round(&many) == exact_sum_round(&times));
    assert_true(exact_sum_round(&many) == 1000 * exp(-3.25));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp_is_the_librarys),
        cmocka_unit_test(test_sum_is_correctly_rounded),
        cmocka_unit_test(test_ties_of_rounding),
        cmocka_unit_test(test_times_is_repeated_addition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
