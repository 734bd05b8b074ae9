/* Cells of other programs, inside of the runner. */
#ifndef TOPP_BENCH_RUN_EXTERNAL_H
#define TOPP_BENCH_RUN_EXTERNAL_H

#include "bench/external.h"
#include "bench/run_state.h"

/* Starts the program on one draw. p: [batch]; rows: [batch, stride], receives its output. *came:
 * there is an output to judge; if not, the record is refused, or the run was stopped. Samples are
 * kept for external_keep_block. */
enum tb_status external_draw_rows(struct run_state *state, struct cell_record *record, int32_t draw,
                                  const float *p, float *rows, bool *came);
/* The same for a sampler. ids: [launches, batch]. */
enum tb_status external_draw_ids(struct run_state *state, struct cell_record *record, int32_t draw,
                                 const float *p, int64_t *ids, int64_t launches, bool *came);

/* After the verdict is journaled: the samples as the cell's one block. */
enum tb_status external_keep_block(struct run_state *state, size_t cell);

void external_runs_free(struct run_state *state);

/* In a resumed run: accepted cells whose samples were not journaled any more are started again. */
void external_forget_halves(struct run_state *state);

/* How many blocks a cell has in the end. */
static inline int32_t cell_blocks(const struct plan *plan, const struct cell *cell) {
    return cell->kind == CELL_TOPP && external_of(cell->topp) ? 1 : plan->timing.blocks;
}

#endif
