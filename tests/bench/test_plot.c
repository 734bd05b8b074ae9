/* Charts and the report page, drawn from recorded files: what must stand in them, and what must
 * not be drawn. Skipped without gnuplot, but for what happens without it. */
#include "program.h"

#include "bench/inputs.h"

#include "oracle/gumbel_noise.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char made_up[] = TOPP_SOURCE_DIR "/tests/data/plot/results.json";

static char folder[64];
static char path_text[512];

static const char *in_folder(const char *name) {
    snprintf(path_text, sizeof path_text, "%s/%s", folder, name);
    return path_text;
}

static char *text_in(const char *name) {
    return file_text(in_folder(name), NULL);
}

static void assert_has(const char *text, const char *part) {
    if (!strstr(text, part))
        fail_msg("'%s' is missing", part);
}

static void assert_has_not(const char *text, const char *part) {
    if (strstr(text, part))
        fail_msg("'%s' must not be there", part);
}

/* Runs one script as its README says; fails on any word on standard error. */
static char *draw_alone(const char *script, const char *data, const char *out, const char *words) {
    char command[1600], out_path[256], errors[256];
    snprintf(out_path, sizeof out_path, "%s/%s", folder, out);
    snprintf(errors, sizeof errors, "%s/errors", folder);
    snprintf(command, sizeof command,
             "gnuplot -c '" TOPP_SOURCE_DIR "/plots/%s.gp' '%s' '%s' '%s' 'the footer_2^3' 2>'%s'",
             script, data, out_path, words, errors);
    const int rc = system(command);
    char *said = file_text(errors, NULL);
    if (rc != 0 || *said)
        fail_msg("%s: exit %d, said: %s", command, rc, said);
    free(said);
    return file_text(out_path, NULL);
}

/* What each chart of the recorded run must say. */
static const struct {
    const char *name;
    const char *parts[8];
} expected[] = {
    {"latency-topp-normal",
     {"Latency against vocabulary", "time per call (µs)", "vocabulary (tokens)", "patched_fine",
      "p=0.9", "batch 16", ">R<", ">U<"}},
    {"batch-topp-normal",
     {"Latency against batch", "batch (rows)", "floor", "R rejected", "N not measured", ">N<",
      "vocabulary 128256"}},
    {"p-topp-normal", {"Latency against p", "1-2^-20", "p (probability mass to keep)", "0.9"}},
    {"floor-topp-normal",
     {"Distance from the memory floor", "the floor", "without a time", "exact"}},
    {"speedup-topp-normal",
     {"Speed-up of exact over stock", "4.5x", "stock rejected", "exact unsupported"}},
    {"samples-topp-normal", {"Distribution of samples", "exact 1 x 32000", "median of its draw"}},
    {"surplus", {"Tokens kept beyond the oracle", "rejected", "tokens of the worst row"}},
    {"noise_tail", {"Tail of the Gumbel noise", "1 - exp(-exp(-g))", "log1p", "fp64", "murmur"}},
    {"batch-gumbel-normal", {"temperature=1.0", "murmur", "log"}},
    {"latency-gumbel-normal", {"temperature=1.0", "batch 4"}},
};

static void test_every_chart(void **state) {
    (void)state;
    char dir[128];
    snprintf(dir, sizeof dir, "%s/charts", folder);
    struct program_run run = program_run((const char *[]){"--plot", made_up, "--out", dir, NULL});
    if (run.exit_code != 0 || *run.errors)
        fail_msg("exit %d: %s", run.exit_code, run.errors);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        char name[200];
        snprintf(name, sizeof name, "charts/%s.svg", expected[i].name);
        assert_has(run.output, name);
        char *svg = text_in(name);
        for (size_t k = 0; k < 8 && expected[i].parts[k]; k++)
            assert_has(svg, expected[i].parts[k]);
        assert_has(svg, "Test_Machine^2 (cpu), 2026-01-31 12:34 UTC, profile made_up");
        assert_has(svg, "</svg>");
        free(svg);
        snprintf(name, sizeof name, "charts/%s.png", expected[i].name);
        size_t length = 0;
        char *png = file_text(in_folder(name), &length);
        assert_true(length > 4000);
        assert_memory_equal(png, "\x89PNG\r\n", 6);
        free(png);
    }
    program_free(&run);
}

static const char head[] =
    "kind\tkernel\tfamily\tvocab\tbatch\tp\tp_text\ttemperature\tl2\tlaunch\t"
    "timed\tverdict\tmedian_ns\tci_low_ns\tci_high_ns\tratio_to_floor\n";

