#include "ci/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void report_value(const struct result_cell *cell, char *text, size_t text_bytes) {
    static const char *const times[] = {"ns", "us", "ms", "s"};
    static const char *const rates[] = {"/s", " k/s", " M/s", " G/s", " T/s"};
    if (!cell || !(cell->median >= 0.0)) {
        snprintf(text, text_bytes, "-");
        return;
    }
    double value = cell->median;
    int step = 0, last = cell->higher_is_better ? 4 : 3;
    for (; value >= 1000.0 && step < last; step++)
        value /= 1000.0;
    int decimals = value >= 100.0 ? 1 : value >= 10.0 ? 2 : 3;
    if (cell->higher_is_better)
        snprintf(text, text_bytes, "%.*f%s", decimals, value, rates[step]);
    else
        snprintf(text, text_bytes, "%.*f %s", decimals, value, times[step]);
}

static double own_sign(const struct verdict *verdict) {
    return verdict->base && verdict->base->higher_is_better ? -1.0 : 1.0;
}

void report_change(const struct verdict *verdict, char *text, size_t text_bytes) {
    if (isnan(verdict->ratio))
        snprintf(text, text_bytes, "-");
    else
        snprintf(text, text_bytes, "%+.2f%%", 100.0 * (verdict->ratio - 1.0));
}

void report_interval(const struct verdict *verdict, char *text, size_t text_bytes) {
    const struct estimate *time = &verdict->time;
    if (!time->valid) {
        snprintf(text, text_bytes, "-");
        return;
    }
    double sign = own_sign(verdict), low = expm1(sign * time->low), high = expm1(sign * time->high);
    snprintf(text, text_bytes, "%+.2f%% .. %+.2f%%", 100.0 * fmin(low, high),
             100.0 * fmax(low, high));
}

void report_cycles(const struct verdict *verdict, char *text, size_t text_bytes) {
    if (!verdict->cycles.valid)
        snprintf(text, text_bytes, "-");
    else
        snprintf(text, text_bytes, "%+.2f%%", 100.0 * expm1(verdict->cycles.shift));
}

void report_sentence(const struct verdict *verdict, char *text, size_t text_bytes) {
    char base[40], new_side[40], change[40], interval[64], cycles[40];
    if (!verdict->time.valid) {
        snprintf(text, text_bytes, "%s",
                 verdict->reason[0]                    ? verdict->reason
                 : verdict->outcome == OUTCOME_MISSING ? "in BASE, not in NEW"
                 : verdict->outcome == OUTCOME_NEW     ? "in NEW, not in BASE"
                                                       : "");
        return;
    }
    report_value(verdict->base, base, sizeof base);
    report_value(verdict->new_side, new_side, sizeof new_side);
    report_change(verdict, change, sizeof change);
    report_interval(verdict, interval, sizeof interval);
    report_cycles(verdict, cycles, sizeof cycles);
    snprintf(text, text_bytes, "%s (95%%: %s), %s -> %s%s%s%s%s", change, interval, base, new_side,
             verdict->cycles.valid ? ", cycles " : "", verdict->cycles.valid ? cycles : "",
             verdict->reason[0] ? "; " : "", verdict->reason);
}

const char *report_cause(const struct comparison *comparison) {
    if (!comparison->sources_known)
        return "";
    return comparison->same_sources
               ? "the sources are the same on both sides: what differs is the environment, not code"
               : "the sources differ: code may be the cause";
}

static const char *whole_outcome(const struct comparison *comparison) {
    static const enum outcome failing[] = {OUTCOME_CORRECTNESS, OUTCOME_REGRESSED,
                                           OUTCOME_INCOMPARABLE, OUTCOME_MISSING};
    if (comparison->exit_code == 0)
        return "no regression";
    if (comparison->refused[0] && comparison->exit_code == 3)
        return "not comparable";
    for (size_t i = 0; i < sizeof failing / sizeof failing[0]; i++)
        for (size_t v = 0; v < comparison->count; v++)
            if (comparison->verdicts[v].outcome == failing[i] && !comparison->verdicts[v].excused)
                return failing[i] == OUTCOME_CORRECTNESS ? "correctness changed"
                                                         : outcome_name(failing[i]);
    return "undecided";
}

void report_headline(const struct report *report, char *text, size_t text_bytes) {
    const struct comparison *comparison = report->comparison;
    size_t used = (size_t)snprintf(text, text_bytes, "%s", whole_outcome(comparison));
    if (comparison->refused[0] && used < text_bytes)
        used += (size_t)snprintf(text + used, text_bytes - used, ": %s", comparison->refused);
    else if (used < text_bytes)
        used +=
            (size_t)snprintf(text + used, text_bytes - used, ": %zu cells, %zu compared in time",
                             comparison->count, comparison->judged);
    for (int outcome = 0; outcome < OUTCOME_COUNT && used < text_bytes; outcome++)
        if (comparison->by_outcome[outcome])
            used += (size_t)snprintf(text + used, text_bytes - used, ", %zu %s",
                                     comparison->by_outcome[outcome],
                                     outcome_name((enum outcome)outcome));
}

enum { COLUMNS = 7, UNDECIDED_ROWS = 10 };
static const char *const heads[COLUMNS] = {"outcome", "change", "95% interval", "base",
                                           "new",     "cycles", "cell"};

struct line {
    char text[COLUMNS - 1][64];
};

