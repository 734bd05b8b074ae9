/* The Gumbel gate fed right and wrong draws: each rule seen red. */
#include "oracle/gumbel_gate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ROWS = 6, VOCAB = 3000, STRIDE = 3008 };

struct scene {
    float logits[ROWS * STRIDE];
    int64_t seed[ROWS], position[ROWS], token[ROWS];
    float temperature[ROWS];
    struct gumbel_case the_case;
};

/* Ordinary rows; the padding would win if anyone looked at it. */
static struct scene *scene_new(enum noise_kind kind) {
    struct scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    for (int64_t i = 0; i < ROWS * STRIDE; i++) {
        const uint32_t counter[4] = {(uint32_t)i, 1, 0, 0}, key[2] = {11, 0};
        uint32_t words[4];
        noise_philox(counter, key, words);
        s->logits[i] = i % STRIDE < VOCAB ? (float)(words[0] >> 8) * 0x1p-22f : 3e38f;
    }
    for (int i = 0; i < ROWS; i++) {
        s->seed[i] = 1000 + i;
        s->position[i] = 7 * i;
        s->temperature[i] = i == 2 ? 0.7f : 1.0f;
    }
    s->temperature[1] = 0;
    s->the_case = (struct gumbel_case){.noise = kind,
                                       .logits = s->logits,
                                       .batch = ROWS,
                                       .vocab = VOCAB,
                                       .stride = STRIDE,
                                       .seed = s->seed,
                                       .position = s->position,
                                       .temperature = s->temperature,
                                       .token = s->token};
    return s;
}

/* Scores by the definition, the plain way: what the gate must agree with. */
static double plain_score(const struct scene *s, int row, int64_t token) {
    const double logit = (double)s->logits[row * STRIDE + token];
    if (s->temperature[row] == 0)
        return logit;
    struct noise_word word;
    noise_words(s->the_case.noise, s->seed[row], s->position[row], token, 1, &word);
    return logit / (double)s->temperature[row] + noise_value(s->the_case.noise, word);
}

/* The token of the rank-th greatest score (0: the winner), lowest id first among equals. */
static int64_t plain_rank(const struct scene *s, int row, int rank) {
    int64_t taken[3] = {-1, -1, -1}, best = -1;
    for (int r = 0; r <= rank; r++) {
        best = -1;
        double best_score = -INFINITY;
        for (int64_t t = 0; t < VOCAB; t++) {
            const double score = plain_score(s, row, t);
            if (score > best_score && t != taken[0] && t != taken[1]) {
                best = t;
                best_score = score;
            }
        }
        if (r < 3)
            taken[r] = best;
    }
    return best < 0 ? 0 : best;
}

static void draw_right(struct scene *s) {
    for (int i = 0; i < ROWS; i++)
        s->token[i] = plain_rank(s, i, 0);
}

static struct gumbel_result check(const struct scene *s) {
    struct gumbel_result result;
    struct gumbel_row rows[ROWS];
    struct tb_error error = TB_ERROR_INIT;
    assert_int_equal(gumbel_gate_check(&s->the_case, rows, &result, &error), TB_OK);
    int64_t failed = 0;
    for (int i = 0; i < ROWS; i++)
        failed += rows[i].rule != GUMBEL_RULE_NONE;
    assert_int_equal(failed, result.rows_failed);
    return result;
}

static void expect_red(const struct scene *s, enum gumbel_rule rule, int64_t row) {
    const struct gumbel_result result = check(s);
    assert_int_equal(result.verdict, GATE_REJECTED);
    assert_string_equal(gumbel_rule_name(result.rule), gumbel_rule_name(rule));
    assert_int_equal(result.row, row);
    assert_int_equal(result.token, s->token[row]);
    assert_int_equal(result.rows_failed, 1);
    assert_int_equal(result.rows_by_rule[rule], 1);
}

static void test_right_draws(void **state) {
    (void)state;
    for (int kind = 0; kind < NOISE_COUNT; kind++) {
        struct scene *s = scene_new((enum noise_kind)kind);
        draw_right(s);
        const struct gumbel_result result = check(s);
        assert_int_equal(result.verdict, GATE_ACCEPTED);
        assert_int_equal(result.rows_near, 0);
        free(s);
    }
}

/* Every wrong token of every variant: the runner-up, the plain argmax, a neighbour. */
static void test_wrong_winner(void **state) {
    (void)state;
    for (int kind = 0; kind < NOISE_COUNT; kind++) {
        struct scene *s = scene_new((enum noise_kind)kind);
        draw_right(s);
        for (int row = 2; row < ROWS; row++) {
            const int64_t winner = s->token[row];
            s->token[row] = plain_rank(s, row, 1);
            expect_red(s, GUMBEL_RULE_WRONG_WINNER, row);
            s->token[row] = winner == 0 ? 1 : winner - 1;
            expect_red(s, GUMBEL_RULE_WRONG_WINNER, row);
            s->token[row] = winner;
        }
        free(s);
    }
}

