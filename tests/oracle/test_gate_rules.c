/* Every rule of the gate, one wrong mask at a time: seen red, and green just beside it. Row 0 of
 * each batch is right, row BAD is spoilt. */
#include "tests/oracle/scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

enum { ANY = -2 }; /* ANY: whatever token is named */

static bool seen[GATE_RULE_COUNT];

/* ---- The batches ---- */

/* Distinct levels in groups of four equal logits; ids scattered. */
static void ladder(void) {
    scene_begin(2, 2400);
    for (int64_t row = 0; row < 2; row++) {
        scene->p[row] = 0.9f;
        for (int64_t t = 0; t < 2400; t++)
            scene->input[row * scene->stride + t] =
                -0.004f * (float)((t * (row == 0 ? 1103 : 1109) % 2400) / 4);
    }
    scene_solve();
}

/* Row 0 keeps all: nothing is asked of stock there. */
static void ladder_alone(void) {
    ladder();
    scene->p[0] = 1.0f;
    scene_solve();
}

static void untouched(void) {
    ladder();
    scene->p[BAD] = 1.0f;
    in()[5] = -INFINITY;
    scene_solve();
}

static void masked(void) {
    ladder();
    for (int64_t t = 0; t < 2400; t += 2)
        in()[t] = -INFINITY;
    scene_solve();
}

/* The mask value is finite here; -inf in the input stays legal. */
static void finite_mask(void) {
    masked();
    scene->the_case.mask_value = -1e30f;
    for (int64_t row = 0; row < 2; row++)
        for (int64_t t = 0; t < scene->vocab; t++)
            if (isinf(scene->output[row * scene->stride + t]))
                scene->output[row * scene->stride + t] = -1e30f;
}

static void forced(void) {
    ladder();
    for (int64_t row = 0; row < 2; row++)
        scene->input[row * scene->stride + 13] = 1e9f;
    scene_solve();
    scene->the_case.forced_token = 13;
    scene->the_case.split_path = true;
}

/* Row 0 keeps all, so that any mask value suits it. */
static void forced_alone(void) {
    forced();
    scene->p[0] = 1.0f;
    scene_solve();
    scene->the_case.forced_token = 13;
}

/* Tokens 100..119 differ in logit by less than a binary32 x - M can hold, with M = 8; 110 and 111
 * are equal logits; the nucleus ends among them. */
static void close_logits(void) {
    ladder();
    for (int64_t t = 0; t < 2400; t++)
        in()[t] = t == 0 ? 8.0f : -4.0f;
    for (int64_t t = 100; t < 120; t++)
        in()[t] = (float)(t == 111 ? 110 : t) * 1e-10f;
    scene->p[BAD] = 0.0f;
    /* Half of the twenty: target = 1 + 10 e^-8 of 1 + 20 e^-8 + 2379 e^-12. */
    scene->p[BAD] =
        (float)((1.0 + 10.5 * exp(-8.0)) / (1.0 + 20.0 * exp(-8.0) + 2379.0 * exp(-12.0)));
    scene_solve();
}

/* ---- What is done to row BAD ---- */

