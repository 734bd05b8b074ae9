/* Samplers that leave ids: a right one passes at every seed, a skewed one is caught from the stated
 * defect on, and an id outside the nucleus always. */
#include "tests/oracle/sampler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

static void draw_all(uint64_t seed, int64_t surplus) {
    uint64_t words = seed;
    for (int64_t i = 0; i < gate_ids_launches(BATCH, 1) * BATCH; i++)
        ids[i] = draw_at(i % BATCH, surplus, rows_uniform(&words));
}

static struct gate_ids_result judge(const struct gate_ids_case *judged) {
    struct gate_ids_result result;
    struct tb_error error = TB_ERROR_INIT;
    gate_ids_begin(&result);
    assert_int_equal(gate_ids_add(judged, &result, &error), TB_OK);
    gate_ids_finish(&result);
    return result;
}

static struct gate_ids_result judge_seed(uint64_t seed, int64_t surplus) {
    draw_all(seed, surplus);
    const struct gate_ids_case judged = the_case();
    return judge(&judged);
}

/* The mean of a statistic over many seeds, and its spread, are chi-square's. */
struct spread {
    double sum, squares, count, degrees;
};

static void spread_add(struct spread *spread, double chi2, int64_t degrees) {
    spread->degrees = (double)degrees;
    spread->sum += chi2;
    spread->squares += (chi2 - spread->degrees) * (chi2 - spread->degrees);
    spread->count++;
}

static void spread_check(const struct spread *spread) {
    const double degrees = spread->degrees, mean = spread->sum / spread->count;
    assert_true(degrees >= 1.0);
    assert_true(fabs(mean - degrees) < 5.0 * sqrt(2.0 * degrees / spread->count));
    assert_true(spread->squares / spread->count > degrees &&
                spread->squares / spread->count < 4.0 * degrees);
}

/* Right samplers: accepted at every seed, and the statistics are spread as chi-square is. */
static void test_right(void **state) {
    (void)state;
    static const enum row_kind kinds[] = {ROW_NORMAL, ROW_PEAKED, ROW_PLATEAU, ROW_FLAT};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct spread frequencies = {0}, pairs = {0};
        begin(kinds[k], k % 2 == 0 ? 0.9f : 0.6f);
        sampler(1.0, 0.0, 0);
        for (uint64_t seed = 0; seed < 100; seed++) {
            const struct gate_ids_result result = judge_seed(seed, 0);
            if (result.verdict != GATE_ACCEPTED)
                fail_msg("kind %d, seed %d: %s, chi-square %g, limit %g", (int)kinds[k], (int)seed,
                         gate_rule_name(result.rule), result.chi2, result.chi2_limit);
            assert_true(result.draws == GATE_IDS_DRAWS && result.rows_equal == BATCH);
            spread_add(&frequencies, result.chi2, result.degrees);
            spread_add(&pairs, result.pairs.chi2, result.pairs.degrees);
        }
        spread_check(&frequencies);
        spread_check(&pairs);
    }
}

/* The stated power: of samplers with the smallest defect about half are refused, of those with
 * half of it hardly any, of those with one and a half of it nearly all. */
static void test_power(void **state) {
    (void)state;
    static const double sizes[] = {0.5, 1.0, 1.5};
    int refused[3] = {0};
    begin(ROW_NORMAL, 0.9f);
    sampler(1.0, 0.0, 0);
    const double smallest = judge_seed(1, 0).smallest_defect;
    assert_true(smallest > 0.01 && smallest < 0.06);
    for (int i = 0; i < 3; i++) {
        sampler(1.0, sizes[i] * smallest, 0);
        for (uint64_t seed = 0; seed < 100; seed++)
            refused[i] += judge_seed(seed, 0).rule == GATE_RULE_CHI_SQUARE;
    }
    if (refused[0] > 5 || refused[1] < 20 || refused[1] > 80 || refused[2] < 95)
        fail_msg("refused %d, %d, %d of 100 at defects of 0.5, 1, 1.5 of %g", refused[0],
                 refused[1], refused[2], smallest);
}

/* Draws that repeat the one before them, of each row, with this chance. */
static void repeat(double share, uint64_t seed) {
    uint64_t words = seed + 1000;
    for (int64_t i = BATCH; i < GATE_IDS_DRAWS; i++)
        if (rows_uniform(&words) < share)
            ids[i] = ids[i - BATCH];
}

