/* --oracle, --apply, --variants, --version as a user runs them, and what is refused before work. */
#include "program.h"

#include "bench/inputs.h"
#include "kernels/topp.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CAPTURED TOPP_SOURCE_DIR "/profiles/captured/smollm2_135m_decode.npy"

enum { VOCAB = 1000, ROWS = 70, PATH = 256 };

static char input[PATH + 32], output[PATH + 32], masked[PATH + 32];

/* Rows 3 (NaN), 5 (+inf), 8 (only -inf) are hostile, row 2 has masked tokens. */
static void make_rows(struct logits *logits, bool hostile) {
    struct family family;
    struct tb_error error = TB_ERROR_INIT;
    assert_int_equal(family_parse("peaked", &family, &error), TB_OK);
    const struct input_request request = {
        .family = &family, .batch = ROWS, .vocab = VOCAB, .seed = 42};
    assert_int_equal(input_make(&request, logits, &error), TB_OK);
    for (int t = 100; t < 900; t++)
        logits->data[2 * VOCAB + t] = -INFINITY;
    if (!hostile)
        return;
    logits->data[3 * VOCAB + 17] = NAN;
    logits->data[5 * VOCAB + 999] = INFINITY;
    for (int t = 0; t < VOCAB; t++)
        logits->data[8 * VOCAB + t] = -INFINITY;
}

static void write_rows(const struct logits *logits) {
    struct tb_error error = TB_ERROR_INIT;
    assert_int_equal(npy_write(input, logits->data, logits->batch, VOCAB, VOCAB, &error), TB_OK);
}

static void read_rows(const char *path, struct logits *logits) {
    struct tb_error error = TB_ERROR_INIT;
    if (npy_read(path, false, logits, &error) != TB_OK)
        fail_msg("%s: %s", path, error.message);
}

static int make_paths(void **state) {
    const int failed = scratch_make(state);
    snprintf(input, sizeof input, "%s/rows.npy", scratch);
    snprintf(output, sizeof output, "%s/out.npy", scratch);
    snprintf(masked, sizeof masked, "%s/masked.npy", scratch);
    return failed;
}

/* Each ends with 2 before any work and leaves no output. */
static void test_refused(void **state) {
    (void)state;
    char truncated[PATH + 32], missing_dir[PATH + 32], linked[PATH + 32];
    struct logits logits = {0};
    size_t length;
    make_rows(&logits, false);
    write_rows(&logits);
    char *bytes = file_text(input, &length);
    snprintf(truncated, sizeof truncated, "%s/truncated.npy", scratch);
    snprintf(missing_dir, sizeof missing_dir, "%s/none/out.npy", scratch);
    file_write(truncated, bytes, length - 3);
    program_expect("truncated", WORDS("--oracle", truncated, "--p", "0.9"), 2, truncated);
    file_write(truncated, bytes, 9);
    program_expect("cut header", WORDS("--oracle", truncated, "--p", "0.9"), 2, truncated);
    program_expect("no npy", WORDS("--oracle", "/dev/null", "--p", "0.9"), 2, "/dev/null");
    program_expect("no file", WORDS("--oracle", output, "--p", "0.9"), 2, output);
    program_expect("unknown kernel",
                   WORDS("--apply", "exakt", "--device", "cpu", "--input", input, "--p", "0.9",
                         "--out", output),
                   2, "no top-p kernel 'exakt'");
    program_expect("output folder",
                   WORDS("--apply", "exact", "--device", "cpu", "--input", input, "--p", "0.9",
                         "--out", missing_dir),
                   2, missing_dir);
    program_expect("output is a folder",
                   WORDS("--apply", "exact", "--device", "cpu", "--input", input, "--p", "0.9",
                         "--out", scratch),
                   2, "is a folder");
    snprintf(linked, sizeof linked, "%s/link.npy", scratch);
    assert_int_equal(symlink(input, linked), 0);
    program_expect("output is a link",
                   WORDS("--apply", "exact", "--device", "cpu", "--input", input, "--p", "0.9",
                         "--out", linked),
                   2, "is a link or a device");
    assert_int_equal(unlink(linked), 0);
    program_expect("mask-out folder",
                   WORDS("--oracle", input, "--p", "0.9", "--mask-out", missing_dir), 2,
                   missing_dir);
    program_expect("unknown option", WORDS("--sweep", "--fast"), 2, "--fast");
    program_expect("missing value", WORDS("--sweep", "--seed"), 2, "--seed");
    program_expect("no mode", (const char *const[]){NULL}, 2, "--sweep");
    assert_false(file_exists(output));
    free(bytes);
    logits_free(&logits);
}

