/* --verify: the profile, the cells it resolves to, and this machine. */
#include "bench/plan_again.h"
#include "bench/shard.h"
#include "bench/sources.h"
#include "bench/tools.h"
#include "bench/verify.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Members of a cell in results.json that the plan alone decides. */
static const char *const settings[] = {
    "name",  "kind",   "kernel", "output", "contract",     "family",     "statistic",   "vocab",
    "batch", "stride", "p",      "p_text", "seed",         "draws",      "temperature", "device",
    "l2",    "launch", "timed",  "expect", "either_share", "expect_why",
};

static const char *request_text(const struct verification *verification, const char *name) {
    return json_string_value(
        json_object_get(json_object_get(verification->receipt, "request"), name));
}

static const json_t *request_value(const struct verification *verification, const char *name) {
    return json_object_get(json_object_get(verification->receipt, "request"), name);
}

static void verify_settings(struct verification *verification, const struct cell *cell,
                            const json_t *found) {
    const struct cell_record record = {.cell = cell};
    json_t *again = record_to_json(&record);
    const char *wrong = NULL;
    for (size_t i = 0; !wrong && i < sizeof settings / sizeof settings[0]; i++) {
        const json_t *is = json_object_get(found, settings[i]);
        const json_t *should = json_object_get(again, settings[i]);
        if (!is || !should || !json_equal(is, should))
            wrong = settings[i];
    }
    receipt_add(&verification->items, wrong ? RECEIPT_CHANGED : RECEIPT_VERIFIED, "plan",
                cell->name, wrong ? "%s in results.json is not what the profile gives" : "%s",
                wrong ? wrong : "");
    json_decref(again);
}

/* Same names in the same order? */
static void compare_cells(struct verification *verification) {
    const json_t *bound = json_object_get(verification->receipt, "cells");
    const json_t *found = json_object_get(verification->results, "cells");
    const struct plan *plan = &verification->plan;
    verification->have_plan = json_array_size(bound) == plan->count;
    if (!verification->have_plan)
        receipt_add(&verification->items, RECEIPT_CHANGED, "plan", "list",
                    "the receipt has %zu cells, the profile gives %zu here", json_array_size(bound),
                    plan->count);
    for (size_t i = 0; verification->have_plan && i < plan->count; i++) {
        const char *name = json_string_value(json_object_get(json_array_get(bound, i), "name"));
        verification->have_plan = name && !strcmp(name, plan->cells[i].name);
        if (!verification->have_plan)
            receipt_add(&verification->items, RECEIPT_CHANGED, "plan", plan->cells[i].name,
                        "is cell %zu of the profile, the receipt has %s there", i,
                        name ? name : "none");
    }
    for (size_t i = 0; verification->have_plan && verification->results && i < plan->count; i++)
        verify_settings(verification, &plan->cells[i], json_array_get(found, i));
}

/* Of a sharded run: the same part of the list, and the same list. */
static enum tb_status select_shard(struct verification *verification, struct tb_error *error) {
    const json_t *run = json_object_get(verification->receipt, "run");
    const json_t *bound = json_object_get(run, "shard");
    if (!json_is_object(bound))
        return TB_OK;
    const json_int_t index = json_integer_value(json_object_get(bound, "index"));
    const json_int_t count = json_integer_value(json_object_get(bound, "count"));
    if (index < 1 || count < index || count > SHARD_MOST)
        return tb_fail(error, TB_UNREADABLE, "run.shard names no shard: index %lld of %lld",
                       (long long)index, (long long)count);
    const enum tb_status status =
        shard_select(&verification->plan, (int32_t)index, (int32_t)count, error);
    if (status == TB_OK) {
        json_t *here = shard_to_json(&verification->plan.shard);
        verify_equal(verification, "run", "shard", bound, here);
        json_decref(here);
    }
    return status;
}

static void resolve(struct verification *verification, const struct plan_again *again) {
    struct tb_error error = TB_ERROR_INIT;
    char text[900];
    enum tb_status status = plan_again_load(again, &verification->plan, &error);
    if (status == TB_OK)
        status = select_shard(verification, &error);
    if (status == TB_OK)
        compare_cells(verification);
    else
        receipt_add(&verification->items, RECEIPT_CHANGED, "plan", "list", "%s",
                    tb_error_text(&error, text, sizeof text));
}

