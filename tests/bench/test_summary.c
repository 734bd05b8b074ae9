/* Order statistics against values worked out by hand, and the rule that ends a block. */
#include "bench/summary.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void near(const char *name, double is, double should) {
    if (isnan(should) ? !isnan(is) : !(fabs(is - should) <= 1e-12 * fabs(should)))
        fail_msg("%s: %.17g, not %.17g", name, is, should);
}

static void test_quantiles(void **state) {
    (void)state;
    static const double four[] = {1.0, 2.0, 3.0, 4.0}, one[] = {7.0};
    static const struct {
        const char *name;
        const double *values;
        size_t count;
        double q, is;
    } table[] = {
        {"least", four, 4, 0.0, 1.0},       {"greatest", four, 4, 1.0, 4.0},
        {"middle", four, 4, 0.5, 2.5},      {"a quarter", four, 4, 0.25, 1.75},
        {"nine tenths", four, 4, 0.9, 3.7}, {"odd count", four, 3, 0.5, 2.0},
        {"one value", one, 1, 0.05, 7.0},   {"none", four, 0, 0.5, (double)NAN},
    };
    for (size_t i = 0; i < COUNT(table); i++)
        near(table[i].name, summary_quantile(table[i].values, table[i].count, table[i].q),
             table[i].is);
}

/* 2 P(Binomial(n, 1/2) < k) <= 0.05 < 2 P(... < k + 1), from the binomial coefficients. */
static void test_ranks_of_the_interval(void **state) {
    (void)state;
    static const struct {
        size_t count, rank;
    } table[] = {
        {0, 0},
        {1, 0},
        {5, 0} /* 2/32 */,
        {6, 1} /* 2/64 */,
        {8, 1} /* 18/256 */,
        {9, 2} /* 20/512 */,
        {10, 2} /* 112/1024 for 3 */,
        {20, 6} /* 43400/2^20 */,
        {100, 40},
        {1000, 469},
    };
    for (size_t i = 0; i < COUNT(table); i++)
        if (summary_median_rank(table[i].count) != table[i].rank)
            fail_msg("rank of %zu values: %zu", table[i].count,
                     summary_median_rank(table[i].count));
}

static struct sample sample(double time_ns, int32_t draw) {
    return (struct sample){time_ns, NAN, NAN, NAN, 0, draw};
}

static void test_one_draw(void **state) {
    (void)state;
    struct sample samples[9];
    struct cell_summary summary;
    for (int i = 0; i < 9; i++) /* 10, 20 ... 90, out of order */
        samples[i] = sample(10.0 * (double)((i * 4) % 9 + 1), 0);
    samples[2].busy_ns = 5.0;
    samples[7].busy_ns = 7.0;
    assert_true(summary_of_samples(samples, 9, &summary));
    assert_int_equal(summary.samples, 9);
    near("median", summary.median_ns, 50.0);
    near("lower end", summary.ci_low_ns, 20.0);
    near("upper end", summary.ci_high_ns, 80.0);
    near("5%", summary.p05_ns, 14.0);
    near("95%", summary.p95_ns, 86.0);
    near("least draw", summary.draw_low_ns, 50.0);
    near("greatest draw", summary.draw_high_ns, 50.0);
    near("busy", summary.busy_ns, 6.0);
    near("cycles", summary.cycles, (double)NAN);
    near("half width", summary_relative_half_width(&summary), 0.6);
}

/* The spread over draws (100 and 200) does not enter the spread over repeats (10%). */
static void test_draws_are_not_mixed_with_repeats(void **state) {
    (void)state;
    const struct sample samples[] = {sample(90.0, 0),       sample(180.0, 1), sample(100.0, 0),
                                     sample(200.0, 1),      sample(110.0, 0), sample(220.0, 1),
                                     sample((double)NAN, 1)};
    struct cell_summary summary;
    assert_true(summary_of_samples(samples, COUNT(samples), &summary));
    assert_int_equal(summary.samples, 6);
    near("median", summary.median_ns, 150.0);
    near("least draw", summary.draw_low_ns, 100.0);
    near("greatest draw", summary.draw_high_ns, 200.0);
    near("lower end", summary.ci_low_ns, 135.0);
    near("upper end", summary.ci_high_ns, 165.0);
    near("5%", summary.p05_ns, 135.0);
    near("95%", summary.p95_ns, 165.0);
}