struct row {
    int batch;
    const char *verdict, *median;
};

static void write_rows(const char *name, const char *kernel, const char *p, const struct row *rows,
                       size_t count) {
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    fputs(head, file);
    for (size_t i = 0; i < count; i++)
        fprintf(file, "topp\t%s\tnormal\t1000\t%d\t0.9\t%s\tNA\tNA\tNA\ttrue\t%s\t%s\tNA\tNA\tNA\n",
                kernel, rows[i].batch, p, rows[i].verdict, rows[i].median);
    fclose(file);
}

/* How many straight pieces are drawn in a colour, but for those of the legend (arrows). */
static int segments(const char *svg, const char *color) {
    int count = 0;
    for (const char *at = svg; (at = strstr(at, "<path stroke='")); at++) {
        const char *end = strstr(at, "/>");
        if (strncmp(at + 14, color, strlen(color)) != 0)
            continue;
        for (const char *d = strstr(at, " d='"); d && d < end; d++)
            count += (*d == 'L');
    }
    return count;
}

/* The same line with and without its middle point: what is joined must differ. */
static void test_gap(void **state) {
    (void)state;
    const char *color = "rgb(213,  94,   0)";
    struct row rows[] = {{1, "accepted", "1000"},
                         {2, "accepted", "2000"},
                         {4, "accepted", "4000"},
                         {8, "accepted", "8000"},
                         {16, "accepted", "16000"}};
    write_rows("whole.tsv", "stock", "0.9", rows, 5);
    char data[256];
    snprintf(data, sizeof data, "%s", in_folder("whole.tsv"));
    char *whole = draw_alone("batch", data, "whole.svg", "");
    rows[2] = (struct row){4, "rejected", "NA"};
    write_rows("gap.tsv", "stock", "0.9", rows, 5);
    snprintf(data, sizeof data, "%s", in_folder("gap.tsv"));
    char *gap = draw_alone("batch", data, "gap.svg", "");
    assert_int_equal(segments(whole, color) - segments(gap, color), 2);
    assert_has(gap, ">R<");
    assert_has_not(whole, ">R<");
    free(whole);
    free(gap);
}

/* plt-01: a zero first on a log-log chart; the rest fills the axis, and the zero is named. */
static void test_zero(void **state) {
    (void)state;
    static const char *const y[] = {"0.0",     "1.49e-1", "1.2e-2", "9.3e-4", "3.1e-5", "2.2e-6",
                                    "1.01e-6", "5.4e-7",  "1.5e-7", "1.2e-7", "1e-7",   "0.9e-7"};
    struct row rows[12];
    for (int i = 0; i < 12; i++)
        rows[i] = (struct row){16 << i, "accepted", y[i]};
    write_rows("zero.tsv", "stock", "0.9", rows, 12);
    char data[256];
    snprintf(data, sizeof data, "%s", in_folder("zero.tsv"));
    char *svg = draw_alone("batch", data, "zero.svg", "");
    assert_has(svg, "0 is zero: left out");
    assert_has(svg, ">32768<");
    assert_true(segments(svg, "rgb(213,  94,   0)") >= 10);
    free(svg);
}

/* plt-02: data and picture are the same under a comma locale, installed or not. */
static void test_locale(void **state) {
    (void)state;
    static const char *const names[] = {"C", "ru_RU.UTF-8", "de_DE.UTF-8", "xx_XX.UTF-8"};
    char *data[4], *svg[4], dir[128], name[200];
    for (int i = 0; i < 4; i++) {
        setenv("LC_ALL", names[i], 1);
        snprintf(dir, sizeof dir, "%s/locale%d", folder, i);
        struct program_run run =
            program_run((const char *[]){"--plot", made_up, "--out", dir, NULL});
        assert_int_equal(run.exit_code, 0);
        assert_string_equal(run.errors, "");
        program_free(&run);
        snprintf(name, sizeof name, "locale%d/batch-topp-normal.tsv", i);
        data[i] = text_in(name);
        snprintf(name, sizeof name, "locale%d/batch-topp-normal.svg", i);
        svg[i] = text_in(name);
        assert_string_equal(data[i], data[0]);
        assert_string_equal(svg[i], svg[0]);
    }
    unsetenv("LC_ALL");
    for (int i = 0; i < 4; i++) {
        free(data[i]);
        free(svg[i]);
    }
}

