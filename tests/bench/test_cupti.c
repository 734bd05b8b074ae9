/* The CUPTI collector with a made-up library: who may not open it, and that it opens again. */
#include "bench/timing_cupti.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct cupti_collector *collector;

static void open_and_expect(const char *mode, enum tb_status status, const char *word) {
    struct cupti_collector *opened;
    struct tb_error error = TB_ERROR_INIT;
    setenv("FAKE_CUPTI", mode, 1);
    assert_int_equal(cupti_open(&opened, &error), status);
    assert_int_equal(opened != NULL, status == TB_OK);
    if (opened)
        collector = opened;
    if (word && !strstr(error.message, word))
        fail_msg("%s: no `%s` in it", error.message, word);
}

/* A library of another major version has other structs. */
static void test_another_version(void **state) {
    (void)state;
    open_and_expect("old", TB_UNAVAILABLE, "TOPP_BENCH_CUPTI");
}

/* tim-08. */
static void test_another_subscriber(void **state) {
    (void)state;
    open_and_expect("busy", TB_UNAVAILABLE, "another profiler holds CUPTI");
    open_and_expect("busy", TB_UNAVAILABLE, "--timer events");
    open_and_expect("", TB_OK, NULL);
    open_and_expect("", TB_INTERNAL, "already open");
}

static void take(size_t records, size_t drops) {
    const struct cupti_record *list;
    size_t count, dropped;
    struct tb_error error = TB_ERROR_INIT;
    assert_int_equal(cupti_take(collector, &list, &count, &dropped, &error), TB_OK);
    assert_int_equal(count, records);
    assert_int_equal(dropped, drops);
    if (count)
        assert_string_equal(list[0].name, "fake");
}

/* tim-06, and that nothing of an earlier opening is left in a later one. */
static void test_records_and_drops(void **state) {
    (void)state;
    struct tb_error error = TB_ERROR_INIT;
    for (int round = 0; round < 3; round++) {
        if (round)
            open_and_expect("", TB_OK, NULL);
        else
            assert_non_null(collector); /* of the test before */
        take(0, 0);
        assert_int_equal(cupti_start(collector, &error), TB_OK);
        take(1, 0);
        cupti_starve(collector, true);
        take(0, 1);
        cupti_starve(collector, false);
        take(1, 0);
        if (round == 1)
            assert_int_equal(cupti_stop(collector, &error), TB_OK);
        cupti_close(collector);
    }
}

int main(void) {
    setenv("TOPP_BENCH_CUPTI", TOPP_FAKE_CUPTI, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_version),
        cmocka_unit_test(test_another_subscriber),
        cmocka_unit_test(test_records_and_drops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
