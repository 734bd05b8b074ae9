/* Options of --sweep and --list on a tiny profile: what they choose, mark and refuse. */
#include "program.h"

#include "bench/device.h"
#include "bench/inputs.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH = 160 };

static char profiles[PATH], out[PATH], rows[PATH], small[PATH], broken[PATH];

static const char profile_text[] =
    "{\"schema\": \"topp-bench.profile/1\", \"name\": \"small\", \"device\": \"cpu\",\n"
    " \"seed\": 42,\n"
    " \"limits\": {\"max_vocab\": 2000, \"max_batch\": 64, \"case_seconds\": 60,\n"
    "            \"artifact_bytes\": 100000000},\n"
    " \"timing\": {\"blocks\": 1, \"min_samples\": 1, \"max_samples\": 1, \"precision\": 0.5,\n"
    "            \"block_seconds\": 0.05, \"warmup_seconds\": 0, \"draws\": 1},\n"
    " \"matrix\": [\n"
    "  {\"kind\": \"topp\", \"kernels\": [\"exact\", \"sort\"], \"families\": [\"normal\"],\n"
    "   \"vocab\": [300], \"batch\": [2], \"p\": [0.5, 0.9]}]}\n";

static int make_all(void **state) {
    struct family family;
    struct logits logits = {0};
    struct tb_error error = TB_ERROR_INIT;
    assert_int_equal(scratch_make(state), 0);
    snprintf(profiles, sizeof profiles, "%s/profiles", scratch);
    snprintf(small, sizeof small, "%s/profiles/small.json", scratch);
    snprintf(broken, sizeof broken, "%s/broken.json", scratch);
    snprintf(out, sizeof out, "%s/out", scratch);
    snprintf(rows, sizeof rows, "%s/mine.npy", scratch);
    assert_int_equal(mkdir(profiles, 0777), 0);
    file_write(small, profile_text, sizeof profile_text - 1);
    file_write(broken, "{\n\"schema\": 1\n", 14);
    assert_int_equal(family_parse("peaked", &family, &error), TB_OK);
    const struct input_request request = {.family = &family, .batch = 4, .vocab = 200, .seed = 1};
    assert_int_equal(input_make(&request, &logits, &error), TB_OK);
    assert_int_equal(npy_write(rows, logits.data, 4, 200, 200, &error), TB_OK);
    logits_free(&logits);
    return 0;
}

/* Exit code, and what standard error says; no output folder is left. */
static void refuse(const char *name, int exit_code, const char *says, const char *const *words) {
    program_expect(name, words, exit_code, says);
    if (file_exists(out))
        fail_msg("%s: left %s", name, out);
}

static void test_refused_before_work(void **state) {
    (void)state;
    refuse("filter", 2, "no-such-cell",
           WORDS("--sweep", "--profile", small, "--device", "cpu", "--filter", "no-such-cell",
                 "--out", out));
    refuse("bad regex", 2, "filter",
           WORDS("--sweep", "--profile", small, "--device", "cpu", "--filter", "(", "--out", out));
    refuse("case", 2, "topp/none",
           WORDS("--case", "topp/none", "--profile", small, "--device", "cpu", "--out", out));
    refuse("profile name", 2, "nowhere",
           WORDS("--sweep", "--profile", "nowhere", "--device", "cpu", "--out", out));
    refuse("profile file", 2, broken,
           WORDS("--sweep", "--profile", broken, "--device", "cpu", "--out", out));
    refuse("profile folder", 2, "--profile-dir",
           WORDS("--sweep", "--profile-dir", broken, "--device", "cpu", "--out", out));
    refuse("input", 2, "none.npy",
           WORDS("--sweep", "--profile", small, "--device", "cpu", "--input", "none.npy", "--out",
                 out));
    refuse(
        "input of another name", 2, "NAME.npy",
        WORDS("--sweep", "--profile", small, "--device", "cpu", "--input", broken, "--out", out));
    refuse("output is a file", 2, broken,
           WORDS("--sweep", "--profile", small, "--device", "cpu", "--out", broken));
    refuse("flag of Google Benchmark", 2, "benchmark_filter",
           WORDS("--sweep", "--profile", small, "--benchmark_filter=x", "--out", out));
}

static void test_environment(void **state) {
    (void)state;
    setenv("TOPP_BENCH_PROFILES", broken, 1);
    refuse("not a folder", 2, "TOPP_BENCH_PROFILES",
           WORDS("--list", "--profile", "small", "--device", "cpu"));
    setenv("TOPP_BENCH_PROFILES", profiles, 1);
    struct program_run run = program_run(WORDS("--list", "--profile", "small", "--device", "cpu"));
    assert_int_equal(run.exit_code, 0);
    program_free(&run);
    unsetenv("TOPP_BENCH_PROFILES");
}

