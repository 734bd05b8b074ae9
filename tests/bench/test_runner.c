/* The runner over kernels that misbehave in one known way each: no time without a passed gate, one
 * bad kernel costs its own cell alone, and an interrupted run ends up as an uninterrupted one. */
#include "fake.h"
#include "program.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { PATH = 128 };
static char out[PATH];

static int make_folder(void **state) {
    const int failed = scratch_make(state);
    snprintf(out, sizeof out, "%s/out", scratch);
    return failed;
}

static json_t *read_json(const char *name) {
    char path[PATH + 32];
    json_error_t why;
    snprintf(path, sizeof path, "%s/%s", out, name);
    json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (!json)
        fail_msg("%s:%d: %s", path, why.line, why.text);
    return json;
}

static void ran(struct fake *fake, enum tb_status should) {
    char text[1200];
    const enum tb_status is = fake_run(fake, 0);
    if (is != should)
        fail_msg("ends with %d: %s", (int)is, tb_error_text(&fake->error, text, sizeof text));
}

/* Entries of benchmark.json of a cell: how many have a time, and how many were refused. */
static void benchmark_entries(const char *cell, int *timed, int *refused) {
    json_t *json = read_json("benchmark.json");
    const json_t *entries = json_object_get(json, "benchmarks");
    *timed = *refused = 0;
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *entry = json_array_get(entries, i);
        if (strncmp(json_string_value(json_object_get(entry, "name")), cell, strlen(cell)) != 0)
            continue;
        const json_t *time = json_object_get(entry, "real_time");
        assert_true(json_is_number(time));
        if (json_is_true(json_object_get(entry, "error_occurred"))) {
            assert_true(json_number_value(time) == 0.0);
            assert_true(json_string_length(json_object_get(entry, "error_message")) > 0);
            assert_null(json_object_get(entry, "samples"));
            ++*refused;
        } else {
            assert_true(json_number_value(time) > 0.0);
            ++*timed;
        }
    }
    json_decref(json);
}

/* What each kernel must end as; all of them in one run. */
static const struct {
    enum fake_kind kind;
    enum gate_verdict verdict;
    const char *rule;
    int32_t draw;
    bool timed, as_expected;
} table[] = {
    {FAKE_GOOD, GATE_ACCEPTED, "", -1, true, true},
    {FAKE_WRONG, GATE_REJECTED, "not_oracle_set", 0, false, false},
    {FAKE_LATER_DRAW, GATE_REJECTED, "not_oracle_set", 1, false, false},
    {FAKE_PADDING, GATE_REJECTED, "padding", 0, false, false},
    {FAKE_HANGS, GATE_TIMEOUT, "timeout", 0, false, false},
    {FAKE_HANGS_LATER, GATE_TIMEOUT, "timeout", -1, false, false},
    {FAKE_WORKSPACE, GATE_REJECTED, "launch", 0, false, false},
    {FAKE_UNSUPPORTED, GATE_UNSUPPORTED, "", 0, false, true},
    {FAKE_MOST_BATCH, GATE_UNSUPPORTED, "", -1, false, true},
    {FAKE_DRIFTS, GATE_DRIFT, "drift", -1, false, false},
    {FAKE_LAUNCH_LATER, GATE_DRIFT, "launch", -1, false, false},
    {FAKE_TRUSTS_MEMORY, GATE_REJECTED, "not_oracle_set", 0, false, false},
    {FAKE_REFUSED_BLOCK, GATE_ACCEPTED, "", -1, false, true},
    {FAKE_FLOOR, GATE_ACCEPTED, "", -1, true, true},
    {FAKE_PAST_ROWS, GATE_REJECTED, "outside", 0, false, false},
    {FAKE_PAST_WORKSPACE, GATE_REJECTED, "outside", 0, false, false},
};

static void open_all(struct fake *fake) {
    enum fake_kind kinds[COUNT(table)];
    for (size_t i = 0; i < COUNT(table); i++)
        kinds[i] = table[i].kind;
    fake_open(fake, out, kinds, COUNT(table));
}

