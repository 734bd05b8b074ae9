/* --verify on a small sweep: it holds as left, and every change of what is bound is found, also
 * when whoever made it has hashed and sealed everything anew. */
#include "program.h"

#include "bench/inputs.h"
#include "bench/receipt_make.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 320, ROWS = 4, VOCAB = 300, MOST_LEAVES = 4096 };

static char profiles[128], profile[128], captured[128], out[128];
static char receipt_path[PATH], results_path[PATH];
static json_t *receipt, *results; /* as the sweep left them */

static const char tiny[] =
    "{\"schema\": \"topp-bench.profile/1\", \"name\": \"tiny\", \"device\": \"cpu\",\n"
    " \"seed\": 42,\n"
    " \"limits\": {\"max_vocab\": 2000, \"max_batch\": 64, \"case_seconds\": 60,\n"
    "            \"artifact_bytes\": 100000000},\n"
    " \"timing\": {\"blocks\": 2, \"min_samples\": 3, \"max_samples\": 4, \"precision\": 0.5,\n"
    "            \"block_seconds\": 0.05, \"warmup_seconds\": 0, \"draws\": 2},\n"
    " \"matrix\": [\n"
    "  {\"kind\": \"topp\", \"kernels\": [\"exact\", \"floor\"], \"families\": [\"normal\"],\n"
    "   \"vocab\": [300], \"batch\": [2], \"p\": [0.9]},\n"
    "  {\"kind\": \"topp\", \"kernels\": [\"exact\"], \"families\": [\"captured=rows\"],\n"
    "   \"batch\": [2], \"p\": [0.5]},\n"
    "  {\"kind\": \"topp\", \"kernels\": [\"stock\"], \"families\": [\"forced=1e9@13\"],\n"
    "   \"vocab\": [300], \"batch\": [2], \"p\": [0.9]},\n"
    "  {\"kind\": \"gumbel\", \"variants\": [\"log\"], \"families\": [\"normal\"],\n"
    "   \"vocab\": [300], \"batch\": [2], \"temperature\": [1]}],\n"
    " \"expect\": [{\"kernel\": \"stock\", \"family\": \"forced=*\", \"expect\": \"reject\",\n"
    "   \"why\": \"masks every token beside a huge logit\"}]}\n";

static void write_json(const char *path, const json_t *json) {
    assert_int_equal(json_dump_file(json, path, JSON_INDENT(1) | JSON_REAL_PRECISION(17)), 0);
}

static void copy_files(const char *from, const char *to) {
    static const char *const files[] = {"receipt.json", "results.json", "results.tsv",
                                        "benchmark.json"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char source[PATH + 32], target[PATH + 32];
        size_t length;
        snprintf(source, sizeof source, "%s/%s", from, files[i]);
        snprintf(target, sizeof target, "%s/%s", to, files[i]);
        char *bytes = file_text(source, &length);
        file_write(target, bytes, length);
        free(bytes);
    }
}

/* Everything as the sweep left it, from the copies in scratch. */
static void restore(void) {
    copy_files(scratch, out);
    file_write(profile, tiny, sizeof tiny - 1);
}

static void write_captured(float first) {
    struct family family;
    struct logits logits = {0};
    struct tb_error error = TB_ERROR_INIT;
    assert_int_equal(family_parse("peaked", &family, &error), TB_OK);
    const struct input_request request = {
        .family = &family, .batch = ROWS, .vocab = VOCAB, .seed = 7};
    assert_int_equal(input_make(&request, &logits, &error), TB_OK);
    logits.data[0] += first;
    assert_int_equal(npy_write(captured, logits.data, ROWS, VOCAB, VOCAB, &error), TB_OK);
    logits_free(&logits);
}

static int sweep_once(void **state) {
    assert_int_equal(scratch_make(state), 0);
    snprintf(profiles, sizeof profiles, "%s/profiles", scratch);
    snprintf(profile, sizeof profile, "%s/profiles/tiny.json", scratch);
    snprintf(captured, sizeof captured, "%s/profiles/captured/rows.npy", scratch);
    snprintf(out, sizeof out, "%s/out", scratch);
    snprintf(receipt_path, sizeof receipt_path, "%s/receipt.json", out);
    snprintf(results_path, sizeof results_path, "%s/results.json", out);
    char folder[PATH + 16];
    snprintf(folder, sizeof folder, "mkdir -p %s/captured", profiles);
    assert_int_equal(system(folder), 0);
    file_write(profile, tiny, sizeof tiny - 1);
    write_captured(0.0f);
    program_expect("the sweep",
                   WORDS("--sweep", "--profile", "tiny", "--profile-dir", profiles, "--device",
                         "cpu", "--out", out),
                   0, NULL);
    copy_files(out, scratch);
    receipt = json_load_file(receipt_path, 0, NULL);
    results = json_load_file(results_path, 0, NULL);
    assert_non_null(receipt);
    assert_non_null(results);
    return 0;
}

