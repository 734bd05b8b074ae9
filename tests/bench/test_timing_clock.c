/* The CPU device: blocks by the steady clock, and the watchdog over kernels that hang. */
#include "bench/timing_clock.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { DRAWS = 3, MOST = 64 };

/* A kernel that writes down how it is called. */
struct probe {
    int prepared, ran;
    bool out_of_order; /* run without its own prepare, or prepared twice */
    int fails_at;      /* run that returns an error, 0 = none */
    int hangs_at;      /* run that never ends, 0 = none */
    int stops_at;      /* run that raises the stop flag, 0 = none */
    int64_t busy_ns;   /* what a run lasts */
    volatile sig_atomic_t *stop;
};

static int prepare(void *context, void *stream) {
    struct probe *probe = context;
    (void)stream;
    probe->out_of_order = probe->out_of_order || probe->prepared != probe->ran;
    probe->prepared++;
    return 0;
}

static int run(void *context, void *stream) {
    struct probe *probe = context;
    volatile int64_t spin = 0;
    (void)stream;
    probe->ran++;
    probe->out_of_order = probe->out_of_order || probe->prepared != probe->ran;
    while (probe->ran == probe->hangs_at)
        spin++;
    for (const int64_t end = timing_clock_now_ns() + probe->busy_ns;
         probe->busy_ns && timing_clock_now_ns() < end;)
        spin++;
    if (probe->ran == probe->stops_at)
        *probe->stop = 1;
    return probe->ran == probe->fails_at ? KERNEL_WORKSPACE : KERNEL_OK;
}

static struct device *open_cpu(void) {
    const struct device_options options = {.index = 0};
    struct tb_error error = TB_ERROR_INIT;
    struct device *device = NULL;
    assert_int_equal(device_cpu_open(&options, &device, &error), TB_OK);
    return device;
}

struct trial {
    struct probe probes[DRAWS];
    struct timed_call calls[DRAWS];
    struct timing_settings settings;
    volatile sig_atomic_t stop;
    struct block_request request;
};

static void trial_make(struct trial *trial) {
    memset(trial, 0, sizeof *trial);
    for (int i = 0; i < DRAWS; i++) {
        trial->probes[i].stop = &trial->stop;
        trial->calls[i] = (struct timed_call){
            .context = &trial->probes[i], .prepare = prepare, .run = run, .name = "probe"};
    }
    trial->settings = (struct timing_settings){
        .blocks = 1, .min_samples = 6, .max_samples = 12, .precision = -1.0, .block_seconds = 60.0};
    trial->request = (struct block_request){.calls = trial->calls,
                                            .draws = DRAWS,
                                            .block = 4,
                                            .settings = &trial->settings,
                                            .limit_seconds = 60.0,
                                            .stop = &trial->stop};
}

static void test_a_block(void **state) {
    (void)state;
    struct trial trial;
    struct block_result result;
    struct tb_error error = TB_ERROR_INIT;
    struct device *device = open_cpu();
    trial_make(&trial);
    trial.probes[1].busy_ns = 200000;
    assert_int_equal(device->ops->time_block(device, &trial.request, &result, &error), TB_OK);
    assert_false(result.timed_out);
    assert_string_equal(result.refused, "");
    assert_int_equal(result.count, 12);
    assert_true(isnan(result.events_ns));
    for (size_t i = 0; i < result.count; i++) {
        const struct sample *sample = &result.samples[i];
        assert_int_equal(sample->block, 4);
        assert_int_equal(sample->draw, i % DRAWS);
        assert_true(sample->time_ns >= (sample->draw == 1 ? 200000.0 : 0.0));
        assert_true(isnan(sample->busy_ns) && isnan(sample->cycles) && isnan(sample->sm_mhz));
    }
    for (int i = 0; i < DRAWS; i++) {
        assert_int_equal(trial.probes[i].ran, 4);
        assert_false(trial.probes[i].out_of_order);
    }
    free(result.samples);
    device->ops->close(device);
}

