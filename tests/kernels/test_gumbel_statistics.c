/* The statistics on the CPU variants: who is accepted, and that `log` is not on the heavy tail.
 * `test_gumbel_statistics --all` does not leave out the reference path's heavy tail. */
#include "tests/kernels/gumbel_support.h"

#include <string.h>

static bool run_all;

static struct statistic_size size_here(void) {
    struct statistic_size size = statistic_cpu;
    if (SANITIZED) {
        size.heavy_vocab = 2000;
        size.heavy_draws = 2000;
        size.whole_vocab = 200;
        size.whole_draws = 20000;
        size.stream_draws = 8192;
    }
    return size;
}

static void run_statistic(const char *name) {
    const struct gumbel_statistic *statistic = gumbel_statistic_find(name);
    assert_non_null(statistic);
    for (int v = 0; v < CPU_VARIANTS; v++) {
        if (!run_all && !strcmp(name, "heavy_tail") && !strcmp(cpu_variant[v], "fp64"))
            continue; /* the reference path: nothing new for its ten seconds */
        const struct statistic_size size = size_here();
        struct sampler sampler = {gumbel_find(cpu_variant[v], KERNEL_DEVICE_CPU), PLANT_NONE};
        struct statistic_result result;
        struct tb_error error = TB_ERROR_INIT;
        assert_int_equal(statistic->run(&size, sampler_draw, &sampler, &result, &error), TB_OK);
        print_message("%s %s: %s (power %.2g)\n", name, cpu_variant[v], result.why, result.power);
        const bool small = SANITIZED && !strcmp(name, "heavy_tail");
        const bool accepted = small || gumbel_statistic_expected(name, cpu_variant[v]);
        assert_int_equal(result.verdict, accepted ? GATE_ACCEPTED : GATE_REJECTED);
        if (!accepted) /* too few in the tail, not too many, and no accident */
            assert_true(result.z_tail < -10 && result.z_head > 10);
    }
}

static void test_heavy_tail(void **state) {
    (void)state;
    run_statistic("heavy_tail");
}

static void test_whole_vocabulary(void **state) {
    (void)state;
    run_statistic("whole_vocabulary");
}

static void test_greedy(void **state) {
    (void)state;
    run_statistic("greedy");
}

static void test_streams(void **state) {
    (void)state;
    run_statistic("streams");
}

int main(int argc, char **argv) {
    run_all = argc > 1 && !strcmp(argv[1], "--all");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heavy_tail),
        cmocka_unit_test(test_whole_vocabulary),
        cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
