/* compare --report: worst cells first, before and after. */
#include "bench/report_page.h"
#include "ci/report_chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS_MOST = 5000, /* cells in the table */
    TOLD_MOST = 300,  /* of them with words and a picture */
    SUBTITLE_BYTES = 900
};

static const char *text_of(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static const char *device_of(const struct results *results) {
    const char *model = text_of(results->environment, "device.model");
    return *model ? model : text_of(results->environment, "context.host_name");
}

static int describe_side(const char *word, const char *name, const struct results_set *set,
                         char *text, size_t bytes) {
    const struct results *first = &set->files[0];
    return snprintf(text, bytes, "%s: %s (%.10s%s%.12s%s%s%s%s%.40s)", word, name, first->date,
                    first->commit[0] ? ", commit " : "", first->commit,
                    set->count > 1 ? ", several processes" : "",
                    first->profile[0] ? ", profile " : "", first->profile,
                    device_of(first)[0] ? ", " : "", device_of(first));
}

static void put_summary(const struct report *report, FILE *stream) {
    const struct comparison *comparison = report->comparison;
    char headline[1024];
    report_headline(report, headline, sizeof headline);
    fprintf(stream, "<h2 id=\"verdict\">Verdict</h2>\n<p class=\"verdict %s\">",
            comparison->exit_code == 0 ? "good" : "bad");
    page_text(stream, headline);
    fprintf(stream,
            ".</p>\n<p>Exit code %d. Margin %.3g%%, false discovery rate %.3g%%, noise "
            "between processes %s.",
            comparison->exit_code, 100.0 * report->options->margin, 100.0 * report->options->fdr,
            report->options->calibration ? "calibrated" : "0.3% by default");
    if (comparison->by_outcome[OUTCOME_REGRESSED] && report_cause(comparison)[0]) {
        fputs(" Cause: ", stream);
        page_text(stream, report_cause(comparison));
        fputs(".", stream);
    }
    static const char *const measures[] = {"time", "cycles"};
    for (int m = 0; m < MEASURES; m++)
        if (fabs(comparison->common[m]) >= 0.0005)
            fprintf(stream,
                    " All cells together moved %+.2f%% in %s; %+.2f%% of it was taken out "
                    "of each.",
                    100.0 * expm1(comparison->median_shift[m]), measures[m],
                    100.0 * expm1(comparison->common[m]));
    fputs("</p>\n<div class=\"tiles\">", stream);
    for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++)
        if (comparison->by_outcome[outcome])
            fprintf(stream, "<div class=\"tile\"><b>%zu</b>%s</div>",
                    comparison->by_outcome[outcome], outcome_name((enum outcome)outcome));
    fputs("</div>\n", stream);
}

static void put_differences(const struct comparison *comparison, FILE *stream) {
    static const char *const weights[] = {"note", "ignored", "refuses"};
    if (comparison->differences.count == 0) {
        fputs("<p>The two do not differ in any setting or field of the environment.</p>\n", stream);
        return;
    }
    fputs("<table class=\"plain\"><thead><tr><th>Field</th><th>Before</th><th>After</th>"
          "<th></th></tr></thead><tbody>\n",
          stream);
    for (size_t i = 0; i < comparison->differences.count; i++) {
        const struct difference *difference = &comparison->differences.list[i];
        const char *const cells[] = {difference->field, difference->base, difference->new_side,
                                     weights[difference->weight]};
        fputs("<tr>", stream);
        for (size_t c = 0; c < sizeof cells / sizeof cells[0]; c++) {
            fputs(difference->weight == DIFFERENCE_REFUSES && c == 3 ? "<td class=\"bad\">"
                                                                     : "<td>",
                  stream);
            page_text(stream, cells[c]);
            fputs("</td>", stream);
        }
        fputs("</tr>\n", stream);
    }
    fputs("</tbody></table>\n", stream);
}

