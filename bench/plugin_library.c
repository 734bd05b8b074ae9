#include "bench/plugin_library.h"

#include "oracle/gate.h"

#include <dlfcn.h>
#include <string.h>

enum { MOST_VARIANTS = 64 };

/* A struct that changes is another version: put the new sizes here and raise TOPP_PLUGIN_ABI. */
#if __SIZEOF_POINTER__ == 8
_Static_assert(TOPP_PLUGIN_ABI == 1 && sizeof(struct topp_problem) == 88 &&
                   sizeof(struct topp_variant) == 72 && sizeof(struct gumbel_problem) == 64 &&
                   sizeof(struct gumbel_variant) == 72 && sizeof(struct topp_plugin) == 32,
               "kernels/plugin.h: raise TOPP_PLUGIN_ABI");
#endif

static const char symbol[] = "topp_plugin_table";

static const char *device_name(enum kernel_device device) {
    return device == KERNEL_DEVICE_CPU ? "cpu" : device == KERNEL_DEVICE_CUDA ? "cuda" : "unknown";
}

/* A NULL-terminated list that ends in time; -1 if it does not. */
static int list_length(const void *const *list) {
    for (int i = 0; list && i <= MOST_VARIANTS; i++)
        if (!list[i])
            return i;
    return list ? -1 : 0;
}

static enum tb_status refuse(struct tb_error *error, const char *name, const char *what) {
    return tb_fail(error, TB_UNREADABLE, "its variant `%.60s`: %s", name ? name : "(no name)",
                   what);
}

static enum tb_status check_lists(const struct topp_plugin *table, struct tb_error *error) {
    const int topp = list_length((const void *const *)table->topp);
    const int gumbel = list_length((const void *const *)table->gumbel);
    if (topp < 0 || gumbel < 0)
        return tb_fail(error, TB_UNREADABLE,
                       "a list of variants has more than %d, or does not end with NULL",
                       MOST_VARIANTS);
    if (topp + gumbel == 0)
        return tb_fail(error, TB_UNREADABLE, "its table holds no variant");
    for (int i = 0; i < topp; i++) {
        const struct topp_variant *variant = table->topp[i];
        if (!variant->name || !variant->contract || !variant->workspace_size || !variant->launch)
            return refuse(error, variant->name,
                          "name, contract, workspace_size and launch must be there");
        if (variant->needs_boundary)
            return refuse(error, variant->name,
                          "needs_boundary is for the built-in floor: leave it 0");
    }
    for (int i = 0; i < gumbel; i++) {
        const struct gumbel_variant *variant = table->gumbel[i];
        if (!variant->name || !variant->workspace_size || !variant->launch)
            return refuse(error, variant->name, "name, workspace_size and launch must be there");
    }
    return TB_OK;
}

enum tb_status plugin_library_open(const char *path, const struct topp_plugin **table,
                                   struct tb_error *error) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return tb_fail(error, TB_UNREADABLE, "it cannot be loaded: %.400s", dlerror());
    const struct topp_plugin *(*get)(void) = NULL;
    *(void **)(void *)&get = dlsym(library, symbol);
    if (!get)
        return tb_fail(error, TB_UNREADABLE,
                       "it exports no `%s`: end it with TOPP_PLUGIN_TABLE of kernels/plugin.h",
                       symbol);
    *table = get();
    if (!*table)
        return tb_fail(error, TB_UNREADABLE, "its `%s` returns no table", symbol);
    if ((*table)->abi != TOPP_PLUGIN_ABI)
        return tb_fail(error, TB_UNREADABLE,
                       "it was built for version %u of kernels/plugin.h, this program has version "
                       "%d: build it against this program's header",
                       (unsigned)(*table)->abi, (int)TOPP_PLUGIN_ABI);
    if ((*table)->struct_bytes != topp_plugin_struct_bytes())
        return tb_fail(error, TB_UNREADABLE,
                       "it says version %d of kernels/plugin.h, but its structs have other sizes: "
                       "build it against this program's headers",
                       (int)TOPP_PLUGIN_ABI);
    return check_lists(*table, error);
}

/* Foreign text: "" where it is missing or no UTF-8. */
static json_t *text_to_json(const char *text) {
    json_t *json = text ? json_string(text) : NULL;
    return json ? json : json_string("");
}

static json_t *variant_to_json(const char *kind, const char *name, const char *summary,
                               enum kernel_device device, int64_t max_batch, int64_t max_vocab) {
    json_t *json = json_object();
    json_object_set_new(json, "kind", json_string(kind));
    json_object_set_new(json, "name", text_to_json(name));
    json_object_set_new(json, "summary", text_to_json(summary));
    json_object_set_new(json, "device", json_string(device_name(device)));
    json_object_set_new(json, "max_batch", json_integer(max_batch));
    json_object_set_new(json, "max_vocab", json_integer(max_vocab));
    return json;
}

json_t *plugin_library_table(const struct topp_plugin *table) {
    json_t *variants = json_array();
    for (size_t i = 0; table->topp && table->topp[i]; i++) {
        const struct topp_variant *variant = table->topp[i];
        json_t *json = variant_to_json("topp", variant->name, variant->summary, variant->device,
                                       variant->max_batch, variant->max_vocab);
        json_object_set_new(json, "output",
                            json_string(gate_output_name((enum gate_output)variant->output)));
        json_object_set_new(json, "contract", text_to_json(variant->contract));
        json_array_append_new(variants, json);
    }
    for (size_t i = 0; table->gumbel && table->gumbel[i]; i++) {
        const struct gumbel_variant *variant = table->gumbel[i];
        json_t *json = variant_to_json("gumbel", variant->name, variant->summary, variant->device,
                                       variant->max_batch, variant->max_vocab);
        json_object_set_new(json, "noise", text_to_json(gumbel_noise_name(variant)));
        json_array_append_new(variants, json);
    }
    return json_pack("{s:o, s:o}", "name", text_to_json(table->name), "variants", variants);
}

const struct topp_variant *plugin_library_topp(const struct topp_plugin *table, const char *name,
                                               enum kernel_device device) {
    for (size_t i = 0; table->topp && table->topp[i]; i++)
        if (table->topp[i]->device == device && !strcmp(table->topp[i]->name, name))
            return table->topp[i];
    return NULL;
}

const struct gumbel_variant *plugin_library_gumbel(const struct topp_plugin *table,
                                                   const char *name, enum kernel_device device) {
    for (size_t i = 0; table->gumbel && table->gumbel[i]; i++)
        if (table->gumbel[i]->device == device && !strcmp(table->gumbel[i]->name, name))
            return table->gumbel[i];
    return NULL;
}