static void nothing(int64_t rank) {
    (void)rank;
}
static void drop(int64_t rank) {
    scene_set(scene->output, BAD, rank < 0 ? n() + rank : rank, false);
}
static void drop_whole_tie(int64_t rank) {
    for (int64_t i = 0; i < 4; i++)
        drop(rank + i);
}
static void keep_more(int64_t more) {
    scene_keep(scene->output, BAD, n() + more);
}
static void keep_only(int64_t count) {
    scene_keep(scene->output, BAD, count);
}
static void keep_also(int64_t rank) {
    scene_set(scene->output, BAD, rank, true);
}
static void next_float(int64_t rank) {
    out()[at(rank)] = nextafterf(out()[at(rank)], 1.0f);
}
static void flip_zero(int64_t rank) {
    out()[at(rank)] = -out()[at(rank)]; /* both zeros compare equal, their bits do not */
}
static void half_masked(int64_t rank) {
    out()[at(rank)] = -1e30f;
}
static void put_nan(int64_t rank) {
    out()[at(rank)] = NAN;
}
static void mask_padding(int64_t place) {
    out()[scene->vocab + place] = -INFINITY;
}
static void nan_padding(int64_t place) {
    out()[scene->vocab + place] = NAN;
}
static void revive(int64_t token) {
    out()[token] = 0.5f;
}
static void leave_infinite(int64_t token) {
    out()[token] = -INFINITY;
}
static void stale(int64_t rank) {
    (void)rank;
    memcpy(out(), scene->output, (size_t)scene->vocab * sizeof(float));
}
static void skipped_launch(int64_t rank) {
    (void)rank;
    memcpy(out(), in(), (size_t)scene->vocab * sizeof(float));
}
static void stock_absent(int64_t more) {
    keep_more(more);
    scene->the_case.stock_output = NULL;
}
/* Surplus of the variant / of stock, two decimal digits. */
static void surplus_beside_stock(int64_t digits) {
    keep_more(digits / 10);
    scene_keep(scene->stock, BAD, n() + digits % 10);
}
static void stock_drops(int64_t rank) {
    scene_set(scene->stock, BAD, rank, false);
}
static void stock_masks_all(int64_t rank) {
    (void)rank;
    scene_keep(scene->stock, BAD, 0);
}
static void other_for_forced(int64_t rank) {
    keep_only(0);
    keep_also(rank);
}
static void loud_mask(int64_t value) {
    scene->the_case.mask_value = (float)value;
    for (int64_t i = 1; i < scene->vocab; i++)
        out()[at(i)] = (float)value;
}
static void island_off_split_path(int64_t rank) {
    scene->the_case.split_path = false;
    keep_also(rank);
}
static void off_split_path(int64_t more) {
    scene->the_case.split_path = false;
    keep_more(more);
}
/* Reverses the last tie of the nucleus: the sort path keeps higher ids. */
static void higher_ids(int64_t rank) {
    scene_set(scene->output, BAD, rank, false);
    scene_set(scene->output, BAD, rank + 1, true);
}
/* Of tokens 100..119 the first `count` by id, not by logit. */
static void cut_by_id(int64_t count) {
    for (int64_t t = 100; t < 120; t++)
        out()[t] = t < 100 + count ? in()[t] : -INFINITY;
}
/* The cut falls among the equal logits 110 and 111, and takes the higher id. */
static void cut_wrong_tie(int64_t count) {
    cut_by_id(count);
    out()[110] = -INFINITY;
    out()[111] = in()[111];
}
static void hole_among_far(int64_t token) {
    cut_by_id(20);
    out()[100] = -INFINITY;
    out()[token] = in()[token];
}
static void input_nan(int64_t value) {
    in()[3] = value == 0 ? NAN : INFINITY;
    scene_solve();
}
static void input_empty(int64_t rank) {
    (void)rank;
    for (int64_t t = 0; t < scene->vocab; t++)
        in()[t] = -INFINITY;
    scene_solve();
}
static void uncertified(int64_t rank) {
    (void)rank;
    scene->oracle[BAD].status = NUCLEUS_AMBIGUOUS;
}

struct sample {
    const char *name;
    void (*batch)(void);
    enum gate_contract contract;
    void (*spoil)(int64_t);
    int64_t argument;
    enum gate_rule rule;
    int64_t rank; /* of the offending token; ANY: not asked */
};

