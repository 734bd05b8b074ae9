/* Records to files: strict JSON, TSV and table, judged by judge_results.py; the same bytes under
 * every locale; hashes and samples there and back. argv[1]: python3. */
#include "bench/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CELLS = 8, SAMPLES = 24 };

static const char *python;

static const struct topp_variant split = {.name = "split", .contract = "bounded"};
static const struct topp_variant floor_variant = {
    .name = "floor", .contract = "exact", .needs_boundary = 1};
static const struct gumbel_variant noise = {.name = "log1p", .device = KERNEL_DEVICE_CUDA};

/* Cells of every kind, their plan beside them. */
struct scene {
    struct cell cells[CELLS];
    struct run_result result;
};

static void name_cell(struct cell *cell, const char *name) {
    snprintf(cell->name, sizeof cell->name, "%s", name);
    snprintf(cell->family.text, sizeof cell->family.text, "normal");
    snprintf(cell->p_text, sizeof cell->p_text, "0.9");
    cell->kind = CELL_TOPP;
    cell->topp = &split;
    cell->vocab = 1000;
    cell->batch = 4;
    cell->stride = 1003;
    cell->p = 0.9F;
    cell->seed = 42;
    cell->draws = 1;
    cell->timed = true;
}

static void give_samples(struct cell_record *record, int32_t draws, bool device_figures) {
    record->samples = calloc(SAMPLES, sizeof *record->samples);
    record->sample_count = SAMPLES;
    record->blocks = 2;
    for (int32_t i = 0; i < SAMPLES; i++) {
        const int32_t draw = i % draws;
        record->samples[i] = (struct sample){
            .time_ns = 1105095.74 * (1 + draw) + 4.97 * ((i * 7) % SAMPLES),
            .busy_ns = device_figures && i % 3 ? 1e6 / (i + 1) : (double)NAN,
            .cycles = (double)NAN,
            .sm_mhz = device_figures ? 1980.5 : (double)NAN,
            .block = i / (SAMPLES / 2),
            .draw = draw,
        };
    }
}

static void refuse(struct cell_record *record, enum gate_verdict verdict, enum gate_rule rule) {
    record->verdict = verdict;
    snprintf(record->rule, sizeof record->rule, "%s", gate_rule_name(rule));
    snprintf(record->reason, sizeof record->reason, "%s", gate_rule_text(rule));
    record->rows_by_rule[rule] = 2;
    record->rows_failed = 2;
    record->draw = 0;
    record->row = 3;
    record->token = 17;
    record->row_kept = 5;
    record->row_oracle = 6;
}

static void make_records(struct scene *scene) {
    struct cell_record *records = scene->result.cells;
    for (int i = 0; i < CELLS; i++) {
        records[i].cell = &scene->cells[i];
        records[i].gated = true;
        records[i].draw = -1;
        records[i].row = records[i].token = records[i].row_kept = records[i].row_oracle = -1;
        records[i].events_ns = (double)NAN;
        records[i].rows = 4;
        records[i].kept = 1234567;
        records[i].oracle = 1234566;
        records[i].surplus_mass = 0.1;
        records[i].draw_count = scene->cells[i].draws;
        records[i].draws = calloc((size_t)scene->cells[i].draws, sizeof *records[i].draws);
    }
    give_samples(&records[0], 3, true);
    records[0].conditions = json_pack("[{s:f}]", "power_w", 123.456);
    records[0].kernels = calloc(1, sizeof *records[0].kernels);
    records[0].kernel_count = 1;
    snprintf(records[0].kernels->name, sizeof records[0].kernels->name, "mask<\"8\">\\");
    give_samples(&records[1], 1, false);
    refuse(&records[2], GATE_REJECTED, GATE_RULE_UNDERKEEP);
    refuse(&records[3], GATE_REJECTED, GATE_RULE_TIE_ORDER);
    records[4].surplus_mass = (double)INFINITY;
    snprintf(records[4].unmeasured, sizeof records[4].unmeasured, "records\twere\ndropped");
    records[5].statistic = json_pack("{s:f}", "noise_error", 1.5e-7);
    give_samples(&records[5], 1, true);
    records[6].verdict = GATE_UNSUPPORTED;
}

