/* Reading the history: one cell's series, and the whole as JSON. */
#include "ci/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char *column_text(sqlite3_stmt *statement, int column) {
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return strdup(text ? text : "");
}

static double column_real(sqlite3_stmt *statement, int column) {
    return sqlite3_column_type(statement, column) == SQLITE_NULL
               ? (double)NAN
               : sqlite3_column_double(statement, column);
}

void series_free(struct series *series) {
    for (size_t i = 0; i < series->count; i++) {
        struct point *point = &series->points[i];
        free(point->id);
        free(point->date);
        free(point->commit);
        free(point->verdict);
        free(point->rule);
        free(point->epoch);
    }
    free(series->points);
    free(series->name);
    memset(series, 0, sizeof *series);
}

/* Every run of a profile in which the cell ever stood; a run without it counts as missing unless
 * it was a subset. */
static const char series_sql[] =
    "SELECT runs.id, runs.date, ifnull(runs.commit_id,''), ifnull(cells.verdict,''),"
    " ifnull(cells.rule,''),"
    " 'device '||ifnull(runs.device,'-')||char(10)||'driver '||ifnull(runs.driver,'-')||char(10)||"
    " 'toolchain '||ifnull(runs.toolchain,'-')||char(10)||'profile '||"
    " ifnull(runs.profile,'-')||' '||ifnull(runs.profile_sha256,'')||char(10)||'settings '||"
    " ifnull(cells.settings,''),"
    " cells.run IS NULL, ifnull(cells.verdict,'') IN ('accepted','ok'), cells.median, cells.ci_low,"
    " cells.ci_high, cells.p05, cells.p95, cells.cycles, cells.sm_mhz, cells.blocks, cells.samples,"
    " cells.higher"
    " FROM runs LEFT JOIN cells ON cells.run=runs.number"
    "  AND cells.name=(SELECT number FROM names WHERE name=?1)"
    " WHERE cells.run IS NOT NULL OR (NOT runs.subset AND EXISTS("
    "  SELECT 1 FROM cells own JOIN runs other ON other.number=own.run"
    "  WHERE own.name=(SELECT number FROM names WHERE name=?1) AND other.profile IS runs.profile"
    "  AND other.device IS runs.device))"
    " ORDER BY runs.date, runs.number";

static bool read_point(sqlite3_stmt *statement, struct point *point) {
    *point = (struct point){.id = column_text(statement, 0),
                            .date = column_text(statement, 1),
                            .commit = column_text(statement, 2),
                            .verdict = column_text(statement, 3),
                            .rule = column_text(statement, 4),
                            .epoch = column_text(statement, 5)};
    bool missing = sqlite3_column_int(statement, 6), accepted = sqlite3_column_int(statement, 7);
    point->median = column_real(statement, 8);
    point->ci_low = column_real(statement, 9);
    point->ci_high = column_real(statement, 10);
    point->p05 = column_real(statement, 11);
    point->p95 = column_real(statement, 12);
    point->cycles = column_real(statement, 13);
    point->sm_mhz = column_real(statement, 14);
    point->blocks = sqlite3_column_int64(statement, 15);
    point->samples = sqlite3_column_int64(statement, 16);
    point->higher_is_better = sqlite3_column_int(statement, 17);
    point->state = missing               ? POINT_MISSING
                   : !accepted           ? POINT_REFUSED
                   : point->median > 0.0 ? POINT_OK
                                         : POINT_UNTIMED;
    return point->id && point->date && point->commit && point->verdict && point->rule &&
           point->epoch;
}

/* Runs without the cell do not know its settings: they keep the epoch around them. */
static void number_epochs(struct series *series) {
    const char *last = NULL;
    int number = 0;
    for (size_t i = 0; i < series->count; i++) {
        struct point *point = &series->points[i];
        if (point->state != POINT_MISSING) {
            number += last && strcmp(last, point->epoch) != 0;
            last = point->epoch;
        }
        point->number = number;
    }
}

