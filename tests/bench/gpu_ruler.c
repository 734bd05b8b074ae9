/* The ruler measured on a GPU: a kernel of known length, the drop counter, cold against warm, and
 * calls that must be refused. Skipped (77) where there is no usable GPU. */
#include "bench/device_cuda.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SPIN_NS = 100000 };

static struct device *the_device;
static int64_t *spun; /* device memory */

static int spin(void *context, void *stream) {
    return (int)cuda_spin_launch(*(int64_t *)context, spun, (cudaStream_t)stream);
}

static int spin_twice(void *context, void *stream) {
    int status = spin(context, stream);
    return status ? status : spin(context, stream);
}

static int nothing(void *context, void *stream) {
    (void)context, (void)stream;
    return 0;
}

static const struct timing_settings settings = {.blocks = 1,
                                                .min_samples = 50,
                                                .max_samples = 200,
                                                .precision = 0.001,
                                                .block_seconds = 1.0,
                                                .warmup_seconds = 0.05};

static void time_call(const struct timed_call *call, struct block_result *result) {
    struct tb_error error = TB_ERROR_INIT;
    struct block_request request = {
        .calls = call, .draws = 1, .settings = &settings, .warmup_seconds = 0.05};
    if (the_device->ops->time_block(the_device, &request, result, &error) != TB_OK)
        fail_msg("%s", error.message);
}

static double median_time(struct block_result *result, size_t offset) {
    double values[200];
    assert_in_range(result->count, 1, 200);
    for (size_t i = 0; i < result->count; i++)
        memcpy(&values[i], (char *)&result->samples[i] + offset, sizeof values[i]);
    for (size_t i = 1; i < result->count; i++)
        for (size_t j = i; j > 0 && values[j] < values[j - 1]; j--) {
            double swap = values[j];
            values[j] = values[j - 1];
            values[j - 1] = swap;
        }
    return values[result->count / 2];
}

static void release(struct block_result *result) {
    free(result->samples);
    free(result->kernels);
    json_decref(result->conditions);
}

/* CUPTI within 1% of the length that the kernel itself counted, events within launch overhead. */
static void check_spin(enum cell_launch launch, int kernels,
                       int (*run)(void *context, void *stream)) {
    int64_t nanoseconds = SPIN_NS, counted = 0;
    struct timed_call call = {&nanoseconds, NULL, run, "spin", L2_WARM, launch};
    struct block_result result;
    time_call(&call, &result);
    assert_string_equal(result.refused, "");
    assert_int_equal(result.kernel_count, kernels);
    double span = median_time(&result, offsetof(struct sample, time_ns));
    double busy = median_time(&result, offsetof(struct sample, busy_ns));
    double mhz = median_time(&result, offsetof(struct sample, sm_mhz));
    cudaMemcpy(&counted, spun, sizeof counted, cudaMemcpyDeviceToHost);
    double truth = (double)counted * kernels;
    printf("spin %s x%d: counted %.0f ns, busy %.0f, span %.0f, events %.0f, SM %.0f MHz\n",
           cell_launch_name(launch), kernels, truth, busy, span, result.events_ns, mhz);
    assert_true(fabs(busy / truth - 1.0) < 0.02);
    assert_true(span >= busy && span < busy + 10000.0 * kernels);
    assert_true(fabs(result.events_ns - truth) < 8000.0 * kernels);
    assert_true(mhz > 100.0 && mhz < 4000.0);
    release(&result);
}

static void test_spin(void **state) {
    (void)state;
    check_spin(LAUNCH_STREAM, 1, spin);
    check_spin(LAUNCH_GRAPH, 1, spin);
    check_spin(LAUNCH_STREAM, 2, spin_twice);
    check_spin(LAUNCH_GRAPH, 2, spin_twice);
}

static void test_ratio(void **state) {
    (void)state;
    int64_t nanoseconds = SPIN_NS;
    struct timed_call call = {&nanoseconds, NULL, spin, "spin", L2_WARM, LAUNCH_GRAPH};
    struct block_result shorter, longer;
    time_call(&call, &shorter);
    nanoseconds = SPIN_NS + SPIN_NS / 100; /* read at capture: one percent more */
    time_call(&call, &longer);
    double ratio = median_time(&longer, offsetof(struct sample, time_ns)) /
                   median_time(&shorter, offsetof(struct sample, time_ns));
    printf("a spin 1%% longer measures %.4f\n", ratio);
    assert_true(ratio > 1.005 && ratio < 1.015);
    release(&shorter);
    release(&longer);
}

/* tim-04, tim-05: a call that launches nothing has no time, not a zero. */
static void test_nothing_launched(void **state) {
    (void)state;
    struct timed_call call = {NULL, NULL, nothing, "nothing", L2_WARM, LAUNCH_STREAM};
    struct block_result result;
    time_call(&call, &result);
    assert_int_equal(result.count, 0);
    assert_non_null(strstr(result.refused, "launched nothing"));
    release(&result);
}

/* tim-06: the counter of dropped records is seen to work before it is trusted. */
static void test_drops_are_counted(void **state) {
    (void)state;
    assert_true(((struct device_cuda *)the_device)->drops_proven);
}

/* tim-01: the flush is larger than L2 and its effect is proven. */
static void test_cold_is_cold(void **state) {
    (void)state;
    const struct device_cuda *device = (struct device_cuda *)the_device;
    printf("L2 probe: %.0f cycles a load warm, %.0f flushed; flush %zu bytes of L2's %d\n",
           device->warm_cycles, device->cold_cycles, device->flush_bytes,
           device->properties.l2CacheSize);
    assert_true(device->flush_bytes >= 2 * (size_t)device->properties.l2CacheSize);
    assert_true(device->cold_cycles > 1.5 * device->warm_cycles);
}

int main(void) {
    char why[256];
    struct tb_error error = TB_ERROR_INIT;
    if (!device_cuda_usable(why, sizeof why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    if (device_cuda_open(&(struct device_options){0}, &the_device, &error) != TB_OK) {
        printf("cannot open the device: %s\n", error.message);
        return error.code == TB_UNAVAILABLE ? 77 : 1;
    }
    json_t *description = the_device->ops->describe(the_device);
    json_dumpf(description, stdout, JSON_INDENT(2));
    printf("\n");
    json_decref(description);
    if (cudaMalloc((void **)&spun, sizeof *spun) != cudaSuccess)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drops_are_counted),
        cmocka_unit_test(test_cold_is_cold),
        cmocka_unit_test(test_spin),
        cmocka_unit_test(test_ratio),
        cmocka_unit_test(test_nothing_launched),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cudaFree(spun);
    the_device->ops->close(the_device);
    return failed;
}
