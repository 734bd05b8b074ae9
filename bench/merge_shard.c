#include "bench/merge_shard.h"

#include "bench/shard.h"
#include "oracle/json_canonical.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const merge_files[MERGE_FILES] = {"results.json", "results.tsv", "benchmark.json"};

void merge_shard_free(struct merge_shard *shard) {
    json_decref(shard->run);
    json_decref(shard->request);
    json_decref(shard->sources);
    json_decref(shard->summary);
    free(shard->names);
    free(shard->places);
    *shard = (struct merge_shard){.dir = NULL};
}

/* A receipt being read: its text is mapped, never built as a whole. */
struct reading {
    struct merge_shard *shard;
    struct tb_error *error;
    char path[4200];
    const char *text;
    size_t length;
};

static enum tb_status wrong(const struct reading *reading, const char *what) {
    return tb_fail_at(reading->error, TB_UNREADABLE, reading->path, 0, -1, "%s", what);
}

/* The first line of a shard's journal, NULL when there is none. */
static json_t *journal_head(const char *dir, bool *there) {
    char path[4200];
    json_t *head = NULL;
    snprintf(path, sizeof path, "%s/journal.jsonl", dir);
    FILE *file = fopen(path, "re");
    *there = file != NULL;
    if (file) {
        head = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL);
        fclose(file);
    }
    return head;
}

static enum tb_status no_receipt(const struct reading *reading, bool journal) {
    if (journal)
        return tb_fail_at(reading->error, TB_UNREADABLE, reading->shard->dir, 0, -1,
                          "holds a run that did not finish (a journal, no receipt): finish it "
                          "with --resume, then merge");
    return tb_fail_at(reading->error, TB_UNREADABLE, reading->path, 0, -1,
                      "%s: a folder to merge holds a finished run of --sweep --shard K/N",
                      strerror(errno));
}

