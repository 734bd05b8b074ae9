/* results.json ("topp-bench.results/1", docs/formats.md). */
#include "ci/results_formats.h"
#include "ci/statistics.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a complaint points to. */
struct spot {
    const struct json_text *text;
    size_t byte;
    struct tb_error *error;
};

static enum tb_status complain(const struct spot *spot, const char *name, const char *what) {
    return tb_fail_at(spot->error, TB_UNREADABLE, spot->text->file,
                      json_text_line(spot->text, spot->byte), (int64_t)spot->byte, "%s%s%s", name,
                      name[0] ? ": " : "", what);
}

/* A scalar as "key=value\n"; anything else is left out. */
static void put_setting(FILE *out, const char *key, const json_t *value) {
    if (json_is_string(value))
        fprintf(out, "%s=%s\n", key, json_string_value(value));
    else if (json_is_integer(value))
        fprintf(out, "%s=%" JSON_INTEGER_FORMAT "\n", key, json_integer_value(value));
    else if (json_is_real(value))
        fprintf(out, "%s=%.17g\n", key, json_real_value(value));
    else if (json_is_boolean(value))
        fprintf(out, "%s=%s\n", key, json_is_true(value) ? "true" : "false");
}

/* One hash over a member of all draws; "" when none has it. */
static bool hash_draws(const json_t *draws, const char *key, char digest[65]) {
    size_t index, length = 0;
    const json_t *draw;
    char *joined = NULL;
    bool any = false;
    digest[0] = '\0';
    FILE *out = open_memstream(&joined, &length);
    if (!out)
        return false;
    json_array_foreach((json_t *)draws, index, draw) {
        const char *hash = json_string_value(json_object_get(draw, key));
        fprintf(out, "%s\n", hash ? hash : "-");
        any = any || hash;
    }
    bool good = fclose(out) == 0;
    if (good && any)
        sha256_text(joined, length, digest);
    free(joined);
    return good;
}

/* All that must agree between two cells of one name, the inputs' bytes included. */
static bool read_settings(const json_t *json, struct result_cell *cell) {
    static const char *const keys[] = {"kind",  "kernel", "contract", "family", "statistic",
                                       "vocab", "batch",  "stride",   "p",      "temperature",
                                       "seed",  "draws",  "device",   "l2",     "launch"};
    const json_t *draws = json_object_get(json, "inputs");
    size_t length = 0;
    char inputs[65];
    FILE *out = open_memstream(&cell->settings, &length);
    if (!out)
        return false;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        put_setting(out, keys[i], json_object_get(json, keys[i]));
    bool good = hash_draws(draws, "input_sha256", inputs);
    if (good && inputs[0])
        fprintf(out, "input_sha256=%s\n", inputs);
    return fclose(out) == 0 && good && hash_draws(draws, "mask_sha256", cell->masks);
}

static void read_gate(const json_t *json, struct result_cell *cell) {
    const char *reason = json_string_value(json_object_get(json, "reason"));
    const char *unmeasured = json_string_value(json_object_get(json, "unmeasured"));
    member_text(json, "verdict", cell->verdict, sizeof cell->verdict);
    member_text(json, "rule", cell->rule, sizeof cell->rule);
    cell->reason = strdup(reason ? reason : unmeasured ? unmeasured : "");
    cell->kept = (int64_t)member_number(json, "kept", -1.0);
    cell->oracle = (int64_t)member_number(json, "oracle", -1.0);
    cell->rows_failed = (int64_t)member_number(json, "rows_failed", 0.0);
    cell->as_expected = !json_is_false(json_object_get(json, "as_expected"));
    cell->timed = json_is_true(json_object_get(json, "timed"));
    cell->blocks = (int32_t)member_number(json, "blocks", 0.0);
    cell->median = member_number(json, "median_ns", (double)NAN);
    cell->median_cycles = member_number(json, "cycles", (double)NAN);
    cell->sm_mhz = member_number(json, "sm_mhz", (double)NAN);
    cell->p05 = member_number(json, "p05_ns", (double)NAN);
    cell->p95 = member_number(json, "p95_ns", (double)NAN);
    cell->ci_low = member_number(json, "ci_low_ns", (double)NAN);
    cell->ci_high = member_number(json, "ci_high_ns", (double)NAN);
}

static bool allot(struct sample_set *set, size_t count) {
    set->time = malloc((count + 1) * sizeof *set->time);
    set->cycles = malloc((count + 1) * sizeof *set->cycles);
    set->block = malloc((count + 1) * sizeof *set->block);
    set->draw = malloc((count + 1) * sizeof *set->draw);
    return set->time && set->cycles && set->block && set->draw;
}

