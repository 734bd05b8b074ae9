#include "bench/merge.h"

#include "bench/journal.h"
#include "bench/merge_check.h"
#include "bench/merge_write.h"
#include "bench/plan_again.h"
#include "bench/plan_hash.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char receipt_name[] = "receipt.json";

static void merging_free(struct merging *merging) {
    for (size_t i = 0; i < merging->count; i++)
        merge_shard_free(&merging->shards[i]);
    free(merging->shards);
    free(merging->owner);
    plan_free(&merging->plan);
    plugin_set_free(&merging->plugins);
    json_decref(merging->run);
    json_decref(merging->summary);
    *merging = (struct merging){.shards = NULL};
}

/* Variants that no registry lists, as the shards describe them. */
static enum tb_status load_extras(struct merging *merging, struct plan_again *again,
                                  struct tb_error *error) {
    const json_t *run = merging->shards[0].run;
    const char *device = json_string_value(json_object_get(run, "device_kind"));
    const enum kernel_device kind =
        device && !strcmp(device, "cuda") ? KERNEL_DEVICE_CUDA : KERNEL_DEVICE_CPU;
    enum tb_status status = external_list_from_json(json_object_get(run, "externals"), kind,
                                                    &merging->externals, error);
    if (status == TB_OK)
        status = plugin_set_again(json_object_get(run, "plugins"), &merging->plugins, error);
    if (status == TB_OK)
        status = plugin_set_join(&merging->plugins, merging->externals.extras,
                                 merging->externals.count, error);
    again->extras = merging->plugins.extras;
    again->extra_count = merging->plugins.extra_count;
    return status;
}

/* The list that was cut into shards, resolved again. */
static enum tb_status load_plan(struct merging *merging, const struct merge_request *request,
                                struct tb_error *error) {
    const struct merge_shard *first = &merging->shards[0];
    const json_t *part = json_object_get(first->run, "shard");
    const char *bound =
        json_string_value(json_object_get(json_object_get(first->run, "profile"), "sha256"));
    const char *list = json_string_value(json_object_get(part, "list_sha256"));
    struct plan_again again = {.request = first->request,
                               .receipt_dir = first->dir,
                               .profile_dir = request->profile_dir ? request->profile_dir : ".",
                               .profile_dir_wins = request->profile_dir_wins};
    char hex[SHA256_HEX_BYTES];
    if (!plan_again_profile(&again))
        return tb_fail_at(error, TB_UNREADABLE, again.profile, 0, -1,
                          "the profile of the shards is not here: the merged files follow its "
                          "order; --profile-dir names the folder it is in");
    enum tb_status status = sha256_file(again.profile, hex, error);
    if (status == TB_OK && (!bound || strcmp(hex, bound) != 0))
        return tb_fail_at(error, TB_UNREADABLE, again.profile, 0, -1,
                          "is another version of the profile than the shards were run with "
                          "(SHA-256 %.12s..., theirs is %.12s...): --profile-dir names the folder "
                          "of theirs",
                          hex, bound ? bound : "missing");
    if (status == TB_OK && !plan_again_input(&again))
        return tb_fail_at(error, TB_UNREADABLE, again.captured_dir, 0, -1,
                          "the file that the shards were run on (--input) is not here: put it "
                          "beside the receipt of %s",
                          first->dir);
    if (status == TB_OK)
        status = load_extras(merging, &again, error);
    if (status == TB_OK)
        status = plan_again_load(&again, &merging->plan, error);
    if (status == TB_OK)
        status = plan_hash_names(&merging->plan, hex, error);
    if (status == TB_OK && (!list || strcmp(hex, list) != 0))
        status = tb_fail_at(error, TB_UNREADABLE, again.profile, 0, -1,
                            "resolves to another list of cells here than the shards were cut "
                            "from: merge with the version that made them");
    return status;
}

