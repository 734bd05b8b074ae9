/* Google Benchmark behind C: it drives repetition, interleaves the blocks of different cells, and
 * writes its own JSON. No exception crosses. */
#ifndef TOPP_BENCH_GBENCH_H
#define TOPP_BENCH_GBENCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GBENCH_MOST_COUNTERS = 8 };

/* What one repetition reports: a median in seconds, and figures beside it. */
struct gbench_block {
    double seconds;
    const char *refused; /* not NULL: no time, and why */
    const char *counter_names[GBENCH_MOST_COUNTERS];
    double counters[GBENCH_MOST_COUNTERS];
    size_t counter_count;
};

struct gbench_case {
    const char *name;
    const char *refused; /* not NULL: skipped with this reason, the block function is not called */
    int32_t repetitions;
    void *context;
    /* Takes the next block of this case. */
    void (*block)(void *context, struct gbench_block *block);
};

struct gbench_run {
    const struct gbench_case *cases;
    size_t count;
    const char *json_path; /* where Google Benchmark's JSON goes */
    const char *const *context_keys, *const *context_values; /* custom context, context_count */
    size_t context_count;
    const char *const *flags; /* its own output flags, as typed */
    size_t flag_count;
};

/* 0, or -1 with the reason in why. */
int gbench_execute(const struct gbench_run *run, char *why, size_t why_bytes);

#ifdef __cplusplus
}
#endif
#endif