/* plt-03: names with _ and ^ are shown as they are written. */
static void test_literal(void **state) {
    (void)state;
    const struct row rows[] = {{1, "accepted", "1000"}, {2, "accepted", "2000"}};
    write_rows("literal.tsv", "topp_split_v1", "0.9^2", rows, 2);
    char data[256];
    snprintf(data, sizeof data, "%s", in_folder("literal.tsv"));
    static const char *const scripts[] = {"batch", "latency", "p"};
    for (int i = 0; i < 3; i++) {
        char *svg = draw_alone(scripts[i], data, "literal.svg", "");
        assert_has(svg, ">topp_split_v1<");
        assert_has(svg, i < 2 ? "p=0.9^2" : ">0.9^2<");
        assert_has(svg, ">the footer_2^3<");
        assert_has_not(svg, "baseline-shift");
        free(svg);
    }
}

static void test_history(void **state) {
    (void)state;
    char *svg = draw_alone("history", TOPP_SOURCE_DIR "/tests/data/plot/history.tsv", "history.svg",
                           "cell=topp/stock/normal/vocab:1");
    assert_has(svg, ">change +6.2%<");
    assert_has(svg, "epoch driver_580");
    assert_has(svg, "epoch driver_590");
    assert_has(svg, "X: 1 runs without a time");
    assert_has(svg, "topp/stock/normal/vocab:1");
    free(svg);
}

/* The tail of every variant follows the true one where its words are fine enough, and ends where
 * its greatest noise is. */
static void test_noise_data(void **state) {
    (void)state;
    char dir[128];
    snprintf(dir, sizeof dir, "%s/noise", folder);
    struct program_run run = program_run((const char *[]){"--plot", made_up, "--out", dir, NULL});
    assert_int_equal(run.exit_code, 0);
    program_free(&run);
    char *data = text_in("noise/noise_tail.tsv"), *rest = data;
    int points = 0, ends = 0;
    strsep(&rest, "\n");
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        const char *name = strsep(&line, "\t");
        const double noise = atof(strsep(&line, "\t")), tail = atof(strsep(&line, "\t"));
        const bool greatest = *line == '1';
        enum noise_kind kind;
        assert_true(noise_parse(name, &kind));
        ends += greatest;
        if (greatest)
            assert_true(fabs(noise - noise_greatest(kind)) < 1e-6);
        if (noise > 9)
            continue; /* there the rounding of the uniforms shows, as the chart means to show */
        const double right = -expm1(-exp(-noise));
        if (fabs(tail - right) > 2e-3 * right)
            fail_msg("%s: noise %g has tail %g, not %g", name, noise, tail, right);
        points++;
    }
    assert_int_equal(ends, NOISE_COUNT);
    assert_true(points > 200);
    free(data);
}

static void test_report(void **state) {
    (void)state;
    char page[128];
    snprintf(page, sizeof page, "%s/page.html", folder);
    char *copy = file_text(made_up, NULL);
    file_write(in_folder("results.json"), copy, strlen(copy));
    free(copy);
    struct program_run run = program_run((const char *[]){"--report", folder, "--out", page, NULL});
    if (run.exit_code != 0)
        fail_msg("exit %d: %s", run.exit_code, run.errors);
    char *html = text_in("page.html");
    assert_has(html, "1 of 56 cells went against the profile");
    assert_has(html, "1 accepted cell has no valid time");
    assert_has(html, "row 3 &lt;drops&gt; a token &amp; keeps");
    assert_has_not(html, "<drops>");
    assert_has(html, "bench_topp --profile made_up --device cpu --case "
                     "&#39;topp/exact/normal/vocab:32000/batch:1/p:0.9/device:cpu&#39;");
    assert_has(html, "There is no receipt");
    assert_has(html, "prefers-color-scheme:dark");
    assert_has(html, "<svg");
    assert_has_not(html, "Not drawn");
    assert_has_not(html, "<link rel=\"stylesheet\"");
    /* Verdicts stand before charts, charts before cells. */
    assert_true(strstr(html, "id=\"verdict\"") < strstr(html, "id=\"charts\""));
    assert_true(strstr(html, "id=\"charts\"") < strstr(html, "id=\"cells-section\""));
    free(html);
    program_free(&run);
}

