#include "bench/plugin_plan.h"

#include "bench/plugin_library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *cell_to_json(const struct cell *cell) {
    const char *kernel = cell->topp ? cell->topp->name : cell->gumbel->name;
    json_t *json = json_object();
    json_object_set_new(json, "name", json_string(cell->name));
    json_object_set_new(json, "kind", json_integer(cell->kind));
    json_object_set_new(json, "kernel", json_string(kernel));
    json_object_set_new(json, "family", json_string(cell->family.text));
    json_object_set_new(json, "statistic", json_string(cell->statistic));
    json_object_set_new(json, "vocab", json_integer(cell->vocab));
    json_object_set_new(json, "batch", json_integer(cell->batch));
    json_object_set_new(json, "stride", json_integer(cell->stride));
    json_object_set_new(json, "p", json_real((double)cell->p));
    json_object_set_new(json, "p_text", json_string(cell->p_text));
    json_object_set_new(json, "temperature", json_real((double)cell->temperature));
    json_object_set_new(json, "seed", json_integer(cell->seed));
    json_object_set_new(json, "draws", json_integer(cell->draws));
    json_object_set_new(json, "l2", json_integer(cell->l2));
    json_object_set_new(json, "launch", json_integer(cell->launch));
    json_object_set_new(json, "timed", json_boolean(cell->timed));
    json_object_set_new(json, "expect", json_integer(cell->expect));
    json_object_set_new(json, "expect_rule", json_string(cell->expect_rule));
    json_object_set_new(json, "either_share", json_real(cell->either_share));
    return json;
}

json_t *plugin_plan_to_json(const struct plan *plan, const struct cell *cell) {
    const struct timing_settings *timing = &plan->timing;
    json_t *cells = json_array();
    for (size_t i = 0; i < plan->count; i++)
        if (plan->cells[i].topp == cell->topp && plan->cells[i].gumbel == cell->gumbel)
            json_array_append_new(cells, cell_to_json(&plan->cells[i]));
    return json_pack("{s:s, s:f, s:[i, i, i, f, f, f], s:o}", "device", plan->device,
                     "case_seconds", plan->limits.case_seconds, "timing", (int)timing->blocks,
                     (int)timing->min_samples, (int)timing->max_samples, timing->precision,
                     timing->block_seconds, timing->warmup_seconds, "cells", cells);
}

static int64_t whole_of(const json_t *json, const char *key) {
    return json_integer_value(json_object_get(json, key));
}

static double real_of(const json_t *json, const char *key) {
    return json_number_value(json_object_get(json, key));
}

static void copy_text(char *text, size_t bytes, const json_t *json, const char *key) {
    const char *value = json_string_value(json_object_get(json, key));
    snprintf(text, bytes, "%s", value ? value : "");
}

static enum tb_status cell_from_json(const json_t *json, const struct topp_plugin *table,
                                     enum kernel_device device, struct cell *cell,
                                     struct tb_error *error) {
    char kernel[64], family[FAMILY_TEXT_BYTES];
    memset(cell, 0, sizeof *cell);
    copy_text(cell->name, sizeof cell->name, json, "name");
    copy_text(kernel, sizeof kernel, json, "kernel");
    copy_text(family, sizeof family, json, "family");
    copy_text(cell->statistic, sizeof cell->statistic, json, "statistic");
    copy_text(cell->p_text, sizeof cell->p_text, json, "p_text");
    copy_text(cell->expect_rule, sizeof cell->expect_rule, json, "expect_rule");
    cell->kind = (enum cell_kind)whole_of(json, "kind");
    cell->vocab = whole_of(json, "vocab");
    cell->batch = whole_of(json, "batch");
    cell->stride = whole_of(json, "stride");
    cell->p = (float)real_of(json, "p");
    cell->temperature = (float)real_of(json, "temperature");
    cell->seed = whole_of(json, "seed");
    cell->draws = (int32_t)whole_of(json, "draws");
    cell->l2 = (enum cell_l2)whole_of(json, "l2");
    cell->launch = (enum cell_launch)whole_of(json, "launch");
    cell->timed = json_is_true(json_object_get(json, "timed"));
    cell->expect = (enum expectation)whole_of(json, "expect");
    cell->either_share = real_of(json, "either_share");
    if (cell->kind == CELL_TOPP)
        cell->topp = plugin_library_topp(table, kernel, device);
    else
        cell->gumbel = plugin_library_gumbel(table, kernel, device);
    if (!cell->topp && !cell->gumbel)
        return tb_fail(error, TB_INTERNAL, "the library has no variant `%s` any more", kernel);
    return family[0] ? family_parse(family, &cell->family, error) : TB_OK;
}

enum tb_status plugin_plan_from_json(const json_t *json, const struct topp_plugin *table,
                                     struct plan *plan, struct tb_error *error) {
    const json_t *timing = json_object_get(json, "timing"), *cells = json_object_get(json, "cells");
    memset(plan, 0, sizeof *plan);
    copy_text(plan->device, sizeof plan->device, json, "device");
    const enum kernel_device device =
        strcmp(plan->device, "cuda") ? KERNEL_DEVICE_CPU : KERNEL_DEVICE_CUDA;
    plan->limits.case_seconds = real_of(json, "case_seconds");
    plan->timing.blocks = (int32_t)json_integer_value(json_array_get(timing, 0));
    plan->timing.min_samples = (int32_t)json_integer_value(json_array_get(timing, 1));
    plan->timing.max_samples = (int32_t)json_integer_value(json_array_get(timing, 2));
    plan->timing.precision = json_number_value(json_array_get(timing, 3));
    plan->timing.block_seconds = json_number_value(json_array_get(timing, 4));
    plan->timing.warmup_seconds = json_number_value(json_array_get(timing, 5));
    const size_t count = json_array_size(cells);
    plan->cells = calloc(count + 1, sizeof *plan->cells);
    if (!plan->cells)
        return tb_fail(error, TB_NO_MEMORY, "no memory for %zu cells", count);
    enum tb_status status = TB_OK;
    for (; plan->count < count && status == TB_OK; plan->count++)
        status = cell_from_json(json_array_get(cells, plan->count), table, device,
                                &plan->cells[plan->count], error);
    if (status != TB_OK)
        plan_free(plan);
    return status;
}