static int count_lines(const char *text) {
    int lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

/* Each printed name, with what Google Benchmark adds to it, chooses that cell alone. */
static void test_names_paste_back(void **state) {
    (void)state;
    struct program_run run = program_run(WORDS("--list", "--profile", small, "--device", "cpu"));
    assert_int_equal(run.exit_code, 0);
    assert_int_equal(count_lines(run.output), 4);
    for (char *name = strtok(run.output, "\n"); name; name = strtok(NULL, "\n")) {
        char pasted[512], line[512];
        snprintf(pasted, sizeof pasted, "%s/iterations:1/repeats:3/manual_time", name);
        snprintf(line, sizeof line, "%s\n", name);
        struct program_run one =
            program_run(WORDS("--list", "--profile", small, "--device", "cpu", "--case", pasted));
        assert_string_equal(one.output, line);
        program_free(&one);
    }
    program_free(&run);
    run = program_run(
        WORDS("--list", "--profile", small, "--device", "cpu", "--filter", "exact.*p:0\\.9/"));
    assert_int_equal(count_lines(run.output), 1);
    program_free(&run);
}

/* Sweeps into a fresh folder; returns results.json. */
static json_t *sweep(const char *name, const char *option, const char *value) {
    char path[PATH + 32];
    const char *words[16] = {"--sweep", "--profile", small, "--device", "cpu", "--out", out};
    int count = 7;
    if (option)
        words[count++] = option;
    if (value)
        words[count++] = value;
    program_expect(name, words, 0, NULL);
    snprintf(path, sizeof path, "%s/results.json", out);
    json_t *results = json_load_file(path, 0, NULL);
    assert_non_null(results);
    snprintf(path, sizeof path, "%s/receipt.json", out);
    struct program_run run = program_run(WORDS("--verify", path));
    if (run.exit_code != 0)
        fail_msg("%s: --verify ends with %d: %s", name, run.exit_code, run.output);
    program_free(&run);
    return results;
}

static void clear_out(void) {
    char command[PATH + 16];
    assert_int_equal(strncmp(out, "/tmp/topp-scratch-", 18), 0);
    snprintf(command, sizeof command, "rm -r '%s'", out);
    assert_int_equal(system(command), 0);
}

/* Whatever departs from the frozen profile says so in the results. */
static void test_unfrozen(void **state) {
    (void)state;
    static const struct {
        const char *name, *option, *value;
        bool unfrozen, subset;
    } cases[] = {
        {"as the profile says", NULL, NULL, false, false},
        {"seed", "--seed", "7", true, false},
        {"slices", "--slices", "4", true, false},
        {"subset", "--filter", "exact", false, true},
        {"input", "--input", rows, true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *results = sweep(cases[i].name, cases[i].option, cases[i].value);
        const json_t *run = json_object_get(results, "run");
        if (json_is_true(json_object_get(run, "unfrozen")) != cases[i].unfrozen)
            fail_msg("%s: unfrozen is wrong", cases[i].name);
        if (json_is_true(json_object_get(run, "subset")) != cases[i].subset)
            fail_msg("%s: subset is wrong", cases[i].name);
        json_decref(results);
        clear_out();
    }
}

static void test_own_file(void **state) {
    (void)state;
    json_t *results = sweep("input", "--input", rows), *cell;
    size_t index;
    json_array_foreach(json_object_get(results, "cells"), index, cell) {
        assert_non_null(
            strstr(json_string_value(json_object_get(cell, "name")), "/captured=mine/"));
        assert_int_equal(json_integer_value(json_object_get(cell, "vocab")), 200);
    }
    assert_int_equal(index, 4);
    json_decref(results);
    clear_out();
}

/* bfloat16: a widened copy stays in the results folder, so that the receipt can be verified. */
static void test_bfloat16(void **state) {
    (void)state;
    static const char header[] = "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 100), }";
    char bytes[128 + 2 * 2 * 100], half[PATH], copy[PATH + 16], receipt[PATH + 16];
    memset(bytes, ' ', 128);
    memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(bytes + 10, header, sizeof header - 1);
    bytes[127] = '\n';
    for (int i = 0; i < 200; i++) {
        const uint16_t bits = (uint16_t)(0x3f80 + i * 37 % 128); /* in [1, 2) */
        memcpy(bytes + 128 + 2 * i, &bits, 2);
    }
    snprintf(half, sizeof half, "%s/half.npy", scratch);
    snprintf(copy, sizeof copy, "%s/half.npy", out);
    snprintf(receipt, sizeof receipt, "%s/receipt.json", out);
    file_write(half, bytes, sizeof bytes);
    program_expect("the sweep",
                   WORDS("--sweep", "--profile", small, "--device", "cpu", "--input", half,
                         "--bfloat16", "--out", out),
                   0, NULL);
    assert_true(file_exists(copy));
    program_expect("--verify", WORDS("--verify", receipt), 0, NULL);
    clear_out();
}

static void test_device(void **state) {
    (void)state;
    char why[256];
    struct program_run run = program_run(WORDS("--list", "--profile", small));
    assert_true(!strncmp(run.errors, "device: ", 8));
    program_free(&run);
    if (device_cuda_usable(why, sizeof why)) {
        print_message("a CUDA device is usable here: its refusal is not tested\n");
        return;
    }
    run = program_run(WORDS("--list", "--profile", small));
    assert_non_null(strstr(run.errors, why));
    program_free(&run);
    run = program_run(
        WORDS("--apply", "sort", "--device", "cuda", "--input", rows, "--p", "0.9", "--out", out));
    assert_int_equal(run.exit_code, 3);
    assert_non_null(strstr(run.errors, why));
    assert_false(file_exists(out));
    program_free(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_before_work),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_names_paste_back),
        cmocka_unit_test(test_unfrozen),
        cmocka_unit_test(test_own_file),
        cmocka_unit_test(test_bfloat16),
        cmocka_unit_test(test_device),
    };
    return cmocka_run_group_tests(tests, make_all, scratch_drop);
}
