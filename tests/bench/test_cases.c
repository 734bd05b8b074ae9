/* Faults from public bug reports that concern timing on the CPU and the command line, by id. */
#include "bench/timing_clock.h"
#include "tests/bench/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { TOKENS = 256 };

/* An in-place kernel: it masks every second token, and notes what it was given. */
struct in_place {
    float pristine[TOKENS], work[TOKENS];
    int runs, stale;
};

static int restore(void *context, void *stream) {
    struct in_place *call = context;
    (void)stream;
    memcpy(call->work, call->pristine, sizeof call->work);
    return 0;
}

static int mask(void *context, void *stream) {
    struct in_place *call = context;
    (void)stream;
    call->runs++;
    call->stale += memcmp(call->work, call->pristine, sizeof call->work) != 0;
    for (int i = 0; i < TOKENS; i += 2)
        call->work[i] = -1.0f;
    return 0;
}

/* Every timed launch sees the unmasked row; without the restore all but the first are stale. */
static void tim_02(void **state) {
    (void)state;
    static const struct timing_settings settings = {
        .blocks = 1, .min_samples = 20, .max_samples = 20, .precision = 0.5, .block_seconds = 1.0};
    struct sample samples[20];
    struct in_place call = {{0}, {0}, 0, 0};
    size_t count = 0;
    for (int i = 0; i < TOKENS; i++)
        call.pristine[i] = (float)i;
    struct timed_call timed = {.context = &call, .prepare = restore, .run = mask, .name = "mask"};
    const struct block_request request = {
        .calls = &timed, .draws = 1, .settings = &settings, .warmup_seconds = 0.0};
    assert_int_equal(timing_clock_block(&request, samples, &count), 0);
    assert_int_equal(count, 20);
    assert_int_equal(call.runs, 20);
    assert_int_equal(call.stale, 0);
    timed.prepare = NULL;
    assert_int_equal(timing_clock_block(&request, samples, &count), 0);
    assert_int_equal(call.stale, 20); /* the last mask of the first block is still there */
}

/* A filter that matches nothing ends at once and leaves no folder; a failed cell shows in the exit
 * code. */
static void cli_01(void **state) {
    (void)state;
    char out[300], profile[300];
    snprintf(out, sizeof out, "%s/out", scratch);
    program_expect("no such cell",
                   WORDS("--sweep", "--device", "cpu", "--profile", "smoke", "--filter",
                         "no/such/cell", "--out", out),
                   2, "matches none of the 68 cells");
    assert_false(file_exists(out));
    static const char failing[] =
        "{\"schema\":\"topp-bench.profile/1\",\"name\":\"failing\",\"device\":\"cpu\",\"seed\":42,"
        "\"limits\":{\"max_vocab\":1000,\"max_batch\":4,\"case_seconds\":30,"
        "\"artifact_bytes\":10485760},"
        "\"timing\":{\"blocks\":1,\"min_samples\":2,\"max_samples\":4,\"precision\":0.5,"
        "\"block_seconds\":0.01,\"warmup_seconds\":0,\"draws\":1},"
        "\"matrix\":[{\"kind\":\"topp\",\"kernels\":[\"stock\"],\"families\":[\"forced=1e9@13\"],"
        "\"vocab\":[1000],\"batch\":[1],\"p\":[0.9]}]}";
    snprintf(profile, sizeof profile, "%s/failing.json", scratch);
    file_write(profile, failing, sizeof failing - 1);
    struct program_run run =
        program_run(WORDS("--sweep", "--device", "cpu", "--profile", profile, "--out", out));
    assert_int_equal(run.exit_code, 1);
    assert_non_null(strstr(run.output, "1 NOT as expected"));
    program_free(&run);
}

/* An output that cannot be written is found before any work. */
static void cli_03(void **state) {
    (void)state;
    char file[300], below[340];
    snprintf(file, sizeof file, "%s/file", scratch);
    file_write(file, "x", 1);
    snprintf(below, sizeof below, "%s/out", file);
    program_expect("a file for a folder",
                   WORDS("--sweep", "--device", "cpu", "--profile", "smoke", "--out", below), 2,
                   file);
    snprintf(below, sizeof below, "%s/absent/masked.npy", scratch);
    program_expect("no such folder",
                   WORDS("--apply", "exact", "--device", "cpu", "--input",
                         TOPP_SOURCE_DIR "/profiles/captured/smollm2_135m_decode.npy", "--p", "0.9",
                         "--out", below),
                   2, below);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tim_02),
        cmocka_unit_test_setup_teardown(cli_01, scratch_make, scratch_drop),
        cmocka_unit_test_setup_teardown(cli_03, scratch_make, scratch_drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