/* clang-format off */
static const struct sample samples[] = {
    {"exact, right", ladder, GATE_EXACT, nothing, 0, GATE_RULE_NONE, ANY},
    {"bounded, right", ladder, GATE_BOUNDED, nothing, 0, GATE_RULE_NONE, ANY},
    {"conservative, right", ladder, GATE_CONSERVATIVE, nothing, 0, GATE_RULE_NONE, ANY},
    {"envelope, right", ladder, GATE_ENVELOPE, nothing, 0, GATE_RULE_NONE, ANY},
    {"exact, hole", ladder, GATE_EXACT, drop_whole_tie, 8, GATE_RULE_NOT_ORACLE_SET, ANY},
    {"exact, wrong tie", ladder, GATE_EXACT, drop, 4, GATE_RULE_NOT_ORACLE_SET, 4},
    {"exact, no crossing token", ladder, GATE_EXACT, keep_more, -1, GATE_RULE_NOT_ORACLE_SET, ANY},
    {"exact, one too many", ladder, GATE_EXACT, keep_more, 1, GATE_RULE_NOT_ORACLE_SET, ANY},
    {"bounded, hole", ladder, GATE_BOUNDED, drop_whole_tie, 8, GATE_RULE_NOT_PREFIX, 8},
    {"bounded, island", ladder, GATE_BOUNDED, keep_also, 2399, GATE_RULE_NOT_PREFIX, ANY},
    {"bounded, hole inside a tie", ladder, GATE_BOUNDED, drop, 4, GATE_RULE_NOT_PREFIX, 4},
    {"bounded, no crossing token", ladder, GATE_BOUNDED, drop, -1, GATE_RULE_UNDERKEEP, ANY},
    {"bounded, three too many", ladder, GATE_BOUNDED, keep_more, 3, GATE_RULE_NONE, ANY},
    {"conservative, hole", ladder, GATE_CONSERVATIVE, drop_whole_tie, 8, GATE_RULE_NOT_PREFIX, 8},
    {"conservative, underkeep", ladder, GATE_CONSERVATIVE, drop, -1, GATE_RULE_UNDERKEEP, ANY},
    {"envelope, hole", ladder, GATE_ENVELOPE, drop_whole_tie, 8, GATE_RULE_ORDER, 8},
    {"envelope, three too few", ladder, GATE_ENVELOPE, keep_more, -3, GATE_RULE_NONE, ANY},
    {"kept value changed", ladder, GATE_BOUNDED, next_float, 9, GATE_RULE_CHANGED_VALUE, 9},
    {"kept zero of other sign", ladder, GATE_EXACT, flip_zero, 0, GATE_RULE_CHANGED_VALUE, 0},
    {"dropped, other mask value", ladder, GATE_ENVELOPE, half_masked, 2399, GATE_RULE_CHANGED_VALUE, 2399},
    {"NaN for a kept token", ladder, GATE_EXACT, put_nan, 3, GATE_RULE_NAN, 3},
    {"NaN for a dropped token", ladder, GATE_ENVELOPE, put_nan, 2399, GATE_RULE_NAN, 2399},
    {"first padding written", ladder, GATE_EXACT, mask_padding, 0, GATE_RULE_PADDING, ANY},
    {"last padding written", ladder, GATE_BOUNDED, mask_padding, 7, GATE_RULE_PADDING, ANY},
    {"NaN in padding", ladder, GATE_ENVELOPE, nan_padding, 3, GATE_RULE_PADDING, ANY},
    {"stale output", ladder, GATE_EXACT, stale, 0, GATE_RULE_CHANGED_VALUE, ANY},
    {"launch skipped, exact", ladder, GATE_EXACT, skipped_launch, 0, GATE_RULE_NOT_ORACLE_SET, ANY},
    {"launch skipped, bounded", ladder, GATE_BOUNDED, skipped_launch, 0, GATE_RULE_ENVELOPE, ANY},
    {"launch skipped, envelope", ladder, GATE_ENVELOPE, skipped_launch, 0, GATE_RULE_ENVELOPE, ANY},
    {"all masked, exact", ladder, GATE_EXACT, keep_only, 0, GATE_RULE_EMPTY_MASK, ANY},
    {"all masked, envelope", ladder, GATE_ENVELOPE, keep_only, 0, GATE_RULE_EMPTY_MASK, ANY},
    {"p = 1, right", untouched, GATE_EXACT, nothing, 0, GATE_RULE_NONE, ANY},
    {"p = 1, lowest dropped", untouched, GATE_ENVELOPE, drop, 2398, GATE_RULE_UNTOUCHED, 2398},
    {"p = 1, value changed", untouched, GATE_BOUNDED, next_float, 0, GATE_RULE_UNTOUCHED, 0},
    {"p = 1, -inf given a value", untouched, GATE_EXACT, revive, 5, GATE_RULE_UNTOUCHED, ANY},
    {"p = 1, NaN", untouched, GATE_EXACT, put_nan, 0, GATE_RULE_NAN, 0},
    {"masked, right", masked, GATE_EXACT, nothing, 0, GATE_RULE_NONE, ANY},
    {"masked, revived", masked, GATE_EXACT, revive, 4, GATE_RULE_RESURRECTED, ANY},
    {"finite mask value, right", finite_mask, GATE_EXACT, nothing, 0, GATE_RULE_NONE, ANY},
    {"finite mask value, -inf left", finite_mask, GATE_EXACT, leave_infinite, 4, GATE_RULE_NONE, ANY},
    {"finite mask value, -inf written", finite_mask, GATE_EXACT, leave_infinite, 1, GATE_RULE_CHANGED_VALUE, ANY},
    {"finite mask value, revived", finite_mask, GATE_BOUNDED, revive, 4, GATE_RULE_RESURRECTED, ANY},
    {"forced, right", forced, GATE_CONSERVATIVE, nothing, 0, GATE_RULE_NONE, ANY},
    {"forced, stock masks all", forced, GATE_CONSERVATIVE, stock_masks_all, 0, GATE_RULE_NONE, ANY},
    {"forced, all masked", forced, GATE_BOUNDED, keep_only, 0, GATE_RULE_EMPTY_MASK, ANY},
    {"forced, another kept", forced, GATE_BOUNDED, other_for_forced, 7, GATE_RULE_FORCED_DROPPED, 0},
    {"forced, not the greatest", forced_alone, GATE_BOUNDED, loud_mask, 2000000000, GATE_RULE_FORCED_DROPPED, ANY},
    {"forced, not the first of the greatest", forced_alone, GATE_BOUNDED, loud_mask, 1000000000, GATE_RULE_FORCED_DROPPED, ANY},
    {"forced, a hole among probabilities of 0", forced, GATE_BOUNDED, island_off_split_path, 9, GATE_RULE_NOT_PREFIX, 1},
    {"forced, two kept", forced, GATE_BOUNDED, keep_more, 1, GATE_RULE_FORCED_COUNT, 1},
    {"forced, two kept off the split path", forced, GATE_BOUNDED, off_split_path, 1, GATE_RULE_NONE, ANY},
    {"forced, five kept off the split path", forced, GATE_BOUNDED, off_split_path, 4, GATE_RULE_ENVELOPE, ANY},
    {"stock missing", ladder_alone, GATE_CONSERVATIVE, stock_absent, 0, GATE_RULE_STOCK_MISSING, ANY},
    {"stock underkeep", ladder, GATE_CONSERVATIVE, stock_drops, 0, GATE_RULE_STOCK_UNDERKEEP, 0},
    {"stock's hole means nothing to bounded", ladder, GATE_BOUNDED, stock_drops, 0, GATE_RULE_NONE, ANY},
    {"stock nearer by one", ladder, GATE_CONSERVATIVE, surplus_beside_stock, 21, GATE_RULE_STOCK_NEARER, ANY},
    {"stock as near", ladder, GATE_CONSERVATIVE, surplus_beside_stock, 22, GATE_RULE_NONE, ANY},
    {"stock farther", ladder, GATE_CONSERVATIVE, surplus_beside_stock, 29, GATE_RULE_NONE, ANY},
    {"one probability, cut by id", close_logits, GATE_BOUNDED, cut_by_id, 10, GATE_RULE_EQUAL_PROBABILITY, ANY},
    {"one probability, wrong tie", close_logits, GATE_BOUNDED, cut_wrong_tie, 10, GATE_RULE_TIE_ORDER, ANY},
    {"one probability, exact", close_logits, GATE_EXACT, cut_by_id, 10, GATE_RULE_NOT_ORACLE_SET, ANY},
    {"one probability, envelope", close_logits, GATE_ENVELOPE, cut_by_id, 10, GATE_RULE_ORDER, ANY},
    {"a hole far from it", close_logits, GATE_BOUNDED, hole_among_far, 3, GATE_RULE_NOT_PREFIX, ANY},
    {"NaN in the input", ladder, GATE_EXACT, input_nan, 0, GATE_RULE_INPUT_NAN, ANY},
    {"+inf in the input", ladder, GATE_EXACT, input_nan, 1, GATE_RULE_INPUT_NAN, ANY},
    {"input of -inf", ladder, GATE_EXACT, input_empty, 0, GATE_RULE_INPUT_EMPTY, ANY},
    {"boundary not certified", ladder, GATE_EXACT, uncertified, 0, GATE_RULE_ORACLE_BOUNDARY, ANY},
};
/* clang-format on */

