#include "bench/cells_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS_MOST = 200000, BATCH_OF_ONE_DRAW = 16 };

enum tb_status cells_no_memory(struct builder *b) {
    return tb_fail(b->error, TB_NO_MEMORY, "no memory for the plan");
}

enum tb_status cells_fail(const struct builder *b, enum tb_status code, const char *path,
                          const char *message, const char *detail) {
    struct json_place place = json_source_root(&b->profile->source);
    snprintf(place.path, sizeof place.path, "%s", path);
    struct json_source source = b->profile->source; /* for the caller's error struct */
    source.error = b->error;
    place.source = &source;
    return json_fail(&place, code, "%s%s", message, detail);
}

enum tb_status cells_add(struct builder *b, const struct cell *cell) {
    struct plan *plan = b->plan;
    if (plan->count == CELLS_MOST)
        return cells_fail(b, TB_UNREADABLE, "matrix", "stands for more than 200000 cells", "");
    if (plan->count == b->cell_capacity) {
        const size_t capacity = b->cell_capacity ? 2 * b->cell_capacity : 128;
        struct cell *grown = realloc(plan->cells, capacity * sizeof *grown);
        if (!grown)
            return cells_no_memory(b);
        plan->cells = grown;
        b->cell_capacity = capacity;
    }
    struct cell *added = &plan->cells[plan->count++];
    *added = *cell;
    cell_set_expectation(b->profile, added, b->used);
    if (!cell_set_name(added, plan))
        return cells_fail(b, TB_UNREADABLE, "matrix", "a cell's name is too long: ", added->name);
    if (added->kind != CELL_TOPP)
        added->p_text[0] = '\0'; /* it held the temperature's text until here */
    return TB_OK;
}

static void cell_of_input(const struct builder *b, const struct profile_entry *entry,
                          const struct input_key *key, struct cell *cell) {
    memset(cell, 0, sizeof *cell);
    cell->kind = entry->kind;
    cell->family = *key->family;
    cell->vocab = key->vocab;
    cell->batch = key->batch;
    cell->stride = key->vocab + key->padding;
    cell->seed = b->plan->seed;
    cell->timed = entry->timed && !family_is_hazard(key->family);
    /* Rows of a flat input are all alike: more draws would say nothing. */
    const bool several =
        cell->timed && cell->batch < BATCH_OF_ONE_DRAW && cell->family.kind != FAMILY_FLAT;
    cell->draws = several ? b->profile->draws : 1;
}

static enum tb_status add_entry(struct builder *b, const struct profile_entry *entry,
                                const struct input_key *key) {
    const struct profile_real *axis = entry->kind == CELL_TOPP ? &entry->p : &entry->temperature;
    enum tb_status status = TB_OK;
    for (size_t i = 0; status == TB_OK && i < axis->count; i++) {
        struct cell cell;
        cell_of_input(b, entry, key, &cell);
        if (entry->kind == CELL_TOPP)
            cell.p = axis->at[i];
        else
            cell.temperature = axis->at[i];
        snprintf(cell.p_text, sizeof cell.p_text, "%s", axis->text[i]);
        status = cells_each_kernel(b, entry, &cell);
    }
    return status;
}

static enum tb_status build(struct builder *b) {
    const bool replaced = b->options->family != NULL;
    enum tb_status status = cells_collect_inputs(b);
    for (size_t i = 0; status == TB_OK && i < b->input_count; i++)
        for (int kind = CELL_TOPP; status == TB_OK && kind <= CELL_GUMBEL; kind++)
            for (size_t e = 0; status == TB_OK && e < b->profile->entry_count; e++) {
                const struct profile_entry *entry = &b->profile->entries[e];
                if ((int)entry->kind == kind && cells_entry_has(b, entry, &b->inputs[i]))
                    status = add_entry(b, entry, &b->inputs[i]);
            }
    for (size_t e = 0; status == TB_OK && !replaced && e < b->profile->entry_count; e++)
        if (b->profile->entries[e].kind == CELL_GUMBEL_STATISTIC)
            status = cells_add_statistics(b, &b->profile->entries[e]);
    if (status == TB_OK && (replaced || b->options->extra_count))
        cells_drop_repeated(b);
    if (status == TB_OK)
        status = cells_check_unique(b);
    if (status == TB_OK && !replaced)
        status = cells_check_used(b);
    if (status == TB_OK && b->plan->count == 0)
        status = cells_fail(b, TB_USAGE, "matrix", "has no cell for ",
                            replaced ? b->options->family : b->plan->device);
    return status;
}

enum tb_status cells_build(const struct profile *profile, const struct plan_options *options,
                           struct plan *plan, struct tb_error *error) {
    struct builder b = {.profile = profile, .options = options, .plan = plan, .error = error};
    enum tb_status status = TB_OK;
    b.device = strcmp(plan->device, "cuda") ? KERNEL_DEVICE_CPU : KERNEL_DEVICE_CUDA;
    if (options->family) {
        status = family_parse(options->family, &b.replacement, error);
        if (status == TB_OK && b.replacement.kind != FAMILY_CAPTURED)
            status = tb_fail(error, TB_USAGE,
                             "family `%s` in place of a profile's: captured=NAME "
                             "alone brings its own vocabulary",
                             options->family);
    }
    if (status == TB_OK)
        status = build(&b);
    free(b.inputs);
    return status;
}