static enum tb_status place_cells(struct merging *merging, struct tb_error *error) {
    const size_t count = merging->plan.count;
    merging->owner = malloc((count + 1) * sizeof *merging->owner);
    if (!merging->owner)
        return tb_fail(error, TB_NO_MEMORY, "no memory to merge %zu cells", count);
    for (size_t i = 0; i < count; i++)
        merging->owner[i] = -1;
    enum tb_status status = TB_OK;
    for (size_t i = 0; status == TB_OK && i < merging->count; i++)
        status =
            merge_place(&merging->shards[i], &merging->plan, (int32_t)i, merging->owner, error);
    for (size_t i = 0; status == TB_OK && i < count; i++)
        if (merging->owner[i] < 0)
            status = tb_fail(error, TB_UNREADABLE,
                             "no shard has the cell '%s': were they made by versions that cut the "
                             "list differently?",
                             merging->plan.cells[i].name);
    return status;
}

static bool same_folder(const char *left, const char *right) {
    struct stat a, b;
    return stat(left, &a) == 0 && stat(right, &b) == 0 && a.st_ino == b.st_ino &&
           a.st_dev == b.st_dev;
}

/* Everything that can be refused without writing. */
static enum tb_status prepare(struct merging *merging, const struct merge_request *request,
                              struct tb_error *error) {
    for (size_t i = 0; i < merging->count; i++)
        if (same_folder(merging->shards[i].dir, merging->out_dir))
            return tb_fail_at(error, TB_USAGE, merging->out_dir, 0, -1,
                              "is a folder to merge and the folder to write: give another --out");
    enum tb_status status = merge_check(merging->shards, merging->count, error);
    if (status == TB_OK)
        status = merge_heads(merging, error);
    if (status == TB_OK)
        status = load_plan(merging, request, error);
    if (status == TB_OK)
        status = place_cells(merging, error);
    if (status != TB_OK)
        return status;
    merging->run = merge_run(merging->shards, merging->count, &merging->plan);
    merging->summary = merge_summary(merging->shards, merging->count);
    if (!merging->run || !merging->summary)
        return tb_fail(error, TB_NO_MEMORY, "no memory to merge %zu shards", merging->count);
    return TB_OK;
}

static json_t *journal_head(const struct merging *merging) {
    const json_t *run = merging->run;
    return json_pack("{s:s, s:O, s:O, s:O, s:O, s:O, s:n, s:O, s:O, s:O, s:O, s:b, s:s, s:b}",
                     "schema", "topp-bench.journal/1", "id", json_object_get(run, "id"), "date",
                     json_object_get(run, "date"), "profile",
                     json_object_get(json_object_get(run, "profile"), "sha256"), "plan",
                     json_object_get(run, "plan_sha256"), "sources",
                     json_object_get(run, "sources_sha256"), "shard", "externals",
                     json_object_get(run, "externals"), "plugins", json_object_get(run, "plugins"),
                     "seed", json_object_get(run, "seed"), "slices", json_object_get(run, "slices"),
                     "gate_only", (int)merging->shards[0].gate_only, "device",
                     merging->shards[0].model, "merge", 1);
}

/* An unfinished merge holds nothing that its shards do not. */
static bool holds_broken_merge(const char *out_dir) {
    char path[4200];
    bool merge = false;
    snprintf(path, sizeof path, "%s/journal.jsonl", out_dir);
    FILE *file = fopen(path, "re");
    json_t *head = file ? json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    json_t *next = file && head ? json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    merge = json_is_true(json_object_get(head, "merge")) && !next;
    json_decref(head);
    json_decref(next);
    if (file)
        fclose(file);
    return merge;
}

static enum tb_status open_journal(const struct merging *merging, bool force,
                                   struct journal **journal, struct tb_error *error) {
    static const char *const binding[] = {"schema", "profile",   "plan",    "sources",
                                          "shard",  "externals", "plugins", "seed",
                                          "slices", "gate_only", "device",  NULL};
    json_t *head = journal_head(merging);
    const struct journal_options options = {.folder = merging->out_dir,
                                            .header = head,
                                            .binding = binding,
                                            .force = force || holds_broken_merge(merging->out_dir)};
    const enum tb_status status = head ? journal_open(&options, journal, error)
                                       : tb_fail(error, TB_NO_MEMORY, "no memory for the journal");
    json_decref(head);
    return status;
}

