/* results.json as charts and the report page read it: cells without what they do not need, samples
 * packed small, so that thousands of cells fit. Reads files only; no kernel, no device. */
#ifndef TOPP_BENCH_PLOT_SOURCE_H
#define TOPP_BENCH_PLOT_SOURCE_H

#include "oracle/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct plot_cell {
    json_t *json;    /* the cell without its samples and evidence; owned */
    float *relative; /* [samples]: time over the median of its draw, in order of time; owned */
    size_t samples;
};

struct plot_results {
    char file[512]; /* the results.json that was read */
    char dir[512];  /* its folder, without a slash at the end */
    json_t *run;    /* owned, as summary */
    json_t *summary;
    struct plot_cell *cells; /* [count], in the file's order; owned */
    size_t count;
};

/* path: results.json, or the folder that holds it. A file that is not whole, or of another schema:
 * TB_UNREADABLE with file and line. Release with plot_results_free, also after an error. */
enum tb_status plot_results_read(const char *path, struct plot_results *results,
                                 struct tb_error *error);
void plot_results_free(struct plot_results *results);

/* Members of a cell: "" and NAN for what is null or absent. */
const char *plot_text(const json_t *object, const char *name);
double plot_number(const json_t *object, const char *name);

/* "model, 2025-01-31 12:34 UTC, profile NAME": what stands under every chart. */
void plot_footer(const struct plot_results *results, char *text, size_t bytes);

/* A JSON value as a field of a TSV file: NA for null; text without tabs and line breaks. The
 * locale plays no part. */
bool plot_put_field(FILE *stream, const json_t *value);

#endif
