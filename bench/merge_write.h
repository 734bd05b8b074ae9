/* The files of a merged run, written from the shards' files without building any of them. */
#ifndef TOPP_BENCH_MERGE_WRITE_H
#define TOPP_BENCH_MERGE_WRITE_H

#include "bench/merge_shard.h"
#include "bench/external.h"
#include "bench/plugin.h"
#include "bench/merge_stream.h"

/* A merge whose shards are checked. */
struct merging {
    struct merge_shard *shards; /* [count], in order of index */
    size_t count;
    struct plugin_set plugins;      /* kernels from elsewhere; the plan's cells point at them */
    struct external_list externals; /* the same */
    struct plan plan;               /* of the whole list; owned */
    int32_t *owner;                 /* [plan.count]: which shard has the cell; owned */
    json_t *run, *summary;          /* of the merged results; owned */
    char out_dir[4096];             /* made if missing */
    char hashes[MERGE_FILES][65];   /* of the merged files, once they are written */
};

/* Opens and checks the head of each shard's results.json: its run is the receipt's. Fills the
 * shards' summaries. */
enum tb_status merge_heads(struct merging *merging, struct tb_error *error);

/* What merge_cells() writes; files are open, hashes begun. */
struct merge_targets {
    struct merge_output results, table;
    FILE *receipt;
    struct sha256_stream seal; /* of the receipt's canonical form, up to the end of its cells */
};
/* results.json and results.tsv whole; of the receipt the members before "outputs". */
enum tb_status merge_cells(struct merging *merging, struct merge_targets *targets,
                           struct tb_error *error);
/* What the receipt says of each shard: index, dir (as seen from out_dir), and the hash and the seal
 * of its receipt. NULL without memory, or when a folder cannot be found any more. */
json_t *merge_receipt_shards(const struct merging *merging);
/* The rest of the receipt, once merging->hashes are known. false without memory. */
bool merge_receipt_end(struct merging *merging, struct merge_targets *targets);

/* benchmark.json whole. Reads nothing of merging but shards, places and the run's id, so that it
 * may go on beside merge_cells(). */
enum tb_status merge_benchmark(const struct merging *merging, struct merge_output *output,
                               struct tb_error *error);

#endif
