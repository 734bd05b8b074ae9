/* Samplers that leave ids: a right one passes at every seed, a skewed one is caught from the stated
 * defect on, and an id outside the nucleus always. */
#include "tests/oracle/scene.h"
#include "oracle/gate_ids.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

enum { BATCH = 4, VOCAB = 1200 };

static int64_t ids[GATE_IDS_DRAWS];
static double until[BATCH][VOCAB]; /* summed weights of the sampler, by rank */

static void begin(enum row_kind kind, float p) {
    uint64_t words = 5;
    scene_draw(BATCH, VOCAB, kind, p, &words);
}

/* A sampler of the oracle's nuclei and `surplus` tokens more, whose logits are divided by
 * `temperature`; skew moves that share of the mass from the likelier half to the other. */
static void sampler(double temperature, double skew, int64_t surplus) {
    for (int64_t row = 0; row < BATCH; row++) {
        const struct nucleus *const oracle = &scene->oracle[row];
        double total = 0.0, before = 0.0, sum = 0.0;
        for (int pass = 0; pass < 2; pass++) {
            for (int64_t rank = 0; rank < oracle->kept + surplus; rank++) {
                const int64_t token = scene->order[row][rank];
                const double d =
                    (double)scene->input[row * scene->stride + token] - (double)oracle->max_logit;
                const double w = exp(d / temperature);
                if (pass == 0) {
                    total += w;
                    continue;
                }
                sum += w * (before + w / 2 < total / 2 ? 1.0 - 2.0 * skew : 1.0 + 2.0 * skew);
                before += w;
                until[row][rank] = sum;
            }
        }
    }
}

static int64_t draw(int64_t row, int64_t surplus, uint64_t *words) {
    int64_t low = 0, high = scene->oracle[row].kept + surplus - 1;
    const double u = rows_uniform(words) * until[row][high];
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (u < until[row][middle])
            high = middle;
        else
            low = middle + 1;
    }
    return scene->order[row][low];
}

static struct gate_ids_case the_case(void) {
    return (struct gate_ids_case){.input = scene->input,
                                  .batch = BATCH,
                                  .vocab = VOCAB,
                                  .stride = scene->stride,
                                  .oracle = scene->oracle,
                                  .ids = ids,
                                  .launches = gate_ids_launches(BATCH, 1)};
}

static void draw_all(uint64_t seed, int64_t surplus) {
    uint64_t words = seed;
    for (int64_t i = 0; i < gate_ids_launches(BATCH, 1) * BATCH; i++)
        ids[i] = draw(i % BATCH, surplus, &words);
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

/* Right samplers: accepted at every seed, and the statistic is spread as chi-square is. */
static void test_right(void **state) {
    (void)state;
    static const enum row_kind kinds[] = {ROW_NORMAL, ROW_PEAKED, ROW_PLATEAU, ROW_FLAT};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        double sum = 0.0, squares = 0.0, degrees = 0.0;
        begin(kinds[k], k % 2 == 0 ? 0.9f : 0.6f);
        sampler(1.0, 0.0, 0);
        for (uint64_t seed = 0; seed < 100; seed++) {
            const struct gate_ids_result result = judge_seed(seed, 0);
            if (result.verdict != GATE_ACCEPTED)
                fail_msg("kind %d, seed %d: %s, chi-square %g, limit %g", (int)kinds[k], (int)seed,
                         gate_rule_name(result.rule), result.chi2, result.chi2_limit);
            assert_true(result.draws == GATE_IDS_DRAWS && result.rows_equal == BATCH);
            degrees = (double)result.degrees;
            sum += result.chi2;
            squares += (result.chi2 - degrees) * (result.chi2 - degrees);
        }
        assert_true(degrees >= 1.0);
        assert_true(fabs(sum / 100.0 - degrees) < 5.0 * sqrt(2.0 * degrees / 100.0));
        assert_true(squares / 100.0 > degrees && squares / 100.0 < 4.0 * degrees);
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
        cmocka_unit_test(test_right),         cmocka_unit_test(test_power),
        cmocka_unit_test(test_faults),        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_inputs_add_up), cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests_name("gate_ids", tests, NULL, NULL);
}
