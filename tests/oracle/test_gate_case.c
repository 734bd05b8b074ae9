/* The gate's verdict on a whole case: which row speaks, what is excused, hazards, hashes, names. */
#include "tests/oracle/scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Four rows of 1,000 falling logits, 995 to 998 tokens in the nucleus; ids as ranks. */
static void begin(void) {
    scene_begin(4, 1000);
    for (int64_t row = 0; row < 4; row++) {
        scene->p[row] = 0.99f;
        for (int64_t t = 0; t < 1000; t++)
            scene->input[row * scene->stride + t] = -0.001f * (float)(t + row);
    }
    scene_solve();
    scene->the_case.contract = GATE_BOUNDED;
}

static void underkeep(int64_t row) {
    scene_keep(scene->output, row, scene->oracle[row].kept - 1);
}

static void hole(int64_t row) {
    scene_set(scene->output, row, 3, false);
}

struct excuse {
    const char *name;
    int underkeeps, holes; /* rows spoilt so: underkeeps from row 0 on, holes from row 3 down */
    bool either;
    double share;
    bool excused;
    enum gate_rule rule;
    int64_t row, rows_excused;
};

static const struct excuse excuses[] = {
    {"not tolerated", 1, 0, false, 1.0, false, GATE_RULE_UNDERKEEP, 0, 0},
    {"one of four, a quarter allowed", 1, 0, true, 0.25, true, GATE_RULE_UNDERKEEP, 0, 1},
    {"one of four, less allowed", 1, 0, true, 0.24, false, GATE_RULE_UNDERKEEP, 0, 1},
    {"two of four, a quarter allowed", 2, 0, true, 0.25, false, GATE_RULE_UNDERKEEP, 0, 2},
    {"a hole is never excused", 0, 1, true, 1.0, false, GATE_RULE_NOT_PREFIX, 3, 0},
    {"a hole speaks before an excused row", 2, 1, true, 1.0, false, GATE_RULE_NOT_PREFIX, 3, 2},
    {"without either the first row speaks", 2, 1, false, 1.0, false, GATE_RULE_UNDERKEEP, 0, 0},
    {"nothing to excuse", 0, 0, true, 1.0, false, GATE_RULE_NONE, -1, 0},
    {"a share that is no number", 1, 0, true, NAN, false, GATE_RULE_UNDERKEEP, 0, 1},
};

static void test_excuses(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof excuses / sizeof *excuses; i++) {
        const struct excuse *const e = &excuses[i];
        begin();
        for (int k = 0; k < e->underkeeps; k++)
            underkeep(k);
        for (int k = 0; k < e->holes; k++)
            hole(3 - k);
        scene->the_case.either = e->either;
        scene->the_case.either_share = e->share;
        const struct gate_result result = scene_judge(NULL);
        if (result.rule != e->rule || result.row != e->row ||
            gate_excused(&scene->the_case, &result) != e->excused)
            fail_msg("%s: rule %s, row %d, excused %d", e->name, gate_rule_name(result.rule),
                     (int)result.row, gate_excused(&scene->the_case, &result));
        assert_int_equal(result.rows_failed, e->underkeeps + e->holes);
        assert_int_equal(result.rows_excused, e->rows_excused);
        /* Excused or not: it may not be timed. */
        assert_int_equal(result.verdict,
                         e->underkeeps + e->holes > 0 ? GATE_REJECTED : GATE_ACCEPTED);
    }
}

/* Shares are decimal: 0.29 of 100 rows are 29 rows, although 0.29 * 100 is less in binary64. */
static void test_decimal_share(void **state) {
    (void)state;
    for (int64_t percent = 1; percent <= 100; percent++) {
        const struct gate_case the_case = {
            .batch = 100, .either = true, .either_share = (double)percent / 100.0};
        struct gate_result result = {.verdict = GATE_REJECTED, .rule = GATE_RULE_UNDERKEEP};
        result.rows_failed = result.rows_excused = percent;
        assert_true(gate_excused(&the_case, &result));
        result.rows_failed = result.rows_excused = percent + 1;
        assert_false(gate_excused(&the_case, &result));
    }
}

/* Exactly the rules that the definition names, and no other. */
static void test_excusable_rules(void **state) {
    (void)state;
    static const enum gate_rule named[] = {GATE_RULE_EQUAL_PROBABILITY, GATE_RULE_UNDERKEEP,
                                           GATE_RULE_ENVELOPE, GATE_RULE_STOCK_UNDERKEEP,
                                           GATE_RULE_STOCK_NEARER};
    for (int rule = 0; rule < GATE_RULE_COUNT; rule++) {
        bool want = false;
        for (size_t i = 0; i < sizeof named / sizeof *named; i++)
            want = want || named[i] == (enum gate_rule)rule;
        if (gate_rule_excusable((enum gate_rule)rule) != want)
            fail_msg("%s", gate_rule_name((enum gate_rule)rule));
    }
}

