/* Statistics against values worked out elsewhere (tables, R, by hand). */
#include "ci/statistics.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

static void near(double value, double want, double relative) {
    if (!(fabs(value - want) <= relative * fabs(want)))
        fail_msg("%.12g, but should be %.12g", value, want);
}

static void tails(void **state) {
    (void)state;
    near(normal_tail(1.959963984540054), 0.025, 1e-9);
    near(normal_tail(5.0), 2.866515718791933e-7, 1e-9);
    near(normal_quantile(0.975), 1.959963984540054, 1e-9);
    near(normal_quantile(0.00005), -3.890591886413, 1e-9);
    /* Student: the quantiles that every table has. */
    static const struct {
        double probability, df, t;
    } table[] = {{0.975, 1, 12.706204736},
                 {0.975, 4, 2.776445105},
                 {0.95, 10, 1.812461123},
                 {0.9995, 3, 12.923978637},
                 {0.975, 120, 1.979930405}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        near(student_quantile(table[i].probability, table[i].df), table[i].t, 1e-5);
        near(student_tail(table[i].t, table[i].df), 1.0 - table[i].probability, 1e-5);
    }
    near(student_tail(2.0, INFINITY), normal_tail(2.0), 1e-12);
    near(student_tail(-1.0, 7.0), 1.0 - student_tail(1.0, 7.0), 1e-12);
}

static void middles(void **state) {
    (void)state;
    double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2};
    near(median_of(odd, 3), 3.0, 0.0);
    near(median_of(even, 4), 2.5, 0.0);
    assert_true(isnan(median_of(odd, 0)));
    /* Of four, the middle two; of three, (1/4 a + b + 1/4 c) / (3/2); of five, 0 3/4 1 3/4 0. */
    near(midmean_sorted((double[]){1, 2, 4, 100}, 4), 3.0, 1e-12);
    near(midmean_sorted((double[]){1, 2, 6}, 3), (0.25 + 2.0 + 1.5) / 1.5, 1e-12);
    near(midmean_sorted((double[]){-50, 1, 2, 4, 900}, 5), (0.75 + 2.0 + 3.0) / 2.5, 1e-12);
    near(midmean_sorted((double[]){7}, 1), 7.0, 0.0);
}

static void bootstrap(void **state) {
    (void)state;
    /* Two values a, b: a resample is (a,a), (a,b), (b,b) with 1/4, 1/2, 1/4: variance (b-a)^2 / 8,
     * and twice that for two blocks. */
    near(midmean_bootstrap_variance((double[]){0, 1}, 2), 0.25, 0.03);
    assert_true(isnan(midmean_bootstrap_variance((double[]){1}, 1)));
    near(midmean_bootstrap_variance((double[]){0, 3}, 2),
         9.0 * midmean_bootstrap_variance((double[]){0, 1}, 2), 1e-9);
    /* Against the truth: the midmean's variance over many samples of 8 normals. */
    struct random_state random;
    random_seed(&random, 5);
    double squares = 0.0, mean = 0.0, told = 0.0;
    enum { TRIALS = 4000, SIZE = 8 };
    for (int t = 0; t < TRIALS; t++) {
        double values[SIZE];
        for (int i = 0; i < SIZE; i++)
            values[i] = random_normal(&random);
        sort_ascending(values, SIZE);
        double middle = midmean_sorted(values, SIZE);
        mean += middle / TRIALS;
        squares += middle * middle / TRIALS;
        told += midmean_bootstrap_variance(values, SIZE) / TRIALS;
    }
    /* A bootstrap over so few blocks errs to the safe side. */
    assert_true(told > squares - mean * mean && told < 1.4 * (squares - mean * mean));
}

static void ranks(void **state) {
    (void)state;
    /* 3 against 3, fully apart: 1 of 20 orders. */
    near(rank_test((double[]){1, 2, 3}, 3, (double[]){4, 5, 6}, 3), 0.05, 1e-12);
    near(rank_test((double[]){4, 5, 6}, 3, (double[]){1, 2, 3}, 3), 1.0, 1e-12);
    /* U = 7 of 9: 4 of 20 orders reach it. */
    near(rank_test((double[]){1, 2, 5}, 3, (double[]){3, 4, 6}, 3), 0.2, 1e-12);
    /* 10 against 10, apart: the normal's figure with continuity. */
    double low[10], high[10];
    for (int i = 0; i < 10; i++) {
        low[i] = i;
        high[i] = 20 + i;
    }
    near(rank_test(low, 10, high, 10), normal_tail(49.5 / sqrt(175.0)), 1e-9);
    /* All tied: no evidence. */
    assert_true(rank_test((double[]){1, 1, 1}, 3, (double[]){1, 1, 1}, 3) >= 0.5);
}

static void discoveries(void **state) {
    (void)state;
    double scratch[6];
    /* Benjamini and Hochberg by hand: 0.01 <= 1/5 5%, 0.02 <= 2/5 5%, 0.03 <= 3/5 5%. */
    near(false_discovery_limit((double[]){0.03, 0.5, 0.01, 0.02, 0.9}, 5, 0.05, scratch), 0.03,
         1e-12);
    /* A later one carries an earlier that fails by itself: 0.02 > 1/2 3%, 0.029 <= 2/2 3%. */
    near(false_discovery_limit((double[]){0.029, 0.02}, 2, 0.03, scratch), 0.029, 1e-12);
    assert_true(false_discovery_limit((double[]){0.2, 0.5}, 2, 0.05, scratch) < 0.0);
}

static void generator(void **state) {
    (void)state;
    struct random_state left, right;
    random_seed(&left, 1);
    random_seed(&right, 1);
    double mean = 0.0, squares = 0.0;
    for (int i = 0; i < 20000; i++) {
        double value = random_normal(&left);
        near(value, random_normal(&right), 0.0);
        mean += value / 20000;
        squares += value * value / 20000;
    }
    assert_true(fabs(mean) < 0.03);
    near(squares, 1.0, 0.04);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(tails),       cmocka_unit_test(middles),
                                       cmocka_unit_test(bootstrap),   cmocka_unit_test(ranks),
                                       cmocka_unit_test(discoveries), cmocka_unit_test(generator)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
