/* What was seen in another program, judged: times that must come out, and every refusal. */
#include "bench/external_records.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REPEATS = 3, RANGE_NS = 100000, FIRST_NS = 1000000 };

/* Three ranges; each has a kernel of 30 us, a gap of 10 us and a copy of 5 us. */
struct scene {
    struct external_trace trace;
    struct trace_range ranges[REPEATS + 1];
    struct cupti_record records[2 * REPEATS + 2];
    struct trace_want want;
};

static void make(struct scene *scene) {
    *scene = (struct scene){.want = {.repeats = REPEATS, .cuda = true, .launch = LAUNCH_STREAM}};
    scene->trace = (struct external_trace){.ranges = scene->ranges,
                                           .range_count = REPEATS,
                                           .records = scene->records,
                                           .record_count = 2 * REPEATS,
                                           .cupti = true,
                                           .records_read = true};
    for (uint64_t i = 0; i < REPEATS; i++) {
        const uint64_t begin = FIRST_NS + 10 * i * RANGE_NS;
        scene->ranges[i] = (struct trace_range){begin, begin + RANGE_NS};
        scene->records[2 * i] = (struct cupti_record){.kind = CUPTI_RECORD_KERNEL,
                                                      .start_ns = begin + 20000,
                                                      .end_ns = begin + 50000,
                                                      .correlation = (uint32_t)(100 + 2 * i),
                                                      .name = "sort",
                                                      .grid = {8, 1, 1},
                                                      .block = {256, 1, 1}};
        scene->records[2 * i + 1] = (struct cupti_record){.kind = CUPTI_RECORD_MEMCPY,
                                                          .start_ns = begin + 60000,
                                                          .end_ns = begin + 65000,
                                                          .correlation = (uint32_t)(101 + 2 * i),
                                                          .name = "memcpy"};
    }
}

static bool judge(struct scene *scene, struct sample *samples, char why[256]) {
    struct kernel_evidence *kernels = NULL;
    size_t count = 0;
    why[0] = '\0';
    const bool good = trace_judge(&scene->trace, &scene->want, samples, &kernels, &count, why, 256);
    if (good && scene->want.cuda) {
        assert_int_equal(count, 2);
        assert_string_equal(kernels[0].name, "sort");
        assert_int_equal(kernels[0].grid[0], 8);
    }
    free(kernels);
    return good;
}

static void test_times(void **state) {
    (void)state;
    struct scene scene;
    struct sample samples[REPEATS];
    char why[256];
    make(&scene);
    scene.want.draw = 4;
    assert_true(judge(&scene, samples, why));
    for (int i = 0; i < REPEATS; i++) {
        assert_true(samples[i].time_ns == 45000.0 && samples[i].busy_ns == 35000.0);
        assert_true(isnan(samples[i].cycles) && isnan(samples[i].sm_mhz));
        assert_int_equal(samples[i].draw, 4);
    }
    scene.want.cuda = false; /* the CPU: the ranges themselves */
    assert_true(judge(&scene, samples, why));
    assert_true(samples[2].time_ns == RANGE_NS && isnan(samples[2].busy_ns));
}

/* The clocks of host and device agree within microseconds alone: a record that sticks out of its
 * range a little is still the range's, and work between the ranges is nobody's. */
static void test_edges_and_between(void **state) {
    (void)state;
    struct scene scene;
    struct sample samples[REPEATS];
    char why[256];
    make(&scene);
    scene.records[0].start_ns = scene.ranges[0].begin_ns - 3000;
    scene.records[0].end_ns = scene.ranges[0].begin_ns + 30000;
    scene.records[6] = scene.records[1];
    scene.records[6].start_ns = scene.ranges[0].end_ns + 200000;
    scene.records[6].end_ns = scene.ranges[0].end_ns + 210000;
    scene.trace.record_count = 7;
    assert_true(judge(&scene, samples, why));
    assert_true(samples[0].time_ns == 68000.0);
}

static void graph(struct scene *scene) {
    scene->want.launch = LAUNCH_GRAPH;
    for (size_t i = 0; i < 2 * REPEATS; i++) {
        scene->records[i].graph_node = 1;
        scene->records[i].correlation = (uint32_t)(100 + i / 2);
    }
}

static void test_graph(void **state) {
    (void)state;
    struct scene scene;
    struct sample samples[REPEATS];
    char why[256];
    make(&scene);
    graph(&scene);
    assert_true(judge(&scene, samples, why));
    scene.want.launch = LAUNCH_STREAM;
    assert_false(judge(&scene, samples, why));
    assert_non_null(strstr(why, "say --external-launch graph"));
}

