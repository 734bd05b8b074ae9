/* perfwatch selftest [RESULTS...]. */
#include "ci/command.h"
#include "ci/selftest.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_SYNTHETIC = 0x100,
    KEY_FULL,
    KEY_RUNS,
    KEY_CELLS,
    KEY_SEED,
    KEY_MARGIN,
    KEY_FDR,
    KEY_CALIBRATION,
    KEY_OUT,
};

/* Targets: A/A runs with an alarm; runs in which a slowdown of 3% is caught. */
#define ALARM_TARGET 0.01
#define POWER_TARGET 0.95
enum { POWER_EFFECT = 2 };

static const struct argp_option rows[] = {
    {"synthetic", KEY_SYNTHETIC, 0, 0,
     "Made-up cells too: 0.5% noise within and 0.3% between processes, and one disturbance each",
     0},
    {"full", KEY_FULL, 0, 0, "As many runs as firm figures need (minutes)", 0},
    {"runs", KEY_RUNS, "N", 0, "Runs a figure (default 100, with --full 1000)", 0},
    {"cells", KEY_CELLS, "N", 0, "Cells of a made-up run (default 200)", 0},
    {"seed", KEY_SEED, "N", 0, "Seed of all random choices (default 1)", 0},
    {"margin", KEY_MARGIN, "SHARE", 0, "As in compare", 0},
    {"fdr", KEY_FDR, "SHARE", 0, "As in compare", 0},
    {"calibration", KEY_CALIBRATION, "FILE", 0,
     "Test this calibration instead of the one that the recorded files give", 0},
    {"out", KEY_OUT, "FILE", 0,
     "Write the calibration and all figures (topp-bench.calibration/1), for compare --calibration; "
     "- is standard output, and what is printed goes to standard error",
     0},
    {0}};

struct arguments {
    const char **paths;
    size_t path_count;
    bool synthetic, full;
    long runs, cells, seed;
    const char *calibration, *out;
    struct compare_options options;
    struct tb_error error;
};

