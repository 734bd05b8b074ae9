/* bench_topp --report: the page of a run, and that its command runs a cell again. */
#include "program.h"

#include "bench/inputs.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char made_up[] = TOPP_SOURCE_DIR "/tests/data/plot/results.json";

static int copy_made_up(void **state) {
    const int failed = scratch_make(state);
    char *text = file_text(made_up, NULL);
    file_write(scratch_path("results.json"), text, strlen(text));
    free(text);
    return failed;
}

static void test_report(void **state) {
    (void)state;
    char page[128];
    snprintf(page, sizeof page, "%s/page.html", scratch);
    program_expect("--report", WORDS("--report", scratch, "--out", page), 0, NULL);
    char *html = scratch_text("page.html");
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
}

/* The page's command of a cell of one's own file and profile runs that cell again. */
static void test_report_own_files(void **state) {
    (void)state;
    char rows[128], profile[128], out[128], again[128], command[2400];
    snprintf(rows, sizeof rows, "%s/of my own", scratch);
    assert_int_equal(mkdir(rows, 0777), 0);
    snprintf(rows, sizeof rows, "%s/of my own/rows.npy", scratch);
    snprintf(profile, sizeof profile, "%s/mine.json", scratch);
    snprintf(out, sizeof out, "%s/own", scratch);
    snprintf(again, sizeof again, "%s/own-again", scratch);
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
    program_expect("--sweep",
                   WORDS("--sweep", "--device", "cpu", "--profile", profile, "--input", rows,
                         "--filter", "topp/exact", "--out", out),
                   0, NULL);
    program_expect("--report", WORDS("--report", out), 0, NULL);
    char *html = scratch_text("own/report.html");
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

/* No gnuplot: the page is written without charts, exit 3. */
static void test_no_gnuplot(void **state) {
    (void)state;
    char page[128];
    snprintf(page, sizeof page, "%s/bare.html", scratch);
    struct program_run run = program_run_alone(WORDS("--report", scratch, "--out", page));
    assert_int_equal(run.exit_code, 3);
    char *html = scratch_text("bare.html");
    assert_has(html, "Not drawn");
    assert_has(html, "</html>");
    free(html);
    program_free(&run);
}

int main(void) {
    if (!gnuplot_here())
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_report_own_files),
        cmocka_unit_test(test_no_gnuplot),
    };
    return cmocka_run_group_tests(tests, copy_made_up, scratch_drop);
}
