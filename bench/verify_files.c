/* --verify: what the files beside the receipt say. */
#include "bench/receipt_make.h"
#include "bench/sources.h"
#include "bench/verify.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void shorten(char *text, size_t bytes, const json_t *json) {
    char *whole = json ? json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    snprintf(text, bytes, "%.60s%s", whole ? whole : "missing",
             whole && strlen(whole) > 60 ? "..." : "");
    free(whole);
}

/* NULL twice is no agreement: a bound item must be there. */
void verify_equal(struct verification *verification, const char *group, const char *name,
                  const json_t *bound, const json_t *found) {
    if (bound && found && json_equal(bound, found)) {
        receipt_add(&verification->items, RECEIPT_VERIFIED, group, name, "%s", "");
        return;
    }
    char was[80], is[80];
    shorten(was, sizeof was, bound);
    shorten(is, sizeof is, found);
    receipt_add(&verification->items, RECEIPT_CHANGED, group, name,
                "the receipt says %s, here is %s", was, is);
}

void verify_free(struct verification *verification) {
    json_decref(verification->results);
    plan_free(&verification->plan);
    plugin_set_free(&verification->plugins);
    receipt_items_free(&verification->items);
}

void verify_seal(struct verification *verification) {
    if (receipt_seal_holds(verification->receipt))
        receipt_add(&verification->items, RECEIPT_VERIFIED, "receipt", "seal_sha256", "%s", "");
    else
        receipt_add(&verification->items, RECEIPT_CHANGED, "receipt", "seal_sha256",
                    "some field of the receipt is not what was sealed");
}

static void verify_output(struct verification *verification, const char *name, const char *bound) {
    char path[4200], hex[SHA256_HEX_BYTES];
    struct tb_error error = TB_ERROR_INIT;
    snprintf(path, sizeof path, "%s/%s", verification->dir, name);
    if (sha256_file(path, hex, &error) != TB_OK)
        receipt_add(&verification->items, RECEIPT_CHANGED, "outputs", name, "missing: %s",
                    error.message);
    else if (!bound || strcmp(bound, hex) != 0)
        receipt_add(&verification->items, RECEIPT_CHANGED, "outputs", name,
                    "its bytes hash to %.12s..., the receipt says %.12s...", hex,
                    bound ? bound : "nothing");
    else
        receipt_add(&verification->items, RECEIPT_VERIFIED, "outputs", name, "%s", "");
}

void verify_outputs(struct verification *verification) {
    const json_t *outputs = json_object_get(verification->receipt, "outputs");
    const char *const *names = receipt_outputs(json_object_get(verification->receipt, "request"));
    char path[4200];
    json_error_t fault;
    size_t expected = 0;
    for (; names[expected]; expected++) {
        const json_t *output = json_array_get(outputs, expected);
        const char *file = json_string_value(json_object_get(output, "file"));
        const bool named = file && !strcmp(file, names[expected]);
        verify_output(verification, names[expected],
                      named ? json_string_value(json_object_get(output, "sha256")) : NULL);
    }
    if (json_array_size(outputs) != expected)
        receipt_add(&verification->items, RECEIPT_CHANGED, "outputs", "list",
                    "the receipt binds %zu files, a run leaves %zu", json_array_size(outputs),
                    expected);
    snprintf(path, sizeof path, "%s/results.json", verification->dir);
    verification->results = json_load_file(path, JSON_REJECT_DUPLICATES, &fault);
    if (!verification->results && access(path, R_OK) == 0)
        receipt_add(&verification->items, RECEIPT_CHANGED, "outputs", "results.json",
                    "line %d: is no JSON: %s", fault.line, fault.text);
}

/* Device, host, build, seed, date and the rest of the run's own description. */
void verify_run(struct verification *verification) {
    const json_t *bound = json_object_get(verification->receipt, "run");
    const json_t *found = json_object_get(verification->results, "run");
    const char *key;
    json_t *value;
    if (!json_is_object(bound) || !json_object_size(bound)) {
        receipt_add(&verification->items, RECEIPT_CHANGED, "run", "run", "missing");
        return;
    }
    json_object_foreach((json_t *)bound, key, value)
        verify_equal(verification, "run", key, value, json_object_get(found, key));
    json_object_foreach((json_t *)found, key, value) if (!json_object_get(bound, key))
        verify_equal(verification, "run", key, NULL, value);
}

static const char *compiled_hash(const char *path) {
    for (size_t i = 0; path && i < topp_source_count; i++)
        if (!strcmp(topp_sources[i].path, path))
            return topp_sources[i].sha256;
    return NULL;
}

static void verify_source(struct verification *verification, const char *path, const char *bound) {
    char file[4200], hex[SHA256_HEX_BYTES];
    const char *compiled = compiled_hash(path);
    const char *why = NULL;
    snprintf(file, sizeof file, "%s/%s", topp_build.source_dir, path);
    if (!compiled)
        why = "is not compiled into this program";
    else if (!bound || strcmp(compiled, bound) != 0)
        why = "is another version in this program";
    else if (access(file, R_OK) == 0 &&
             (sha256_file(file, hex, NULL) != TB_OK || strcmp(hex, bound) != 0))
        why = "the file in the source tree is another version";
    receipt_add(&verification->items, why ? RECEIPT_CHANGED : RECEIPT_VERIFIED, "sources", path,
                "%s", why ? why : "");
}

void verify_sources(struct verification *verification) {
    json_t *sources = json_object_get(verification->receipt, "sources"), *source;
    char hex[SHA256_HEX_BYTES];
    size_t index;
    json_array_foreach(sources, index, source) {
        const char *path = json_string_value(json_object_get(source, "path"));
        verify_source(verification, path ? path : "(without path)",
                      json_string_value(json_object_get(source, "sha256")));
    }
    if (json_array_size(sources) != topp_source_count)
        receipt_add(&verification->items, RECEIPT_CHANGED, "sources", "list",
                    "the receipt binds %zu sources, this program has %zu", json_array_size(sources),
                    topp_source_count);
    sources_hash_of(sources, hex);
    json_t *whole = json_string(hex);
    verify_equal(verification, "sources", "sources_sha256",
                 json_object_get(json_object_get(verification->receipt, "run"), "sources_sha256"),
                 whole);
    json_decref(whole);
}

/* First member of two cells that differs, for the message. */
static const char *first_difference(const json_t *bound, const json_t *found) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)bound, key,
                        value) if (!json_object_get(found, key) ||
                                   !json_equal(value, json_object_get(found, key))) return key;
    return "members";
}

void verify_cells(struct verification *verification) {
    json_t *bound = json_object_get(verification->receipt, "cells"), *cell;
    json_t *found = json_object_get(verification->results, "cells");
    size_t index;
    if (!json_is_array(bound) || json_array_size(bound) != json_array_size(found))
        receipt_add(&verification->items, RECEIPT_CHANGED, "cells", "list",
                    "the receipt has %zu cells, results.json %zu", json_array_size(bound),
                    json_array_size(found));
    json_array_foreach(bound, index, cell) {
        const char *name = json_string_value(json_object_get(cell, "name"));
        json_t *again = receipt_cell(json_array_get(found, index));
        if (again && json_equal(again, cell))
            receipt_add(&verification->items, RECEIPT_VERIFIED, "cells", name ? name : "?", "%s",
                        "");
        else
            receipt_add(&verification->items, RECEIPT_CHANGED, "cells",
                        name ? name : "(without name)", "%s in results.json is not the receipt's",
                        again ? first_difference(cell, again) : "this cell");
        json_decref(again);
    }
}
