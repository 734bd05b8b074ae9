/* Parts of plans: disjoint, together the whole, inputs in one piece, even, and always the same. */
#include "program.h"

#include "bench/shard.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const profiles[] = {"smoke",  "default", "forced", "ties",
                                       "masked", "gumbel",  "hazard", "full"};
static const int32_t counts[] = {1, 2, 3, 4, 7};

static bool load(const char *profile, enum kernel_device device, struct plan *plan) {
    struct tb_error error = TB_ERROR_INIT;
    const struct plan_options options = {.profile = profile,
                                         .profile_dir = TOPP_SOURCE_DIR "/profiles",
                                         .captured_dir = TOPP_SOURCE_DIR "/profiles/captured",
                                         .device = device};
    return plan_load(&options, plan, &error) == TB_OK;
}

struct cut {
    struct plan plan;
    int64_t *cost_ns;
    int32_t *shard_of;
};

static void cut_make(struct cut *cut, int32_t count) {
    struct tb_error error = TB_ERROR_INIT;
    cut->cost_ns = calloc(cut->plan.count, sizeof *cut->cost_ns);
    cut->shard_of = calloc(cut->plan.count, sizeof *cut->shard_of);
    assert_true(cut->cost_ns && cut->shard_of);
    shard_costs(&cut->plan, cut->cost_ns);
    assert_int_equal(shard_assign(&cut->plan, cut->cost_ns, count, cut->shard_of, &error), TB_OK);
}

static void cut_free(struct cut *cut) {
    free(cut->cost_ns);
    free(cut->shard_of);
    plan_free(&cut->plan);
}

/* Every pair of cells, not neighbours alone. */
static void check_inputs(const struct cut *cut, const char *name) {
    for (size_t i = 0; i < cut->plan.count; i++)
        for (size_t j = i + 1; j < cut->plan.count; j++)
            if (cut->shard_of[i] != cut->shard_of[j] &&
                cell_same_input(&cut->plan.cells[i], &cut->plan.cells[j]))
                fail_msg("%s: %s and %s share an input but no shard", name, cut->plan.cells[i].name,
                         cut->plan.cells[j].name);
}

static int64_t costliest_input(const struct cut *cut) {
    int64_t greatest = 0;
    for (size_t i = 0; i < cut->plan.count; i++) {
        int64_t sum = 0;
        for (size_t j = i; j < cut->plan.count &&
                           (j == i || cell_same_input(&cut->plan.cells[i], &cut->plan.cells[j]));
             j++)
            sum += cut->cost_ns[j];
        greatest = sum > greatest ? sum : greatest;
    }
    return greatest;
}

/* No shard is empty, and none has more than another by more than one input. */
static void check_balance(const struct cut *cut, int32_t count, const char *name) {
    int64_t least = INT64_MAX, most = 0;
    for (int32_t shard = 1; shard <= count; shard++) {
        int64_t sum = 0;
        size_t cells = 0;
        for (size_t i = 0; i < cut->plan.count; i++)
            if (cut->shard_of[i] == shard) {
                sum += cut->cost_ns[i];
                cells++;
            }
        if (cells == 0)
            fail_msg("%s: shard %d/%d is empty", name, shard, count);
        least = sum < least ? sum : least;
        most = sum > most ? sum : most;
    }
    if (most - least > costliest_input(cut))
        fail_msg("%s: %d shards from %lld to %lld ns", name, count, (long long)least,
                 (long long)most);
}

/* The shards as a run gets them: in order, each cell in one of them, all of one list. */
static void check_selected(const struct cut *cut, const char *profile, enum kernel_device device,
                           int32_t count) {
    size_t *next = calloc((size_t)count, sizeof *next);
    struct plan *parts = calloc((size_t)count, sizeof *parts);
    struct tb_error error = TB_ERROR_INIT;
    assert_true(next && parts);
    for (int32_t s = 0; s < count; s++) {
        assert_true(load(profile, device, &parts[s]));
        assert_int_equal(shard_select(&parts[s], s + 1, count, &error), TB_OK);
        assert_int_equal(parts[s].shard.index, s + 1);
        assert_int_equal(parts[s].shard.count, count);
        assert_int_equal(parts[s].shard.cells, cut->plan.count);
        assert_string_equal(parts[s].shard.list_sha256, parts[0].shard.list_sha256);
    }
    for (size_t i = 0; i < cut->plan.count; i++) {
        const int32_t s = cut->shard_of[i] - 1;
        assert_true(next[s] < parts[s].count);
        assert_string_equal(parts[s].cells[next[s]++].name, cut->plan.cells[i].name);
    }
    for (int32_t s = 0; s < count; s++) {
        assert_int_equal(next[s], parts[s].count);
        plan_free(&parts[s]);
    }
    free(parts);
    free(next);
}

