/* The data file of each chart. */
#include "bench/plot.h"

#include "oracle/gumbel_noise.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_LANES = 14, SAMPLES_A_LANE = 1000 };

static const char *const columns[] = {
    "name",    "kind",   "kernel",       "family",       "vocab",      "batch",
    "p",       "p_text", "temperature",  "l2",           "launch",     "timed",
    "verdict", "rule",   "median_ns",    "ci_low_ns",    "ci_high_ns", "ratio_to_floor",
    "kept",    "oracle", "most_surplus", "most_missing",
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static bool same_text(const char *wanted, const json_t *cell, const char *name) {
    return !*wanted || !strcmp(wanted, plot_text(cell, name));
}

static bool same_number(const char *wanted, const json_t *cell, const char *name) {
    return !*wanted || fabs(atof(wanted) - plot_number(cell, name)) <= 1e-9 * fabs(atof(wanted));
}

static bool belongs(const struct chart *chart, const json_t *cell) {
    const bool whole_run = !*chart->family; /* surplus */
    return same_text(chart->kind, cell, "kind") && same_text(chart->family, cell, "family") &&
           (whole_run || (!strcmp(chart->l2, plot_text(cell, "l2")) &&
                          !strcmp(chart->launch, plot_text(cell, "launch")))) &&
           same_text(chart->p, cell, "p_text") &&
           same_number(chart->temperature, cell, "temperature") &&
           same_number(chart->vocab, cell, "vocab") &&
           (!*chart->base || !strcmp(chart->base, plot_text(cell, "kernel")) ||
            !strcmp(chart->fresh, plot_text(cell, "kernel")));
}

static bool write_cells(const struct plot_results *results, const struct chart *chart,
                        FILE *stream) {
    for (size_t column = 0; column < COLUMNS; column++)
        fprintf(stream, "%s%c", columns[column], column + 1 < COLUMNS ? '\t' : '\n');
    for (size_t i = 0; i < results->count; i++) {
        const json_t *cell = results->cells[i].json;
        for (size_t column = 0; belongs(chart, cell) && column < COLUMNS; column++)
            if (!plot_put_field(stream, json_object_get(cell, columns[column])) ||
                fputc(column + 1 < COLUMNS ? '\t' : '\n', stream) == EOF)
                return false;
    }
    return true;
}

static bool put_sample(FILE *stream, int lane, const struct plot_cell *cell, size_t sample) {
    json_t *relative = json_real((double)cell->relative[sample]);
    const char *kernel = plot_text(cell->json, "kernel");
    const bool good = fprintf(stream, "%d\t%s %.0f x %.0f\t%s\t0.%03zu\t", lane, kernel,
                              plot_number(cell->json, "batch"), plot_number(cell->json, "vocab"),
                              kernel, sample * 1000 / cell->samples) > 0 &&
                      plot_put_field(stream, relative) && fputc('\n', stream) != EOF;
    json_decref(relative);
    return good;
}

/* Samples of the smallest and the greatest shape of a group, a lane a cell; a lane that has more
 * than SAMPLES_A_LANE is thinned evenly. */
static bool write_samples(const struct plot_results *results, const struct chart *chart,
                          FILE *stream) {
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < results->count; i++) {
        const json_t *cell = results->cells[i].json;
        if (!belongs(chart, cell) || !results->cells[i].samples)
            continue;
        const double size = plot_number(cell, "vocab") * plot_number(cell, "batch");
        least = fmin(least, size);
        most = fmax(most, size);
    }
    fputs("lane\tlabel\tkernel\torder\trelative\n", stream);
    int lane = 0;
    for (int pass = 0; pass < (least < most ? 2 : 1); pass++)
        for (size_t i = 0; i < results->count && lane < MOST_LANES; i++) {
            const struct plot_cell *cell = &results->cells[i];
            const double size = plot_number(cell->json, "vocab") * plot_number(cell->json, "batch");
            if (!belongs(chart, cell->json) || !cell->samples || size != (pass ? most : least))
                continue;
            lane++;
            const size_t step = 1 + (cell->samples - 1) / SAMPLES_A_LANE;
            for (size_t s = 0; s < cell->samples; s += step)
                if (!put_sample(stream, lane, cell, s))
                    return false;
        }
    return true;
}