static void judge_sample(const struct sample *sample) {
    struct gate_row rows[2];
    sample->batch();
    scene->the_case.contract = sample->contract;
    sample->spoil(sample->argument);
    const struct gate_result result = scene_judge(rows);
    seen[rows[BAD].rule] = true;
    if (rows[BAD].rule != sample->rule || result.rule != sample->rule)
        fail_msg("%s: row 1 is %s and the case %s, not %s", sample->name,
                 gate_rule_name(rows[BAD].rule), gate_rule_name(result.rule),
                 gate_rule_name(sample->rule));
    if (rows[0].rule != GATE_RULE_NONE)
        fail_msg("%s: row 0 is %s", sample->name, gate_rule_name(rows[0].rule));
    if (sample->rank != ANY && rows[BAD].token != at(sample->rank))
        fail_msg("%s: token %d is named, not %d", sample->name, (int)rows[BAD].token,
                 (int)at(sample->rank));
    assert_true((result.verdict == GATE_ACCEPTED) == (sample->rule == GATE_RULE_NONE));
    assert_int_equal(result.row, sample->rule == GATE_RULE_NONE ? -1 : BAD);
    assert_int_equal(result.rows_by_rule[sample->rule], sample->rule == GATE_RULE_NONE ? 2 : 1);
}

