/* A child process of this program that answers one JSON line with one JSON line: where code that
 * is not trusted runs. It is killed with its parent. */
#ifndef TOPP_BENCH_WORKER_PROCESS_H
#define TOPP_BENCH_WORKER_PROCESS_H

#include "oracle/status.h"

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    WORKER_FD = 3,         /* the worker's end of the connection */
    WORKER_EXIT_LATE = 86, /* its watchdog ended it */
};
extern const char worker_argument[]; /* the word on the command line that makes a worker */

struct worker_process;

/* Starts this very program as a worker, in a process group of its own. Its standard output goes to
 * standard error, its standard input is empty. */
enum tb_status worker_start(struct worker_process **worker, struct tb_error *error);

/* Sends a request (owned) and waits for the answer, new. NULL: it ended, was stopped, left its
 * connection or wrote no JSON to it, or *stop was set: it and whatever it forked are gone then.
 * stop may be NULL. */
json_t *worker_ask(struct worker_process *worker, json_t *request,
                   const volatile sig_atomic_t *stop);

/* After no answer came: true when its watchdog ended it, and how it ended, for a message:
 * "was ended by signal 11 (Segmentation fault)". */
bool worker_was_late(const struct worker_process *worker);
void worker_how(const struct worker_process *worker, char *text, size_t bytes);

void worker_close(struct worker_process *worker); /* kills it and what it forked; NULL is fine */

/* The worker's side. First of all: this process serves. False: nobody has started it as a worker.
 */
bool worker_serve(void);
/* Reads the next request, new; NULL at the end of the connection. */
json_t *worker_next(void);
bool worker_answer(json_t *line); /* owned */

#endif
