/* --report: verdicts first, then charts, cells, environment, receipt. */
#include "bench/plot.h"
#include "bench/report_page.h"
#include "bench/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A time with its unit, three digits that matter. */
static void put_time(FILE *stream, double ns) {
    static const struct {
        double least;
        const char *unit;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "\xC2\xB5s"}, {0, "ns"}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (ns >= units[i].least) {
            const double scaled = ns / (units[i].least > 0 ? units[i].least : 1);
            fprintf(stream, "%.*f %s",
                    scaled < 10    ? 3
                    : scaled < 100 ? 2
                                   : 1,
                    scaled, units[i].unit);
            return;
        }
}

/* A cell of the table that sorts as a number; "-" and last in order when there is none. */
static void put_number(FILE *stream, double value, const char *format) {
    if (!isfinite(value)) {
        fputs("<td class=\"n\" data-v=\"\">-</td>", stream);
        return;
    }
    fprintf(stream, "<td class=\"n\" data-v=\"%.9g\">", value);
    if (!strcmp(format, "time"))
        put_time(stream, value);
    else
        fprintf(stream, format, value);
    fputs("</td>", stream);
}

static const char *verdict_of(const json_t *cell) {
    const char *verdict = plot_text(cell, "verdict");
    return *verdict ? verdict : "not judged";
}

static bool against(const json_t *cell) {
    return !json_is_true(json_object_get(cell, "as_expected"));
}

static void put_row(FILE *stream, const json_t *run, const json_t *cell) {
    const char *name = plot_text(cell, "name");
    fputs("<tr data-name=\"", stream);
    for (const char *at = name; *at; at++) {
        const char letter[2] = {*at >= 'A' && *at <= 'Z' ? (char)(*at + 32) : *at, '\0'};
        page_text(stream, letter);
    }
    fputs("\" data-verdict=\"", stream);
    page_text(stream, verdict_of(cell));
    fputs("\" data-kernel=\"", stream);
    page_text(stream, plot_text(cell, "kernel"));
    fputs("\"><td data-s=\"", stream);
    page_text(stream, name);
    fputs("\"><details><summary>", stream);
    page_text(stream, name);
    fputs("</summary><code>", stream);
    page_command(stream, run, name);
    fputs("</code>", stream);
    static const char *const reasons[] = {"reason", "unmeasured", "expect_why"};
    static const char *const leads[] = {"", "Not measured: ", "The profile expects it: "};
    for (size_t i = 0; i < 3; i++)
        if (*plot_text(cell, reasons[i])) {
            fprintf(stream, "<p>%s", leads[i]);
            page_text(stream, plot_text(cell, reasons[i]));
            fputs("</p>", stream);
        }
    fprintf(stream, "</details></td><td class=\"%s\">",
            against(cell)                           ? "bad"
            : !strcmp(verdict_of(cell), "accepted") ? "good"
                                                    : "");
    page_text(stream, verdict_of(cell));
    if (*plot_text(cell, "rule")) {
        fputs(": ", stream);
        page_text(stream, plot_text(cell, "rule"));
    }
    fputs(against(cell) ? " (unexpected)</td>" : "</td>", stream);
    const double median = plot_number(cell, "median_ns");
    const double width = plot_number(cell, "ci_high_ns") - plot_number(cell, "ci_low_ns");
    put_number(stream, median, "time");
    put_number(stream, 50 * width / median, "%.2f");
    put_number(stream, plot_number(cell, "p95_ns"), "time");
    put_number(stream, plot_number(cell, "bytes_per_second") / 1e9, "%.2f");
    put_number(stream, plot_number(cell, "ratio_to_floor"), "%.2f");
    put_number(stream, plot_number(cell, "kept"), "%.0f");
    put_number(stream, plot_number(cell, "oracle"), "%.0f");
    put_number(stream, plot_number(cell, "most_surplus"), "%.0f");
    put_number(stream, plot_number(cell, "most_missing"), "%.0f");
    fputs("</tr>\n", stream);
}

