/* Worker processes of this program: started together, watched, and waited for.
 *
 * A worker says on a pipe what it is about to do (progress_now()), so that its watcher can show one
 * line of progress for all and, when it dies, name the cell that it died in. What it prints on
 * standard error appears here, each line behind its label. Workers end when their watcher does. */
#ifndef TOPP_BENCH_WORKERS_H
#define TOPP_BENCH_WORKERS_H

#include "bench/sweep.h"

#include <signal.h>
#include <stdio.h>
#include <sys/types.h>

/* Environment of a worker: the number of the descriptor that progress_now() writes to. */
#define WORKERS_FEED "TOPP_BENCH_FEED"
/* What stands on the pipe once all files of the worker's run are in place. */
#define WORKERS_FINISHED "finished"

struct worker_line {
    char text[1024];
    size_t length;
};

struct worker {
    char label[24];     /* "cuda:1" */
    char *const *words; /* of its command line, the program's name first, NULL last; borrowed */
    size_t steps;       /* how many are expected: cells to gate, and blocks */

    /* What became of it. */
    pid_t pid;
    bool finished;             /* its run is whole */
    int exit_code;             /* of a process that ended by itself */
    int signal;                /* that ended it, else 0 */
    char phase[16];            /* what it did last: "gating", "timing"; "" before */
    char at[CELL_NAME_BYTES];  /* the cell it did that to */
    size_t done, cells, total; /* steps of the phase; cells gated before it */

    /* Of workers_run() alone. */
    int feed, errors; /* read ends of the pipes, -1 when closed */
    struct worker_line feed_line, error_line;
};

/* Runs this program once for each worker and waits until all have ended. Each gets a share of the
 * processors that this process may use, if there is one for each. progress: one line or bar for
 * all, and what the workers say; NULL = silent. stop: once set, the workers are told to stop
 * (SIGTERM). TB_INTERNAL: a process could not be started; those that were are stopped. */
enum tb_status workers_run(struct worker *workers, size_t count, FILE *progress,
                           const volatile sig_atomic_t *stop, struct tb_error *error);

/* Processors that one of `count` workers gets. */
int32_t workers_share(size_t count);

/* In a worker: the stream to its watcher, line by line; NULL in any other process. */
FILE *workers_feed(void);

#endif
