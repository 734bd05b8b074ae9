#include "ci/history.h"

#include "ci/json_text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FILE_VERSION = 1, APPLICATION = 0x746f7070 /* "topp" */, BUSY_MS = 60000 };

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS runs("
    " number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, date TEXT NOT NULL, format TEXT,"
    " commit_id TEXT, profile TEXT, profile_sha256 TEXT, plan_sha256 TEXT, sources_sha256 TEXT,"
    " receipt_sha256 TEXT, file_sha256 TEXT NOT NULL, subset INTEGER, unfrozen INTEGER,"
    " device TEXT, driver TEXT, toolchain TEXT, environment TEXT);"
    "CREATE TABLE IF NOT EXISTS names(number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
    "CREATE TABLE IF NOT EXISTS cells("
    " name INTEGER NOT NULL REFERENCES names(number),"
    " run INTEGER NOT NULL REFERENCES runs(number),"
    " verdict TEXT, rule TEXT, reason TEXT, as_expected INTEGER, timed INTEGER, higher INTEGER,"
    " kept INTEGER, oracle INTEGER, masks TEXT, settings TEXT,"
    " median REAL, ci_low REAL, ci_high REAL, p05 REAL, p95 REAL, cycles REAL, sm_mhz REAL,"
    " blocks INTEGER, samples INTEGER,"
    " PRIMARY KEY(name, run)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS cells_of_run ON cells(run);";

enum tb_status history_fail(const struct history *history, struct tb_error *error) {
    int code = history->db ? sqlite3_errcode(history->db) : SQLITE_NOMEM;
    const char *what = history->db ? sqlite3_errmsg(history->db) : "no memory";
    enum tb_status status = code == SQLITE_NOMEM ? TB_NO_MEMORY
                            : code == SQLITE_FULL || code == SQLITE_IOERR ||
                                    code == SQLITE_READONLY || code == SQLITE_BUSY
                                ? TB_IO
                                : TB_UNREADABLE;
    return tb_fail_at(error, status, history->file, 0, -1, "%s%s", what,
                      code == SQLITE_BUSY ? ": another perfwatch has held it for a minute" : "");
}

static bool run_sql(struct history *history, const char *sql) {
    return sqlite3_exec(history->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static int number_of(struct history *history, const char *pragma) {
    sqlite3_stmt *statement = NULL;
    int number = -1;
    if (sqlite3_prepare_v2(history->db, pragma, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

/* Two first writers may both come here: the tables are made inside an immediate transaction. */
static enum tb_status make_tables(struct history *history, struct tb_error *error) {
    char version[96];
    snprintf(version, sizeof version, "PRAGMA application_id=%d; PRAGMA user_version=%d;",
             APPLICATION, FILE_VERSION);
    if (!run_sql(history, "BEGIN IMMEDIATE") || !run_sql(history, schema) ||
        !run_sql(history, version) || !run_sql(history, "COMMIT")) {
        enum tb_status status = history_fail(history, error);
        run_sql(history, "ROLLBACK");
        return status;
    }
    return TB_OK;
}

enum tb_status history_open(const char *file, bool create, struct history *history,
                            struct tb_error *error) {
    *history = (struct history){.file = strdup(file)};
    if (!history->file)
        return tb_fail(error, TB_NO_MEMORY, "no memory for %s", file);
    if (!create && access(file, R_OK) != 0) {
        int cause = errno;
        history_close(history);
        return tb_fail_at(error, TB_UNREADABLE, file, 0, -1,
                          "cannot be opened: %s (perfwatch record makes a history)",
                          strerror(cause));
    }
    enum tb_status status = TB_OK;
    int flags = SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0);
    if (sqlite3_open_v2(file, &history->db, flags, NULL) != SQLITE_OK ||
        sqlite3_busy_timeout(history->db, BUSY_MS) != SQLITE_OK)
        status = history_fail(history, error);
    int version = status == TB_OK ? number_of(history, "PRAGMA user_version") : 0;
    int application = status == TB_OK ? number_of(history, "PRAGMA application_id") : 0;
    int objects = status == TB_OK ? number_of(history, "SELECT count(*) FROM sqlite_master") : 0;
    if (status == TB_OK && (version < 0 || application < 0 || objects < 0))
        status = history_fail(history, error);
    else if (status == TB_OK && objects > 0 && application != APPLICATION)
        status = tb_fail_at(error, TB_UNREADABLE, file, 0, -1,
                            "is an SQLite file, but no history of perfwatch");
    else if (status == TB_OK && version > FILE_VERSION)
        status = tb_fail_at(error, TB_UNREADABLE, file, 0, -1,
                            "was written by a newer perfwatch (layout %d, this one reads %d)",
                            version, FILE_VERSION);
    else if (status == TB_OK && objects == 0)
        status = make_tables(history, error);
    if (status == TB_OK && !run_sql(history, "PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"))
        status = history_fail(history, error);
    if (status != TB_OK)
        history_close(history);
    return status;
}

void history_close(struct history *history) {
    sqlite3_close(history->db);
    free(history->file);
    memset(history, 0, sizeof *history);
}

bool history_date(const char *text, char utc[32]) {
    struct tm time = {0};
    int year, month, used = 0, hours = 0, minutes = 0;
    char sign[2] = "Z";
    if (sscanf(text, "%4d-%2d-%2d%*1[T ]%2d:%2d:%2d%n", &year, &month, &time.tm_mday, &time.tm_hour,
               &time.tm_min, &time.tm_sec, &used) < 6 ||
        used == 0 || month < 1 || month > 12 || time.tm_mday < 1 || time.tm_mday > 31)
        return false;
    const char *zone = text + used;
    if (*zone == '.')
        zone += 1 + strspn(zone + 1, "0123456789");
    if (*zone && strcmp(zone, "Z") != 0 &&
        sscanf(zone, "%1[+-]%2d:%2d", sign, &hours, &minutes) < 3)
        return false;
    time.tm_year = year - 1900;
    time.tm_mon = month - 1;
    struct tm real = time;
    time_t seconds = timegm(&real);
    if (real.tm_mday != time.tm_mday || real.tm_hour != time.tm_hour) /* a day or hour too many */
        return false;
    seconds -= (sign[0] == '-' ? -1 : sign[0] == '+' ? 1 : 0) * (hours * 3600 + minutes * 60);
    return gmtime_r(&seconds, &time) && strftime(utc, 32, "%Y-%m-%dT%H:%M:%SZ", &time) > 0;
}

enum tb_status history_names(struct history *history, char ***names, size_t *count,
                             struct tb_error *error) {
    sqlite3_stmt *statement = NULL;
    int step = SQLITE_ERROR;
    bool good = true;
    *names = NULL;
    *count = 0;
    if (sqlite3_prepare_v2(history->db, "SELECT name FROM names ORDER BY name", -1, &statement,
                           NULL) == SQLITE_OK)
        while (good && (step = sqlite3_step(statement)) == SQLITE_ROW) {
            char **grown = realloc(*names, (*count + 1) * sizeof *grown);
            good = grown != NULL;
            if (good) {
                *names = grown;
                grown[*count] = strdup((const char *)sqlite3_column_text(statement, 0));
                good = grown[(*count)++] != NULL;
            }
        }
    enum tb_status status = TB_OK;
    if (!good)
        status = tb_fail(error, TB_NO_MEMORY, "no memory for the names of %s", history->file);
    else if (step != SQLITE_DONE)
        status = history_fail(history, error);
    sqlite3_finalize(statement);
    return status;
}
