/* Every chart of the run that an H200 recorded and that the gallery shows. Skipped without gnuplot.
 */
#include "program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What each kind of chart must say, whatever the family, and how many there must be. */
static const struct {
    const char *kind;
    int least;
    const char *parts[6];
} recorded_kinds[] = {
    {"/latency-", 6, {"Latency against vocabulary", "vocabulary (tokens)", "time per call (µs)"}},
    {"/batch-", 8, {"Latency against batch", "batch (rows)", "its 95 % interval"}},
    {"/p-", 4, {"Latency against p", "p (probability mass to keep)", "patched_fine"}},
    {"/floor-", 6, {"Distance from the memory floor", "the floor", "exact", "stock", "sort"}},
    {"/speedup-topp", 6, {"Speed-up of exact over stock", "vocabulary (tokens)"}},
    {"/speedup-gumbel", 2, {"Speed-up of murmur over log", "batch (rows)"}},
    {"/samples-", 8, {"Distribution of samples", "median of its draw", "L2 "}},
    {"/surplus.svg", 1, {"Tokens kept beyond the oracle", "tokens of the worst row", "stock"}},
    {"/noise_tail.svg",
     1,
     {"Tail of the Gumbel noise", "log1p", "fp64", "murmur", "noise g (logits)"}},
};
enum { RECORDED_KINDS = sizeof recorded_kinds / sizeof recorded_kinds[0] };

static void check_recorded(const char *path, const char *svg, int seen[RECORDED_KINDS]) {
    bool known = false;
    for (int i = 0; i < RECORDED_KINDS; i++) {
        if (!strstr(path, recorded_kinds[i].kind))
            continue;
        known = true;
        seen[i]++;
        for (int k = 0; k < 6 && recorded_kinds[i].parts[k]; k++)
            if (!strstr(svg, recorded_kinds[i].parts[k]))
                fail_msg("%s does not say '%s'", path, recorded_kinds[i].parts[k]);
    }
    if (!known)
        fail_msg("%s is of no kind that this test knows", path);
}

/* The run that the gallery shows, recorded on an H200: every chart, without a word from gnuplot. */
static void test_recorded_run(void **state) {
    (void)state;
    static const char from[] = TOPP_BINARY_DIR "/h200/default";
    char dir[128];
    snprintf(dir, sizeof dir, "%s/h200", scratch);
    struct program_run run = program_run(WORDS("--plot", from, "--out", dir));
    if (run.exit_code != 0 || *run.errors)
        fail_msg("exit %d: %s", run.exit_code, run.errors);
    int seen[RECORDED_KINDS] = {0};
    char *rest = run.output;
    for (char *path; (path = strsep(&rest, "\n")) && *path;) {
        char *svg = file_text(path, NULL);
        if (!strstr(svg, "NVIDIA H200 (cuda), 20"))
            fail_msg("%s does not say where and when it was measured", path);
        if (!strstr(svg, "</svg>"))
            fail_msg("%s is not whole", path);
        check_recorded(path, svg, seen);
        free(svg);
    }
    for (int i = 0; i < RECORDED_KINDS; i++)
        if (seen[i] < recorded_kinds[i].least)
            fail_msg("%d charts of %s, not %d", seen[i], recorded_kinds[i].kind,
                     recorded_kinds[i].least);
    program_free(&run);
}

int main(void) {
    if (!gnuplot_here())
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_run),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_drop);
}
