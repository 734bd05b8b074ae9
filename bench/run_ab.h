/* Two kernels against each other on one device. */
#ifndef TOPP_BENCH_RUN_AB_H
#define TOPP_BENCH_RUN_AB_H

#include "bench/runner.h"

/* runs[0] holds cells of kernel A, runs[1] the same cells of kernel B in the same order; both are
 * on one device, each has a folder of its own. Every cell is gated; a pair that both passed is
 * timed in blocks that alternate A B B A A B B A ..., in the same device memory, so that drift and
 * placement hit both alike. Both folders get what a sweep leaves, but for benchmark.json, as Google
 * Benchmark has no part in it. Errors, results and interruption: as sweep_execute(); tables are not
 * written. */
enum tb_status ab_execute(const struct sweep_run runs[2], struct run_result results[2],
                          struct tb_error *error);

#endif
