/* May these shards become one run, and what is it then? */
#ifndef TOPP_BENCH_MERGE_CHECK_H
#define TOPP_BENCH_MERGE_CHECK_H

#include "bench/merge_shard.h"

/* Sorts shards by index. TB_USAGE: they are not of one sweep (what differs, and where), some are
 * missing (all named), or one is there twice (both folders named). */
enum tb_status merge_check(struct merge_shard *shards, size_t count, struct tb_error *error);

/* run of the merged results.json: what all shards have in common, null where they differ, and
 * run.shards with each shard's own. plan: of the whole list. NULL without memory. */
json_t *merge_run(const struct merge_shard *shards, size_t count, const struct plan *plan);
/* Sums of the shards' summaries. */
json_t *merge_summary(const struct merge_shard *shards, size_t count);

#endif
