/* Options -> plan, for the modes that work on one. */
#include "bench/shard.h"
#include "bench/tools.h"

#include <stdlib.h>
#include <string.h>

const char *tool_out_folder(const struct options *options) {
    return options->out ? options->out : "sweep-out";
}

static enum tb_status resolve(const struct options *options, const struct plan_pair *pair,
                              enum kernel_device device, bool any_device,
                              struct tool_plan *resolved, struct tb_error *error) {
    enum tb_status status =
        tool_profile_dir(options, resolved->profile_dir, sizeof resolved->profile_dir, error);
    plan_captured_dir(options->profile, resolved->profile_dir, resolved->captured_dir,
                      sizeof resolved->captured_dir);
    struct plan_options request = {.profile = options->profile ? options->profile : "default",
                                   .profile_dir = resolved->profile_dir,
                                   .captured_dir = resolved->captured_dir,
                                   .device = device,
                                   .any_device = any_device,
                                   .have_seed = options->have_seed,
                                   .seed = options->seed,
                                   .filter = options->filter,
                                   .case_name = options->case_name,
                                   .pair = pair};
    if (status == TB_OK)
        status = external_list_make(options->external, (size_t)options->external_count, device,
                                    &resolved->externals, error);
    if (status == TB_OK)
        status = plugin_set_load(options->plugins, (size_t)options->plugin_count,
                                 &resolved->plugins, error);
    if (status == TB_OK)
        status = plugin_set_join(&resolved->plugins, resolved->externals.extras,
                                 resolved->externals.count, error);
    request.extras = resolved->plugins.extras;
    request.extra_count = resolved->plugins.extra_count;
    if (status == TB_OK && options->input) {
        status = tool_plan_input(options, tool_out_folder(options), &resolved->input, error);
        snprintf(resolved->captured_dir, sizeof resolved->captured_dir, "%s", resolved->input.dir);
        request.family = resolved->input.family;
    }
    if (status == TB_OK)
        status = plan_load(&request, &resolved->plan, error);
    if (status == TB_OK && options->slices)
        resolved->plan.unfrozen = true;
    return status;
}

enum tb_status tool_resolve_whole(const struct options *options, enum kernel_device device,
                                  bool any_device, struct tool_plan *resolved,
                                  struct tb_error *error) {
    return resolve(options, NULL, device, any_device, resolved, error);
}

enum tb_status tool_resolve_pair(const struct options *options, const struct plan_pair *pair,
                                 enum kernel_device device, struct tool_plan *resolved,
                                 struct tb_error *error) {
    return resolve(options, pair, device, false, resolved, error);
}

enum tb_status tool_resolve(const struct options *options, enum kernel_device device,
                            bool any_device, struct tool_plan *resolved, struct tb_error *error) {
    enum tb_status status = tool_resolve_whole(options, device, any_device, resolved, error);
    if (status == TB_OK && options->shard_count)
        status = shard_select(&resolved->plan, options->shard_index, options->shard_count, error);
    return status;
}

static void absolute(const char *path, char *whole, size_t bytes) {
    char *real = realpath(path, NULL);
    snprintf(whole, bytes, "%s", real ? real : path);
    free(real);
}

void tool_own_files(const struct options *options, struct tool_plan *resolved,
                    struct sweep_run *run) {
    const char *profile = options->profile ? options->profile : "";
    const size_t length = strlen(profile);
    char path[sizeof resolved->input.dir + sizeof resolved->input.family + 8];
    if (length > 5 && !strcmp(profile + length - 5, ".json")) {
        absolute(profile, resolved->profile_file, sizeof resolved->profile_file);
        run->profile_file = resolved->profile_file;
    }
    if (!options->input)
        return;
    snprintf(path, sizeof path, "%s/%s.npy", resolved->input.dir,
             strchr(resolved->input.family, '=') + 1);
    absolute(path, resolved->input.path, sizeof resolved->input.path);
    run->input = resolved->input.path;
}

void tool_plan_free(struct tool_plan *resolved) {
    plan_free(&resolved->plan);
    plugin_set_free(&resolved->plugins);
}
