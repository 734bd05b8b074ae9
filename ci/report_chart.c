#include "ci/report_chart.h"

#include "bench/report_page.h"
#include "ci/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Okabe and Ito's colours, as in the other charts: before and after also differ in shape. */
#define BEFORE "#0072B2"
#define AFTER "#D55E00"
#define BETTER "#009E73"
#define NEUTRAL "#555555"

enum { WIDE = 980, LEFT = 20, RIGHT = 760, ROW = 34, HEAD = 34, FOOT = 46, MOST_NAME = 150 };

/* Even within the margin, logarithmic beyond: one cell of +90% must not press the others flat. */
struct axis {
    double margin;    /* log */
    double low, high; /* bent, see bend() */
};

static double bend(const struct axis *axis, double log_change) {
    return asinh(log_change / axis->margin);
}

static double place(const struct axis *axis, double log_change) {
    const double bent = fmin(fmax(bend(axis, log_change), axis->low), axis->high);
    return LEFT + (RIGHT - LEFT) * (bent - axis->low) / (axis->high - axis->low);
}

/* Room for every interval shown, and for twice the margin. */
static struct axis axis_of(const struct report *report, size_t rows) {
    struct axis axis = {.margin = log1p(report->options->margin)};
    const struct comparison *comparison = report->comparison;
    axis.low = bend(&axis, -2.0 * axis.margin);
    axis.high = bend(&axis, 2.0 * axis.margin);
    for (size_t i = 0, shown = 0; i < comparison->count && shown < rows; i++) {
        const struct estimate *time = &comparison->verdicts[i].time;
        if (!time->valid)
            continue;
        shown++;
        axis.low = fmin(axis.low, bend(&axis, time->low));
        axis.high = fmax(axis.high, bend(&axis, time->high));
    }
    const double room = 0.03 * (axis.high - axis.low);
    axis.low -= room;
    axis.high += room;
    return axis;
}

static void put_tick(const struct axis *axis, double percent, double bottom, FILE *stream) {
    const double x = place(axis, log1p(percent / 100.0));
    fprintf(stream,
            "<path d=\"M%.1f %d V%.1f\" stroke=\"%s\" stroke-width=\"%s\"/>"
            "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s%g%%</text>\n",
            x, HEAD, bottom, percent == 0.0 ? "#000" : "#ccc", percent == 0.0 ? "1.2" : "0.6", x,
            bottom + 16, percent > 0.0 ? "+" : "", percent);
}

/* Ticks outwards from 0, where they have room. */
static void put_ticks(const struct axis *axis, double bottom, FILE *stream) {
    static const double steps[] = {0.1, 0.2, 0.5, 1,   2,   5,    10,   20,   50,
                                   75,  90,  100, 200, 500, 1000, 2000, 5000, 10000};
    put_tick(axis, 0.0, bottom, stream);
    for (int sign = -1; sign <= 1; sign += 2) {
        double last = place(axis, 0.0);
        for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
            const double percent = sign * steps[i];
            const double change = percent > -100.0 ? log1p(percent / 100.0) : -(double)INFINITY;
            const double x = place(axis, change);
            if (fabs(x - last) < 44.0 || bend(axis, change) <= axis->low ||
                bend(axis, change) >= axis->high)
                continue;
            put_tick(axis, percent, bottom, stream);
            last = x;
        }
    }
}

static void put_axis(const struct axis *axis, double bottom, FILE *stream) {
    const double from = place(axis, -axis->margin), to = place(axis, axis->margin);
    fprintf(stream, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%.1f\" fill=\"#e6e6e6\"/>\n",
            from, HEAD, to - from, bottom - HEAD);
    put_ticks(axis, bottom, stream);
    fprintf(stream,
            "<text x=\"%d\" y=\"%.1f\">better</text><text x=\"%d\" y=\"%.1f\" "
            "text-anchor=\"end\">worse</text>\n",
            LEFT, bottom + 34, RIGHT, bottom + 34);
}

static const char *color_of(enum outcome outcome) {
    return outcome == OUTCOME_REGRESSED || outcome == OUTCOME_CORRECTNESS ? AFTER
           : outcome == OUTCOME_IMPROVED                                  ? BETTER
           : outcome == OUTCOME_CLOCK                                     ? BEFORE
                                                                          : NEUTRAL;
}

static void put_name(const char *name, double y, FILE *stream) {
    const size_t length = strlen(name);
    fprintf(stream,
            "<text x=\"%d\" y=\"%.1f\" font-size=\"11\" stroke=\"#fff\" stroke-width=\"3\" "
            "paint-order=\"stroke\">",
            LEFT, y);
    if (length > MOST_NAME)
        fputs("&#8230;", stream);
    page_text(stream, length > MOST_NAME ? name + length - MOST_NAME : name);
    fputs("</text>", stream);
}