static void test_profiles(void **state) {
    (void)state;
    int checked = 0;
    for (size_t p = 0; p < sizeof profiles / sizeof profiles[0]; p++)
        for (int device = 0; device < 2; device++)
            for (size_t n = 0; n < sizeof counts / sizeof counts[0]; n++) {
                const enum kernel_device kind = device ? KERNEL_DEVICE_CUDA : KERNEL_DEVICE_CPU;
                struct cut cut = {0};
                if (!load(profiles[p], kind, &cut.plan))
                    continue; /* a profile for the other device */
                if ((size_t)counts[n] > shard_inputs(&cut.plan)) {
                    plan_free(&cut.plan);
                    continue;
                }
                cut_make(&cut, counts[n]);
                if (n == 1) /* a pair of cells is the same for all counts */
                    check_inputs(&cut, profiles[p]);
                check_balance(&cut, counts[n], profiles[p]);
                check_selected(&cut, profiles[p], kind, counts[n]);
                cut_free(&cut);
                checked++;
            }
    assert_true(checked > 50);
}

enum { SYNTHETIC_INPUTS = 9, SYNTHETIC_KERNELS = 2 };

/* Inputs of different size, two kernels on each. */
static void make_synthetic(struct plan *plan, struct cell *cells) {
    struct tb_error error = TB_ERROR_INIT;
    *plan = (struct plan){.device = "cpu",
                          .timing = {.blocks = 2,
                                     .min_samples = 1,
                                     .max_samples = 10,
                                     .block_seconds = 0.01,
                                     .warmup_seconds = 0.001},
                          .cells = cells,
                          .count = (size_t)SYNTHETIC_INPUTS * SYNTHETIC_KERNELS};
    for (int i = 0; i < SYNTHETIC_INPUTS * SYNTHETIC_KERNELS; i++) {
        const int input = i / SYNTHETIC_KERNELS;
        cells[i] = (struct cell){.kind = CELL_TOPP,
                                 .topp = topp_find(i % 2 ? "sort" : "exact", KERNEL_DEVICE_CPU),
                                 .vocab = 1000 * (1 + input * 7 % SYNTHETIC_INPUTS),
                                 .batch = 4,
                                 .p = 0.9f,
                                 .draws = 2,
                                 .timed = true};
        cells[i].stride = cells[i].vocab;
        assert_int_equal(family_parse("normal", &cells[i].family, &error), TB_OK);
        snprintf(cells[i].name, sizeof cells[i].name, "cell%d", i);
    }
}

/* Known answers: a change of the rates or of the rule changes every shard of every sweep that is
 * under way, and must be meant. */
static void test_known_parts(void **state) {
    (void)state;
    static const int32_t known[SYNTHETIC_INPUTS] = {3, 2, 3, 1, 2, 1, 3, 2, 1};
    static const int64_t known_ns[2] = {2264000, 1864000};
    static const int64_t known_cuda_ns[2] = {23379332, 23245999};
    struct cell cells[SYNTHETIC_INPUTS * SYNTHETIC_KERNELS];
    int64_t cost_ns[SYNTHETIC_INPUTS * SYNTHETIC_KERNELS];
    int32_t shard_of[SYNTHETIC_INPUTS * SYNTHETIC_KERNELS];
    struct plan plan;
    struct tb_error error = TB_ERROR_INIT;
    make_synthetic(&plan, cells);
    snprintf(plan.device, sizeof plan.device, "cuda");
    shard_costs(&plan, cost_ns);
    assert_int_equal(cost_ns[0], known_cuda_ns[0]);
    assert_int_equal(cost_ns[1], known_cuda_ns[1]);
    snprintf(plan.device, sizeof plan.device, "cpu");
    shard_costs(&plan, cost_ns);
    assert_int_equal(cost_ns[0], known_ns[0]);
    assert_int_equal(cost_ns[1], known_ns[1]);
    assert_int_equal(shard_assign(&plan, cost_ns, 3, shard_of, &error), TB_OK);
    for (int i = 0; i < SYNTHETIC_INPUTS * SYNTHETIC_KERNELS; i++)
        if (shard_of[i] != known[i / SYNTHETIC_KERNELS])
            fail_msg("input %d: shard %d, not %d", i / SYNTHETIC_KERNELS, shard_of[i],
                     known[i / SYNTHETIC_KERNELS]);
    assert_int_equal(shard_select(&plan, 2, 3, &error), TB_OK);
    /* printf 'cell0\ncell1\n...\ncell17' | sha256sum */
    assert_string_equal(plan.shard.list_sha256,
                        "ddcd93c636c5f1a50ac67d75ab74debaf24c278ef10298aad6c15dd2df58ab70");
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *name, *says;
        int32_t index, count;
    } cases[] = {
        {"more shards than inputs", "at most 9 shards", 1, 10},
        {"index 0", "there is no shard 0 of 3", 0, 3},
        {"index past count", "there is no shard 4 of 3", 4, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cell cells[SYNTHETIC_INPUTS * SYNTHETIC_KERNELS];
        struct plan plan;
        struct tb_error error = TB_ERROR_INIT;
        make_synthetic(&plan, cells);
        const size_t before = plan.count;
        assert_int_equal(shard_select(&plan, cases[i].index, cases[i].count, &error), TB_USAGE);
        if (!strstr(error.message, cases[i].says))
            fail_msg("%s: '%s'", cases[i].name, error.message);
        assert_int_equal(plan.count, before);
        assert_int_equal(plan.shard.index, 0);
    }
}

