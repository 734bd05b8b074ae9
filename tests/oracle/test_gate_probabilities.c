/* Kernels that leave probabilities: an honest binary32 softmax passes on every kind of row, and
 * each planted fault is named. Row 0 stays right, row BAD is spoilt. */
#include "tests/oracle/scene.h"
#include "oracle/gate_probabilities.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

enum { VOCAB = 600, VOCAB_GREATEST = 2048, RUN = 128 };

/* Softmax in plain binary32 over what the masked logits in `row` keep, summed in runs. */
static void soften(float *row, const float *input, int64_t vocab, float max) {
    float runs[VOCAB_GREATEST / RUN + 1] = {0.0f};
    int64_t count = (vocab + RUN - 1) / RUN;
    for (int64_t t = 0; t < vocab; t++) {
        const bool kept = memcmp(&row[t], &input[t], sizeof *row) == 0 && input[t] > -INFINITY;
        row[t] = kept ? expf(input[t] - max) : 0.0f;
        runs[t / RUN] += row[t];
    }
    for (; count > 1; count = (count + 1) / 2)
        for (int64_t i = 0; i < (count + 1) / 2; i++)
            runs[i] = 2 * i + 1 < count ? runs[2 * i] + runs[2 * i + 1] : runs[2 * i];
    for (int64_t t = 0; t < vocab; t++)
        row[t] /= runs[0];
}

static void soften_all(void) {
    for (int64_t row = 0; row < scene->batch; row++)
        if (scene->oracle[row].status == NUCLEUS_OK)
            soften(scene_row(scene->output, row), scene_row(scene->input, row), scene->vocab,
                   scene->oracle[row].max_logit);
    scene->the_case.kind = GATE_PROBABILITIES;
}

/* Masks that keep the oracle's set, still to be softened. */
static void masks(float p) {
    scene_begin(2, VOCAB);
    for (int64_t row = 0; row < 2; row++) {
        scene->p[row] = p;
        for (int64_t t = 0; t < VOCAB; t++)
            scene->input[row * scene->stride + t] = -0.01f * (float)((t * 77 + row) % VOCAB);
    }
    scene_solve();
}

static void test_honest(void **state) {
    (void)state;
    uint64_t words = 91;
    static const float ps[] = {1e-6f, 0.3f, 0.9f, 0.999f, 1.0f};
    for (int kind = 0; kind < ROW_FINITE_KINDS; kind++) {
        for (size_t i = 0; i < sizeof ps / sizeof *ps; i++) {
            scene_draw(2, 2000, (enum row_kind)kind, ps[i], &words);
            if (scene->oracle[0].status != NUCLEUS_OK || scene->oracle[1].status != NUCLEUS_OK)
                continue;
            soften_all();
            const struct gate_result result = scene_judge(NULL);
            if (result.verdict != GATE_ACCEPTED)
                fail_msg("kind %d, p %g: %s, row %d token %d, error %g of what is allowed", kind,
                         (double)ps[i], gate_rule_name(result.rule), (int)result.row,
                         (int)result.token, result.value_error);
            assert_true(result.rows_equal == 2 && result.value_error < 1.0);
            assert_true(result.sum_error < GATE_PROBABILITY_ERROR);
        }
    }
}

/* The mask of probabilities has the hash of the same mask in logits. */
static void test_hash(void **state) {
    (void)state;
    masks(0.7f);
    const struct gate_result logits = scene_judge(NULL);
    soften_all();
    const struct gate_result probabilities = scene_judge(NULL);
    assert_string_equal(logits.mask_sha256, probabilities.mask_sha256);
    assert_int_equal(logits.kept, probabilities.kept);
    assert_true(logits.value_error == 0.0 && probabilities.value_error > 0.0);
}

/* ---- Faults, each made of right probabilities ---- */

static void scale(int64_t token, double factor) {
    out()[token] = (float)((double)out()[token] * factor);
}