void verify_plan(struct verification *verification) {
    struct tb_error error = TB_ERROR_INIT;
    char dir[512], hex[SHA256_HEX_BYTES];
    const json_t *run = json_object_get(verification->receipt, "run");
    const json_t *bound = json_object_get(json_object_get(run, "profile"), "sha256");
    if (tool_profile_dir(verification->options, dir, sizeof dir, &error) != TB_OK)
        snprintf(dir, sizeof dir, ".");
    struct plan_again again = {.request = json_object_get(verification->receipt, "request"),
                               .receipt_dir = verification->dir,
                               .profile_dir = dir,
                               .profile_dir_wins = verification->options->profile_dir != NULL};
    if (!plan_again_profile(&again)) {
        receipt_add(&verification->items, RECEIPT_ELSEWHERE, "profile",
                    request_text(verification, "profile") ? request_text(verification, "profile")
                                                          : "(without name)",
                    "is not here: --profile-dir names the folder it is in");
        return;
    }
    sha256_file(again.profile, hex, NULL);
    json_t *is = json_string(hex);
    verify_equal(verification, "profile", again.profile, bound, is);
    json_decref(is);
    json_t *slices = json_object_get(run, "slices");
    verify_equal(verification, "run", "request.slices", request_value(verification, "slices"),
                 slices);
    verify_equal(verification, "run", "request.device", request_value(verification, "device"),
                 json_object_get(run, "device_kind"));
    const json_t *family = request_value(verification, "family");
    const json_t *first = json_array_get(json_object_get(verification->results, "cells"), 0);
    if (!json_is_null(family)) /* a user's file stands in every cell's name */
        verify_equal(verification, "run", "request.family", family,
                     json_object_get(first, "family"));
    const bool found = plan_again_input(&again);
    snprintf(verification->captured_dir, sizeof verification->captured_dir, "%s",
             again.captured_dir);
    if (!found) {
        receipt_add(&verification->items, RECEIPT_ELSEWHERE, "plan", "input",
                    "the file of %s is not here", request_text(verification, "family"));
        return;
    }
    if (!verify_externals(verification) || !verify_plugins(verification))
        return;
    again.extras = verification->plugins.extras;
    again.extra_count = verification->plugins.extra_count;
    resolve(verification, &again);
}

/* Another compiler or machine is no change of the run: it only cannot be shown here. */
static void compare_here(struct verification *verification, const char *name, const json_t *bound,
                         json_t *here) {
    if (bound && here && json_equal(bound, here))
        receipt_add(&verification->items, RECEIPT_VERIFIED, "machine", name, "%s", "");
    else
        receipt_add(&verification->items, RECEIPT_ELSEWHERE, "machine", name,
                    "the run's is not this machine's or this program's");
    json_decref(here);
}

void verify_here(struct verification *verification) {
    const json_t *run = json_object_get(verification->receipt, "run");
    const json_t *device_kind = json_object_get(run, "device_kind");
    const char *kind = json_string_value(device_kind);
    struct utsname system;
    if (uname(&system) == 0)
        compare_here(verification, "host name",
                     json_object_get(json_object_get(run, "host"), "name"),
                     json_string(system.nodename));
    compare_here(verification, "c_flags", json_object_get(json_object_get(run, "build"), "c_flags"),
                 json_string(topp_build.c_flags));
    struct device *device = NULL;
    const struct device_options plain = {.gate_only = true};
    const bool cuda = kind && !strcmp(kind, "cuda");
    if (cuda && !device_cuda_usable(NULL, 0)) {
        compare_here(verification, "device", json_object_get(run, "device"), NULL);
        return;
    }
    if (tool_open_device(cuda ? KERNEL_DEVICE_CUDA : KERNEL_DEVICE_CPU, &plain, &device, NULL) ==
        TB_OK) {
        compare_here(verification, "device", json_object_get(run, "device"),
                     device->ops->describe(device));
        device->ops->close(device);
    }
}
