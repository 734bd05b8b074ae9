/* --verify: plug-ins. A library is looked at where the run found it; it is run only if it was given
 * by --plugin: a receipt from elsewhere must not start code. */
#include "bench/plugin_pool.h"
#include "bench/verify.h"

#include <stdlib.h>
#include <string.h>

/* Is it among those of --plugin? Then that is the file to run. */
static bool find_given(const struct verification *verification, struct plugin *plugin) {
    char hex[SHA256_HEX_BYTES];
    for (int32_t i = 0; i < verification->options->plugin_count; i++) {
        char *whole = realpath(verification->options->plugins[i], NULL);
        const bool same = whole && strlen(whole) < sizeof plugin->path &&
                          sha256_file(whole, hex, NULL) == TB_OK && !strcmp(hex, plugin->sha256);
        if (same)
            snprintf(plugin->path, sizeof plugin->path, "%s", whole);
        free(whole);
        if (same)
            return true;
    }
    return false;
}

bool verify_plugins(struct verification *verification) {
    const json_t *run = json_object_get(verification->receipt, "run");
    struct plugin_set *set = &verification->plugins;
    struct tb_error error = TB_ERROR_INIT;
    char hex[SHA256_HEX_BYTES];
    enum tb_status status = plugin_set_again(json_object_get(run, "plugins"), set, &error);
    if (status == TB_OK)
        status = plugin_set_join(set, verification->externals.extras, verification->externals.count,
                                 &error);
    if (status != TB_OK) {
        receipt_add(&verification->items, RECEIPT_CHANGED, "plugins", "list", "%s", error.message);
        return false;
    }
    for (size_t i = 0; i < set->count; i++) {
        verification->plugin_here[i] = find_given(verification, &set->at[i]);
        if (sha256_file(set->at[i].path, hex, NULL) != TB_OK)
            receipt_add(&verification->items, RECEIPT_ELSEWHERE, "plugins", set->at[i].path,
                        "the library is not here");
        else if (strcmp(hex, set->at[i].sha256) != 0)
            receipt_add(&verification->items, RECEIPT_CHANGED, "plugins", set->at[i].path,
                        "the library is another one than the run's");
        else
            receipt_add(&verification->items, RECEIPT_VERIFIED, "plugins", set->at[i].path, "%s",
                        "");
    }
    return true;
}

static void name_draw(char *name, size_t bytes, const struct cell *cell, size_t draw) {
    if (cell->draws > 1)
        snprintf(name, bytes, "%s draw %zu", cell->name, draw);
    else
        snprintf(name, bytes, "%s", cell->name);
}

/* The hashes of one cell's outputs, or why there are none. */
static void compare_masks(struct verification *verification, const struct cell *cell,
                          const json_t *bound, const json_t *found, const char *why) {
    char name[CELL_NAME_BYTES + 32];
    size_t draw;
    json_t *value;
    json_array_foreach((json_t *)bound, draw, value) {
        json_t *hash = json_object_get(value, "mask_sha256");
        json_t *again = json_object_get(json_array_get(found, draw), "mask_sha256");
        name_draw(name, sizeof name, cell, draw);
        if (!json_is_string(hash))
            continue; /* nothing came out of this draw */
        if (why)
            receipt_add(&verification->items, RECEIPT_ELSEWHERE, "masks", name, "%s", why);
        else
            verify_equal(verification, "masks", name, hash, again);
    }
}

static void verify_cell(struct verification *verification, struct plugin_pool *pool, size_t index) {
    const struct cell *cell = &verification->plan.cells[index];
    const struct plugin *plugin = plugin_of(&verification->plugins, cell);
    const json_t *cells = json_object_get(verification->receipt, "cells");
    const json_t *bound = json_object_get(json_array_get(cells, index), "inputs");
    struct tb_error error = TB_ERROR_INIT;
    char why[PLUGIN_WHY_BYTES] = "";
    enum plugin_end end = PLUGIN_ANSWERED;
    json_t *line = NULL;
    if (!verification->plugin_here[plugin - verification->plugins.at]) {
        compare_masks(verification, cell, bound, NULL,
                      "a plug-in's: --plugin LIBRARY, with the run's SHA-256, runs it again");
        return;
    }
    const enum tb_status status =
        plugin_pool_ask(pool, cell, json_pack("{s:s, s:s}", "ask", "gate", "cell", cell->name),
                        &end, &line, why, &error);
    const json_t *record = json_object_get(line, "record");
    compare_masks(verification, cell, bound, json_object_get(record, "inputs"),
                  status != TB_OK          ? error.message
                  : end != PLUGIN_ANSWERED ? why
                                           : NULL);
    json_decref(line);
}

void verify_plugin_masks(struct verification *verification) {
    const struct plan *plan = &verification->plan;
    const json_t *run = json_object_get(verification->receipt, "run");
    struct tb_error error = TB_ERROR_INIT;
    struct plugin_pool *pool = NULL;
    const struct plugin_pool_options options = {
        .set = &verification->plugins,
        .plan = plan,
        .captured_dir = verification->captured_dir,
        .gate_only = true,
        .slices = (int32_t)json_integer_value(json_object_get(run, "slices"))};
    if (verification->plugins.count == 0)
        return;
    if (plugin_pool_make(&options, &pool, &error) != TB_OK) {
        verification->items.short_of_memory = true;
        return;
    }
    for (size_t i = 0; i < plan->count; i++)
        if (plan->cells[i].kind != CELL_GUMBEL_STATISTIC &&
            plugin_of(&verification->plugins, &plan->cells[i]))
            verify_cell(verification, pool, i);
    plugin_pool_free(pool);
}