static void check_row(size_t row, const struct cell_record *record, const json_t *json) {
    const char *name = fake_name(table[row].kind);
    if (record->verdict != table[row].verdict || strcmp(record->rule, table[row].rule) != 0)
        fail_msg("%s: %s, rule '%s': %s", name, gate_verdict_name(record->verdict), record->rule,
                 record->reason);
    if (table[row].draw >= 0 && record->draw != table[row].draw)
        fail_msg("%s: draw %d", name, record->draw);
    if (record->as_expected != table[row].as_expected)
        fail_msg("%s: as_expected %d", name, record->as_expected);
    const bool samples = json_is_object(json_object_get(json, "samples"));
    if (samples != table[row].timed || (record->sample_count > 0) != table[row].timed ||
        json_is_real(json_object_get(json, "median_ns")) != table[row].timed ||
        json_is_string(json_object_get(json, "samples_sha256")) != table[row].timed)
        fail_msg("%s: timed %d", name, samples);
    if (table[row].timed)
        assert_int_equal(record->sample_count, FAKE_BLOCKS * 4);
    if (record->verdict != GATE_ACCEPTED)
        assert_true(record->reason[0] != '\0' && record->blocks == 0);
    int timed = 0, refused = 0;
    benchmark_entries(record->cell->name, &timed, &refused);
    if (table[row].timed ? timed < FAKE_BLOCKS || refused : timed || !refused)
        fail_msg("%s: benchmark.json: %d timed, %d refused", name, timed, refused);
}

static void check_all(const struct fake *fake) {
    json_t *json = read_json("results.json");
    for (size_t i = 0; i < COUNT(table); i++)
        check_row(i, &fake->result.cells[i], json_array_get(json_object_get(json, "cells"), i));
    json_decref(json);
    assert_int_equal(fake->result.timed, 2);
    assert_int_equal(fake->result.unexpected, 11);
    assert_int_equal(fake->result.unmeasured, 1);
    assert_int_equal(sweep_exit_code(&fake->result), 1);
}

static void test_every_misbehaviour(void **state) {
    (void)state;
    struct fake fake;
    open_all(&fake);
    ran(&fake, TB_OK);
    check_all(&fake);
    assert_string_equal(fake.result.cells[12].unmeasured, "3 of 4 records were dropped");
    assert_int_equal(fake.result.cells[12].blocks, 2);
    /* From the journal alone, nothing run: the same. */
    fake.run.resume = true;
    ran(&fake, TB_OK);
    assert_int_equal(fake_calls(), 0);
    check_all(&fake);
    fake_close(&fake);
}

/* tim-03: a clear state and exit code 3, not zero samples of no duration. */
static void test_no_valid_samples(void **state) {
    (void)state;
    static const enum fake_kind kinds[] = {FAKE_GOOD, FAKE_REFUSED_BLOCK};
    struct fake fake;
    char *table_text = NULL;
    size_t length = 0;
    fake_open(&fake, out, kinds, COUNT(kinds));
    fake.run.table = open_memstream(&table_text, &length);
    ran(&fake, TB_OK);
    fclose(fake.run.table);
    assert_int_equal(fake.result.unexpected, 0);
    assert_int_equal(sweep_exit_code(&fake.result), 3);
    assert_non_null(strstr(table_text, "no valid samples: 3 of 4 records were dropped"));
    assert_null(strstr(table_text, "nan"));
    assert_non_null(strstr(table_text, "1 without valid samples"));
    free(table_text);
    fake_close(&fake);
}

static void test_gate_only(void **state) {
    (void)state;
    static const enum fake_kind kinds[] = {FAKE_GOOD, FAKE_WRONG};
    struct fake fake;
    fake_open(&fake, out, kinds, COUNT(kinds));
    fake.run.gate_only = true;
    ran(&fake, TB_OK);
    assert_int_equal(fake_calls(), 2 * FAKE_DRAWS);
    assert_int_equal(fake.result.timed, 0);
    assert_int_equal(fake.result.by_verdict[GATE_ACCEPTED], 1);
    fake_close(&fake);
}