/* One line per row and p; counts of the captured rows as published. */
static void test_oracle_captured(void **state) {
    (void)state;
    struct program_run run =
        program_run(WORDS("--oracle", CAPTURED, "--p", "0.5,0.8,0.9,0.95,0.99,0.999"));
    assert_int_equal(run.exit_code, 0);
    FILE *published = fopen(TOPP_SOURCE_DIR "/tests/data/captured_oracle.tsv", "r");
    assert_non_null(published);
    char line[256];
    int compared = 0;
    while (fgets(line, sizeof line, published)) {
        int row;
        char p[32], want[96];
        long long kept;
        if (line[0] == '#' || sscanf(line, "%d %31s %lld", &row, p, &kept) != 3)
            continue;
        snprintf(want, sizeof want, "{\"row\": %d, \"p\": %s, ", row, p);
        const char *at = strstr(run.output, want);
        if (!at)
            continue;
        json_t *json = json_loads(at, JSON_DISABLE_EOF_CHECK, NULL);
        assert_non_null(json);
        assert_string_equal(json_string_value(json_object_get(json, "status")), "ok");
        if (json_integer_value(json_object_get(json, "kept")) != kept)
            fail_msg("row %d, p %s: kept is not %lld: %.300s", row, p, kept, at);
        json_decref(json);
        compared++;
    }
    fclose(published);
    assert_true(compared >= 64 * 3);
    program_free(&run);
}

/* Each line stands alone as strict JSON, whatever the row. */
static void test_oracle_lines(void **state) {
    (void)state;
    struct logits logits = {0};
    make_rows(&logits, true);
    write_rows(&logits);
    struct program_run run = program_run(WORDS("--oracle", input, "--p", "0.9,1"));
    assert_int_equal(run.exit_code, 0);
    int count = 0;
    for (char *line = strtok(run.output, "\n"); line; line = strtok(NULL, "\n"), count++) {
        json_t *json = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        if (!json)
            fail_msg("no JSON: %s", line);
        const int row = count / 2;
        const char *want = row == 3 || row == 5 ? "nonfinite_input" : row == 8 ? "empty_row" : "ok";
        assert_int_equal(json_integer_value(json_object_get(json, "row")), row);
        assert_string_equal(json_string_value(json_object_get(json, "status")), want);
        const json_t *kept = json_object_get(json, "kept");
        if (strcmp(want, "ok") != 0)
            assert_true(json_is_null(kept));
        else if (count % 2)
            assert_int_equal(json_integer_value(kept), row == 2 ? 200 : VOCAB);
        else
            assert_in_range(json_integer_value(kept), 1, VOCAB - 1);
        json_decref(json);
    }
    assert_int_equal(count, 2 * ROWS);
    program_free(&run);
    logits_free(&logits);
}

static void test_output_fails(void **state) {
    (void)state;
    program_ended("full disk",
                  program_run_to(WORDS("--oracle", CAPTURED, "--p", "0.9"), "/dev/full"), 2,
                  "standard output could not be written");
    program_ended("full disk, variants", program_run_to(WORDS("--variants"), "/dev/full"), 2,
                  "standard output could not be written");
}

/* How many of a row are kept; fails on a value that is neither the input's nor -inf. */
static int64_t kept_of(const char *name, const float *in, const float *out, int row) {
    int64_t kept = 0;
    for (int t = 0; t < VOCAB; t++) {
        uint32_t before, after;
        memcpy(&before, &in[t], 4);
        memcpy(&after, &out[t], 4);
        if (before != after && out[t] != -INFINITY)
            fail_msg("%s: row %d, token %d: %a became %a", name, row, t, (double)in[t],
                     (double)out[t]);
        kept += out[t] != -INFINITY;
    }
    return kept;
}

