/* Kernels as calls that a device can run once or time. */
#include "bench/run_state.h"

#include <stdlib.h>
#include <string.h>

/* GUARD_BYTES: poisoned on both sides of the rows, and behind ids and workspace, whether a kernel
 * is gated or timed. */
enum { POISON_BYTES = 1 << 20, POISON = 0xA5, GUARD_BYTES = 256 };

int topp_call_prepare(void *context, void *stream) {
    const struct topp_call *call = context;
    return call->device->ops->copy_async(call->device, call->problem.logits, call->pristine,
                                         call->bytes, stream);
}

int topp_call_run(void *context, void *stream) {
    struct topp_call *call = context;
    call->status =
        call->variant->launch(&call->problem, call->workspace, call->workspace_bytes, stream);
    return call->status;
}

int gumbel_call_run(void *context, void *stream) {
    struct gumbel_call *call = context;
    call->status =
        call->variant->launch(&call->problem, call->workspace, call->workspace_bytes, stream);
    return call->status;
}

bool run_forgive(struct run_state *state, int launched) {
    if (launched >= 0)
        return false;
    if (state->error)
        *state->error = (struct tb_error)TB_ERROR_INIT;
    return true;
}

enum tb_status run_call_once(struct run_state *state, const struct timed_call *call,
                             const int *launched, struct outcome *outcome) {
    *outcome = (struct outcome){0};
    const enum tb_status status = state->device->ops->run_once(
        state->device, call, state->plan->limits.case_seconds, &outcome->timed_out, state->error);
    if (status == TB_OK || !run_forgive(state, *launched))
        return status;
    outcome->status = *launched;
    return TB_OK;
}

/* What lies in a workspace is arbitrary: a kernel that trusts zeros there must show. */
static enum tb_status poison_slot(struct run_state *state, struct slot *slot, size_t bytes) {
    static unsigned char pattern[POISON_BYTES];
    const size_t head = bytes < POISON_BYTES ? bytes : POISON_BYTES;
    struct device *device = state->device;
    if (!pattern[0])
        memset(pattern, POISON, sizeof pattern);
    enum tb_status status = device->ops->upload(device, slot->memory, pattern, head, state->error);
    /* The rest by doubling what is there; the last upload waits for the copies before it. */
    for (size_t at = head; at < bytes && status == TB_OK;) {
        const size_t count = bytes - at < at ? bytes - at : at;
        if (device->ops->copy_async(device, (char *)slot->memory + at, slot->memory, count, NULL))
            status = tb_fail(state->error, TB_INTERNAL, "the workspace cannot be filled");
        at += count;
    }
    if (status == TB_OK && bytes > head)
        status = device->ops->upload(device, slot->memory, pattern, head, state->error);
    return status;
}

static enum tb_status guard_put(struct run_state *state, void *at) {
    unsigned char pattern[GUARD_BYTES];
    memset(pattern, POISON, sizeof pattern);
    return state->device->ops->upload(state->device, at, pattern, sizeof pattern, state->error);
}

/* Clears *inside when a guard has changed. */
static enum tb_status guard_check(struct run_state *state, const void *at, bool *inside) {
    unsigned char found[GUARD_BYTES];
    const enum tb_status status =
        state->device->ops->download(state->device, found, at, sizeof found, state->error);
    for (size_t i = 0; status == TB_OK && i < sizeof found; i++)
        *inside = *inside && found[i] == POISON;
    return status;
}

static enum tb_status make_workspace(struct run_state *state, size_t bytes, bool poison) {
    enum tb_status status = slot_reserve(state, &state->workspace, bytes + GUARD_BYTES);
    if (status != TB_OK)
        return status;
    return poison ? poison_slot(state, &state->workspace, bytes + GUARD_BYTES)
                  : guard_put(state, (char *)state->workspace.memory + bytes);
}

static char *rows_of(struct run_state *state, int32_t draw) {
    return (char *)state->work[draw].memory + GUARD_BYTES;
}

/* Clears *same when device memory does not hold these bytes. host NULL: nothing to compare. */
static enum tb_status same_bytes(struct run_state *state, const void *memory, const void *host,
                                 size_t bytes, bool *same) {
    if (!host)
        return TB_OK;
    void *found = malloc(bytes);
    if (!found)
        return tb_fail(state->error, TB_NO_MEMORY, "no memory to look at a kernel's inputs again");
    const enum tb_status status =
        state->device->ops->download(state->device, found, memory, bytes, state->error);
    *same = *same && (status != TB_OK || memcmp(found, host, bytes) == 0);
    free(found);
    return status;
}

