/* Cells of plug-ins in a run: gated and timed by the library's worker process. Part of the runner:
 * run_gate.c and run_time.c hand such cells over. */
#ifndef TOPP_BENCH_RUN_PLUGIN_H
#define TOPP_BENCH_RUN_PLUGIN_H

#include "bench/run_state.h"

/* True when the cell's kernel is a plug-in's (never in a worker). */
bool run_plugin_has(const struct run_state *state, size_t cell);

/* Fills the record as gate_cell would; a plug-in that ends its process, or does not come back, is
 * refused by that. Nothing is set when the run was stopped meanwhile. */
enum tb_status run_plugin_gate(struct run_state *state, size_t cell);

/* As run_take_block: a block in *result, or a record that lost its verdict. */
enum tb_status run_plugin_block(struct run_state *state, size_t cell, int32_t block, bool warm,
                                struct block_result *result);

#endif
