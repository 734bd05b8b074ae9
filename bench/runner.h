/* Runs a plan: input -> oracle -> gate -> time -> re-check -> record -> files.
 *
 * Leaves in out_dir: journal.jsonl (grows while running, each verdict and block flushed before the
 * next starts), and at the end, each through a temporary file and rename: results.json,
 * results.tsv, benchmark.json. Nothing is timed that was not accepted. */
#ifndef TOPP_BENCH_RUNNER_H
#define TOPP_BENCH_RUNNER_H

#include "bench/gbench.h"
#include "bench/plugin.h"
#include "bench/record.h"

#include <signal.h>

struct build_info;    /* bench/sources.h */
struct oracle_cache;  /* bench/oracle_cache.h */
struct external_list; /* bench/external.h */

struct sweep_run {
    const struct plan *plan;
    struct device *device;
    const char *out_dir;            /* made if missing */
    const char *captured_dir;       /* where captured=NAME is looked up */
    const char *input;              /* --input: the user's file that is swept over; NULL = none */
    const char *profile_file;       /* a profile given by path; NULL: by its name */
    const char *sources_sha256;     /* hash of the compiled-in sources; NULL counts as "" */
    const struct build_info *build; /* goes into the result file; NULL = unknown */
    const struct external_list
        *externals; /* --external: the plan's cells point at it; NULL = none */
    bool resume;    /* go on from out_dir's journal; without one: start afresh */
    bool force;  /* out_dir may hold an interrupted run or results of another plan: replace them */
    bool subset; /* --case or --filter chose some of the profile's cells */
    bool gate_only; /* no timing at all (sanitizer runs) */
    bool color;     /* of the table */
    FILE *table;    /* the table for people, NULL = none */
    FILE *feed;     /* NULL, or: told what comes next, for a process that watches */
    FILE *progress; /* NULL = none; a bar when it is a terminal */
    const struct plugin_set *plugins;  /* whose kernels the plan has too; NULL = none */
    enum timer_kind timer;             /* for the processes of plug-ins: as the device was opened */
    int threads;                       /* of the oracle, 0 = one per processor */
    struct oracle_cache *oracle_cache; /* NULL = none; its counts go into the result file */
    int32_t slices;                    /* split variants: slices per row, 0 = as upstream */
    int64_t cache_bytes;         /* inputs kept in memory, 0 = a quarter of it but at most 4 GiB */
    volatile sig_atomic_t *stop; /* set by a signal handler: finish the sample, keep the journal */
    const char *const *gbench_flags; /* Google Benchmark's own output flags, as typed */
    size_t gbench_flag_count;
};

/* TB_OK: everything ran and the files are in place; verdicts are in *result (also when some are
 * against the expectation: result->unexpected). TB_INTERRUPTED: stopped, the journal is kept and
 * *result holds what was finished. Everything else: *error names file and mend; what was journaled
 * is kept. *result is always to be freed with run_result_free(). */
enum tb_status sweep_execute(const struct sweep_run *run, struct run_result *result,
                             struct tb_error *error);

/* Exit code of a finished run: 0 as expected, 1 unexpected verdicts, 3 cells without samples. */
int sweep_exit_code(const struct run_result *result);

#endif