static struct scene *scene_make(void) {
    struct scene *scene = calloc(1, sizeof *scene);
    assert_non_null(scene);
    scene->result.count = CELLS;
    scene->result.cells = calloc(CELLS, sizeof *scene->result.cells);
    assert_non_null(scene->result.cells);
    static const char *const names[CELLS] = {"topp/split/normal/timed over draws",
                                             "topp/floor/normal",
                                             "topp/split/refused",
                                             "topp/split/refused as expected",
                                             "topp/split/quote \" backslash \\ tab \t",
                                             "gumbel/log1p/normal",
                                             "topp/split/unsupported",
                                             "topp/split/accepted, but should not"};
    for (int i = 0; i < CELLS; i++)
        name_cell(&scene->cells[i], names[i]);
    scene->cells[0].draws = 3;
    scene->cells[1].topp = &floor_variant;
    scene->cells[3].expect = EXPECT_REJECT;
    scene->cells[5].kind = CELL_GUMBEL;
    scene->cells[5].gumbel = &noise;
    scene->cells[5].temperature = 0.7F;
    scene->cells[5].l2 = L2_COLD;
    scene->cells[5].launch = LAUNCH_GRAPH;
    scene->cells[7].expect = EXPECT_REJECT;
    scene->cells[7].timed = false;
    make_records(scene);
    scene->result.info.timing.precision = 0.005;
    scene->result.info.limits.case_seconds = 2.5;
    record_finish_run(&scene->result);
    return scene;
}

static void scene_free(struct scene *scene) {
    run_result_free(&scene->result);
    free(scene);
}

typedef enum tb_status writer(const struct run_result *result, FILE *stream,
                              struct tb_error *error);

static enum tb_status write_table(const struct run_result *result, FILE *stream,
                                  struct tb_error *error) {
    (void)error;
    writer_table(result, stream, false);
    return TB_OK;
}

static char *text_of(writer *write, const struct run_result *result) {
    char *text = NULL;
    size_t length = 0;
    struct tb_error error = TB_ERROR_INIT;
    FILE *stream = open_memstream(&text, &length);
    assert_non_null(stream);
    assert_int_equal(write(result, stream, &error), TB_OK);
    assert_int_equal(fclose(stream), 0);
    return text;
}