static void put_number(FILE *stream, double value, const char *text) {
    if (isfinite(value))
        fprintf(stream, "<td class=\"n\" data-v=\"%.9g\">", value);
    else
        fputs("<td class=\"n\" data-v=\"\">", stream);
    page_text(stream, text);
    fputs("</td>", stream);
}

static void put_explanation(const struct report *report, const struct verdict *verdict,
                            FILE *stream) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (!memory)
        return;
    report_explain(report, verdict->name, memory);
    if (fclose(memory) == 0) {
        /* Its lines are kept: page_text would make blanks of them. */
        char *rest = text;
        fputs("<pre>", stream);
        for (char *line; (line = strsep(&rest, "\n"));) {
            page_text(stream, line);
            fputc('\n', stream);
        }
        fputs("</pre>", stream);
    }
    free(text);
}

static void put_details(const struct report *report, const struct verdict *verdict, bool told,
                        FILE *stream) {
    const struct results *results = &report->new_set->files[0];
    if (told) {
        fputs("<figure role=\"img\" aria-label=\"Blocks before and after\">", stream);
        if (chart_blocks(report, verdict, stream))
            fputs("<figcaption>Median of each block in the order of time; line: their median; "
                  "dashed: the next process.</figcaption>",
                  stream);
        fputs("</figure>", stream);
        put_explanation(report, verdict, stream);
    } else if (verdict->reason[0]) {
        fputs("<p>", stream);
        page_text(stream, verdict->reason);
        fputs("</p>", stream);
    }
    if (results->format == FORMAT_TOPP && verdict->new_side &&
        results_find(results, verdict->name) == verdict->new_side && !strchr(verdict->name, '~')) {
        fputs("<p>Again: <code>", stream);
        page_command(stream, results->run, verdict->name);
        fputs("</code></p>", stream);
    }
}

static const char *class_of(const struct verdict *verdict) {
    if (verdict->excused)
        return "";
    return verdict->outcome <= OUTCOME_MISSING                                              ? "bad"
           : verdict->outcome == OUTCOME_IMPROVED || verdict->outcome == OUTCOME_EQUIVALENT ? "good"
                                                                                            : "";
}

static void put_row(const struct report *report, const struct verdict *verdict, bool told,
                    FILE *stream) {
    char change[40], interval[64], base[40], new_side[40], cycles[40];
    report_change(verdict, change, sizeof change);
    report_interval(verdict, interval, sizeof interval);
    report_value(verdict->base, base, sizeof base);
    report_value(verdict->new_side, new_side, sizeof new_side);
    report_cycles(verdict, cycles, sizeof cycles);
    fputs("<tr data-name=\"", stream);
    for (const char *at = verdict->name; *at; at++) {
        const char letter[2] = {*at >= 'A' && *at <= 'Z' ? (char)(*at + 32) : *at, '\0'};
        page_text(stream, letter);
    }
    fprintf(stream, "\" data-outcome=\"%s\"><td data-s=\"", outcome_name(verdict->outcome));
    page_text(stream, verdict->name);
    fputs("\"><details><summary>", stream);
    page_text(stream, verdict->name);
    fputs("</summary>", stream);
    put_details(report, verdict, told, stream);
    fprintf(stream, "</details></td><td class=\"%s\">%s%s</td>", class_of(verdict),
            outcome_name(verdict->outcome), verdict->excused ? " (excused)" : "");
    put_number(stream, verdict->ratio - 1.0, change);
    put_number(stream, verdict->time.valid ? verdict->time.high : (double)NAN, interval);
    put_number(stream, verdict->base ? verdict->base->median : (double)NAN, base);
    put_number(stream, verdict->new_side ? verdict->new_side->median : (double)NAN, new_side);
    put_number(stream, verdict->cycles.valid ? verdict->cycles.shift : (double)NAN, cycles);
    fputs("</tr>\n", stream);
}