/* Cells that differ in l2 and launch alone are gated once, and timed each on its own. */
static void test_gated_once_for_all_modes(void **state) {
    (void)state;
    static const enum fake_kind kinds[] = {FAKE_GOOD, FAKE_GOOD, FAKE_WRONG, FAKE_WRONG};
    struct fake fake;
    fake_open(&fake, out, kinds, COUNT(kinds));
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct cell *cell = &fake.cells[i];
        cell->l2 = i % 2 ? L2_COLD : L2_WARM;
        const size_t length = strlen(cell->name);
        snprintf(cell->name + length, sizeof cell->name - length, "/l2:%s", cell_l2_name(cell->l2));
    }
    fake.run.gate_only = true;
    ran(&fake, TB_OK);
    assert_int_equal(fake_calls(), 2 * FAKE_DRAWS);
    const struct cell_record *cells = fake.result.cells;
    for (size_t i = 0; i < COUNT(kinds); i += 2) {
        assert_int_equal(cells[i].verdict, i ? GATE_REJECTED : GATE_ACCEPTED);
        assert_int_equal(cells[i + 1].verdict, cells[i].verdict);
        assert_string_equal(cells[i + 1].rule, cells[i].rule);
        assert_int_equal(cells[i + 1].rows_failed, cells[i].rows_failed);
        assert_string_equal(cells[i + 1].cell->name, fake.cells[i + 1].name);
        for (int32_t draw = 0; draw < FAKE_DRAWS; draw++)
            assert_string_equal(cells[i + 1].draws[draw].mask_sha256,
                                cells[i].draws[draw].mask_sha256);
    }
    fake.run.gate_only = false;
    fake.run.force = true;
    ran(&fake, TB_OK);
    assert_int_equal(fake.result.timed, 2);
    assert_int_equal(fake.result.cells[0].blocks, FAKE_BLOCKS);
    assert_int_equal(fake.result.cells[1].blocks, FAKE_BLOCKS);
    fake_close(&fake);
}

/* A cache that holds nothing: inputs are made again and again, and none is freed while in use. */
static void test_inputs_that_do_not_fit(void **state) {
    (void)state;
    static const enum fake_kind kinds[] = {FAKE_GOOD, FAKE_FLOOR};
    struct fake fake;
    fake_open(&fake, out, kinds, COUNT(kinds));
    fake.run.cache_bytes = 1;
    fake.cells[0].draws = fake.cells[1].draws = 64;
    fake.cells[1].seed = 43;
    ran(&fake, TB_OK);
    assert_int_equal(fake.result.timed, 2);
    assert_int_equal(fake.result.cells[1].sample_count, FAKE_BLOCKS * 64);
    fake_close(&fake);
}

static void test_expectations(void **state) {
    (void)state;
    static const enum fake_kind kinds[] = {FAKE_GOOD, FAKE_WRONG, FAKE_WRONG, FAKE_WORKSPACE,
                                           FAKE_PAST_ROWS};
    struct fake fake;
    fake_open(&fake, out, kinds, COUNT(kinds));
    snprintf(fake.cells[2].name, sizeof fake.cells[2].name, "topp/wrong/another");
    fake.cells[0].expect = EXPECT_REJECT; /* accepted all the same */
    fake.cells[1].expect = EXPECT_REJECT;
    fake.cells[2].expect = EXPECT_REJECT; /* rejected, but by another rule */
    snprintf(fake.cells[2].expect_rule, sizeof fake.cells[2].expect_rule, "empty_mask");
    for (int i = 3; i < 5; i++) { /* no rule of a row: nothing excuses them */
        fake.cells[i].expect = EXPECT_EITHER;
        fake.cells[i].either_share = 1.0;
    }
    ran(&fake, TB_OK);
    assert_false(fake.result.cells[0].as_expected);
    assert_true(fake.result.cells[1].as_expected);
    assert_false(fake.result.cells[2].as_expected);
    assert_false(fake.result.cells[3].as_expected);
    assert_false(fake.result.cells[4].as_expected);
    assert_int_equal(fake.result.timed, 1);
    fake_close(&fake);
}

/* ---- interruption ----------------------------------------------------------------------- */

static void drop_members(json_t *object, const char *const *names) {
    for (; *names; names++)
        json_object_del(object, *names);
}

/* The results without what differs from run to run. */
static json_t *comparable(void) {
    static const char *const once[] = {"id", "date", "resumed", NULL};
    static const char *const timed[] = {
        "median_ns", "ci_low_ns",      "ci_high_ns",   "p05_ns",
        "p95_ns",    "draw_low_ns",    "draw_high_ns", "bytes_per_second",
        "samples",   "samples_sha256", "sample_count", "ratio_to_floor",
        NULL};
    json_t *json = read_json("results.json");
    json_t *cells = json_object_get(json, "cells");
    drop_members(json_object_get(json, "run"), once);
    for (size_t i = 0; i < json_array_size(cells); i++)
        drop_members(json_array_get(cells, i), timed);
    return json;
}

