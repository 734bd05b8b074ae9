/* For GitHub: the step summary's Markdown and workflow commands. */
#include "ci/report.h"

#include <math.h>
#include <string.h>

/* Inside a table's cell. */
static void put_markdown(FILE *stream, const char *text) {
    for (; *text; text++) {
        if (strchr("\\`*_{}[]<>|#", *text))
            fputc('\\', stream);
        fputc(*text == '\n' || *text == '\r' ? ' ' : *text, stream);
    }
}

static void markdown_row(const struct verdict *verdict, FILE *stream) {
    char change[40], interval[64], base[40], new_side[40], cycles[40];
    report_change(verdict, change, sizeof change);
    report_interval(verdict, interval, sizeof interval);
    report_value(verdict->base, base, sizeof base);
    report_value(verdict->new_side, new_side, sizeof new_side);
    report_cycles(verdict, cycles, sizeof cycles);
    fprintf(stream, "| %s%s | %s | %s | %s | %s | %s | ", outcome_name(verdict->outcome),
            verdict->excused ? " (excused)" : "", change, interval, base, new_side, cycles);
    put_markdown(stream, verdict->name);
    if (verdict->reason[0]) {
        fputs("<br>", stream);
        put_markdown(stream, verdict->reason);
    }
    fputs(" |\n", stream);
}

void report_markdown(const struct report *report, FILE *stream) {
    static const char *const weights[] = {"note", "ignored", "**refuses**"};
    const struct comparison *comparison = report->comparison;
    char headline[1024];
    report_headline(report, headline, sizeof headline);
    fprintf(stream, "### perfwatch: ");
    put_markdown(stream, headline);
    fputs("\n\n", stream);
    if (comparison->by_outcome[OUTCOME_REGRESSED] && report_cause(comparison)[0])
        fprintf(stream, "%s.\n\n", report_cause(comparison));
    if (comparison->differences.count) {
        fputs("| environment | field | base | new |\n|---|---|---|---|\n", stream);
        for (size_t i = 0; i < comparison->differences.count; i++) {
            const struct difference *difference = &comparison->differences.list[i];
            fprintf(stream, "| %s | ", weights[difference->weight]);
            put_markdown(stream, difference->field);
            fputs(" | ", stream);
            put_markdown(stream, difference->base);
            fputs(" | ", stream);
            put_markdown(stream, difference->new_side);
            fputs(" |\n", stream);
        }
        fputs("\n", stream);
    }
    size_t rows = 0, left_out = 0;
    for (size_t i = 0; i < comparison->count; i++) {
        if (comparison->verdicts[i].outcome >= OUTCOME_EQUIVALENT)
            continue;
        if (rows == MARKDOWN_ROWS) {
            left_out++;
            continue;
        }
        if (rows++ == 0)
            fputs("| outcome | change | 95% interval | base | new | cycles | cell |\n"
                  "|---|--:|---|--:|--:|--:|---|\n",
                  stream);
        markdown_row(&comparison->verdicts[i], stream);
    }
    if (left_out)
        fprintf(stream, "\n... and %zu more cells, none worse.\n", left_out);
}

/* GitHub's escapes; `property` also guards what ends a property. */
static void put_command(FILE *stream, const char *text, bool property) {
    for (; *text; text++) {
        if (*text == '%' || *text == '\r' || *text == '\n' ||
            (property && (*text == ':' || *text == ',')))
            fprintf(stream, "%%%02X", (unsigned char)*text);
        else
            fputc(*text, stream);
    }
}

static void command(FILE *stream, const char *level, const char *title, const char *text) {
    fprintf(stream, "::%s title=", level);
    put_command(stream, title, true);
    fputs("::", stream);
    put_command(stream, text, false);
    fputc('\n', stream);
}

static const char *level_of(const struct verdict *verdict) {
    if (verdict->excused)
        return verdict->outcome == OUTCOME_CORRECTNESS ? "warning" : "notice";
    switch (verdict->outcome) {
    case OUTCOME_CORRECTNESS:
    case OUTCOME_REGRESSED:
    case OUTCOME_INCOMPARABLE:
    case OUTCOME_MISSING:
        return "error";
    case OUTCOME_CLOCK:
        return "warning";
    case OUTCOME_IMPROVED:
        return "notice";
    default:
        return NULL;
    }
}

/* All annotations of one level: the last one allowed stands for those that do not fit. */
static void annotate(const struct comparison *comparison, const char *level, size_t most,
                     FILE *stream) {
    size_t of_level = 0, told = 0;
    char title[600], text[600];
    for (size_t i = 0; i < comparison->count; i++) {
        const char *own = level_of(&comparison->verdicts[i]);
        of_level += own && !strcmp(own, level);
    }
    for (size_t i = 0; i < comparison->count && told < of_level; i++) {
        const struct verdict *verdict = &comparison->verdicts[i];
        const char *own = level_of(verdict);
        if (!own || strcmp(own, level) != 0)
            continue;
        if (of_level > most && told + 1 == most) {
            snprintf(text, sizeof text, "%zu more cells: see the table or the step summary",
                     of_level - told);
            command(stream, level, "perfwatch", text);
            return;
        }
        told++;
        snprintf(title, sizeof title, "%s: %.500s", outcome_name(verdict->outcome), verdict->name);
        report_sentence(verdict, text, sizeof text);
        command(stream, level, title, text);
    }
}

void report_github(const struct report *report, FILE *stream) {
    const struct comparison *comparison = report->comparison;
    size_t errors = GITHUB_MOST, warnings = GITHUB_MOST;
    if (comparison->refused[0]) {
        command(stream, "error", "perfwatch: not comparable", comparison->refused);
        errors--;
    }
    char fields[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < comparison->differences.count; i++) {
        const struct difference *difference = &comparison->differences.list[i];
        if (difference->weight == DIFFERENCE_NOTE || used >= sizeof fields)
            continue;
        used += (size_t)snprintf(fields + used, sizeof fields - used, "%s%s: %s -> %s",
                                 used ? "; " : "", difference->field, difference->base,
                                 difference->new_side);
    }
    if (fields[0]) {
        command(stream, "warning", "perfwatch: environment differs", fields);
        warnings--;
    }
    annotate(comparison, "error", errors, stream);
    annotate(comparison, "warning", warnings, stream);
    annotate(comparison, "notice", GITHUB_MOST, stream);
}
