/* One shard of a merge: what its receipt binds. */
#ifndef TOPP_BENCH_MERGE_SHARD_H
#define TOPP_BENCH_MERGE_SHARD_H

#include "bench/sweep.h"
#include "oracle/receipt.h"

enum { MERGE_FILES = 3 };
extern const char *const merge_files[MERGE_FILES]; /* that a sweep leaves and a merge makes */

struct merge_shard {
    const char *dir;         /* as it was named; borrowed */
    json_t *run;             /* of the receipt; owned, as the others */
    json_t *request;         /* what the plan was resolved from */
    json_t *sources;         /* path and hash of each */
    json_t *summary;         /* of results.json */
    int32_t index, count;    /* from 1 */
    const char *id, *model;  /* of run, of run.device; borrowed */
    bool gate_only;          /* nothing was to be timed */
    char receipt_sha256[65]; /* of the file */
    char seal_sha256[65];    /* in it */
    char bound[MERGE_FILES][65];
    char *names; /* of its cells, each terminated, one behind the other; owned */
    size_t names_bytes;
    size_t *places; /* [cells]: where each stands in the whole list; owned, of merge_place() */
    size_t cells;
};

/* Reads and checks DIR/receipt.json (and whether DIR holds a finished run at all).
 * TB_UNREADABLE names file and mend. *shard is to be freed in any case. */
enum tb_status merge_shard_read(const char *dir, struct merge_shard *shard, struct tb_error *error);
void merge_shard_free(struct merge_shard *shard);

/* Finds each cell of the shard in the plan, in order: fills places, and owner[place] with `which`.
 * TB_UNREADABLE: a cell that the plan does not have there, or that another shard has too. */
enum tb_status merge_place(struct merge_shard *shard, const struct plan *plan, int32_t which,
                           int32_t *owner, struct tb_error *error);

#endif
