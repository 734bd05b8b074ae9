/* perfwatch devices RESULTS... */
#include "ci/command.h"
#include "ci/devices.h"

#include <argp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_REFERENCE = 0x100, KEY_MARGIN, KEY_ALL, KEY_JSON, SHOWN = 20 };

static const struct argp_option rows[] = {
    {"reference", KEY_REFERENCE, "UUID", 0,
     "The device that the others are held against (default: the one with the most cells)", 0},
    {"margin", KEY_MARGIN, "SHARE", 0,
     "A cell that differs by more is counted (default 2%; written as in compare)", 0},
    {"all", KEY_ALL, 0, 0, "All cells, not the 20 that differ most", 0},
    {"json", KEY_JSON, "FILE", 0, "Everything as JSON (topp-bench.devices/1); - is standard output",
     0},
    {0}};

struct arguments {
    const char **paths;
    size_t path_count;
    const char *reference, *json;
    double margin;
    bool all;
    struct tb_error error;
};

static error_t parse(int key, char *value, struct argp_state *state) {
    struct arguments *arguments = state->input;
    switch (key) {
    case KEY_REFERENCE:
        arguments->reference = value;
        return 0;
    case KEY_MARGIN:
        share_parse("--margin", value, 1e-4, 100.0, &arguments->margin, &arguments->error);
        return 0;
    case KEY_ALL:
        arguments->all = true;
        return 0;
    case KEY_JSON:
        arguments->json = value;
        return 0;
    case ARGP_KEY_ARG:
        arguments->paths[arguments->path_count++] = value;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "name the RESULTS of one sweep on several devices");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void put_change(double ratio) {
    if (isnan(ratio))
        printf("%9s", "-");
    else
        printf("%+8.2f%%", 100.0 * (ratio - 1.0));
}

static void show_cells(const struct devices *devices, bool all) {
    const size_t shown = all || devices->cell_count < SHOWN ? devices->cell_count : SHOWN;
    if (!shown)
        return;
    printf("\n");
    for (size_t d = 1; d < devices->count; d++)
        printf("%9zu", d);
    printf("  cell\n");
    for (size_t i = 0; i < shown; i++) {
        const struct device_cell *cell = &devices->cells[i];
        for (size_t d = 1; d < devices->count; d++)
            put_change(cell->medians[d] / cell->medians[0]);
        printf("  %s%s%s\n", cell->name, cell->gate[0] ? "  " : "", cell->gate);
    }
    if (shown < devices->cell_count)
        printf("... %zu more cells (--all)\n", devices->cell_count - shown);
}

static void show(const struct devices *devices, const struct arguments *arguments) {
    printf("  #    cells   common    median  5%% of cells  95%% of cells  beyond %.3g%%  device\n",
           100.0 * arguments->margin);
    for (size_t d = 0; d < devices->count; d++) {
        const struct device *device = &devices->list[d];
        printf("%3zu %8zu %8zu ", d, device->cells, device->common);
        put_change(d ? device->ratio : 1.0);
        printf("    ");
        put_change(device->low);
        printf("      ");
        put_change(device->high);
        printf("%12zu  %s%s\n", device->beyond, device->name, d ? "" : " (reference)");
    }
    show_cells(devices, arguments->all);
    printf("\n%zu devices, %zu cells on more than one", devices->count, devices->cell_count);
    if (devices->gate_differs)
        printf("; in %zu of them the gate's outcome differs between devices",
               devices->gate_differs);
    printf("\n");
}

static json_t *number_or_null(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static bool put_json(const struct devices *devices, double margin, FILE *stream) {
    json_t *list = json_array(), *cells = json_array();
    for (size_t d = 0; d < devices->count; d++) {
        const struct device *device = &devices->list[d];
        json_array_append_new(
            list, json_pack("{s:s, s:I, s:I, s:o, s:o, s:o, s:I}", "device", device->name, "cells",
                            (json_int_t)device->cells, "common", (json_int_t)device->common,
                            "ratio", number_or_null(device->ratio), "ratio_p05",
                            number_or_null(device->low), "ratio_p95", number_or_null(device->high),
                            "beyond_margin", (json_int_t)device->beyond));
    }
    for (size_t i = 0; i < devices->cell_count; i++) {
        const struct device_cell *cell = &devices->cells[i];
        json_t *medians = json_array();
        for (size_t d = 0; d < devices->count; d++)
            json_array_append_new(medians, number_or_null(cell->medians[d]));
        json_array_append_new(cells,
                              json_pack("{s:s, s:o, s:o, s:o}", "name", cell->name, "medians",
                                        medians, "apart", number_or_null(cell->apart), "gate",
                                        cell->gate[0] ? json_string(cell->gate) : json_null()));
    }
    json_t *root = json_pack(
        "{s:s, s:o, s:f, s:I, s:o, s:o}", "schema", "topp-bench.devices/1", "refused",
        devices->refused[0] ? json_string(devices->refused) : json_null(), "margin", margin,
        "gate_differs", (json_int_t)devices->gate_differs, "devices", list, "cells", cells);
    const bool good = root &&
                      json_dumpf(root, stream, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) == 0 &&
                      fputc('\n', stream) != EOF;
    json_decref(root);
    return good;
}

static enum tb_status tell(const struct devices *devices, const struct arguments *arguments,
                           struct output *json, struct tb_error *error) {
    if (devices->refused[0])
        fprintf(stderr, "perfwatch: %s\n", devices->refused);
    else if (!output_is_standard(arguments->json))
        show(devices, arguments);
    if (json->stream && !put_json(devices, arguments->margin, json->stream))
        return tb_fail(error, TB_IO, "cannot write %s", arguments->json);
    if (fflush(stdout) != 0)
        return tb_fail(error, TB_IO, "cannot write to standard output");
    return TB_OK;
}

static enum tb_status run(const struct arguments *arguments, int *exit_code,
                          struct tb_error *error) {
    const struct read_options read = {.samples_later = true};
    struct results_set *sets = calloc(arguments->path_count, sizeof *sets);
    struct devices devices = {.count = 0};
    struct output json = {.path = NULL};
    enum tb_status status = sets ? output_open(arguments->json, &json, error)
                                 : tb_fail(error, TB_NO_MEMORY, "no memory for the files");
    size_t loaded = 0;
    for (; status == TB_OK && loaded < arguments->path_count; loaded++)
        status = results_set_load(arguments->paths[loaded], &read, &sets[loaded], error);
    if (status == TB_OK)
        status =
            devices_find(sets, loaded, arguments->reference, arguments->margin, &devices, error);
    if (status == TB_OK) {
        *exit_code = devices.refused[0] ? 3 : devices.gate_differs > 0;
        status = tell(&devices, arguments, &json, error);
    }
    const enum tb_status closed = output_close(&json, status == TB_OK, error);
    devices_free(&devices);
    for (size_t i = 0; sets && i < loaded; i++)
        results_set_free(&sets[i]);
    free(sets);
    return status == TB_OK ? closed : status;
}

int command_devices(int argc, char **argv) {
    static const char doc[] =
        "One sweep on several devices of one model: which device differs by how much, median ratio "
        "over the cells and cell by cell. RESULTS are as in compare; a merged run has a device for "
        "each cell, any other has one. A device is its UUID, on the CPU its host.";
    struct arguments arguments = {.margin = 0.02, .error = TB_ERROR_INIT};
    struct argp argp = {.options = rows, .parser = parse, .args_doc = "RESULTS..."};
    const size_t bytes = sizeof doc + strlen(command_exit_codes);
    char *text = malloc(bytes);
    int exit_code = 3;
    arguments.paths = calloc((size_t)argc + 1, sizeof *arguments.paths);
    if (text && arguments.paths) {
        snprintf(text, bytes, "%s%s", doc, command_exit_codes);
        argp.doc = text;
        argp_parse(&argp, argc, argv, 0, NULL, &arguments);
        struct tb_error *error = &arguments.error;
        if (error->code != TB_OK || run(&arguments, &exit_code, error) != TB_OK)
            exit_code = command_fail(error);
    }
    free(text);
    free(arguments.paths);
    return exit_code;
}
