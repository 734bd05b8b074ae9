/* Google Benchmark behind plain C types: it drives repetition, naming, interleaving and its own
 * JSON. No exception crosses. One run a process: the library keeps global state. */
#ifndef TOPP_BENCH_GBENCH_H
#define TOPP_BENCH_GBENCH_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GBENCH_MOST_COUNTERS = 12 };

struct gbench_counter {
    const char *name; /* a constant */
    double value;     /* not finite: left out */
};

/* One repetition's answer. */
struct gbench_block {
    double seconds; /* the block's median, reported as manual time of its one iteration */
    struct gbench_counter counters[GBENCH_MOST_COUNTERS];
    size_t counter_count;
    char error[256]; /* not empty: SkipWithError, nothing else counts */
};

struct gbench_cell {
    const char *name;
    const char *skip;    /* refused: SkipWithError with this reason, once; NULL = measure */
    int32_t repetitions; /* >= 1 */
};

struct gbench_run {
    const struct gbench_cell *cells;
    size_t count;
    /* Called once per repetition of a cell without `skip`, in the library's (random) order. */
    void (*measure)(void *context, size_t cell, struct gbench_block *block);
    void *context;
    const volatile sig_atomic_t *stop; /* once set, what is left is skipped; may be NULL */
    bool interleave;                   /* shuffle the repetitions of all cells */
    const char *json_path;             /* the file to write; strict JSON */
    const char *const *flags;          /* output flags for the library, as typed by the user */
    size_t flag_count;
    const char *const
        *context_pairs; /* key, value, key, value ..., NULL: into the JSON's context */
};

/* 0, or -1 with *why (why_bytes) saying what failed. */
int gbench_execute(const struct gbench_run *run, char *why, size_t why_bytes);

/* True for an option of Google Benchmark that only shapes its output. */
bool gbench_flag_allowed(const char *argument);

#ifdef __cplusplus
}
#endif
#endif
