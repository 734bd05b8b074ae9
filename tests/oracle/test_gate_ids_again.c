/* A sampler's draws made again: the same seed must draw the same ids, another one others. */
#include "tests/oracle/sampler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <math.h>

static int64_t again_ids[GATE_IDS_MOST_AGAIN * BATCH];

/* A sampler whose draw is a function of seed and position. */
static int64_t seeded(int64_t row, int64_t launch, int64_t seed) {
    uint64_t words =
        (uint64_t)seed * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)(launch * BATCH + row);
    (void)rows_uniform(&words);
    return draw_at(row, 0, rows_uniform(&words));
}

static void seeds_of(int half, int64_t seed[BATCH]) {
    for (int64_t row = 0; row < BATCH; row++)
        seed[row] = 42;
    if (half >= 0)
        gate_ids_reseed(seed, BATCH, half);
}

static void draw_seeded(int half, int64_t launches, int64_t *out) {
    int64_t seed[BATCH];
    seeds_of(half, seed);
    for (int64_t i = 0; i < launches * BATCH; i++)
        out[i] = seeded(i % BATCH, i / BATCH, seed[i % BATCH]);
}

/* All seeds are the first row's; then: none of some rows. */
static void first_rows_seed(int half, int64_t launches, int64_t *out) {
    int64_t seed[BATCH];
    seeds_of(half, seed);
    for (int64_t i = 0; i < launches * BATCH; i++)
        out[i] = seeded(i % BATCH, i / BATCH, seed[0]);
}
static void no_seed(int half, int64_t launches, int64_t *out) {
    (void)half;
    draw_seeded(-1, launches, out);
}
static void no_seed_of_odd_rows(int half, int64_t launches, int64_t *out) {
    draw_seeded(half == 0 ? 0 : -1, launches, out);
}
/* It counts its launches, and draws by that. */
static void counts_launches(int half, int64_t launches, int64_t *out) {
    int64_t seed[BATCH];
    seeds_of(half, seed);
    for (int64_t i = 0; i < launches * BATCH; i++)
        out[i] = seeded(i % BATCH, 100000 + i / BATCH, seed[i % BATCH]);
}
static void one_off(int half, int64_t launches, int64_t *out) {
    draw_seeded(half, launches, out);
    if (half == 1) /* row 2 kept its seed */
        out[BATCH + 2] =
            out[BATCH + 2] == scene->order[2][0] ? scene->order[2][1] : scene->order[2][0];
}

static const struct again_fault {
    const char *name;
    void (*draw)(int half, int64_t launches, int64_t *out);
    enum gate_rule rule;
} again_faults[] = {
    {"right", draw_seeded, GATE_RULE_NONE},
    {"the seed is not looked at", no_seed, GATE_RULE_SEED_IGNORED},
    {"that of some rows is not", no_seed_of_odd_rows, GATE_RULE_SEED_IGNORED},
    {"that of the first row is taken", first_rows_seed, GATE_RULE_NOT_REPEATED},
    {"launches are counted", counts_launches, GATE_RULE_NOT_REPEATED},
    {"one id is another", one_off, GATE_RULE_NOT_REPEATED},
};

static struct gate_ids_result judge_again(void (*drawn)(int, int64_t, int64_t *)) {
    struct gate_ids_result result;
    struct gate_ids_case judged = the_case();
    int64_t launches = 0;
    draw_seeded(-1, judged.launches, ids);
    gate_ids_begin(&result);
    assert_int_equal(gate_ids_again_launches(&judged, &launches, NULL), TB_OK);
    assert_int_equal(gate_ids_add(&judged, &result, NULL), TB_OK);
    for (int half = 0; half < 2; half++) {
        const struct gate_ids_again again = {half, again_ids, launches};
        drawn(half, launches, again_ids);
        assert_int_equal(gate_ids_add_again(&judged, &again, &result, NULL), TB_OK);
    }
    assert_int_equal(result.repeated, launches * BATCH);
    assert_int_equal(result.reseeded, launches * BATCH);
    gate_ids_finish(&result);
    return result;
}

static void test_again(void **state) {
    (void)state;
    begin(ROW_NORMAL, 0.6f);
    sampler(1.0, 0.0, 0);
    for (size_t i = 0; i < sizeof again_faults / sizeof *again_faults; i++) {
        const struct gate_ids_result result = judge_again(again_faults[i].draw);
        if (result.rule != again_faults[i].rule)
            fail_msg("%s: %s, expected %s", again_faults[i].name, gate_rule_name(result.rule),
                     gate_rule_name(again_faults[i].rule));
        assert_true(result.seed_bits[0] >= GATE_IDS_SEED_BITS &&
                    result.seed_bits[1] >= GATE_IDS_SEED_BITS);
        if (again_faults[i].draw == one_off)
            assert_true(result.input == 0 && result.row == 2 && result.launch == 1);
    }
}

/* Bits are the oracle's: four tokens alike have two, and ids that are alike by chance are no fault.
 */
static void test_seed_bits(void **state) {
    (void)state;
    begin(ROW_FORCED, 0.5f); /* one token */
    sampler(1.0, 0.0, 0);
    struct gate_ids_result result = judge_again(no_seed);
    assert_true(result.verdict == GATE_ACCEPTED && result.seed_bits[0] == 0.0);
    assert_int_equal(result.repeated, GATE_IDS_MOST_AGAIN * BATCH);

    scene_begin(BATCH, VOCAB);
    for (int64_t row = 0; row < BATCH; row++) {
        scene->p[row] = 1.0f;
        for (int64_t t = 0; t < VOCAB; t++)
            scene_row(scene->input, row)[t] = t < 4 ? 3.0f : -INFINITY;
    }
    scene_solve();
    sampler(1.0, 0.0, 0);
    result = judge_again(no_seed);
    assert_int_equal(result.rule, GATE_RULE_SEED_IGNORED);
    assert_true(fabs(result.seed_bits[1] - 60.0) < 1e-9 && result.reseeded == 15 * BATCH);

    struct gate_ids_case judged = the_case();
    judged.launches = 14; /* 56 bits */
    int64_t launches = 0;
    assert_int_equal(gate_ids_again_launches(&judged, &launches, NULL), TB_OK);
    assert_int_equal(launches, 14);
    const struct gate_ids_again again = {0, ids, launches};
    gate_ids_begin(&result);
    assert_int_equal(gate_ids_add_again(&judged, &again, &result, NULL), TB_OK);
    gate_ids_finish(&result);
    assert_int_equal(result.verdict, GATE_ACCEPTED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_seed_bits),
    };
    return cmocka_run_group_tests_name("gate_ids_again", tests, NULL, NULL);
}
