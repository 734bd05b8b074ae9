/* Results as perfwatch reads them: results.json in any layout and Google Benchmark's JSON; and what
 * a comparison makes of them. */
#include "fuzz.h"

#include "ci/compare.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static void check_cell(const struct results *results, const struct result_cell *cell) {
    const struct sample_set *set = &cell->samples;
    PROMISE(cell->name && cell->name[0]);
    PROMISE(results_find(results, cell->name) == cell);
    PROMISE(memchr(cell->verdict, 0, sizeof cell->verdict));
    for (size_t i = 0; i < set->count; i++) {
        PROMISE(isfinite(set->time[i]) && set->time[i] > 0.0);
        PROMISE(!set->cycles || (isfinite(set->cycles[i]) && set->cycles[i] > 0.0));
    }
}

/* Samples that stayed in the file are those that are read with it. */
static void check_later(const struct results *results, const struct read_options *read) {
    const struct read_options later = {.metric = read->metric, .samples_later = true};
    struct sample_buffer buffer = {.room = 0};
    struct results lazy;
    struct tb_error error = TB_ERROR_INIT;
    PROMISE(results_load(results->file, &later, &lazy, &error) == TB_OK);
    PROMISE(lazy.count == results->count);
    for (size_t i = 0; i < lazy.count; i++) {
        const struct sample_set *set = &results->cells[i].samples;
        const struct sample_set *again = results_samples(&lazy, &lazy.cells[i], &buffer);
        PROMISE(again && again->count == set->count && !again->cycles == !set->cycles);
        PROMISE(!set->count || !memcmp(again->time, set->time, set->count * sizeof *set->time));
        PROMISE(!set->count || !memcmp(again->draw, set->draw, set->count * sizeof *set->draw));
    }
    sample_buffer_free(&buffer);
    results_free(&lazy);
}

/* Whatever is in it, a file is not slower than itself, and none of its verdicts has changed. */
static void check_against_itself(const struct results_set *set) {
    struct compare_options options;
    struct comparison comparison;
    struct tb_error error = TB_ERROR_INIT;
    compare_defaults(&options);
    options.allow_unfrozen = true;
    PROMISE(compare_sets(set, set, &options, &comparison, &error) == TB_OK);
    PROMISE(comparison.exit_code == 0 || comparison.exit_code == 3);
    PROMISE(comparison.count <= set->files[0].count);
    for (size_t i = 0; i < comparison.count; i++) {
        PROMISE(comparison.verdicts[i].outcome != OUTCOME_REGRESSED);
        PROMISE(comparison.verdicts[i].outcome != OUTCOME_CORRECTNESS);
        PROMISE(comparison.verdicts[i].outcome != OUTCOME_MISSING);
    }
    comparison_free(&comparison);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const metrics[] = {NULL, "cpu_time", "bytes_per_second"};
    char path[FUZZ_PATH_BYTES];
    const int descriptor = fuzz_file(data, size, path);
    for (size_t m = 0; m < sizeof metrics / sizeof metrics[0]; m++) {
        const struct read_options read = {.metric = metrics[m]};
        struct results results;
        struct tb_error error = TB_ERROR_INIT;
        const enum tb_status status = results_load(path, &read, &results, &error);
        fuzz_check_error(status, &error);
        if (status != TB_OK)
            continue;
        for (size_t i = 0; i < results.count; i++)
            check_cell(&results, &results.cells[i]);
        const struct results_set set = {path, &results, 1};
        check_against_itself(&set);
        check_later(&results, &read);
        results_free(&results);
    }
    close(descriptor);
    return 0;
}
