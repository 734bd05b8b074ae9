/* --verify of a merged run: the shards' receipts, and that each cell is its shard's. */
#include "bench/receipt_make.h"
#include "bench/verify.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What merging adds to a cell. */
static const char *const added[] = {"samples", "shard", "device_uuid", NULL};

static bool same_record(const json_t *merged, const json_t *bound) {
    char hex[SHA256_HEX_BYTES] = "";
    json_t *bare = json_copy((json_t *)merged);
    for (size_t i = 0; bare && added[i]; i++)
        json_object_del(bare, added[i]);
    const char *record = json_string_value(json_object_get(bound, "record_sha256"));
    const bool same = bare && json_sha256(bare, hex, NULL) == TB_OK && hex[0] && record &&
                      !strcmp(hex, record) &&
                      json_equal(json_object_get(merged, "samples_sha256"),
                                 json_object_get(bound, "samples_sha256"));
    json_decref(bare);
    return same;
}

/* The merged cells of this shard, in order, against what its receipt sealed. */
static void compare_cells(struct verification *verification, const json_t *receipt,
                          json_int_t index, const char *name) {
    json_t *merged = json_object_get(verification->results, "cells"), *cell;
    const json_t *bound = json_object_get(receipt, "cells");
    size_t at = 0, position, wrong = 0;
    const char *first = "";
    json_array_foreach(merged, position, cell) {
        if (json_integer_value(json_object_get(cell, "shard")) != index)
            continue;
        if (!same_record(cell, json_array_get(bound, at++)) && !wrong++)
            first = json_string_value(json_object_get(cell, "name"));
    }
    if (at != json_array_size(bound))
        receipt_add(&verification->items, RECEIPT_CHANGED, "shards", name,
                    "its receipt has %zu cells, of which %zu are here", json_array_size(bound), at);
    else if (wrong)
        receipt_add(&verification->items, RECEIPT_CHANGED, "shards", name,
                    "%zu cells are not what its receipt sealed; the first: %s", wrong,
                    first ? first : "(without name)");
    else
        receipt_add(&verification->items, RECEIPT_VERIFIED, "shards", name, "%s", "");
}

static void verify_files_of(struct verification *verification, const json_t *receipt,
                            const char *dir, const char *name) {
    const char *const *files = receipt_outputs(json_object_get(receipt, "request"));
    const json_t *outputs = json_object_get(receipt, "outputs");
    for (size_t i = 0; files[i]; i++) {
        char path[8500], label[200], hex[SHA256_HEX_BYTES];
        const char *bound =
            json_string_value(json_object_get(json_array_get(outputs, i), "sha256"));
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        snprintf(label, sizeof label, "%s %s", name, files[i]);
        const bool same = bound && sha256_file(path, hex, NULL) == TB_OK && !strcmp(hex, bound);
        receipt_add(&verification->items, same ? RECEIPT_VERIFIED : RECEIPT_CHANGED, "shards",
                    label, "%s", same ? "" : "is missing, or not what the shard's receipt binds");
    }
}

static void follow(struct verification *verification, const json_t *entry) {
    const json_int_t index = json_integer_value(json_object_get(entry, "index"));
    const char *dir = json_string_value(json_object_get(entry, "dir"));
    char name[64], folder[8200], path[8300], hex[SHA256_HEX_BYTES];
    struct tb_error error = TB_ERROR_INIT;
    json_t *receipt = NULL;
    snprintf(name, sizeof name, "shard %lld", (long long)index);
    snprintf(folder, sizeof folder, "%s/%s", verification->dir, dir ? dir : "?");
    snprintf(path, sizeof path, "%s/receipt.json", folder);
    if (access(path, R_OK) != 0) {
        receipt_add(&verification->items, RECEIPT_ELSEWHERE, "shards", name,
                    "its receipt is not at %s", path);
        return;
    }
    sha256_file(path, hex, NULL);
    json_t *is = json_string(hex);
    verify_equal(verification, "shards", name, json_object_get(entry, "receipt_sha256"), is);
    json_decref(is);
    if (receipt_read(path, &receipt, &error) != TB_OK) {
        receipt_add(&verification->items, RECEIPT_CHANGED, "shards", name, "%s", error.message);
        return;
    }
    snprintf(name, sizeof name, "shard %lld seal", (long long)index);
    if (receipt_seal_holds(receipt))
        verify_equal(verification, "shards", name, json_object_get(entry, "seal_sha256"),
                     json_object_get(receipt, "seal_sha256"));
    else
        receipt_add(&verification->items, RECEIPT_CHANGED, "shards", name,
                    "some field of the shard's receipt is not what was sealed");
    snprintf(name, sizeof name, "shard %lld", (long long)index);
    verify_files_of(verification, receipt, folder, name);
    snprintf(name, sizeof name, "shard %lld cells", (long long)index);
    compare_cells(verification, receipt, index, name);
    json_decref(receipt);
}

void verify_shards(struct verification *verification) {
    json_t *shards = json_object_get(verification->receipt, "shards"), *entry;
    const json_t *run = json_object_get(verification->receipt, "run");
    size_t position;
    if (!shards && !json_object_get(run, "shards"))
        return;
    if (json_array_size(shards) != json_array_size(json_object_get(run, "shards")))
        receipt_add(&verification->items, RECEIPT_CHANGED, "shards", "list",
                    "the receipt binds %zu shards, its run says %zu", json_array_size(shards),
                    json_array_size(json_object_get(run, "shards")));
    json_array_foreach(shards, position, entry) follow(verification, entry);
}
