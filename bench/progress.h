/* Progress on standard error: a bar with rate and time left on a terminal, else a line now and
 * then. */
#ifndef TOPP_BENCH_PROGRESS_H
#define TOPP_BENCH_PROGRESS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct progress; /* NULL is fine everywhere */

struct progress *progress_new(FILE *stream);
void progress_free(struct progress *progress);
/* Begins a phase ("gating", "timing") of `total` steps. */
void progress_begin(struct progress *progress, const char *phase, size_t total);
void progress_step(struct progress *progress);
void progress_end(struct progress *progress);

#endif
