/* Writing a run into the history. */
#include "ci/history.h"

#include "ci/json_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct recording {
    struct history *history;
    const struct results *results;
    const struct record_options *options;
    struct tb_error *error;
    char date[32];
    sqlite3_int64 run;
};

static enum tb_status database(const struct recording *recording) {
    return history_fail(recording->history, recording->error);
}

static sqlite3_stmt *prepare(const struct recording *recording, const char *sql) {
    sqlite3_stmt *statement = NULL;
    sqlite3_prepare_v2(recording->history->db, sql, -1, &statement, NULL);
    return statement;
}

static void bind_text(sqlite3_stmt *statement, int at, const char *text) {
    if (text && text[0])
        sqlite3_bind_text(statement, at, text, -1, SQLITE_TRANSIENT);
}

static void bind_real(sqlite3_stmt *statement, int at, double value) {
    if (isfinite(value))
        sqlite3_bind_double(statement, at, value);
}

/* Fields of the environment joined into one text; absent ones are left out. */
static void join(const json_t *environment, const char *const *fields, size_t count, char *text,
                 size_t text_bytes) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count && used < text_bytes; i++) {
        const json_t *value = json_object_get(environment, fields[i]);
        const char *between = used ? ", " : "";
        if (json_is_string(value))
            used += (size_t)snprintf(text + used, text_bytes - used, "%s%s", between,
                                     json_string_value(value));
        else if (json_is_integer(value))
            used +=
                (size_t)snprintf(text + used, text_bytes - used, "%s%s %" JSON_INTEGER_FORMAT,
                                 between, strrchr(fields[i], '.') + 1, json_integer_value(value));
    }
}

static void bind_epoch(sqlite3_stmt *statement, int at, const json_t *environment) {
    static const char *const device[] = {
        "device.model",        "device.processors", "device.sm_count",
        "device.max_sm_mhz",   "device.vector",     "device.max_memory_mhz",
        "device.memory_bytes", "context.host_name", "context.num_cpus"};
    static const char *const driver[] = {"device.driver", "device.cuda_driver", "device.timer",
                                         "device.cupti"};
    static const char *const toolchain[] = {
        "build.build_type",   "build.c_compiler",    "build.c_flags",
        "build.cxx_compiler", "build.cxx_flags",     "build.cuda_compiler",
        "build.cuda_flags",   "device.cuda_runtime", "context.library_build_type"};
    char text[1024];
    join(environment, device, sizeof device / sizeof device[0], text, sizeof text);
    bind_text(statement, at, text);
    join(environment, driver, sizeof driver / sizeof driver[0], text, sizeof text);
    bind_text(statement, at + 1, text);
    join(environment, toolchain, sizeof toolchain / sizeof toolchain[0], text, sizeof text);
    bind_text(statement, at + 2, text);
}

static enum tb_status insert_run(struct recording *recording) {
    const struct results *results = recording->results;
    sqlite3_stmt *statement = prepare(
        recording, "INSERT INTO runs(id, date, format, commit_id, profile, profile_sha256,"
                   " plan_sha256, sources_sha256, receipt_sha256, file_sha256, subset, unfrozen,"
                   " device, driver, toolchain, environment)"
                   " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16)");
    char *environment = json_dumps(results->run, JSON_COMPACT | JSON_SORT_KEYS);
    if (statement) {
        const char *commit = recording->options->commit;
        bind_text(statement, 1, results->id);
        bind_text(statement, 2, recording->date);
        bind_text(statement, 3, results->format == FORMAT_TOPP ? "topp" : "gbench");
        bind_text(statement, 4, commit ? commit : results->commit);
        bind_text(statement, 5, results->profile);
        bind_text(statement, 6, results->profile_sha256);
        bind_text(statement, 7, results->plan_sha256);
        bind_text(statement, 8, results->sources_sha256);
        bind_text(statement, 9, results->receipt_sha256);
        bind_text(statement, 10, results->sha256);
        sqlite3_bind_int(statement, 11, results->subset);
        sqlite3_bind_int(statement, 12, results->unfrozen);
        bind_epoch(statement, 13, results->environment);
        bind_text(statement, 16, environment);
    }
    bool good = statement && sqlite3_step(statement) == SQLITE_DONE;
    recording->run = sqlite3_last_insert_rowid(recording->history->db);
    enum tb_status status = good ? TB_OK : database(recording);
    sqlite3_finalize(statement);
    free(environment);
    return status;
}

