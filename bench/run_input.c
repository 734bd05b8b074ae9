/* Inputs of a sweep, kept while there is room: blocks of different cells are interleaved, so the
 * same bytes are wanted again and again. */
#include "bench/run_state.h"

#include <stdlib.h>
#include <string.h>

size_t row_bytes(const struct cell *cell) {
    return (size_t)cell->batch * (size_t)cell->stride * sizeof(float);
}

static void drop(struct run_state *state, struct input_entry *entry) {
    state->input_bytes -= (int64_t)row_bytes(entry->cell);
    if (entry->device_copy && state->device->kind != KERNEL_DEVICE_CPU)
        state->device->ops->free(state->device, entry->device_copy);
    logits_free(&entry->logits);
    *entry = state->inputs[--state->input_count];
}

static void make_room(struct run_state *state, int64_t bytes) {
    while (state->input_count && state->input_bytes + bytes > state->input_budget) {
        size_t oldest = 0;
        for (size_t i = 1; i < state->input_count; i++)
            if (state->inputs[i].last_use < state->inputs[oldest].last_use)
                oldest = i;
        /* What the latest calls returned may still be in use: two a draw where the boundary is
         * computed beside it. */
        if (state->inputs[oldest].last_use + 2 * MOST_DRAWS > state->clock)
            return;
        drop(state, &state->inputs[oldest]);
    }
}

static struct input_entry *find(struct run_state *state, const struct cell *cell, int32_t draw) {
    for (size_t i = 0; i < state->input_count; i++)
        if (state->inputs[i].draw == draw && cell_same_input(state->inputs[i].cell, cell))
            return &state->inputs[i];
    return NULL;
}

static enum tb_status add(struct run_state *state, const struct cell *cell, int32_t draw,
                          struct input_entry **out) {
    make_room(state, (int64_t)row_bytes(cell));
    if (state->input_count == state->input_capacity) {
        const size_t capacity = state->input_capacity ? 2 * state->input_capacity : 64;
        struct input_entry *inputs = realloc(state->inputs, capacity * sizeof *inputs);
        if (!inputs)
            return tb_fail(state->error, TB_NO_MEMORY, "no memory for the list of inputs");
        state->inputs = inputs;
        state->input_capacity = capacity;
    }
    struct input_entry *entry = &state->inputs[state->input_count];
    *entry = (struct input_entry){.cell = cell, .draw = draw};
    const struct input_request request = {
        .family = &cell->family,
        .batch = cell->batch,
        .vocab = cell->vocab,
        .stride = cell->stride,
        .first_row = (int64_t)draw * cell->batch,
        .seed = cell->seed,
        .captured_dir = state->run->captured_dir,
    };
    const enum tb_status status = input_make(&request, &entry->logits, state->error);
    if (status != TB_OK)
        return status;
    state->input_count++;
    state->input_bytes += (int64_t)row_bytes(cell);
    *out = entry;
    return TB_OK;
}

enum tb_status run_input(struct run_state *state, const struct cell *cell, int32_t draw,
                         const struct logits **logits, void **device_copy) {
    struct input_entry *entry = find(state, cell, draw);
    enum tb_status status = entry ? TB_OK : add(state, cell, draw, &entry);
    if (status != TB_OK)
        return status;
    entry->last_use = ++state->clock;
    if (device_copy && !entry->device_copy) {
        const size_t bytes = row_bytes(cell);
        if (state->device->kind == KERNEL_DEVICE_CPU) {
            entry->device_copy = entry->logits.data;
        } else {
            status =
                state->device->ops->alloc(state->device, bytes, &entry->device_copy, state->error);
            if (status == TB_OK)
                status = state->device->ops->upload(state->device, entry->device_copy,
                                                    entry->logits.data, bytes, state->error);
        }
    }
    if (device_copy)
        *device_copy = entry->device_copy;
    *logits = &entry->logits;
    return status;
}

enum tb_status run_input_intact(struct run_state *state, const struct cell *cell, int32_t draw,
                                bool *intact) {
    const struct input_entry *entry = find(state, cell, draw);
    *intact = true;
    if (!entry)
        return TB_OK;
    struct logits again = entry->logits;
    enum tb_status status = logits_hash(&again, state->error);
    *intact = strcmp(again.sha256, entry->logits.sha256) == 0;
    if (status != TB_OK || !*intact || !entry->device_copy ||
        entry->device_copy == entry->logits.data)
        return status;
    const size_t bytes = row_bytes(cell);
    void *found = malloc(bytes);
    if (!found)
        return tb_fail(state->error, TB_NO_MEMORY, "no memory to look at the inputs again");
    status =
        state->device->ops->download(state->device, found, entry->device_copy, bytes, state->error);
    *intact = status != TB_OK || memcmp(found, entry->logits.data, bytes) == 0;
    free(found);
    return status;
}

void run_inputs_free(struct run_state *state) {
    while (state->input_count)
        drop(state, &state->inputs[state->input_count - 1]);
    free(state->inputs);
    state->inputs = NULL;
}

enum tb_status slot_reserve(struct run_state *state, struct slot *slot, size_t bytes) {
    if (slot->bytes >= bytes && slot->memory)
        return TB_OK;
    if (slot->memory)
        state->device->ops->free(state->device, slot->memory);
    *slot = (struct slot){NULL, 0};
    const enum tb_status status =
        state->device->ops->alloc(state->device, bytes, &slot->memory, state->error);
    if (status == TB_OK)
        slot->bytes = bytes;
    return status;
}

enum tb_status slot_upload(struct run_state *state, struct slot *slot, const void *bytes,
                           size_t count) {
    const enum tb_status status = slot_reserve(state, slot, count);
    return status == TB_OK
               ? state->device->ops->upload(state->device, slot->memory, bytes, count, state->error)
               : status;
}

static void free_slot(struct run_state *state, struct slot *slot) {
    if (slot->memory)
        state->device->ops->free(state->device, slot->memory);
    *slot = (struct slot){NULL, 0};
}

enum { SLOTS = 7 * MOST_DRAWS + 3 };

static void list_slots(struct run_state *state, struct slot *list[SLOTS]) {
    size_t count = 0;
    for (int i = 0; i < MOST_DRAWS; i++) {
        list[count++] = &state->work[i];
        list[count++] = &state->p[i];
        list[count++] = &state->boundary[i];
        list[count++] = &state->seeds[i];
        list[count++] = &state->positions[i];
        list[count++] = &state->temperatures[i];
        list[count++] = &state->tokens[i];
    }
    list[count++] = &state->workspace;
    list[count++] = &state->noise;
    list[count] = &state->rows;
}

void run_slots_free(struct run_state *state) {
    struct slot *slots[SLOTS];
    list_slots(state, slots);
    for (size_t i = 0; i < SLOTS; i++)
        free_slot(state, slots[i]);
}

void run_memory_move(struct run_state *to, struct run_state *from) {
    struct slot *sources[SLOTS], *targets[SLOTS];
    list_slots(from, sources);
    list_slots(to, targets);
    for (size_t i = 0; i < SLOTS; i++) {
        *targets[i] = *sources[i];
        *sources[i] = (struct slot){NULL, 0};
    }
    to->inputs = from->inputs;
    to->input_count = from->input_count;
    to->input_capacity = from->input_capacity;
    to->input_bytes = from->input_bytes;
    to->clock = from->clock;
    from->inputs = NULL;
    from->input_count = from->input_capacity = 0;
    from->input_bytes = 0;
}
