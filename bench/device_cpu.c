/* The CPU device: host memory, the steady clock, and a watchdog thread against hanging kernels. */
#include "bench/device.h"

#include "bench/timing_clock.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ALIGNMENT = 256, SPLIT_SM_COUNT = 132, STOP_SECONDS = 5 };

static void cpu_close(struct device *device) {
    free(device);
}

static enum tb_status cpu_alloc(struct device *device, size_t bytes, void **memory,
                                struct tb_error *error) {
    (void)device;
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *memory = rounded < bytes ? NULL : aligned_alloc(ALIGNMENT, rounded ? rounded : ALIGNMENT);
    if (!*memory)
        return tb_fail(error, TB_NO_MEMORY,
                       "no %zu bytes of memory for the CPU device: take a "
                       "smaller vocabulary or batch",
                       bytes);
    return TB_OK;
}

static void cpu_free(struct device *device, void *memory) {
    (void)device;
    free(memory);
}

static enum tb_status cpu_copy(struct device *device, void *to, const void *from, size_t bytes,
                               struct tb_error *error) {
    (void)device;
    (void)error;
    if (bytes)
        memcpy(to, from, bytes);
    return TB_OK;
}

static int cpu_copy_async(struct device *device, void *to, const void *from, size_t bytes,
                          void *stream) {
    (void)device;
    (void)stream;
    if (bytes)
        memcpy(to, from, bytes);
    return 0;
}

static const char *cpu_error_text(struct device *device, int code) {
    (void)device;
    switch (code) {
    case KERNEL_OK:
        return "no error";
    case KERNEL_UNSUPPORTED:
        return "shape past the variant's limits";
    case KERNEL_WORKSPACE:
        return "workspace too small";
    }
    return "unknown error of a CPU kernel";
}

/* What a guarded thread runs. */
struct guarded {
    const struct timed_call *call;       /* run once, or ... */
    const struct block_request *request; /* ... a block */
    struct sample *samples;
    size_t count;
    int status;
};

static void *guarded_main(void *argument) {
    struct guarded *guarded = argument;
    if (guarded->request) {
        guarded->status = timing_clock_block(guarded->request, guarded->samples, &guarded->count);
        return NULL;
    }
    const struct timed_call *call = guarded->call;
    int old = 0;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    int status = call->prepare ? call->prepare(call->context, NULL) : 0;
    if (status == 0)
        status = call->run(call->context, NULL);
    pthread_setcanceltype(old, &old);
    guarded->status = status;
    return NULL;
}

static struct timespec after(double seconds) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    int64_t nanoseconds = time.tv_nsec + (int64_t)(fmod(seconds, 1.0) * 1e9);
    time.tv_sec += (time_t)seconds + nanoseconds / 1000000000;
    time.tv_nsec = nanoseconds % 1000000000;
    return time;
}

/* Runs in a thread of its own that is cancelled at the limit. A kernel only computes (its contract
 * forbids allocation), so cancelling it anywhere leaves nothing locked. */
static enum tb_status run_guarded(struct guarded *guarded, double seconds, bool *timed_out,
                                  struct tb_error *error) {
    *timed_out = false;
    if (seconds <= 0.0) {
        guarded_main(guarded);
        return TB_OK;
    }
    pthread_t thread;
    int failed = pthread_create(&thread, NULL, guarded_main, guarded);
    if (failed)
        return tb_fail(error, TB_NO_MEMORY, "cannot start a thread: %s", strerror(failed));
    struct timespec limit = after(seconds);
    if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &limit) == 0)
        return TB_OK;
    *timed_out = true;
    pthread_cancel(thread);
    limit = after(STOP_SECONDS);
    if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &limit) != 0)
        return tb_fail(error, TB_INTERNAL,
                       "a kernel ran past its %.1f seconds and cannot be stopped", seconds);
    return TB_OK;
}

