/* Google Benchmark behind its shim: what it calls, what it skips, what it writes. The file is read
 * by judge_benchmark.py, and by compare.py where that is installed. argv[1]: python3. */
#include "bench/gbench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

enum { CELLS = 4, REPETITIONS = 5, MOST_CALLS = 64 };

static const char *python;

static const struct gbench_cell cells[CELLS] = {
    {.name = "topp/a/normal/vocab:1000/p:0.9/device:cpu", .repetitions = REPETITIONS},
    {.name = "topp/b/quote\"back\\slash", .repetitions = REPETITIONS},
    {.name = "topp/refused", .skip = "rejected: underkeep", .repetitions = REPETITIONS},
    {.name = "topp/fails at its third block", .repetitions = REPETITIONS},
};

struct trace {
    size_t order[MOST_CALLS];
    size_t calls, by_cell[CELLS];
    volatile sig_atomic_t stop;
    size_t stop_at; /* call that raises stop, 0 = never */
};

static void measure(void *context, size_t cell, struct gbench_block *block) {
    struct trace *trace = context;
    assert_true(cell < CELLS && trace->calls < MOST_CALLS);
    trace->order[trace->calls++] = cell;
    const size_t repetition = trace->by_cell[cell]++;
    if (trace->calls == trace->stop_at)
        trace->stop = 1;
    if (cell == 3 && repetition == 2)
        snprintf(block->error, sizeof block->error, "drift: \"not\" the gated mask");
    block->seconds = 1e-6 * (double)(cell + 1) * (1.0 + 0.01 * (double)repetition);
    block->counters[block->counter_count++] = (struct gbench_counter){"kept", 0.0};
    block->counters[block->counter_count++] = (struct gbench_counter){"rate", 4.97};
    block->counters[block->counter_count++] = (struct gbench_counter){"cycles", (double)NAN};
    block->counters[block->counter_count++] = (struct gbench_counter){"worse", (double)INFINITY};
}

static const char *const context_pairs[] = {"topp_bench_profile", "smoke", "odd \"key\"",
                                            "odd \\ value", NULL};

static void run_to(const char *path, struct trace *trace, bool interleave) {
    char why[256] = "";
    const struct gbench_run run = {.cells = cells,
                                   .count = CELLS,
                                   .measure = measure,
                                   .context = trace,
                                   .stop = &trace->stop,
                                   .interleave = interleave,
                                   .json_path = path,
                                   .context_pairs = context_pairs};
    assert_int_equal(gbench_execute(&run, why, sizeof why), 0);
    assert_string_equal(why, "");
}

static char *temporary(void) {
    static char path[64];
    snprintf(path, sizeof path, "/tmp/topp-gbench-XXXXXX");
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    return path;
}

static json_t *load(const char *path) {
    json_error_t why;
    json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (!json)
        print_error("%s: line %d: %s\n", path, why.line, why.text);
    assert_non_null(json);
    return json;
}

/* Entries of a cell: repetitions (aggregates = false) or aggregates, with or without an error. */
static size_t entries(const json_t *json, size_t cell, bool aggregates, bool errors) {
    size_t index, found = 0;
    const json_t *entry;
    json_array_foreach(json_object_get(json, "benchmarks"), index, entry) {
        const char *name = json_string_value(json_object_get(entry, "run_name"));
        const char *type = json_string_value(json_object_get(entry, "run_type"));
        const bool error = json_is_true(json_object_get(entry, "error_occurred"));
        found += !strncmp(name, cells[cell].name, strlen(cells[cell].name)) &&
                 aggregates == !strcmp(type, "aggregate") && error == errors;
    }
    return found;
}

static void test_repetitions_and_skips(void **state) {
    (void)state;
    struct trace trace = {.calls = 0};
    const char *path = temporary();
    run_to(path, &trace, false);
    static const size_t calls[CELLS] = {REPETITIONS, REPETITIONS, 0, REPETITIONS};
    for (size_t i = 0; i < CELLS; i++)
        assert_int_equal(trace.by_cell[i], calls[i]);
    json_t *json = load(path);
    assert_int_equal(entries(json, 0, false, false), REPETITIONS);
    assert_int_equal(entries(json, 0, true, false), 4); /* mean, median, stddev, cv */
    assert_int_equal(entries(json, 1, false, false), REPETITIONS);
    assert_int_equal(entries(json, 2, false, false), 0);
    assert_int_equal(entries(json, 2, false, true), 1);
    assert_int_equal(entries(json, 3, false, true), 1);
    const json_t *context = json_object_get(json, "context");
    assert_string_equal(json_string_value(json_object_get(context, "executable")), "bench_topp");
    assert_string_equal(json_string_value(json_object_get(context, "odd \"key\"")), "odd \\ value");
    json_decref(json);
    unlink(path);
}

