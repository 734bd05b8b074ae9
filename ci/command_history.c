/* perfwatch history [CELL]. */
#include "ci/command.h"
#include "ci/trend.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_DB = 0x100, KEY_SINCE, KEY_JSON, KEY_TSV, KEY_FAIL, KEY_MARGIN, KEY_LAST };

static const struct argp_option rows[] = {
    {"db", KEY_DB, "FILE", 0,
     "The history's SQLite file (default: $PERFWATCH_DB, else perfwatch.db)", 0},
    {"since", KEY_SINCE, "DATE", 0, "Show runs from this date on (2026-01-31, UTC)", 0},
    {"last", KEY_LAST, "N", 0, "Show the last N runs (default 40; 0: all)", 0},
    {"margin", KEY_MARGIN, "SHARE", 0, "Least step that counts (default 2%; written as in compare)",
     0},
    {"json", KEY_JSON, "FILE", 0, "Series and change points as JSON; - is standard output", 0},
    {"tsv", KEY_TSV, "FILE", 0, "One cell's series for plots/history.gp; - is standard output", 0},
    {"fail-on-change", KEY_FAIL, 0, 0,
     "Exit code 1 on a new change point: one from --since on; without it, one that was not seen "
     "before the last run came",
     0},
    {0}};

struct arguments {
    const char *cell, *db, *json, *tsv;
    char since[32];
    bool fail_on_change;
    long last;
    double margin;
    struct tb_error error;
};

static void take_since(struct arguments *arguments, const char *value) {
    char whole[64];
    if (strlen(value) == 10)
        snprintf(whole, sizeof whole, "%sT00:00:00Z", value);
    else
        snprintf(whole, sizeof whole, "%s", value);
    if (!history_date(whole, arguments->since))
        tb_fail(&arguments->error, TB_USAGE,
                "--since: '%s' is no date: write 2026-01-31 or 2026-01-31T12:00:00Z", value);
}

