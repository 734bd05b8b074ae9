/* The merged receipt, but for its cells: oracle/receipt.c writes small ones whole, this one is
 * written on the way, and sealed over the same canonical form. */
#include "bench/merge_write.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* How `to` is reached from `from`, both absolute and without links: "../shards/3". */
static void relative_path(const char *from, const char *to, char *text, size_t bytes) {
    size_t common = 0, at = 0;
    while (from[at] && from[at] == to[at]) {
        at++;
        if ((from[at] == '/' || !from[at]) && (to[at] == '/' || !to[at]))
            common = at;
    }
    size_t used = 0;
    text[0] = '\0';
    for (const char *step = from + common; *step && used + 4 < bytes; step++)
        if (*step == '/' && step[1])
            used += (size_t)snprintf(text + used, bytes - used, "%s..", used ? "/" : "");
    const char *rest = to + common + (to[common] == '/');
    if (*rest || !used)
        snprintf(text + used, bytes - used, "%s%s", used ? "/" : "", *rest ? rest : ".");
}

json_t *merge_receipt_shards(const struct merging *merging) {
    json_t *list = json_array();
    char *out = realpath(merging->out_dir, NULL), relative[2 * PATH_MAX];
    bool good = list && out;
    for (size_t i = 0; good && i < merging->count; i++) {
        const struct merge_shard *shard = &merging->shards[i];
        char *dir = realpath(shard->dir, NULL);
        if (dir)
            relative_path(out, dir, relative, sizeof relative);
        good = dir && json_array_append_new(
                          list, json_pack("{s:i, s:s, s:s, s:s}", "index", (int)shard->index, "dir",
                                          relative, "receipt_sha256", shard->receipt_sha256,
                                          "seal_sha256", shard->seal_sha256)) == 0;
        free(dir);
    }
    free(out);
    if (good)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *outputs_of(const struct merging *merging) {
    json_t *list = json_array();
    for (size_t i = 0; i < MERGE_FILES; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:s}", "file", merge_files[i], "sha256", merging->hashes[i]));
    return list;
}

/* Everything that is sealed besides the cells. */
static json_t *rest_of(const struct merging *merging) {
    const struct merge_shard *first = &merging->shards[0];
    return json_pack("{s:s, s:i, s:O, s:O, s:O, s:o, s:o}", "kind", receipt_kind, "schema",
                     (int)RECEIPT_SCHEMA, "run", merging->run, "request", first->request, "sources",
                     first->sources, "shards", merge_receipt_shards(merging), "outputs",
                     outputs_of(merging));
}

bool merge_receipt_end(struct merging *merging, struct merge_targets *targets) {
    char seal[SHA256_HEX_BYTES];
    json_t *rest = rest_of(merging);
    char *text =
        rest ? json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17)) : NULL;
    if (text) /* "cells" sorts before all of them; its brace has been put */
        sha256_put(&targets->seal, text + 1, strlen(text) - 1);
    sha256_end(&targets->seal, seal);
    free(text);
    char *outputs =
        json_dumps(json_object_get(rest, "outputs"), JSON_COMPACT | JSON_REAL_PRECISION(17));
    const bool good = text && outputs && seal[0];
    if (good)
        fprintf(
            targets->receipt,
            "],\n\"outputs\":%s,\n\"kind\":\"%s\",\n\"schema\":%d,\n\"seal_sha256\":\"%s\"\n}\n",
            outputs, receipt_kind, (int)RECEIPT_SCHEMA, seal);
    free(outputs);
    json_decref(rest);
    return good;
}
