/* A fixed part of a plan, so that several machines or GPUs share one sweep.
 *
 * Cells that read the same input bytes stay in one shard: its rows are made, sorted and summed by
 * the oracle once. The parts are a pure function of the resolved cells and the profile's timing
 * settings, in integers: the same on every machine, disjoint, and together the whole plan. */
#ifndef TOPP_BENCH_SHARD_H
#define TOPP_BENCH_SHARD_H

#include "bench/sweep.h"

enum { SHARD_MOST = 100000 };

/* cost_ns[i]: estimated time of plan->cells[i], in nanoseconds of a machine that does not exist
 * (docs/scale.md says what the rates are): good for shares, not for promises. Making an input and
 * solving it counts to the first of its cells. */
void shard_costs(const struct plan *plan, int64_t *cost_ns);

/* shard_of[i]: 1 to count, the shard of plan->cells[i]. cost_ns: of shard_costs().
 * TB_USAGE: fewer inputs than shards, so that some shard would be empty. */
enum tb_status shard_assign(const struct plan *plan, const int64_t *cost_ns, int32_t count,
                            int32_t *shard_of, struct tb_error *error);

/* Leaves in the plan the cells of shard `index` (from 1) of `count`, in the plan's order, and says
 * so in plan->shard. */
enum tb_status shard_select(struct plan *plan, int32_t index, int32_t count,
                            struct tb_error *error);

/* Inputs of a plan: the most shards it can be cut into. */
size_t shard_inputs(const struct plan *plan);

#endif
