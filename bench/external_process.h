/* A program started by /bin/sh in a process group of its own, and ended at its limit. */
#ifndef TOPP_BENCH_EXTERNAL_PROCESS_H
#define TOPP_BENCH_EXTERNAL_PROCESS_H

#include "oracle/status.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct process_request {
    const char *command;            /* shell text; the arguments are put behind it */
    const char *const *arguments;   /* NULL-terminated */
    const char *const *environment; /* "NAME=VALUE", over what is inherited; NULL-terminated */
    const char *log;  /* file that receives standard output and error: at most 64 MiB of the end */
    const char *mark; /* one of environment, as no other process has it */
    double limit_seconds;              /* 0 = none */
    const volatile sig_atomic_t *stop; /* NULL, or: once set, the program is ended */
};

struct process_result {
    bool timed_out, stopped;
    int exit_code; /* -1 when a signal ended it */
    int signal;    /* 0, or which */
};

/* TB_OK: it ran, how it ended is in *result. Whatever it started is gone when this returns:
 * its process group, and what left that but carries the mark.
 * TB_UNAVAILABLE: no process could be made. */
enum tb_status process_run(const struct process_request *request, struct process_result *result,
                           struct tb_error *error);

/* Opens an ordinary file to read; NULL for anything else that a program may have left there, so
 * that nobody waits for a FIFO. */
FILE *process_open_file(const char *path);

/* The last line of a log with something in it, printable bytes alone; "" when there is none. */
void process_last_line(const char *log, char *line, size_t bytes);

#endif
