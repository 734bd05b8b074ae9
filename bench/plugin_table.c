/* A plug-in's table as JSON -> descriptors, checked: it comes from code that is not trusted. */
#include "bench/plugin.h"

#include "oracle/gate.h"
#include "oracle/gumbel_noise.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VARIANTS = 64, NAME_MOST = 40 };

static size_t no_workspace(const struct topp_problem *problem) {
    (void)problem;
    return 0;
}

static int not_here(const struct topp_problem *problem, void *workspace, size_t workspace_bytes,
                    void *stream) {
    (void)problem, (void)workspace, (void)workspace_bytes, (void)stream;
    return KERNEL_UNSUPPORTED;
}

static size_t no_gumbel_workspace(const struct gumbel_problem *problem) {
    (void)problem;
    return 0;
}

static int gumbel_not_here(const struct gumbel_problem *problem, void *workspace,
                           size_t workspace_bytes, void *stream) {
    (void)problem, (void)workspace, (void)workspace_bytes, (void)stream;
    return KERNEL_UNSUPPORTED;
}

static const char *text_of(const json_t *json, const char *key) {
    const char *text = json_string_value(json_object_get(json, key));
    return text ? text : "";
}

static int64_t limit_of(const json_t *json, const char *key) {
    const json_t *value = json_object_get(json, key);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

/* It stands between slashes in names of cells, in file names and in patterns. */
static bool good_name(const char *name) {
    const size_t length = strlen(name);
    if (length == 0 || length > NAME_MOST || name[0] == '.' || name[0] == '-')
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("_-.", name[i]))
            return false;
    return true;
}

static enum tb_status refuse(struct tb_error *error, const json_t *json, const char *format,
                             const char *detail) {
    char what[300];
    snprintf(what, sizeof what, format, detail);
    return tb_fail(error, TB_UNREADABLE, "its variant `%.60s`: %s", text_of(json, "name"), what);
}

static enum tb_status check_common(const json_t *json, enum kernel_device *device,
                                   struct tb_error *error) {
    const char *name = text_of(json, "name"), *where = text_of(json, "device");
    *device = strcmp(where, "cuda") ? KERNEL_DEVICE_CPU : KERNEL_DEVICE_CUDA;
    if (!good_name(name))
        return refuse(error, json,
                      "a name is 1 to 40 letters, digits, `_`, `-` and `.`, and begins with a "
                      "letter, a digit or `_`%s",
                      "");
    if (strcmp(where, "cpu") != 0 && strcmp(where, "cuda") != 0)
        return refuse(error, json, "device is `%.40s`: wanted cpu or cuda", where);
    if (limit_of(json, "max_batch") < 0 || limit_of(json, "max_vocab") < 0)
        return refuse(error, json, "max_batch and max_vocab are 0 (any) or above%s", "");
    return TB_OK;
}

static enum tb_status take_topp(struct plugin *plugin, const json_t *json, struct tb_error *error) {
    struct topp_variant *variant = &plugin->topp[plugin->topp_count];
    enum gate_contract contract;
    enum gate_output output;
    enum kernel_device device;
    const enum tb_status status = check_common(json, &device, error);
    if (status != TB_OK)
        return status;
    if (!gate_contract_parse(text_of(json, "contract"), &contract))
        return refuse(error, json,
                      "it claims the unknown contract `%.40s`: exact, bounded, conservative or "
                      "envelope",
                      text_of(json, "contract"));
    if (!gate_output_parse(text_of(json, "output"), &output))
        return refuse(error, json, "its output is `%.40s`: masked_logits, probabilities or ids",
                      text_of(json, "output"));
    if (topp_find(text_of(json, "name"), device))
        return refuse(error, json, "a built-in kernel for %s has this name: rename it",
                      text_of(json, "device"));
    *variant = (struct topp_variant){.name = text_of(json, "name"),
                                     .summary = text_of(json, "summary"),
                                     .device = device,
                                     .output = (enum topp_output)output,
                                     .contract = gate_contract_name(contract),
                                     .max_batch = limit_of(json, "max_batch"),
                                     .max_vocab = limit_of(json, "max_vocab"),
                                     .workspace_size = no_workspace,
                                     .launch = not_here};
    plugin->topp_count++;
    return TB_OK;
}

static enum tb_status take_gumbel(struct plugin *plugin, const json_t *json,
                                  struct tb_error *error) {
    struct gumbel_variant *variant = &plugin->gumbel[plugin->gumbel_count];
    enum noise_kind noise;
    enum kernel_device device;
    const enum tb_status status = check_common(json, &device, error);
    if (status != TB_OK)
        return status;
    if (!noise_parse(text_of(json, "noise"), &noise))
        return refuse(error, json,
                      "it claims the unknown noise `%.40s`: log, log1p, fp64 or murmur",
                      text_of(json, "noise"));
    if (gumbel_find(text_of(json, "name"), device))
        return refuse(error, json, "a built-in variant for %s has this name: rename it",
                      text_of(json, "device"));
    *variant = (struct gumbel_variant){.name = text_of(json, "name"),
                                       .noise_name = text_of(json, "noise"),
                                       .summary = text_of(json, "summary"),
                                       .device = device,
                                       .max_batch = limit_of(json, "max_batch"),
                                       .max_vocab = limit_of(json, "max_vocab"),
                                       .workspace_size = no_gumbel_workspace,
                                       .launch = gumbel_not_here};
    plugin->gumbel_count++;
    return TB_OK;
}

enum tb_status plugin_take_table(struct plugin *plugin, json_t *table, struct tb_error *error) {
    const json_t *variants = json_object_get(table, "variants");
    const size_t count = json_array_size(variants);
    if (!json_is_string(json_object_get(table, "name")) || count == 0 || count > MOST_VARIANTS)
        return tb_fail(error, TB_UNREADABLE,
                       "its table has no name, or not 1 to %d variants (%zu here)", MOST_VARIANTS,
                       count);
    plugin->table = json_incref(table);
    plugin->topp = calloc(count, sizeof *plugin->topp);
    plugin->gumbel = calloc(count, sizeof *plugin->gumbel);
    if (!plugin->topp || !plugin->gumbel)
        return tb_fail(error, TB_NO_MEMORY, "no memory for a plug-in's table");
    enum tb_status status = TB_OK;
    for (size_t i = 0; i < count && status == TB_OK; i++) {
        const json_t *json = json_array_get(variants, i);
        const char *kind = text_of(json, "kind");
        status = !strcmp(kind, "topp")     ? take_topp(plugin, json, error)
                 : !strcmp(kind, "gumbel") ? take_gumbel(plugin, json, error)
                                           : refuse(error, json, "unknown kind `%.40s`", kind);
    }
    return status;
}
