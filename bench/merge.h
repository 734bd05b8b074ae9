/* Shards of one sweep, or workers of one host, made into the files that one run would have left.
 *
 * Each directory is a finished run of one shard (results.json's run.shard). Out comes what
 * sweep_execute() leaves, in the whole list's order: results.json (each cell with the shard and the
 * device it was measured on, run.shards with what each shard's run was), results.tsv,
 * benchmark.json, journal.jsonl, and receipt.json, which binds the shards' receipts as well.
 * Memory does not grow with the samples. The same shards give the same bytes, whatever the order in
 * which they are named. */
#ifndef TOPP_BENCH_MERGE_H
#define TOPP_BENCH_MERGE_H

#include "oracle/status.h"

#include <stdbool.h>
#include <stddef.h>

struct merge_request {
    const char *const *dirs; /* [dir_count], at least one; any order */
    size_t dir_count;
    const char *out_dir;     /* made if missing; none of dirs */
    const char *profile_dir; /* folder of profiles: the shards' one is looked for where they found
                                it, then here */
    bool profile_dir_wins;   /* first here */
    bool separate_devices;   /* a merged run for each device model, in out_dir/<model> */
    bool force;              /* replace another run's results in out_dir */
};

struct merge_result {
    size_t runs; /* merged runs written: 1, or one for each model */
    size_t shards, cells;
    size_t unexpected; /* cells against their expectation: exit code 1 */
    size_t unmeasured; /* accepted, to be timed, without valid samples: exit code 3 */
};

/* TB_OK: everything is in place. Before anything is written:
 * TB_USAGE: missing shards (named), a shard twice (both directories named), another profile,
 * sources, settings or device than the first's, an out_dir that holds something else (force);
 * TB_UNREADABLE: a directory without a finished run, a file that its receipt does not bind, or the
 * profile cannot be resolved to the list that was sharded. TB_IO: out_dir cannot be written; it
 * holds what it held before, or an unfinished merge that a new one replaces. */
enum tb_status merge_runs(const struct merge_request *request, struct merge_result *result,
                          struct tb_error *error);

/* Exit code of a merged run: 0 as expected, 1 unexpected verdicts, 3 cells without samples. */
int merge_exit_code(const struct merge_result *result);

#endif