static error_t parse(int key, char *value, struct argp_state *state) {
    struct arguments *arguments = state->input;
    switch (key) {
    case KEY_DB:
        arguments->db = value;
        return 0;
    case KEY_SINCE:
        take_since(arguments, value);
        return 0;
    case KEY_LAST:
        whole_parse("--last", value, 0, 1000000, &arguments->last, &arguments->error);
        return 0;
    case KEY_MARGIN:
        share_parse("--margin", value, 1e-4, 100.0, &arguments->margin, &arguments->error);
        return 0;
    case KEY_JSON:
        arguments->json = value;
        return 0;
    case KEY_TSV:
        arguments->tsv = value;
        return 0;
    case KEY_FAIL:
        arguments->fail_on_change = true;
        return 0;
    case ARGP_KEY_ARG:
        if (arguments->cell)
            argp_error(state, "one CELL, or none for all ('%s' is a second)", value);
        arguments->cell = value;
        return 0;
    case ARGP_KEY_END:
        if (arguments->tsv && !arguments->cell)
            argp_error(state, "--tsv needs a CELL");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

struct showing {
    const struct arguments *arguments;
    struct output json, tsv;
    json_t *cells;
    size_t fresh, shown;
    bool table;
};

static void overview_line(const struct trend *trend) {
    const struct series *series = trend->series;
    const struct point *last = &series->points[series->count - 1];
    const struct trend_point *change =
        trend->change_count ? &trend->changes[trend->change_count - 1] : NULL;
    printf("%5zu %8zu %8zu  ", series->count, trend->missing, trend->change_count);
    if (change)
        printf("%s %+6.1f%% %s%s", series->points[change->at].date, 100.0 * expm1(change->step),
               change->clock ? "clock" : "", change->fresh ? "new" : "");
    else
        printf("%-28s", "");
    printf("  %s%s\n", series->name,
           last->state == POINT_MISSING ? "  (missing in the last run)" : "");
}

static enum tb_status show_cell(struct showing *showing, struct history *history, const char *name,
                                struct tb_error *error) {
    const struct arguments *arguments = showing->arguments;
    const char *since = arguments->since[0] ? arguments->since : NULL;
    struct series series;
    struct trend trend;
    enum tb_status status = history_series(history, name, &series, error);
    if (status != TB_OK)
        return status;
    if (!trend_find(&series, arguments->margin, since, &trend)) {
        series_free(&series);
        return tb_fail(error, TB_NO_MEMORY, "no memory for %s", name);
    }
    for (size_t i = 0; i < trend.change_count; i++)
        showing->fresh += trend.changes[i].fresh && !trend.changes[i].clock;
    if (showing->cells)
        json_array_append_new(showing->cells, trend_json(&trend, since));
    if (showing->tsv.stream)
        trend_tsv(&trend, since, showing->tsv.stream);
    if (showing->table && arguments->cell)
        trend_table(&trend, since, (size_t)arguments->last, stdout);
    else if (showing->table)
        overview_line(&trend);
    showing->shown++;
    series_free(&series);
    return TB_OK;
}

static enum tb_status show_all(struct showing *showing, struct history *history,
                               struct tb_error *error) {
    char **names = NULL;
    size_t count = 0;
    enum tb_status status = history_names(history, &names, &count, error);
    if (showing->table && status == TB_OK)
        printf("%5s %8s %8s  %-28s  cell\n", "runs", "missing", "changes", "last change");
    for (size_t i = 0; status == TB_OK && i < count; i++)
        status = show_cell(showing, history, names[i], error);
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return status;
}

static enum tb_status show(const struct arguments *arguments, int *exit_code,
                           struct tb_error *error) {
    struct showing showing = {.arguments = arguments};
    struct history history = {0};
    const char *const paths[] = {arguments->json, arguments->tsv};
    showing.table = !output_is_standard(arguments->json) && !output_is_standard(arguments->tsv);
    showing.cells = arguments->json ? json_array() : NULL;
    enum tb_status status = outputs_apart(paths, 2, NULL, 0, error);
    if (status == TB_OK)
        status = output_open(arguments->json, &showing.json, error);
    if (status == TB_OK)
        status = output_open(arguments->tsv, &showing.tsv, error);
    if (status == TB_OK)
        status = history_open(arguments->db, false, &history, error);
    if (status == TB_OK)
        status = arguments->cell ? show_cell(&showing, &history, arguments->cell, error)
                                 : show_all(&showing, &history, error);
    if (status == TB_OK && showing.json.stream) {
        json_t *json =
            json_pack("{s:s,s:O}", "schema", "topp-bench.trend/1", "cells", showing.cells);
        if (!json ||
            json_dumpf(json, showing.json.stream, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) != 0 ||
            fputc('\n', showing.json.stream) == EOF)
            status = tb_fail(error, TB_IO, "cannot write %s", arguments->json);
        json_decref(json);
    }
    enum tb_status closed = output_close(&showing.json, status == TB_OK, error);
    if (closed == TB_OK)
        closed = output_close(&showing.tsv, status == TB_OK, error);
    json_decref(showing.cells);
    history_close(&history);
    *exit_code = arguments->fail_on_change && showing.fresh > 0 ? 1 : 0;
    return status == TB_OK ? closed : status;
}

int command_history(int argc, char **argv) {
    static const char doc[] =
        "One cell over all recorded runs, with its change points; without CELL a line for each "
        "cell. Runs of another driver, device, toolchain or profile are another epoch: no change "
        "point is sought across its border. A step that clock cycles do not show is a CLOCK.";
    struct arguments arguments = {.margin = 0.02, .last = 40, .error = TB_ERROR_INIT};
    struct argp argp = {.options = rows, .parser = parse, .args_doc = "[CELL]", .doc = doc};
    int exit_code = 3;
    arguments.db = command_database();
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    if (arguments.error.code != TB_OK || show(&arguments, &exit_code, &arguments.error) != TB_OK)
        exit_code = command_fail(&arguments.error);
    return exit_code;
}
