/* The process that a plug-in's kernels run in: this program again, started by worker_start(). It
 * gates and times cells with the runner's own code and answers with lines of its journal. */
#ifndef TOPP_BENCH_PLUGIN_WORKER_H
#define TOPP_BENCH_PLUGIN_WORKER_H

/* Serves until the connection ends; returns the exit code. */
int plugin_worker_main(void);

#endif
