/* The long view: runs in one SQLite file. A run is written in one transaction: two writers wait
 * for each other, and a process killed at any moment leaves whole runs only. */
#ifndef TOPP_CI_HISTORY_H
#define TOPP_CI_HISTORY_H

#include "ci/results.h"

#include <sqlite3.h>
#include <stdio.h>

struct history {
    sqlite3 *db;
    char *file;
};

/* create: makes the file when it is absent; otherwise absence is an error. */
enum tb_status history_open(const char *file, bool create, struct history *history,
                            struct tb_error *error);
void history_close(struct history *history);

enum record_outcome { RECORD_NEW, RECORD_KNOWN, RECORD_REPLACED };

struct record_options {
    bool replace;       /* a run of that id with other content is replaced, not refused */
    const char *date;   /* "2026-01-31T12:34:56Z" in place of the file's; NULL */
    const char *commit; /* in place of the file's; NULL */
};

/* Called for each cell that the run before (same profile, same device model) had and this has
 * not. */
typedef void missing_callback(void *context, const char *name);

enum tb_status history_record(struct history *history, const struct results *results,
                              const struct record_options *options, missing_callback *missing,
                              void *context, enum record_outcome *outcome, struct tb_error *error);

/* UTC with a Z, from what result files hold; false when it is no date. */
bool history_date(const char *text, char utc[32]);

enum point_state { POINT_OK, POINT_REFUSED, POINT_UNTIMED, POINT_MISSING };

/* One run of one cell, or a run that should have had it. Texts are owned by the series. */
struct point {
    char *id, *date, *commit, *verdict, *rule;
    char *epoch; /* "device ...\ndriver ...\ntoolchain ...\nprofile ...\nsettings ..." */
    enum point_state state;
    double median, ci_low, ci_high, p05, p95, cycles, sm_mhz;
    int64_t blocks, samples;
    int number; /* of the epoch, from 0 */
    bool higher_is_better;
};

struct series {
    char *name;
    struct point *points; /* ascending by date */
    size_t count;
};

enum tb_status history_series(struct history *history, const char *name, struct series *series,
                              struct tb_error *error);
void series_free(struct series *series);

/* All cells' names, ascending; release each and the list with free(). */
enum tb_status history_names(struct history *history, char ***names, size_t *count,
                             struct tb_error *error);

/* The whole file as "topp-bench.history/1", written run by run. */
enum tb_status history_export(struct history *history, FILE *stream, struct tb_error *error);

/* Is the file such an export? */
bool history_is_export(const char *file);
/* Looks an export through: TB_UNREADABLE with line and byte of what is wrong. */
enum tb_status history_import_check(const char *file, struct tb_error *error);

struct import_counts {
    size_t runs;  /* written */
    size_t known; /* that were there already, with the same content */
};
/* Puts all runs of an export into the history, in one transaction: all or none. */
enum tb_status history_import(struct history *history, const char *file, bool replace,
                              struct import_counts *counts, struct tb_error *error);

/* What tells a run from others; texts are borrowed. */
struct history_identity {
    const char *id, *file_sha256;
    const char *file; /* for messages */
};
/* Is the run there already (RECORD_KNOWN, *known is its number)? One of that id with other content
 * is dropped when replace is set (RECORD_REPLACED), else TB_USAGE. Within the caller's transaction.
 */
enum tb_status history_make_room(struct history *history, const struct history_identity *identity,
                                 bool replace, enum record_outcome *outcome, sqlite3_int64 *known,
                                 struct tb_error *error);

/* A database error as ours, with the file's name. */
enum tb_status history_fail(const struct history *history, struct tb_error *error);

#endif
