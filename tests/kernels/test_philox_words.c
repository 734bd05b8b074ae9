/* Every vector width gives the words of the plain function. The source is included to reach the
 * widths that this machine would not choose. */
#include "kernels/cpu/philox_words.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MOST = 67 };

typedef int64_t (*words_function)(uint32_t key, uint32_t first, int64_t n, uint32_t *w0,
                                  uint32_t *w1);

static int64_t dispatched(uint32_t key, uint32_t first, int64_t n, uint32_t *w0, uint32_t *w1) {
    philox_words(key, first, n, w0, w1);
    return n;
}

static void check(words_function words) {
    static const uint32_t firsts[] = {0, 1, 12345, 0x7FFFFFF0u, 0xFFFFFFE0u};
    for (int64_t n = 0; n <= MOST; n++)
        for (size_t f = 0; f < sizeof firsts / sizeof firsts[0]; f++)
            for (int both = 0; both < 2; both++) {
                uint32_t w0[MOST + 1] = {0}, w1[MOST + 1] = {0};
                const uint32_t key = 0xDEADBEEFu * (uint32_t)(n + 1);
                const int64_t done = words(key, firsts[f], n, w0, both ? w1 : NULL);
                assert_true(done >= 0 && done <= n);
                for (int64_t i = 0; i <= MOST; i++) {
                    const struct philox_words right =
                        philox4x32(firsts[f] + (uint32_t)i, 0, 0, 0, key, 0);
                    assert_int_equal(w0[i], i < done ? right.w0 : 0);
                    assert_int_equal(w1[i], i < done && both ? right.w1 : 0);
                }
            }
}

static void test_dispatched(void **state) {
    (void)state;
    check(dispatched);
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
static void test_avx2(void **state) {
    (void)state;
    if (!__builtin_cpu_supports("avx2"))
        skip();
    check(philox_avx2);
}

static void test_avx512(void **state) {
    (void)state;
    if (!__builtin_cpu_supports("avx512f"))
        skip();
    check(philox_avx512);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dispatched),
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
        cmocka_unit_test(test_avx2),
        cmocka_unit_test(test_avx512),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