static void test_interrupted_anywhere(void **state) {
    (void)state;
    static const enum fake_kind kinds[] = {FAKE_GOOD, FAKE_WRONG, FAKE_DRIFTS, FAKE_REFUSED_BLOCK};
    struct fake fake;
    fake_open(&fake, out, kinds, COUNT(kinds));
    ran(&fake, TB_OK);
    const long calls = fake_calls();
    json_t *whole = comparable();
    assert_true(calls > 20);
    for (long at = 1; at <= calls; at++) {
        snprintf(out, sizeof out, "%s/at%ld", scratch, at);
        fake.run.resume = false;
        const enum tb_status status = fake_run(&fake, at);
        if (status == TB_OK) /* the order of blocks is random, and drift cuts it short */
            continue;
        assert_int_equal(status, TB_INTERRUPTED);
        assert_int_equal(fake.error.code, TB_INTERRUPTED);
        assert_non_null(strstr(fake.error.message, "--resume"));
        assert_int_equal(tb_exit_code(status), 4);
        char path[PATH + 32];
        snprintf(path, sizeof path, "%s/results.json", out);
        assert_false(file_exists(path));
        fake.run.resume = true;
        ran(&fake, TB_OK);
        assert_true(fake.result.info.resumed);
        json_t *resumed = comparable();
        if (!json_equal(whole, resumed)) {
            char *is = json_dumps(resumed, JSON_INDENT(1)),
                 *was = json_dumps(whole, JSON_INDENT(1));
            print_error("%s\n---\n%s\n", was, is);
            fail_msg("stopped at call %ld of %ld", at, calls);
        }
        json_decref(resumed);
    }
    json_decref(whole);
    fake_close(&fake);
}

static void test_what_may_be_replaced(void **state) {
    (void)state;
    static const enum fake_kind kinds[] = {FAKE_GOOD};
    struct fake fake;
    fake_open(&fake, out, kinds, COUNT(kinds));
    assert_int_equal(fake_run(&fake, 4), TB_INTERRUPTED);
    /* Unasked, an interrupted run is left alone. */
    ran(&fake, TB_USAGE);
    assert_non_null(strstr(fake.error.message, "--resume"));
    /* Other sources: it cannot be gone on with, and that is not advised. */
    fake.run.sources_sha256 = "other";
    ran(&fake, TB_USAGE);
    assert_non_null(strstr(fake.error.message, "sources"));
    assert_null(strstr(fake.error.message, "--resume"));
    fake.run.resume = true;
    ran(&fake, TB_UNREADABLE);
    assert_non_null(strstr(fake.error.message, "sources"));
    fake.run.resume = false;
    fake.run.force = true;
    ran(&fake, TB_OK);
    /* Finished: the same plan may run again, another may not. */
    fake.run.force = false;
    ran(&fake, TB_OK);
    fake.run.sources_sha256 = NULL;
    ran(&fake, TB_USAGE);
    assert_non_null(strstr(fake.error.message, "--out"));
    assert_non_null(strstr(fake.error.message, "--force"));
    fake_close(&fake);
}

static void test_limit_of_what_is_written(void **state) {
    (void)state;
    static const enum fake_kind kinds[] = {FAKE_GOOD};
    struct fake fake;
    fake_open(&fake, out, kinds, COUNT(kinds));
    fake.plan.limits.artifact_bytes = 1500;
    ran(&fake, TB_IO);
    assert_non_null(strstr(fake.error.message, "limits.artifact_bytes"));
    fake_close(&fake);
}

static void test_no_kernels_for_the_device(void **state) {
    (void)state;
    static const enum fake_kind kinds[] = {FAKE_GOOD};
    struct fake fake;
    fake_open(&fake, out, kinds, COUNT(kinds));
    fake.plan.listing_only = true;
    ran(&fake, TB_UNAVAILABLE);
    assert_false(file_exists(out));
    fake_close(&fake);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, scratch_drop)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_every_misbehaviour),
        IN_FOLDER(test_no_valid_samples),
        IN_FOLDER(test_gate_only),
        IN_FOLDER(test_gated_once_for_all_modes),
        IN_FOLDER(test_inputs_that_do_not_fit),
        IN_FOLDER(test_expectations),
        IN_FOLDER(test_interrupted_anywhere),
        IN_FOLDER(test_what_may_be_replaced),
        IN_FOLDER(test_limit_of_what_is_written),
        IN_FOLDER(test_no_kernels_for_the_device),
    };
    return cmocka_run_group_tests_name("runner", tests, NULL, NULL);
}