/* What a contract asks for beyond what every kernel is held to. */
static void test_contract_rules(void **state) {
    (void)state;
    int count = 0;
    for (int rule = 0; rule < GATE_RULE_COUNT; rule++)
        count += gate_rule_of_contract((enum gate_rule)rule);
    assert_int_equal(count, 10);
    assert_true(gate_rule_of_contract(GATE_RULE_NOT_PREFIX));
    assert_true(gate_rule_of_contract(GATE_RULE_STOCK_MISSING));
    assert_false(gate_rule_of_contract(GATE_RULE_FORCED_DROPPED));
    assert_false(gate_rule_of_contract(GATE_RULE_RESURRECTED));
}

/* Sums and extremes of an accepted case. */
static void test_counts(void **state) {
    (void)state;
    struct gate_row rows[4];
    begin();
    scene_keep(scene->output, 1, scene->oracle[1].kept + 3);
    scene_keep(scene->output, 2, scene->oracle[2].kept + 1);
    const struct gate_result result = scene_judge(rows);
    const int64_t oracle = scene->oracle[0].kept + scene->oracle[1].kept + scene->oracle[2].kept +
                           scene->oracle[3].kept;
    assert_int_equal(result.verdict, GATE_ACCEPTED);
    assert_int_equal(result.oracle, oracle);
    assert_int_equal(result.kept, oracle + 4);
    assert_int_equal(result.rows_equal, 2);
    assert_int_equal(result.most_surplus, 3);
    assert_int_equal(result.most_missing, 0);
    assert_true(result.surplus_mass == rows[1].surplus_mass && rows[1].surplus_mass > 0.0);
    const struct nucleus *const o = &scene->oracle[2];
    const double added = exp((double)scene->input[2 * scene->stride + o->kept] - o->max_logit);
    assert_true(rows[2].surplus_mass == added / o->normalizer);
    assert_true(rows[0].minimal && !rows[1].minimal);
}

/* ---- Inputs that no mask can be right for ---- */

static void test_unreadable_before_all(void **state) {
    (void)state;
    begin();
    hole(0);
    scene->oracle[1].status = NUCLEUS_AMBIGUOUS;
    struct gate_result result = scene_judge(NULL);
    assert_int_equal(result.verdict, GATE_AMBIGUOUS);
    assert_int_equal(result.row, 1);
    scene->oracle[2].status = NUCLEUS_NONFINITE_INPUT;
    result = scene_judge(NULL);
    assert_int_equal(result.verdict, GATE_UNREADABLE);
    assert_int_equal(result.row, 2);
    scene->the_case.either = true;
    scene->the_case.either_share = 1.0;
    assert_false(gate_excused(&scene->the_case, &result));
}

/* Row 0 NaN, row 1 +inf, row 2 all -inf, row 3 ordinary. */
static void begin_hazard(void) {
    begin();
    scene->input[7] = NAN;
    scene_row(scene->input, 1)[7] = INFINITY;
    for (int64_t t = 0; t < scene->vocab; t++)
        scene_row(scene->input, 2)[t] = -INFINITY;
    scene_solve();
    scene->the_case.contract = GATE_EXACT;
    scene->the_case.hazard = true;
}

struct hazard {
    const char *name;
    int64_t row, token; /* what is written, and where; row -1: nothing */
    float value;
    enum gate_rule rule;
};

static const struct hazard hazards[] = {
    {"left as it was", -1, 0, 0.0f, GATE_RULE_NONE},
    {"anything in a NaN row", 0, 3, 42.0f, GATE_RULE_NONE},
    {"NaN in a NaN row", 0, 3, NAN, GATE_RULE_NONE},
    {"padding of a NaN row", 0, 1000, 1.0f, GATE_RULE_PADDING},
    {"anything in a +inf row", 1, 7, -INFINITY, GATE_RULE_NONE},
    {"NaN in a +inf row", 1, 3, NAN, GATE_RULE_NAN},
    {"token invented in an empty row", 2, 0, 1.0f, GATE_RULE_RESURRECTED},
    {"NaN in an empty row", 2, 0, NAN, GATE_RULE_NAN},
    {"ordinary neighbour spoilt", 3, 0, -INFINITY, GATE_RULE_NOT_ORACLE_SET},
    {"NaN in an ordinary neighbour", 3, 0, NAN, GATE_RULE_NAN},
    {"padding of an ordinary neighbour", 3, 1007, NAN, GATE_RULE_PADDING},
};

static void test_hazards(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof hazards / sizeof *hazards; i++) {
        const struct hazard *const h = &hazards[i];
        begin_hazard();
        if (h->row >= 0)
            scene_row(scene->output, h->row)[h->token] = h->value;
        const struct gate_result result = scene_judge(NULL);
        if (result.rule != h->rule ||
            (result.verdict == GATE_ACCEPTED) != (h->rule == GATE_RULE_NONE))
            fail_msg("%s: %s", h->name, gate_rule_name(result.rule));
        assert_int_equal(result.row, h->rule == GATE_RULE_NONE ? -1 : h->row);
    }
    /* The same bytes in a case that is no hazard cannot be judged at all. */
    begin_hazard();
    scene->the_case.hazard = false;
    assert_int_equal(scene_judge(NULL).verdict, GATE_UNREADABLE);
}