static void just_within(void) {
    scale(at(5), 1.0 + 0.9 * GATE_PROBABILITY_ERROR);
}
static void value_high(void) {
    scale(at(5), 1.0 + 1.5 * GATE_PROBABILITY_ERROR);
}
static void value_low(void) {
    scale(at(n() - 1), 1.0 - 1.5 * GATE_PROBABILITY_ERROR);
}
static void value_negative(void) {
    scale(at(7), -1.0);
}
static void value_infinite(void) {
    out()[at(7)] = INFINITY;
}
static void two_swapped(void) {
    const float first = out()[at(3)];
    out()[at(3)] = out()[at(40)];
    out()[at(40)] = first;
}
static void over_all_mass(void) { /* normalised by the whole row's mass in place of the kept one */
    for (int64_t t = 0; t < VOCAB; t++)
        scale(t, scene->oracle[BAD].prefix / scene->oracle[BAD].normalizer);
}
static void percent(void) {
    for (int64_t t = 0; t < VOCAB; t++)
        scale(t, 100.0);
}
static void sum_a_little_off(void) {
    for (int64_t t = 0; t < VOCAB; t++)
        scale(t, 1.0 + 1.2 * GATE_PROBABILITY_ERROR);
}
static void outside_not_zero(void) {
    out()[at(n())] = 0x1p-140f;
}
static void far_outside_not_zero(void) {
    out()[at(VOCAB - 1)] = out()[at(0)];
}
static void dropped(void) {
    out()[at(n() - 1)] = 0.0f;
}
static void hole(void) {
    out()[at(4)] = 0.0f;
}
static void not_a_number(void) {
    out()[at(4)] = NAN;
}
static void nothing(void) {
    for (int64_t t = 0; t < VOCAB; t++)
        out()[t] = 0.0f;
}
static void padded(void) {
    out()[VOCAB + 2] = 0.0f;
}
static void logits_left(void) {
    memcpy(out(), in(), VOCAB * sizeof(float));
}
static void three_more(void) { /* within the envelope: their mass belongs to the sum */
    scene_keep(scene->output, BAD, n() + 3);
    soften(out(), in(), VOCAB, scene->oracle[BAD].max_logit);
}
static void three_more_unshared(void) { /* three more, the rest still over the oracle's mass */
    for (int64_t rank = n(); rank < n() + 3; rank++)
        out()[at(rank)] = out()[at(n() - 1)];
}
static void nothing_wrong(void) {
}

struct fault {
    const char *name;
    float p;
    enum gate_contract contract;
    void (*spoil)(void);
    enum gate_rule rule;
};

static const struct fault faults[] = {
    {"right", 0.7f, GATE_EXACT, nothing_wrong, GATE_RULE_NONE},
    {"a value within the error", 0.7f, GATE_EXACT, just_within, GATE_RULE_NONE},
    {"a value too high", 0.7f, GATE_EXACT, value_high, GATE_RULE_PROBABILITY_VALUE},
    {"a value too low", 0.7f, GATE_EXACT, value_low, GATE_RULE_PROBABILITY_VALUE},
    {"a negative value", 0.7f, GATE_EXACT, value_negative, GATE_RULE_PROBABILITY_VALUE},
    {"an infinite value", 0.7f, GATE_EXACT, value_infinite, GATE_RULE_PROBABILITY_VALUE},
    {"two values swapped", 0.7f, GATE_EXACT, two_swapped, GATE_RULE_PROBABILITY_VALUE},
    {"over the whole mass", 0.7f, GATE_EXACT, over_all_mass, GATE_RULE_PROBABILITY_SUM},
    {"in percent", 0.7f, GATE_EXACT, percent, GATE_RULE_PROBABILITY_SUM},
    {"a sum a little off", 0.7f, GATE_EXACT, sum_a_little_off, GATE_RULE_PROBABILITY_SUM},
    {"the first token outside", 0.7f, GATE_EXACT, outside_not_zero, GATE_RULE_NOT_ORACLE_SET},
    {"a token far outside", 0.7f, GATE_EXACT, far_outside_not_zero, GATE_RULE_NOT_ORACLE_SET},
    {"far outside, bounded", 0.7f, GATE_BOUNDED, far_outside_not_zero, GATE_RULE_NOT_PREFIX},
    {"far outside, envelope", 0.7f, GATE_ENVELOPE, far_outside_not_zero, GATE_RULE_ORDER},
    {"the last token missing", 0.7f, GATE_EXACT, dropped, GATE_RULE_NOT_ORACLE_SET},
    {"the last one, bounded", 0.7f, GATE_BOUNDED, dropped, GATE_RULE_UNDERKEEP},
    {"a hole", 0.7f, GATE_BOUNDED, hole, GATE_RULE_NOT_PREFIX},
    {"a NaN", 0.7f, GATE_EXACT, not_a_number, GATE_RULE_NAN},
    {"all zero", 0.7f, GATE_EXACT, nothing, GATE_RULE_EMPTY_MASK},
    {"padding", 0.7f, GATE_EXACT, padded, GATE_RULE_PADDING},
    {"the logits themselves", 0.7f, GATE_EXACT, logits_left, GATE_RULE_NOT_ORACLE_SET},
    {"three more, shared", 0.7f, GATE_BOUNDED, three_more, GATE_RULE_NONE},
    {"three more, unshared", 0.7f, GATE_BOUNDED, three_more_unshared, GATE_RULE_PROBABILITY_SUM},
    {"p = 1", 1.0f, GATE_EXACT, nothing_wrong, GATE_RULE_NONE},
    {"p = 1, one dropped", 1.0f, GATE_EXACT, hole, GATE_RULE_UNTOUCHED},
    {"p = 1, one value", 1.0f, GATE_EXACT, value_high, GATE_RULE_PROBABILITY_VALUE},
    {"p = 1, left as logits", 1.0f, GATE_EXACT, logits_left, GATE_RULE_UNTOUCHED},
};