static void put_filters(const struct comparison *comparison, FILE *stream) {
    fputs("<div class=\"filters\" id=\"all-filters\" hidden><input type=\"search\" "
          "placeholder=\"words of the name, such as batch:64 peaked\" "
          "aria-label=\"Filter by name\">\n<label>Outcome <select name=\"outcome\">"
          "<option value=\"\">all</option>",
          stream);
    for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++)
        if (comparison->by_outcome[outcome])
            fprintf(stream, "<option>%s</option>", outcome_name((enum outcome)outcome));
    fputs("</select></label>\n<output></output></div>\n", stream);
}

static void put_cells(const struct report *report, FILE *stream) {
    const struct comparison *comparison = report->comparison;
    const size_t rows = comparison->count < ROWS_MOST ? comparison->count : ROWS_MOST;
    size_t told = 0;
    fputs("<h2 id=\"cells-section\">Cells, worst first</h2>\n<p>Open a cell for the reasons in "
          "words and its blocks before and after. Before and after are medians; the interval is "
          "of the change, at 95&nbsp;%. A dash: there is no such figure.</p>\n",
          stream);
    if (rows < comparison->count)
        fprintf(stream, "<p>The worst %zu of %zu cells are here; --json holds all.</p>\n", rows,
                comparison->count);
    put_filters(comparison, stream);
    fputs("<div class=\"scroll\"><table class=\"cells\" id=\"all\"><thead><tr><th>Cell</th>"
          "<th>Outcome</th><th>Change</th><th>95 % interval</th><th>Before</th><th>After</th>"
          "<th>Cycles</th></tr></thead><tbody>\n",
          stream);
    for (size_t i = 0; i < rows; i++) {
        const struct verdict *verdict = &comparison->verdicts[i];
        const bool tell = told < TOLD_MOST && verdict->outcome < OUTCOME_EQUIVALENT;
        told += tell;
        put_row(report, verdict, tell, stream);
    }
    fputs("</tbody></table></div>\n", stream);
}

static void put_run(const char *word, const struct results_set *set, FILE *stream) {
    fprintf(stream, "<details><summary>%s: ", word);
    page_text(stream, set->files[0].file);
    if (set->count > 1)
        fprintf(stream, " (first of %zu processes)", set->count);
    fputs("</summary>\n", stream);
    page_object(stream, set->files[0].run);
    fputs("</details>\n", stream);
}

void report_html(const struct report *report, FILE *stream) {
    char title[400], subtitle[SUBTITLE_BYTES];
    snprintf(title, sizeof title, "perfwatch: %.150s against %.150s", report->base,
             report->new_side);
    const int used =
        describe_side("before", report->base, report->base_set, subtitle, sizeof subtitle - 4);
    if (used > 0 && (size_t)used < sizeof subtitle - 4) {
        memcpy(subtitle + used, "; ", 3);
        describe_side("after", report->new_side, report->new_set, subtitle + used + 2,
                      sizeof subtitle - (size_t)used - 2);
    }
    page_open(stream, title, subtitle);
    fputs("<nav><a href=\"#verdict\">Verdict</a><a href=\"#changes\">Changes</a>"
          "<a href=\"#cells-section\">Cells</a><a href=\"#environment\">Environment</a></nav>\n",
          stream);
    put_summary(report, stream);
    fputs("<h2 id=\"changes\">Changes, worst first</h2>\n<figure role=\"img\" "
          "aria-label=\"Changes of the worst cells\">\n",
          stream);
    if (!chart_changes(report, stream))
        fputs("<p>No cell was compared in time.</p>", stream);
    fputs("</figure>\n", stream);
    put_cells(report, stream);
    fputs("<h2 id=\"environment\">Environment</h2>\n", stream);
    put_differences(report->comparison, stream);
    put_run("Before", report->base_set, stream);
    put_run("After", report->new_set, stream);
    page_close(stream);
}