/* Draws of one noise judged by another, of another seed, and of another row. */
static void test_wrong_noise(void **state) {
    (void)state;
    struct scene *s = scene_new(NOISE_LOG);
    draw_right(s);
    s->the_case.noise = NOISE_LOG1P;
    assert_int_equal(check(s).verdict, GATE_REJECTED);
    s->the_case.noise = NOISE_MURMUR;
    assert_int_equal(check(s).verdict, GATE_REJECTED);
    s->the_case.noise = NOISE_LOG;
    s->position[4] = s->position[3]; /* a shared stream */
    expect_red(s, GUMBEL_RULE_WRONG_WINNER, 4);
    s->position[4] = 28;
    assert_int_equal(check(s).verdict, GATE_ACCEPTED);
    s->temperature[5] = 0.5f;
    expect_red(s, GUMBEL_RULE_WRONG_WINNER, 5);
    free(s);
}

static void test_out_of_range(void **state) {
    (void)state;
    static const int64_t ids[] = {-1, VOCAB, STRIDE, INT64_MAX, INT64_MIN, 9223372034707292159};
    struct scene *s = scene_new(NOISE_LOG1P);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        draw_right(s);
        s->token[3] = ids[i];
        expect_red(s, GUMBEL_RULE_OUT_OF_RANGE, 3);
    }
    free(s);
}

static void test_forbidden(void **state) {
    (void)state;
    struct scene *s = scene_new(NOISE_MURMUR);
    s->logits[3 * STRIDE + 50] = -INFINITY;
    s->logits[4 * STRIDE + 60] = NAN;
    s->logits[1 * STRIDE + 70] = -INFINITY;
    draw_right(s);
    assert_int_equal(check(s).verdict, GATE_ACCEPTED);
    const int64_t right[ROWS] = {s->token[0], s->token[1], s->token[2], s->token[3], s->token[4]};
    s->token[3] = 50;
    expect_red(s, GUMBEL_RULE_MASKED_DRAWN, 3);
    s->token[3] = right[3];
    s->token[4] = 60;
    expect_red(s, GUMBEL_RULE_NAN_DRAWN, 4);
    s->token[4] = right[4];
    s->token[1] = 70;
    expect_red(s, GUMBEL_RULE_MASKED_DRAWN, 1);
    free(s);
}

static void test_greedy(void **state) {
    (void)state;
    struct scene *s = scene_new(NOISE_FP64);
    s->logits[STRIDE + 1500] = s->logits[STRIDE + 2500] = 9;
    draw_right(s);
    assert_int_equal(s->token[1], 1500);
    assert_int_equal(check(s).verdict, GATE_ACCEPTED);
    s->token[1] = 2500; /* the same logit, a higher id */
    expect_red(s, GUMBEL_RULE_NOT_ARGMAX, 1);
    free(s);
}

static void test_empty_row(void **state) {
    (void)state;
    struct scene *s = scene_new(NOISE_LOG);
    for (int64_t t = 0; t < VOCAB; t++)
        s->logits[STRIDE + t] = s->logits[5 * STRIDE + t] = t % 3 ? NAN : -INFINITY;
    draw_right(s);
    assert_int_equal(s->token[5], 0);
    assert_int_equal(check(s).verdict, GATE_ACCEPTED);
    s->token[5] = 9;
    expect_red(s, GUMBEL_RULE_EMPTY_ROW, 5);
    s->token[5] = 0;
    s->token[1] = 9;
    expect_red(s, GUMBEL_RULE_EMPTY_ROW, 1);
    free(s);
}

/* Equal logits and equal noise: `log` has 24 bits near 1, so that a long flat row repeats its
 * greatest u; two +inf do it for every variant. */
