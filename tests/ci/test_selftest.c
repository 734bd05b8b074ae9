/* False alarms and power on made-up runs, CI-sized: the targets are not refuted, and a tool
 * that were blind or jumpy would be. */
#include "ci/selftest.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

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

/* Two processes that measured six cells, every sample nearly the same. */
static void fill_processes(struct results files[2]) {
    enum { CELLS = 6, SAMPLES = 80 };
    struct tb_error error = TB_ERROR_INIT;
    for (int process = 0; process < 2; process++) {
        for (int c = 0; c < CELLS; c++) {
            struct result_cell *cell = results_append(&files[process]);
            struct sample_set *set = &cell->samples;
            cell->name = strdup((const char *[CELLS]){"a", "b", "c", "d", "e", "f"}[c]);
            set->time = malloc(SAMPLES * sizeof *set->time);
            set->block = malloc(SAMPLES * sizeof *set->block);
            set->draw = calloc(SAMPLES, sizeof *set->draw);
            assert_true(cell->name && set->time && set->block && set->draw);
            for (int32_t i = 0; i < SAMPLES; i++) {
                set->time[i] = 1000.0 + (7 * i + 3 * process + c) % 11;
                set->block[i] = i / 16;
            }
            set->count = SAMPLES;
        }
        assert_int_equal(results_index(&files[process], &error), TB_OK);
    }
}

/* Many cells get fewer trials each, all of them some, instead of hours. */
static void work_is_bounded(void **state) {
    (void)state;
    struct results files[2] = {{0}, {0}};
    struct results_set set = {.name = "made up", .files = files, .count = 2};
    struct recorded_plan recorded = {.pairs = 1, .wide_runs = 1, .wide_cells = 6, .plants = 4};
    struct recorded_result result;
    struct compare_options options;
    struct tb_error error = TB_ERROR_INIT;
    compare_defaults(&options);
    fill_processes(files);
    for (size_t stride = 1; stride <= 4; stride *= 2) {
        size_t trials = 0;
        recorded.most_judged = recorded.plants * EFFECTS * 6 * 6 / stride;
        assert_int_equal(selftest_recorded(&set, &recorded, &options, &result, &error), TB_OK);
        assert_int_equal(result.count, 6);
        for (size_t c = 0; c < result.count; c++) {
            assert_true(result.cells[c].caught[THREE_PERCENT].trials > 0);
            assert_true(result.cells[c].smallest > 0.0);
            trials += result.cells[c].caught[THREE_PERCENT].trials;
        }
        assert_int_equal(trials, 6 * recorded.plants / stride);
        recorded_result_free(&result);
    }
    results_free(&files[0]);
    results_free(&files[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets), cmocka_unit_test(wrong_noise_is_seen),
        cmocka_unit_test(process_noise_counts), cmocka_unit_test(binomial),
        cmocka_unit_test(work_is_bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