static void put_change(const struct verdict *verdict, const struct axis *axis, double top,
                       FILE *stream) {
    const struct estimate *time = &verdict->time;
    const char *color = color_of(verdict->outcome);
    const double y = top + 24;
    char change[40], base[40], new_side[40];
    report_change(verdict, change, sizeof change);
    report_value(verdict->base, base, sizeof base);
    report_value(verdict->new_side, new_side, sizeof new_side);
    put_name(verdict->name, top + 13, stream);
    fprintf(stream,
            "<path d=\"M%.1f %.1f H%.1f\" stroke=\"%s\" stroke-width=\"2.5\"/>"
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>",
            place(axis, time->low), y, place(axis, time->high), color, place(axis, time->shift), y,
            color);
    if (verdict->cycles.valid) {
        const double x = place(axis, verdict->cycles.shift);
        fprintf(stream,
                "<path d=\"M%.1f %.1f l5 5 l-5 5 l-5 -5 z\" fill=\"none\" stroke=\"#000\"/>", x,
                y - 5);
    }
    fprintf(stream,
            "<text x=\"%d\" y=\"%.1f\" fill=\"%s\">%s %s</text>"
            "<text x=\"%d\" y=\"%.1f\">%s &#8594; %s</text>\n",
            RIGHT + 10, top + 13, color, outcome_name(verdict->outcome), change, RIGHT + 10,
            top + 28, base, new_side);
}

bool chart_changes(const struct report *report, FILE *stream) {
    const struct comparison *comparison = report->comparison;
    size_t rows = 0;
    bool cycles = false;
    for (size_t i = 0; i < comparison->count && rows < CHART_ROWS; i++) {
        rows += comparison->verdicts[i].time.valid;
        cycles = cycles || comparison->verdicts[i].cycles.valid;
    }
    if (rows == 0)
        return false;
    const struct axis axis = axis_of(report, rows);
    const double bottom = HEAD + ROW * (double)rows + 6;
    fprintf(stream,
            "<svg viewBox=\"0 0 %d %.0f\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"%d\" height=\"%.0f\" fill=\"#fff\"/>\n"
            "<text x=\"%d\" y=\"20\">Change from before to after: dot and 95%% interval%s; grey: "
            "within the margin of %.3g%%; logarithmic beyond it</text>\n",
            WIDE, bottom + FOOT, WIDE, bottom + FOOT, LEFT, cycles ? "; diamond: in cycles" : "",
            100.0 * report->options->margin);
    put_axis(&axis, bottom, stream);
    for (size_t i = 0, shown = 0; i < comparison->count && shown < rows; i++)
        if (comparison->verdicts[i].time.valid)
            put_change(&comparison->verdicts[i], &axis, HEAD + ROW * (double)shown++, stream);
    fputs("</svg>\n", stream);
    return true;
}

/* Medians of one cell's blocks on one side, in order of time. */
struct blocks {
    double *medians;
    size_t *process; /* of each block, from 0 */
    size_t count;
};

static void take_blocks(const struct sample_set *set, size_t process, double *scratch,
                        struct blocks *blocks) {
    for (size_t from = 0, at; from < set->count; from = at) {
        for (at = from; at < set->count && set->block[at] == set->block[from]; at++)
            scratch[at - from] = set->time[at];
        blocks->process[blocks->count] = process;
        blocks->medians[blocks->count++] = median_of(scratch, at - from);
    }
}

static bool find_blocks(const struct results_set *set, const char *name, struct blocks *blocks) {
    size_t samples = 0;
    struct sample_buffer buffer = {.room = 0};
    *blocks = (struct blocks){NULL, NULL, 0};
    for (size_t f = 0; f < set->count; f++) {
        const struct result_cell *cell = results_find(&set->files[f], name);
        samples += cell ? cell->samples.count : 0;
    }
    double *scratch = malloc((samples + 1) * sizeof *scratch);
    blocks->medians = malloc((samples + 1) * sizeof *blocks->medians);
    blocks->process = malloc((samples + 1) * sizeof *blocks->process);
    const bool good = scratch && blocks->medians && blocks->process;
    for (size_t f = 0; good && f < set->count; f++) {
        const struct result_cell *cell = results_find(&set->files[f], name);
        const struct sample_set *set_of =
            cell ? results_samples(&set->files[f], cell, &buffer) : NULL;
        if (set_of)
            take_blocks(set_of, f, scratch, blocks);
    }
    sample_buffer_free(&buffer);
    free(scratch);
    return good && blocks->count > 0;
}

