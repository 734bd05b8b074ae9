#include "bench/plot_source.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char schema[] = "topp-bench.results/";

const char *plot_text(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

double plot_number(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

bool plot_put_field(FILE *stream, const json_t *value) {
    if (!value || json_is_null(value))
        return fputs("NA", stream) >= 0;
    if (!json_is_string(value))
        return json_dumpf(value, stream, JSON_ENCODE_ANY | JSON_REAL_PRECISION(10)) == 0;
    for (const char *text = json_string_value(value); *text; text++)
        if (fputc(strchr("\t\r\n", *text) ? ' ' : *text, stream) == EOF)
            return false;
    return true;
}

void plot_footer(const struct plot_results *results, char *text, size_t bytes) {
    const json_t *run = results->run, *device = json_object_get(run, "device");
    const char *model = plot_text(device, "model"), *date = plot_text(run, "date");
    const char *kind = plot_text(run, "device_kind");
    snprintf(text, bytes, "%s (%s), %.10s %.5s UTC, profile %s%s, topp-bench %s",
             *model ? model : "unknown device", *kind ? kind : "?", date,
             strlen(date) > 11 ? date + 11 : "", plot_text(json_object_get(run, "profile"), "name"),
             json_is_true(json_object_get(run, "unfrozen")) ? " (unfrozen)" : "",
             plot_text(json_object_get(run, "build"), "version"));
}

struct drawn {
    json_int_t draw;
    double time;
    size_t sample;
};

static int by_draw_and_time(const void *left, const void *right) {
    const struct drawn *const a = left, *const b = right;
    return a->draw != b->draw ? (a->draw > b->draw) - (a->draw < b->draw)
                              : (a->time > b->time) - (a->time < b->time);
}

/* Times over the median of their own draw: draws of different rows differ by right, and would hide
 * what the clocks did. */
static bool pack_samples(const json_t *samples, struct plot_cell *cell) {
    const json_t *times = json_object_get(samples, "time_ns");
    const json_t *draws = json_object_get(samples, "draw");
    const size_t count = json_array_size(times);
    if (!count || json_array_size(draws) != count)
        return true;
    float *const relative = calloc(count, sizeof *relative);
    struct drawn *const drawn = calloc(count, sizeof *drawn);
    const bool good = relative && drawn;
    for (size_t i = 0; good && i < count; i++)
        drawn[i] = (struct drawn){json_integer_value(json_array_get(draws, i)),
                                  json_number_value(json_array_get(times, i)), i};
    if (good)
        qsort(drawn, count, sizeof *drawn, by_draw_and_time);
    for (size_t first = 0, end = 0; good && first < count; first = end) {
        while (end < count && drawn[end].draw == drawn[first].draw)
            end++;
        const double median =
            0.5 * (drawn[(first + end - 1) / 2].time + drawn[(first + end) / 2].time);
        for (size_t i = first; i < end && median > 0; i++)
            relative[drawn[i].sample] = (float)(drawn[i].time / median);
    }
    free(drawn);
    if (!good) {
        free(relative);
        return false;
    }
    cell->relative = relative;
    cell->samples = count;
    return true;
}

/* Takes ownership of json. */
static bool take_cell(struct plot_results *results, json_t *json) {
    if ((results->count & (results->count - 1)) == 0) { /* room grows by powers of two */
        const size_t room = results->count ? 2 * results->count : 1;
        struct plot_cell *cells = realloc(results->cells, room * sizeof *cells);
        if (!cells) {
            json_decref(json);
            return false;
        }
        results->cells = cells;
    }
    struct plot_cell *cell = &results->cells[results->count++];
    *cell = (struct plot_cell){.json = json};
    const bool good = pack_samples(json_object_get(json, "samples"), cell);
    static const char *const bulky[] = {"samples", "kernels", "conditions", "inputs",
                                        "statistic_figures"};
    for (size_t i = 0; i < sizeof bulky / sizeof bulky[0]; i++)
        json_object_del(json, bulky[i]);
    return good;
}

static enum tb_status no_memory(struct tb_error *error) {
    return tb_fail(error, TB_NO_MEMORY, "no memory for the results");
}

static bool is_schema(const char *text) {
    return text && !strncmp(text, schema, sizeof schema - 1);
}

/* Any layout of the JSON text: the whole file in memory. */
static enum tb_status read_whole(struct plot_results *results, struct tb_error *error) {
    json_error_t where;
    json_t *root = json_load_file(results->file, JSON_REJECT_DUPLICATES, &where);
    if (!root)
        return tb_fail_at(error, TB_UNREADABLE, results->file, where.line, where.position,
                          "no whole JSON document: %s", where.text);
    enum tb_status status = TB_OK;
    json_t *cells = json_object_get(root, "cells");
    if (!is_schema(plot_text(root, "schema")) || !json_is_array(cells))
        status = tb_fail_at(error, TB_UNREADABLE, results->file, 1, -1,
                            "no results of bench_topp (schema %s1)", schema);
    results->run = json_incref(json_object_get(root, "run"));
    results->summary = json_incref(json_object_get(root, "summary"));
    for (size_t i = 0; status == TB_OK && i < json_array_size(cells); i++) {
        json_t *cell = json_array_get(cells, i);
        if (!json_is_object(cell))
            status = tb_fail_at(error, TB_UNREADABLE, results->file, 0, -1,
                                "cells[%zu] is no object", i);
        else if (!take_cell(results, json_incref(cell)))
            status = no_memory(error);
    }
    json_decref(root);
    return status;
}

/* One line `"key":{...},` or `{...},` of the file as the writer lays it out; NULL if it is none. */
static json_t *line_value(char *line, const char *key, json_error_t *where) {
    if (key) {
        const size_t length = strlen(key);
        if (line[0] != '"' || strncmp(line + 1, key, length) != 0 ||
            strncmp(line + 1 + length, "\":", 2) != 0)
            return NULL;
        line += length + 3;
    }
    size_t end = strlen(line);
    while (end && strchr("\r\n", line[end - 1]))
        line[--end] = '\0';
    if (end && line[end - 1] == ',')
        line[--end] = '\0';
    return json_loadb(line, end, JSON_REJECT_DUPLICATES, where);
}

/* The layout of writer_json.c, a cell a line: thousands of cells without holding their samples as
 * JSON. *other: it is laid out in another way, nothing was read. */
static enum tb_status read_lines(FILE *file, struct plot_results *results, bool *other,
                                 struct tb_error *error) {
    char *line = NULL;
    size_t room = 0;
    int64_t number = 4;
    json_error_t where = {0};
    enum tb_status status = TB_OK;
    *other = getline(&line, &room, file) < 0 || strncmp(line, "{\"schema\":\"", 11) != 0 ||
             !is_schema(line + 11);
    if (!*other && getline(&line, &room, file) > 0)
        results->run = line_value(line, "run", &where);
    if (!*other && getline(&line, &room, file) > 0)
        results->summary = line_value(line, "summary", &where);
    if (!results->run || !results->summary || getline(&line, &room, file) < 0 ||
        strncmp(line, "\"cells\":[", 9) != 0)
        *other = true;
    bool ended = false;
    while (!*other && status == TB_OK && !ended && getline(&line, &room, file) >= 0) {
        number++;
        ended = line[0] == ']';
        if (ended)
            break;
        json_t *cell = line_value(line, NULL, &where);
        if (!json_is_object(cell)) {
            json_decref(cell);
            status = tb_fail_at(error, TB_UNREADABLE, results->file, number, where.position,
                                "this line is no whole cell: %s", where.text);
        } else if (!take_cell(results, cell))
            status = no_memory(error);
    }
    if (!*other && status == TB_OK && !ended)
        status = tb_fail_at(error, TB_UNREADABLE, results->file, number, -1,
                            "the file ends early: its closing bracket is missing");
    free(line);
    return status;
}

/* json_number_value of "run" is used all over: it must be an object. */
static enum tb_status check_head(const struct plot_results *results, struct tb_error *error) {
    if (!json_is_object(results->run) || !json_is_object(results->summary))
        return tb_fail_at(error, TB_UNREADABLE, results->file, 0, -1,
                          "members \"run\" and \"summary\" are missing");
    if (!results->count)
        return tb_fail_at(error, TB_UNREADABLE, results->file, 0, -1,
                          "no cells in it: nothing to show");
    return TB_OK;
}

static enum tb_status find_file(const char *path, struct plot_results *results,
                                struct tb_error *error) {
    struct stat about;
    if (stat(path, &about) != 0)
        return tb_fail_at(error, TB_UNREADABLE, path, 0, -1, "%s", strerror(errno));
    const bool folder = S_ISDIR(about.st_mode);
    size_t length = strlen(path);
    while (folder && length > 1 && path[length - 1] == '/')
        length--;
    if (length + sizeof "/results.json" > sizeof results->file)
        return tb_fail_at(error, TB_USAGE, path, 0, -1, "the path is too long");
    const char *slash = folder ? NULL : strrchr(path, '/');
    snprintf(results->file, sizeof results->file, "%.*s%s", (int)length, path,
             folder ? "/results.json" : "");
    if (folder)
        snprintf(results->dir, sizeof results->dir, "%.*s", (int)length, path);
    else if (slash)
        snprintf(results->dir, sizeof results->dir, "%.*s", (int)(slash == path ? 1 : slash - path),
                 path);
    else
        snprintf(results->dir, sizeof results->dir, ".");
    return TB_OK;
}

enum tb_status plot_results_read(const char *path, struct plot_results *results,
                                 struct tb_error *error) {
    *results = (struct plot_results){0};
    enum tb_status status = find_file(path, results, error);
    if (status != TB_OK)
        return status;
    FILE *file = fopen(results->file, "r");
    if (!file)
        return tb_fail_at(error, TB_UNREADABLE, results->file, 0, -1, "%s", strerror(errno));
    bool other = false;
    status = read_lines(file, results, &other, error);
    fclose(file);
    if (other) {
        json_decref(results->run);
        json_decref(results->summary);
        results->run = results->summary = NULL;
        status = read_whole(results, error);
    }
    return status == TB_OK ? check_head(results, error) : status;
}

void plot_results_free(struct plot_results *results) {
    for (size_t i = 0; i < results->count; i++) {
        json_decref(results->cells[i].json);
        free(results->cells[i].relative);
    }
    free(results->cells);
    json_decref(results->run);
    json_decref(results->summary);
    *results = (struct plot_results){0};
}
