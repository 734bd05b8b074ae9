#include "bench/watchdog.h"

#include <math.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    double deadline; /* steady seconds, INFINITY: none */
    int exit_code;
} watchdog = {.lock = PTHREAD_MUTEX_INITIALIZER, .deadline = INFINITY};

static double now_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void *watch(void *unused) {
    (void)unused;
    pthread_mutex_lock(&watchdog.lock);
    for (;;) {
        const double deadline = watchdog.deadline;
        if (isinf(deadline)) {
            pthread_cond_wait(&watchdog.changed, &watchdog.lock);
            continue;
        }
        if (now_seconds() >= deadline)
            _exit(watchdog.exit_code);
        struct timespec until = {.tv_sec = (time_t)deadline};
        until.tv_nsec = (long)((deadline - floor(deadline)) * 1e9);
        pthread_cond_timedwait(&watchdog.changed, &watchdog.lock, &until);
    }
    return NULL;
}

bool watchdog_start(int exit_code) {
    pthread_t thread;
    pthread_condattr_t steady;
    watchdog.exit_code = exit_code;
    if (pthread_condattr_init(&steady) != 0)
        return false;
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    const bool good = pthread_cond_init(&watchdog.changed, &steady) == 0 &&
                      pthread_create(&thread, NULL, watch, NULL) == 0;
    pthread_condattr_destroy(&steady);
    return good && pthread_detach(thread) == 0;
}

static double set_deadline(double deadline) {
    pthread_mutex_lock(&watchdog.lock);
    const double before = watchdog.deadline;
    watchdog.deadline = deadline;
    pthread_cond_signal(&watchdog.changed);
    pthread_mutex_unlock(&watchdog.lock);
    return before;
}

double watchdog_arm(double seconds) {
    const double before = watchdog.deadline; /* this thread alone changes it */
    const double own = seconds > 0.0 ? now_seconds() + seconds : INFINITY;
    set_deadline(fmin(before, own));
    return before;
}

void watchdog_back(double deadline) {
    set_deadline(deadline);
}
