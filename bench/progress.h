/* How far a run is: a bar with rate and time left on a terminal, now and then a line otherwise. */
#ifndef TOPP_BENCH_PROGRESS_H
#define TOPP_BENCH_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { PROGRESS_LINES = 10 }; /* lines of a phase when it is no terminal */

struct progress {
    FILE *stream; /* NULL: silent */
    FILE *feed;   /* NULL, or to a process that watches this one: set after progress_begin() */
    bool terminal;
    const char *phase; /* a constant: "gate", "time" */
    size_t done, total;
    int64_t start_ns, shown_ns;
};

/* stream may be NULL. */
void progress_begin(struct progress *progress, FILE *stream, const char *phase, size_t total);
/* One more is done; what: its name. */
void progress_step(struct progress *progress, const char *what);
/* Says to the feed what comes next: `PHASE DONE TOTAL WHAT` and a line break. */
void progress_now(struct progress *progress, const char *what);
/* As progress_step(), for one who counts himself; total may change. */
void progress_to(struct progress *progress, size_t done, size_t total, const char *what);
/* Clears the bar. */
void progress_end(struct progress *progress);

/* "3m 20s", for tests too. */
char *progress_duration(double seconds, char *text, size_t text_bytes);

#endif