static bool same_topp(const struct topp_problem *a, const struct topp_problem *b) {
    return a->logits == b->logits && a->p == b->p && a->batch == b->batch && a->vocab == b->vocab &&
           a->stride == b->stride && a->mask_value == b->mask_value && a->sm_count == b->sm_count &&
           a->slices == b->slices && a->boundary == b->boundary && a->seed == b->seed &&
           a->position == b->position && a->ids == b->ids;
}

static bool same_gumbel(const struct gumbel_problem *a, const struct gumbel_problem *b) {
    return a->logits == b->logits && a->batch == b->batch && a->vocab == b->vocab &&
           a->stride == b->stride && a->seed == b->seed && a->position == b->position &&
           a->temperature == b->temperature && a->token == b->token;
}

enum tb_status topp_call_conduct(struct run_state *state, const struct topp_call *call,
                                 int32_t draw, const float *p, const int64_t *seed,
                                 const int64_t *position, struct outcome *outcome) {
    const char *rows = rows_of(state, draw);
    const size_t batch = (size_t)call->given.batch;
    bool inside = true, same = same_topp(&call->problem, &call->given);
    enum tb_status status = guard_check(state, rows - GUARD_BYTES, &inside);
    if (status == TB_OK)
        status = guard_check(state, rows + call->bytes, &inside);
    if (status == TB_OK)
        status = guard_check(state, (char *)call->workspace + call->workspace_bytes, &inside);
    if (status == TB_OK && call->given.ids)
        status = guard_check(state, call->given.ids + batch, &inside);
    if (status == TB_OK)
        status = same_bytes(state, call->given.p, p, batch * sizeof *p, &same);
    if (status == TB_OK)
        status = same_bytes(state, call->given.seed, seed, batch * sizeof *seed, &same);
    if (status == TB_OK)
        status = same_bytes(state, call->given.position, position, batch * sizeof *position, &same);
    outcome->outside = outcome->outside || !inside;
    outcome->input_changed = outcome->input_changed || !same;
    return status;
}

enum tb_status gumbel_call_conduct(struct run_state *state, const struct gumbel_call *call,
                                   const int64_t *seed, const int64_t *position,
                                   const float *temperature, struct outcome *outcome) {
    const size_t batch = (size_t)call->given.batch;
    bool inside = true, same = same_gumbel(&call->problem, &call->given);
    enum tb_status status = guard_check(state, call->given.token + batch, &inside);
    if (status == TB_OK)
        status = guard_check(state, (char *)call->workspace + call->workspace_bytes, &inside);
    if (status == TB_OK)
        status = same_bytes(state, call->given.seed, seed, batch * sizeof *seed, &same);
    if (status == TB_OK)
        status = same_bytes(state, call->given.position, position, batch * sizeof *position, &same);
    if (status == TB_OK)
        status = same_bytes(state, call->given.temperature, temperature,
                            batch * sizeof *temperature, &same);
    outcome->outside = outcome->outside || !inside;
    outcome->input_changed = outcome->input_changed || !same;
    return status;
}

static enum tb_status make_tokens(struct run_state *state, int32_t draw, size_t bytes,
                                  bool poison) {
    struct slot *slot = &state->tokens[draw];
    enum tb_status status = slot_reserve(state, slot, bytes + GUARD_BYTES);
    if (status != TB_OK)
        return status;
    return poison ? poison_slot(state, slot, bytes + GUARD_BYTES)
                  : guard_put(state, (char *)slot->memory + bytes);
}

/* What a sampler reads and writes beside its rows. */
static enum tb_status place_ids(struct run_state *state, const struct cell *cell, int32_t draw,
                                bool poison) {
    const size_t words = (size_t)cell->batch * sizeof(int64_t);
    int64_t *seed = malloc(2 * words);
    if (!seed)
        return tb_fail(state->error, TB_NO_MEMORY, "no memory for the seeds of %s", cell->name);
    sampler_row_inputs(cell, draw, 0, seed, seed + cell->batch);
    enum tb_status status = slot_upload(state, &state->seeds[draw], seed, words);
    if (status == TB_OK)
        status = slot_upload(state, &state->positions[draw], seed + cell->batch, words);
    if (status == TB_OK)
        status = make_tokens(state, draw, words, poison);
    free(seed);
    return status;
}

