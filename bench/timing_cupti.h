/* CUPTI activity records, the library loaded at run time. One collector a process. */
#ifndef TOPP_BENCH_TIMING_CUPTI_H
#define TOPP_BENCH_TIMING_CUPTI_H

#include "oracle/status.h"

#include <stdbool.h>
#include <stddef.h>

enum cupti_record_kind { CUPTI_RECORD_KERNEL, CUPTI_RECORD_MEMCPY, CUPTI_RECORD_MEMSET };

/* One piece of device work. Times in CUPTI's nanoseconds. */
struct cupti_record {
    enum cupti_record_kind kind;
    uint64_t start_ns, end_ns;
    uint32_t stream, correlation;
    uint64_t graph_node; /* 0 outside graphs */
    const char *name;    /* owned by the collector, valid as long as it; "memcpy", "memset" */
    uint32_t grid[3], block[3], shared_bytes, registers;
};

struct cupti_collector;

/* Loads CUPTI (TOPP_BENCH_CUPTI names a library file; else the places it is usually found), checks
 * that its major version is that of the header this was built with, takes the one subscription
 * and registers the buffer callbacks (once per process).
 * TB_UNAVAILABLE with the reason: not found, another version, another profiler holds CUPTI. */
enum tb_status cupti_open(struct cupti_collector **collector, struct tb_error *error);
void cupti_close(struct cupti_collector *collector);

/* Turns the records on and off. Off: kernels launched from then on are not traced. */
enum tb_status cupti_start(struct cupti_collector *collector, struct tb_error *error);
enum tb_status cupti_stop(struct cupti_collector *collector, struct tb_error *error);

/* What came since the last call, sorted by start; the device must be synchronised first. records:
 * the collector's, valid until the next call. dropped: records that CUPTI had no room for. */
enum tb_status cupti_take(struct cupti_collector *collector, const struct cupti_record **records,
                          size_t *count, size_t *dropped, struct tb_error *error);

/* Throws away what came so far (warm-up). */
enum tb_status cupti_discard(struct cupti_collector *collector, struct tb_error *error);

/* CUPTI's clock now, in the time base of the records. */
uint64_t cupti_now_ns(struct cupti_collector *collector);
/* For example "13.0.1 (/usr/local/cuda/lib64/libcupti.so.13)". */
const char *cupti_version_text(const struct cupti_collector *collector);

/* For tests: the next buffers that CUPTI asks for are refused, so that records are dropped. */
void cupti_starve(struct cupti_collector *collector, bool starve);

#endif
