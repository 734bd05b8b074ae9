/* What must hold of the reference and the gate whatever the row: random shapes, every kind of row
 * that has a nucleus. */
#include "oracle/gate.h"
#include "tests/oracle/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

enum { ROWS = 600, VOCAB_GREATEST = 2300, COUNT = 6, APPENDED = 9 };

struct drawn {
    int64_t vocab;
    enum row_kind kind;
    uint64_t state; /* goes on where the row's draws ended */
    float row[VOCAB_GREATEST + APPENDED], p[COUNT];
    struct nucleus nucleus[COUNT];
};

static struct drawn drawn;
static float other[VOCAB_GREATEST + APPENDED];

static void solve(const float *row, int64_t vocab, struct nucleus *out) {
    assert_int_equal(nucleus_rows(row, 1, vocab, vocab, drawn.p, COUNT, 1, out, NULL), TB_OK);
}

/* Row `seed`; p ascending. */
static void draw(uint64_t seed) {
    drawn.state = seed * 2654435761u + 1;
    drawn.kind = (enum row_kind)(seed % ROW_FINITE_KINDS);
    const int64_t limit = rows_below(&drawn.state, 12) == 0 ? VOCAB_GREATEST : 200;
    drawn.vocab = 1 + (int64_t)rows_below(&drawn.state, (uint64_t)limit);
    rows_fill(drawn.kind, &drawn.state, drawn.row, drawn.vocab);
    for (int i = 0; i < COUNT; i++) {
        const float p = rows_p(&drawn.state);
        int place = i;
        for (; place > 0 && drawn.p[place - 1] > p; place--)
            drawn.p[place] = drawn.p[place - 1];
        drawn.p[place] = p;
    }
    solve(drawn.row, drawn.vocab, drawn.nucleus);
}

static void same_sums(const struct nucleus *a, const struct nucleus *b) {
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->kept, b->kept);
    assert_true(a->normalizer == b->normalizer && a->target == b->target &&
                a->prefix == b->prefix && a->prefix_less == b->prefix_less);
}

/* Tokens of the nucleus, counted one by one, with the weight of each looked at. */
static void test_definition(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < ROWS; seed++) {
        draw(seed);
        for (int i = 0; i < COUNT; i++) {
            const struct nucleus *const n = &drawn.nucleus[i];
            int64_t kept = 0;
            assert_int_equal(n->status, NUCLEUS_OK);
            for (int64_t t = 0; t < drawn.vocab; t++)
                kept += drawn.row[t] != -INFINITY && nucleus_keeps(n, drawn.row[t], t);
            assert_int_equal(kept, n->kept);
            assert_true(n->kept >= 1 && drawn.row[n->boundary_token] == n->boundary_logit);
            assert_true(n->untouched || n->prefix >= n->target);
            assert_true(n->untouched || n->kept == 1 || n->prefix_less < n->target);
        }
    }
}

/* Token ids dealt anew: the sums and counts stay; of equal logits the lowest new ids are kept. */
static void test_relabelling(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < ROWS; seed++) {
        struct nucleus got[COUNT];
        draw(seed);
        memcpy(other, drawn.row, sizeof other);
        for (int64_t t = drawn.vocab - 1; t > 0; t--) {
            const uint64_t to = rows_below(&drawn.state, (uint64_t)t + 1);
            const float swap = other[t];
            other[t] = other[to];
            other[to] = swap;
        }
        solve(other, drawn.vocab, got);
        for (int i = 0; i < COUNT; i++) {
            int64_t before = 0, after = 0;
            same_sums(&got[i], &drawn.nucleus[i]);
            assert_true(got[i].boundary_logit == drawn.nucleus[i].boundary_logit);
            for (int64_t t = 0; t <= drawn.nucleus[i].boundary_token; t++)
                before += drawn.row[t] == got[i].boundary_logit;
            for (int64_t t = 0; t <= got[i].boundary_token; t++)
                after += other[t] == got[i].boundary_logit;
            assert_int_equal(before, after);
        }
    }
}

/* Logits on a grid moved by a constant without rounding. */
static void test_constant(void **state) {
    (void)state;
    static const float constants[] = {16.0f, -16.0f, 0.5f, 1000.0f};
    for (uint64_t seed = 0; seed < ROWS; seed++) {
        struct nucleus got[COUNT];
        const float constant = constants[seed % 4];
        draw(seed);
        if (drawn.kind >= ROW_FORCED && drawn.kind != ROW_MASKED)
            continue;
        for (int64_t t = 0; t < drawn.vocab; t++) {
            drawn.row[t] = rintf(drawn.row[t] * 1024.0f) / 1024.0f;
            other[t] = drawn.row[t] + constant;
        }
        solve(drawn.row, drawn.vocab, drawn.nucleus);
        solve(other, drawn.vocab, got);
        for (int i = 0; i < COUNT; i++) {
            same_sums(&got[i], &drawn.nucleus[i]);
            assert_int_equal(got[i].boundary_token, drawn.nucleus[i].boundary_token);
            assert_true(got[i].boundary_logit == drawn.nucleus[i].boundary_logit + constant);
        }
    }
}

