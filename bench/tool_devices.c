/* --sweep --devices: one worker process a device, each with its shard, then one merged run. */
#include "bench/merge.h"
#include "bench/plan_hash.h"
#include "bench/shard.h"
#include "bench/tools.h"
#include "bench/workers.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4200, MOST_WORDS_MORE = 12 };

/* Devices to use, one worker each. */
struct chosen {
    enum kernel_device kind;
    int32_t index[OPTION_MOST_DEVICES];
    size_t count;
};

/* A worker's command line: the words of this one, and what is its own. */
struct command {
    char device[16], index[16], shard[32], threads[16], out[PATH_BYTES];
    char **words; /* owned; the words themselves are not */
};

static enum tb_status choose(const struct options *options, struct chosen *chosen,
                             struct tb_error *error) {
    char why[256];
    chosen->kind = tool_pick_device(options);
    const int32_t here = chosen->kind == KERNEL_DEVICE_CUDA ? device_cuda_count() : 1;
    if (chosen->kind == KERNEL_DEVICE_CPU && options->device == CHOOSE_AUTO)
        return tb_fail(error, TB_UNAVAILABLE,
                       "--devices: there is no GPU to use; --device cpu makes workers on the "
                       "host's processors");
    if (chosen->kind == KERNEL_DEVICE_CUDA && !device_cuda_usable(why, sizeof why))
        return tb_fail(error, TB_UNAVAILABLE, "--devices: %s", why);
    chosen->count = (size_t)(options->all_devices ? here : options->device_count);
    if (chosen->count > OPTION_MOST_DEVICES)
        chosen->count = OPTION_MOST_DEVICES;
    for (size_t i = 0; i < chosen->count; i++) {
        chosen->index[i] = options->all_devices ? (int32_t)i : options->devices[i];
        if (chosen->kind == KERNEL_DEVICE_CUDA && chosen->index[i] >= here)
            return tb_fail(error, TB_UNAVAILABLE,
                           "--devices: there is no GPU %d here: 0 to %d are visible",
                           chosen->index[i], here - 1);
    }
    return TB_OK;
}

/* Does the journal's last line say that its run ended? */
static bool journal_ended(const char *path) {
    char tail[64] = "";
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    if (fseek(file, -32, SEEK_END) != 0)
        rewind(file);
    tail[fread(tail, 1, sizeof tail - 1, file)] = '\0';
    fclose(file);
    return strstr(tail, "{\"end\":true}\n") != NULL;
}

/* May the workers begin in these folders? They check themselves too, but each alone: what one
 * refuses must not cost the others their finished results. */
static enum tb_status check_shards(const struct options *options, size_t count,
                                   struct tb_error *error) {
    const char *out = tool_out_folder(options);
    DIR *folder = opendir(out);
    const struct dirent *item;
    enum tb_status status = TB_OK;
    while (folder && status == TB_OK && (item = readdir(folder))) {
        char path[PATH_BYTES];
        int index = 0, of = 0, length = 0;
        if (sscanf(item->d_name, "shard-%d-of-%d%n", &index, &of, &length) != 2 ||
            item->d_name[length])
            continue;
        snprintf(path, sizeof path, "%s/%s/journal.jsonl", out, item->d_name);
        if (of != (int)count)
            status = tb_fail_at(error, TB_USAGE, out, 0, -1,
                                "holds %s, and this run has %zu shards: give as many devices as "
                                "that run had, another --out, or remove its folders",
                                item->d_name, count);
        else if (!options->resume && !options->force && access(path, F_OK) == 0 &&
                 !journal_ended(path))
            status = tb_fail_at(error, TB_USAGE, path, 0, -1,
                                "of an interrupted run: --resume goes on with it, --force starts "
                                "afresh, --out DIR leaves it alone");
    }
    if (folder)
        closedir(folder);
    return status;
}