enum tb_status history_series(struct history *history, const char *name, struct series *series,
                              struct tb_error *error) {
    sqlite3_stmt *statement = NULL;
    int step = SQLITE_ERROR;
    bool good = true;
    *series = (struct series){.name = strdup(name)};
    if (sqlite3_prepare_v2(history->db, series_sql, -1, &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
        while (good && (step = sqlite3_step(statement)) == SQLITE_ROW) {
            struct point *grown =
                realloc(series->points, (series->count + 1) * sizeof *series->points);
            good = grown != NULL;
            if (good) {
                series->points = grown;
                good = read_point(statement, &grown[series->count++]);
            }
        }
    }
    enum tb_status status = TB_OK;
    if (!good || !series->name)
        status = tb_fail(error, TB_NO_MEMORY, "no memory for the history of %s", name);
    else if (step != SQLITE_DONE)
        status = history_fail(history, error);
    else if (series->count == 0)
        status =
            tb_fail_at(error, TB_USAGE, history->file, 0, -1,
                       "no cell '%s' in it: perfwatch history without a name lists them", name);
    sqlite3_finalize(statement);
    if (status != TB_OK)
        series_free(series);
    else
        number_epochs(series);
    return status;
}

/* A row as an object: the columns' names and values. Text that holds JSON stays text. */
static json_t *row_to_json(sqlite3_stmt *statement) {
    json_t *json = json_object();
    for (int c = 0; c < sqlite3_column_count(statement); c++) {
        json_t *value;
        switch (sqlite3_column_type(statement, c)) {
        case SQLITE_INTEGER:
            value = json_integer(sqlite3_column_int64(statement, c));
            break;
        case SQLITE_FLOAT:
            value = json_real(sqlite3_column_double(statement, c));
            break;
        case SQLITE_TEXT:
            value = json_string((const char *)sqlite3_column_text(statement, c));
            break;
        default:
            value = json_null();
        }
        json_object_set_new(json, sqlite3_column_name(statement, c), value);
    }
    return json;
}

static bool export_run(sqlite3_stmt *run, sqlite3_stmt *cells, bool first, FILE *stream) {
    json_t *json = row_to_json(run), *list = json_array();
    const char *text = json_string_value(json_object_get(json, "environment"));
    json_t *environment = text ? json_loads(text, 0, NULL) : NULL;
    int step;
    if (environment)
        json_object_set_new(json, "environment", environment);
    sqlite3_bind_int64(cells, 1, json_integer_value(json_object_get(json, "number")));
    while ((step = sqlite3_step(cells)) == SQLITE_ROW)
        json_array_append_new(list, row_to_json(cells));
    sqlite3_reset(cells);
    json_object_del(json, "number");
    json_object_set_new(json, "cells", list);
    bool good = step == SQLITE_DONE && fputs(first ? "\n" : ",\n", stream) >= 0 &&
                json_dumpf(json, stream, JSON_COMPACT | JSON_REAL_PRECISION(17)) == 0;
    json_decref(json);
    return good;
}

enum tb_status history_export(struct history *history, FILE *stream, struct tb_error *error) {
    sqlite3_stmt *runs = NULL, *cells = NULL;
    int step = SQLITE_ERROR;
    bool good = true, first = true;
    /* One read transaction: a writer in between does not show. */
    if (sqlite3_exec(history->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(history->db, "SELECT * FROM runs ORDER BY date, number", -1, &runs,
                           NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(history->db,
                           "SELECT names.name AS name, verdict, rule, reason, as_expected, timed,"
                           " higher, kept, oracle, masks, settings, median, ci_low, ci_high, p05,"
                           " p95, cycles, sm_mhz, blocks, samples FROM cells"
                           " JOIN names ON names.number=cells.name WHERE run=?1 ORDER BY 1",
                           -1, &cells, NULL) != SQLITE_OK) {
        sqlite3_finalize(runs);
        return history_fail(history, error);
    }
    good = fputs("{\"schema\":\"topp-bench.history/1\",\n\"runs\":[", stream) >= 0;
    while (good && (step = sqlite3_step(runs)) == SQLITE_ROW) {
        good = export_run(runs, cells, first, stream);
        first = false;
    }
    enum tb_status status = TB_OK;
    if (good && step != SQLITE_DONE)
        status = history_fail(history, error);
    else if (!good || fputs("\n]}\n", stream) < 0 || fflush(stream) != 0)
        status = tb_fail(error, TB_IO, "the export cannot be written");
    sqlite3_finalize(runs);
    sqlite3_finalize(cells);
    sqlite3_exec(history->db, "COMMIT", NULL, NULL, NULL);
    return status;
}
