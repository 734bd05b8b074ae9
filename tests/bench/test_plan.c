/* Plans: the shipped profiles multiplied out, names, order, choice, expectations. */
#include "bench/sweep.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char profile_dir[] = TOPP_SOURCE_DIR "/profiles";
static const char captured_dir[] = TOPP_SOURCE_DIR "/profiles/captured";

static struct plan_options options_of(const char *profile, enum kernel_device device) {
    return (struct plan_options){.profile = profile,
                                 .profile_dir = profile_dir,
                                 .captured_dir = captured_dir,
                                 .device = device};
}

static struct plan load(const struct plan_options *options) {
    struct plan plan;
    struct tb_error error = TB_ERROR_INIT;
    char text[1200];
    if (plan_load(options, &plan, &error) != TB_OK)
        fail_msg("%s: %s", options->profile, tb_error_text(&error, text, sizeof text));
    return plan;
}

static const struct {
    const char *name;
    enum kernel_device device;
    size_t cells;
} shipped[] = {
    {"smoke", KERNEL_DEVICE_CPU, 68},           {"default-cpu", KERNEL_DEVICE_CPU, 166},
    {"default-cuda", KERNEL_DEVICE_CUDA, 1608}, {"full", KERNEL_DEVICE_CPU, 3584},
    {"forced", KERNEL_DEVICE_CPU, 612},         {"masked", KERNEL_DEVICE_CPU, 356},
    {"ties", KERNEL_DEVICE_CPU, 204},           {"adjacent", KERNEL_DEVICE_CPU, 78},
    {"ends", KERNEL_DEVICE_CPU, 216},           {"gumbel", KERNEL_DEVICE_CPU, 336},
    {"hazard", KERNEL_DEVICE_CPU, 1338},
};
enum { SHIPPED = sizeof shipped / sizeof shipped[0] };

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct cell *)a)->name, ((const struct cell *)b)->name);
}

static void test_counts_and_unique_names(void **state) {
    (void)state;
    for (size_t i = 0; i < SHIPPED; i++) {
        const struct plan_options options = options_of(shipped[i].name, shipped[i].device);
        struct plan plan = load(&options);
        assert_string_equal(plan.profile_name, shipped[i].name);
        assert_false(plan.unfrozen);
        if (plan.count != shipped[i].cells)
            fail_msg("%s: %zu cells", shipped[i].name, plan.count);
        qsort(plan.cells, plan.count, sizeof *plan.cells, by_name);
        for (size_t k = 1; k < plan.count; k++)
            assert_string_not_equal(plan.cells[k - 1].name, plan.cells[k].name);
        plan_free(&plan);
    }
}

static bool same_input(const struct cell *a, const struct cell *b) {
    return !strcmp(a->family.text, b->family.text) && a->vocab == b->vocab &&
           a->batch == b->batch && a->stride == b->stride && a->seed == b->seed;
}

/* Cells of one input stand together: none comes back after another input. In it p never returns
 * to an earlier value while the kind stays. */
static void test_order(void **state) {
    (void)state;
    static const char *const profiles[] = {"smoke", "default-cpu", "hazard", "gumbel"};
    for (size_t i = 0; i < 4; i++) {
        const struct plan_options options = options_of(profiles[i], KERNEL_DEVICE_CPU);
        struct plan plan = load(&options), again = load(&options);
        assert_memory_equal(plan.cells, again.cells, plan.count * sizeof *plan.cells);
        for (size_t k = 1; k < plan.count; k++) {
            const struct cell *cell = &plan.cells[k];
            if (same_input(cell - 1, cell) || cell->kind == CELL_GUMBEL_STATISTIC)
                continue;
            for (size_t j = k - 1; j-- > 0;)
                assert_false(same_input(&plan.cells[j], cell));
        }
        for (size_t k = 2; k < plan.count; k++)
            for (size_t j = k - 1; j-- > 0 && same_input(&plan.cells[j], &plan.cells[k]);)
                if (plan.cells[k].kind == CELL_TOPP && plan.cells[j].p == plan.cells[k].p)
                    assert_true(plan.cells[k - 1].p == plan.cells[k].p);
        plan_free(&again);
        plan_free(&plan);
    }
}

