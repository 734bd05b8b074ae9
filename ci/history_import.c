/* An exported history ("topp-bench.history/1") back into a history. */
#include "ci/history.h"
#include "ci/json_text.h"

#include <stdlib.h>
#include <string.h>

static const char schema[] = "topp-bench.history/";

/* What one value of a row may be; each may be null too unless it must be there. */
enum kind { TEXT, WHOLE, REAL, OBJECT };

struct column {
    const char *name;
    enum kind kind;
    bool must;
};

static const struct column run_columns[] = {
    {"id", TEXT, true},
    {"date", TEXT, true},
    {"format", TEXT, false},
    {"commit_id", TEXT, false},
    {"profile", TEXT, false},
    {"profile_sha256", TEXT, false},
    {"plan_sha256", TEXT, false},
    {"sources_sha256", TEXT, false},
    {"receipt_sha256", TEXT, false},
    {"file_sha256", TEXT, true},
    {"subset", WHOLE, true},
    {"unfrozen", WHOLE, true},
    {"device", TEXT, false},
    {"driver", TEXT, false},
    {"toolchain", TEXT, false},
    {"environment", OBJECT, false},
};

static const struct column cell_columns[] = {
    {"name", TEXT, true},    {"verdict", TEXT, false},     {"rule", TEXT, false},
    {"reason", TEXT, false}, {"as_expected", WHOLE, true}, {"timed", WHOLE, true},
    {"higher", WHOLE, true}, {"kept", WHOLE, false},       {"oracle", WHOLE, false},
    {"masks", TEXT, false},  {"settings", TEXT, false},    {"median", REAL, false},
    {"ci_low", REAL, false}, {"ci_high", REAL, false},     {"p05", REAL, false},
    {"p95", REAL, false},    {"cycles", REAL, false},      {"sm_mhz", REAL, false},
    {"blocks", WHOLE, true}, {"samples", WHOLE, true},
};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static const char insert_run_sql[] =
    "INSERT INTO runs(id, date, format, commit_id, profile, profile_sha256, plan_sha256,"
    " sources_sha256, receipt_sha256, file_sha256, subset, unfrozen, device, driver, toolchain,"
    " environment) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16)";
/* ?1: the cell's name; the run comes last. */
static const char insert_cell_sql[] =
    "INSERT INTO cells VALUES((SELECT number FROM names WHERE name=?1),?21,?2,?3,?4,?5,?6,?7,?8,?9,"
    "?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20)";

struct importing {
    struct history *history; /* NULL: looked through, nothing is written */
    const struct json_text *text;
    struct tb_error *error;
    sqlite3_stmt *run, *name, *cell;
    bool replace;
    struct import_counts *counts;
    size_t byte; /* where the run that is read begins */
};

static enum tb_status database(const struct importing *importing) {
    return history_fail(importing->history, importing->error);
}

static enum tb_status complain(const struct importing *importing, const char *where,
                               const char *what) {
    return tb_fail_at(importing->error, TB_UNREADABLE, importing->text->file,
                      json_text_line(importing->text, importing->byte), (int64_t)importing->byte,
                      "%.100s: %s", where, what);
}

static bool is_kind(const struct column *column, const json_t *value) {
    switch (column->kind) {
    case TEXT:
        return json_is_string(value) && json_string_length(value) > 0;
    case WHOLE:
        return json_is_integer(value);
    case REAL:
        return json_is_number(value);
    case OBJECT:
        break;
    }
    return json_is_object(value);
}

/* Every column as it must be, and no member that is none. extra: one that is looked at elsewhere.
 */
static enum tb_status check_row(const struct importing *importing, const json_t *json,
                                const struct column *columns, size_t count, const char *extra) {
    const char *key;
    json_t *value;
    for (size_t i = 0; i < count; i++) {
        value = json_object_get(json, columns[i].name);
        const bool none = !value || json_is_null(value);
        if (none ? columns[i].must : !is_kind(&columns[i], value))
            return complain(importing, columns[i].name,
                            none ? "is missing" : "is not of its kind, or empty");
    }
    json_object_foreach((json_t *)json, key, value) {
        size_t i = 0;
        while (i < count && strcmp(key, columns[i].name) != 0)
            i++;
        if (i == count && (!extra || strcmp(key, extra) != 0))
            return complain(importing, key,
                            "no member that this program knows: is the export of a "
                            "newer perfwatch?");
    }
    return TB_OK;
}