static void put_choice(FILE *stream, const struct plot_results *results, const char *name,
                       const char *label) {
    fprintf(stream, "<label>%s <select name=\"%s\"><option value=\"\">all</option>", label, name);
    for (size_t i = 0; i < results->count; i++) {
        const bool verdict = !strcmp(name, "verdict");
        const json_t *cell = results->cells[i].json;
        const char *value = verdict ? verdict_of(cell) : plot_text(cell, name);
        size_t before = 0;
        while (before < i &&
               strcmp(value, verdict ? verdict_of(results->cells[before].json)
                                     : plot_text(results->cells[before].json, name)) != 0)
            before++;
        if (before < i)
            continue;
        fputs("<option>", stream);
        page_text(stream, value);
        fputs("</option>", stream);
    }
    fputs("</select></label>\n", stream);
}

static const char table_head[] =
    "<div class=\"scroll\"><table class=\"cells\" id=\"%s\"><thead><tr><th>Cell</th>"
    "<th>Verdict</th><th>Median</th><th>&plusmn; %%</th><th>p95</th><th>GB/s</th>"
    "<th>Floor x</th><th>Kept</th><th>Oracle</th><th>Surplus</th><th>Missing</th>"
    "</tr></thead><tbody>\n";

static void put_cells(FILE *stream, const struct plot_results *results) {
    fputs("<h2 id=\"cells-section\">Cells</h2>\n<p>Open a cell for the command that runs it again. "
          "Times are medians over draws; &plusmn; is half the 95&nbsp;% interval of the median; "
          "p95 is the spread over repeats; Floor&nbsp;x is the time over that of one pass over the "
          "logits; kept and oracle are sums over rows, surplus and missing those of the worst "
          "row. A dash: there is no such figure.</p>\n"
          "<div class=\"filters\" id=\"all-filters\" hidden><input type=\"search\" "
          "placeholder=\"words of the name, such as batch:64 peaked\" "
          "aria-label=\"Filter by name\">\n",
          stream);
    put_choice(stream, results, "verdict", "Verdict");
    put_choice(stream, results, "kernel", "Kernel");
    fputs("<output></output></div>\n", stream);
    fprintf(stream, table_head, "all");
    for (size_t i = 0; i < results->count; i++)
        put_row(stream, results->run, results->cells[i].json);
    fputs("</tbody></table></div>\n", stream);
}

static void put_summary(FILE *stream, const struct plot_results *results) {
    const json_t *summary = results->summary;
    const double unexpected = plot_number(summary, "unexpected");
    const double unmeasured = plot_number(summary, "unmeasured");
    fputs("<h2 id=\"verdict\">Verdict</h2>\n", stream);
    if (unexpected > 0)
        fprintf(stream,
                "<p class=\"verdict bad\">%.0f of %zu cells went against the profile's "
                "expectation.</p>\n",
                unexpected, results->count);
    else
        fprintf(stream,
                "<p class=\"verdict good\">All %zu cells came out as the profile "
                "expects.</p>\n",
                results->count);
    if (unmeasured > 0)
        fprintf(stream, "<p class=\"verdict bad\">%.0f accepted cell%s no valid time.</p>\n",
                unmeasured, unmeasured == 1 ? " has" : "s have");
    fputs("<div class=\"tiles\">", stream);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)summary, key, value) {
        if (!json_is_integer(value) || (!json_integer_value(value) && strcmp(key, "rejected") != 0))
            continue;
        fprintf(stream, "<div class=\"tile\"><b>%lld</b>", (long long)json_integer_value(value));
        page_text(stream, key);
        fputs("</div>", stream);
    }
    fputs("</div>\n", stream);
    if (!(unexpected > 0) && !(unmeasured > 0))
        return;
    fputs("<h3>What needs a look</h3>\n", stream);
    fprintf(stream, table_head, "look");
    for (size_t i = 0; i < results->count; i++) {
        const json_t *cell = results->cells[i].json;
        if (against(cell) || *plot_text(cell, "unmeasured"))
            put_row(stream, results->run, cell);
    }
    fputs("</tbody></table></div>\n", stream);
}

static bool same_group(const struct chart *a, const struct chart *b) {
    return !strcmp(a->kind, b->kind) && !strcmp(a->family, b->family) && !strcmp(a->l2, b->l2) &&
           !strcmp(a->launch, b->launch);
}