/* Every kernel masks as the oracle does, or near it; the exact ones to the bit. */
static void test_apply_kernels(void **state) {
    (void)state;
    struct logits logits = {0}, reference = {0};
    size_t count;
    make_rows(&logits, false);
    write_rows(&logits);
    program_expect("mask-out", WORDS("--oracle", input, "--p", "0.9", "--mask-out", masked), 0,
                   NULL);
    read_rows(masked, &reference);
    const struct topp_variant *const *variants = topp_variants(&count);
    int applied = 0;
    for (size_t i = 0; i < count; i++) {
        const char *name = variants[i]->name;
        struct logits result = {0};
        if (variants[i]->device != KERNEL_DEVICE_CPU)
            continue;
        program_ended(name,
                      program_run(WORDS("--apply", name, "--device", "cpu", "--input", input, "--p",
                                        "0.9", "--out", output)),
                      0, "device: cpu");
        read_rows(output, &result);
        for (int r = 0; r < ROWS; r++) {
            const float *row = logits.data + r * VOCAB;
            const int64_t kept = kept_of(name, row, result.data + r * VOCAB, r);
            const int64_t right = kept_of("oracle", row, reference.data + r * VOCAB, r);
            assert_true(kept >= 1 && kept < VOCAB && llabs(kept - right) <= 8);
        }
        if (!strcmp(variants[i]->contract, "exact"))
            assert_memory_equal(result.data, reference.data, ROWS * VOCAB * sizeof(float));
        logits_free(&result);
        applied++;
    }
    assert_true(applied >= 5);
    logits_free(&reference);
    logits_free(&logits);
}

/* Rows that are no logits are left as they are and named; the others are masked. */
static void test_apply_hostile(void **state) {
    (void)state;
    struct logits logits = {0}, result = {0};
    make_rows(&logits, true);
    write_rows(&logits);
    struct program_run run = program_run(WORDS("--apply", "exact", "--device", "cpu", "--input",
                                               input, "--p", "0.9", "--out", output));
    assert_int_equal(run.exit_code, 2);
    assert_non_null(strstr(run.errors, "row 3, token 17: nonfinite_input"));
    assert_non_null(strstr(run.errors, "row 5, token 999: nonfinite_input"));
    assert_non_null(strstr(run.errors, "row 8: empty_row"));
    program_free(&run);
    read_rows(output, &result);
    for (int r = 0; r < ROWS; r++) {
        const bool left = r == 3 || r == 5 || r == 8;
        const int same =
            !memcmp(logits.data + r * VOCAB, result.data + r * VOCAB, VOCAB * sizeof(float));
        assert_int_equal(same, left);
    }
    logits_free(&result);
    logits_free(&logits);
}

/* bfloat16 bits of 1, 2 and -inf. */
static void test_bfloat16(void **state) {
    (void)state;
    static const char header[] = "{'descr': '<u2', 'fortran_order': False, 'shape': (1, 3), }";
    static const unsigned char data[] = {0x80, 0x3f, 0x00, 0x40, 0x80, 0xff};
    char bytes[134];
    memset(bytes, ' ', sizeof bytes);
    memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(bytes + 10, header, sizeof header - 1);
    bytes[127] = '\n';
    memcpy(bytes + 128, data, sizeof data);
    file_write(input, bytes, 134);
    program_expect("without the flag", WORDS("--oracle", input, "--p", "1"), 2, input);
    struct program_run run = program_run(WORDS("--oracle", input, "--p", "1", "--bfloat16"));
    assert_int_equal(run.exit_code, 0);
    assert_non_null(strstr(run.output, "\"kept\": 2, "));
    program_free(&run);
}

static void test_lists(void **state) {
    (void)state;
    size_t count;
    const struct topp_variant *const *variants = topp_variants(&count);
    struct program_run run = program_run(WORDS("--variants"));
    assert_int_equal(run.exit_code, 0);
    for (size_t i = 0; i < count; i++)
        assert_non_null(strstr(run.output, variants[i]->summary));
    program_free(&run);
    run = program_run(WORDS("--version"));
    assert_int_equal(run.exit_code, 0);
    assert_non_null(strstr(run.output, "bench_topp "));
    program_free(&run);
    run = program_run(WORDS("--help"));
    assert_int_equal(run.exit_code, 0);
    assert_non_null(strstr(run.output, "--verify"));
    program_free(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_oracle_captured),
        cmocka_unit_test(test_oracle_lines),  cmocka_unit_test(test_output_fails),
        cmocka_unit_test(test_apply_kernels), cmocka_unit_test(test_apply_hostile),
        cmocka_unit_test(test_bfloat16),      cmocka_unit_test(test_lists),
    };
    return cmocka_run_group_tests(tests, make_paths, scratch_drop);
}