/* The merged files go where no other run's are. */
static enum tb_status check_merged(const struct options *options, const struct plan *plan,
                                   struct tb_error *error) {
    char path[PATH_BYTES], hash[65];
    snprintf(path, sizeof path, "%s/journal.jsonl", tool_out_folder(options));
    FILE *file = options->force ? NULL : fopen(path, "re");
    if (!file)
        return TB_OK;
    json_t *head = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL);
    fclose(file);
    plan_hash_cells(plan, hash);
    const char *found = json_string_value(json_object_get(head, "plan"));
    const bool same = found && !strcmp(found, hash);
    const bool merged = json_is_true(json_object_get(head, "merge"));
    json_decref(head);
    if (same && (merged || journal_ended(path)))
        return TB_OK;
    return tb_fail_at(error, TB_USAGE, path, 0, -1,
                      "of another run, or of one that is not finished and has no shards: give a "
                      "new folder with --out, or --force to replace its results");
}

static bool command_make(const struct options *options, const struct chosen *chosen, size_t at,
                         struct command *command) {
    const bool cuda = chosen->kind == KERNEL_DEVICE_CUDA;
    const int count = options->word_count;
    command->words = calloc((size_t)count + MOST_WORDS_MORE, sizeof *command->words);
    if (!command->words)
        return false;
    snprintf(command->device, sizeof command->device, "%s", cuda ? "cuda" : "cpu");
    snprintf(command->index, sizeof command->index, "%d", chosen->index[at]);
    snprintf(command->shard, sizeof command->shard, "%zu/%zu", at + 1, chosen->count);
    snprintf(command->threads, sizeof command->threads, "%d",
             options->threads ? options->threads : workers_share(chosen->count));
    snprintf(command->out, sizeof command->out, "%s/shard-%zu-of-%zu", tool_out_folder(options),
             at + 1, chosen->count);
    memcpy(command->words, options->words, (size_t)count * sizeof *command->words);
    char *const more[] = {"--device", command->device, "--devices", command->index,
                          "--shard",  command->shard,  "--threads", command->threads,
                          "--out",    command->out};
    memcpy(command->words + count, more, sizeof more);
    return true;
}

/* Cells to gate, and blocks to take if all of them pass. */
static void count_steps(const struct options *options, const struct plan *plan,
                        const int32_t *shard_of, struct worker *workers) {
    for (size_t i = 0; i < plan->count; i++)
        workers[shard_of[i] - 1].steps +=
            1 + (plan->cells[i].timed && !options->gate_only ? (size_t)plan->timing.blocks : 0);
}

static enum tb_status describe_workers(const struct options *options, const struct chosen *chosen,
                                       const struct plan *plan, struct command *commands,
                                       struct worker *workers, struct tb_error *error) {
    int64_t *cost_ns = calloc(plan->count, sizeof *cost_ns);
    int32_t *shard_of = calloc(plan->count, sizeof *shard_of);
    enum tb_status status = TB_OK;
    bool good = cost_ns && shard_of;
    for (size_t i = 0; good && i < chosen->count; i++) {
        good = command_make(options, chosen, i, &commands[i]);
        snprintf(workers[i].label, sizeof workers[i].label, "%s:%d", commands[i].device,
                 chosen->index[i]);
        workers[i].words = commands[i].words;
    }
    if (!good)
        status = tb_fail(error, TB_NO_MEMORY, "no memory for %zu workers", chosen->count);
    if (status == TB_OK) {
        shard_costs(plan, cost_ns);
        status = shard_assign(plan, cost_ns, (int32_t)chosen->count, shard_of, error);
    }
    if (status == TB_OK)
        count_steps(options, plan, shard_of, workers);
    free(cost_ns);
    free(shard_of);
    return status;
}