enum tb_status topp_call_make(struct run_state *state, const struct cell *cell,
                              const struct topp_variant *variant, int32_t draw,
                              const struct topp_boundary *boundary, bool poison,
                              struct topp_call *call) {
    const struct logits *logits;
    void *pristine;
    const size_t batch = (size_t)cell->batch;
    float *p = malloc(batch * sizeof *p);
    if (!p)
        return tb_fail(state->error, TB_NO_MEMORY, "no memory for the values of p");
    for (size_t i = 0; i < batch; i++)
        p[i] = family_row_p(&cell->family, cell->p, (int64_t)(i + batch * (size_t)draw));
    enum tb_status status = run_input(state, cell, draw, &logits, &pristine);
    if (status == TB_OK)
        status = slot_reserve(state, &state->work[draw], row_bytes(cell) + 2 * (size_t)GUARD_BYTES);
    if (status == TB_OK)
        status = guard_put(state, state->work[draw].memory);
    if (status == TB_OK)
        status = guard_put(state, rows_of(state, draw) + row_bytes(cell));
    if (status == TB_OK)
        status = slot_upload(state, &state->p[draw], p, batch * sizeof *p);
    free(p);
    if (status == TB_OK && boundary)
        status = slot_upload(state, &state->boundary[draw], boundary, batch * sizeof *boundary);
    const bool ids = variant->output == TOPP_IDS;
    if (status == TB_OK && ids)
        status = place_ids(state, cell, draw, poison);
    if (status != TB_OK)
        return status;
    *call = (struct topp_call){
        .device = state->device,
        .variant = variant,
        .problem = {.logits = (float *)(void *)rows_of(state, draw),
                    .p = state->p[draw].memory,
                    .batch = cell->batch,
                    .vocab = cell->vocab,
                    .stride = cell->stride,
                    .mask_value = -__builtin_inff(),
                    .sm_count = state->device->sm_count,
                    .slices = state->run->slices,
                    .boundary = boundary ? state->boundary[draw].memory : NULL,
                    .seed = ids ? state->seeds[draw].memory : NULL,
                    .position = ids ? state->positions[draw].memory : NULL,
                    .ids = ids ? state->tokens[draw].memory : NULL},
        .pristine = pristine,
        .bytes = row_bytes(cell),
    };
    call->given = call->problem;
    call->workspace_bytes = variant->workspace_size(&call->problem);
    status = make_workspace(state, call->workspace_bytes, poison);
    call->workspace = state->workspace.memory;
    return status;
}

void gumbel_row_inputs(const struct cell *cell, int32_t draw, int64_t *seed, int64_t *position,
                       float *temperature) {
    for (int64_t i = 0; i < cell->batch; i++) {
        seed[i] = cell->seed;
        position[i] = (int64_t)draw * cell->batch + i;
        temperature[i] = cell->temperature;
    }
}

void sampler_row_inputs(const struct cell *cell, int32_t draw, int64_t launch, int64_t *seed,
                        int64_t *position) {
    for (int64_t i = 0; i < cell->batch; i++) {
        seed[i] = cell->seed;
        position[i] = (launch * cell->draws + draw) * cell->batch + i;
    }
}

enum tb_status gumbel_call_make(struct run_state *state, const struct cell *cell, int32_t draw,
                                bool poison, struct gumbel_call *call) {
    const struct logits *logits;
    void *device_rows;
    const size_t batch = (size_t)cell->batch;
    int64_t *words = malloc(2 * batch * sizeof *words);
    float *temperature = malloc(batch * sizeof *temperature);
    enum tb_status status = words && temperature ? TB_OK
                                                 : tb_fail(state->error, TB_NO_MEMORY,
                                                           "no memory for %zu draws", batch);
    if (status == TB_OK) {
        gumbel_row_inputs(cell, draw, words, words + batch, temperature);
        status = run_input(state, cell, draw, &logits, &device_rows);
    }
    if (status == TB_OK)
        status = slot_upload(state, &state->seeds[draw], words, batch * sizeof *words);
    if (status == TB_OK)
        status = slot_upload(state, &state->positions[draw], words + batch, batch * sizeof *words);
    if (status == TB_OK)
        status = slot_upload(state, &state->temperatures[draw], temperature,
                             batch * sizeof *temperature);
    if (status == TB_OK)
        status = make_tokens(state, draw, batch * sizeof(int64_t), poison);
    free(words);
    free(temperature);
    if (status != TB_OK)
        return status;
    *call = (struct gumbel_call){
        .device = state->device,
        .variant = cell->gumbel,
        .problem = {.logits = device_rows,
                    .batch = cell->batch,
                    .vocab = cell->vocab,
                    .stride = cell->stride,
                    .seed = state->seeds[draw].memory,
                    .position = state->positions[draw].memory,
                    .temperature = state->temperatures[draw].memory,
                    .token = state->tokens[draw].memory},
    };
    call->given = call->problem;
    call->workspace_bytes = cell->gumbel->workspace_size(&call->problem);
    status = make_workspace(state, call->workspace_bytes, poison);
    call->workspace = state->workspace.memory;
    return status;
}