/* The same of repeated draws; their frequencies alone would pass. */
static void test_power_of_pairs(void **state) {
    (void)state;
    static const double sizes[] = {0.5, 1.0, 1.5};
    int refused[3] = {0};
    begin(ROW_NORMAL, 0.9f);
    sampler(1.0, 0.0, 0);
    const double smallest = judge_seed(1, 0).smallest_repeat;
    assert_true(smallest > 0.01 && smallest < 0.06);
    for (int i = 0; i < 3; i++)
        for (uint64_t seed = 0; seed < 40; seed++) {
            draw_all(seed, 0);
            repeat(sizes[i] * smallest, seed);
            const struct gate_ids_case judged = the_case();
            const struct gate_ids_result result = judge(&judged);
            refused[i] += result.rule == GATE_RULE_DEPENDENT;
            assert_true(result.chi2 <= result.chi2_limit);
        }
    if (refused[0] > 2 || refused[1] < 8 || refused[1] > 32 || refused[2] < 38)
        fail_msg("refused %d, %d, %d of 40 at repeats of 0.5, 1, 1.5 of %g", refused[0], refused[1],
                 refused[2], smallest);
}

/* ---- Faults of ids that a right sampler drew ---- */

static void greedy(void) {
    for (int64_t i = 0; i < GATE_IDS_DRAWS; i++)
        ids[i] = scene->order[i % BATCH][0];
}
static void one_outside(void) {
    ids[100 * BATCH + 2] = scene->order[2][scene->oracle[2].kept];
}
static void one_past(void) {
    ids[7 * BATCH + 3] = VOCAB;
}
static void one_negative(void) {
    ids[BATCH] = -1;
}
static void outside_then_past(void) {
    one_outside();
    ids[200 * BATCH + 2] = VOCAB + 5;
}
static void same_id_always(void) { /* a sampler that does not look at the position */
    for (int64_t i = BATCH; i < GATE_IDS_DRAWS; i++)
        ids[i] = ids[i % BATCH];
}
static void rows_swapped(void) {
    for (int64_t i = 0; i < GATE_IDS_DRAWS; i += BATCH) {
        const int64_t first = ids[i];
        ids[i] = ids[i + 1];
        ids[i + 1] = first;
    }
}
static void uniform(void) {
    uint64_t words = 3;
    for (int64_t i = 0; i < GATE_IDS_DRAWS; i++)
        ids[i] =
            scene->order[i % BATCH][rows_below(&words, (uint64_t)scene->oracle[i % BATCH].kept)];
}
static void hot(void) {
    sampler(1.3, 0.0, 0);
    draw_all(2, 0);
}
static void cold(void) {
    sampler(0.8, 0.0, 0);
    draw_all(2, 0);
}
static void whole_row(void) { /* no nucleus was cut */
    sampler(1.0, 0.0, 100);
    draw_all(2, 100);
}
static void each_twice(void) {
    for (int64_t i = BATCH; i < GATE_IDS_DRAWS; i++)
        if (i / BATCH % 2 == 1)
            ids[i] = ids[i - BATCH];
}
static void tenth_again(void) {
    repeat(0.1, 1);
}
/* The token at the opposite end of the row's mass in every second launch. */
static void antithetic(void) {
    uint64_t words = 9;
    for (int64_t i = 0; i < GATE_IDS_DRAWS; i++) {
        static double u[BATCH];
        const int64_t row = i % BATCH;
        u[row] = i / BATCH % 2 == 0 ? rows_uniform(&words) : 1.0 - u[row];
        ids[i] = draw_at(row, 0, u[row]);
    }
}
/* Every row is right alone: all of a launch take one random number. */
static void rows_in_step(void) {
    uint64_t words = 9;
    for (int64_t i = 0; i < GATE_IDS_DRAWS; i += BATCH) {
        const double u = rows_uniform(&words);
        for (int64_t row = 0; row < BATCH; row++)
            ids[i + row] = draw_at(row, 0, u);
    }
}
static void nothing_wrong(void) {
}

static const struct fault {
    const char *name;
    void (*spoil)(void);
    enum gate_rule rule;
    int64_t row, launch; /* -1: none or whichever */
} faults[] = {
    {"right", nothing_wrong, GATE_RULE_NONE, -1, -1},
    {"the argmax always", greedy, GATE_RULE_CHI_SQUARE, -1, -1},
    {"the first id again", same_id_always, GATE_RULE_CHI_SQUARE, -1, -1},
    {"evenly over the nucleus", uniform, GATE_RULE_CHI_SQUARE, -1, -1},
    {"too hot", hot, GATE_RULE_CHI_SQUARE, -1, -1},
    {"too cold", cold, GATE_RULE_CHI_SQUARE, -1, -1},
    {"each draw twice", each_twice, GATE_RULE_DEPENDENT, -1, -1},
    {"every tenth draw again", tenth_again, GATE_RULE_DEPENDENT, -1, -1},
    {"every second draw opposite", antithetic, GATE_RULE_DEPENDENT, -1, -1},
    {"one random number for all rows", rows_in_step, GATE_RULE_DEPENDENT, -1, -1},
    {"one outside the nucleus", one_outside, GATE_RULE_OUTSIDE_NUCLEUS, 2, 100},
    {"one past the vocabulary", one_past, GATE_RULE_OUT_OF_RANGE, 3, 7},
    {"one below 0", one_negative, GATE_RULE_OUT_OF_RANGE, 0, 1},
    {"outside, then past", outside_then_past, GATE_RULE_OUT_OF_RANGE, 2, 200},
    {"no nucleus cut", whole_row, GATE_RULE_OUTSIDE_NUCLEUS, -1, -1},
    {"two rows swapped", rows_swapped, GATE_RULE_OUTSIDE_NUCLEUS, -1, -1},
};