static void no_ranges(struct scene *s) {
    s->trace.range_count = 0;
}
static void few_ranges(struct scene *s) {
    s->trace.range_count = 2;
}
static void many_ranges(struct scene *s) {
    s->ranges[3] = (struct trace_range){9000000, 9000100};
    s->trace.range_count = 4;
}
static void open_range(struct scene *s) {
    s->ranges[2].end_ns = 0;
}
static void nested(struct scene *s) {
    s->trace.nested = true;
}
static void untraced(struct scene *s) {
    snprintf(s->trace.error, sizeof s->trace.error, "another profiler holds CUPTI");
}
static void no_cuda(struct scene *s) {
    s->trace.cupti = false;
}
static void unread(struct scene *s) {
    s->trace.records_read = false;
}
static void dropped(struct scene *s) {
    s->trace.dropped = 5;
}
static void no_time(struct scene *s) {
    s->records[3].start_ns = 0;
}
static void reversed(struct scene *s) {
    s->records[3].end_ns = s->records[3].start_ns - 1;
}
static void late(struct scene *s) {
    s->records[3].end_ns = s->ranges[1].end_ns + 50000;
}
static void early(struct scene *s) {
    s->records[2].start_ns = s->ranges[1].begin_ns - 50000;
}
static void empty(struct scene *s) {
    s->trace.record_count = 4;
}
static void other_kernel(struct scene *s) {
    s->records[4].name = "copy";
}
static void other_grid(struct scene *s) {
    s->records[4].grid[0] = 9;
}
static void fewer_kernels(struct scene *s) {
    s->trace.record_count = 5;
}
static void one_correlation(struct scene *s) {
    s->records[3].correlation = s->records[2].correlation;
}
static void no_graph(struct scene *s) {
    s->want.launch = LAUNCH_GRAPH;
}
static void two_graphs(struct scene *s) {
    graph(s);
    s->records[5].correlation = 7;
}

static const struct {
    const char *name;
    void (*harm)(struct scene *scene);
    const char *says;
} refused[] = {
    {"no ranges", no_ranges, "no NVTX range named `sample` was seen"},
    {"few ranges", few_ranges, "2 NVTX ranges named `sample` were seen, --repeats asked for 3"},
    {"many ranges", many_ranges, "4 NVTX ranges"},
    {"open range", open_range, "range 3 was never closed"},
    {"nested", nested, "opened inside another"},
    {"untraced", untraced, "another profiler holds CUPTI"},
    {"no CUDA", no_cuda, "used no CUDA device"},
    {"unread", unread, "never read"},
    {"dropped", dropped, "dropped 5 records"},
    {"no time", no_time, "no timestamps"},
    {"reversed", reversed, "reversed"},
    {"late", late, "runs across the edge of range 2"},
    {"early", early, "runs across the edge of range 2"},
    {"empty", empty, "range 3 holds no work of the device"},
    {"other kernel", other_kernel, "range 3 ran copy as its kernel 1, the first had sort"},
    {"other grid", other_grid, "range 3 ran sort as its kernel 1"},
    {"fewer kernels", fewer_kernels, "range 3 ran 1 kernels, the first had 2"},
    {"one correlation", one_correlation, "carry one correlation id"},
    {"no graph", no_graph, "outside of a graph"},
    {"two graphs", two_graphs, "more than one graph"},
};

static void test_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct scene scene;
        struct sample samples[REPEATS];
        char why[256];
        make(&scene);
        refused[i].harm(&scene);
        if (judge(&scene, samples, why) || !strstr(why, refused[i].says))
            fail_msg("%s: says '%s'", refused[i].name, why);
    }
}

static enum tb_status read_text(const char *text, struct external_trace *trace) {
    char path[] = "/tmp/topp-trace-XXXXXX";
    struct tb_error error = TB_ERROR_INIT;
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    const enum tb_status status = trace_read(path, trace, &error);
    unlink(path);
    return status;
}

static const char whole[] =
    "{\"line\":\"head\",\"schema\":\"topp-bench.inject/1\",\"clock\":\"cupti\",\"nested\":false,"
    "\"short_of_memory\":false,\"error\":\"\"}\n"
    "{\"line\":\"range\",\"begin_ns\":5,\"end_ns\":1799999999999999999}\n"
    "{\"line\":\"cupti\",\"version\":\"130000\",\"records\":1,\"dropped\":2,\"error\":\"\"}\n"
    "{\"line\":\"record\",\"kind\":\"kernel\",\"name\":\"a\\\"b\",\"start_ns\":7,\"end_ns\":9,"
    "\"correlation\":3,\"graph\":true,\"grid\":[1,2,3],\"block\":[4,5,6],\"shared_bytes\":7,"
    "\"registers\":8}\n"
    "{\"line\":\"end\"}\n";

static void test_file(void **state) {
    (void)state;
    struct external_trace trace;
    struct tb_error error = TB_ERROR_INIT;
    assert_int_equal(read_text(whole, &trace), TB_OK);
    assert_true(trace.cupti && trace.records_read && trace.dropped == 2);
    assert_true(trace.ranges[0].end_ns == 1799999999999999999u);
    assert_string_equal(trace.records[0].name, "a\"b");
    assert_true(trace.records[0].graph_node && trace.records[0].block[2] == 6);
    trace_free(&trace);
    for (size_t cut = 1; cut < sizeof whole - 1; cut += 7) { /* a file that breaks off */
        char *part = strndup(whole, cut);
        assert_int_equal(read_text(part, &trace), TB_UNREADABLE);
        trace_free(&trace);
        free(part);
    }
    assert_int_equal(trace_read("/nonexistent/trace", &trace, &error), TB_OK);
    assert_int_equal(trace.range_count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times), cmocka_unit_test(test_edges_and_between),
        cmocka_unit_test(test_graph), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