static void put_charts(FILE *stream, const struct chart_list *list, const char *dir) {
    fputs("<h2 id=\"charts\">Charts</h2>\n", stream);
    if (list->groups_left_out)
        fprintf(stream,
                "<p>%zu smaller groups of cells have no charts; the table has all "
                "cells.</p>\n",
                list->groups_left_out);
    for (size_t i = 0; i < list->count; i++) {
        const struct chart *chart = &list->charts[i];
        if (i == 0 || !same_group(chart, &list->charts[i - 1])) {
            const char *part = strstr(chart->title, ": ");
            fprintf(stream, "%s<details class=\"group\"%s><summary>", i ? "</div></details>\n" : "",
                    i < 8 ? " open" : "");
            page_text(stream, part ? part + 2 : chart->title);
            fputs("</summary><div class=\"charts\">\n", stream);
        }
        char path[1024], prefix[24];
        snprintf(path, sizeof path, "%s/%s.svg", dir, chart->name);
        snprintf(prefix, sizeof prefix, "c%zu-", i);
        fputs("<figure role=\"img\" aria-label=\"", stream);
        page_text(stream, chart->title);
        fputs("\">", stream);
        if (!chart->drawn || !page_svg(stream, path, prefix)) {
            fputs("<p>Not drawn: ", stream);
            page_text(stream, chart->title);
            fputs("</p>", stream);
        }
        fputs("</figure>\n", stream);
    }
    if (list->count)
        fputs("</div></details>\n", stream);
}

static void put_receipt(FILE *stream, const struct plot_results *results) {
    char path[600];
    snprintf(path, sizeof path, "%s/receipt.json", results->dir);
    fputs("<h2 id=\"receipt\">Receipt</h2>\n", stream);
    json_t *receipt = json_load_file(path, 0, NULL);
    if (!json_is_object(receipt)) {
        fputs("<p>There is no receipt beside these results: nothing binds them to sources and "
              "inputs.</p>\n",
              stream);
        json_decref(receipt);
        return;
    }
    fputs("<p>It binds inputs, verdicts, samples, sources and environment by hashes. To check "
          "it:</p>\n<pre>bench_topp --verify ",
          stream);
    page_text(stream, path);
    fputs("</pre>\n", stream);
    json_t *shown = json_object();
    static const char *const members[] = {"schema", "kind", "seal_sha256", "request", "outputs"};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        json_t *value = json_object_get(receipt, members[i]);
        if (json_is_array(value))
            for (size_t k = 0; k < json_array_size(value); k++) {
                char name[64];
                snprintf(name, sizeof name, "%s.%zu", members[i], k + 1);
                json_object_set(shown, name, json_array_get(value, k));
            }
        else if (value)
            json_object_set(shown, members[i], value);
    }
    page_object(stream, shown);
    json_decref(shown);
    json_decref(receipt);
}

static void put_page(FILE *stream, const struct plot_results *results,
                     const struct chart_list *list, const char *charts_dir) {
    char title[200], subtitle[400];
    const json_t *profile = json_object_get(results->run, "profile");
    snprintf(title, sizeof title, "topp-bench: %s", plot_text(profile, "name"));
    plot_footer(results, subtitle, sizeof subtitle);
    page_open(stream, title, subtitle);
    fputs("<nav><a href=\"#verdict\">Verdict</a><a href=\"#charts\">Charts</a>"
          "<a href=\"#cells-section\">Cells</a><a href=\"#environment\">Environment</a>"
          "<a href=\"#receipt\">Receipt</a></nav>\n",
          stream);
    put_summary(stream, results);
    put_charts(stream, list, charts_dir);
    put_cells(stream, results);
    fputs("<h2 id=\"environment\">Environment</h2>\n<details open><summary>Run, device, host and "
          "build</summary>\n",
          stream);
    page_object(stream, results->run);
    fputs("</details>\n", stream);
    put_receipt(stream, results);
    page_close(stream);
}

enum tb_status report_write(const struct plot_results *results, const struct chart_list *list,
                            const char *charts_dir, const char *path, struct tb_error *error) {
    FILE *stream = fopen(path, "w");
    if (!stream)
        return tb_fail_at(error, TB_IO, path, 0, -1, "cannot be written: %s", strerror(errno));
    const locale_t c_locale = text_c_locale();
    const locale_t before = c_locale ? uselocale(c_locale) : (locale_t)0;
    errno = 0;
    put_page(stream, results, list, charts_dir);
    if (before)
        uselocale(before);
    const bool failed = ferror(stream) != 0;
    if (fclose(stream) != 0 || failed)
        return tb_fail_at(error, TB_IO, path, 0, -1, "cannot be written: %s", strerror(errno));
    return TB_OK;
}
