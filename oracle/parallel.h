/* Rows in parallel: one call per row, on as many threads as there are processors. */
#ifndef TOPP_ORACLE_PARALLEL_H
#define TOPP_ORACLE_PARALLEL_H

#include <stdint.h>

/* Calls row(context, i) for i in [0, rows) in any order and returns when all are done. The rows
 * must not depend on each other. threads: 0 = one per processor. Where a thread cannot be started
 * the caller's does the work. */
void parallel_rows(int64_t rows, int threads, void (*row)(void *context, int64_t index),
                   void *context);

#endif
