/* Two kernels against each other: the order of blocks, what the gate refuses, interruption, and
 * what perfwatch makes of the pair. */
#include "fake.h"
#include "program.h"

#include "bench/run_ab.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 10, SAMPLES = 8 };
static char out[2][96];
static struct fake fakes[2];
static struct run_result results[2];
static struct tb_error error;

static int make_folder(void **state) {
    const int failed = scratch_make(state);
    for (int side = 0; side < 2; side++)
        snprintf(out[side], sizeof out[side], "%s/%c", scratch, "ab"[side]);
    return failed;
}

static void open_pair(enum fake_kind a, enum fake_kind b) {
    const enum fake_kind kinds[2] = {a, b};
    for (int side = 0; side < 2; side++) {
        fake_open(&fakes[side], out[side], &kinds[side], 1);
        fakes[side].plan.timing.blocks = BLOCKS;
        fakes[side].plan.limits.case_seconds = 100.0; /* none of them hangs */
        fakes[side].plan.timing.min_samples = fakes[side].plan.timing.max_samples = SAMPLES;
        fakes[side].run.device = &fakes[0].device;
        fakes[side].run.stop = &fakes[0].stop;
        fakes[side].run.subset = true;
        fakes[side].run.force = true;
    }
    fake_stop_at(0, &fakes[0].stop);
    fake_blocks();
}

static enum tb_status execute(bool resume) {
    struct sweep_run runs[2] = {fakes[0].run, fakes[1].run};
    for (int side = 0; side < 2; side++) {
        runs[side].resume = resume;
        runs[side].force = !resume;
    }
    error = (struct tb_error)TB_ERROR_INIT;
    return ab_execute(runs, results, &error);
}

static void close_pair(void) {
    for (int side = 0; side < 2; side++) {
        run_result_free(&results[side]);
        fake_close(&fakes[side]);
    }
}

static void ran(enum tb_status should, bool resume) {
    char text[1200];
    const enum tb_status is = execute(resume);
    if (is != should)
        fail_msg("ends with %d: %s", (int)is, tb_error_text(&error, text, sizeof text));
}

/* Runs perfwatch over the pair; what it prints is to be freed. */
static char *judged(const char *kernels, int exit_code) {
    char command[700], path[128];
    snprintf(path, sizeof path, "%s/verdict", scratch);
    snprintf(command, sizeof command,
             "'%s' compare --all --margin 200%% --kernels %s '%s' '%s' >'%s' 2>&1", TOPP_PERFWATCH,
             kernels, out[0], out[1], path);
    const int how = system(command);
    char *text = file_text(path, NULL);
    if (WEXITSTATUS(how) != exit_code)
        fail_msg("%s: ends with %d, not %d: %s", kernels, WEXITSTATUS(how), exit_code, text);
    return text;
}

static void assert_says(char *text, const char *words) {
    if (!strstr(text, words))
        fail_msg("does not say '%s': %s", words, text);
    free(text);
}

static void test_slow_twin(void **state) {
    (void)state;
    open_pair(FAKE_GOOD, FAKE_SLOW);
    ran(TB_OK, false);
    assert_string_equal(fake_blocks(), "gssggssggssggssggssg");
    for (int side = 0; side < 2; side++) {
        assert_int_equal(results[side].cells[0].blocks, BLOCKS);
        assert_int_equal(results[side].cells[0].sample_count, BLOCKS * SAMPLES);
    }
    assert_says(judged("good,slow", 1), "regressed");
    close_pair();
}

static void test_fast_twin(void **state) {
    (void)state;
    open_pair(FAKE_SLOW, FAKE_GOOD);
    ran(TB_OK, false);
    assert_says(judged("slow,good", 0), "improved");
    close_pair();
}

static void test_the_same(void **state) {
    (void)state;
    open_pair(FAKE_GOOD, FAKE_GOOD);
    ran(TB_OK, false);
    assert_says(judged("good,good", 0), "1 compared in time, 1 equivalent");
    close_pair();
}

/* Neither is timed when one is refused. */
static void test_refused(void **state) {
    (void)state;
    open_pair(FAKE_GOOD, FAKE_WRONG);
    ran(TB_OK, false);
    assert_string_equal(fake_blocks(), "");
    assert_int_equal(results[0].cells[0].sample_count, 0);
    assert_says(judged("good,wrong", 1), "accepted -> rejected, not_oracle_set");
    close_pair();
    open_pair(FAKE_WRONG, FAKE_WRONG);
    ran(TB_OK, false);
    assert_says(judged("wrong,wrong", 3), "no cell of both kernels was timed");
    close_pair();
}

/* A verdict lost while timing takes the times with it. */
static void test_drift(void **state) {
    (void)state;
    open_pair(FAKE_GOOD, FAKE_DRIFTS);
    ran(TB_OK, false);
    assert_int_equal(results[1].cells[0].verdict, GATE_DRIFT);
    assert_int_equal(results[1].cells[0].sample_count, 0);
    assert_says(judged("good,drifts", 1), "accepted -> drift");
    close_pair();
}

static size_t lines_of(const char *folder, const char *word) {
    char path[160];
    size_t count = 0;
    snprintf(path, sizeof path, "%s/journal.jsonl", folder);
    char *text = file_text(path, NULL);
    for (const char *at = text; (at = strstr(at, word)); at++)
        count++;
    free(text);
    return count;
}

/* Stopped at any block, both go on where they were: nothing is timed twice. */
static void test_resume(void **state) {
    (void)state;
    const long per_block = SAMPLES;
    for (int block = 0; block < 8; block += 3) {
        open_pair(FAKE_GOOD, FAKE_SLOW);
        /* The CPU twin's own calls and those of the gate come before. */
        fake_stop_at(2 * FAKE_DRAWS + (long)(block * per_block) + per_block / 2, &fakes[0].stop);
        ran(TB_INTERRUPTED, false);
        const size_t a = lines_of(out[0], "\"line\":\"block\"");
        const size_t b = lines_of(out[1], "\"line\":\"block\"");
        assert_in_range(a + b, 0, 2 * BLOCKS - 1);
        run_result_free(&results[0]);
        run_result_free(&results[1]);
        fakes[0].stop = 0;
        fake_stop_at(0, &fakes[0].stop);
        fake_blocks();
        ran(TB_OK, true);
        assert_int_equal(strlen(fake_blocks()), 2 * BLOCKS - a - b);
        for (int side = 0; side < 2; side++)
            assert_int_equal(lines_of(out[side], "\"line\":\"block\""), BLOCKS);
        assert_says(judged("good,slow", 1), "regressed");
        close_pair();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_twin), cmocka_unit_test(test_fast_twin),
        cmocka_unit_test(test_the_same),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_drift),     cmocka_unit_test(test_resume),
    };
    return cmocka_run_group_tests(tests, make_folder, scratch_drop);
}
