/* results.tsv: a header line and one row a cell; every column is the member of that name of the
 * cell in results.json. NA where there is nothing. */
#include "bench/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const columns[] = {
    "name",
    "kind",
    "kernel",
    "contract",
    "family",
    "statistic",
    "vocab",
    "batch",
    "stride",
    "p",
    "p_text",
    "temperature",
    "seed",
    "draws",
    "device",
    "l2",
    "launch",
    "timed",
    "expect",
    "verdict",
    "rule",
    "excused",
    "as_expected",
    "rows",
    "rows_failed",
    "rows_equal",
    "kept",
    "oracle",
    "most_surplus",
    "most_missing",
    "surplus_mass",
    "missing_mass",
    "blocks",
    "sample_count",
    "median_ns",
    "ci_low_ns",
    "ci_high_ns",
    "p05_ns",
    "p95_ns",
    "draw_low_ns",
    "draw_high_ns",
    "busy_ns",
    "cycles",
    "sm_mhz",
    "events_ns",
    "bytes_moved",
    "bytes_per_second",
    "ratio_to_floor",
    "samples_sha256",
    "unmeasured",
    "output",
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

/* A field never holds a tab or a line break. */
static bool put_text(FILE *stream, const char *text) {
    for (; *text; text++)
        if (fputc(*text == '\t' || *text == '\n' || *text == '\r' ? ' ' : *text, stream) == EOF)
            return false;
    return true;
}

static bool put_field(FILE *stream, const json_t *value) {
    if (!value || json_is_null(value))
        return fputs("NA", stream) >= 0;
    if (json_is_string(value))
        return put_text(stream, json_string_value(value));
    /* jansson prints numbers with a point whatever the locale is. */
    return json_dumpf(value, stream, JSON_ENCODE_ANY | JSON_REAL_PRECISION(10)) == 0;
}

enum tb_status writer_tsv(const struct run_result *result, FILE *stream, struct tb_error *error) {
    bool good = true;
    errno = 0;
    for (size_t column = 0; good && column < COLUMNS; column++)
        good = fputs(columns[column], stream) >= 0 &&
               fputc(column + 1 < COLUMNS ? '\t' : '\n', stream) != EOF;
    for (size_t i = 0; good && i < result->count; i++) {
        json_t *cell = record_to_json(&result->cells[i]);
        for (size_t column = 0; good && column < COLUMNS; column++)
            good = put_field(stream, json_object_get(cell, columns[column])) &&
                   fputc(column + 1 < COLUMNS ? '\t' : '\n', stream) != EOF;
        json_decref(cell);
    }
    if (!good || fflush(stream) != 0)
        return tb_fail(error, TB_IO, "cannot write the table of results: %s", strerror(errno));
    return TB_OK;
}
