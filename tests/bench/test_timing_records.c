/* Records of CUPTI made up by hand: what may become a sample, and what must be refused. */
#include "bench/device_cuda.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 64, STREAM = 7 };

struct tape {
    struct cupti_record records[MOST];
    size_t count;
    uint64_t now_ns;
    uint32_t correlation;
};

static void add(struct tape *tape, enum cupti_record_kind kind, const char *name, uint64_t ns) {
    tape->records[tape->count++] = (struct cupti_record){
        .kind = kind,
        .start_ns = tape->now_ns,
        .end_ns = tape->now_ns + ns,
        .stream = STREAM,
        .correlation = ++tape->correlation,
        .name = name,
        .grid = {4, 1, 1},
        .block = {256, 1, 1},
    };
    tape->now_ns += ns + 100;
}

static void stamp(struct tape *tape) {
    add(tape, CUPTI_RECORD_KERNEL, CUDA_STAMP_KERNEL, 32);
}

/* Two samples of a call of two kernels, the input restored by a copy. graph: one correlation id. */
static void two_samples(struct tape *tape, bool graph) {
    memset(tape, 0, sizeof *tape);
    tape->now_ns = 1000000;
    for (int i = 0; i < 2; i++) {
        stamp(tape);
        add(tape, CUPTI_RECORD_MEMCPY, "memcpy", 5000);
        stamp(tape);
        add(tape, CUPTI_RECORD_KERNEL, "stats", 1000);
        add(tape, CUPTI_RECORD_KERNEL, "mask", 2000);
        if (graph)
            tape->records[tape->count - 1].correlation = tape->records[tape->count - 2].correlation;
        stamp(tape);
    }
}

static const struct kernel_evidence expected[2] = {
    {.name = "stats", .grid = {4, 1, 1}, .block = {256, 1, 1}},
    {.name = "mask", .grid = {4, 1, 1}, .block = {256, 1, 1}},
};

enum { FIRST_STATS = 3, FIRST_MASK = 4, SECOND_STAMP_A = 6 };

static void break_nothing(struct tape *tape) {
    (void)tape;
}
static void drop_mask(struct tape *tape) {
    memmove(&tape->records[FIRST_MASK], &tape->records[FIRST_MASK + 1],
            (tape->count-- - FIRST_MASK - 1) * sizeof tape->records[0]);
}
static void foreign_kernel(struct tape *tape) {
    tape->records[FIRST_STATS].name = "somebody_elses";
}
static void other_grid(struct tape *tape) {
    tape->records[FIRST_MASK].grid[0] = 5;
}
static void zero_start(struct tape *tape) {
    tape->records[FIRST_STATS].start_ns = 0;
}
static void reversed(struct tape *tape) {
    tape->records[FIRST_MASK].end_ns = tape->records[FIRST_MASK].start_ns - 1;
}
static void left_over(struct tape *tape) {
    tape->records[0].start_ns = 10;
}
static void same_correlation(struct tape *tape) {
    tape->records[FIRST_MASK].correlation = tape->records[FIRST_STATS].correlation;
}
static void lost_stamp(struct tape *tape) {
    memmove(&tape->records[SECOND_STAMP_A], &tape->records[SECOND_STAMP_A + 1],
            (tape->count-- - SECOND_STAMP_A - 1) * sizeof tape->records[0]);
}
static void extra_fill_in_call(struct tape *tape) {
    tape->records[FIRST_STATS].kind = CUPTI_RECORD_MEMSET;
    tape->records[FIRST_STATS].name = "memset";
}
static void kernel_between_samples(struct tape *tape) {
    memmove(&tape->records[SECOND_STAMP_A + 1], &tape->records[SECOND_STAMP_A],
            (tape->count++ - SECOND_STAMP_A) * sizeof tape->records[0]);
    tape->records[SECOND_STAMP_A].name = "somebody_elses";
}
static void kernel_at_end(struct tape *tape) {
    add(tape, CUPTI_RECORD_KERNEL, "somebody_elses", 10);
}

struct refusal {
    const char *name;
    void (*damage)(struct tape *tape);
    bool graph;
    size_t dropped;
    const char *why; /* NULL: accepted */
};

