/* Change points on made-up series: seldom one where there is none, and each step where it is. */
#include "ci/changepoint.h"
#include "ci/statistics.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

enum { LENGTH = 120, SERIES = 200, MOST = 32 };
enum kind { PLAIN, SPIKES, AR1, MODES, DRIFT, KINDS };
static const char *const names[KINDS] = {"plain", "spikes", "AR(1) 0.6", "clock modes", "drift"};

/* Runs whose medians differ by 0.5% within and 0.3% between: 0.58%. */
static void make(enum kind kind, struct random_state *random, double *values) {
    double memory = random_normal(random), slope = random_uniform(random) < 0.5 ? -0.005 : 0.005;
    for (int i = 0; i < LENGTH; i++) {
        double noise = random_normal(random);
        if (kind == AR1)
            noise = memory = 0.6 * memory + 0.8 * noise;
        values[i] = 11.0 + 0.0058 * noise;
        if (kind == SPIKES && random_uniform(random) < 0.05)
            values[i] += log(1.2);
        if (kind == MODES && random_uniform(random) < 0.5)
            values[i] += log(1.03);
        if (kind == DRIFT)
            values[i] += slope * i;
    }
}

static bool found_near(const struct changepoint *points, int count, size_t at, double sign) {
    for (int i = 0; i < count; i++)
        if (labs((long)points[i].index - (long)at) <= 3 && points[i].step * sign > 0.0)
            return true;
    return false;
}

static void rates(void **state) {
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        struct random_state random;
        struct changepoint points[MOST];
        double values[LENGTH];
        int alarms = 0, dated = 0;
        random_seed(&random, 100 + (uint64_t)kind);
        for (int s = 0; s < SERIES; s++) {
            make((enum kind)kind, &random, values);
            alarms += changepoint_find(values, LENGTH, log(1.02), points, MOST) > 0;
            make((enum kind)kind, &random, values);
            size_t at = 10 + random_below(&random, LENGTH - 19);
            double step = random_uniform(&random) < 0.5 ? log(1.05) : -log(1.05);
            for (size_t i = at; i < LENGTH; i++)
                values[i] += step;
            int count = changepoint_find(values, LENGTH, log(1.02), points, MOST);
            dated += found_near(points, count, at, step);
        }
        print_message("%-12s null series with a point %d of %d, step dated %d of %d\n", names[kind],
                      alarms, SERIES, dated, SERIES);
        assert_true(alarms <= SERIES * 5 / 100);
        assert_true(dated >= SERIES * 95 / 100);
    }
}

/* Neighbours alike, and hardly a margin: their likeness, counted in, keeps points rare. */
static void autocorrelation_counts(void **state) {
    (void)state;
    struct random_state random;
    struct changepoint points[MOST];
    double values[LENGTH];
    int alarms = 0;
    random_seed(&random, 77);
    for (int s = 0; s < SERIES; s++) {
        make(AR1, &random, values);
        alarms += changepoint_find(values, LENGTH, log(1.0005), points, MOST) > 0;
    }
    print_message("AR(1), no margin: %d of %d\n", alarms, SERIES);
    assert_true(alarms <= SERIES * 5 / 100);
}

static void several_steps(void **state) {
    (void)state;
    struct random_state random;
    struct changepoint points[MOST];
    double values[LENGTH];
    random_seed(&random, 9);
    make(PLAIN, &random, values);
    for (int i = 30; i < 70; i++)
        values[i] += log(1.08);
    for (int i = 95; i < LENGTH; i++)
        values[i] += log(1.05);
    assert_int_equal(changepoint_find(values, LENGTH, log(1.02), points, MOST), 3);
    static const size_t want[] = {30, 70, 95};
    for (int i = 0; i < 3; i++)
        assert_in_range(points[i].index, want[i] - 1, want[i] + 1);
    assert_true(points[0].step > 0.07 && points[1].step < -0.07 && points[2].step > 0.04);
    /* The same again, to the bit. */
    struct changepoint again[MOST];
    assert_int_equal(changepoint_find(values, LENGTH, log(1.02), again, MOST), 3);
    assert_memory_equal(points, again, 3 * sizeof *points);
}

static void epochs(void **state) {
    (void)state;
    struct random_state random;
    struct changepoint points[MOST];
    double values[LENGTH];
    int numbers[LENGTH];
    random_seed(&random, 10);
    make(PLAIN, &random, values);
    for (int i = 0; i < LENGTH; i++) {
        numbers[i] = i >= 50;
        values[i] += (i >= 50 ? log(1.2) : 0.0) + (i >= 80 ? log(1.05) : 0.0);
    }
    assert_int_equal(changepoint_find_epochs(values, numbers, LENGTH, log(1.02), points, MOST), 1);
    assert_in_range(points[0].index, 79, 81);
}

static void small(void **state) {
    (void)state;
    struct changepoint points[2];
    double flat[20] = {0}, step[10] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1};
    assert_int_equal(changepoint_find(flat, 20, log(1.02), points, 2), 0);
    assert_int_equal(changepoint_find(step, 9, log(1.02), points, 2), 0);
    assert_int_equal(changepoint_find(step, 0, log(1.02), points, 2), 0);
    assert_int_equal(changepoint_find(step, 10, log(1.02), points, 2), 1);
    assert_int_equal(points[0].index, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates), cmocka_unit_test(autocorrelation_counts),
        cmocka_unit_test(several_steps), cmocka_unit_test(epochs), cmocka_unit_test(small)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