static bool bind_row(sqlite3_stmt *statement, const json_t *json, const struct column *columns,
                     size_t count) {
    bool good = sqlite3_clear_bindings(statement) == SQLITE_OK;
    for (size_t i = 0; good && i < count; i++) {
        const json_t *value = json_object_get(json, columns[i].name);
        const int at = (int)i + 1;
        char *text = NULL;
        if (json_is_string(value)) {
            good = sqlite3_bind_text(statement, at, json_string_value(value), -1,
                                     SQLITE_TRANSIENT) == SQLITE_OK;
        } else if (columns[i].kind == REAL && json_is_number(value)) {
            good = sqlite3_bind_double(statement, at, json_number_value(value)) == SQLITE_OK;
        } else if (json_is_integer(value)) {
            good = sqlite3_bind_int64(statement, at, json_integer_value(value)) == SQLITE_OK;
        } else if (json_is_object(value)) { /* as history_record() writes it */
            text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);
            good =
                text && sqlite3_bind_text(statement, at, text, -1, SQLITE_TRANSIENT) == SQLITE_OK;
        }
        free(text);
    }
    return good;
}

static bool step_once(sqlite3_stmt *statement) {
    const bool good = sqlite3_step(statement) == SQLITE_DONE;
    sqlite3_reset(statement);
    return good;
}

static enum tb_status import_cells(struct importing *importing, const json_t *cells,
                                   sqlite3_int64 run) {
    size_t index;
    json_t *cell;
    enum tb_status status = TB_OK;
    json_array_foreach((json_t *)cells, index, cell) {
        if (status == TB_OK)
            status = check_row(importing, cell, cell_columns, COUNT(cell_columns), NULL);
        if (status != TB_OK || !importing->history)
            continue;
        const bool good =
            bind_row(importing->name, cell, cell_columns, 1) && step_once(importing->name) &&
            bind_row(importing->cell, cell, cell_columns, COUNT(cell_columns)) &&
            sqlite3_bind_int64(importing->cell, 21, run) == SQLITE_OK && step_once(importing->cell);
        if (!good)
            status = database(importing);
    }
    return status;
}

static enum tb_status write_run(struct importing *importing, const json_t *json) {
    const char *id = json_string_value(json_object_get(json, "id"));
    const char *sha256 = json_string_value(json_object_get(json, "file_sha256"));
    const struct history_identity identity = {id, sha256, importing->text->file};
    enum record_outcome outcome;
    sqlite3_int64 known;
    enum tb_status status = history_make_room(importing->history, &identity, importing->replace,
                                              &outcome, &known, importing->error);
    if (status != TB_OK)
        return status;
    if (outcome == RECORD_KNOWN) {
        importing->counts->known++;
        return TB_OK;
    }
    if (!bind_row(importing->run, json, run_columns, COUNT(run_columns)) ||
        !step_once(importing->run))
        return database(importing);
    importing->counts->runs++;
    return import_cells(importing, json_object_get(json, "cells"),
                        sqlite3_last_insert_rowid(importing->history->db));
}

static enum tb_status import_run(struct importing *importing, const json_t *json) {
    const json_t *cells = json_object_get(json, "cells");
    char date[32];
    enum tb_status status =
        json_is_object(json) ? check_row(importing, json, run_columns, COUNT(run_columns), "cells")
                             : complain(importing, "runs", "one of them is no object");
    if (status == TB_OK && !json_is_array(cells))
        status = complain(importing, "cells", "is no array");
    if (status == TB_OK && !history_date(json_string_value(json_object_get(json, "date")), date))
        status = complain(importing, "date", "is no date such as 2026-01-31T12:34:56Z");
    if (status != TB_OK)
        return status;
    return importing->history ? write_run(importing, json) : import_cells(importing, cells, 0);
}

/* The text as export writes it: schema, `"runs":[`, a run a line, `]}`. */
static bool next_line(const struct json_text *text, size_t *at, size_t *from, size_t *length) {
    if (*at >= text->length)
        return false;
    const char *start = text->bytes + *at;
    const char *feed = memchr(start, '\n', text->length - *at);
    *from = *at;
    *length = feed ? (size_t)(feed - start) : text->length - *at;
    *at += *length + (feed != NULL);
    return true;
}

static bool line_is(const struct json_text *text, size_t from, size_t length, const char *line) {
    return length == strlen(line) && !memcmp(text->bytes + from, line, length);
}