static int drop_all(void **state) {
    json_decref(receipt);
    json_decref(results);
    return scratch_drop(state);
}

/* Runs --verify; fails unless it ends with exit_code and prints says (NULL: anything). */
static void verify(const char *name, int exit_code, const char *says) {
    struct program_run run =
        program_run(WORDS("--verify", receipt_path, "--profile-dir", profiles));
    if (run.exit_code != exit_code || (says && !strstr(run.output, says)))
        fail_msg("%s: ends with %d, not %d saying '%s': %s%s", name, run.exit_code, exit_code,
                 says ? says : "", run.output, run.errors);
    program_free(&run);
}

static void test_holds(void **state) {
    (void)state;
    restore();
    verify("as left", 0, " 0 changed, 0 not recomputable here");
    struct program_run run =
        program_run(WORDS("--verify", receipt_path, "--profile-dir", profiles, "--strict"));
    assert_int_equal(run.exit_code, 0);
    static const char *const groups[] = {"receipt ", "outputs ", "run ",     "sources ", "profile ",
                                         "plan ",    "cells ",   "samples ", "figures ", "summary ",
                                         "inputs ",  "masks ",   "machine "};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        if (!strstr(run.output, groups[i]))
            fail_msg("no group %s: %s", groups[i], run.output);
    program_free(&run);
}

static void test_elsewhere(void **state) {
    (void)state;
    restore();
    /* Without the profile nothing that follows from it can be shown. */
    unlink(profile);
    verify("no profile", 0, "not recomputable here: profile");
    struct program_run run =
        program_run(WORDS("--verify", receipt_path, "--profile-dir", profiles, "--strict"));
    assert_int_equal(run.exit_code, 3);
    program_free(&run);
    restore();
}

/* Visits every leaf of a JSON value; path is for messages. */
struct leaf {
    json_t *parent;
    const char *key; /* of an object, else NULL */
    size_t index;
    char path[160];
};

static void collect(json_t *json, const char *path, struct leaf *leaves, size_t *count) {
    const char *key;
    json_t *value;
    size_t index;
    char below[160];
    if (json_is_object(json)) {
        json_object_foreach(json, key, value) {
            snprintf(below, sizeof below, "%.100s.%.50s", path, key);
            if (json_is_object(value) || json_is_array(value)) {
                collect(value, below, leaves, count);
                continue;
            }
            assert_true(*count < MOST_LEAVES);
            leaves[*count] = (struct leaf){json, key, 0, ""};
            memcpy(leaves[(*count)++].path, below, sizeof below);
        }
    } else {
        json_array_foreach(json, index, value) {
            snprintf(below, sizeof below, "%.100s[%zu]", path, index);
            if (json_is_object(value) || json_is_array(value)) {
                collect(value, below, leaves, count);
                continue;
            }
            assert_true(*count < MOST_LEAVES);
            leaves[*count] = (struct leaf){json, NULL, index, ""};
            memcpy(leaves[(*count)++].path, below, sizeof below);
        }
    }
}

static json_t *changed(const json_t *value) {
    char text[4300];
    switch (json_typeof(value)) {
    case JSON_STRING:
        snprintf(text, sizeof text, "%s", json_string_value(value));
        if (text[0])
            text[strlen(text) - 1] ^= 1; /* one bit of the last character */
        else
            snprintf(text, sizeof text, "x");
        return json_string(text);
    case JSON_INTEGER:
        return json_integer(json_integer_value(value) + 1);
    case JSON_REAL:
        return json_real(nextafter(json_real_value(value), INFINITY));
    case JSON_TRUE:
        return json_false();
    case JSON_FALSE:
        return json_true();
    default:
        return json_string("x");
    }
}

static void set_leaf(const struct leaf *leaf, json_t *value) {
    if (leaf->key)
        json_object_set_new(leaf->parent, leaf->key, value);
    else
        json_array_set_new(leaf->parent, leaf->index, value);
}