/* The files of one merged run while they are written. */
struct writing {
    struct merging *merging;
    struct journal *journal;
    struct merge_targets targets;
    struct merge_output benchmark;
    struct tb_error benchmark_error;
    enum tb_status benchmark_status;
};

static void *write_benchmark(void *context) {
    struct writing *writing = context;
    writing->benchmark_status =
        merge_benchmark(writing->merging, &writing->benchmark, &writing->benchmark_error);
    return NULL;
}

/* benchmark.json beside the others: it shares nothing with them that changes. */
static enum tb_status write_streams(struct writing *writing, struct tb_error *error) {
    pthread_t thread;
    writing->benchmark_error = (struct tb_error)TB_ERROR_INIT;
    const bool beside = pthread_create(&thread, NULL, write_benchmark, writing) == 0;
    enum tb_status status = merge_cells(writing->merging, &writing->targets, error);
    if (beside)
        pthread_join(thread, NULL);
    else if (status == TB_OK)
        write_benchmark(writing);
    if (status == TB_OK && writing->benchmark_status != TB_OK) {
        *error = writing->benchmark_error;
        status = writing->benchmark_status;
    }
    return status;
}

static enum tb_status begin(struct writing *writing, const char *name, FILE **stream,
                            struct tb_error *error) {
    char path[JOURNAL_PATH_BYTES];
    return journal_begin_file(writing->journal, name, path, stream, error);
}

static enum tb_status publish(struct writing *writing, const char *name, FILE **stream,
                              struct tb_error *error) {
    FILE *file = *stream;
    *stream = NULL;
    return journal_publish(writing->journal, name, file, error);
}

static enum tb_status write_files(struct writing *writing, struct tb_error *error) {
    struct merge_targets *targets = &writing->targets;
    struct merging *merging = writing->merging;
    struct merge_output *outputs[MERGE_FILES] = {&targets->results, &targets->table,
                                                 &writing->benchmark};
    enum tb_status status = begin(writing, receipt_name, &targets->receipt, error);
    for (size_t i = 0; status == TB_OK && i < MERGE_FILES; i++) {
        status = begin(writing, merge_files[i], &outputs[i]->file, error);
        if (status == TB_OK && !merge_output_begin(outputs[i]))
            status = tb_fail(error, TB_NO_MEMORY, "no memory for the files of the merge");
    }
    if (status == TB_OK)
        status = write_streams(writing, error);
    for (size_t i = 0; i < MERGE_FILES; i++) {
        merge_output_end(outputs[i], merging->hashes[i]);
        if (status == TB_OK && outputs[i]->cause)
            status = tb_fail_at(error, TB_IO, merging->out_dir, 0, -1, "cannot write %s: %s",
                                merge_files[i], strerror(outputs[i]->cause));
    }
    if (status == TB_OK && !merge_receipt_end(merging, targets))
        status = tb_fail(error, TB_NO_MEMORY, "no memory for the receipt");
    for (size_t i = 0; status == TB_OK && i < MERGE_FILES; i++)
        status = publish(writing, merge_files[i], &outputs[i]->file, error);
    if (status == TB_OK)
        status = publish(writing, receipt_name, &targets->receipt, error);
    if (status == TB_OK)
        status = journal_append(writing->journal, json_pack("{s:b}", "end", 1), error);
    for (size_t i = 0; i < MERGE_FILES; i++)
        if (outputs[i]->file)
            journal_discard(writing->journal, merge_files[i], outputs[i]->file);
    if (targets->receipt)
        journal_discard(writing->journal, receipt_name, targets->receipt);
    if (targets->seal.context) { /* a merge that failed on its way */
        char unused[SHA256_HEX_BYTES];
        sha256_end(&targets->seal, unused);
    }
    return status;
}

static int64_t count_in(const struct merging *merging, const char *name) {
    return json_integer_value(json_object_get(merging->summary, name));
}

