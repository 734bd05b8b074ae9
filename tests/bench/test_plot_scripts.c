/* The scripts of plots/ run alone, as their README says: what is joined, left out and shown as it
 * is written. */
#include "program.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runs one script as its README says; fails on any word on standard error. */
static char *draw_alone(const char *script, const char *data, const char *out, const char *words) {
    char command[1600], out_path[256], errors[256];
    snprintf(out_path, sizeof out_path, "%s/%s", scratch, out);
    snprintf(errors, sizeof errors, "%s/errors", scratch);
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

static const char head[] =
    "kind\tkernel\tfamily\tvocab\tbatch\tp\tp_text\ttemperature\tl2\tlaunch\t"
    "timed\tverdict\tmedian_ns\tci_low_ns\tci_high_ns\tratio_to_floor\n";

struct row {
    int batch;
    const char *verdict, *median;
};

static void write_rows(const char *name, const char *kernel, const char *p, const struct row *rows,
                       size_t count) {
    FILE *file = fopen(scratch_path(name), "w");
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
    char *whole = draw_alone("batch", scratch_path("whole.tsv"), "whole.svg", "");
    rows[2] = (struct row){4, "rejected", "NA"};
    write_rows("gap.tsv", "stock", "0.9", rows, 5);
    char *gap = draw_alone("batch", scratch_path("gap.tsv"), "gap.svg", "");
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
    char *svg = draw_alone("batch", scratch_path("zero.tsv"), "zero.svg", "");
    assert_has(svg, "0 is zero: left out");
    assert_has(svg, ">32768<");
    assert_true(segments(svg, "rgb(213,  94,   0)") >= 10);
    free(svg);
}

/* plt-03: names with _ and ^ are shown as they are written. */
static void test_literal(void **state) {
    (void)state;
    const struct row rows[] = {{1, "accepted", "1000"}, {2, "accepted", "2000"}};
    write_rows("literal.tsv", "topp_split_v1", "0.9^2", rows, 2);
    static const char *const scripts[] = {"batch", "latency", "p"};
    for (int i = 0; i < 3; i++) {
        char *svg = draw_alone(scripts[i], scratch_path("literal.tsv"), "literal.svg", "");
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

int main(void) {
    if (!gnuplot_here())
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_zero),
        cmocka_unit_test(test_literal),
        cmocka_unit_test(test_history),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_drop);
}