/* The word whose noise is the rank-th greatest, and of how many words. */
static struct noise_word word_of_rank(enum noise_kind kind, uint64_t rank) {
    switch (kind) {
    case NOISE_LOG: /* the upper half of the words repeats the lower half */
        return (struct noise_word){.high = 0x7FFFFFFFu - (uint32_t)rank};
    case NOISE_FP64:
        return (struct noise_word){.high = (uint32_t)(~rank >> 32), .low = (uint32_t)~rank};
    default:
        return (struct noise_word){.high = (uint32_t)rank};
    }
}

static int word_bits(enum noise_kind kind) {
    return kind == NOISE_FP64 ? 64 : kind == NOISE_MURMUR ? 32 : 31;
}

static bool put_noise(FILE *stream, enum noise_kind kind, uint64_t rank, bool greatest) {
    const double noise = noise_value(kind, word_of_rank(kind, rank));
    json_t *point = json_pack("[f, f]", noise, ldexp((double)rank + 1, -word_bits(kind)));
    bool good = point && fprintf(stream, "%s\t", noise_name(kind)) > 0;
    for (size_t i = 0; good && i < 2; i++)
        good = plot_put_field(stream, json_array_get(point, i)) && fputc('\t', stream) != EOF;
    json_decref(point);
    return good && fprintf(stream, "%d\n", greatest) > 0;
}

/* How many words share the greatest noise, less one: the noise falls with the rank. */
static uint64_t last_greatest(enum noise_kind kind) {
    const double top = noise_value(kind, word_of_rank(kind, 0));
    uint64_t low = 0, high = UINT64_C(1) << (word_bits(kind) - 1);
    while (low + 1 < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (noise_value(kind, word_of_rank(kind, middle)) == top)
            low = middle;
        else
            high = middle;
    }
    return low;
}

bool chart_write_noise(FILE *stream) {
    bool good = fputs("variant\tnoise\ttail\tgreatest\n", stream) >= 0;
    for (int kind = 0; good && kind < NOISE_COUNT; kind++) {
        const uint64_t first = last_greatest((enum noise_kind)kind);
        good = put_noise(stream, (enum noise_kind)kind, first, true);
        /* Eight points an octave, from the greatest noise to the least. */
        const double end = ldexp(1, word_bits((enum noise_kind)kind));
        for (double rank = (double)first; good;) {
            rank = fmax(rank * 1.0905, rank + 1);
            if (rank >= end)
                break;
            good = put_noise(stream, (enum noise_kind)kind, (uint64_t)rank, false);
        }
    }
    return good;
}

static bool write_chart(const struct plot_results *results, const struct chart *chart,
                        FILE *stream) {
    if (!strcmp(chart->script, "noise_tail"))
        return chart_write_noise(stream);
    if (!strcmp(chart->script, "samples"))
        return write_samples(results, chart, stream);
    return write_cells(results, chart, stream);
}

enum tb_status chart_data_write(const struct plot_results *results, const struct chart_list *list,
                                const char *dir, struct tb_error *error) {
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return tb_fail_at(error, TB_IO, dir, 0, -1, "cannot be made: %s", strerror(errno));
    for (size_t i = 0; i < list->count; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s.tsv", dir, list->charts[i].name);
        FILE *stream = fopen(path, "w");
        if (!stream)
            return tb_fail_at(error, TB_IO, path, 0, -1, "cannot be written: %s", strerror(errno));
        errno = 0;
        const bool good = write_chart(results, &list->charts[i], stream);
        if ((fclose(stream) != 0) | !good)
            return tb_fail_at(error, TB_IO, path, 0, -1, "cannot be written: %s", strerror(errno));
    }
    return TB_OK;
}