static const struct refusal refusals[] = {
    {"stream launches", break_nothing, false, 0, NULL},
    {"tim-09 graph replay", break_nothing, true, 0, NULL},
    {"tim-06 dropped records", break_nothing, false, 3, "dropped 3 records"},
    {"tim-05 expected kernel missing", drop_mask, false, 0, "1 kernels"},
    {"tim-05 other name", foreign_kernel, false, 0, "somebody_elses"},
    {"other dispatch path", other_grid, false, 0, "where the counted run had"},
    {"zero timestamp", zero_start, false, 0, "no timestamps"},
    {"reversed timestamps", reversed, false, 0, "reversed"},
    {"record of the warm-up", left_over, false, 0, "left over"},
    {"tim-07 repeated correlation id", same_correlation, false, 0, "one correlation id"},
    {"lost stamp", lost_stamp, false, 0, "5 of the 6 clock stamps"},
    {"tim-09 fill added to the call", extra_fill_in_call, false, 0, "memset"},
    {"foreign kernel between samples", kernel_between_samples, false, 0, "between samples"},
    {"foreign kernel at the end", kernel_at_end, false, 0, "after the last sample"},
};

static void test_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const struct refusal *row = &refusals[i];
        struct tape tape;
        struct sample samples[2] = {{0}};
        char why[256] = "";
        two_samples(&tape, row->graph);
        row->damage(&tape);
        struct chunk_judge judge = {expected, 2, row->graph, 1000};
        bool good = cuda_judge_chunk(&judge, tape.records, tape.count, row->dropped, samples, 2,
                                     why, sizeof why);
        if (good != (row->why == NULL) || (row->why && !strstr(why, row->why)))
            fail_msg("%s: %s (%s)", row->name, good ? "accepted" : "refused", why);
        if (good) {
            assert_true(samples[0].time_ns == 3100.0 && samples[1].time_ns == 3100.0);
            assert_true(samples[0].busy_ns == 3000.0 && samples[1].busy_ns == 3000.0);
        }
    }
}

static void test_graph_ids_must_agree(void **state) {
    (void)state;
    struct tape tape;
    struct sample samples[2] = {{0}};
    char why[256] = "";
    two_samples(&tape, false);
    struct chunk_judge judge = {expected, 2, true, 1000};
    assert_false(
        cuda_judge_chunk(&judge, tape.records, tape.count, 0, samples, 2, why, sizeof why));
    assert_non_null(strstr(why, "several correlation ids"));
}

static void test_find_stamp(void **state) {
    (void)state;
    struct tape tape;
    two_samples(&tape, false);
    assert_int_equal(cuda_find_stamp(tape.records, tape.count, 0), 0);
    assert_int_equal(cuda_find_stamp(tape.records, tape.count, 1), 2);
    assert_int_equal(cuda_find_stamp(tape.records, tape.count, STAMPS_PER_SAMPLE), SECOND_STAMP_A);
    assert_int_equal(cuda_find_stamp(tape.records, tape.count, 2 * STAMPS_PER_SAMPLE), tape.count);
}

static void test_evidence(void **state) {
    (void)state;
    struct tape tape;
    struct kernel_evidence *evidence = NULL;
    size_t count = 0;
    char why[256] = "";
    two_samples(&tape, false);
    assert_true(
        cuda_evidence_of(tape.records, SECOND_STAMP_A, 0, &evidence, &count, why, sizeof why));
    assert_int_equal(count, 2);
    assert_string_equal(evidence[0].name, "stats");
    assert_string_equal(evidence[1].name, "mask");
    assert_int_equal(evidence[1].grid[0], 4);
    free(evidence);
    /* tim-05 (a): nothing at all came back. */
    assert_false(cuda_evidence_of(NULL, 0, 0, &evidence, &count, why, sizeof why));
    assert_non_null(strstr(why, "no device records"));
    /* tim-04: records, but none of the call. */
    tape.records[FIRST_STATS] = tape.records[5];
    assert_false(
        cuda_evidence_of(tape.records, FIRST_STATS + 1, 0, &evidence, &count, why, sizeof why));
    assert_non_null(strstr(why, "launched nothing"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_graph_ids_must_agree),
        cmocka_unit_test(test_find_stamp),
        cmocka_unit_test(test_evidence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