static bool has_lines(const struct json_text *text, size_t *first) {
    size_t at = 0, from, length;
    const bool head = next_line(text, &at, &from, &length) &&
                      line_is(text, from, length, "{\"schema\":\"topp-bench.history/1\",") &&
                      next_line(text, &at, &from, &length) &&
                      line_is(text, from, length, "\"runs\":[");
    *first = at;
    return head && text->length - at >= 3 && !memcmp(text->bytes + text->length - 3, "]}\n", 3);
}

/* One run in memory at a time. */
static enum tb_status import_lines(struct importing *importing, size_t at) {
    const struct json_text *text = importing->text;
    size_t from, length;
    bool comma = true;
    enum tb_status status = TB_OK;
    while (status == TB_OK && next_line(text, &at, &from, &length) &&
           !line_is(text, from, length, "]}")) {
        importing->byte = from;
        if (!comma)
            return complain(importing, "runs", "a comma is missing between two of them");
        comma = length > 0 && text->bytes[from + length - 1] == ',';
        json_t *run = json_text_parse(text, from, length - comma, importing->error);
        status = run ? import_run(importing, run) : TB_UNREADABLE;
        json_decref(run);
    }
    if (status == TB_OK && at < text->length)
        return complain(importing, "runs", "something stands behind the last of them");
    return status;
}

static enum tb_status import_whole(struct importing *importing) {
    json_t *root = json_text_parse(importing->text, 0, importing->text->length, importing->error);
    if (!root)
        return TB_UNREADABLE;
    const char *found = json_string_value(json_object_get(root, "schema"));
    const json_t *runs = json_object_get(root, "runs");
    enum tb_status status = TB_OK;
    size_t index;
    json_t *run;
    if (!found || strcmp(found, "topp-bench.history/1") != 0)
        status = complain(importing, found ? found : "schema",
                          "is not topp-bench.history/1, which this program reads");
    else if (!json_is_array(runs))
        status = complain(importing, "runs", "is no array");
    json_array_foreach((json_t *)runs, index, run) {
        if (status == TB_OK)
            status = import_run(importing, run);
    }
    json_decref(root);
    return status;
}

static enum tb_status import_text(struct importing *importing) {
    size_t first;
    return has_lines(importing->text, &first) ? import_lines(importing, first)
                                              : import_whole(importing);
}

bool history_is_export(const char *file) {
    char head[256] = "";
    FILE *stream = fopen(file, "re");
    const size_t length = stream ? fread(head, 1, sizeof head - 1, stream) : 0;
    if (stream)
        fclose(stream);
    return length > 0 && memmem(head, length, schema, sizeof schema - 1) != NULL;
}

enum tb_status history_import_check(const char *file, struct tb_error *error) {
    struct json_text text;
    struct import_counts counts = {0};
    struct importing importing = {.text = &text, .error = error, .counts = &counts};
    enum tb_status status = json_text_open(file, &text, error);
    if (status != TB_OK)
        return status;
    status = import_text(&importing);
    json_text_close(&text);
    return status;
}

static enum tb_status import_open(struct importing *importing) {
    sqlite3 *db = importing->history->db;
    static const char name_sql[] = "INSERT OR IGNORE INTO names(name) VALUES(?1)";
    if (sqlite3_prepare_v2(db, insert_run_sql, -1, &importing->run, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, name_sql, -1, &importing->name, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, insert_cell_sql, -1, &importing->cell, NULL) != SQLITE_OK)
        return database(importing);
    return TB_OK;
}

enum tb_status history_import(struct history *history, const char *file, bool replace,
                              struct import_counts *counts, struct tb_error *error) {
    struct json_text text;
    struct importing importing = {
        .history = history, .text = &text, .error = error, .replace = replace, .counts = counts};
    *counts = (struct import_counts){0};
    enum tb_status status = json_text_open(file, &text, error);
    if (status != TB_OK)
        return status;
    if (sqlite3_exec(history->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        status = database(&importing);
    if (status == TB_OK)
        status = import_open(&importing);
    if (status == TB_OK)
        status = import_text(&importing);
    sqlite3_finalize(importing.run);
    sqlite3_finalize(importing.name);
    sqlite3_finalize(importing.cell);
    if (status == TB_OK && sqlite3_exec(history->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        status = database(&importing);
    if (status != TB_OK)
        sqlite3_exec(history->db, "ROLLBACK", NULL, NULL, NULL);
    json_text_close(&text);
    return status;
}