/* All runs are whole: one run of them, as if there had been one. */
static int merge_workers(const struct options *options, const struct chosen *chosen,
                         const struct command *commands, const struct worker *workers,
                         const char *profile_dir) {
    const char *dirs[OPTION_MOST_DEVICES];
    struct merge_result result;
    struct tb_error error = TB_ERROR_INIT;
    for (size_t i = 0; i < chosen->count; i++)
        dirs[i] = commands[i].out;
    const struct merge_request request = {.dirs = dirs,
                                          .dir_count = chosen->count,
                                          .out_dir = tool_out_folder(options),
                                          .profile_dir = profile_dir,
                                          .force = options->force};
    if (merge_runs(&request, &result, &error) != TB_OK)
        return tool_fail(&error);
    tool_say_merged(&result, tool_out_folder(options));
    int exit_code = merge_exit_code(&result);
    for (size_t i = 0; i < chosen->count; i++)
        if (workers[i].exit_code == tb_exit_code(TB_USAGE)) /* the rest ran; it has said what */
            exit_code = workers[i].exit_code;
    return tool_finish_output(exit_code);
}

/* The gravest reason why something is missing; workers that were killed count as interrupted. */
static int missing_code(const struct worker *workers, size_t count, size_t *missing) {
    int code = tb_exit_code(TB_INTERRUPTED);
    *missing = 0;
    for (size_t i = 0; i < count; i++) {
        if (workers[i].finished)
            continue;
        ++*missing;
        if (!workers[i].signal && workers[i].exit_code >= 2 && workers[i].exit_code < code)
            code = workers[i].exit_code;
    }
    return code;
}

static int run_workers(const struct options *options, const struct chosen *chosen,
                       const struct tool_plan *resolved) {
    struct tb_error error = TB_ERROR_INIT;
    struct command *commands = calloc(chosen->count, sizeof *commands);
    struct worker *workers = calloc(chosen->count, sizeof *workers);
    size_t missing = 0;
    enum tb_status status =
        commands && workers
            ? describe_workers(options, chosen, &resolved->plan, commands, workers, &error)
            : tb_fail(&error, TB_NO_MEMORY, "no memory for %zu workers", chosen->count);
    if (status == TB_OK) {
        for (size_t i = 0; i < chosen->count; i++)
            fprintf(stderr, "%s: shard %s into %s\n", workers[i].label, commands[i].shard,
                    commands[i].out);
        status = workers_run(workers, chosen->count, stderr, tool_catch_stop(), &error);
    }
    int exit_code = 0;
    if (status == TB_OK)
        exit_code = missing_code(workers, chosen->count, &missing);
    else
        exit_code = tool_fail(&error);
    if (status == TB_OK && missing)
        fprintf(stderr,
                "bench_topp: %zu of %zu workers did not finish; what was finished is kept in %s, "
                "--resume runs what is missing\n",
                missing, chosen->count, tool_out_folder(options));
    else if (status == TB_OK)
        exit_code = merge_workers(options, chosen, commands, workers, resolved->profile_dir);
    for (size_t i = 0; commands && i < chosen->count; i++)
        free(commands[i].words);
    free(commands);
    free(workers);
    return exit_code;
}

int tool_devices(const struct options *options) {
    struct tb_error error = TB_ERROR_INIT;
    struct chosen chosen = {0};
    struct tool_plan resolved = {0};
    enum tb_status status = choose(options, &chosen, &error);
    if (status == TB_OK)
        status = tool_resolve_whole(options, chosen.kind, false, &resolved, &error);
    const size_t inputs = status == TB_OK ? shard_inputs(&resolved.plan) : 0;
    if (status == TB_OK && inputs < chosen.count) {
        fprintf(stderr,
                "devices: the first %zu of %zu, as there are no more inputs and cells of one "
                "input stay together\n",
                inputs, chosen.count);
        chosen.count = inputs;
    }
    if (status == TB_OK && chosen.count > 1)
        status = check_shards(options, chosen.count, &error);
    if (status == TB_OK && chosen.count > 1)
        status = check_merged(options, &resolved.plan, &error);
    int exit_code = 0;
    if (status != TB_OK)
        exit_code = tool_fail(&error);
    else if (chosen.count <= 1)
        exit_code = tool_sweep_on(options, chosen.kind, chosen.index[0]);
    else
        exit_code = run_workers(options, &chosen, &resolved);
    tool_plan_free(&resolved);
    return exit_code;
}
