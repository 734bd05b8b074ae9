#include "bench/run_ab.h"

#include "bench/run_state.h"

#include <stdlib.h>
#include <string.h>

/* Whose turn a step is: A B B A A B B A ... */
static int side_of(int32_t step) {
    return (step + 1) / 2 % 2;
}

static bool to_be_timed(const struct run_state *state, size_t cell) {
    const struct cell_record *record = &state->result->cells[cell];
    return record->cell->timed && record->verdict == GATE_ACCEPTED && !record->unmeasured[0];
}

/* Device memory stays with the first run; the second borrows it for its turns. */
static enum tb_status in_turn(struct run_state states[2], int side, size_t cell, int32_t block,
                              bool warm) {
    if (side == 1)
        run_memory_move(&states[1], &states[0]);
    const enum tb_status status = run_block(&states[side], cell, block, warm);
    if (side == 1)
        run_memory_move(&states[0], &states[1]);
    return status;
}

static enum tb_status time_pair(struct run_state states[2], size_t cell) {
    int32_t next[2] = {0, 0}, replayed[2];
    enum tb_status status = TB_OK;
    for (int side = 0; side < 2; side++)
        replayed[side] = states[side].result->cells[cell].blocks;
    for (int32_t step = 0; status == TB_OK && step < 2 * states[0].plan->timing.blocks; step++) {
        const int side = side_of(step);
        const int32_t block = next[side]++;
        if (!to_be_timed(&states[0], cell) || !to_be_timed(&states[1], cell))
            break;
        if (block >= replayed[side]) /* else an interrupted run took it */
            status = in_turn(states, side, cell, block, block == replayed[side]);
    }
    return status;
}

static size_t blocks_left(const struct run_state states[2]) {
    size_t blocks = 0;
    for (size_t i = 0; i < states[0].plan->count; i++)
        if (to_be_timed(&states[0], i) && to_be_timed(&states[1], i) &&
            states[0].result->cells[i].blocks < states[0].plan->timing.blocks)
            blocks += (size_t)(states[0].plan->timing.blocks - states[0].result->cells[i].blocks);
    return blocks;
}

static enum tb_status time_pairs(struct run_state states[2]) {
    enum tb_status status = TB_OK;
    /* The bar counts the first run's blocks; the other's stand between them. */
    progress_begin(&states[0].progress, states[0].run->progress, "timing", blocks_left(states));
    progress_begin(&states[1].progress, NULL, "timing", 0);
    for (size_t i = 0; status == TB_OK && i < states[0].plan->count; i++)
        status = time_pair(states, i);
    progress_end(&states[0].progress);
    return status;
}

static enum tb_status gate_both(struct run_state states[2]) {
    enum tb_status status = run_gate_all(&states[0]);
    if (status != TB_OK || run_stopped(&states[0]))
        return status;
    run_memory_move(&states[1], &states[0]); /* the same inputs */
    status = run_gate_all(&states[1]);
    run_memory_move(&states[0], &states[1]);
    return status;
}

static enum tb_status run_both(struct run_state states[2]) {
    enum tb_status status = run_open(&states[0]);
    if (status == TB_OK)
        status = run_open(&states[1]);
    if (status == TB_OK)
        status = gate_both(states);
    if (status == TB_OK)
        status = time_pairs(states);
    for (int side = 0; side < 2; side++)
        record_finish_run(states[side].result);
    if (status == TB_OK && run_stopped(&states[0]))
        status = tb_fail(states[0].error, TB_INTERRUPTED,
                         "interrupted: %s and %s keep what was finished; --resume goes on with it",
                         states[0].run->out_dir, states[1].run->out_dir);
    for (int side = 0; side < 2 && status == TB_OK; side++)
        status = run_write_files(&states[side]);
    return status;
}

enum tb_status ab_execute(const struct sweep_run runs[2], struct run_result results[2],
                          struct tb_error *error) {
    struct run_state *states = calloc(2, sizeof *states);
    memset(results, 0, 2 * sizeof *results);
    if (!states)
        return tb_fail(error, TB_NO_MEMORY, "no memory for two runs");
    for (int side = 0; side < 2; side++)
        states[side] = (struct run_state){.run = &runs[side],
                                          .plan = runs[side].plan,
                                          .device = runs[side].device,
                                          .result = &results[side],
                                          .error = error};
    const enum tb_status status = runs[0].plan->count == runs[1].plan->count
                                      ? run_both(states)
                                      : tb_fail(error, TB_INTERNAL, "%zu cells against %zu",
                                                runs[0].plan->count, runs[1].plan->count);
    run_close(&states[1]); /* its inputs may be of the first run's plan */
    run_close(&states[0]);
    free(states);
    return status;
}