static void test_nothing_to_sum_up(void **state) {
    (void)state;
    const struct sample timeless[] = {sample((double)NAN, 0), sample((double)NAN, 1)};
    struct cell_summary summary;
    assert_true(summary_of_samples(NULL, 0, &summary));
    assert_int_equal(summary.samples, 0);
    near("median of none", summary.median_ns, (double)NAN);
    assert_true(isinf(summary_relative_half_width(&summary)));
    assert_true(summary_of_samples(timeless, 2, &summary));
    assert_int_equal(summary.samples, 0);
    near("median of no times", summary.median_ns, (double)NAN);
    /* Fewer than six: a median, and no interval. */
    const struct sample two[] = {sample(1.0, 0), sample(3.0, 0)};
    assert_true(summary_of_samples(two, 2, &summary));
    near("median of two", summary.median_ns, 2.0);
    near("interval of two", summary.ci_low_ns, (double)NAN);
}

/* A kernel of known noise: +-spread around 1000, every value equally often. */
static size_t samples_until_done(const struct timing_settings *settings, double spread,
                                 int32_t draws) {
    static struct sample samples[100000];
    size_t count = 0;
    while (count < COUNT(samples)) {
        const size_t more = summary_next_check(settings, count, draws);
        assert_true(more > 0);
        for (size_t i = 0; i < more && count < COUNT(samples); i++, count++) {
            const double place = (double)(count / (size_t)draws * 6185 % 10007) / 5003.0 - 1.0;
            const int32_t draw = (int32_t)(count % (size_t)draws);
            samples[count] = sample((1000.0 + 500.0 * draw) * (1.0 + spread * place), draw);
        }
        if (summary_block_done(settings, samples, count, draws))
            return count;
    }
    fail_msg("never done");
    return 0;
}

static void test_stopping_rule(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int32_t min_samples, max_samples, draws;
        double precision, spread;
        size_t least, most;
    } table[] = {
        {"no noise ends at the least", 10, 1000, 1, 0.01, 0.0, 10, 10},
        {"too few for an interval go on", 2, 1000, 1, 0.01, 0.0, 6, 6},
        {"noise needs more", 10, 5000, 1, 0.01, 0.1, 300, 600},
        {"finer precision needs more", 10, 50000, 1, 0.002, 0.1, 7000, 14000},
        {"never past the most", 10, 500, 1, 0.0001, 0.1, 500, 500},
        {"every draw at least once", 3, 1000, 8, 1.0, 0.0, 8, 8},
        {"draws of different cost are no noise", 16, 1000, 2, 0.01, 0.0, 16, 16},
        {"whole rounds over draws", 10, 5000, 3, 0.01, 0.1, 300, 600},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        const struct timing_settings settings = {.min_samples = table[i].min_samples,
                                                 .max_samples = table[i].max_samples,
                                                 .precision = table[i].precision};
        const size_t count = samples_until_done(&settings, table[i].spread, table[i].draws);
        if (count < table[i].least || count > table[i].most)
            fail_msg("%s: %zu samples", table[i].name, count);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_ranks_of_the_interval),
        cmocka_unit_test(test_one_draw),
        cmocka_unit_test(test_draws_are_not_mixed_with_repeats),
        cmocka_unit_test(test_nothing_to_sum_up),
        cmocka_unit_test(test_stopping_rule),
    };
    return cmocka_run_group_tests_name("summary", tests, NULL, NULL);
}
