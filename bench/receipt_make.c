#include "bench/receipt_make.h"

#include "bench/sources.h"

#include <stdlib.h>
#include <string.h>

const char *const *receipt_outputs(const json_t *request) {
    static const char *const sweep[] = {"results.json", "results.tsv", "benchmark.json", NULL};
    static const char *const pair[] = {"results.json", "results.tsv", NULL};
    return json_is_string(json_object_get(request, "kernel")) ? pair : sweep;
}

/* For people to read; the rest is bound by record_sha256. */
const char *const receipt_repeated[] = {"name",      "verdict",      "rule",
                                        "inputs",    "sample_count", "samples_sha256",
                                        "median_ns", "kernels",      NULL};

static json_t *sources_to_json(const char *folder) {
    json_t *array = json_array();
    for (size_t i = 0; i < topp_source_count; i++)
        if (!strncmp(topp_sources[i].path, folder, strlen(folder)))
            json_array_append_new(array, json_pack("{s:s, s:s}", "path", topp_sources[i].path,
                                                   "sha256", topp_sources[i].sha256));
    return array;
}

void sources_hash_of(const json_t *sources, char hex[SHA256_HEX_BYTES]) {
    char *text = NULL;
    size_t bytes = 0, index;
    json_t *source;
    bool good = json_is_array(sources);
    FILE *stream = open_memstream(&text, &bytes);
    hex[0] = '\0';
    if (!stream)
        return;
    json_array_foreach((json_t *)sources, index, source) {
        const char *path = json_string_value(json_object_get(source, "path"));
        const char *hash = json_string_value(json_object_get(source, "sha256"));
        good = good && path && hash;
        fprintf(stream, "%s  %s\n", hash ? hash : "", path ? path : "");
    }
    if (fclose(stream) == 0 && good)
        sha256_memory(text, bytes, hex);
    free(text);
}

void sources_hash(char hex[SHA256_HEX_BYTES]) {
    json_t *sources = sources_to_json("");
    sources_hash_of(sources, hex);
    json_decref(sources);
}

void sources_hash_oracle(char hex[SHA256_HEX_BYTES]) {
    json_t *sources = sources_to_json("oracle/");
    sources_hash_of(sources, hex);
    json_decref(sources);
}

json_t *receipt_cell(const json_t *result_cell) {
    char hex[SHA256_HEX_BYTES];
    json_t *bare = json_copy((json_t *)result_cell), *cell = json_object();
    if (!bare || !cell || json_object_get(bare, "name") == NULL)
        goto failed;
    /* The samples have a hash of their own. */
    json_object_del(bare, "samples");
    if (json_sha256(bare, hex, NULL) != TB_OK)
        goto failed;
    for (size_t i = 0; receipt_repeated[i]; i++) {
        json_t *value = json_object_get(bare, receipt_repeated[i]);
        json_object_set_new(cell, receipt_repeated[i], value ? json_incref(value) : json_null());
    }
    json_object_set_new(cell, "record_sha256", json_string(hex));
    json_decref(bare);
    return cell;
failed:
    json_decref(bare);
    json_decref(cell);
    return NULL;
}

static json_t *text_or_null(const char *text) {
    return text ? json_string(text) : json_null();
}

/* Absolute where possible: --verify may run in another folder. */
static json_t *absolute_path(const char *path) {
    char *whole = realpath(path, NULL);
    json_t *json = json_string(whole ? whole : path);
    free(whole);
    return json;
}

/* What to ask for again when the plan is resolved anew. */
static json_t *request_to_json(const struct receipt_request *request) {
    const struct options *options = request->options;
    json_t *json = json_object();
    json_object_set_new(json, "profile", absolute_path(request->plan->profile_path));
    json_object_set_new(json, "device", json_string(request->plan->device));
    json_object_set_new(json, "filter", text_or_null(options->filter));
    json_object_set_new(json, "case", text_or_null(options->case_name));
    json_object_set_new(json, "family", text_or_null(request->family));
    json_object_set_new(json, "input_dir",
                        request->family ? absolute_path(request->captured_dir) : json_null());
    json_object_set_new(json, "seed",
                        options->have_seed ? json_integer(options->seed) : json_null());
    json_object_set_new(json, "slices", json_integer(options->slices));
    json_object_set_new(json, "kernel", text_or_null(request->pair ? request->pair->kernel : NULL));
    json_object_set_new(json, "beside", text_or_null(request->pair ? request->pair->beside : NULL));
    return json;
}

static enum tb_status hash_outputs(const char *out_dir, const char *const *names, json_t *outputs,
                                   struct tb_error *error) {
    for (size_t i = 0; names[i]; i++) {
        char path[4200], hex[SHA256_HEX_BYTES];
        snprintf(path, sizeof path, "%s/%s", out_dir, names[i]);
        const enum tb_status status = sha256_file(path, hex, error);
        if (status != TB_OK)
            return status;
        json_array_append_new(outputs, json_pack("{s:s, s:s}", "file", names[i], "sha256", hex));
    }
    return TB_OK;
}

static enum tb_status add_cells(const json_t *results, json_t *cells, const char *path,
                                struct tb_error *error) {
    size_t index;
    json_t *cell;
    json_array_foreach(json_object_get(results, "cells"), index, cell) {
        json_t *bound = receipt_cell(cell);
        if (!bound)
            return tb_fail_at(error, TB_INTERNAL, path, 0, -1,
                              "cell %zu cannot be bound by the receipt", index);
        json_array_append_new(cells, bound);
    }
    return TB_OK;
}

enum tb_status receipt_make(const struct receipt_request *request, struct tb_error *error) {
    char path[4200];
    json_error_t fault;
    json_t *receipt = json_object(), *cells = json_array(), *outputs = json_array();
    json_t *asked = request_to_json(request);
    snprintf(path, sizeof path, "%s/results.json", request->out_dir);
    json_t *results = json_load_file(path, 0, &fault);
    enum tb_status status = TB_OK;
    if (!results)
        status = tb_fail_at(error, TB_IO, path, fault.line, -1,
                            "cannot be read back for the receipt: %s", fault.text);
    if (status == TB_OK)
        status = hash_outputs(request->out_dir, receipt_outputs(asked), outputs, error);
    if (status == TB_OK)
        status = add_cells(results, cells, path, error);
    if (status == TB_OK) {
        json_object_set(receipt, "run", json_object_get(results, "run"));
        json_object_set(receipt, "request", asked);
        json_object_set_new(receipt, "sources", sources_to_json(""));
        json_object_set(receipt, "cells", cells);
        json_object_set(receipt, "outputs", outputs);
        snprintf(path, sizeof path, "%s/receipt.json", request->out_dir);
        status = receipt_write(receipt, path, error);
    }
    json_decref(results);
    json_decref(asked);
    json_decref(outputs);
    json_decref(cells);
    json_decref(receipt);
    return status;
}