static enum tb_status call_failed(int status, const char *name, struct tb_error *error) {
    return tb_fail(error, TB_INTERNAL, "%s returned %d: %s", name ? name : "a kernel", status,
                   cpu_error_text(NULL, status));
}

static enum tb_status cpu_run_once(struct device *device, const struct timed_call *call,
                                   double seconds, bool *timed_out, struct tb_error *error) {
    (void)device;
    struct guarded guarded = {.call = call};
    enum tb_status status = run_guarded(&guarded, seconds, timed_out, error);
    if (status == TB_OK && !*timed_out && guarded.status)
        return call_failed(guarded.status, call->name, error);
    return status;
}

static enum tb_status cpu_time_block(struct device *device, const struct block_request *request,
                                     struct block_result *result, struct tb_error *error) {
    (void)device;
    memset(result, 0, sizeof *result);
    result->events_ns = NAN;
    struct guarded guarded = {.request = request};
    guarded.samples = malloc(timing_clock_capacity(request) * sizeof *guarded.samples);
    if (!guarded.samples)
        return tb_fail(error, TB_NO_MEMORY, "no memory for the samples of %s",
                       request->calls->name);
    enum tb_status status =
        run_guarded(&guarded, request->limit_seconds, &result->timed_out, error);
    if (status == TB_OK && !result->timed_out && guarded.status)
        status = call_failed(guarded.status, request->calls->name, error);
    if (status != TB_OK || result->timed_out) {
        free(guarded.samples);
        return status;
    }
    result->samples = guarded.samples;
    result->count = guarded.count;
    return TB_OK;
}

static json_t *cpu_model(void) {
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];
    json_t *model = NULL;
    while (file && !model && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (colon && !strncmp(line, "model name", 10)) {
            colon[strcspn(colon, "\n")] = '\0';
            model = json_string(colon + 1 + strspn(colon + 1, " "));
        }
    }
    if (file)
        fclose(file);
    return model ? model : json_string("unknown");
}

/* The instruction set that the clones of kernels/vector.h resolve to; clang builds none. */
static const char *vector_level(void) {
#if defined(__x86_64__) && !defined(__clang__)
    if (__builtin_cpu_supports("x86-64-v4"))
        return "x86-64-v4";
    if (__builtin_cpu_supports("x86-64-v3"))
        return "x86-64-v3";
#endif
    return "default";
}

static json_t *cpu_describe(struct device *device) {
    struct timespec tick = {0, 1};
    clock_getres(CLOCK_MONOTONIC, &tick);
    return json_pack("{s:s, s:o, s:I, s:s, s:s, s:I, s:I}", "kind", "cpu", "model", cpu_model(),
                     "processors", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "vector",
                     vector_level(), "timer", "clock_monotonic", "timer_resolution_ns",
                     (json_int_t)tick.tv_nsec, "sm_count", (json_int_t)device->sm_count);
}

static const struct device_ops cpu_ops = {
    .kind = "cpu",
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .upload = cpu_copy,
    .download = cpu_copy,
    .copy_async = cpu_copy_async,
    .run_once = cpu_run_once,
    .time_block = cpu_time_block,
    .describe = cpu_describe,
    .error_text = cpu_error_text,
};

enum tb_status device_cpu_open(const struct device_options *options, struct device **device,
                               struct tb_error *error) {
    if (options->timer != TIMER_DEFAULT && options->timer != TIMER_CLOCK)
        return tb_fail(error, TB_USAGE, "the CPU device has one timer, the clock");
    *device = malloc(sizeof **device);
    if (!*device)
        return tb_fail(error, TB_NO_MEMORY, "no memory for the CPU device");
    (*device)->ops = &cpu_ops;
    (*device)->kind = KERNEL_DEVICE_CPU;
    (*device)->visible = 0;
    (*device)->sm_count = options->sm_count > 0 ? options->sm_count : SPLIT_SM_COUNT;
    return TB_OK;
}
