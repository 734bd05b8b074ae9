#include "bench/workers.h"

#include "bench/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STOP_POLL_MS = 200 };

FILE *workers_feed(void) {
    static FILE *feed;
    const char *text = getenv(WORKERS_FEED);
    if (!text)
        return feed;
    const int descriptor = atoi(text);
    unsetenv(WORKERS_FEED); /* what this process starts is no worker */
    if (fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0)
        feed = fdopen(descriptor, "w");
    if (feed)
        setvbuf(feed, NULL, _IOLBF, 0);
    return feed;
}

int32_t workers_share(size_t count) {
    cpu_set_t set;
    const int mine = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return mine < (int)count ? 1 : mine / (int)count;
}

/* The index-th of `count` equal runs of the processors that this process may use. */
static void take_processors(size_t index, size_t count) {
    cpu_set_t set, own;
    if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < (int)count)
        return;
    const size_t all = (size_t)CPU_COUNT(&set);
    const size_t first = index * all / count, end = (index + 1) * all / count;
    size_t number = 0;
    CPU_ZERO(&own);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set)) {
            if (number >= first && number < end)
                CPU_SET(cpu, &own);
            number++;
        }
    sched_setaffinity(0, sizeof own, &own);
}

/* In the child, between fork and exec. */
static void become_worker(const struct worker *worker, pid_t watcher, int feed, int errors) {
    char number[16];
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    setpgid(0, 0); /* an interrupt of the terminal goes to the watcher alone, which passes it on */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != watcher || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(nothing, STDOUT_FILENO) < 0 || dup2(errors, STDERR_FILENO) < 0 ||
        fcntl(feed, F_SETFD, 0) < 0)
        _exit(126);
    snprintf(number, sizeof number, "%d", feed);
    setenv(WORKERS_FEED, number, 1);
    execv("/proc/self/exe", worker->words);
    fprintf(stderr, "bench_topp: cannot be started: %s\n", strerror(errno));
    _exit(126);
}

static enum tb_status start(struct worker *worker, size_t index, size_t count,
                            struct tb_error *error) {
    int feed[2] = {-1, -1}, errors[2] = {-1, -1};
    const pid_t watcher = getpid();
    worker->feed = worker->errors = -1;
    worker->pid = -1;
    if (pipe2(feed, O_CLOEXEC) == 0 && pipe2(errors, O_CLOEXEC) == 0)
        worker->pid = fork();
    if (worker->pid == 0) {
        take_processors(index, count);
        become_worker(worker, watcher, feed[1], errors[1]);
    }
    const int failed = errno;
    if (feed[1] >= 0)
        close(feed[1]);
    if (errors[1] >= 0)
        close(errors[1]);
    if (worker->pid > 0) {
        worker->feed = feed[0];
        worker->errors = errors[0];
        return TB_OK;
    }
    if (feed[0] >= 0)
        close(feed[0]);
    if (errors[0] >= 0)
        close(errors[0]);
    return tb_fail(error, TB_INTERNAL, "the worker of %s cannot be started: %s", worker->label,
                   strerror(failed));
}

static size_t steps_done(const struct worker *worker) {
    return worker->finished ? worker->steps : worker->cells + worker->done;
}

static void show(const struct worker *workers, size_t count, const struct worker *one,
                 struct progress *progress) {
    char what[CELL_NAME_BYTES + 64];
    size_t done = 0, steps = 0;
    for (size_t i = 0; i < count; i++) {
        done += steps_done(&workers[i]);
        steps += workers[i].steps;
    }
    snprintf(what, sizeof what, "%s %s %s", one->label, one->phase, one->at);
    progress_to(progress, done, steps, what);
}

/* "gating 3 68 topp/...": what comes next, and how many of the phase's steps are done. */
static void take_feed(struct worker *worker, const char *line) {
    char phase[sizeof worker->phase], at[sizeof worker->at] = "";
    size_t done = 0, total = 0;
    if (!strcmp(line, WORKERS_FINISHED)) {
        worker->finished = true;
        return;
    }
    if (sscanf(line, "%15s %zu %zu %383[^\n]", phase, &done, &total, at) < 3)
        return;
    if (strcmp(phase, worker->phase) != 0 && worker->phase[0])
        worker->cells = worker->total;
    snprintf(worker->phase, sizeof worker->phase, "%s", phase);
    snprintf(worker->at, sizeof worker->at, "%s", at);
    worker->done = done;
    worker->total = total;
    if (worker->cells) /* now it is known how much there is to time */
        worker->steps = worker->cells + total;
}

