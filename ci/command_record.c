/* perfwatch record, import and export: into the history and out of it. */
#include "ci/command.h"
#include "ci/history.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_DB = 0x100, KEY_REPLACE, KEY_DATE, KEY_COMMIT, KEY_UNFROZEN, KEY_METRIC, KEY_OUT };

#define DB_HELP "The history's SQLite file (default: $PERFWATCH_DB, else perfwatch.db)"

const char *command_database(void) {
    const char *file = getenv("PERFWATCH_DB");
    return file && file[0] ? file : "perfwatch.db";
}

static const struct argp_option record_rows[] = {
    {"db", KEY_DB, "FILE", 0, DB_HELP, 0},
    {"replace", KEY_REPLACE, 0, 0, "Put a run in the place of one with its id and other content",
     0},
    {"date", KEY_DATE, "DATE", 0, "When it was measured, in place of what the file says", 0},
    {"commit", KEY_COMMIT, "ID", 0, "What was measured, in place of what the file says", 0},
    {"metric", KEY_METRIC, "NAME", 0, "Google Benchmark's files: as in compare", 0},
    {"allow-unfrozen", KEY_UNFROZEN, 0, 0, "Record results that --seed or --input made unfrozen",
     0},
    {0}};

struct arguments {
    const char **paths;
    size_t path_count;
    const char *db, *metric, *out;
    bool unfrozen;
    struct record_options options;
    struct tb_error error;
};

