/* --verify: the bytes that went in are made again, and kernels that run here run again on them. */
#include "bench/tools.h"
#include "bench/verify.h"
#include "bench/verify_mask.h"

#include <stdlib.h>
#include <string.h>

/* What the items about one draw are named after. */
static void name_draw(char *name, size_t bytes, const struct cell *cell, int32_t draw) {
    if (cell->draws > 1)
        snprintf(name, bytes, "%s draw %d", cell->name, (int)draw);
    else
        snprintf(name, bytes, "%s", cell->name);
}

static const json_t *bound_draw(const struct verification *verification, size_t cell,
                                int32_t draw) {
    const json_t *cells = json_object_get(verification->receipt, "cells");
    return json_array_get(json_object_get(json_array_get(cells, cell), "inputs"), (size_t)draw);
}

static bool was_accepted(const struct verification *verification, size_t cell) {
    const json_t *cells = json_object_get(verification->receipt, "cells");
    const char *verdict =
        json_string_value(json_object_get(json_array_get(cells, cell), "verdict"));
    return verdict && !strcmp(verdict, "accepted");
}

static bool same_input(const struct cell *a, const struct cell *b) {
    return !strcmp(a->family.text, b->family.text) && a->vocab == b->vocab &&
           a->batch == b->batch && a->stride == b->stride && a->seed == b->seed &&
           a->kind != CELL_GUMBEL_STATISTIC && b->kind != CELL_GUMBEL_STATISTIC;
}

/* What the device really launched, against what the receipt says was launched. */
static void compare_kernels(struct verification *verification, const struct cell *cell,
                            const json_t *bound, const struct once_evidence *evidence) {
    if (evidence->refused[0] || !evidence->count) {
        receipt_add(&verification->items, RECEIPT_ELSEWHERE, "kernels", cell->name, "%s",
                    evidence->refused[0] ? evidence->refused : "nothing was traced");
        return;
    }
    const struct cell_record record = {
        .cell = cell, .kernels = evidence->kernels, .kernel_count = evidence->count};
    json_t *again = record_to_json(&record);
    verify_equal(verification, "kernels", cell->name, bound, json_object_get(again, "kernels"));
    json_decref(again);
}

static void verify_mask(struct verification *verification, struct device *device, size_t index,
                        const struct logits *logits, int32_t draw) {
    const struct cell *cell = &verification->plan.cells[index];
    const json_t *bound = json_object_get(bound_draw(verification, index, draw), "mask_sha256");
    const json_t *run = json_object_get(verification->receipt, "run");
    struct tb_error error = TB_ERROR_INIT;
    char name[CELL_NAME_BYTES + 32], hex[65];
    name_draw(name, sizeof name, cell, draw);
    if (json_is_null(bound) && !was_accepted(verification, index))
        return; /* nothing came out of this draw */
    if (plugin_of(&verification->plugins, cell))
        return; /* verify_plugin_masks() */
    if (cell->kind == CELL_TOPP && external_of(cell->topp)) {
        receipt_add(&verification->items, RECEIPT_ELSEWHERE, "masks", name,
                    "another program's: it is not started here");
        return;
    }
    const json_t *kernels = json_object_get(
        json_array_get(json_object_get(verification->receipt, "cells"), index), "kernels");
    struct once_evidence evidence = {.l2 = cell->l2, .launch = cell->launch};
    const bool trace = draw == 0 && json_array_size(kernels) > 0;
    if (!device) {
        receipt_add(&verification->items, RECEIPT_ELSEWHERE, "masks", name, "no such device here");
        if (trace)
            receipt_add(&verification->items, RECEIPT_ELSEWHERE, "kernels", name,
                        "no such device here");
        return;
    }
    const int32_t slices = (int32_t)json_integer_value(json_object_get(run, "slices"));
    if (mask_again(device, cell, slices, logits, draw, trace ? &evidence : NULL, hex, &error) !=
        TB_OK) {
        receipt_add(&verification->items, RECEIPT_ELSEWHERE, "masks", name, "%s", error.message);
        free(evidence.kernels);
        return;
    }
    if (trace)
        compare_kernels(verification, cell, kernels, &evidence);
    free(evidence.kernels);
    json_t *again = json_string(hex);
    verify_equal(verification, "masks", name, bound, again);
    json_decref(again);
}