/* --list shows what --sweep runs; costs stand before names, sums in lines that begin with '#'. */
static void test_list(void **state) {
    (void)state;
    size_t cells = 0, shards = 0;
    double sum = 0.0, all = 0.0;
    struct program_run run =
        program_run(WORDS("--list", "--profile", "smoke", "--device", "cpu", "--profile-dir",
                          TOPP_SOURCE_DIR "/profiles", "--shard", "2/3", "--cost"));
    struct program_run names =
        program_run(WORDS("--list", "--profile", "smoke", "--device", "cpu", "--profile-dir",
                          TOPP_SOURCE_DIR "/profiles", "--shard", "2/3"));
    assert_int_equal(run.exit_code, 0);
    for (char *line = strtok(run.output, "\n"); line; line = strtok(NULL, "\n")) {
        if (line[0] == '#') {
            int shard = 0;
            size_t said = 0;
            double seconds = 0.0;
            if (sscanf(line, "# shard %d/3: %zu cells, %lf s", &shard, &said, &seconds) == 3) {
                shards++;
                all += seconds;
                if (shard == 2) {
                    assert_int_equal(said, cells);
                    assert_true(seconds > 0.99 * sum - 0.001 * (double)cells &&
                                seconds < 1.01 * sum + 0.001 * (double)cells);
                }
            }
            continue;
        }
        char *tab = strchr(line, '\t');
        assert_non_null(tab);
        assert_non_null(strstr(names.output, tab + 1));
        sum += strtod(line, NULL);
        cells++;
    }
    assert_int_equal(shards, 3);
    assert_true(all > sum && sum > 0.0);
    size_t lines = 0;
    for (const char *at = names.output; *at; at++)
        lines += *at == '\n';
    assert_int_equal(lines, cells);
    program_free(&run);
    program_free(&names);
    program_expect("too many parts",
                   WORDS("--list", "--profile", "smoke", "--device", "cpu", "--profile-dir",
                         TOPP_SOURCE_DIR "/profiles", "--shard", "1/100"),
                   2, "at most");
}

/* A part's receipt is verified as what it is. */
static void test_verify(void **state) {
    (void)state;
    char out[96], receipt[128];
    snprintf(out, sizeof out, "%s/out", scratch);
    snprintf(receipt, sizeof receipt, "%s/receipt.json", out);
    program_expect("the sweep",
                   WORDS("--sweep", "--profile", "smoke", "--device", "cpu", "--profile-dir",
                         TOPP_SOURCE_DIR "/profiles", "--filter", "exact/.*vocab:1000",
                         "--gate-only", "--shard", "2/2", "--out", out),
                   0, NULL);
    struct program_run run = program_run(WORDS("--verify", receipt));
    if (run.exit_code != 0 || strstr(run.output, " 0 changed") == NULL)
        fail_msg("--verify: %d: %s", run.exit_code, run.output);
    program_free(&run);
    /* The same folder for another part is another run. */
    program_expect("another part",
                   WORDS("--sweep", "--profile", "smoke", "--device", "cpu", "--profile-dir",
                         TOPP_SOURCE_DIR "/profiles", "--filter", "exact/.*vocab:1000",
                         "--gate-only", "--shard", "1/2", "--out", out),
                   2, "shard");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_profiles), cmocka_unit_test(test_known_parts),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_list),
        cmocka_unit_test(test_verify),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_drop);
}