static void fill_line(const struct verdict *verdict, struct line *line) {
    snprintf(line->text[0], sizeof line->text[0], "%s%s", outcome_name(verdict->outcome),
             verdict->excused ? " (excused)" : "");
    report_change(verdict, line->text[1], sizeof line->text[1]);
    report_interval(verdict, line->text[2], sizeof line->text[2]);
    report_value(verdict->base, line->text[3], sizeof line->text[3]);
    report_value(verdict->new_side, line->text[4], sizeof line->text[4]);
    report_cycles(verdict, line->text[5], sizeof line->text[5]);
}

static const char *color_of(enum outcome outcome) {
    switch (outcome) {
    case OUTCOME_CORRECTNESS:
    case OUTCOME_REGRESSED:
        return "\033[31m";
    case OUTCOME_INCOMPARABLE:
    case OUTCOME_MISSING:
    case OUTCOME_CLOCK:
        return "\033[33m";
    case OUTCOME_IMPROVED:
        return "\033[32m";
    default:
        return "";
    }
}

static void print_row(const struct verdict *verdict, const int *width, FILE *stream, bool color) {
    const char *paint = color ? color_of(verdict->outcome) : "";
    struct line line;
    fill_line(verdict, &line);
    fprintf(stream, "%s%-*s%s  ", paint, width[0], line.text[0], paint[0] ? "\033[0m" : "");
    for (int c = 1; c + 1 < COLUMNS; c++)
        fprintf(stream, "%*s  ", width[c], line.text[c]);
    fprintf(stream, "%s\n", verdict->name);
    if (verdict->reason[0])
        fprintf(stream, "%*s  %s\n", width[0], "", verdict->reason);
}

/* What says nothing new: shown with --all alone. */
static bool is_plain(const struct verdict *verdict) {
    return verdict->outcome >= OUTCOME_EQUIVALENT && !verdict->excused;
}

/* Whether a row is in the table; counts the undecided ones. */
static bool shown(const struct verdict *verdict, bool all, size_t *undecided) {
    *undecided += verdict->outcome == OUTCOME_UNDECIDED;
    return all || (!is_plain(verdict) &&
                   (verdict->outcome != OUTCOME_UNDECIDED || *undecided <= UNDECIDED_ROWS));
}

/* All verdicts, or those that are not plain; of the undecided the worst, the rest says nothing new.
 */
static void print_rows(const struct comparison *comparison, bool all, FILE *stream, bool color) {
    const struct verdict *verdicts = comparison->verdicts;
    int width[COLUMNS] = {0};
    size_t undecided = 0;
    struct line line;
    for (int c = 0; c + 1 < COLUMNS; c++)
        width[c] = (int)strlen(heads[c]);
    for (size_t i = 0; i < comparison->count; i++) {
        if (!shown(&verdicts[i], all, &undecided))
            continue;
        fill_line(&verdicts[i], &line);
        for (int c = 0; c + 1 < COLUMNS; c++)
            if ((int)strlen(line.text[c]) > width[c])
                width[c] = (int)strlen(line.text[c]);
    }
    for (int c = 0; c + 1 < COLUMNS; c++)
        fprintf(stream, "%*s  ", c == 0 ? -width[c] : width[c], heads[c]);
    fprintf(stream, "%s\n", heads[COLUMNS - 1]);
    undecided = 0;
    for (size_t i = 0; i < comparison->count; i++) {
        if (shown(&verdicts[i], all, &undecided))
            print_row(&verdicts[i], width, stream, color);
        else if (verdicts[i].outcome == OUTCOME_UNDECIDED && undecided == UNDECIDED_ROWS + 1)
            fprintf(stream, "... and %zu more that are undecided: --all shows them\n",
                    comparison->by_outcome[OUTCOME_UNDECIDED] - UNDECIDED_ROWS);
    }
}

static void print_differences(const struct comparison *comparison, FILE *stream) {
    static const char *const weights[] = {"note", "ignored", "differs"};
    for (size_t i = 0; i < comparison->differences.count; i++) {
        const struct difference *difference = &comparison->differences.list[i];
        fprintf(stream, "%-8s %s: %s -> %s\n", weights[difference->weight], difference->field,
                difference->base, difference->new_side);
    }
}

static void print_common(const struct comparison *comparison, FILE *stream) {
    static const char *const names[] = {"time", "cycles"};
    for (int m = 0; m < MEASURES; m++) {
        double common = comparison->common[m];
        if (fabs(common) < 0.0005)
            continue;
        fprintf(stream,
                "drift    all cells together moved %+.2f%% in %s; %+.2f%% of it was taken out of "
                "each\n",
                100.0 * expm1(comparison->median_shift[m]), names[m], 100.0 * expm1(common));
    }
}

void report_table(const struct report *report, FILE *stream, bool all, bool color) {
    const struct comparison *comparison = report->comparison;
    char headline[1024];
    bool any = false;
    for (size_t i = 0; i < comparison->count && !any; i++)
        any = all || !is_plain(&comparison->verdicts[i]);
    print_differences(comparison, stream);
    print_common(comparison, stream);
    if (any)
        print_rows(comparison, all, stream, color);
    report_headline(report, headline, sizeof headline);
    fprintf(stream, "%s\n", headline);
    if (comparison->by_outcome[OUTCOME_REGRESSED] && report_cause(comparison)[0])
        fprintf(stream, "%s\n", report_cause(comparison));
}