/* p = 1 holds for rows that no nucleus exists for, too. */
static void test_hazard_untouched(void **state) {
    (void)state;
    begin_hazard();
    for (int64_t row = 0; row < 3; row++)
        scene->p[row] = 1.0f;
    scene_solve();
    scene->the_case.hazard = true;
    assert_int_equal(scene_judge(NULL).verdict, GATE_ACCEPTED);
    scene->output[2] = -INFINITY;
    assert_int_equal(scene_judge(NULL).rule, GATE_RULE_UNTOUCHED);
}

/* ---- Hashes and bits ---- */

static void test_hash(void **state) {
    (void)state;
    /* Two rows of three tokens keep {0, 2} and {1}: bytes 05 02. */
    static const char want[] = "7c2f2290b282a9630f38a2449df18d5595dd88a3e9c9ca138fc5d3a72266211c";
    scene_begin(2, 3);
    const float rows[2][3] = {{1.0f, 0.0f, 1.0f}, {-INFINITY, 5.0f, 1.0f}};
    for (int row = 0; row < 2; row++) {
        scene->p[row] = 0.7f;
        memcpy(scene_row(scene->input, row), rows[row], sizeof rows[row]);
    }
    scene_solve();
    const struct gate_result result = scene_judge(NULL);
    assert_int_equal(result.verdict, GATE_ACCEPTED);
    assert_string_equal(result.mask_sha256, want);
    const uint8_t bytes[] = {5, 2};
    char sha8[GATE_SHA8_BYTES];
    assert_int_equal(gate_row_sha8(bytes, 16, sha8, NULL), TB_OK);
    assert_memory_equal(sha8, want, 16);
    assert_int_equal(strlen(sha8), 16);
}

static void test_bits(void **state) {
    (void)state;
    float input[19], output[19];
    for (int64_t vocab = 1; vocab <= 19; vocab++) {
        for (uint32_t kept = 0; kept < 1u << 19; kept += 7919) {
            uint8_t bits[4] = {0xaa, 0xaa, 0xaa, 0xaa};
            const int64_t bytes = (vocab + 7) / 8;
            for (int t = 0; t < vocab; t++) {
                input[t] = t % 5 == 4 ? -INFINITY : (float)t;
                output[t] = kept >> t & 1 ? input[t] : -INFINITY;
            }
            gate_kept_bits(input, output, vocab, bits);
            for (int64_t t = 0; t < bytes * 8; t++) {
                const bool want = t < vocab && t % 5 != 4 && (kept >> t & 1);
                assert_int_equal(bits[t / 8] >> (t % 8) & 1, want);
            }
            assert_int_equal(bits[bytes], 0xaa);
        }
    }
}

static void test_same_mask(void **state) {
    (void)state;
    static const int64_t places[] = {0, 500, 999, 1000, 1007, 3 * 1008 + 1007};
    begin();
    float *const again = malloc(sizeof scene->output);
    assert_non_null(again);
    memcpy(again, scene->output, sizeof scene->output);
    assert_true(gate_same_mask(&scene->the_case, again));
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        again[places[i]] = 0.125f;
        assert_false(gate_same_mask(&scene->the_case, again));
        again[places[i]] = scene->output[places[i]];
    }
    /* A launch that did not happen leaves the input; a -0 for a +0 is a change. */
    assert_false(gate_same_mask(&scene->the_case, scene->input));
    again[0] = -again[0];
    assert_true(again[0] == scene->output[0]);
    assert_false(gate_same_mask(&scene->the_case, again));
    free(again);
}

static void test_names(void **state) {
    (void)state;
    static const char *const contracts[] = {"exact", "bounded", "conservative", "envelope"};
    enum gate_contract contract;
    for (size_t i = 0; i < 4; i++) {
        assert_true(gate_contract_parse(contracts[i], &contract));
        assert_string_equal(gate_contract_name(contract), contracts[i]);
        assert_int_equal(contract, i);
    }
    assert_false(gate_contract_parse("Exact", &contract));
    assert_false(gate_contract_parse("", &contract));
    for (int i = 0; i < GATE_RULE_COUNT; i++) {
        assert_non_null(gate_rule_name((enum gate_rule)i));
        assert_true(strlen(gate_rule_text((enum gate_rule)i)) > 10);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(gate_rule_name((enum gate_rule)i),
                                    gate_rule_name((enum gate_rule)k));
    }
    for (int i = GATE_ACCEPTED; i <= GATE_UNSUPPORTED; i++)
        assert_string_not_equal(gate_verdict_name((enum gate_verdict)i), "unknown");
    assert_string_equal(gate_verdict_name(GATE_ACCEPTED), "accepted");
    assert_string_equal(gate_rule_name(GATE_RULE_STOCK_UNDERKEEP), "stock_underkeep");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_excuses),
        cmocka_unit_test(test_decimal_share),
        cmocka_unit_test(test_excusable_rules),
        cmocka_unit_test(test_contract_rules),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_unreadable_before_all),
        cmocka_unit_test(test_hazards),
        cmocka_unit_test(test_hazard_untouched),
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_same_mask),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests_name("gate_case", tests, NULL, NULL);
}