/* Values above 0 only; the others are counted. */
static void take_samples(const json_t *json, struct result_cell *cell, size_t count) {
    const json_t *times = json_object_get(json, "time_ns");
    const json_t *cycles = json_object_get(json, "cycles");
    const json_t *blocks = json_object_get(json, "block"), *draws = json_object_get(json, "draw");
    struct sample_set *set = &cell->samples;
    bool all_cycles = json_array_size(cycles) == count;
    size_t zeros = 0;
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(times, i);
        double time = json_is_number(value) ? json_number_value(value) : (double)NAN;
        if (!(time > 0.0) || !isfinite(time)) {
            zeros += time == 0.0;
            cell->invalid++;
            continue;
        }
        double cycle = all_cycles ? json_number_value(json_array_get(cycles, i)) : 0.0;
        all_cycles = all_cycles && cycle > 0.0 && isfinite(cycle);
        set->time[set->count] = time;
        set->cycles[set->count] = cycle;
        set->block[set->count] = (int32_t)json_integer_value(json_array_get(blocks, i));
        set->draw[set->count] = (int32_t)json_integer_value(json_array_get(draws, i));
        set->count++;
    }
    cell->zero = set->count == 0 && zeros > 0 && zeros == count;
    if (!all_cycles) {
        free(set->cycles);
        set->cycles = NULL;
    }
}

enum { MOST_DRAW = 4095, MOST_BLOCK = 1000000 }; /* far past what a run takes */

static bool counts_up_to(const json_t *array, json_int_t most) {
    size_t index;
    const json_t *value;
    json_array_foreach((json_t *)array, index, value) {
        if (!json_is_integer(value) || json_integer_value(value) < 0 ||
            json_integer_value(value) > most)
            return false;
    }
    return true;
}

static enum tb_status read_samples(const json_t *json, struct result_cell *cell,
                                   const struct spot *spot) {
    const json_t *times = json_object_get(json, "time_ns");
    size_t count = json_array_size(times);
    if (json_is_null(json) || !json)
        return TB_OK;
    if (!json_is_array(times) || json_array_size(json_object_get(json, "block")) != count ||
        json_array_size(json_object_get(json, "draw")) != count)
        return complain(spot, cell->name, "its arrays of samples differ in length or are missing");
    if (!counts_up_to(json_object_get(json, "block"), MOST_BLOCK) ||
        !counts_up_to(json_object_get(json, "draw"), MOST_DRAW))
        return complain(spot, cell->name, "a block or draw of its samples is no number from 0 on");
    if (!allot(&cell->samples, count))
        return tb_fail(spot->error, TB_NO_MEMORY, "no memory for the samples of %s", cell->name);
    take_samples(json, cell, count);
    return TB_OK;
}

static enum tb_status read_cell(const json_t *json, struct results *results,
                                const struct spot *spot) {
    const char *name = json_string_value(json_object_get(json, "name"));
    const json_t *verdict = json_object_get(json, "verdict");
    if (!name || !name[0])
        return complain(spot, "", "a cell without a name");
    if (!json_is_string(verdict) && !json_is_null(verdict))
        return complain(spot, name, "no verdict: every cell of results.json has one");
    struct result_cell *cell = results_append(results);
    if (cell)
        cell->name = strdup(name);
    if (!cell || !cell->name || !read_settings(json, cell))
        return tb_fail(spot->error, TB_NO_MEMORY, "no memory for the cells of %s", results->file);
    read_gate(json, cell);
    return read_samples(json_object_get(json, "samples"), cell, spot);
}

/* run.device.model -> "device.model"; nested objects one level deep. */
static void flatten(json_t *flat, const char *prefix, const json_t *object) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        char path[128];
        snprintf(path, sizeof path, "%s.%s", prefix, key);
        if (!json_is_object(value) && !json_is_array(value))
            json_object_set(flat, path, value);
    }
}

static enum tb_status read_run(const json_t *run, struct results *results,
                               const struct spot *spot) {
    if (!json_is_object(run))
        return complain(spot, "", "no object run");
    const json_t *profile = json_object_get(run, "profile"), *build = json_object_get(run, "build");
    member_text(run, "id", results->id, sizeof results->id);
    member_text(run, "date", results->date, sizeof results->date);
    member_text(profile, "name", results->profile, sizeof results->profile);
    member_text(profile, "sha256", results->profile_sha256, sizeof results->profile_sha256);
    member_text(run, "plan_sha256", results->plan_sha256, sizeof results->plan_sha256);
    member_text(run, "sources_sha256", results->sources_sha256, sizeof results->sources_sha256);
    member_text(build, "commit", results->commit, sizeof results->commit);
    results->unfrozen = json_is_true(json_object_get(run, "unfrozen"));
    results->subset = json_is_true(json_object_get(run, "subset"));
    results->environment = json_object();
    results->run = json_incref((json_t *)run);
    if (!results->id[0])
        return complain(spot, "", "run has no id");
    json_object_set(results->environment, "device_kind", json_object_get(run, "device_kind"));
    json_object_set(results->environment, "slices", json_object_get(run, "slices"));
    flatten(results->environment, "device", json_object_get(run, "device"));
    flatten(results->environment, "host", json_object_get(run, "host"));
    flatten(results->environment, "build", build);
    return TB_OK;
}

