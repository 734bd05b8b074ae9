/* Cells that share an input: what the oracle says of it is asked once and serves every p and every
 * kernel. */
#include "bench/run_state.h"

#include <stdlib.h>
#include <string.h>

static size_t p_index(const struct gate_group *group, float p) {
    for (size_t i = 0; i < group->p_count; i++)
        if (group->p[i] == p)
            return i;
    return group->p_count;
}

static enum tb_status ask_oracle(struct run_state *state, struct gate_group *group, int32_t draw) {
    const struct cell *cell = &state->plan->cells[group->first];
    const struct logits *logits;
    if (group->nuclei[draw])
        return TB_OK;
    enum tb_status status = run_input(state, cell, draw, &logits, NULL);
    if (status != TB_OK)
        return status;
    const size_t batch = (size_t)cell->batch, count = batch * group->p_count;
    float *p = malloc(count * sizeof *p);
    struct nucleus *nuclei = malloc(count * sizeof *nuclei);
    if (!p || !nuclei) {
        status = tb_fail(state->error, TB_NO_MEMORY, "no memory for %zu nuclei", count);
    } else {
        for (size_t row = 0; row < batch; row++)
            for (size_t i = 0; i < group->p_count; i++)
                p[row * group->p_count + i] =
                    family_row_p(&cell->family, group->p[i], (int64_t)(row + batch * (size_t)draw));
        status = oracle_rows(state->run->oracle_cache, logits, p, group->p_count,
                             state->run->threads, nuclei, state->error);
    }
    free(p);
    if (status == TB_OK)
        group->nuclei[draw] = nuclei;
    else
        free(nuclei);
    return status;
}

void gate_scene_free(struct gate_scene *scene) {
    free(scene->output);
    free(scene->stock);
    free(scene->p);
    free(scene->oracle);
    free(scene->boundary);
}

enum tb_status gate_scene_make(struct run_state *state, struct gate_group *group,
                               const struct cell *cell, int32_t draw, struct gate_scene *scene) {
    const size_t batch = (size_t)cell->batch;
    *scene = (struct gate_scene){malloc(row_bytes(cell)), NULL, malloc(batch * sizeof(float)),
                                 malloc(batch * sizeof(struct nucleus)),
                                 malloc(batch * sizeof(struct topp_boundary))};
    if (!scene->output || !scene->p || !scene->oracle || !scene->boundary)
        return tb_fail(state->error, TB_NO_MEMORY, "no memory for the output of %s", cell->name);
    enum tb_status status = ask_oracle(state, group, draw);
    if (status != TB_OK)
        return status;
    const size_t at = p_index(group, cell->p);
    for (size_t row = 0; row < batch; row++) {
        const struct nucleus *nucleus = &group->nuclei[draw][row * group->p_count + at];
        scene->oracle[row] = *nucleus;
        scene->p[row] = family_row_p(&cell->family, cell->p, (int64_t)(row + batch * (size_t)draw));
        scene->boundary[row] = boundary_of(nucleus);
    }
    return TB_OK;
}

enum tb_status gate_group_make(struct run_state *state, size_t first, struct gate_group *group) {
    const struct plan *plan = state->plan;
    *group = (struct gate_group){.first = first, .end = first + 1};
    while (group->end < plan->count &&
           cell_same_input(&plan->cells[first], &plan->cells[group->end]))
        group->end++;
    group->p = calloc(group->end - first, sizeof *group->p);
    if (!group->p)
        return tb_fail(state->error, TB_NO_MEMORY, "no memory for the values of p");
    for (size_t i = first; i < group->end; i++)
        if (plan->cells[i].kind == CELL_TOPP && p_index(group, plan->cells[i].p) == group->p_count)
            group->p[group->p_count++] = plan->cells[i].p;
    return TB_OK;
}

void gate_group_free(struct gate_group *group) {
    free(group->p);
    for (int i = 0; i < MOST_DRAWS; i++)
        free(group->nuclei[i]);
    *group = (struct gate_group){0};
}
