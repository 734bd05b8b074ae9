/* bench_topp --plot: what every chart says, and what happens to files that it cannot read and
 * without gnuplot. */
#include "program.h"

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

static const char made_up[] = TOPP_SOURCE_DIR "/tests/data/plot/results.json";

/* What each chart of the made-up run must say. */
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
    snprintf(dir, sizeof dir, "%s/charts", scratch);
    struct program_run run = program_run(WORDS("--plot", made_up, "--out", dir));
    if (run.exit_code != 0 || *run.errors)
        fail_msg("exit %d: %s", run.exit_code, run.errors);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        char name[200];
        snprintf(name, sizeof name, "charts/%s.svg", expected[i].name);
        assert_has(run.output, name);
        char *svg = scratch_text(name);
        for (size_t k = 0; k < 8 && expected[i].parts[k]; k++)
            assert_has(svg, expected[i].parts[k]);
        assert_has(svg, "Test_Machine^2 (cpu), 2026-01-31 12:34 UTC, profile made_up");
        assert_has(svg, "</svg>");
        free(svg);
        snprintf(name, sizeof name, "charts/%s.png", expected[i].name);
        size_t length = 0;
        char *png = file_text(scratch_path(name), &length);
        assert_true(length > 4000);
        assert_memory_equal(png, "\x89PNG\r\n", 6);
        free(png);
    }
    program_free(&run);
}

/* plt-02: data and picture are the same under a comma locale, installed or not. */
static void test_locale(void **state) {
    (void)state;
    static const char *const names[] = {"C", "ru_RU.UTF-8", "de_DE.UTF-8", "xx_XX.UTF-8"};
    char *data[4], *svg[4], dir[128], name[200];
    for (int i = 0; i < 4; i++) {
        setenv("LC_ALL", names[i], 1);
        snprintf(dir, sizeof dir, "%s/locale%d", scratch, i);
        struct program_run run = program_run(WORDS("--plot", made_up, "--out", dir));
        assert_int_equal(run.exit_code, 0);
        assert_string_equal(run.errors, "");
        program_free(&run);
        snprintf(name, sizeof name, "locale%d/batch-topp-normal.tsv", i);
        data[i] = scratch_text(name);
        snprintf(name, sizeof name, "locale%d/batch-topp-normal.svg", i);
        svg[i] = scratch_text(name);
        assert_string_equal(data[i], data[0]);
        assert_string_equal(svg[i], svg[0]);
    }
    unsetenv("LC_ALL");
    for (int i = 0; i < 4; i++) {
        free(data[i]);
        free(svg[i]);
    }
}

/* The tail of every variant follows the true one where its words are fine enough, and ends where
 * its greatest noise is. */
static void test_noise_data(void **state) {
    (void)state;
    char dir[128];
    snprintf(dir, sizeof dir, "%s/noise", scratch);
    program_expect("--plot", WORDS("--plot", made_up, "--out", dir), 0, NULL);
    char *data = scratch_text("noise/noise_tail.tsv"), *rest = data;
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
    snprintf(path, sizeof path, "%s/broken.json", scratch);
    snprintf(dir, sizeof dir, "%s/never", scratch);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        file_write(path, text, cases[i].keep);
        struct program_run run = program_run(WORDS("--plot", path, "--out", dir));
        assert_int_equal(run.exit_code, 2);
        assert_has(run.errors, "broken.json");
        assert_has(run.errors, cases[i].says);
        assert_false(file_exists(dir));
        program_free(&run);
    }
    free(text);
}

/* No gnuplot: a clear message, data files are written, exit 3. */
static void test_no_gnuplot(void **state) {
    (void)state;
    char dir[128];
    snprintf(dir, sizeof dir, "%s/bare", scratch);
    struct program_run run = program_run_alone(WORDS("--plot", made_up, "--out", dir));
    assert_int_equal(run.exit_code, 3);
    assert_has(run.errors, "gnuplot cannot be run");
    assert_true(file_exists(scratch_path("bare/batch-topp-normal.tsv")));
    assert_false(file_exists(scratch_path("bare/batch-topp-normal.svg")));
    program_free(&run);
}

int main(void) {
    if (!gnuplot_here())
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_chart), cmocka_unit_test(test_locale),
        cmocka_unit_test(test_noise_data),  cmocka_unit_test(test_broken),
        cmocka_unit_test(test_no_gnuplot),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_drop);
}