/* The page's command of a cell of one's own file and profile runs that cell again. */
static void test_report_own_files(void **state) {
    (void)state;
    char rows[128], profile[128], out[128], again[128], command[2400];
    snprintf(rows, sizeof rows, "%s/of my own", folder);
    assert_int_equal(mkdir(rows, 0777), 0);
    snprintf(rows, sizeof rows, "%s/of my own/rows.npy", folder);
    snprintf(profile, sizeof profile, "%s/mine.json", folder);
    snprintf(out, sizeof out, "%s/own", folder);
    snprintf(again, sizeof again, "%s/own-again", folder);
    float *logits = calloc(4 * 50, sizeof *logits);
    assert_non_null(logits);
    for (int i = 0; i < 200; i++)
        logits[i] = (float)(i * 37 % 50) * 0.1f;
    struct tb_error error = TB_ERROR_INIT;
    assert_int_equal(npy_write(rows, logits, 4, 50, 50, &error), TB_OK);
    free(logits);
    char *smoke = file_text(TOPP_SOURCE_DIR "/profiles/smoke.json", NULL);
    file_write(profile, smoke, strlen(smoke));
    free(smoke);
    struct program_run run =
        program_run((const char *[]){"--sweep", "--device", "cpu", "--profile", profile, "--input",
                                     rows, "--filter", "topp/exact", "--out", out, NULL});
    if (run.exit_code != 0)
        fail_msg("exit %d: %s", run.exit_code, run.errors);
    program_free(&run);
    run = program_run((const char *[]){"--report", out, NULL});
    assert_int_equal(run.exit_code, 0);
    program_free(&run);
    char *html = text_in("own/report.html");
    const char *at = strstr(html, "<code>bench_topp ");
    assert_non_null(at);
    const char *end = strstr(at, "</code>");
    snprintf(command, sizeof command, "'%s' ", TOPP_PROGRAM);
    for (at += strlen("<code>bench_topp "); at < end; at++) {
        const bool quote = !strncmp(at, "&#39;", 5);
        const size_t length = strlen(command);
        command[length] = quote ? '\'' : *at;
        command[length + 1] = '\0';
        at += quote ? 4 : 0;
    }
    free(html);
    assert_has(command, " --input '");
    snprintf(command + strlen(command), sizeof command - strlen(command),
             " --out '%s' >/dev/null 2>&1", again);
    if (system(command) != 0)
        fail_msg("does not run again: %s", command);
}

/* Broken files are refused with their line, before anything is written. */
static void test_broken(void **state) {
    (void)state;
    size_t length = 0;
    char *text = file_text(made_up, &length);
    const struct {
        const char *name;
        size_t keep;
        const char *says;
    } cases[] = {
        {"empty", 0, "no whole JSON document"},
        {"half a cell", length / 2, "no whole cell"},
        {"no closing bracket", length - 4, "ends early"},
        {"not ours", 1, "no whole JSON document"},
    };
    char path[256], dir[256];
    snprintf(path, sizeof path, "%s/broken.json", folder);
    snprintf(dir, sizeof dir, "%s/never", folder);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        file_write(path, text, cases[i].keep);
        struct program_run run = program_run((const char *[]){"--plot", path, "--out", dir, NULL});
        assert_int_equal(run.exit_code, 2);
        assert_has(run.errors, "broken.json");
        assert_has(run.errors, cases[i].says);
        assert_false(file_exists(dir));
        program_free(&run);
    }
    free(text);
}

/* No gnuplot: a clear message, data files and page are written, exit 3. */
static void test_no_gnuplot(void **state) {
    (void)state;
    const char *now = getenv("PATH");
    char *path = strdup(now ? now : "/usr/bin:/bin"), dir[128], page[128];
    assert_non_null(path);
    snprintf(dir, sizeof dir, "%s/bare", folder);
    snprintf(page, sizeof page, "%s/bare.html", folder);
    setenv("PATH", folder, 1);
    struct program_run run = program_run((const char *[]){"--plot", made_up, "--out", dir, NULL});
    struct program_run report =
        program_run((const char *[]){"--report", folder, "--out", page, NULL});
    setenv("PATH", path, 1);
    free(path);
    assert_int_equal(run.exit_code, 3);
    assert_has(run.errors, "gnuplot cannot be run");
    assert_true(file_exists(in_folder("bare/batch-topp-normal.tsv")));
    assert_false(file_exists(in_folder("bare/batch-topp-normal.svg")));
    assert_int_equal(report.exit_code, 3);
    char *html = text_in("bare.html");
    assert_has(html, "Not drawn");
    assert_has(html, "</html>");
    free(html);
    program_free(&run);
    program_free(&report);
}

int main(void) {
    if (system("gnuplot --version >/dev/null 2>&1") != 0) {
        printf("skipped: no gnuplot here (ci/setup installs it)\n");
        return 77;
    }
    scratch_make(folder, sizeof folder);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_chart),
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_zero),
        cmocka_unit_test(test_locale),
        cmocka_unit_test(test_literal),
        cmocka_unit_test(test_history),
        cmocka_unit_test(test_noise_data),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_report_own_files),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_no_gnuplot),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_remove(folder);
    return failed;
}
