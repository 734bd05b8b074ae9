#include "bench/merge_check.h"

#include "bench/plan_hash.h"

#include <stdlib.h>
#include <string.h>

/* Members of run that are a shard's own, or are compared member by member; all others, also those
 * that a later version adds, must be equal. */
static const char *const own_of_run[] = {
    "id",    "date",         "resumed", "plan_sha256", "shard", "profile",
    "input", "oracle_cache", "device",  "host",        "build",
};
/* Members of the request that say where a machine keeps its files, not what was run. */
static const char *const places[] = {"profile", "input_dir"};
/* Members of a device that two of one model, or two runs on one, may have otherwise. */
static const char *const own_of_device[] = {
    "uuid",
    "index",
    "pci_bus_id",
    "timer_resolution_ns",
    "l2_probe_warm_cycles",
    "l2_probe_cold_cycles",
};
/* Equal sources may stand in two commits. */
static const char *const own_of_build[] = {"commit"};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static bool among(const char *name, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!strcmp(list[i], name))
            return true;
    return false;
}

static void shorten(char *text, size_t bytes, const json_t *json) {
    char *whole = json ? json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    snprintf(text, bytes, "%.70s%s", whole ? whole : "nothing",
             whole && strlen(whole) > 70 ? "..." : "");
    free(whole);
}

/* Two shards that are to agree, and what a mismatch would be called. */
struct pair {
    const struct merge_shard *first, *other;
    struct tb_error *error;
};

static enum tb_status differ(const struct pair *pair, const char *group, const char *name,
                             const json_t *first, const json_t *other, const char *mend) {
    char left[80], right[80];
    shorten(left, sizeof left, first);
    shorten(right, sizeof right, other);
    return tb_fail_at(pair->error, TB_USAGE, pair->other->dir, 0, -1,
                      "is not of the same sweep as %.120s: %s%s is %s here, %s there; %s",
                      pair->first->dir, group, name, right, left, mend);
}

static const char rerun[] = "run this shard again as the others were run";

static enum tb_status same_member(const struct pair *pair, const json_t *first, const json_t *other,
                                  const char *group, const char *name, const char *mend) {
    const json_t *left = json_object_get(first, name), *right = json_object_get(other, name);
    if (left == right || (left && right && json_equal(left, right)))
        return TB_OK;
    return differ(pair, group, name, left, right, mend);
}

/* All members of both objects but those of `own`. */
static enum tb_status same_object(const struct pair *pair, const json_t *first, const json_t *other,
                                  const char *group, const char *const *own, size_t own_count,
                                  const char *mend) {
    enum tb_status status = TB_OK;
    const char *key;
    json_t *unused;
    const json_t *sides[2] = {first, other};
    for (int side = 0; side < 2; side++) {
        json_object_foreach((json_t *)sides[side], key, unused) {
            (void)unused;
            if (status == TB_OK && !among(key, own, own_count))
                status = same_member(pair, first, other, group, key, mend);
        }
    }
    return status;
}

static enum tb_status same_sweep(const struct pair *pair) {
    const json_t *first = pair->first->run, *other = pair->other->run;
    const json_t *left = json_object_get(first, "shard"), *right = json_object_get(other, "shard");
    enum tb_status status = TB_OK;
    for (size_t i = 0; status == TB_OK && i < 2; i++)
        status =
            same_member(pair, json_object_get(first, "profile"), json_object_get(other, "profile"),
                        "run.profile.", (const char *const[]){"name", "sha256"}[i], rerun);
    if (status == TB_OK)
        status = same_object(pair, first, other, "run.", own_of_run, COUNT(own_of_run), rerun);
    if (status == TB_OK)
        status =
            same_object(pair, json_object_get(first, "device"), json_object_get(other, "device"),
                        "run.device.", own_of_device, COUNT(own_of_device),
                        "devices of one model and driver are merged (--separate-devices "
                        "makes a run for each model)");
    if (status == TB_OK)
        status = same_object(pair, json_object_get(first, "build"), json_object_get(other, "build"),
                             "run.build.", own_of_build, COUNT(own_of_build), rerun);
    if (status == TB_OK)
        status = same_object(pair, pair->first->request, pair->other->request, "request.", places,
                             COUNT(places), rerun);
    for (size_t i = 0; status == TB_OK && i < 3; i++)
        status = same_member(pair, left, right, "run.shard.",
                             (const char *const[]){"count", "cells", "list_sha256"}[i], rerun);
    if (status == TB_OK && pair->first->gate_only != pair->other->gate_only)
        status = tb_fail_at(pair->error, TB_USAGE, pair->other->dir, 0, -1,
                            "is not of the same sweep as %.120s: one was run with --gate-only, "
                            "the other without; %s",
                            pair->first->dir, rerun);
    return status;
}

static int by_index(const void *left, const void *right) {
    const struct merge_shard *a = left, *b = right;
    return a->index != b->index ? (a->index > b->index) - (a->index < b->index)
                                : strcmp(a->dir, b->dir);
}

