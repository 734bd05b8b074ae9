#include "bench/timing_clock.h"

#include "bench/summary.h"

#include <math.h>
#include <pthread.h>
#include <time.h>

int64_t timing_clock_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

size_t timing_clock_capacity(const struct block_request *request) {
    const struct timing_settings *settings = request->settings;
    size_t most = settings->max_samples > 0 ? (size_t)settings->max_samples : 1;
    if (settings->min_samples > 0 && most < (size_t)settings->min_samples)
        most = (size_t)settings->min_samples;
    return most < (size_t)request->draws ? (size_t)request->draws : most;
}

/* Runs a call where a watchdog may cancel this thread: nothing but the kernel runs in between. */
static int call_once(const struct timed_call *call, double *time_ns) {
    int old = 0;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    int status = call->prepare ? call->prepare(call->context, NULL) : 0;
    if (status == 0) {
        int64_t start = timing_clock_now_ns();
        status = call->run(call->context, NULL);
        *time_ns = (double)(timing_clock_now_ns() - start);
    }
    pthread_setcanceltype(old, &old);
    return status;
}

static bool stopped(const struct block_request *request) {
    return request->stop && *request->stop;
}

int timing_clock_block(const struct block_request *request, struct sample *samples, size_t *count) {
    const struct timing_settings *settings = request->settings;
    double time_ns = 0.0;
    *count = 0;
    int64_t start = timing_clock_now_ns();
    for (int32_t i = 0; (double)(timing_clock_now_ns() - start) < 1e9 * request->warmup_seconds &&
                        !stopped(request);
         i = (i + 1) % request->draws) {
        int status = call_once(&request->calls[i], &time_ns);
        if (status)
            return status;
    }
    size_t capacity = timing_clock_capacity(request);
    size_t next_check = summary_next_check(settings, 0, request->draws);
    start = timing_clock_now_ns();
    while (*count < capacity && !stopped(request)) {
        int32_t draw = (int32_t)(*count % (size_t)request->draws);
        int status = call_once(&request->calls[draw], &time_ns);
        if (status)
            return status;
        samples[(*count)++] = (struct sample){.time_ns = time_ns,
                                              .busy_ns = NAN,
                                              .cycles = NAN,
                                              .sm_mhz = NAN,
                                              .block = request->block,
                                              .draw = draw};
        bool out_of_time = settings->block_seconds > 0.0 && *count >= (size_t)request->draws &&
                           (double)(timing_clock_now_ns() - start) >= 1e9 * settings->block_seconds;
        if (out_of_time)
            break;
        if (*count >= next_check) {
            if (summary_block_done(settings, samples, *count, request->draws))
                break;
            next_check = *count + summary_next_check(settings, *count, request->draws);
        }
    }
    return 0;
}