static json_t *leaf_value(const struct leaf *leaf) {
    return leaf->key ? json_object_get(leaf->parent, leaf->key)
                     : json_array_get(leaf->parent, leaf->index);
}

/* The seal finds a change of any field. */
static void test_every_field_sealed(void **state) {
    (void)state;
    json_t *copy = json_deep_copy(receipt);
    struct leaf *leaves = calloc(MOST_LEAVES, sizeof *leaves);
    size_t count = 0;
    collect(copy, "", leaves, &count);
    assert_true(count > 150);
    assert_true(receipt_seal_holds(copy));
    for (size_t i = 0; i < count; i++) {
        json_t *before = json_incref(leaf_value(&leaves[i]));
        set_leaf(&leaves[i], changed(before));
        if (receipt_seal_holds(copy))
            fail_msg("%s: the seal does not notice", leaves[i].path);
        set_leaf(&leaves[i], before);
    }
    assert_true(receipt_seal_holds(copy));
    free(leaves);
    json_decref(copy);
}

/* Where a file was is no claim about the run; the file is found by name and checked by hash. */
static bool is_a_place(const char *path) {
    return !strcmp(path, ".request.profile") || !strcmp(path, ".request.input_dir") ||
           !strcmp(path, ".kind") || !strcmp(path, ".schema") || !strcmp(path, ".seal_sha256") ||
           /* a word in place of null reads as null */
           !strcmp(path, ".request.seed");
}

/* Sealed anew, every field is still found: it contradicts a file, the sources or a computation.
 * Of the many sources one in 16 is tried. */
static void test_every_field_resealed(void **state) {
    (void)state;
    restore();
    json_t *copy = json_deep_copy(receipt);
    struct leaf *leaves = calloc(MOST_LEAVES, sizeof *leaves);
    size_t count = 0, tried = 0;
    struct tb_error error = TB_ERROR_INIT;
    collect(copy, "", leaves, &count);
    for (size_t i = 0; i < count; i++) {
        if (is_a_place(leaves[i].path) || (!strncmp(leaves[i].path, ".sources", 8) && i % 16))
            continue;
        json_t *before = json_incref(leaf_value(&leaves[i]));
        set_leaf(&leaves[i], changed(before));
        assert_int_equal(receipt_write(copy, receipt_path, &error), TB_OK);
        verify(leaves[i].path, 1, "changed: ");
        set_leaf(&leaves[i], before);
        tried++;
    }
    assert_true(tried > 100);
    free(leaves);
    json_decref(copy);
    restore();
}