static bool insert_cell(sqlite3_stmt *name, sqlite3_stmt *insert, sqlite3_int64 run,
                        const struct result_cell *cell) {
    char settings[65] = "";
    if (cell->settings)
        sha256_text(cell->settings, strlen(cell->settings), settings);
    bind_text(name, 1, cell->name);
    bool good = sqlite3_step(name) == SQLITE_DONE;
    sqlite3_reset(name);
    sqlite3_clear_bindings(insert);
    bind_text(insert, 1, cell->name);
    sqlite3_bind_int64(insert, 2, run);
    bind_text(insert, 3, cell->verdict);
    bind_text(insert, 4, cell->rule);
    bind_text(insert, 5, cell->reason);
    sqlite3_bind_int(insert, 6, cell->as_expected);
    sqlite3_bind_int(insert, 7, cell->timed);
    sqlite3_bind_int(insert, 8, cell->higher_is_better);
    if (cell->kept >= 0)
        sqlite3_bind_int64(insert, 9, cell->kept);
    if (cell->oracle >= 0)
        sqlite3_bind_int64(insert, 10, cell->oracle);
    bind_text(insert, 11, cell->masks);
    bind_text(insert, 12, settings);
    bind_real(insert, 13, cell->median);
    bind_real(insert, 14, cell->ci_low);
    bind_real(insert, 15, cell->ci_high);
    bind_real(insert, 16, cell->p05);
    bind_real(insert, 17, cell->p95);
    bind_real(insert, 18, cell->median_cycles);
    bind_real(insert, 19, cell->sm_mhz);
    sqlite3_bind_int(insert, 20, cell->blocks);
    sqlite3_bind_int64(insert, 21, (sqlite3_int64)cell->samples.count);
    good = good && sqlite3_step(insert) == SQLITE_DONE;
    sqlite3_reset(insert);
    return good;
}

static enum tb_status insert_cells(struct recording *recording) {
    sqlite3_stmt *name = prepare(recording, "INSERT OR IGNORE INTO names(name) VALUES(?1)");
    sqlite3_stmt *insert = prepare(
        recording, "INSERT INTO cells VALUES((SELECT number FROM names WHERE name=?1),?2,?3,?4,?5,"
                   "?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21)");
    bool good = name && insert;
    for (size_t i = 0; good && i < recording->results->count; i++)
        good = insert_cell(name, insert, recording->run, &recording->results->cells[i]);
    enum tb_status status = good ? TB_OK : database(recording);
    sqlite3_finalize(name);
    sqlite3_finalize(insert);
    return status;
}

/* Cells of the last run before with the same profile and device, that this run lacks. */
static enum tb_status tell_missing(struct recording *recording, missing_callback *missing,
                                   void *context) {
    sqlite3_stmt *statement = prepare(
        recording,
        "SELECT names.name FROM cells JOIN names ON names.number=cells.name WHERE cells.run=("
        " SELECT old.number FROM runs old, runs own WHERE own.number=?1 AND old.number<>?1"
        "  AND old.date<=own.date AND NOT old.subset AND old.profile IS own.profile"
        "  AND old.device IS own.device ORDER BY old.date DESC, old.number DESC LIMIT 1)"
        " AND cells.name NOT IN (SELECT name FROM cells WHERE run=?1) ORDER BY names.name");
    int step = SQLITE_ERROR;
    if (statement) {
        sqlite3_bind_int64(statement, 1, recording->run);
        while ((step = sqlite3_step(statement)) == SQLITE_ROW)
            missing(context, (const char *)sqlite3_column_text(statement, 0));
    }
    enum tb_status status = step == SQLITE_DONE ? TB_OK : database(recording);
    sqlite3_finalize(statement);
    return status;
}