/* "2, 5 to 7": the indices that no shard has. */
static void name_missing(const struct merge_shard *shards, size_t count, char *text, size_t bytes) {
    int32_t expected = 1;
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i <= count; i++) {
        const int32_t next = i < count ? shards[i].index : shards[0].count + 1;
        if (next > expected && used < bytes)
            used += (size_t)snprintf(text + used, bytes - used,
                                     next == expected + 1 ? "%s%d" : "%s%d to %d",
                                     text[0] ? ", " : "", expected, next - 1);
        expected = next + 1;
    }
}

static enum tb_status complete(const struct merge_shard *shards, size_t count,
                               struct tb_error *error) {
    char missing[200];
    for (size_t i = 1; i < count; i++)
        if (shards[i].index == shards[i - 1].index)
            return tb_fail_at(error, TB_USAGE, shards[i].dir, 0, -1,
                              "is shard %d of %d, and so is %.200s: name one of them",
                              shards[i].index, shards[i].count, shards[i - 1].dir);
    name_missing(shards, count, missing, sizeof missing);
    if (missing[0])
        return tb_fail(error, TB_USAGE,
                       "of %d shards (device %.80s) there is no folder of: %s; run what is missing "
                       "(--shard K/%d) and name all folders",
                       shards[0].count, shards[0].model, missing, shards[0].count);
    return TB_OK;
}

enum tb_status merge_check(struct merge_shard *shards, size_t count, struct tb_error *error) {
    enum tb_status status = TB_OK;
    for (size_t i = 1; status == TB_OK && i < count; i++)
        status = same_sweep(&(struct pair){&shards[0], &shards[i], error});
    if (status != TB_OK)
        return status;
    qsort(shards, count, sizeof *shards, by_index);
    return complete(shards, count, error);
}

/* Members that are not equal in all shards become null. */
static void keep_common(json_t *kept, const char *name, const struct merge_shard *shards,
                        size_t count) {
    json_t *object = json_object_get(kept, name), *value;
    const char *key;
    void *next;
    for (size_t i = 1; i < count; i++) {
        const json_t *other = json_object_get(shards[i].run, name);
        json_object_foreach_safe(object, next, key, value) {
            const json_t *its = json_object_get(other, key);
            if (!its || !json_equal(value, its))
                json_object_set_new(object, key, json_null());
        }
    }
}

static json_t *shard_entry(const struct merge_shard *shard) {
    static const char *const taken[] = {"id", "date", "resumed", "device", "host"};
    json_t *entry =
        json_pack("{s:i, s:I}", "index", (int)shard->index, "cells", (json_int_t)shard->cells);
    for (size_t i = 0; i < COUNT(taken); i++)
        json_object_set(entry, taken[i], json_object_get(shard->run, taken[i]));
    json_object_set_new(entry, "receipt_sha256", json_string(shard->receipt_sha256));
    return entry;
}

/* The same of the same shards. */
static void name_run(const struct merge_shard *shards, size_t count, char id[33]) {
    char hex[SHA256_HEX_BYTES];
    json_t *ids = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(ids, json_string(shards[i].id));
    if (json_sha256(ids, hex, NULL) != TB_OK)
        hex[0] = '\0';
    snprintf(id, 33, "%.32s", hex);
    json_decref(ids);
}

json_t *merge_run(const struct merge_shard *shards, size_t count, const struct plan *plan) {
    json_t *run = json_deep_copy(shards[0].run), *list = json_array();
    char id[33], plan_sha256[65];
    const char *earliest = "";
    bool resumed = false;
    for (size_t i = 0; i < count; i++) {
        const char *date = json_string_value(json_object_get(shards[i].run, "date"));
        if (date && (!earliest[0] || strcmp(date, earliest) < 0))
            earliest = date;
        resumed = resumed || json_is_true(json_object_get(shards[i].run, "resumed"));
        json_array_append_new(list, shard_entry(&shards[i]));
    }
    name_run(shards, count, id);
    plan_hash_cells(plan, plan_sha256);
    if (!run || !list || !id[0] || !plan_sha256[0]) {
        json_decref(run);
        json_decref(list);
        return NULL;
    }
    json_object_set_new(run, "id", json_string(id));
    json_object_set_new(run, "date", json_string(earliest));
    json_object_set_new(run, "plan_sha256", json_string(plan_sha256));
    json_object_set_new(run, "shard", json_null());
    json_object_set_new(run, "resumed", json_boolean(resumed));
    if (json_object_get(run, "oracle_cache"))
        json_object_set_new(run, "oracle_cache", json_null());
    keep_common(run, "device", shards, count);
    keep_common(run, "host", shards, count);
    keep_common(run, "build", shards, count);
    json_object_set_new(run, "shards", list);
    return run;
}

json_t *merge_summary(const struct merge_shard *shards, size_t count) {
    json_t *sum = json_deep_copy(shards[0].summary), *value;
    const char *key;
    void *next;
    for (size_t i = 1; i < count; i++) {
        json_object_foreach_safe(sum, next, key, value) {
            const json_t *other = json_object_get(shards[i].summary, key);
            if (json_is_integer(value))
                json_object_set_new(
                    sum, key, json_integer(json_integer_value(value) + json_integer_value(other)));
            else
                json_object_set_new(sum, key,
                                    json_boolean(json_is_true(value) && json_is_true(other)));
        }
    }
    return sum;
}
