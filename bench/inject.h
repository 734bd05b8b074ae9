/* libtopp_inject.so: what bench_topp puts into an external program to time it. It sees the NVTX
 * ranges named `sample`, on CUDA also the CUPTI records of the process, and leaves both in a file;
 * bench_topp judges them (bench/external_records.h). docs/external.md is the protocol.
 *
 * Environment: TOPP_INJECT_OUT names the file, TOPP_INJECT_REPEATS how many ranges there will be:
 * with the last of them the file is written. NVTX_INJECTION64_PATH and, on CUDA,
 * CUDA_INJECTION64_PATH name the library. */
#ifndef TOPP_BENCH_INJECT_H
#define TOPP_BENCH_INJECT_H

#include <stdbool.h>

#define INJECT_SCHEMA "topp-bench.inject/1"
#define INJECT_OUT "TOPP_INJECT_OUT"
#define INJECT_REPEATS "TOPP_INJECT_REPEATS"
#define INJECT_CUPTI "TOPP_INJECT_CUPTI" /* where bench_topp found CUPTI */
#define INJECT_RANGE "sample"

/* Records are kept when they touch a range widened by this on both sides. */
enum { INJECT_EDGE_NS = 20000 };

/* Inside of the library: a range begins and ends, on any thread. */
void inject_begin(void);
void inject_end(void);

#endif
