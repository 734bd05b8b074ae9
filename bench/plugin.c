#include "bench/plugin.h"

#include "bench/worker_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Forgets what a library said of itself. */
static void drop_table(struct plugin *plugin) {
    json_decref(plugin->table);
    free(plugin->topp);
    free(plugin->gumbel);
    plugin->table = NULL;
    plugin->topp = NULL;
    plugin->gumbel = NULL;
    plugin->topp_count = plugin->gumbel_count = 0;
}

void plugin_set_free(struct plugin_set *set) {
    for (size_t i = 0; i < set->count; i++)
        drop_table(&set->at[i]);
    free(set->at);
    free(set->extras);
    *set = (struct plugin_set){0};
}

/* What tells a variant from another: no two of a run may share it. */
struct identity {
    const char *name;
    enum kernel_device device;
    bool gumbel;
};

static size_t variant_count(const struct plugin *plugin) {
    return plugin->topp_count + plugin->gumbel_count;
}

static struct identity identity_of(const struct plugin *plugin, size_t i) {
    if (i < plugin->topp_count)
        return (struct identity){plugin->topp[i].name, plugin->topp[i].device, false};
    const struct gumbel_variant *variant = &plugin->gumbel[i - plugin->topp_count];
    return (struct identity){variant->name, variant->device, true};
}

static bool has_identity(const struct plugin *plugin, size_t count, struct identity wanted) {
    for (size_t i = 0; i < count; i++) {
        const struct identity found = identity_of(plugin, i);
        if (found.gumbel == wanted.gumbel && found.device == wanted.device &&
            !strcmp(found.name, wanted.name))
            return true;
    }
    return false;
}

/* Is a name of library `last` taken by one before it, or twice in itself? */
static void check_names(const struct plugin_set *set, size_t last) {
    struct plugin *plugin = &set->at[last];
    for (size_t i = 0; i < variant_count(plugin) && !plugin->refused[0]; i++) {
        const struct identity own = identity_of(plugin, i);
        const char *other = has_identity(plugin, i, own) ? "another one of this library" : NULL;
        for (size_t k = 0; k < last && !other; k++)
            if (has_identity(&set->at[k], variant_count(&set->at[k]), own))
                other = set->at[k].path; /* and that library came first */
        if (other)
            snprintf(plugin->refused, sizeof plugin->refused,
                     "its variant `%s` has the name of %.300s", own.name, other);
    }
}

/* Takes what a worker says of the library: its table, or why there is none. */
static enum tb_status ask_table(struct plugin *plugin, struct tb_error *error) {
    struct worker_process *worker = NULL;
    struct tb_error defect = TB_ERROR_INIT;
    char how[160];
    enum tb_status status = worker_start(&worker, error);
    if (status != TB_OK)
        return status;
    json_t *answer =
        worker_ask(worker, json_pack("{s:s, s:s}", "ask", "describe", "path", plugin->path), NULL);
    const char *message = json_string_value(json_object_get(answer, "message"));
    if (!answer) {
        worker_how(worker, how, sizeof how);
        snprintf(plugin->refused, sizeof plugin->refused, "the process that loaded it %s", how);
    } else if (message) {
        snprintf(plugin->refused, sizeof plugin->refused, "%.*s", (int)sizeof plugin->refused - 1,
                 message);
    } else {
        json_object_del(answer, "line");
        if (plugin_take_table(plugin, answer, &defect) != TB_OK)
            snprintf(plugin->refused, sizeof plugin->refused, "%.*s",
                     (int)sizeof plugin->refused - 1, defect.message);
    }
    json_decref(answer);
    worker_close(worker);
    return TB_OK;
}

static enum tb_status find_file(const char *path, const struct plugin_set *set,
                                struct plugin *plugin, struct tb_error *error) {
    struct stat status;
    char *whole = realpath(path, NULL);
    const bool good = whole && strlen(whole) < sizeof plugin->path && stat(whole, &status) == 0 &&
                      S_ISREG(status.st_mode);
    if (good)
        snprintf(plugin->path, sizeof plugin->path, "%s", whole);
    free(whole);
    if (!good)
        return tb_fail_at(error, TB_USAGE, path, 0, -1,
                          "--plugin: no such file; it wants the path of a shared library");
    for (size_t i = 0; i < set->count; i++)
        if (!strcmp(set->at[i].path, plugin->path))
            return tb_fail_at(error, TB_USAGE, path, 0, -1, "--plugin: this library stands twice");
    return sha256_file(plugin->path, plugin->sha256, error);
}

static enum tb_status list_extras(struct plugin_set *set, struct tb_error *error) {
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++)
        count += variant_count(&set->at[i]);
    set->extras = calloc(count + 1, sizeof *set->extras);
    if (!set->extras)
        return tb_fail(error, TB_NO_MEMORY, "no memory for the kernels of plug-ins");
    for (size_t i = 0; i < set->count; i++) {
        for (size_t k = 0; k < set->at[i].topp_count; k++)
            set->extras[set->extra_count++].variant = &set->at[i].topp[k];
        for (size_t k = 0; k < set->at[i].gumbel_count; k++)
            set->extras[set->extra_count++].gumbel = &set->at[i].gumbel[k];
    }
    return TB_OK;
}

