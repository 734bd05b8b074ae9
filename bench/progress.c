#include "bench/progress.h"

#include "bench/timing_clock.h"

#include <stdlib.h>
#include <unistd.h>

enum { BAR_WIDTH = 24, LINES_A_PHASE = 10 };
static const int64_t REDRAW_NS = 100000000;

struct progress {
    FILE *stream;
    int terminal;
    const char *phase;
    size_t done, total, next_line;
    int64_t start_ns, drawn_ns;
};

struct progress *progress_new(FILE *stream) {
    if (!stream)
        return NULL;
    struct progress *progress = calloc(1, sizeof *progress);
    if (!progress)
        return NULL;
    progress->stream = stream;
    progress->terminal = isatty(fileno(stream));
    return progress;
}

void progress_free(struct progress *progress) {
    free(progress);
}

static void draw(struct progress *progress, int64_t now_ns) {
    const double seconds = 1e-9 * (double)(now_ns - progress->start_ns);
    const double rate = seconds > 0.0 ? (double)progress->done / seconds : 0.0;
    const double left = rate > 0.0 ? (double)(progress->total - progress->done) / rate : 0.0;
    if (progress->terminal) {
        const size_t filled = progress->total ? BAR_WIDTH * progress->done / progress->total : 0;
        fprintf(progress->stream, "\r%s [", progress->phase);
        for (size_t i = 0; i < BAR_WIDTH; i++)
            fputc(i < filled ? '#' : '.', progress->stream);
        fprintf(progress->stream, "] %zu/%zu  %.1f/s  %.0f s left \x1b[K", progress->done,
                progress->total, rate, left);
    } else {
        fprintf(progress->stream, "%s: %zu of %zu, %.1f/s, %.0f s left\n", progress->phase,
                progress->done, progress->total, rate, left);
    }
    fflush(progress->stream);
    progress->drawn_ns = now_ns;
}

void progress_begin(struct progress *progress, const char *phase, size_t total) {
    if (!progress)
        return;
    progress->phase = phase;
    progress->done = 0;
    progress->total = total;
    progress->next_line = (total + LINES_A_PHASE - 1) / LINES_A_PHASE;
    progress->start_ns = timing_clock_now_ns();
    progress->drawn_ns = 0;
}

void progress_step(struct progress *progress) {
    if (!progress)
        return;
    progress->done++;
    const int64_t now_ns = timing_clock_now_ns();
    if (progress->terminal ? now_ns - progress->drawn_ns >= REDRAW_NS
                           : progress->done >= progress->next_line) {
        draw(progress, now_ns);
        progress->next_line =
            progress->done + (progress->total + LINES_A_PHASE - 1) / LINES_A_PHASE;
    }
}

void progress_end(struct progress *progress) {
    if (!progress || !progress->phase)
        return;
    if (progress->terminal) {
        draw(progress, timing_clock_now_ns());
        fputc('\n', progress->stream);
        fflush(progress->stream);
    }
    progress->phase = NULL;
}
