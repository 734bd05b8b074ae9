#include "bench/progress.h"

#include "bench/timing_clock.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR_WIDTH = 24, REFRESH_NS = 100000000 };

char *progress_duration(double seconds, char *text, size_t text_bytes) {
    int64_t whole = seconds > 0.0 ? (int64_t)(seconds + 0.5) : 0;
    if (whole < 60)
        snprintf(text, text_bytes, "%llds", (long long)whole);
    else if (whole < 3600)
        snprintf(text, text_bytes, "%lldm %llds", (long long)(whole / 60), (long long)(whole % 60));
    else
        snprintf(text, text_bytes, "%lldh %lldm", (long long)(whole / 3600),
                 (long long)(whole / 60 % 60));
    return text;
}

void progress_begin(struct progress *progress, FILE *stream, const char *phase, size_t total) {
    *progress = (struct progress){
        .stream = stream,
        .terminal = stream && isatty(fileno(stream)),
        .phase = phase,
        .total = total,
        .start_ns = timing_clock_now_ns(),
    };
}

static int columns_of(FILE *stream) {
    struct winsize size;
    if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 20)
        return size.ws_col;
    return 80;
}

static void show(struct progress *progress, const char *what) {
    double passed = (double)(timing_clock_now_ns() - progress->start_ns) * 1e-9;
    double rate = passed > 0.0 ? (double)progress->done / passed : 0.0;
    double left = rate > 0.0 ? (double)(progress->total - progress->done) / rate : 0.0;
    char duration[32], bar[BAR_WIDTH + 1], line[512];
    progress_duration(left, duration, sizeof duration);
    if (!progress->terminal) {
        fprintf(progress->stream, "%s: %zu of %zu, %ld.%01ld/s, %s left, %s\n", progress->phase,
                progress->done, progress->total, (long)rate, (long)(rate * 10.0) % 10, duration,
                what);
        fflush(progress->stream);
        return;
    }
    size_t filled = progress->total ? BAR_WIDTH * progress->done / progress->total : BAR_WIDTH;
    memset(bar, '.', BAR_WIDTH);
    memset(bar, '#', filled);
    bar[BAR_WIDTH] = '\0';
    snprintf(line, sizeof line, "%s [%s] %zu/%zu %ld.%01ld/s %s left  %s", progress->phase, bar,
             progress->done, progress->total, (long)rate, (long)(rate * 10.0) % 10, duration, what);
    fprintf(progress->stream, "\r%.*s\033[K", columns_of(progress->stream) - 1, line);
    fflush(progress->stream);
}

void progress_now(struct progress *progress, const char *what) {
    if (progress->feed)
        fprintf(progress->feed, "%s %zu %zu %s\n", progress->phase, progress->done, progress->total,
                what);
}

void progress_to(struct progress *progress, size_t done, size_t total, const char *what) {
    const size_t before = progress->done;
    progress->done = done < total ? done : total;
    progress->total = total;
    if (!progress->stream || progress->done <= before)
        return;
    int64_t now = timing_clock_now_ns();
    bool last = progress->done == total;
    size_t every = total / PROGRESS_LINES + (total % PROGRESS_LINES != 0);
    if (progress->terminal ? !last && now - progress->shown_ns < REFRESH_NS
                           : !last && progress->done / every == before / every)
        return;
    progress->shown_ns = now;
    show(progress, what);
}

void progress_step(struct progress *progress, const char *what) {
    progress_to(progress, progress->done + 1, progress->total, what);
}

void progress_end(struct progress *progress) {
    if (progress->stream && progress->terminal) {
        fputs("\r\033[K", progress->stream);
        fflush(progress->stream);
    }
}
