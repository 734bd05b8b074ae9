/* results.json ("topp-bench.results/1", docs/formats.md). */
#include "ci/results_cell.h"
#include "ci/results_formats.h"

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

/* What is being read: a walk through the whole document. */
struct document {
    const struct json_text *text;
    const struct read_options *options;
    struct results *results;
    struct tb_error *error;
    struct json_scan scan;
    struct json_span schema, run;
    bool cells;
};

static size_t byte_of(const struct document *document, const char *at) {
    return (size_t)(at - document->text->bytes);
}

/* The text is no JSON where the scan stopped. from: where what was being read begins. A line of
 * its own is parsed alone for jansson's words about it, another layout as a whole. */
static enum tb_status no_json(const struct document *document, const char *from) {
    const struct json_text *text = document->text;
    const char *end = text->bytes + text->length, *stopped = document->scan.at;
    const char *feed = end > from ? memchr(from, '\n', (size_t)(end - from)) : NULL;
    size_t begin = 0, length = text->length;
    struct spot spot = {text, byte_of(document, stopped), document->error};
    if (feed && stopped < feed && from > text->bytes && from[-1] == '\n') {
        begin = byte_of(document, from);
        length = (size_t)(feed - from) - (feed > from && feed[-1] == ',');
    }
    json_t *accepted = json_text_parse(text, begin, length, document->error);
    json_decref(accepted);
    return accepted ? complain(&spot, "", "no valid JSON") : TB_UNREADABLE;
}

static enum tb_status read_cell(struct document *document, struct sample_buffer *buffer) {
    struct results *results = document->results;
    const char *from = document->scan.at;
    struct cell_defect defect = {.what = NULL};
    struct result_cell *cell = results_append(results);
    if (cell && cell_read(&document->scan, document->text->bytes, document->options->samples_later,
                          buffer, cell, &defect))
        return TB_OK;
    struct spot spot = {document->text, byte_of(document, from), document->error};
    if (!cell || defect.memory)
        return tb_fail(document->error, TB_NO_MEMORY, "no memory for the cells of %s",
                       results->file);
    return defect.what ? complain(&spot, defect.name, defect.what) : no_json(document, from);
}

/* Between two cells, or behind the last one. */
static enum tb_status bad_separator(struct document *document) {
    struct spot spot = {document->text, byte_of(document, document->scan.at), document->error};
    const bool end = document->scan.at == document->scan.end;
    if (!end && *document->scan.at == '{')
        return complain(&spot, "", "a comma is missing between two cells");
    return no_json(document, document->scan.at);
}

static enum tb_status read_cells(struct document *document) {
    const size_t step = (size_t)4 << 20;
    struct json_scan *scan = &document->scan;
    struct sample_buffer buffer = {.room = 0};
    size_t released = byte_of(document, scan->at);
    enum tb_status status = TB_OK;
    document->cells = json_scan_peek(scan) == JSON_SCAN_ARRAY;
    if (!document->cells)
        return json_scan_skip(scan, NULL) ? TB_OK : no_json(document, scan->at);
    for (json_scan_array(scan); status == TB_OK && json_scan_item(scan);) {
        const enum json_type type = json_scan_peek(scan);
        struct spot spot = {document->text, byte_of(document, scan->at), document->error};
        if (type == JSON_SCAN_ARRAY || type == JSON_SCAN_OBJECT)
            status = type == JSON_SCAN_OBJECT ? read_cell(document, &buffer)
                                              : complain(&spot, "", "a cell that is no object");
        else if (*scan->at == ']')
            status = complain(&spot, "", "a comma behind the last cell");
        else
            status = json_scan_skip(scan, NULL) ? complain(&spot, "", "a cell that is no object")
                                                : no_json(document, scan->at);
        const size_t at = byte_of(document, scan->at);
        if (at - released >= step) {
            json_text_forget(document->text, released, at);
            released = at;
        }
    }
    if (status == TB_OK && scan->bad)
        status = bad_separator(document);
    sample_buffer_free(&buffer);
    return status;
}

static const char *text_in(struct json_span quoted, char *text, size_t bytes) {
    if (quoted.length < 2 || quoted.at[0] != '"')
        return NULL;
    json_span_text((struct json_span){quoted.at + 1, quoted.length - 2}, text, bytes);
    return text;
}

/* The members of the document. Cells that stand before the schema are left for a second walk: of
 * another version they would be read wrongly. */
static enum tb_status read_members(struct document *document, const char **cells) {
    struct json_scan *scan = &document->scan;
    struct json_span key;
    enum tb_status status = TB_OK;
    char schema[64];
    const struct spot spot = {document->text, 0, document->error};
    for (json_scan_object(scan); status == TB_OK && json_scan_key(scan, &key);) {
        const char *from = scan->at;
        bool good = true;
        if (json_span_is(key, "cells") && document->schema.at)
            status = read_cells(document);
        else if (json_span_is(key, "cells") && (*cells = from))
            good = json_scan_skip(scan, NULL);
        else if (json_span_is(key, "schema"))
            good = json_scan_skip(scan, &document->schema);
        else if (json_span_is(key, "run"))
            good = json_scan_skip(scan, &document->run);
        else
            good = json_scan_skip(scan, NULL);
        if (!good)
            status = no_json(document, from);
        else if (document->schema.at == NULL || *cells)
            continue;
        else if (status == TB_OK && json_span_is(key, "schema"))
            status = check_schema(text_in(document->schema, schema, sizeof schema), &spot);
    }
    if (status == TB_OK && (scan->bad || !json_scan_done(scan)))
        status = no_json(document, scan->at);
    if (status == TB_OK && !document->schema.at)
        status = check_schema(NULL, &spot);
    return status;
}

static enum tb_status read_run_object(struct document *document) {
    const struct json_span text = document->run;
    struct spot spot = {document->text, text.at ? byte_of(document, text.at) : 0, document->error};
    json_t *run = NULL;
    if (text.at) {
        run = json_text_parse(document->text, spot.byte, text.length, document->error);
        if (!run)
            return TB_UNREADABLE;
    }
    const enum tb_status status = read_run(run, document->results, &spot);
    json_decref(run);
    return status;
}

enum tb_status read_topp_results(const struct json_text *text, const struct read_options *options,
                                 struct results *results, struct tb_error *error) {
    struct document document = {.text = text,
                                .options = options,
                                .results = results,
                                .error = error,
                                .scan = json_scan_of(text->bytes, text->length)};
    const char *cells = NULL;
    results->format = FORMAT_TOPP;
    enum tb_status status = read_members(&document, &cells);
    if (status == TB_OK && cells) {
        document.scan = json_scan_of(cells, (size_t)(text->bytes + text->length - cells));
        status = read_cells(&document);
    }
    struct spot spot = {text, 0, error};
    if (status == TB_OK)
        status = read_run_object(&document);
    if (status == TB_OK && !document.cells)
        status = complain(&spot, "", "no array cells");
    return status;
}
