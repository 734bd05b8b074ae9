/* The CPU's timer: the steady clock, and blocks of samples taken with it. */
#ifndef TOPP_BENCH_TIMING_CLOCK_H
#define TOPP_BENCH_TIMING_CLOCK_H

#include "bench/device.h"

/* CLOCK_MONOTONIC in nanoseconds. */
int64_t timing_clock_now_ns(void);

/* Room for the samples of a block: the number that timing_clock_block() may write. */
size_t timing_clock_capacity(const struct block_request *request);

/* Takes one block: discarded calls for warmup_seconds, then per sample prepare() untimed and run()
 * timed, draws in turn, until summary_block_done(), block_seconds or stop. Allocates only for the
 * stopping rule, so that the caller may cancel the thread inside a call. samples:
 * [timing_clock_capacity()]. Returns the first status other than 0 that a call returned, else 0. */
int timing_clock_block(const struct block_request *request, struct sample *samples, size_t *count);

#endif