static void test_appended(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < ROWS; seed++) {
        struct nucleus got[COUNT];
        draw(seed);
        memcpy(other, drawn.row, sizeof other);
        for (int64_t t = drawn.vocab; t < drawn.vocab + APPENDED; t++)
            other[t] = -INFINITY;
        solve(other, drawn.vocab + (int64_t)(1 + seed % APPENDED), got);
        for (int i = 0; i < COUNT; i++) {
            same_sums(&got[i], &drawn.nucleus[i]);
            assert_int_equal(got[i].boundary_token, drawn.nucleus[i].boundary_token);
        }
    }
}

static void test_growing_p(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < ROWS; seed++) {
        draw(seed);
        for (int i = 1; i < COUNT; i++) {
            const struct nucleus *const less = &drawn.nucleus[i - 1], *const more = less + 1;
            assert_true(less->kept <= more->kept);
            assert_true(nucleus_keeps(more, less->boundary_logit, less->boundary_token));
        }
    }
}

/* Each p alone gives what all together give. */
static void test_one_p_at_a_time(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < ROWS; seed++) {
        draw(seed);
        for (int i = 0; i < COUNT; i++) {
            struct nucleus got;
            assert_int_equal(
                nucleus_rows(drawn.row, 1, drawn.vocab, drawn.vocab, &drawn.p[i], 1, 1, &got, NULL),
                TB_OK);
            same_sums(&got, &drawn.nucleus[i]);
            assert_int_equal(got.boundary_token, drawn.nucleus[i].boundary_token);
        }
    }
}

/* A batch cut anywhere gives the same rows. */
static void test_split_batch(void **state) {
    (void)state;
    enum { BATCH = 13, VOCAB = 97 };
    float rows[BATCH * VOCAB], p[BATCH];
    struct nucleus whole[BATCH], parts[BATCH];
    for (uint64_t seed = 0; seed < 40; seed++) {
        uint64_t random = seed;
        for (int i = 0; i < BATCH; i++) {
            rows_fill((enum row_kind)rows_below(&random, ROW_KINDS), &random, rows + i * VOCAB,
                      VOCAB);
            p[i] = rows_p(&random);
        }
        const int64_t cut = (int64_t)rows_below(&random, BATCH + 1);
        assert_int_equal(nucleus_rows(rows, BATCH, VOCAB, VOCAB, p, 1, 3, whole, NULL), TB_OK);
        assert_int_equal(nucleus_rows(rows, cut, VOCAB, VOCAB, p, 1, 2, parts, NULL), TB_OK);
        assert_int_equal(nucleus_rows(rows + cut * VOCAB, BATCH - cut, VOCAB, VOCAB, p + cut, 1, 1,
                                      parts + cut, NULL),
                         TB_OK);
        for (int i = 0; i < BATCH; i++) {
            same_sums(&whole[i], &parts[i]);
            assert_int_equal(whole[i].boundary_token, parts[i].boundary_token);
        }
    }
}

/* The oracle's own mask passes every contract; one token more or less never passes `exact`. */
static void test_gate(void **state) {
    (void)state;
    int refused = 0;
    for (uint64_t seed = 0; seed < ROWS; seed++) {
        draw(seed);
        const struct nucleus *const n = &drawn.nucleus[seed % COUNT];
        struct gate_case the_case = {.input = drawn.row,
                                     .output = other,
                                     .batch = 1,
                                     .vocab = drawn.vocab,
                                     .stride = drawn.vocab,
                                     .mask_value = -INFINITY,
                                     .p = &drawn.p[seed % COUNT],
                                     .oracle = n,
                                     .stock_output = other,
                                     .forced_token = -1};
        struct gate_result result;
        for (int64_t t = 0; t < drawn.vocab; t++)
            other[t] = n->untouched || nucleus_keeps(n, drawn.row[t], t) ? drawn.row[t] : -INFINITY;
        for (int contract = GATE_EXACT; contract <= GATE_ENVELOPE; contract++) {
            the_case.contract = (enum gate_contract)contract;
            assert_int_equal(gate_check(&the_case, NULL, &result, NULL), TB_OK);
            if (result.verdict != GATE_ACCEPTED || result.rows_equal != 1)
                fail_msg("seed %d: %s", (int)seed, gate_rule_name(result.rule));
        }
        const uint64_t t = rows_below(&drawn.state, (uint64_t)drawn.vocab);
        if (drawn.row[t] == -INFINITY)
            continue;
        other[t] = isinf(other[t]) ? drawn.row[t] : -INFINITY;
        the_case.contract = GATE_EXACT;
        assert_int_equal(gate_check(&the_case, NULL, &result, NULL), TB_OK);
        assert_int_equal(result.verdict, GATE_REJECTED);
        refused++;
    }
    assert_true(refused > ROWS / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition),  cmocka_unit_test(test_relabelling),
        cmocka_unit_test(test_constant),    cmocka_unit_test(test_appended),
        cmocka_unit_test(test_growing_p),   cmocka_unit_test(test_one_p_at_a_time),
        cmocka_unit_test(test_split_batch), cmocka_unit_test(test_gate),
    };
    return cmocka_run_group_tests_name("properties", tests, NULL, NULL);
}