static enum tb_status check_schema(const char *schema, const struct spot *spot) {
    if (schema && !strcmp(schema, "topp-bench.results/1"))
        return TB_OK;
    return complain(spot, schema ? schema : "",
                    "another version than topp-bench.results/1, which this program reads: use the "
                    "perfwatch of that version");
}

static enum tb_status read_whole(const struct json_text *text, struct results *results,
                                 struct tb_error *error) {
    struct spot spot = {text, 0, error};
    size_t index;
    json_t *cell, *root = json_text_parse(text, 0, text->length, error);
    if (!root)
        return TB_UNREADABLE;
    enum tb_status status = check_schema(json_string_value(json_object_get(root, "schema")), &spot);
    const json_t *cells = json_object_get(root, "cells");
    if (status == TB_OK)
        status = read_run(json_object_get(root, "run"), results, &spot);
    if (status == TB_OK && !json_is_array(cells))
        status = complain(&spot, "", "no array cells");
    json_array_foreach((json_t *)cells, index, cell) {
        if (status == TB_OK)
            status = read_cell(cell, results, &spot);
    }
    json_decref(root);
    return status;
}

/* The line that starts at `from`, without its line feed; false at the end of the text. */
static bool next_line(const struct json_text *text, size_t from, size_t *length, size_t *next) {
    if (from >= text->length)
        return false;
    const char *feed = memchr(text->bytes + from, '\n', text->length - from);
    *length = feed ? (size_t)(feed - (text->bytes + from)) : text->length - from;
    *next = from + *length + (feed != NULL);
    return true;
}

static bool line_is(const struct json_text *text, size_t from, size_t length, const char *line) {
    return length == strlen(line) && !memcmp(text->bytes + from, line, length);
}

/* True when the text has the layout that bench_topp writes; *run and *cells are where the run's
 * object and the first cell stand, *end where the line behind the last cell stands. */
static bool has_lines(const struct json_text *text, size_t *run, size_t *run_length,
                      size_t *cells) {
    size_t at = 0, length, next;
    if (!next_line(text, at, &length, &next) ||
        !line_is(text, at, length, "{\"schema\":\"topp-bench.results/1\","))
        return false;
    at = next;
    if (!next_line(text, at, &length, &next) || length < 8 ||
        memcmp(text->bytes + at, "\"run\":{", 7) != 0 || text->bytes[at + length - 1] != ',')
        return false;
    *run = at + 6;
    *run_length = length - 7;
    at = next;
    if (!next_line(text, at, &length, &next) || length < 10 ||
        memcmp(text->bytes + at, "\"summary\":", 10) != 0)
        return false;
    at = next;
    if (!next_line(text, at, &length, &next) || !line_is(text, at, length, "\"cells\":["))
        return false;
    *cells = next;
    return text->length - next >= 3 && !memcmp(text->bytes + text->length - 3, "]}\n", 3);
}

static enum tb_status read_lines(const struct json_text *text, size_t at, struct results *results,
                                 struct tb_error *error) {
    struct spot spot = {text, at, error};
    enum tb_status status = TB_OK;
    size_t length, next;
    bool more = true;
    for (; status == TB_OK && next_line(text, at, &length, &next); at = next) {
        if (line_is(text, at, length, "]}"))
            return more && results->count > 0 ? complain(&spot, "", "a comma behind the last cell")
                                              : TB_OK;
        spot.byte = at;
        if (!more)
            return complain(&spot, "", "a comma is missing between two cells");
        more = length > 0 && text->bytes[at + length - 1] == ',';
        json_t *cell = json_text_parse(text, at, length - more, error);
        status = cell ? read_cell(cell, results, &spot) : TB_UNREADABLE;
        json_decref(cell);
    }
    return status;
}

enum tb_status read_topp_results(const struct json_text *text, struct results *results,
                                 struct tb_error *error) {
    size_t run = 0, run_length = 0, cells = 0;
    results->format = FORMAT_TOPP;
    if (!has_lines(text, &run, &run_length, &cells))
        return read_whole(text, results, error);
    struct spot spot = {text, run, error};
    json_t *object = json_text_parse(text, run, run_length, error);
    if (!object)
        return TB_UNREADABLE;
    enum tb_status status = read_run(object, results, &spot);
    json_decref(object);
    return status == TB_OK ? read_lines(text, cells, results, error) : status;
}
