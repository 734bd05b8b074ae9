/* The exact sum against math.fsum: every bit, on sums that defeat a plain loop. */
#include "oracle/exact_sum.h"
#include "tests/oracle/judge.h"
#include "tests/oracle/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT_GREATEST = 6000, RANDOM_SUMS = 400 };

struct known {
    const char *name;
    size_t count;
    double values[8];
};

/* Half-way cases, cancellation, the ends of the range, and what is no number. */
static const struct known known_sums[] = {
    {"empty", 0, {0}},
    {"minus zero", 1, {-0.0}},
    {"half way, to even", 2, {1.0, 0x1p-53}},
    {"half way, pulled up by a distant partial", 3, {1.0, 0x1p-53, 0x1p-200}},
    {"half way, pulled down", 3, {1.0, 0x1p-53, -0x1p-200}},
    {"half way above odd", 3, {1.0 + 0x1p-52, 0x1p-53, -0x1p-200}},
    {"negative half way", 3, {-1.0, -0x1p-53, -0x1p-1074}},
    {"cancels to a crumb", 3, {1e16, 1.0, -1e16}},
    {"cancels all", 4, {1e300, 1e-300, -1e300, -1e-300}},
    {"subnormals", 3, {0x1p-1074, 0x1p-1074, 0x1p-1073}},
    {"smallest normal less a crumb", 2, {0x1p-1022, -0x1p-1074}},
    {"greatest", 2, {0x1.fffffffffffffp1023, -0x1p1000}},
    {"intermediate overflow", 3, {0x1.8p1023, 0x1.8p1023, -0x1.8p1023}},
    {"overflow", 2, {0x1.fffffffffffffp1023, 0x1.fffffffffffffp1023}},
    {"overflow then infinity", 3, {0x1.8p1023, 0x1.8p1023, INFINITY}},
    {"infinity then overflow", 3, {INFINITY, 0x1.8p1023, 0x1.8p1023}},
    {"infinity", 3, {1.0, INFINITY, -5.0}},
    {"both infinities", 3, {INFINITY, 1.0, -INFINITY}},
    {"nan", 2, {NAN, 1.0}},
    {"equal exponents then a drop", 5, {1.5, 1.25, 1.75, 0x1p-30, 0x1.8p-30}},
};

static void put(FILE *file, const double *values, size_t count) {
    const int64_t head = (int64_t)count;
    assert_int_equal(fwrite(&head, sizeof head, 1, file), 1);
    assert_int_equal(fwrite(values, sizeof *values, count, file), count);
}

static void check(const char *name, const double *values, size_t count, FILE *answers) {
    char line[128];
    struct exact_sum by_one, by_many;
    exact_sum_clear(&by_one);
    exact_sum_clear(&by_many);
    for (size_t i = 0; i < count; i++)
        exact_sum_add(&by_one, values[i]);
    /* In two uneven parts: a running sum goes on where it stands. */
    exact_sum_add_many(&by_many, values, count / 3);
    exact_sum_add_many(&by_many, values + count / 3, count - count / 3);
    assert_non_null(fgets(line, sizeof line, answers));
    const double got[] = {exact_sum_value(&by_one), exact_sum_value(&by_many)};
    for (int i = 0; i < 2; i++) {
        const int refused = strchr("oin", line[0]) != NULL && strncmp(line, "inf", 3) != 0;
        const double want = refused ? (double)NAN : strtod(line, NULL);
        if (!(got[i] == want || (isnan(got[i]) && isnan(want))))
            fail_msg("%s (%s): got %a, math.fsum says %s", name, i ? "many" : "one", got[i], line);
    }
}

static void test_known(void **state) {
    (void)state;
    const size_t count = sizeof known_sums / sizeof *known_sums;
    FILE *const requests = judge_requests();
    for (size_t i = 0; i < count; i++)
        put(requests, known_sums[i].values, known_sums[i].count);
    FILE *const answers = judge_ask(requests, "--sums");
    for (size_t i = 0; i < count; i++)
        check(known_sums[i].name, known_sums[i].values, known_sums[i].count, answers);
    judge_close(requests, answers);
}

/* kind 0: any exponents; 1: pairs that cancel; 2: equal exponents; 3: descending weights. */
static size_t make_sum(uint64_t seed, double *values) {
    static const char *const names[] = {"any", "cancel", "equal", "weights"};
    const size_t kind = seed % (sizeof names / sizeof *names);
    uint64_t state = seed;
    const size_t count = rows_below(&state, seed % 16 == 2 ? COUNT_GREATEST : 200) / 2 * 2;
    for (size_t i = 0; i < count; i++) {
        const double x = 2.0 * rows_uniform(&state) - 1.0;
        values[i] = ldexp(x, (int)rows_below(&state, 2070) - 1075);
        if (kind == 1 && i % 2 == 1)
            values[i] = i % 10 == 1 ? ldexp(x, (int)rows_below(&state, 60) - 30) : -values[i - 1];
        else if (kind == 2)
            values[i] = seed % 3 == 0 ? fabs(x) / 8.0 + 0.5 : copysign(1.0 + fabs(x) / 2.0, x);
        else if (kind == 3)
            values[i] = exp(-(double)i * 0.05 * fabs(x));
    }
    return count;
}

static void test_random(void **state) {
    (void)state;
    double *const values = malloc(COUNT_GREATEST * sizeof *values);
    assert_non_null(values);
    FILE *const requests = judge_requests();
    for (uint64_t seed = 0; seed < RANDOM_SUMS; seed++)
        put(requests, values, make_sum(seed, values));
    FILE *const answers = judge_ask(requests, "--sums");
    for (uint64_t seed = 0; seed < RANDOM_SUMS; seed++) {
        char name[32];
        snprintf(name, sizeof name, "seed %d", (int)seed);
        check(name, values, make_sum(seed, values), answers);
    }
    judge_close(requests, answers);
    free(values);
}

/* As many partials as fit, single bits 30 places apart: the next one has to compress them. */
static void test_compress(void **state) {
    (void)state;
    double values[EXACT_SUM_PARTIALS];
    struct exact_sum sum;
    exact_sum_clear(&sum);
    for (int i = 0; i < EXACT_SUM_PARTIALS; i++)
        values[i] = ldexp(i % 3 == 0 ? -1.0 : 1.0, 30 * i - 1000);
    values[EXACT_SUM_PARTIALS - 1] = 0x1p1000; /* too far from the one below to merge with it */
    memcpy(sum.partial, values, sizeof values);
    sum.count = EXACT_SUM_PARTIALS - 1;
    exact_sum_add(&sum, values[EXACT_SUM_PARTIALS - 1]);
    assert_true(sum.count <= 41);
    for (int i = EXACT_SUM_PARTIALS - 1; i > 0; i--)
        exact_sum_add(&sum, -values[i]);
    assert_true(exact_sum_value(&sum) == values[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_compress),
    };
    return cmocka_run_group_tests_name("exact_sum", tests, NULL, NULL);
}