static void take_error(const struct worker *worker, const char *line, struct progress *progress) {
    if (!progress->stream)
        return;
    progress_end(progress);
    fprintf(progress->stream, "%s: %s\n", worker->label, line);
}

/* Reads what is there; calls take for each whole line. False at the end of the pipe. */
static bool read_lines(int descriptor, struct worker_line *line, struct worker *worker,
                       struct progress *progress, bool is_feed) {
    char bytes[4096];
    const ssize_t got = read(descriptor, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR)
        return true;
    for (ssize_t i = 0; i < got; i++) {
        const bool full = line->length + 1 == sizeof line->text;
        if (bytes[i] != '\n' && !full) {
            line->text[line->length++] = bytes[i];
            continue;
        }
        line->text[line->length] = '\0';
        line->length = 0;
        if (is_feed)
            take_feed(worker, line->text);
        else
            take_error(worker, line->text, progress);
        if (full && bytes[i] != '\n')
            line->text[line->length++] = bytes[i];
    }
    return got > 0;
}

static void close_end(int *descriptor) {
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

/* Both pipes are closed: it has ended, or is about to. */
static void wait_for(struct worker *worker) {
    int how = 0;
    while (waitpid(worker->pid, &how, 0) < 0 && errno == EINTR)
        ;
    worker->signal = WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    worker->exit_code = WIFEXITED(how) ? WEXITSTATUS(how) : -1;
    worker->pid = -1;
}

/* A worker that has not finished: how it ended, and what it was about. */
static void say_end(const struct worker *worker, struct progress *progress) {
    char how[96];
    if (worker->finished || !progress->stream)
        return;
    if (worker->signal)
        snprintf(how, sizeof how, "was ended by signal %d (%s)", worker->signal,
                 strsignal(worker->signal));
    else
        snprintf(how, sizeof how, "ended with exit code %d", worker->exit_code);
    progress_end(progress);
    if (worker->phase[0])
        fprintf(progress->stream, "%s: the worker %s while %s %s (%zu of %zu done)\n",
                worker->label, how, worker->phase, worker->at[0] ? worker->at : "began",
                worker->done, worker->total);
    else
        fprintf(progress->stream, "%s: the worker %s before its first cell\n", worker->label, how);
}

static void stop_all(const struct worker *workers, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (workers[i].pid > 0)
            kill(workers[i].pid, SIGTERM);
}

/* Waits for something to read and takes it; true while a pipe is open. */
static bool watch(struct worker *workers, size_t count, struct pollfd *ends,
                  struct progress *progress) {
    size_t open = 0;
    for (size_t i = 0; i < count; i++) {
        ends[2 * i] = (struct pollfd){.fd = workers[i].feed, .events = POLLIN};
        ends[2 * i + 1] = (struct pollfd){.fd = workers[i].errors, .events = POLLIN};
        open += (workers[i].feed >= 0) + (workers[i].errors >= 0);
    }
    if (open == 0)
        return false;
    /* Now and then without news, for a signal that came just before. */
    if (poll(ends, 2 * count, STOP_POLL_MS) <= 0)
        return true;
    for (size_t i = 0; i < count; i++) {
        struct worker *worker = &workers[i];
        if (ends[2 * i].revents &&
            !read_lines(worker->feed, &worker->feed_line, worker, progress, true))
            close_end(&worker->feed);
        if (ends[2 * i].revents)
            show(workers, count, worker, progress);
        if (ends[2 * i + 1].revents &&
            !read_lines(worker->errors, &worker->error_line, worker, progress, false))
            close_end(&worker->errors);
        if (worker->pid > 0 && worker->feed < 0 && worker->errors < 0) {
            wait_for(worker);
            say_end(worker, progress);
        }
    }
    return true;
}

enum tb_status workers_run(struct worker *workers, size_t count, FILE *stream,
                           const volatile sig_atomic_t *stop, struct tb_error *error) {
    struct progress progress;
    enum tb_status status = TB_OK;
    bool told = false;
    size_t started = 0;
    struct pollfd *ends = calloc(2 * count, sizeof *ends);
    if (!ends)
        return tb_fail(error, TB_NO_MEMORY, "no memory to watch %zu workers", count);
    progress_begin(&progress, stream, "workers", 0);
    while (started < count && status == TB_OK) {
        status = start(&workers[started], started, count, error);
        started += status == TB_OK;
    }
    do {
        if (!told && ((stop && *stop) || status != TB_OK)) {
            stop_all(workers, started);
            told = true;
        }
    } while (watch(workers, started, ends, &progress));
    progress_end(&progress);
    free(ends);
    return status;
}