static error_t parse_record(int key, char *value, struct argp_state *state) {
    struct arguments *arguments = state->input;
    switch (key) {
    case KEY_DB:
        arguments->db = value;
        return 0;
    case KEY_REPLACE:
        arguments->options.replace = true;
        return 0;
    case KEY_DATE:
        arguments->options.date = value;
        return 0;
    case KEY_COMMIT:
        arguments->options.commit = value;
        return 0;
    case KEY_METRIC:
        arguments->metric = value;
        return 0;
    case KEY_UNFROZEN:
        arguments->unfrozen = true;
        return 0;
    case ARGP_KEY_ARG: {
        const char **grown =
            realloc(arguments->paths, (arguments->path_count + 1) * sizeof *arguments->paths);
        if (!grown)
            return ENOMEM;
        arguments->paths = grown;
        arguments->paths[arguments->path_count++] = value;
        return 0;
    }
    case ARGP_KEY_END:
        if (arguments->path_count == 0)
            argp_error(state, "needs RESULTS: files or folders");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void tell_missing(void *context, const char *name) {
    size_t *count = context;
    if ((*count)++ < 20)
        fprintf(stderr, "perfwatch: missing: %s was in the run before\n", name);
}

static enum tb_status record_set(struct history *history, const struct arguments *arguments,
                                 const struct results_set *set, struct tb_error *error) {
    static const char *const words[] = {"recorded", "already recorded", "replaced"};
    enum tb_status status = TB_OK;
    for (size_t i = 0; status == TB_OK && i < set->count; i++) {
        const struct results *results = &set->files[i];
        enum record_outcome outcome;
        size_t missing = 0;
        if (results->unfrozen && !arguments->unfrozen)
            return tb_fail_at(error, TB_UNAVAILABLE, results->file, 0, -1,
                              "is unfrozen, and would stand among runs of the profile as it is: "
                              "--allow-unfrozen records it all the same");
        status = history_record(history, results, &arguments->options, tell_missing, &missing,
                                &outcome, error);
        if (status != TB_OK)
            break;
        if (missing > 20)
            fprintf(stderr, "perfwatch: missing: %zu cells more\n", missing - 20);
        printf("%s %.12s: %zu cells, %zu missing, from %s\n", words[outcome], results->id,
               results->count, missing, results->file);
    }
    return status;
}

static enum tb_status import_export(struct history *history, const struct arguments *arguments,
                                    const char *file, struct tb_error *error) {
    struct import_counts counts;
    const enum tb_status status =
        history_import(history, file, arguments->options.replace, &counts, error);
    if (status == TB_OK)
        printf("imported %zu runs, %zu were there already, from %s\n", counts.runs, counts.known,
               file);
    return status;
}

/* Of an export everything is as it was recorded: nothing of it is said anew. */
static enum tb_status check_export(const struct arguments *arguments, const char *file,
                                   struct tb_error *error) {
    if (arguments->options.date || arguments->options.commit || arguments->metric)
        return tb_fail_at(error, TB_USAGE, file, 0, -1,
                          "is an exported history, whose runs have their date, commit and metric: "
                          "leave --date, --commit and --metric out");
    return history_import_check(file, error);
}

/* All files are read before the history is touched: one that cannot be read leaves it as it is. */
static enum tb_status record(const struct arguments *arguments, struct tb_error *error) {
    struct results_set *sets = calloc(arguments->path_count, sizeof *sets);
    struct history history = {0};
    struct read_options read = {.metric = arguments->metric, .samples_later = true};
    enum tb_status status =
        sets ? TB_OK : tb_fail(error, TB_NO_MEMORY, "no memory for the file list");
    for (size_t i = 0; status == TB_OK && i < arguments->path_count; i++)
        status = history_is_export(arguments->paths[i])
                     ? check_export(arguments, arguments->paths[i], error)
                     : results_set_load(arguments->paths[i], &read, &sets[i], error);
    if (status == TB_OK)
        status = history_open(arguments->db, true, &history, error);
    for (size_t i = 0; status == TB_OK && i < arguments->path_count; i++)
        status = sets[i].count ? record_set(&history, arguments, &sets[i], error)
                               : import_export(&history, arguments, arguments->paths[i], error);
    history_close(&history);
    for (size_t i = 0; sets && i < arguments->path_count; i++)
        results_set_free(&sets[i]);
    free(sets);
    return status;
}

int command_record(int argc, char **argv) {
    static const char doc[] =
        "Puts results of bench_topp, Google Benchmark's JSON, or a history that perfwatch export "
        "wrote into the history. The same run again changes nothing. Cells that the run before had "
        "and this one has not are named.";
    struct arguments arguments = {.db = command_database(), .error = TB_ERROR_INIT};
    struct argp argp = {
        .options = record_rows, .parser = parse_record, .args_doc = "RESULTS...", .doc = doc};
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    int exit_code = 0;
    if (record(&arguments, &arguments.error) != TB_OK)
        exit_code = command_fail(&arguments.error);
    free(arguments.paths);
    return exit_code;
}

static const struct argp_option export_rows[] = {
    {"db", KEY_DB, "FILE", 0, DB_HELP, 0},
    {"out", KEY_OUT, "FILE", 0, "Where to (default: standard output)", 0},
    {0}};

static error_t parse_export(int key, char *value, struct argp_state *state) {
    struct arguments *arguments = state->input;
    switch (key) {
    case KEY_DB:
        arguments->db = value;
        return 0;
    case KEY_OUT:
        arguments->out = value;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int command_export(int argc, char **argv) {
    static const char doc[] = "Writes the whole history as JSON (topp-bench.history/1).";
    struct arguments arguments = {.db = command_database(), .out = "-", .error = TB_ERROR_INIT};
    struct argp argp = {.options = export_rows, .parser = parse_export, .doc = doc};
    struct tb_error *error = &arguments.error;
    struct history history = {0};
    struct output out = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    enum tb_status status = history_open(arguments.db, false, &history, error);
    if (status == TB_OK)
        status = output_open(arguments.out, &out, error);
    if (status == TB_OK)
        status = history_export(&history, out.stream, error);
    enum tb_status closed = output_close(&out, status == TB_OK, error);
    history_close(&history);
    return status == TB_OK && closed == TB_OK ? 0 : command_fail(error);
}