static void test_ends_of_a_block(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double precision, block_seconds, warmup_seconds;
        int stops_at;
        int64_t busy_ns;
        size_t least, most;
    } table[] = {
        {"most samples", -1.0, 60.0, 0.0, 0, 0, 12, 12},
        {"precision", 1e9, 60.0, 0.0, 0, 0, 6, 6},
        {"time of a block, but every draw once", -1.0, 1e-9, 0.0, 0, 1000, DRAWS, DRAWS},
        {"no limit of a block", -1.0, 0.0, 0.0, 0, 0, 12, 12},
        {"stop after the sample", -1.0, 60.0, 0.0, 2, 0, 4, 4},
        {"warm-up is no sample", -1.0, 60.0, 0.02, 0, 1000000, 12, 12},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        struct trial trial;
        struct sample samples[MOST];
        size_t count = 0;
        trial_make(&trial);
        trial.settings.precision = table[i].precision;
        trial.settings.block_seconds = table[i].block_seconds;
        trial.request.warmup_seconds = table[i].warmup_seconds;
        trial.probes[0].stops_at = table[i].stops_at;
        for (int draw = 0; draw < DRAWS; draw++)
            trial.probes[draw].busy_ns = table[i].busy_ns;
        assert_true(timing_clock_capacity(&trial.request) <= MOST);
        assert_int_equal(timing_clock_block(&trial.request, samples, &count), 0);
        if (count < table[i].least || count > table[i].most)
            fail_msg("%s: %zu samples", table[i].name, count);
        int ran = 0;
        for (int draw = 0; draw < DRAWS; draw++)
            ran += trial.probes[draw].ran;
        if ((table[i].warmup_seconds > 0.0) != ((size_t)ran > count))
            fail_msg("%s: %d runs for %zu samples", table[i].name, ran, count);
    }
}

/* A hanging call costs its limit; the device goes on with the next. */
static void test_watchdog(void **state) {
    (void)state;
    struct trial trial;
    struct block_result result;
    struct tb_error error = TB_ERROR_INIT;
    struct device *device = open_cpu();
    bool timed_out = false;

    trial_make(&trial);
    trial.probes[0].hangs_at = 1;
    assert_int_equal(device->ops->run_once(device, &trial.calls[0], 0.05, &timed_out, &error),
                     TB_OK);
    assert_true(timed_out);
    assert_int_equal(device->ops->run_once(device, &trial.calls[1], 60.0, &timed_out, &error),
                     TB_OK);
    assert_false(timed_out);
    assert_int_equal(trial.probes[1].ran, 1);

    trial_make(&trial);
    trial.probes[2].hangs_at = 2;
    trial.request.limit_seconds = 0.05;
    assert_int_equal(device->ops->time_block(device, &trial.request, &result, &error), TB_OK);
    assert_true(result.timed_out);
    assert_null(result.samples);
    assert_int_equal(result.count, 0);

    trial_make(&trial);
    assert_int_equal(device->ops->time_block(device, &trial.request, &result, &error), TB_OK);
    assert_false(result.timed_out);
    assert_int_equal(result.count, 12);
    free(result.samples);
    device->ops->close(device);
}

static void test_errors_of_a_kernel(void **state) {
    (void)state;
    struct trial trial;
    struct block_result result;
    struct tb_error error = TB_ERROR_INIT;
    struct device *device = open_cpu();
    bool timed_out = true;
    trial_make(&trial);
    trial.probes[0].fails_at = 1;
    assert_int_equal(device->ops->run_once(device, &trial.calls[0], 60.0, &timed_out, &error),
                     TB_INTERNAL);
    assert_non_null(strstr(error.message, "probe returned -2: workspace too small"));
    error = (struct tb_error)TB_ERROR_INIT;
    trial.probes[1].fails_at = 3;
    assert_int_equal(device->ops->time_block(device, &trial.request, &result, &error), TB_INTERNAL);
    assert_non_null(strstr(error.message, "probe returned -2"));
    assert_null(result.samples);
    device->ops->close(device);
}

static void test_device(void **state) {
    (void)state;
    const struct device_options cupti = {.timer = TIMER_CUPTI};
    struct tb_error error = TB_ERROR_INIT;
    struct device *device = open_cpu(), *none = NULL;
    void *memory = NULL;
    assert_int_equal(device->sm_count, 132);
    assert_int_equal(device->ops->alloc(device, 1, &memory, &error), TB_OK);
    assert_int_equal((uintptr_t)memory % 256, 0);
    device->ops->free(device, memory);
    assert_int_equal(device->ops->alloc(device, SIZE_MAX - 7, &memory, &error), TB_NO_MEMORY);
    error = (struct tb_error)TB_ERROR_INIT;
    assert_int_equal(device_cpu_open(&cupti, &none, &error), TB_USAGE);
    json_t *description = device->ops->describe(device);
    assert_string_equal(json_string_value(json_object_get(description, "kind")), "cpu");
    assert_string_equal(json_string_value(json_object_get(description, "timer")),
                        "clock_monotonic");
    json_decref(description);
    device->ops->close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_block),  cmocka_unit_test(test_ends_of_a_block),
        cmocka_unit_test(test_watchdog), cmocka_unit_test(test_errors_of_a_kernel),
        cmocka_unit_test(test_device),
    };
    return cmocka_run_group_tests_name("timing_clock", tests, NULL, NULL);
}