static void blocks_free(struct blocks *blocks) {
    free(blocks->medians);
    free(blocks->process);
}

enum {
    BLOCKS_WIDE = 640,
    BLOCKS_HIGH = 150,
    BLOCKS_LEFT = 90,
    BLOCKS_TOP = 14,
    BLOCKS_FLOOR = 118
};

struct scale {
    double least, most;
};

static double height(const struct scale *scale, double value) {
    return BLOCKS_FLOOR -
           (BLOCKS_FLOOR - BLOCKS_TOP) * (value - scale->least) / (scale->most - scale->least);
}

static struct scale scale_of(const struct blocks sides[2]) {
    struct scale scale = {INFINITY, 0.0};
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < sides[side].count; i++) {
            scale.least = fmin(scale.least, sides[side].medians[i]);
            scale.most = fmax(scale.most, sides[side].medians[i]);
        }
    /* Under 2% of range the dots would draw noise. */
    const double room = fmax(0.05 * (scale.most - scale.least), 0.01 * scale.most);
    return (struct scale){scale.least - room, scale.most + room};
}

static void put_side(const struct blocks *blocks, const struct scale *scale, int side,
                     FILE *stream) {
    const double half = (BLOCKS_WIDE - BLOCKS_LEFT) / 2.0, from = BLOCKS_LEFT + half * side;
    const double step = (half - 20) / (double)blocks->count;
    const char *color = side ? AFTER : BEFORE;
    for (size_t i = 0; i < blocks->count; i++) {
        const double x = from + 10 + step * ((double)i + 0.5);
        const double y = height(scale, blocks->medians[i]);
        if (i > 0 && blocks->process[i] != blocks->process[i - 1])
            fprintf(stream, "<path d=\"M%.1f %d V%d\" stroke=\"#999\" stroke-dasharray=\"2 3\"/>",
                    x - step / 2, BLOCKS_TOP, BLOCKS_FLOOR);
        if (side)
            fprintf(stream, "<rect x=\"%.1f\" y=\"%.1f\" width=\"6\" height=\"6\" fill=\"%s\"/>",
                    x - 3, y - 3, color);
        else
            fprintf(stream, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\" fill=\"%s\"/>", x, y, color);
    }
    double *sorted = malloc((blocks->count + 1) * sizeof *sorted);
    if (sorted) {
        memcpy(sorted, blocks->medians, blocks->count * sizeof *sorted);
        const double y = height(scale, median_of(sorted, blocks->count));
        fprintf(stream, "<path d=\"M%.1f %.1f H%.1f\" stroke=\"%s\" stroke-width=\"1.5\"/>",
                from + 6, y, from + half - 6, color);
    }
    free(sorted);
    fprintf(stream, "<text x=\"%.1f\" y=\"136\" text-anchor=\"middle\">%s</text>\n",
            from + half / 2, side ? "after" : "before");
}

static void put_level(const struct verdict *verdict, const struct scale *scale, double value,
                      FILE *stream) {
    struct result_cell shown = {.median = value,
                                .higher_is_better = verdict->base->higher_is_better};
    char text[40];
    report_value(&shown, text, sizeof text);
    fprintf(stream,
            "<path d=\"M%d %.1f H%d\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" "
            "text-anchor=\"end\">%s</text>\n",
            BLOCKS_LEFT, height(scale, value), BLOCKS_WIDE, BLOCKS_LEFT - 6,
            height(scale, value) + 4, text);
}

bool chart_blocks(const struct report *report, const struct verdict *verdict, FILE *stream) {
    struct blocks sides[2];
    const bool base = find_blocks(report->base_set, verdict->name, &sides[0]);
    const bool both = find_blocks(report->new_set, verdict->name, &sides[1]) && base;
    if (both) {
        const struct scale scale = scale_of(sides);
        fprintf(stream,
                "<svg viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"11\">"
                "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
                BLOCKS_WIDE, BLOCKS_HIGH, BLOCKS_WIDE, BLOCKS_HIGH);
        for (int i = 0; i < 3; i++)
            put_level(verdict, &scale, scale.least + (scale.most - scale.least) * (0.1 + 0.4 * i),
                      stream);
        for (int side = 0; side < 2; side++)
            put_side(&sides[side], &scale, side, stream);
        fputs("</svg>", stream);
    }
    blocks_free(&sides[0]);
    blocks_free(&sides[1]);
    return both;
}
