/* Plans made by hand of kernels that misbehave in one known way, on a device that can be told to
 * refuse blocks. */
#ifndef TOPP_TESTS_BENCH_FAKE_H
#define TOPP_TESTS_BENCH_FAKE_H

#include "bench/runner.h"

enum { FAKE_VOCAB = 64, FAKE_BATCH = 2, FAKE_DRAWS = 2, FAKE_BLOCKS = 3, FAKE_MOST_CELLS = 16 };
enum { FAKE_SLOWNESS = 12, FAKE_MOST_BLOCKS = 64 };

enum fake_kind {
    FAKE_GOOD,           /* `exact` */
    FAKE_WRONG,          /* keeps one token too few, always */
    FAKE_LATER_DRAW,     /* the same, on the second draw alone */
    FAKE_PADDING,        /* writes past the vocabulary; its stride leaves room */
    FAKE_HANGS,          /* never comes back */
    FAKE_HANGS_LATER,    /* the gate sees it run */
    FAKE_WORKSPACE,      /* returns KERNEL_WORKSPACE */
    FAKE_UNSUPPORTED,    /* returns KERNEL_UNSUPPORTED */
    FAKE_MOST_BATCH,     /* its descriptor takes one row */
    FAKE_DRIFTS,         /* right in the gate, wrong from the sixth call on */
    FAKE_LAUNCH_LATER,   /* launches in the gate, returns KERNEL_WORKSPACE from the sixth call on */
    FAKE_TRUSTS_MEMORY,  /* right only where its workspace holds zeros */
    FAKE_REFUSED_BLOCK,  /* `exact`; the device refuses its second block */
    FAKE_FLOOR,          /* `exact` that is told the boundary */
    FAKE_PAST_ROWS,      /* writes behind the last row, its padding included */
    FAKE_PAST_WORKSPACE, /* writes behind its workspace */
    FAKE_SLOW,           /* `exact`, FAKE_SLOWNESS times in a row */
    FAKE_KINDS
};

/* A run on one plan; zero it, then fake_open(). */
struct fake {
    struct plan plan;
    struct cell cells[FAKE_MOST_CELLS];
    struct device device;
    struct device_ops ops;
    struct device *cpu;
    struct sweep_run run;
    struct run_result result;
    struct tb_error error;
    volatile sig_atomic_t stop;
};

/* kinds: one cell each. out: folder. */
void fake_open(struct fake *fake, const char *out, const enum fake_kind *kinds, size_t count);
/* Runs; the kernels' counts of calls start anew unless it is a resumed run. stop_at: raise the stop
 * flag at this call of any kernel, 0 = never. */
enum tb_status fake_run(struct fake *fake, long stop_at);
void fake_close(struct fake *fake);

/* For runs that fake_run() does not start: raises *stop at this call from now, 0 = never. */
void fake_stop_at(long call, volatile sig_atomic_t *stop);

/* Calls of all kernels in the latest run. */
long fake_calls(void);
const char *fake_name(enum fake_kind kind);
/* First letters of the kernels whose blocks were timed since this was last asked, in order. */
const char *fake_blocks(void);

#endif