/* One byte of a file, and a file that is gone. */
static void test_files(void **state) {
    (void)state;
    static const struct {
        const char *name, *file, *find, *put, *says;
    } cases[] = {
        {"digit of a median", "results.json", "\"median_ns\":", "\"median_ns\":1", "outputs"},
        {"digit of a sample", "results.json", "\"time_ns\":[", "\"time_ns\":[1", "samples"},
        {"bit of a mask", "results.json", "\"mask_sha256\":\"", "\"mask_sha256\":\"f", "outputs"},
        {"verdict in the table", "results.tsv", "accepted", "rejected", "outputs: results.tsv"},
        {"time for its compare.py", "benchmark.json", "\"real_time\": ", "\"real_time\": 1",
         "outputs: benchmark.json"},
        {"end of results", "results.json", "]}\n", "]", "results.json"},
        {"results gone", "results.json", NULL, NULL, "outputs: results.json: missing"},
        {"table gone", "results.tsv", NULL, NULL, "outputs: results.tsv: missing"},
        {"benchmark gone", "benchmark.json", NULL, NULL, "outputs: benchmark.json: missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[PATH + 32];
        size_t length;
        restore();
        snprintf(path, sizeof path, "%s/%s", out, cases[i].file);
        char *text = file_text(path, &length);
        if (cases[i].find) {
            char *at = strstr(text, cases[i].find);
            if (!at)
                fail_msg("%s: %s has no %s", cases[i].name, path, cases[i].find);
            FILE *file = fopen(path, "w");
            assert_non_null(file);
            fprintf(file, "%.*s%s%s", (int)(at - text), text, cases[i].put,
                    at + strlen(cases[i].find));
            fclose(file);
        } else {
            unlink(path);
        }
        verify(cases[i].name, 1, cases[i].says);
        free(text);
    }
    restore();
}

static void test_profile_and_input(void **state) {
    (void)state;
    restore();
    char *text = strdup(tiny);
    file_write(profile, text, sizeof tiny - 2); /* one blank less */
    verify("line break of the profile", 1, "changed: profile");
    memcpy(strstr(text, "42"), "43", 2);
    file_write(profile, text, sizeof tiny - 1);
    verify("seed in the profile", 1, "changed: inputs");
    restore();
    write_captured(0.5f);
    verify("captured row", 1, "changed: inputs: topp/exact/captured=rows");
    unlink(captured);
    verify("captured file gone", 1, "rows.npy");
    write_captured(0.0f);
    verify("put back", 0, NULL);
    free(text);
}

/* A forger who hashes and seals everything anew after changing member `key` of the first cell
 * that has a median (draw: of its first draw). */
static void forge(const char *key, json_t *value, bool of_draw) {
    json_t *forged = json_deep_copy(results), *sealed = json_deep_copy(receipt), *cell;
    json_t *cells = json_array(), *outputs = json_object_get(sealed, "outputs");
    char hex[SHA256_HEX_BYTES];
    struct tb_error error = TB_ERROR_INIT;
    size_t index;
    bool done = false;
    json_array_foreach(json_object_get(forged, "cells"), index, cell) {
        if (!done && json_is_number(json_object_get(cell, "median_ns"))) {
            json_t *where = of_draw ? json_array_get(json_object_get(cell, "inputs"), 0) : cell;
            assert_non_null(json_object_get(where, key));
            json_object_set(where, key, value);
            done = true;
        }
        json_array_append_new(cells, receipt_cell(cell));
    }
    assert_true(done);
    write_json(results_path, forged);
    assert_int_equal(sha256_file(results_path, hex, &error), TB_OK);
    json_object_set_new(json_array_get(outputs, 0), "sha256", json_string(hex));
    json_object_set_new(sealed, "cells", cells);
    assert_int_equal(receipt_write(sealed, receipt_path, &error), TB_OK);
    json_decref(forged);
    json_decref(sealed);
    json_decref(value);
}

static void test_forged(void **state) {
    (void)state;
    static const char hash[] = "00000000000000000000000000000000000000000000000000000000000000aa";
    restore();
    forge("median_ns", json_real(1.0), false);
    verify("median", 1, "median_ns does not follow");
    forge("ci_high_ns", json_real(1.0), false);
    verify("interval", 1, "ci_high_ns does not follow");
    forge("ratio_to_floor", json_real(1.0), false);
    verify("ratio", 1, "ratio_to_floor does not follow");
    forge("bytes_per_second", json_real(1e12), false);
    verify("throughput", 1, "bytes_per_second does not follow");
    forge("samples_sha256", json_string(hash), false);
    verify("hash of samples", 1, "changed: samples");
    forge("as_expected", json_false(), false);
    verify("expectation", 1, "as_expected does not follow");
    forge("verdict", json_string("rejected"), false);
    verify("verdict", 1, "does not follow");
    forge("expect", json_string("either"), false);
    verify("what was expected", 1, "changed: plan");
    forge("vocab", json_integer(301), false);
    verify("vocabulary", 1, "changed: plan");
    forge("name", json_string("topp/exact/normal"), false);
    verify("name", 1, "changed: plan");
    forge("input_sha256", json_string(hash), true);
    verify("input", 1, "changed: inputs");
    forge("mask_sha256", json_string(hash), true);
    verify("mask", 1, "changed: masks");
    restore();
    verify("put back", 0, NULL);
}

static void test_unreadable(void **state) {
    (void)state;
    restore();
    static const char *const garbage[] = {"", "{}", "[", "{\"kind\":\"topp-bench receipt\"}"};
    for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++) {
        file_write(receipt_path, garbage[i], strlen(garbage[i]));
        verify(garbage[i], 2, NULL);
    }
    /* A sealed receipt with nothing in it is no proof of anything. */
    json_t *hollow = json_object();
    struct tb_error error = TB_ERROR_INIT;
    assert_int_equal(receipt_write(hollow, receipt_path, &error), TB_OK);
    verify("hollow", 1, NULL);
    json_decref(hollow);
    unlink(receipt_path);
    verify("gone", 2, NULL);
    restore();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holds),
        cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_every_field_sealed),
        cmocka_unit_test(test_every_field_resealed),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_profile_and_input),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_unreadable),
    };
    return cmocka_run_group_tests(tests, sweep_once, drop_all);
}
