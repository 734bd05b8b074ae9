/* False alarms and power on made-up runs, CI-sized: the targets are not refuted, and a tool
 * that were blind or jumpy would be. */
#include "ci/selftest.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

enum { THREE_PERCENT = 2 };
static const struct synthetic_plan plan = {.runs = 25,
                                           .cells = 200,
                                           .within = 0.005,
                                           .between = 0.003,
                                           .blocks = 5,
                                           .samples = 16,
                                           .seed = 3};

static void targets(void **state) {
    (void)state;
    struct compare_options options;
    struct synthetic_result results[NOISE_COUNT];
    compare_defaults(&options);
    assert_true(selftest_synthetic(&plan, &options, results));
    for (int kind = 0; kind < NOISE_COUNT; kind++) {
        print_message("%-22s alarms %zu of %zu, 3%% caught %zu of %zu\n",
                      noise_name(results[kind].kind), results[kind].alarms.hits,
                      results[kind].alarms.trials, results[kind].caught[THREE_PERCENT].hits,
                      results[kind].caught[THREE_PERCENT].trials);
        assert_int_equal(results[kind].alarms.trials, plan.runs);
        assert_false(rate_above(results[kind].alarms, 0.01));
        assert_false(rate_below(results[kind].caught[THREE_PERCENT], 0.95));
    }
}

/* Noise between processes ten times the assumed: alarms come, and are seen as too many. */
static void wrong_noise_is_seen(void **state) {
    (void)state;
    struct compare_options options;
    struct synthetic_plan jumpy = plan;
    struct synthetic_result results[NOISE_COUNT];
    compare_defaults(&options);
    jumpy.between = 0.03;
    jumpy.runs = 5;
    assert_true(selftest_synthetic(&jumpy, &options, results));
    assert_true(rate_above(results[NOISE_PLAIN].alarms, 0.01));
    /* The margin wide: blind to 3%. */
    options.margin = 0.2;
    jumpy.between = 0.003;
    assert_true(selftest_synthetic(&jumpy, &options, results));
    assert_true(rate_below(results[NOISE_PLAIN].caught[THREE_PERCENT], 0.95));
}

/* With hardly a margin only the noise between processes, counted in, keeps alarms rare. */
static void process_noise_counts(void **state) {
    (void)state;
    struct compare_options options;
    struct synthetic_result results[NOISE_COUNT];
    compare_defaults(&options);
    options.margin = 0.001;
    assert_true(selftest_synthetic(&plan, &options, results));
    assert_false(rate_above(results[NOISE_PLAIN].alarms, 0.01));
    assert_false(rate_above(results[NOISE_AR1].alarms, 0.01));
}

static void binomial(void **state) {
    (void)state;
    assert_false(rate_above((struct rate){1, 25}, 0.01));
    assert_true(rate_above((struct rate){3, 25}, 0.01));
    assert_false(rate_below((struct rate){22, 25}, 0.95));
    assert_true(rate_below((struct rate){19, 25}, 0.95));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets), cmocka_unit_test(wrong_noise_is_seen),
        cmocka_unit_test(process_noise_counts), cmocka_unit_test(binomial)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
