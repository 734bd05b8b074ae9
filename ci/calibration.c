#include "ci/calibration.h"

#include "ci/json_text.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *left, const void *right) {
    return strcmp(((const struct calibration_cell *)left)->name,
                  ((const struct calibration_cell *)right)->name);
}

void calibration_free(struct calibration *calibration) {
    for (size_t i = 0; i < calibration->count; i++)
        free(calibration->cells[i].name);
    free(calibration->cells);
    memset(calibration, 0, sizeof *calibration);
}

static enum tb_status read_cells(const char *file, const json_t *cells,
                                 struct calibration *calibration, struct tb_error *error) {
    size_t index, count = json_array_size(cells);
    const json_t *cell;
    calibration->cells = calloc(count + 1, sizeof *calibration->cells);
    if (!calibration->cells)
        return tb_fail(error, TB_NO_MEMORY, "no memory for %s", file);
    json_array_foreach((json_t *)cells, index, cell) {
        const char *name = json_string_value(json_object_get(cell, "name"));
        double sigma = json_number_value(json_object_get(cell, "process_sigma"));
        if (!name || !(sigma > 0.0) || !(sigma < 1.0))
            return tb_fail_at(error, TB_UNREADABLE, file, 0, -1,
                              "cells[%zu]: needs a name and a process_sigma above 0 and below 1",
                              index);
        char *copy = strdup(name);
        if (!copy)
            return tb_fail(error, TB_NO_MEMORY, "no memory for %s", file);
        calibration->cells[calibration->count++] = (struct calibration_cell){copy, sigma};
    }
    qsort(calibration->cells, calibration->count, sizeof *calibration->cells, by_name);
    return TB_OK;
}

enum tb_status calibration_load(const char *file, struct calibration *calibration,
                                struct tb_error *error) {
    struct json_text text;
    memset(calibration, 0, sizeof *calibration);
    enum tb_status status = json_text_open(file, &text, error);
    if (status != TB_OK)
        return status;
    json_t *root = json_text_parse(&text, 0, text.length, error);
    json_text_close(&text);
    if (!root)
        return TB_UNREADABLE;
    const char *schema = json_string_value(json_object_get(root, "schema"));
    calibration->sigma = json_number_value(json_object_get(root, "process_sigma"));
    if (!schema || strcmp(schema, "topp-bench.calibration/1") != 0)
        status = tb_fail_at(error, TB_UNREADABLE, file, 0, -1,
                            "is no topp-bench.calibration/1: perfwatch selftest --out writes one");
    else if (!(calibration->sigma > 0.0) || !(calibration->sigma < 1.0))
        status = tb_fail_at(error, TB_UNREADABLE, file, 0, -1,
                            "`process_sigma` must be a number above 0 and below 1");
    else
        status = read_cells(file, json_object_get(root, "cells"), calibration, error);
    json_decref(root);
    if (status != TB_OK)
        calibration_free(calibration);
    return status;
}

double calibration_sigma(const struct calibration *calibration, const char *name) {
    if (!calibration)
        return PROCESS_SIGMA;
    struct calibration_cell key = {(char *)name, 0.0};
    const struct calibration_cell *found =
        bsearch(&key, calibration->cells, calibration->count, sizeof key, by_name);
    return found ? found->sigma : calibration->sigma;
}