static void write_text(const char *folder, const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* 0 when the judge finds both files good. */
static int judged(const char *json, const char *tsv) {
    char folder[] = "/tmp/topp-writers-XXXXXX", command[1024];
    assert_non_null(mkdtemp(folder));
    write_text(folder, "results.json", json);
    write_text(folder, "results.tsv", tsv);
    snprintf(command, sizeof command, "'%s' '%s/tests/bench/judge_results.py' %s 1>&2", python,
             TOPP_SOURCE_DIR, folder);
    const int status = system(command);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    return status;
}

/* text with the first `old` replaced; free(). */
static char *replaced(const char *text, const char *old, const char *new) {
    const char *at = strstr(text, old);
    assert_non_null(at);
    char *made = malloc(strlen(text) + strlen(new) + 1);
    assert_non_null(made);
    memcpy(made, text, (size_t)(at - text));
    strcpy(made + (at - text), new);
    strcat(made, at + strlen(old));
    return made;
}

static void test_judge_agrees(void **state) {
    (void)state;
    struct scene *scene = scene_make();
    char *json = text_of(writer_json, &scene->result), *tsv = text_of(writer_tsv, &scene->result);
    assert_int_equal(judged(json, tsv), 0);
    /* ... and is no rubber stamp. */
    static const struct {
        const char *old, *new;
    } forgeries[] = {
        {"\"median_ns\":2", "\"median_ns\":3"},
        {"\"time_ns\":[1", "\"time_ns\":[2"},
        {"\"surplus_mass\":null", "\"surplus_mass\":Infinity"},
        {"\"unexpected\":2", "\"unexpected\":1"},
        {"\"ratio_to_floor\":1.9", "\"ratio_to_floor\":2.9"},
    };
    for (size_t i = 0; i < sizeof forgeries / sizeof forgeries[0]; i++) {
        char *forged = replaced(json, forgeries[i].old, forgeries[i].new);
        assert_int_not_equal(judged(forged, tsv), 0);
        free(forged);
    }
    free(json);
    free(tsv);
    scene_free(scene);
}

/* jsn-01: no bare nan or infinity. */
static void test_json_parses(void **state) {
    (void)state;
    struct scene *scene = scene_make();
    char *text = text_of(writer_json, &scene->result);
    json_error_t why;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    assert_non_null(json);
    const json_t *cell = json_array_get(json_object_get(json, "cells"), 4);
    assert_string_equal(json_string_value(json_object_get(cell, "name")), scene->cells[4].name);
    assert_true(json_is_null(json_object_get(cell, "surplus_mass")));
    assert_true(json_is_null(json_object_get(cell, "median_ns")));
    json_decref(json);
    free(text);
    scene_free(scene);
}

static void test_samples_there_and_back(void **state) {
    (void)state;
    struct scene *scene = scene_make();
    const struct cell_record *record = &scene->result.cells[0];
    json_t *json = samples_to_json(record->samples, record->sample_count);
    assert_true(json_is_null(json_object_get(json, "cycles")));
    char *text = json_dumps(json, JSON_REAL_PRECISION(17)), hash[65];
    json_decref(json);
    json = json_loads(text, 0, NULL);
    struct sample *samples;
    size_t count;
    assert_true(samples_from_json(json, &samples, &count));
    assert_int_equal(count, SAMPLES);
    samples_hash(samples, count, hash);
    assert_string_equal(hash, record->samples_sha256);
    samples[5].time_ns = nextafter(samples[5].time_ns, 0.0);
    samples_hash(samples, count, hash);
    assert_string_not_equal(hash, record->samples_sha256);
    free(samples);
    static const char *const bad[] = {
        "{}",
        "[]",
        "{\"time_ns\":[1],\"busy_ns\":null,\"cycles\":null,\"sm_mhz\":null,\"block\":[0,0],"
        "\"draw\":[0,0]}",
        "{\"time_ns\":[\"1\"],\"busy_ns\":null,\"cycles\":null,\"sm_mhz\":null,\"block\":[0],"
        "\"draw\":[0]}",
        "{\"time_ns\":[1],\"busy_ns\":null,\"cycles\":null,\"sm_mhz\":null,\"block\":[-1],"
        "\"draw\":[0]}",
        "{\"time_ns\":[1],\"busy_ns\":null,\"cycles\":null,\"block\":[0],\"draw\":[0]}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_t *wrong = json_loads(bad[i], 0, NULL);
        assert_non_null(wrong);
        assert_false(samples_from_json(wrong, &samples, &count));
        json_decref(wrong);
    }
    json_decref(json);
    free(text);
    scene_free(scene);
}

static void test_expectations(void **state) {
    (void)state;
    static const struct {
        enum expectation expect;
        enum gate_verdict verdict;
        bool excused, wanted;
    } rows[] = {
        {EXPECT_ACCEPT, GATE_ACCEPTED, false, true},
        {EXPECT_ACCEPT, GATE_REJECTED, false, false},
        {EXPECT_ACCEPT, GATE_AMBIGUOUS, false, false},
        {EXPECT_ACCEPT, GATE_DRIFT, false, false},
        {EXPECT_ACCEPT, GATE_TIMEOUT, false, false},
        {EXPECT_ACCEPT, GATE_UNSUPPORTED, false, true},
        {EXPECT_REJECT, GATE_ACCEPTED, false, false},
        {EXPECT_REJECT, GATE_REJECTED, false, true},
        {EXPECT_REJECT, GATE_TIMEOUT, false, false},
        {EXPECT_EITHER, GATE_ACCEPTED, false, true},
        {EXPECT_EITHER, GATE_REJECTED, true, true},
        {EXPECT_EITHER, GATE_REJECTED, false, false},
        {EXPECT_EITHER, GATE_DRIFT, true, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cell cell = {.expect = rows[i].expect, .topp = &split, .batch = 1, .vocab = 1};
        struct cell_record record = {
            .cell = &cell, .gated = true, .verdict = rows[i].verdict, .excused = rows[i].excused};
        record_finish_cell(&record);
        assert_int_equal(record.as_expected, rows[i].wanted);
    }
}

static void test_table(void **state) {
    (void)state;
    struct scene *scene = scene_make();
    char *text = text_of(write_table, &scene->result);
    assert_non_null(
        strstr(text, "underkeep at row 3, token 17 (keeps 5, oracle 6) - NOT EXPECTED"));
    assert_non_null(strstr(text, "tie_order at row 3, token 17 (keeps 5, oracle 6) - as expected"));
    assert_non_null(strstr(text, "accepted, but the profile expects a refusal - NOT EXPECTED"));
    assert_non_null(strstr(text, "no valid samples: records"));
    assert_non_null(strstr(text, "2.210 ms")); /* median over three draws */
    assert_non_null(strstr(text, "8 cells: 5 accepted (3 timed), 3 refused (2 rejected, 1 "
                                 "unsupported), 1 without valid samples. 2 NOT as expected.\n"));
    assert_null(strstr(text, "\033["));
    /* A refused cell shows no time. */
    const char *row = strstr(text, "topp/split/refused ");
    assert_non_null(row);
    char line[512];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(row, "\n"), row);
    assert_null(strstr(line, " us"));
    assert_null(strstr(line, " ms"));
    free(text);
    scene_free(scene);
}

/* A comma locale that this machine may have to make first; false when it cannot. */
static bool set_comma_locale(void) {
    if (setlocale(LC_ALL, "de_DE.UTF-8"))
        return true;
    char command[1024];
    mkdir(TOPP_BINARY_DIR "/locale", 0777);
    snprintf(command, sizeof command,
             "localedef -i de_DE -f UTF-8 '%s/locale/de_DE.UTF-8' >/dev/null 2>&1",
             TOPP_BINARY_DIR);
    if (system(command) != 0)
        print_message("  localedef has no sources here (Debian: package locales)\n");
    setenv("LOCPATH", TOPP_BINARY_DIR "/locale", 1);
    return setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
}

/* jsn-02: a point in numbers under a comma locale. */
static void test_locale(void **state) {
    (void)state;
    struct scene *scene = scene_make();
    writer *const writers[] = {writer_json, writer_tsv, write_table};
    char *before[3];
    for (int i = 0; i < 3; i++)
        before[i] = text_of(writers[i], &scene->result);
    const bool comma = set_comma_locale();
    char shown[32];
    snprintf(shown, sizeof shown, "%.2f", 4.97);
    bool same = true;
    for (int i = 0; i < 3; i++) {
        char *text = text_of(writers[i], &scene->result);
        same = same && !strcmp(text, before[i]);
        free(text);
        free(before[i]);
    }
    setlocale(LC_ALL, "C");
    scene_free(scene);
    if (!comma)
        skip();
    assert_string_equal(shown, "4,97"); /* the locale is in force */
    assert_true(same);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_judge_agrees),
        cmocka_unit_test(test_json_parses),
        cmocka_unit_test(test_samples_there_and_back),
        cmocka_unit_test(test_expectations),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_locale),
    };
    python = argc > 1 ? argv[1] : "python3";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
