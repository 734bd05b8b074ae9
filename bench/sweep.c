#include "bench/sweep.h"

#include "bench/cells.h"
#include "bench/text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *cell_l2_name(enum cell_l2 l2) {
    return l2 == L2_WARM ? "warm" : l2 == L2_COLD ? "cold" : "";
}

const char *cell_launch_name(enum cell_launch launch) {
    return launch == LAUNCH_STREAM ? "stream" : launch == LAUNCH_GRAPH ? "graph" : "";
}

const char *expectation_name(enum expectation expect) {
    return expect == EXPECT_REJECT ? "reject" : expect == EXPECT_EITHER ? "either" : "accept";
}

bool cell_same_input(const struct cell *left, const struct cell *right) {
    return left->kind != CELL_GUMBEL_STATISTIC && right->kind != CELL_GUMBEL_STATISTIC &&
           left->vocab == right->vocab && left->batch == right->batch &&
           left->stride == right->stride && left->seed == right->seed &&
           !strcmp(left->family.text, right->family.text);
}

static const char *device_text(enum kernel_device device) {
    return device == KERNEL_DEVICE_CUDA ? "cuda" : "cpu";
}

static bool ends_in_json(const char *name) {
    const size_t length = strlen(name);
    return length > 5 && !strcmp(name + length - 5, ".json");
}

static int is_profile(const struct dirent *item) {
    return ends_in_json(item->d_name) && item->d_name[0] != '.';
}

static enum tb_status no_such_profile(const char *name, const char *dir, struct tb_error *error) {
    char known[400] = "";
    struct dirent **items = NULL;
    const int count = scandir(dir, &items, is_profile, alphasort);
    for (int i = 0; i < count; i++) {
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%.*s", i ? ", " : "",
                 (int)strlen(items[i]->d_name) - 5, items[i]->d_name);
        free(items[i]);
    }
    free(items);
    return tb_fail_at(error, TB_USAGE, dir, 0, -1, "there is no profile `%.80s`; here are: %s",
                      name, known[0] ? known : "none");
}

static enum tb_status find_profile(const struct plan_options *options, char *path, size_t bytes,
                                   struct tb_error *error) {
    const char *name = options->profile ? options->profile : "default";
    if (!strcmp(name, "default"))
        name = options->device == KERNEL_DEVICE_CUDA ? "default-cuda" : "default-cpu";
    const bool is_path = ends_in_json(name);
    if (!is_path && strchr(name, '/'))
        return tb_fail_at(error, TB_USAGE, name, 0, -1, "a profile's file ends in .json");
    const int length = is_path ? snprintf(path, bytes, "%s", name)
                               : snprintf(path, bytes, "%s/%s.json", options->profile_dir, name);
    if (length < 0 || (size_t)length >= bytes)
        return tb_fail_at(error, TB_USAGE, name, 0, -1, "the profile's path is too long");
    if (!is_path && access(path, F_OK))
        return no_such_profile(name, options->profile_dir, error);
    return TB_OK;
}

void plan_captured_dir(const char *profile, const char *profile_dir, char *dir, size_t bytes) {
    struct stat facts;
    const char *slash = profile ? strrchr(profile, '/') : NULL;
    if (profile && ends_in_json(profile)) {
        snprintf(dir, bytes, "%.*scaptured", slash ? (int)(slash - profile + 1) : 0, profile);
        if (stat(dir, &facts) == 0 && S_ISDIR(facts.st_mode))
            return;
    }
    snprintf(dir, bytes, "%s/captured", profile_dir);
}

/* "any" runs where it is asked to; a profile for one device says so. */
static enum tb_status pick_device(const struct profile *profile, const struct plan_options *options,
                                  enum kernel_device *device, struct tb_error *error) {
    *device = options->device;
    if (profile->device == PROFILE_ANY)
        return TB_OK;
    *device = profile->device == PROFILE_CUDA ? KERNEL_DEVICE_CUDA : KERNEL_DEVICE_CPU;
    if (*device == options->device || options->any_device)
        return TB_OK;
    return tb_fail_at(
        error, TB_USAGE, profile->source.file, json_source_line(&profile->source, "device"), -1,
        "`device`: profile %s is for %s, and %s was chosen: use --device %s or "
        "another profile",
        profile->name, device_text(*device), device_text(options->device), device_text(*device));
}

static bool device_has_variants(enum kernel_device device) {
    size_t count;
    const struct topp_variant *const *topp = topp_variants(&count);
    for (size_t i = 0; i < count; i++)
        if (topp[i]->device == device)
            return true;
    return false;
}

static void set_head(const struct profile *profile, const struct plan_options *options,
                     enum kernel_device device, struct plan *plan) {
    snprintf(plan->profile_name, sizeof plan->profile_name, "%s", profile->name);
    snprintf(plan->profile_path, sizeof plan->profile_path, "%s", profile->source.file);
    snprintf(plan->profile_sha256, sizeof plan->profile_sha256, "%s", profile->source.sha256);
    snprintf(plan->device, sizeof plan->device, "%s", device_text(device));
    plan->seed = options->have_seed ? options->seed : profile->seed;
    plan->unfrozen = plan->seed != profile->seed || options->family;
    plan->listing_only = device == KERNEL_DEVICE_CUDA && !device_has_variants(device);
    plan->timing = profile->timing;
    plan->limits = profile->limits;
}

static enum tb_status load(const struct plan_options *options, struct plan *plan,
                           struct tb_error *error) {
    struct profile profile = {0};
    char path[sizeof plan->profile_path];
    enum kernel_device device = KERNEL_DEVICE_CPU;
    enum tb_status status = find_profile(options, path, sizeof path, error);
    if (status == TB_OK)
        status = profile_load(path, &profile, error);
    if (status == TB_OK)
        status = pick_device(&profile, options, &device, error);
    if (status == TB_OK) {
        set_head(&profile, options, device, plan);
        status = cells_build(&profile, options, plan, error);
    }
    if (status == TB_OK)
        status = cells_select(options, plan, error);
    profile_free(&profile);
    return status;
}

enum tb_status plan_load(const struct plan_options *options, struct plan *plan,
                         struct tb_error *error) {
    const locale_t locale = text_c_locale(), before = locale ? uselocale(locale) : (locale_t)0;
    memset(plan, 0, sizeof *plan);
    const enum tb_status status = load(options, plan, error);
    if (status != TB_OK)
        plan_free(plan);
    if (locale)
        uselocale(before);
    return status;
}

void plan_free(struct plan *plan) {
    if (!plan)
        return;
    free(plan->cells);
    memset(plan, 0, sizeof *plan);
}