static void test_faults(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const struct fault *const fault = &faults[i];
        begin(ROW_NORMAL, 0.6f);
        sampler(1.0, 0.0, 0);
        draw_all(1, 0);
        fault->spoil();
        const struct gate_ids_case judged = the_case();
        const struct gate_ids_result result = judge(&judged);
        if (result.rule != fault->rule)
            fail_msg("%s: %s, expected %s (chi-square %g, limit %g)", fault->name,
                     gate_rule_name(result.rule), gate_rule_name(fault->rule), result.chi2,
                     result.chi2_limit);
        assert_int_equal(result.verdict,
                         fault->rule == GATE_RULE_NONE ? GATE_ACCEPTED : GATE_REJECTED);
        assert_true(fault->row < 0 || (result.row == fault->row && result.launch == fault->launch));
    }
}

/* Several inputs are one test: what no input shows alone is seen in their sum. */
static void test_inputs_add_up(void **state) {
    (void)state;
    struct gate_ids_result sum;
    begin(ROW_NORMAL, 0.9f);
    sampler(1.0, 0.0, 0);
    const double smallest = judge_seed(1, 0).smallest_defect;
    sampler(1.0, 0.75 * smallest, 0);
    gate_ids_begin(&sum);
    int alone = 0;
    for (uint64_t seed = 0; seed < 8; seed++) {
        alone += judge_seed(seed, 0).verdict != GATE_ACCEPTED;
        const struct gate_ids_case judged = the_case();
        assert_int_equal(gate_ids_add(&judged, &sum, NULL), TB_OK);
    }
    gate_ids_finish(&sum);
    assert_true(alone < 4);
    assert_int_equal(sum.rule, GATE_RULE_CHI_SQUARE);
    assert_true(sum.inputs == 8 && sum.smallest_defect < 0.75 * smallest);
}

/* A nucleus of one token leaves nothing to test; masked tokens and odd rows. */
static void test_edges(void **state) {
    (void)state;
    begin(ROW_FORCED, 0.5f);
    sampler(1.0, 0.0, 0);
    struct gate_ids_result result = judge_seed(1, 0);
    assert_int_equal(result.verdict, GATE_ACCEPTED);
    assert_true(result.degrees == 0 && result.tested == 0 && isnan(result.smallest_defect));
    assert_true(result.pairs.degrees == 0 && isnan(result.smallest_repeat));

    begin(ROW_MASKED, 1.0f);
    sampler(1.0, 0.0, 0);
    assert_int_equal(judge_seed(1, 0).verdict, GATE_ACCEPTED);
    int64_t masked = 0;
    while (scene->input[masked] > -INFINITY)
        masked++;
    ids[0] = masked;
    struct gate_ids_case judged = the_case();
    assert_int_equal(judge(&judged).rule, GATE_RULE_OUTSIDE_NUCLEUS);

    begin(ROW_NORMAL, 0.9f);
    sampler(1.0, 0.0, 0);
    draw_all(1, 0);
    scene->oracle[1].status = NUCLEUS_NONFINITE_INPUT;
    judged = the_case();
    assert_int_equal(judge(&judged).verdict, GATE_UNREADABLE);
    judged.hazard = true;
    assert_int_equal(judge(&judged).verdict, GATE_ACCEPTED);
    ids[1] = VOCAB;
    assert_int_equal(judge(&judged).rule, GATE_RULE_OUT_OF_RANGE);
    scene->oracle[2].status = NUCLEUS_AMBIGUOUS;
    assert_int_equal(judge(&judged).verdict, GATE_AMBIGUOUS);
}

static void test_sizes(void **state) {
    (void)state;
    assert_int_equal(gate_ids_launches(1, 1), GATE_IDS_DRAWS);
    assert_int_equal(gate_ids_launches(1, 8), GATE_IDS_DRAWS / 8);
    assert_int_equal(gate_ids_launches(3, 1), 5462);
    assert_int_equal(gate_ids_launches(4096, 1), GATE_IDS_LEAST_LAUNCHES);
    /* Quantiles at 6 deviations, 1 - 9.87e-10, as SciPy's chi2.isf has them, to a tenth. */
    assert_true(fabs(gate_ids_limit(10) / 63.9 - 1.0) < 0.1);
    assert_true(fabs(gate_ids_limit(100) / 203.6 - 1.0) < 0.1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),          cmocka_unit_test(test_power),
        cmocka_unit_test(test_faults),         cmocka_unit_test(test_edges),
        cmocka_unit_test(test_inputs_add_up),  cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_power_of_pairs),

    };
    return cmocka_run_group_tests_name("gate_ids", tests, NULL, NULL);
}