static enum tb_status map_receipt(struct reading *reading) {
    bool journal = false;
    json_t *head = journal_head(reading->shard->dir, &journal);
    reading->shard->gate_only = json_is_true(json_object_get(head, "gate_only"));
    json_decref(head);
    struct stat stat_of;
    const int file = open(reading->path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return no_receipt(reading, journal);
    void *text = MAP_FAILED;
    if (fstat(file, &stat_of) == 0 && S_ISREG(stat_of.st_mode) && stat_of.st_size > 0)
        text = mmap(NULL, (size_t)stat_of.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (text == MAP_FAILED)
        return wrong(reading, "is empty or cannot be read: run this shard again");
    reading->text = text;
    reading->length = (size_t)stat_of.st_size;
    return TB_OK;
}

static json_t *load(struct json_span text) {
    return json_loadb(text.at, text.length, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
}

/* Appends the name of each cell; false when a cell has none. */
static bool take_names(struct merge_shard *shard, struct json_span cells) {
    struct json_scan scan = json_scan_of(cells.at, cells.length);
    size_t room = 0;
    for (json_scan_array(&scan); json_scan_item(&scan);) {
        char name[CELL_NAME_BYTES] = "";
        struct json_span key, value;
        for (json_scan_object(&scan); json_scan_key(&scan, &key);) {
            if (!json_span_is(key, "name"))
                json_scan_skip(&scan, NULL);
            else if (!json_scan_string(&scan, &value) || !json_span_text(value, name, sizeof name))
                return false;
        }
        const size_t bytes = strlen(name) + 1;
        if (shard->names_bytes + bytes > room) {
            room = 2 * room + bytes + 4096;
            char *grown = realloc(shard->names, room);
            if (!grown)
                return false;
            shard->names = grown;
        }
        memcpy(shard->names + shard->names_bytes, name, bytes);
        shard->names_bytes += bytes;
        shard->cells++;
        if (bytes == 1)
            return false;
    }
    return json_scan_done(&scan) && shard->cells > 0;
}

static bool take_outputs(struct merge_shard *shard, struct json_span outputs) {
    json_t *list = load(outputs);
    bool good = json_array_size(list) == MERGE_FILES;
    for (size_t i = 0; good && i < MERGE_FILES; i++) {
        const json_t *output = json_array_get(list, i);
        const char *file = json_string_value(json_object_get(output, "file"));
        const char *hash = json_string_value(json_object_get(output, "sha256"));
        good = file && hash && !strcmp(file, merge_files[i]);
        snprintf(shard->bound[i], sizeof shard->bound[i], "%s", good ? hash : "");
    }
    json_decref(list);
    return good;
}

static bool receipt_schema(struct json_span value) {
    json_t *schema = load(value);
    const bool known = json_is_integer(schema) && json_integer_value(schema) == RECEIPT_SCHEMA;
    json_decref(schema);
    return known;
}

static enum tb_status take_members(struct reading *reading) {
    struct merge_shard *shard = reading->shard;
    struct json_scan scan = json_scan_of(reading->text, reading->length);
    struct json_span key, value;
    bool kind = false, schema = false, cells = false, outputs = false;
    for (json_scan_object(&scan); json_scan_key(&scan, &key) && json_scan_skip(&scan, &value);) {
        if (json_span_is(key, "kind"))
            kind = json_span_is(value, "\"topp-bench receipt\"");
        else if (json_span_is(key, "schema"))
            schema = receipt_schema(value);
        else if (json_span_is(key, "run") && !shard->run)
            shard->run = load(value);
        else if (json_span_is(key, "request") && !shard->request)
            shard->request = load(value);
        else if (json_span_is(key, "sources") && !shard->sources)
            shard->sources = load(value);
        else if (json_span_is(key, "cells") && !cells)
            cells = take_names(shard, value);
        else if (json_span_is(key, "outputs"))
            outputs = take_outputs(shard, value);
        else if (json_span_is(key, "seal_sha256") && value.length == 66)
            snprintf(shard->seal_sha256, sizeof shard->seal_sha256, "%.64s", value.at + 1);
    }
    if (!json_scan_done(&scan))
        return tb_fail_at(reading->error, TB_UNREADABLE, reading->path, 0,
                          (int64_t)(scan.at - reading->text), "is no JSON here");
    if (kind && !schema)
        return wrong(reading,
                     "\"schema\" is missing, or one that this program does not know: merge "
                     "with the release that made it");
    if (!kind || !cells || !outputs || !json_is_object(shard->run) ||
        !json_is_object(shard->request) || !json_is_array(shard->sources))
        return wrong(reading, "is no receipt of a sweep: kind, run, request, sources, cells or "
                              "outputs is missing or not of this version");
    return TB_OK;
}

static enum tb_status check_seal(const struct reading *reading) {
    struct json_pair pairs[JSON_MOST_PAIRS];
    struct sha256_stream stream;
    char hex[SHA256_HEX_BYTES];
    size_t count;
    sha256_begin(&stream);
    const bool good = json_pairs((struct json_span){reading->text, reading->length}, pairs,
                                 JSON_MOST_PAIRS, &count) &&
                      json_canonical_pairs(pairs, count, "seal_sha256", &stream);
    sha256_end(&stream, hex);
    if (good && hex[0] && !strcmp(hex, reading->shard->seal_sha256))
        return TB_OK;
    return wrong(reading, "its seal does not hold: it was changed after the run, run this shard "
                          "again");
}

static enum tb_status take_run(const struct reading *reading) {
    struct merge_shard *shard = reading->shard;
    const json_t *part = json_object_get(shard->run, "shard");
    if (!json_is_object(part))
        return wrong(reading, "is of a whole run, not of a shard: nothing is to be merged here "
                              "(run.shard; --sweep --shard K/N makes one)");
    const json_int_t index = json_integer_value(json_object_get(part, "index"));
    const json_int_t count = json_integer_value(json_object_get(part, "count"));
    if (index < 1 || count < index || count > SHARD_MOST)
        return wrong(reading, "run.shard names no shard");
    shard->index = (int32_t)index;
    shard->count = (int32_t)count;
    shard->id = json_string_value(json_object_get(shard->run, "id"));
    shard->model =
        json_string_value(json_object_get(json_object_get(shard->run, "device"), "model"));
    if (!shard->id || !shard->model)
        return wrong(reading, "run.id or run.device.model is missing");
    return TB_OK;
}

enum tb_status merge_shard_read(const char *dir, struct merge_shard *shard,
                                struct tb_error *error) {
    *shard = (struct merge_shard){.dir = dir};
    struct reading reading = {.shard = shard, .error = error};
    if ((size_t)snprintf(reading.path, sizeof reading.path, "%s/receipt.json", dir) >=
        sizeof reading.path)
        return tb_fail_at(error, TB_UNREADABLE, dir, 0, -1, "the path is too long");
    enum tb_status status = map_receipt(&reading);
    if (status != TB_OK)
        return status;
    sha256_memory(reading.text, reading.length, shard->receipt_sha256);
    status = take_members(&reading);
    if (status == TB_OK)
        status = check_seal(&reading);
    if (status == TB_OK)
        status = take_run(&reading);
    munmap((void *)reading.text, reading.length);
    return status;
}

enum tb_status merge_place(struct merge_shard *shard, const struct plan *plan, int32_t which,
                           int32_t *owner, struct tb_error *error) {
    const char *name = shard->names;
    size_t at = 0;
    shard->places = calloc(shard->cells, sizeof *shard->places);
    if (!shard->places)
        return tb_fail(error, TB_NO_MEMORY, "no memory for the cells of %s", shard->dir);
    for (size_t i = 0; i < shard->cells; i++, at++, name += strlen(name) + 1) {
        while (at < plan->count && strcmp(plan->cells[at].name, name) != 0)
            at++;
        if (at == plan->count)
            return tb_fail_at(error, TB_UNREADABLE, shard->dir, 0, -1,
                              "its cell '%s' does not stand in the list of profile %s, or not in "
                              "this order: shards and merge must be of one version and profile",
                              name, plan->profile_name);
        if (owner[at] >= 0)
            return tb_fail_at(error, TB_UNREADABLE, shard->dir, 0, -1,
                              "its cell '%s' is in another shard too", name);
        owner[at] = which;
        shard->places[i] = at;
    }
    free(shard->names);
    shard->names = NULL;
    return TB_OK;
}
