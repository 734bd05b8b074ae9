/* The table for people: one line a cell in plan order, refused cells with the reason and no time,
 * and a last line that says whether everything was as expected. */
#include "bench/record.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char RED[] = "\033[31m", GREEN[] = "\033[32m", YELLOW[] = "\033[33m",
                  DIM[] = "\033[2m", PLAIN[] = "\033[0m";

enum { FIELD_BYTES = 32 };

static void duration(char text[FIELD_BYTES], double ns) {
    static const struct {
        double scale;
        const char *unit;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1.0, "ns"}};
    if (!isfinite(ns)) {
        snprintf(text, FIELD_BYTES, "-");
        return;
    }
    size_t unit = 0;
    while (unit < 3 && ns < units[unit].scale)
        unit++;
    double value = ns / units[unit].scale;
    int decimals = value < 10.0 ? 3 : value < 100.0 ? 2 : 1;
    snprintf(text, FIELD_BYTES, "%.*f %s", decimals, value, units[unit].unit);
}

static void number(char text[FIELD_BYTES], const char *format, double value, const char *unit) {
    if (!isfinite(value)) {
        snprintf(text, FIELD_BYTES, "-");
        return;
    }
    char digits[FIELD_BYTES / 2];
    snprintf(digits, sizeof digits, format, value);
    snprintf(text, FIELD_BYTES, "%s%s", digits, unit);
}

static const char *colour_of(const struct cell_record *record) {
    if (!record->gated)
        return DIM;
    if (!record->as_expected || record->unmeasured[0])
        return RED;
    return record->verdict == GATE_ACCEPTED ? GREEN : YELLOW;
}

/* What stands where a refused cell would have a time. */
static void put_reason(FILE *stream, const struct cell_record *record) {
    if (record->gated && record->verdict == GATE_ACCEPTED) {
        if (record->unmeasured[0])
            fprintf(stream, "  no valid samples: %s", record->unmeasured);
        return;
    }
    if (!record->gated) {
        fputs("  not reached", stream);
        return;
    }
    fprintf(stream, "  %s", record->rule[0] ? record->rule : gate_verdict_name(record->verdict));
    if (record->row >= 0) {
        fprintf(stream, " at row %lld", (long long)record->row);
        if (record->draw > 0)
            fprintf(stream, " of draw %d", (int)record->draw);
        if (record->token >= 0)
            fprintf(stream, ", token %lld", (long long)record->token);
        if (record->row_kept >= 0 && record->row_oracle >= 0)
            fprintf(stream, " (keeps %lld, oracle %lld)", (long long)record->row_kept,
                    (long long)record->row_oracle);
    }
    if (!record->as_expected)
        fputs(" - NOT EXPECTED", stream);
    else if (record->cell->expect == EXPECT_REJECT)
        fputs(" - as expected", stream);
    else if (record->excused)
        fputs(" - tolerated", stream);
    /* A rule that no row broke says too little. */
    if (record->reason[0] && (!record->rule[0] || record->row < 0))
        fprintf(stream, ": %s", record->reason);
}

static void put_row(FILE *stream, const struct cell_record *record, int name_width, bool color) {
    const struct cell_summary *summary = &record->summary;
    char median[FIELD_BYTES], interval[FIELD_BYTES], spread[FIELD_BYTES], draws[FIELD_BYTES];
    char rate[FIELD_BYTES], floor[FIELD_BYTES], kept[FIELD_BYTES] = "-", oracle[FIELD_BYTES] = "-";
    duration(median, summary->median_ns);
    double unit = 100.0 / summary->median_ns;
    number(interval, "%.1f", (summary->ci_high_ns - summary->ci_low_ns) / 2.0 * unit, "%");
    number(spread, "%.1f", (summary->p95_ns - summary->p05_ns) * unit, "%");
    double over_draws = (summary->draw_high_ns - summary->draw_low_ns) * unit;
    number(draws, "%.1f", record->draw_count > 1 ? over_draws : (double)NAN, "%");
    number(rate, "%.2f", record->bytes_per_second / 1e9, "");
    number(floor, "%.2f", record->ratio_to_floor, "x");
    bool counted = record->gated && record->cell->kind == CELL_TOPP &&
                   record->cell->topp->output != TOPP_IDS && record->verdict != GATE_UNSUPPORTED &&
                   record->verdict != GATE_TIMEOUT;
    if (counted && record->rows > 0) {
        snprintf(kept, sizeof kept, "%lld", (long long)record->kept);
        snprintf(oracle, sizeof oracle, "%lld", (long long)record->oracle);
    }
    const char *verdict = record->gated ? gate_verdict_name(record->verdict) : "-";
    bool surprise = record->gated && record->verdict == GATE_ACCEPTED && !record->as_expected;
    fprintf(stream, "%-*s  %s%-11s%s %10s %6s %7s %7s %8s %8s %9s %9s", name_width,
            record->cell->name, color ? colour_of(record) : "", verdict, color ? PLAIN : "", median,
            interval, spread, draws, rate, floor, kept, oracle);
    if (surprise)
        fputs("  accepted, but the profile expects a refusal - NOT EXPECTED", stream);
    put_reason(stream, record);
    fputc('\n', stream);
}

static void put_summary(FILE *stream, const struct run_result *result, bool color) {
    size_t accepted = result->by_verdict[GATE_ACCEPTED], refused = 0;
    for (int verdict = GATE_ACCEPTED + 1; verdict <= GATE_UNSUPPORTED; verdict++)
        refused += result->by_verdict[verdict];
    fprintf(stream, "%zu cells: %zu accepted (%zu timed), %zu refused", result->count, accepted,
            result->timed, refused);
    const char *separator = " (";
    for (int verdict = GATE_ACCEPTED + 1; verdict <= GATE_UNSUPPORTED; verdict++)
        if (result->by_verdict[verdict] > 0) {
            fprintf(stream, "%s%zu %s", separator, result->by_verdict[verdict],
                    gate_verdict_name((enum gate_verdict)verdict));
            separator = ", ";
        }
    fputs(refused ? ")" : "", stream);
    if (result->unfinished)
        fprintf(stream, ", %zu not reached", result->unfinished);
    if (result->unmeasured)
        fprintf(stream, ", %zu without valid samples", result->unmeasured);
    const char *colour = result->unexpected || result->unmeasured ? RED : GREEN;
    fprintf(stream, ". %s", color ? colour : "");
    if (result->unexpected)
        fprintf(stream, "%zu NOT as expected", result->unexpected);
    else
        fputs(result->unfinished ? "So far as expected" : "Everything as expected", stream);
    fprintf(stream, "%s.\n", color ? PLAIN : "");
}

void writer_table(const struct run_result *result, FILE *stream, bool color) {
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = c_locale ? uselocale(c_locale) : (locale_t)0;
    int name_width = 4;
    for (size_t i = 0; i < result->count; i++)
        if ((int)strlen(result->cells[i].cell->name) > name_width)
            name_width = (int)strlen(result->cells[i].cell->name);
    fprintf(stream, "%-*s  %-11s %10s %6s %7s %7s %8s %8s %9s %9s\n", name_width, "cell", "verdict",
            "median", "+-", "spread", "draws", "GB/s", "x floor", "kept", "oracle");
    for (size_t i = 0; i < result->count; i++)
        put_row(stream, &result->cells[i], name_width, color);
    put_summary(stream, result, color);
    fflush(stream);
    if (c_locale) {
        uselocale(before);
        freelocale(c_locale);
    }
}