/* The run of that id: its number, and whether its content is the same; *run 0 when there is none.
 */
static enum tb_status look_up(struct history *history, const struct history_identity *identity,
                              sqlite3_int64 *run, bool *same, struct tb_error *error) {
    sqlite3_stmt *statement = NULL;
    int step = SQLITE_ERROR;
    *run = 0;
    *same = false;
    if (sqlite3_prepare_v2(history->db, "SELECT number, file_sha256=?2 FROM runs WHERE id=?1", -1,
                           &statement, NULL) == SQLITE_OK) {
        bind_text(statement, 1, identity->id);
        bind_text(statement, 2, identity->file_sha256);
        step = sqlite3_step(statement);
    }
    if (step == SQLITE_ROW) {
        *run = sqlite3_column_int64(statement, 0);
        *same = sqlite3_column_int(statement, 1);
    }
    const enum tb_status status =
        step == SQLITE_ROW || step == SQLITE_DONE ? TB_OK : history_fail(history, error);
    sqlite3_finalize(statement);
    return status;
}

static enum tb_status drop_run(struct history *history, sqlite3_int64 run, struct tb_error *error) {
    static const char *const deletions[] = {"DELETE FROM cells WHERE run=?1",
                                            "DELETE FROM runs WHERE number=?1"};
    for (int i = 0; i < 2; i++) {
        sqlite3_stmt *statement = NULL;
        const bool good =
            sqlite3_prepare_v2(history->db, deletions[i], -1, &statement, NULL) == SQLITE_OK &&
            sqlite3_bind_int64(statement, 1, run) == SQLITE_OK &&
            sqlite3_step(statement) == SQLITE_DONE;
        const enum tb_status status = good ? TB_OK : history_fail(history, error);
        sqlite3_finalize(statement);
        if (status != TB_OK)
            return status;
    }
    return TB_OK;
}

enum tb_status history_make_room(struct history *history, const struct history_identity *identity,
                                 bool replace, enum record_outcome *outcome, sqlite3_int64 *known,
                                 struct tb_error *error) {
    sqlite3_int64 run;
    bool same;
    const enum tb_status status = look_up(history, identity, &run, &same, error);
    *known = same ? run : 0;
    *outcome = same ? RECORD_KNOWN : run ? RECORD_REPLACED : RECORD_NEW;
    if (status != TB_OK || *outcome != RECORD_REPLACED)
        return status;
    if (!replace)
        return tb_fail_at(error, TB_USAGE, identity->file, 0, -1,
                          "run %s is in the history with other content: --replace puts this file "
                          "in its place",
                          identity->id);
    return drop_run(history, run, error);
}

enum tb_status history_record(struct history *history, const struct results *results,
                              const struct record_options *options, missing_callback *missing,
                              void *context, enum record_outcome *outcome, struct tb_error *error) {
    struct recording recording = {
        .history = history, .results = results, .options = options, .error = error};
    const char *date = options->date ? options->date : results->date;
    *outcome = RECORD_NEW;
    if (!results->id[0] || !results->sha256[0])
        return tb_fail(error, TB_INTERNAL, "a run without an id or a hash of its file");
    if (!history_date(date, recording.date))
        return tb_fail_at(error, options->date ? TB_USAGE : TB_UNREADABLE, results->file, 0, -1,
                          "'%s' is no date: --date 2026-01-31T12:34:56Z says when it was measured",
                          date);
    if (sqlite3_exec(history->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        return history_fail(history, error);
    const struct history_identity identity = {results->id, results->sha256, results->file};
    enum tb_status status =
        history_make_room(history, &identity, options->replace, outcome, &recording.run, error);
    if (status == TB_OK && *outcome != RECORD_KNOWN)
        status = insert_run(&recording);
    if (status == TB_OK && *outcome != RECORD_KNOWN)
        status = insert_cells(&recording);
    if (status == TB_OK && missing && !results->subset)
        status = tell_missing(&recording, missing, context);
    if (status == TB_OK && sqlite3_exec(history->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        status = history_fail(history, error);
    if (status != TB_OK)
        sqlite3_exec(history->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}