static void test_faults(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const struct fault *const fault = &faults[i];
        masks(fault->p);
        scene->the_case.contract = fault->contract;
        soften_all();
        fault->spoil();
        const struct gate_result result = scene_judge(NULL);
        if (result.rule != fault->rule)
            fail_msg("%s: %s, expected %s (error %g, sum %g)", fault->name,
                     gate_rule_name(result.rule), gate_rule_name(fault->rule), result.value_error,
                     result.sum_error);
        assert_int_equal(result.row, fault->rule == GATE_RULE_NONE ? -1 : BAD);
    }
}

/* A masked token that has a probability; hardware that flushes what is below the normal numbers. */
static void test_masked_and_flushed(void **state) {
    (void)state;
    for (int fault = 0; fault < 3; fault++) {
        scene_begin(2, VOCAB);
        for (int64_t i = 0; i < 2 * scene->stride; i++)
            if (i % scene->stride < VOCAB)
                scene->input[i] = -0.4f * (float)(i % scene->stride);
        in()[9] = -INFINITY;
        scene->p[0] = scene->p[1] = 1.0f;
        scene_solve();
        soften_all();
        if (fault == 1)
            out()[9] = 0x1p-149f;
        if (fault == 2) /* not below them: this one was dropped */
            out()[100] = 0.0f;
        for (int64_t t = 0; t < VOCAB; t++)
            if (out()[t] < 0x1p-126f && t != 9)
                out()[t] = 0.0f;
        assert_int_equal(scene_judge(NULL).rule, fault == 0 ? GATE_RULE_NONE : GATE_RULE_UNTOUCHED);
    }
    masks(0.7f);
    in()[at(VOCAB - 1)] = -INFINITY;
    scene_solve();
    soften_all();
    out()[at(VOCAB - 1)] = 0x1p-149f;
    assert_int_equal(scene_judge(NULL).rule, GATE_RULE_RESURRECTED);
}

/* Rows without a nucleus need only be survived, and the others are held to everything. */
static void test_hazard(void **state) {
    (void)state;
    static const float hazards[] = {NAN, INFINITY};
    for (size_t i = 0; i < 2; i++) {
        masks(0.7f);
        in()[3] = hazards[i];
        scene_solve();
        soften_all();
        assert_int_equal(scene_judge(NULL).verdict, GATE_UNREADABLE);
        scene->the_case.hazard = true;
        for (int64_t t = 0; t < VOCAB; t++)
            out()[t] = 0.25f;
        assert_int_equal(scene_judge(NULL).verdict, GATE_ACCEPTED);
        out()[8] = NAN; /* there was one in the first of the two rows */
        assert_int_equal(scene_judge(NULL).rule, i == 0 ? GATE_RULE_NONE : GATE_RULE_NAN);
        out()[8] = 0.25f;
        scene->output[scene->order[0][2]] *= 1.1f;
        assert_int_equal(scene_judge(NULL).rule, GATE_RULE_PROBABILITY_VALUE);
    }
}

static void test_error(void **state) {
    (void)state;
    assert_true(gate_probability_error(0.0) == 0x1p-16);
    assert_true(gate_probability_error(32.0) == 0x1p-16);
    assert_true(gate_probability_error(64.0) == 0x1p-15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_honest), cmocka_unit_test(test_hash),
        cmocka_unit_test(test_faults), cmocka_unit_test(test_masked_and_flushed),
        cmocka_unit_test(test_hazard), cmocka_unit_test(test_error),
    };
    return cmocka_run_group_tests_name("gate_probabilities", tests, NULL, NULL);
}