/* One input and all cells [first, last) that are run on it. */
static void verify_draw(struct verification *verification, struct device *device, size_t first,
                        size_t last, int32_t draw) {
    const struct cell *cell = &verification->plan.cells[first];
    const struct input_request request = {.family = &cell->family,
                                          .batch = cell->batch,
                                          .vocab = cell->vocab,
                                          .stride = cell->stride,
                                          .first_row = draw * cell->batch,
                                          .seed = cell->seed,
                                          .captured_dir = verification->captured_dir};
    struct logits logits = {0};
    struct tb_error error = TB_ERROR_INIT;
    char text[900];
    const enum tb_status status = input_make(&request, &logits, &error);
    json_t *again = json_string(logits.sha256);
    for (size_t i = first; i < last; i++) {
        char name[CELL_NAME_BYTES + 32];
        name_draw(name, sizeof name, &verification->plan.cells[i], draw);
        if (draw >= verification->plan.cells[i].draws)
            continue;
        if (status != TB_OK) {
            receipt_add(&verification->items,
                        status == TB_NO_MEMORY ? RECEIPT_ELSEWHERE : RECEIPT_CHANGED, "inputs",
                        name, "%s", tb_error_text(&error, text, sizeof text));
            continue;
        }
        const json_t *bound = json_object_get(bound_draw(verification, i, draw), "input_sha256");
        if (json_is_null(bound) && !was_accepted(verification, i))
            continue; /* refused at an earlier draw */
        verify_equal(verification, "inputs", name, bound, again);
        verify_mask(verification, device, i, &logits, draw);
    }
    json_decref(again);
    logits_free(&logits);
}

static void verify_all(struct verification *verification, struct device *device) {
    const struct plan *plan = &verification->plan;
    for (size_t first = 0, last; first < plan->count; first = last) {
        const struct cell *cell = &plan->cells[first];
        int32_t draws = cell->draws;
        for (last = first + 1; last < plan->count && same_input(cell, &plan->cells[last]); last++)
            if (plan->cells[last].draws > draws)
                draws = plan->cells[last].draws;
        if (cell->kind == CELL_GUMBEL_STATISTIC) {
            receipt_add(&verification->items, RECEIPT_ELSEWHERE, "inputs", cell->name,
                        "a statistic is judged again by a sweep, not here");
            continue;
        }
        for (int32_t draw = 0; draw < draws; draw++)
            verify_draw(verification, device, first, last, draw);
    }
}

/* With its timer if it can be had (kernels are traced by it), else without. */
static struct device *open_device(const struct verification *verification) {
    const bool cuda = !strcmp(verification->plan.device, "cuda");
    struct device_options settings = {.gate_only = !cuda};
    struct device *device = NULL;
    if (!cuda)
        return tool_open_device(KERNEL_DEVICE_CPU, &settings, &device, NULL) == TB_OK ? device
                                                                                      : NULL;
    if (verification->options->device == CHOOSE_CPU || verification->plan.listing_only ||
        !device_cuda_usable(NULL, 0))
        return NULL;
    if (tool_open_device(KERNEL_DEVICE_CUDA, &settings, &device, NULL) == TB_OK)
        return device;
    settings.gate_only = true;
    return tool_open_device(KERNEL_DEVICE_CUDA, &settings, &device, NULL) == TB_OK ? device : NULL;
}

void verify_inputs(struct verification *verification) {
    if (!verification->have_plan) {
        receipt_add(&verification->items, RECEIPT_ELSEWHERE, "inputs", "all cells",
                    "the profile does not give the receipt's cells here");
        return;
    }
    struct device *device = open_device(verification);
    verify_all(verification, device);
    verify_plugin_masks(verification);
    if (device)
        device->ops->close(device);
}