static enum tb_status write_run(struct merging *merging, bool force, struct merge_result *result,
                                struct tb_error *error) {
    struct writing writing = {.merging = merging};
    enum tb_status status = open_journal(merging, force, &writing.journal, error);
    if (status == TB_OK)
        status = write_files(&writing, error);
    journal_close(writing.journal);
    if (status != TB_OK)
        return status;
    result->runs++;
    result->shards += merging->count;
    result->cells += merging->plan.count;
    result->unexpected += (size_t)count_in(merging, "unexpected");
    result->unmeasured += (size_t)count_in(merging, "unmeasured");
    return TB_OK;
}

/* "NVIDIA H200" -> "nvidia-h200". */
static void folder_of_model(const char *model, char *text, size_t bytes) {
    size_t used = 0;
    for (; *model && used + 1 < bytes; model++) {
        if (isalnum((unsigned char)*model))
            text[used++] = (char)tolower((unsigned char)*model);
        else if (used > 0 && text[used - 1] != '-')
            text[used++] = '-';
    }
    while (used > 0 && text[used - 1] == '-')
        used--;
    text[used] = '\0';
}

/* Moves the shards of the first one's model (all when not separate) to the front; how many. */
static size_t gather_model(struct merge_shard *shards, size_t count, bool separate) {
    size_t gathered = 1;
    for (size_t i = 1; i < count; i++) {
        if (separate && strcmp(shards[i].model, shards[0].model) != 0)
            continue;
        const struct merge_shard moved = shards[i];
        shards[i] = shards[gathered];
        shards[gathered++] = moved;
    }
    return gathered;
}

/* Splits the shards that were read into one merge for each model. */
static enum tb_status split(const struct merge_request *request, struct merge_shard *shards,
                            struct merging *merges, size_t *merge_count, struct tb_error *error) {
    for (size_t at = 0; at < request->dir_count;) {
        const size_t count =
            gather_model(shards + at, request->dir_count - at, request->separate_devices);
        struct merging *merging = &merges[*merge_count];
        char model[200];
        merging->shards = calloc(count, sizeof *shards);
        if (!merging->shards)
            return tb_fail(error, TB_NO_MEMORY, "no memory for %zu shards", count);
        memcpy(merging->shards, shards + at, count * sizeof *shards);
        memset(shards + at, 0, count * sizeof *shards);
        merging->count = count;
        folder_of_model(merging->shards[0].model, model, sizeof model);
        snprintf(merging->out_dir, sizeof merging->out_dir,
                 request->separate_devices ? "%s/%s" : "%s", request->out_dir, model);
        (*merge_count)++;
        at += count;
    }
    return TB_OK;
}

enum tb_status merge_runs(const struct merge_request *request, struct merge_result *result,
                          struct tb_error *error) {
    const size_t count = request->dir_count;
    struct merge_shard *shards = calloc(count + 1, sizeof *shards);
    struct merging *merges = calloc(count + 1, sizeof *merges);
    size_t merge_count = 0;
    enum tb_status status = TB_OK;
    memset(result, 0, sizeof *result);
    if (!shards || !merges || !count)
        status = tb_fail(error, count ? TB_NO_MEMORY : TB_USAGE, "no folders to merge");
    for (size_t i = 0; status == TB_OK && i < count; i++)
        status = merge_shard_read(request->dirs[i], &shards[i], error);
    if (status == TB_OK)
        status = split(request, shards, merges, &merge_count, error);
    for (size_t i = 0; status == TB_OK && i < merge_count; i++)
        status = prepare(&merges[i], request, error);
    for (size_t i = 0; status == TB_OK && i < merge_count; i++)
        status = write_run(&merges[i], request->force, result, error);
    for (size_t i = 0; merges && i < merge_count; i++)
        merging_free(&merges[i]);
    for (size_t i = 0; shards && i < count; i++)
        merge_shard_free(&shards[i]);
    free(merges);
    free(shards);
    return status;
}

int merge_exit_code(const struct merge_result *result) {
    return result->unexpected ? 1 : result->unmeasured ? 3 : 0;
}
