/* --verify: the programs of --external. They are never started here: their files are looked at. */
#include "bench/verify.h"

#include "bench/external.h"

#include <string.h>
#include <unistd.h>

static void verify_file(struct verification *verification, const char *name, const json_t *bound) {
    const char *path = json_string_value(json_object_get(bound, "path"));
    char hex[SHA256_HEX_BYTES], item[320];
    snprintf(item, sizeof item, "%s: %s", name, path ? path : "(without path)");
    if (!path || access(path, R_OK) != 0 || sha256_file(path, hex, NULL) != TB_OK) {
        receipt_add(&verification->items, RECEIPT_ELSEWHERE, "externals", item,
                    "the file is not here");
        return;
    }
    json_t *is = json_string(hex);
    verify_equal(verification, "externals", item, json_object_get(bound, "sha256"), is);
    json_decref(is);
}

bool verify_externals(struct verification *verification) {
    const json_t *run = json_object_get(verification->receipt, "run");
    const json_t *externals = json_object_get(run, "externals");
    const char *device = json_string_value(json_object_get(run, "device_kind"));
    struct tb_error error = TB_ERROR_INIT;
    const enum kernel_device kind =
        device && !strcmp(device, "cuda") ? KERNEL_DEVICE_CUDA : KERNEL_DEVICE_CPU;
    if (external_list_from_json(externals, kind, &verification->externals, &error) != TB_OK) {
        receipt_add(&verification->items, RECEIPT_CHANGED, "externals", "list", "%s",
                    error.message);
        return false;
    }
    for (size_t i = 0; i < json_array_size(externals); i++) {
        const json_t *external = json_array_get(externals, i);
        const json_t *files = json_object_get(external, "files");
        for (size_t k = 0; k < json_array_size(files); k++)
            verify_file(verification, verification->externals.items[i].name,
                        json_array_get(files, k));
    }
    return true;
}