static void test_times_and_counters(void **state) {
    (void)state;
    struct trace trace = {.calls = 0};
    const char *path = temporary();
    run_to(path, &trace, false);
    json_t *json = load(path);
    size_t index;
    const json_t *entry;
    bool median = false;
    json_array_foreach(json_object_get(json, "benchmarks"), index, entry) {
        const char *name = json_string_value(json_object_get(entry, "name"));
        const char *aggregate = json_string_value(json_object_get(entry, "aggregate_name"));
        assert_null(json_object_get(entry, "cycles"));
        assert_null(json_object_get(entry, "worse"));
        if (strncmp(name, cells[1].name, strlen(cells[1].name)) || !aggregate)
            continue;
        if (!strcmp(aggregate, "median")) {
            median = true;
            assert_string_equal(json_string_value(json_object_get(entry, "time_unit")), "ns");
            const double time = json_number_value(json_object_get(entry, "real_time"));
            assert_true(fabs(time - 2040.0) < 1e-6);
            assert_true(json_number_value(json_object_get(entry, "rate")) == 4.97);
        }
        if (!strcmp(aggregate, "cv")) /* 0 / 0 */
            assert_null(json_object_get(entry, "kept"));
    }
    assert_true(median);
    json_decref(json);
    unlink(path);
}

static void test_blocks_are_interleaved(void **state) {
    (void)state;
    const char *path = temporary();
    bool mixed = false;
    for (int attempt = 0; attempt < 5 && !mixed; attempt++) { /* 15! orders: one in 10^5 is plain */
        struct trace trace = {.calls = 0};
        run_to(path, &trace, true);
        size_t changes = 0;
        for (size_t i = 1; i < trace.calls; i++)
            changes += trace.order[i] != trace.order[i - 1];
        mixed = changes > 4;
        assert_int_equal(trace.calls, 3 * REPETITIONS);
    }
    assert_true(mixed);
    unlink(path);
}

static void test_stop(void **state) {
    (void)state;
    struct trace trace = {.stop_at = 4};
    const char *path = temporary();
    run_to(path, &trace, true);
    assert_int_equal(trace.calls, 4);
    json_decref(load(path)); /* whole all the same */
    unlink(path);
}

static void test_unwritable(void **state) {
    (void)state;
    char why[256] = "";
    struct trace trace = {.calls = 0};
    struct gbench_run run = {.cells = cells,
                             .count = CELLS,
                             .measure = measure,
                             .context = &trace,
                             .json_path = "/nonexistent/benchmark.json"};
    assert_int_equal(gbench_execute(&run, why, sizeof why), -1);
    assert_non_null(strstr(why, "/nonexistent/benchmark.json"));
    assert_int_equal(trace.calls, 0);
    run.json_path = "/dev/full";
    assert_int_equal(gbench_execute(&run, why, sizeof why), -1);
    assert_non_null(strstr(why, "/dev/full"));
}

/* jsn-03: one valid document, custom context entries included. */
static void test_judge_and_locale(void **state) {
    (void)state;
    char command[512];
    struct trace trace = {.calls = 0};
    const char *path = temporary();
    setlocale(LC_ALL, "de_DE.UTF-8"); /* where this machine has it */
    run_to(path, &trace, true);
    setlocale(LC_ALL, "C");
    snprintf(command, sizeof command, "'%s' '%s/tests/bench/judge_benchmark.py' %s 1>&2", python,
             TOPP_SOURCE_DIR, path);
    assert_int_equal(system(command), 0);
    unlink(path);
}

static void test_flags(void **state) {
    (void)state;
    static const struct {
        const char *argument;
        bool allowed;
    } rows[] = {
        {"--benchmark_out=x.json", true},
        {"--benchmark_out_format=csv", true},
        {"--benchmark_format=console", true},
        {"--benchmark_counters_tabular=true", true},
        {"--benchmark_color=no", true},
        {"--benchmark_report_aggregates_only", true},
        {"--benchmark_display_aggregates_only=true", true},
        {"--benchmark_time_unit=us", true},
        {"--benchmark_filter=x", false},
        {"--benchmark_repetitions=100", false},
        {"--benchmark_min_time=1", false},
        {"--benchmark_enable_random_interleaving=false", false},
        {"--benchmark_outer=x", false},
        {"--benchmark_ou", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(gbench_flag_allowed(rows[i].argument), rows[i].allowed);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repetitions_and_skips),
        cmocka_unit_test(test_times_and_counters),
        cmocka_unit_test(test_blocks_are_interleaved),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_unwritable),
        cmocka_unit_test(test_judge_and_locale),
        cmocka_unit_test(test_flags),
    };
    python = argc > 1 ? argv[1] : "python3";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