static void test_samples(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        judge_sample(&samples[i]);
    for (int rule = 0; rule <= GATE_RULE_ORACLE_BOUNDARY; rule++)
        if (!seen[rule])
            fail_msg("rule %s was never seen", gate_rule_name((enum gate_rule)rule));
}

struct edge {
    enum gate_contract contract;
    int64_t oracle, kept;
    enum gate_rule rule;
};

/* A flat row of 2n tokens has a nucleus of exactly n at p = 0.5. */
static const struct edge edges[] = {
    {GATE_BOUNDED, 10, 13, GATE_RULE_NONE},
    {GATE_BOUNDED, 10, 14, GATE_RULE_ENVELOPE},
    {GATE_BOUNDED, 600, 603, GATE_RULE_NONE},
    {GATE_BOUNDED, 600, 604, GATE_RULE_ENVELOPE},
    {GATE_BOUNDED, 800, 804, GATE_RULE_ENVELOPE}, /* 0.005 itself is outside */
    {GATE_BOUNDED, 801, 805, GATE_RULE_NONE},
    {GATE_BOUNDED, 1000, 1005, GATE_RULE_ENVELOPE},
    {GATE_BOUNDED, 1001, 1006, GATE_RULE_NONE},
    {GATE_BOUNDED, 1001, 1000, GATE_RULE_UNDERKEEP},
    {GATE_BOUNDED, 1, 4, GATE_RULE_NONE},
    {GATE_ENVELOPE, 800, 796, GATE_RULE_ENVELOPE},
    {GATE_ENVELOPE, 801, 797, GATE_RULE_NONE},
    {GATE_ENVELOPE, 801, 805, GATE_RULE_NONE},
    {GATE_ENVELOPE, 10, 6, GATE_RULE_ENVELOPE},
    {GATE_ENVELOPE, 10, 7, GATE_RULE_NONE},
    {GATE_EXACT, 801, 805, GATE_RULE_NOT_ORACLE_SET},
};

static void test_envelope_edges(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        const struct edge *const edge = &edges[i];
        struct gate_row row;
        scene_begin(1, 2 * edge->oracle + (edge->oracle == 1 ? 4 : 0));
        for (int64_t t = 0; t < scene->vocab; t++)
            scene->input[t] = 2.5f;
        scene->p[0] = edge->oracle == 1 ? 0.1f : 0.5f;
        scene_solve();
        assert_int_equal(scene->oracle[0].kept, edge->oracle);
        scene->the_case.contract = edge->contract;
        scene_keep(scene->output, 0, edge->kept);
        scene_judge(&row);
        if (row.rule != edge->rule)
            fail_msg("%s, %d kept of %d: %s", gate_contract_name(edge->contract), (int)edge->kept,
                     (int)edge->oracle, gate_rule_name(row.rule));
        assert_int_equal(row.kept, edge->kept);
        assert_int_equal(row.minimal, edge->kept <= edge->oracle);
    }
}

/* Ties: for a contract of canonical order a cut by other ids is wrong, for the sort path it is not.
 */
static void test_tie_by_higher_id(void **state) {
    (void)state;
    static const struct {
        enum gate_contract contract;
        enum gate_rule rule;
    } wants[] = {{GATE_EXACT, GATE_RULE_NOT_ORACLE_SET},
                 {GATE_BOUNDED, GATE_RULE_TIE_ORDER},
                 {GATE_CONSERVATIVE, GATE_RULE_TIE_ORDER},
                 {GATE_ENVELOPE, GATE_RULE_NONE}};
    for (size_t i = 0; i < sizeof wants / sizeof *wants; i++) {
        struct gate_row rows[2];
        ladder();
        while (in()[at(n() - 1)] != in()[at(n())]) { /* let the cut fall inside a tie */
            scene->p[BAD] -= 0.0002f;
            scene_solve();
        }
        higher_ids(n() - 1);
        scene->the_case.contract = wants[i].contract;
        scene_judge(rows);
        assert_int_equal(rows[BAD].rule, wants[i].rule);
        assert_int_equal(rows[BAD].surplus, 1);
        assert_int_equal(rows[BAD].missing, 1);
        assert_true(rows[BAD].surplus_mass == rows[BAD].missing_mass);
        assert_false(rows[BAD].equal);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_envelope_edges),
        cmocka_unit_test(test_tie_by_higher_id),
    };
    return cmocka_run_group_tests_name("gate_rules", tests, NULL, NULL);
}