/* Each printed name, with what Google Benchmark hangs on it, brings back exactly its cell. */
static void test_paste_back(void **state) {
    (void)state;
    static const char *const endings[] = {"",
                                          "/iterations:1",
                                          "/iterations:1/repeats:3/manual_time",
                                          "/repeats:5/manual_time_median",
                                          "/min_time:0.500/min_warmup_time:0.1/real_time_stddev",
                                          "/threads:2/process_time/real_time",
                                          "_mean"};
    static const char *const profiles[] = {"smoke", "gumbel"};
    for (size_t p = 0; p < 2; p++) {
        struct plan_options options = options_of(profiles[p], KERNEL_DEVICE_CPU);
        struct plan all = load(&options);
        for (size_t i = 0; i < all.count; i += 3) {
            char name[CELL_NAME_BYTES + 80];
            snprintf(name, sizeof name, "%s%s", all.cells[i].name, endings[i % 7]);
            options.case_name = name;
            struct plan one = load(&options);
            assert_int_equal(one.count, 1);
            assert_memory_equal(one.cells, &all.cells[i], sizeof one.cells[0]);
            plan_free(&one);
        }
        plan_free(&all);
    }
}

static void test_names(void **state) {
    (void)state;
    static const struct {
        const char *profile;
        enum kernel_device device;
        const char *name;
    } cases[] = {
        {"smoke", KERNEL_DEVICE_CPU, "topp/stock/normal/vocab:1000/batch:1/p:0.5/device:cpu"},
        {"smoke", KERNEL_DEVICE_CPU,
         "topp/exact/captured=smollm2_135m_decode/vocab:49152/batch:4/p:0.9/device:cpu"},
        {"smoke", KERNEL_DEVICE_CUDA,
         "topp/exact/normal/vocab:1000/batch:1/p:0.9/device:cuda/l2:warm/launch:graph"},
        {"default-cuda", KERNEL_DEVICE_CUDA,
         "topp/floor/peaked/vocab:128256/batch:64/p:0.95/device:cuda/l2:cold/launch:graph"},
        {"default-cuda", KERNEL_DEVICE_CUDA,
         "topp/sort/captured=smollm2_135m_decode/vocab:49152/batch:64/p:0.9/device:cuda/l2:warm/"
         "launch:stream"},
        {"gumbel", KERNEL_DEVICE_CPU,
         "gumbel/log1p/peaked/vocab:50257/batch:64/temperature:0.6/device:cpu"},
        {"gumbel", KERNEL_DEVICE_CPU, "gumbel/log/statistic=heavy_tail/device:cpu"},
        {"gumbel", KERNEL_DEVICE_CUDA, "gumbel/murmur/statistic=streams/device:cuda"},
        {"ends", KERNEL_DEVICE_CPU, "topp/exact/peaked/vocab:1000/batch:4/p:1e-6/device:cpu"},
        {"ends", KERNEL_DEVICE_CPU, "topp/exact/peaked/vocab:1000/batch:4/p:1-2^-24/device:cpu"},
        {"hazard", KERNEL_DEVICE_CPU,
         "topp/exact/hazard=nan/vocab:997/batch:4/stride:1024/p:0.9/device:cpu"},
        {"forced", KERNEL_DEVICE_CPU,
         "topp/patched/forced=1e9/0.6@tail/vocab:50257/batch:4/p:0.95/device:cpu"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct plan_options options = options_of(cases[i].profile, cases[i].device);
        options.case_name = cases[i].name;
        struct plan plan = load(&options);
        assert_int_equal(plan.count, 1);
        assert_string_equal(plan.cells[0].name, cases[i].name);
        plan_free(&plan);
    }
}

static void test_draws_and_timing(void **state) {
    (void)state;
    for (size_t i = 0; i < SHIPPED; i++) {
        const struct plan_options options = options_of(shipped[i].name, shipped[i].device);
        struct plan plan = load(&options);
        for (size_t k = 0; k < plan.count; k++) {
            const struct cell *cell = &plan.cells[k];
            const bool hazard = family_is_hazard(&cell->family);
            if (cell->kind == CELL_GUMBEL_STATISTIC || (hazard && cell->kind != CELL_TOPP)) {
                assert_false(cell->timed);
                assert_int_equal(cell->draws, 1);
                continue;
            }
            assert_true(!hazard || !cell->timed);
            assert_true(cell->batch < 16 || cell->draws == 1);
            assert_true(cell->stride >= cell->vocab);
            assert_true((cell->l2 == L2_NONE) == (shipped[i].device == KERNEL_DEVICE_CPU));
            assert_true(cell->expect == EXPECT_ACCEPT || cell->expect_why[0]);
        }
        plan_free(&plan);
    }
    const struct plan_options options = options_of("default-cpu", KERNEL_DEVICE_CPU);
    struct plan plan = load(&options);
    for (size_t k = 0; k < plan.count; k++)
        assert_int_equal(plan.cells[k].draws, plan.cells[k].batch < 16 ? 4 : 1);
    plan_free(&plan);
}

/* What the issue asks of both default profiles: every variant, real rows. */
static void test_defaults_are_complete(void **state) {
    (void)state;
    for (int device = KERNEL_DEVICE_CPU; device <= KERNEL_DEVICE_CUDA; device++) {
        const struct plan_options options = options_of("default", (enum kernel_device)device);
        struct plan plan = load(&options);
        static const char *const kernels[] = {
            "topp/stock/", "topp/patched/", "topp/patched_fine/", "topp/sort/",   "topp/exact/",
            "topp/floor/", "gumbel/log/",   "gumbel/log1p/",      "gumbel/fp64/", "gumbel/murmur/"};
        static const char *const inputs[] = {"normal/", "peaked/", "captured="};
        assert_string_equal(plan.device, device ? "cuda" : "cpu");
        for (size_t k = 0; k < 10; k++)
            for (size_t f = device || k < 6 ? 0 : 1; f < 3; f++) {
                char start[80];
                snprintf(start, sizeof start, "%s%s", kernels[k], inputs[f]);
                size_t found = 0;
                for (size_t i = 0; i < plan.count; i++)
                    found += !strncmp(plan.cells[i].name, start, strlen(start));
                if (!found)
                    fail_msg("%s has no cell %s", plan.profile_name, start);
            }
        plan_free(&plan);
    }
}

static void test_expectations(void **state) {
    (void)state;
    static const struct {
        const char *profile, *name;
        enum expectation expect;
    } cases[] = {
        {"forced", "topp/stock/forced=1e9@13/vocab:1000/batch:1/p:0.95/device:cpu", EXPECT_REJECT},
        {"forced", "topp/patched/forced=1e9@13/vocab:1000/batch:1/p:0.95/device:cpu",
         EXPECT_ACCEPT},
        {"forced", "topp/exact/forced=3e38@last/vocab:151936/batch:16/p:0.95/device:cpu",
         EXPECT_ACCEPT},
        {"ties", "topp/stock/ties=plateau/vocab:40000/batch:64/p:0.4/device:cpu", EXPECT_REJECT},
        {"ties", "topp/patched/ties=step/vocab:40000/batch:64/p:0.5/device:cpu", EXPECT_REJECT},
        {"ties", "topp/patched_fine/ties=step/vocab:40000/batch:64/p:0.5/device:cpu",
         EXPECT_ACCEPT},
        {"ties", "topp/exact/ties=plateau/vocab:40000/batch:64/p:0.4/device:cpu", EXPECT_ACCEPT},
        {"smoke", "topp/stock/normal/vocab:1000/batch:1/p:0.5/device:cpu", EXPECT_EITHER},
        {"smoke", "topp/exact/normal/vocab:1000/batch:1/p:0.5/device:cpu", EXPECT_ACCEPT},
        {"gumbel", "gumbel/log/statistic=heavy_tail/device:cpu", EXPECT_REJECT},
        {"gumbel", "gumbel/log/statistic=whole_vocabulary/device:cpu", EXPECT_ACCEPT},
        {"gumbel", "gumbel/log1p/statistic=heavy_tail/device:cpu", EXPECT_ACCEPT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct plan_options options = options_of(cases[i].profile, KERNEL_DEVICE_CPU);
        options.case_name = cases[i].name;
        struct plan plan = load(&options);
        if (plan.cells[0].expect != cases[i].expect)
            fail_msg("%s: %s", cases[i].name, expectation_name(plan.cells[0].expect));
        assert_true(plan.cells[0].expect != EXPECT_EITHER || plan.cells[0].either_share > 0);
        plan_free(&plan);
    }
}

static void test_choices(void **state) {
    (void)state;
    struct plan_options options = options_of("smoke", KERNEL_DEVICE_CPU);
    options.filter = "^topp/(sort|exact)/captured.*batch:4";
    struct plan plan = load(&options);
    assert_int_equal(plan.count, 2);
    plan_free(&plan);
    options.filter = NULL;
    options.have_seed = true;
    options.seed = 42; /* the profile's own */
    plan = load(&options);
    assert_false(plan.unfrozen);
    plan_free(&plan);
    options.seed = 43;
    plan = load(&options);
    assert_true(plan.unfrozen);
    assert_int_equal(plan.cells[5].seed, 43);
    plan_free(&plan);
}

static void test_users_family(void **state) {
    (void)state;
    struct plan_options options = options_of("default-cpu", KERNEL_DEVICE_CPU);
    options.family = "captured=smollm2_135m_decode";
    struct plan plan = load(&options);
    assert_true(plan.unfrozen);
    for (size_t i = 0; i < plan.count; i++) {
        assert_string_equal(plan.cells[i].family.text, options.family);
        assert_int_equal(plan.cells[i].vocab, 49152);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(plan.cells[k].name, plan.cells[i].name);
    }
    assert_int_equal(plan.count, 3 * 3 * 6 + 2 * 4);
    plan_free(&plan);
    options.family = "normal";
    assert_int_equal(plan_load(&options, &plan, NULL), TB_USAGE);
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *name, *profile;
        enum kernel_device device;
        const char *filter, *case_name, *captured;
        enum tb_status status;
        const char *says;
    } cases[] = {
        {"nothing matches", "smoke", KERNEL_DEVICE_CPU, "no_such", NULL, captured_dir, TB_USAGE,
         "matches none of the 68 cells"},
        {"bad regex", "smoke", KERNEL_DEVICE_CPU, "a(", NULL, captured_dir, TB_USAGE,
         "regular expression: "},
        {"near miss", "smoke", KERNEL_DEVICE_CPU, NULL,
         "topp/exakt/normal/vocab:1000/batch:1/p:0.5/device:cpu", captured_dir, TB_USAGE,
         "nearest: `topp/exact/normal/vocab:1000/batch:1/p:0.5/device:cpu`"},
        {"empty case", "smoke", KERNEL_DEVICE_CPU, NULL, "", captured_dir, TB_USAGE, "nearest: `"},
        {"no profile", "smok", KERNEL_DEVICE_CPU, NULL, NULL, captured_dir, TB_USAGE,
         "here are: adjacent, default-cpu"},
        {"no file", "/nonexistent/x.json", KERNEL_DEVICE_CPU, NULL, NULL, captured_dir,
         TB_UNREADABLE, "cannot be opened"},
        {"no ending", "./smoke", KERNEL_DEVICE_CPU, NULL, NULL, captured_dir, TB_USAGE, ".json"},
        {"wrong device", "default-cuda", KERNEL_DEVICE_CPU, NULL, NULL, captured_dir, TB_USAGE,
         "use --device cuda"},
        {"no captured rows", "smoke", KERNEL_DEVICE_CPU, NULL, NULL, "/nonexistent", TB_UNREADABLE,
         "smollm2_135m_decode.npy"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct plan plan;
        struct tb_error error = TB_ERROR_INIT;
        struct plan_options options = options_of(cases[i].profile, cases[i].device);
        options.filter = cases[i].filter;
        options.case_name = cases[i].case_name;
        options.captured_dir = cases[i].captured;
        const enum tb_status status = plan_load(&options, &plan, &error);
        if (status != cases[i].status || !strstr(error.message, cases[i].says))
            fail_msg("%s: status %d `%s`", cases[i].name, status, error.message);
        assert_null(plan.cells);
        assert_true(error.file[0]);
    }
    struct plan_options options = options_of("default-cuda", KERNEL_DEVICE_CPU);
    options.any_device = true;
    struct plan plan = load(&options);
    assert_string_equal(plan.device, "cuda");
    plan_free(&plan);
}

/* Faults that only show once the matrix is multiplied out. */
static void test_contradictions(void **state) {
    (void)state;
    static const char head[] =
        "{\"schema\": \"topp-bench.profile/1\", \"name\": \"x\", \"device\": \"any\", \"seed\": 1,"
        "\"limits\": {\"max_vocab\": 1000, \"max_batch\": 4, \"case_seconds\": 1,"
        "\"artifact_bytes\": 2000000}, \"timing\": {\"blocks\": 1, \"min_samples\": 1,"
        "\"max_samples\": 1, \"precision\": 1, \"block_seconds\": 1, \"warmup_seconds\": 0,"
        "\"draws\": 1},\n\"matrix\": [";
    static const char entry[] = "{\"kind\": \"topp\", \"kernels\": [\"sort\"], \"families\": "
                                "[\"normal\"], \"vocab\": [100], \"batch\": [1], \"p\": [0.5]}";
    static const char expect[] = "{\"kernel\": \"%s\", \"family\": \"*\", \"expect\": \"either\", "
                                 "\"why\": \"w\"}";
    char text[4096], one[256], two[256], path[] = "/tmp/topp_plan_XXXXXX.json";
    const int file = mkstemps(path, 5);
    close(file);
    snprintf(one, sizeof one, expect, "sort");
    snprintf(two, sizeof two, expect, "exact");
    for (int i = 0; i < 4; i++) {
        static const char *const says[] = {"stands twice for the cell topp/sort/normal",
                                           "is met by no cell", "an earlier one takes them all",
                                           "past limits.max_vocab"};
        static const int lines[] = {2, 3, 4, 2};
        if (i == 0)
            snprintf(text, sizeof text, "%s%s,%s]}", head, entry, entry);
        else if (i == 1)
            snprintf(text, sizeof text, "%s%s],\n\"expect\": [%s]}", head, entry, two);
        else if (i == 2)
            snprintf(text, sizeof text, "%s%s],\n\"expect\": [%s,\n%s]}", head, entry, one, one);
        else
            snprintf(text, sizeof text,
                     "%s{\"kind\": \"topp\", \"kernels\": [\"sort\"], \"families\": "
                     "[\"captured=smollm2_135m_decode\"], \"batch\": [1], \"p\": [0.5]}]}",
                     head);
        FILE *stream = fopen(path, "w");
        fputs(text, stream);
        fclose(stream);
        struct plan plan;
        struct tb_error error = TB_ERROR_INIT;
        const struct plan_options options = options_of(path, KERNEL_DEVICE_CPU);
        if (plan_load(&options, &plan, &error) != TB_UNREADABLE ||
            !strstr(error.message, says[i]) || error.line != lines[i])
            fail_msg("%d: line %d `%s`", i, (int)error.line, error.message);
        assert_string_equal(error.file, path);
    }
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_and_unique_names),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_paste_back),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_draws_and_timing),
        cmocka_unit_test(test_defaults_are_complete),
        cmocka_unit_test(test_expectations),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_users_family),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_contradictions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
