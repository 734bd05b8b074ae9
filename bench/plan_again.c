#include "bench/plan_again.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *text_of(const struct plan_again *again, const char *name) {
    return json_string_value(json_object_get(again->request, name));
}

/* Where the run found it, else the folder of profiles under the same name. */
bool plan_again_profile(struct plan_again *again) {
    const char *profile = text_of(again, "profile");
    if (!profile)
        return false;
    const char *slash = strrchr(profile, '/');
    snprintf(again->profile, sizeof again->profile, "%s", profile);
    if (slash && !again->profile_dir_wins && access(again->profile, R_OK) == 0)
        return true;
    snprintf(again->profile, sizeof again->profile, "%s/%s", again->profile_dir,
             slash ? slash + 1 : profile);
    return access(again->profile, R_OK) == 0;
}

static bool dir_holds(const char *dir, const char *family) {
    char path[4400];
    const char *equals = strchr(family, '=');
    snprintf(path, sizeof path, "%s/%s.npy", dir, equals ? equals + 1 : family);
    return access(path, R_OK) == 0;
}

/* A user's file: where the run found it, else beside the receipt. */
bool plan_again_input(struct plan_again *again) {
    const char *family = text_of(again, "family"), *dir = text_of(again, "input_dir");
    plan_captured_dir(again->profile, again->profile_dir, again->captured_dir,
                      sizeof again->captured_dir);
    if (!family)
        return true;
    if (dir && dir_holds(dir, family)) {
        snprintf(again->captured_dir, sizeof again->captured_dir, "%s", dir);
        return true;
    }
    snprintf(again->captured_dir, sizeof again->captured_dir, "%s", again->receipt_dir);
    return dir_holds(again->captured_dir, family);
}

/* --ab: both names or none. */
static bool pair_is_whole(const struct plan_again *again, const struct plan_pair *pair) {
    const json_t *kernel = json_object_get(again->request, "kernel");
    const json_t *beside = json_object_get(again->request, "beside");
    const bool none = (!kernel || json_is_null(kernel)) && (!beside || json_is_null(beside));
    return none || (pair->kernel && pair->beside);
}

enum tb_status plan_again_load(const struct plan_again *again, struct plan *plan,
                               struct tb_error *error) {
    const json_t *seed = json_object_get(again->request, "seed");
    const char *device = text_of(again, "device");
    const struct plan_pair pair = {text_of(again, "kernel"), text_of(again, "beside")};
    const struct plan_options options = {
        .profile = again->profile,
        .profile_dir = again->profile_dir,
        .captured_dir = again->captured_dir,
        .device = device && !strcmp(device, "cuda") ? KERNEL_DEVICE_CUDA : KERNEL_DEVICE_CPU,
        .family = text_of(again, "family"),
        .have_seed = json_is_integer(seed),
        .seed = json_integer_value(seed),
        .filter = text_of(again, "filter"),
        .case_name = text_of(again, "case"),
        .pair = pair.kernel && pair.beside ? &pair : NULL,
        .extras = again->extras,
        .extra_count = again->extra_count,
    };
    if (!pair_is_whole(again, &pair))
        return tb_fail(error, TB_UNREADABLE,
                       "request.kernel and request.beside are no pair of --ab");
    return plan_load(&options, plan, error);
}