static void test_tie_order(void **state) {
    (void)state;
    enum { LONG = 1 << 23 };
    float *logits = malloc(LONG * sizeof *logits);
    assert_non_null(logits);
    for (int64_t t = 0; t < LONG; t++)
        logits[t] = 1;
    static struct noise_word words[LONG];
    int64_t seed, first = -1, second = -1;
    const int64_t position = 0;
    for (seed = 0; second < 0 && seed < 64; seed++) {
        noise_words(NOISE_LOG, seed, position, 0, LONG, words);
        double best = -1;
        for (int64_t t = 0; t < LONG; t++) {
            const double u = noise_uniform(NOISE_LOG, words[t]);
            if (u > best) {
                best = u;
                first = t;
                second = -1;
            } else if (u == best && second < 0) {
                second = t;
            }
        }
    }
    assert_true(second > first);
    seed--;
    const float temperature = 1;
    int64_t token = first;
    const struct gumbel_case the_case = {NOISE_LOG, logits,       1,     LONG, 0, &seed,
                                         &position, &temperature, &token};
    struct gumbel_result result;
    assert_int_equal(gumbel_gate_check(&the_case, NULL, &result, NULL), TB_OK);
    assert_int_equal(result.verdict, GATE_ACCEPTED);
    token = second;
    assert_int_equal(gumbel_gate_check(&the_case, NULL, &result, NULL), TB_OK);
    assert_int_equal(result.rule, GUMBEL_RULE_TIE_ORDER);
    free(logits);

    struct scene *s = scene_new(NOISE_MURMUR);
    s->logits[4 * STRIDE + 8] = s->logits[4 * STRIDE + 2900] = INFINITY;
    draw_right(s);
    assert_int_equal(s->token[4], 8);
    assert_int_equal(check(s).verdict, GATE_ACCEPTED);
    s->token[4] = 2900;
    expect_red(s, GUMBEL_RULE_TIE_ORDER, 4);
    s->token[4] = 9;
    expect_red(s, GUMBEL_RULE_WRONG_WINNER, 4);
    free(s);
}

/* Two scores a hair apart pass either way, two bounds apart only one way. */
static void test_bound(void **state) {
    (void)state;
    static const int64_t seed = 3, position = 4;
    static const float temperature = 1;
    float logits[2] = {0, 0};
    struct noise_word words[2];
    noise_words(NOISE_LOG1P, seed, position, 0, 2, words);
    const double noise[2] = {noise_value(NOISE_LOG1P, words[0]),
                             noise_value(NOISE_LOG1P, words[1])};
    const double bound = noise_bound(NOISE_LOG1P, noise[0]) + noise_bound(NOISE_LOG1P, noise[1]);
    logits[1] = (float)(noise[0] - noise[1]); /* equal scores but for the rounding of this */
    for (int64_t token = 0; token < 2; token++) {
        const struct gumbel_case the_case = {NOISE_LOG1P, logits,       1,     2, 2, &seed,
                                             &position,   &temperature, &token};
        struct gumbel_result result;
        assert_int_equal(gumbel_gate_check(&the_case, NULL, &result, NULL), TB_OK);
        assert_int_equal(result.verdict, GATE_ACCEPTED);
        assert_true(result.gap <= result.bound && result.bound < 4 * bound);
    }
    logits[1] += (float)(8 * bound);
    int64_t token = 0;
    const struct gumbel_case the_case = {NOISE_LOG1P, logits,       1,     2, 2, &seed,
                                         &position,   &temperature, &token};
    struct gumbel_result result;
    assert_int_equal(gumbel_gate_check(&the_case, NULL, &result, NULL), TB_OK);
    assert_int_equal(result.rule, GUMBEL_RULE_WRONG_WINNER);
}

static void test_contract(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t batch, vocab, stride;
        float temperature;
    } bad[] = {
        {"no rows", 0, 5, 5, 1},
        {"no tokens", 1, 0, 5, 1},
        {"stride below vocab", 1, 5, 4, 1},
        {"negative stride", 1, 5, -5, 1},
        {"negative temperature", 1, 5, 5, -1},
        {"temperature NaN", 1, 5, 5, NAN},
    };
    static const float logits[5] = {1, 2, 3, 4, 5};
    static const int64_t zero = 0;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct gumbel_case the_case = {
            NOISE_LOG, logits, bad[i].batch,        bad[i].vocab, bad[i].stride,
            &zero,     &zero,  &bad[i].temperature, &zero};
        struct gumbel_result result;
        struct tb_error error = TB_ERROR_INIT;
        assert_int_equal(gumbel_gate_check(&the_case, NULL, &result, &error), TB_USAGE);
        assert_true(error.message[0] != 0);
    }
}

static void test_names(void **state) {
    (void)state;
    for (int i = 0; i < GUMBEL_RULE_COUNT; i++) {
        assert_non_null(gumbel_rule_name((enum gumbel_rule)i));
        assert_non_null(gumbel_rule_text((enum gumbel_rule)i));
    }
    enum noise_kind kind;
    for (int i = 0; i < NOISE_COUNT; i++) {
        assert_true(noise_parse(noise_name((enum noise_kind)i), &kind));
        assert_int_equal(kind, i);
    }
    assert_false(noise_parse("log2", &kind));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_draws), cmocka_unit_test(test_wrong_winner),
        cmocka_unit_test(test_wrong_noise), cmocka_unit_test(test_out_of_range),
        cmocka_unit_test(test_forbidden),   cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_empty_row),   cmocka_unit_test(test_tie_order),
        cmocka_unit_test(test_bound),       cmocka_unit_test(test_contract),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