static error_t parse(int key, char *value, struct argp_state *state) {
    struct arguments *arguments = state->input;
    struct tb_error *error = &arguments->error;
    switch (key) {
    case KEY_SYNTHETIC:
        arguments->synthetic = true;
        break;
    case KEY_FULL:
        arguments->full = true;
        break;
    case KEY_RUNS:
        whole_parse("--runs", value, 1, 1000000, &arguments->runs, error);
        break;
    case KEY_CELLS:
        whole_parse("--cells", value, 1, 100000, &arguments->cells, error);
        break;
    case KEY_SEED:
        whole_parse("--seed", value, 0, 1000000000, &arguments->seed, error);
        break;
    case KEY_MARGIN:
        share_parse("--margin", value, 1e-4, 100.0, &arguments->options.margin, error);
        break;
    case KEY_FDR:
        share_parse("--fdr", value, 1e-9, 0.5, &arguments->options.fdr, error);
        break;
    case KEY_CALIBRATION:
        arguments->calibration = value;
        break;
    case KEY_OUT:
        arguments->out = value;
        break;
    case ARGP_KEY_ARG: {
        const char **grown =
            realloc(arguments->paths, (arguments->path_count + 1) * sizeof *arguments->paths);
        if (!grown)
            return ENOMEM;
        arguments->paths = grown;
        arguments->paths[arguments->path_count++] = value;
        break;
    }
    case ARGP_KEY_END:
        if (arguments->path_count == 0 && !arguments->synthetic)
            argp_error(state,
                       "needs RESULTS (several processes of one sweep), --synthetic, or both");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* "97.0% (97/100)" */
static const char *rate_text(struct rate rate, char *text, size_t text_bytes) {
    if (!rate.trials)
        snprintf(text, text_bytes, "-");
    else
        snprintf(text, text_bytes, "%.1f%%", 100.0 * rate_of(rate));
    return text;
}

static bool print_synthetic(const struct arguments *arguments,
                            const struct synthetic_result *results, FILE *stream) {
    char text[6][32];
    bool good = true;
    fprintf(stream,
            "made-up runs: %ld of %ld cells a kind, 5 blocks of 16 samples; noise 0.5%% within, "
            "0.3%% between processes\n",
            arguments->runs, arguments->cells);
    fprintf(stream, "%-24s %12s   caught at %5s %7s %7s %7s %7s\n", "disturbance", "false alarms",
            "1%", "2%", "3%", "5%", "10%");
    for (int k = 0; k < NOISE_COUNT; k++) {
        const struct synthetic_result *result = &results[k];
        for (int e = 0; e < EFFECTS; e++)
            rate_text(result->caught[e], text[e], sizeof text[e]);
        bool missed = rate_above(result->alarms, ALARM_TARGET) ||
                      rate_below(result->caught[POWER_EFFECT], POWER_TARGET);
        fprintf(stream, "%-24s %12s   %15s %7s %7s %7s %7s%s\n", noise_name(result->kind),
                rate_text(result->alarms, text[5], sizeof text[5]), text[0], text[1], text[2],
                text[3], text[4], missed ? "   MISSES ITS TARGET" : "");
        good = good && !missed;
    }
    return good;
}

static bool print_recorded(const struct recorded_result *result, FILE *stream) {
    char text[6][32];
    struct rate power = {0, 0};
    if (result->halves)
        fprintf(stream,
                "\nrecorded: one process, its odd blocks against its even ones. How processes "
                "differ cannot be seen from it: record several\n");
    else
        fprintf(stream,
                "\nrecorded: %zu processes, %zu cells; a typical cell differs by %.2f%% between "
                "processes\n",
                result->processes, result->count, 100.0 * result->sigma);
    fprintf(stream,
            "false alarms: %s of %zu pairs as recorded (with the default noise of %.1f%%: %s)",
            rate_text(result->alarms, text[0], sizeof text[0]), result->alarms.trials,
            100.0 * PROCESS_SIGMA, rate_text(result->alarms_default, text[1], sizeof text[1]));
    if (result->alarms_wide.trials)
        fprintf(stream, ", %s of %zu runs of %zu cells from random pairs",
                rate_text(result->alarms_wide, text[2], sizeof text[2]), result->alarms_wide.trials,
                result->wide_cells);
    fprintf(stream, "\n%8s %8s %8s   caught at %5s %7s %7s %7s %7s  smallest  cell\n", "within",
            "between", "cycles", "1%", "2%", "3%", "5%", "10%");
    for (size_t c = 0; c < result->count; c++) {
        const struct recorded_cell *cell = &result->cells[c];
        char cycles[32] = "-";
        for (int e = 0; e < EFFECTS; e++)
            rate_text(cell->caught[e], text[e], sizeof text[e]);
        if (!isnan(cell->between_cycles))
            snprintf(cycles, sizeof cycles, "%.2f%%", 100.0 * cell->between_cycles);
        snprintf(text[5], sizeof text[5], isnan(cell->between) ? "-" : "%.2f%%",
                 100.0 * cell->between);
        fprintf(stream, "%7.2f%% %8s %8s   %15s %7s %7s %7s %7s  %7.1f%%  %s\n",
                100.0 * cell->within, text[5], cycles, text[0], text[1], text[2], text[3], text[4],
                100.0 * cell->smallest, cell->name);
        power.hits += cell->caught[POWER_EFFECT].hits;
        power.trials += cell->caught[POWER_EFFECT].trials;
    }
    fprintf(stream, "a slowdown of 3%% in one cell: caught in %s of %zu trials\n",
            rate_text(power, text[0], sizeof text[0]), power.trials);
    return result->halves || !(rate_above(result->alarms, ALARM_TARGET) ||
                               rate_above(result->alarms_wide, ALARM_TARGET));
}

static json_t *number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *rate_json(struct rate rate) {
    return json_pack("{s:I,s:I}", "hits", (json_int_t)rate.hits, "trials", (json_int_t)rate.trials);
}

static json_t *caught_json(const struct rate *caught) {
    json_t *json = json_object();
    for (int e = 0; e < EFFECTS; e++) {
        char key[16];
        snprintf(key, sizeof key, "%.0f%%", 100.0 * selftest_effects[e]);
        json_object_set_new(json, key, rate_json(caught[e]));
    }
    return json;
}

static json_t *cells_json(const struct recorded_result *recorded) {
    json_t *cells = json_array();
    for (size_t c = 0; c < recorded->count; c++) {
        const struct recorded_cell *cell = &recorded->cells[c];
        json_t *json = json_object();
        json_object_set_new(json, "name", json_string(cell->name));
        json_object_set_new(json, "process_sigma", json_real(cell->sigma));
        json_object_set_new(json, "within", number(cell->within));
        json_object_set_new(json, "between", number(cell->between));
        json_object_set_new(json, "between_cycles", number(cell->between_cycles));
        json_object_set_new(json, "smallest", number(cell->smallest));
        json_object_set_new(json, "caught", caught_json(cell->caught));
        json_array_append_new(cells, json);
    }
    return cells;
}

static bool write_calibration(FILE *stream, const struct arguments *arguments,
                              const struct synthetic_result *synthetic,
                              const struct recorded_result *recorded) {
    json_t *json = json_object();
    json_object_set_new(json, "schema", json_string("topp-bench.calibration/1"));
    json_object_set_new(json, "margin", json_real(arguments->options.margin));
    json_object_set_new(json, "false_discovery_rate", json_real(arguments->options.fdr));
    json_object_set_new(json, "processes", json_integer((json_int_t)recorded->processes));
    json_object_set_new(json, "process_sigma",
                        json_real(recorded->count ? recorded->sigma : PROCESS_SIGMA));
    json_object_set_new(json, "false_alarms", rate_json(recorded->alarms));
    json_object_set_new(json, "false_alarms_default_noise", rate_json(recorded->alarms_default));
    json_object_set_new(json, "false_alarms_wide", rate_json(recorded->alarms_wide));
    json_object_set_new(json, "wide_cells", json_integer((json_int_t)recorded->wide_cells));
    json_object_set_new(json, "cells", cells_json(recorded));
    if (arguments->synthetic) {
        json_t *kinds = json_array();
        for (int k = 0; k < NOISE_COUNT; k++) {
            json_t *kind = json_object();
            json_object_set_new(kind, "disturbance", json_string(noise_name(synthetic[k].kind)));
            json_object_set_new(kind, "false_alarms", rate_json(synthetic[k].alarms));
            json_object_set_new(kind, "caught", caught_json(synthetic[k].caught));
            json_array_append_new(kinds, kind);
        }
        json_object_set_new(json, "synthetic", kinds);
    }
    bool good = json_dumpf(json, stream, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) == 0 &&
                fputc('\n', stream) != EOF;
    json_decref(json);
    return good;
}

/* All paths' files as one set of processes. */
static enum tb_status load_all(const struct arguments *arguments, struct results_set *all,
                               struct tb_error *error) {
    *all = (struct results_set){.name = strdup(arguments->paths[0])};
    for (size_t i = 0; i < arguments->path_count; i++) {
        struct results_set set;
        enum tb_status status = results_set_load(arguments->paths[i], NULL, &set, error);
        if (status != TB_OK)
            return status;
        struct results *grown = realloc(all->files, (all->count + set.count) * sizeof *all->files);
        if (!grown) {
            results_set_free(&set);
            return tb_fail(error, TB_NO_MEMORY, "no memory for the files");
        }
        memcpy(grown + all->count, set.files, set.count * sizeof *grown);
        all->files = grown;
        all->count += set.count;
        free(set.files);
        free(set.name);
    }
    return TB_OK;
}

static enum tb_status run_recorded(struct arguments *arguments, struct results_set *set,
                                   struct recorded_result *recorded, struct tb_error *error) {
    struct recorded_plan plan = {.pairs = arguments->full ? 0 : 100,
                                 .wide_runs = (size_t)arguments->runs,
                                 .wide_cells = 200,
                                 .plants = arguments->full ? 200 : 20,
                                 .most_judged = arguments->full ? 100000000 : 4000000,
                                 .seed = (uint64_t)arguments->seed};
    enum tb_status status = load_all(arguments, set, error);
    return status == TB_OK ? selftest_recorded(set, &plan, &arguments->options, recorded, error)
                           : status;
}

static enum tb_status run(struct arguments *arguments, int *exit_code, struct tb_error *error) {
    struct calibration calibration = {0};
    struct synthetic_result synthetic[NOISE_COUNT] = {{0}};
    struct recorded_result recorded = {0};
    struct results_set set = {0};
    struct output out;
    FILE *shown = output_is_standard(arguments->out) ? stderr : stdout;
    bool good = true;
    enum tb_status status = output_open(arguments->out, &out, error);
    if (status == TB_OK && arguments->calibration) {
        status = calibration_load(arguments->calibration, &calibration, error);
        arguments->options.calibration = &calibration;
    }
    if (status == TB_OK && arguments->synthetic) {
        struct synthetic_plan plan = {
            (size_t)arguments->runs,  (size_t)arguments->cells, 0.005, 0.003, 5, 16,
            (uint64_t)arguments->seed};
        if (!selftest_synthetic(&plan, &arguments->options, synthetic))
            status = tb_fail(error, TB_NO_MEMORY, "no memory for made-up cells");
        else
            good = print_synthetic(arguments, synthetic, shown);
    }
    if (status == TB_OK && arguments->path_count)
        status = run_recorded(arguments, &set, &recorded, error);
    if (status == TB_OK && arguments->path_count)
        good = print_recorded(&recorded, shown) && good;
    if (status == TB_OK && out.stream &&
        !write_calibration(out.stream, arguments, synthetic, &recorded))
        status = tb_fail_at(error, TB_IO, arguments->out, 0, -1, "cannot be written");
    enum tb_status closed = output_close(&out, status == TB_OK, error);
    recorded_result_free(&recorded);
    results_set_free(&set);
    calibration_free(&calibration);
    *exit_code = good ? 0 : 1;
    return status == TB_OK ? closed : status;
}

int command_selftest(int argc, char **argv) {
    static const char doc[] =
        "Measures perfwatch itself: its false alarms and what it catches. RESULTS are several "
        "processes of one sweep of one binary (files or folders); every regression found between "
        "two of them is false. Exit code 1 when a target is refuted: at most 1% of runs with a "
        "false alarm, a slowdown of 3% in one cell caught in 95% of made-up runs.";
    struct arguments arguments = {.cells = 200, .seed = 1, .error = TB_ERROR_INIT};
    struct argp argp = {.options = rows, .parser = parse, .args_doc = "[RESULTS...]", .doc = doc};
    struct tb_error *error = &arguments.error;
    int exit_code = 3;
    compare_defaults(&arguments.options);
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    if (!arguments.runs)
        arguments.runs = arguments.full ? 1000 : 100;
    if (error->code != TB_OK || run(&arguments, &exit_code, error) != TB_OK)
        exit_code = command_fail(error);
    free(arguments.paths);
    return exit_code;
}