enum tb_status plugin_set_join(struct plugin_set *set, const struct plan_extra *others,
                               size_t count, struct tb_error *error) {
    const size_t own = set->extra_count;
    struct plan_extra *grown = realloc(set->extras, (own + count + 1) * sizeof *grown);
    if (!grown)
        return tb_fail(error, TB_NO_MEMORY, "no memory for the kernels from elsewhere");
    set->extras = grown;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < own; k++)
            if (grown[k].variant && grown[k].variant->device == others[i].variant->device &&
                !strcmp(grown[k].variant->name, others[i].variant->name))
                return tb_fail(error, TB_USAGE,
                               "--external and --plugin both have a kernel `%s`: give the program "
                               "another NAME",
                               others[i].variant->name);
        grown[set->extra_count++] = others[i];
    }
    return TB_OK;
}

static enum tb_status make_room(struct plugin_set *set, size_t count, struct tb_error *error) {
    *set = (struct plugin_set){.at = calloc(count + 1, sizeof *set->at)};
    return set->at ? TB_OK : tb_fail(error, TB_NO_MEMORY, "no memory for %zu plug-ins", count);
}

enum tb_status plugin_set_load(const char *const *paths, size_t count, struct plugin_set *set,
                               struct tb_error *error) {
    enum tb_status status = make_room(set, count, error);
    for (size_t i = 0; i < count && status == TB_OK; i++) {
        struct plugin *plugin = &set->at[i];
        status = find_file(paths[i], set, plugin, error);
        if (status == TB_OK)
            status = ask_table(plugin, error);
        if (status != TB_OK)
            break;
        if (!plugin->refused[0])
            check_names(set, i);
        set->count++;
        if (!plugin->refused[0])
            continue;
        set->refused++;
        drop_table(plugin);
        fprintf(stderr, "bench_topp: --plugin %s is left out: %s\n", paths[i], plugin->refused);
    }
    if (status == TB_OK)
        status = list_extras(set, error);
    if (status != TB_OK)
        plugin_set_free(set);
    return status;
}

enum tb_status plugin_set_again(const json_t *plugins, struct plugin_set *set,
                                struct tb_error *error) {
    size_t index;
    json_t *json;
    enum tb_status status = make_room(set, json_array_size(plugins), error);
    json_array_foreach((json_t *)plugins, index, json) {
        struct plugin *plugin = &set->at[index];
        const char *path = json_string_value(json_object_get(json, "path"));
        const char *sha256 = json_string_value(json_object_get(json, "sha256"));
        const char *refused = json_string_value(json_object_get(json, "refused"));
        if (status != TB_OK)
            break;
        if (!path || !sha256) {
            status = tb_fail(error, TB_UNREADABLE, "run.plugins[%zu] has no path or hash", index);
            break;
        }
        snprintf(plugin->path, sizeof plugin->path, "%s", path);
        snprintf(plugin->sha256, sizeof plugin->sha256, "%s", sha256);
        snprintf(plugin->refused, sizeof plugin->refused, "%s", refused ? refused : "");
        set->count++;
        set->refused += plugin->refused[0] != '\0';
        if (!plugin->refused[0])
            status = plugin_take_table(plugin, json, error);
    }
    if (status == TB_OK)
        status = list_extras(set, error);
    if (status != TB_OK)
        plugin_set_free(set);
    return status;
}

json_t *plugin_set_to_json(const struct plugin_set *set) {
    json_t *array = json_array();
    for (size_t i = 0; set && i < set->count; i++) {
        const struct plugin *plugin = &set->at[i];
        json_t *json = json_pack("{s:s, s:s, s:s?}", "path", plugin->path, "sha256", plugin->sha256,
                                 "refused", plugin->refused[0] ? plugin->refused : NULL);
        static const char *const members[] = {"name", "variants"};
        for (size_t k = 0; k < 2; k++) {
            json_t *value = json_object_get(plugin->table, members[k]);
            json_object_set_new(json, members[k], value ? json_incref(value) : json_null());
        }
        json_array_append_new(array, json);
    }
    return array;
}

const struct plugin *plugin_of(const struct plugin_set *set, const struct cell *cell) {
    for (size_t i = 0; set && i < set->count; i++) {
        const struct plugin *plugin = &set->at[i];
        for (size_t k = 0; cell->topp && k < plugin->topp_count; k++)
            if (cell->topp == &plugin->topp[k])
                return plugin;
        for (size_t k = 0; cell->gumbel && k < plugin->gumbel_count; k++)
            if (cell->gumbel == &plugin->gumbel[k])
                return plugin;
    }
    return NULL;
}
