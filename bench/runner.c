#include "bench/run_external.h"

#include "bench/plan_hash.h"
#include "bench/sources.h"
#include "bench/summary.h"

#include <openssl/rand.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static const int64_t MOST_CACHE_BYTES = (int64_t)4 << 30;

int sweep_exit_code(const struct run_result *result) {
    return result->unexpected ? 1 : result->unmeasured ? 3 : 0;
}

static void cpu_model(char *text, size_t text_bytes) {
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];
    snprintf(text, text_bytes, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        char *value = strchr(line, ':');
        if (!strncmp(line, "model name", 10) && value) {
            value[strcspn(value, "\n")] = '\0';
            snprintf(text, text_bytes, "%s", value + 2);
            break;
        }
    }
    if (file)
        fclose(file);
}

static json_t *describe_host(void) {
    struct utsname system;
    char cpu[200];
    cpu_model(cpu, sizeof cpu);
    if (uname(&system) != 0)
        memset(&system, 0, sizeof system);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I}", "name", system.nodename, "system",
                     system.sysname, "release", system.release, "machine", system.machine, "cpu",
                     cpu, "processors", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "memory_bytes",
                     (json_int_t)sysconf(_SC_PHYS_PAGES) * (json_int_t)sysconf(_SC_PAGESIZE));
}

static json_t *describe_build(const struct build_info *build) {
    if (!build)
        return json_null();
    json_t *commit = build->commit[0] ? json_string(build->commit) : json_null();
    return json_pack("{s:s, s:o, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "version", build->version,
                     "commit", commit, "build_type", build->build_type, "c_compiler",
                     build->c_compiler, "c_flags", build->c_flags, "cxx_compiler",
                     build->cxx_compiler, "cxx_flags", build->cxx_flags, "cuda_compiler",
                     build->cuda_compiler, "cuda_flags", build->cuda_flags);
}

static void describe_run(struct run_state *state) {
    const struct sweep_run *run = state->run;
    const struct plan *plan = state->plan;
    struct run_info *info = &state->result->info;
    unsigned char random[16] = {0};
    const time_t now = time(NULL);
    struct tm utc;
    RAND_bytes(random, sizeof random);
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(info->id + 2 * i, 3, "%02x", random[i]);
    strftime(info->date, sizeof info->date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    snprintf(info->profile_name, sizeof info->profile_name, "%s", plan->profile_name);
    memcpy(info->profile_sha256, plan->profile_sha256, sizeof info->profile_sha256);
    plan_hash_cells(plan, info->plan_sha256);
    snprintf(info->sources_sha256, sizeof info->sources_sha256, "%s",
             run->sources_sha256 ? run->sources_sha256 : "");
    snprintf(info->profile_file, sizeof info->profile_file, "%s",
             run->profile_file ? run->profile_file : "");
    snprintf(info->input, sizeof info->input, "%s", run->input ? run->input : "");
    info->shard = plan->shard;
    info->seed = plan->seed;
    info->unfrozen = plan->unfrozen;
    info->subset = run->subset;
    info->slices = run->slices;
    snprintf(info->device_kind, sizeof info->device_kind, "%s", plan->device);
    info->timing = plan->timing;
    info->limits = plan->limits;
    info->device = state->device->ops->describe(state->device);
    info->host = describe_host();
    info->externals = external_list_to_json(run->externals);
    info->build = describe_build(run->build);
    info->plugins = plugin_set_to_json(run->plugins);
}

static json_t *journal_head(const struct run_state *state) {
    const struct run_info *info = &state->result->info;
    const json_t *model = json_object_get(info->device, "model");
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:O, s:O, s:I, s:i, s:b, s:O?}", "schema",
                     "topp-bench.journal/1", "id", info->id, "date", info->date, "profile",
                     info->profile_sha256, "plan", info->plan_sha256, "sources",
                     info->sources_sha256, "shard", shard_to_json(&info->shard), "externals",
                     info->externals, "plugins", info->plugins, "seed", (json_int_t)info->seed,
                     "slices", (int)info->slices, "gate_only", (int)state->run->gate_only, "device",
                     model);
}

static enum tb_status open_journal(struct run_state *state) {
    static const char *const binding[] = {"schema",  "profile", "plan", "externals", "plugins",
                                          "sources", "shard",   "seed", "slices",    "gate_only",
                                          "device",  "merge",   NULL};
    json_t *header = journal_head(state);
    const struct journal_options options = {
        .folder = state->run->out_dir,
        .header = header,
        .binding = binding,
        .resume = state->run->resume,
        .force = state->run->force,
        .most_bytes = state->plan->limits.artifact_bytes,
    };
    const enum tb_status status = journal_open(&options, &state->journal, state->error);
    json_decref(header);
    if (status != TB_OK || !journal_resumed(state->journal))
        return status;
    struct run_info *info = &state->result->info;
    const json_t *first = journal_header(state->journal);
    const char *id = json_string_value(json_object_get(first, "id"));
    const char *date = json_string_value(json_object_get(first, "date"));
    snprintf(info->id, sizeof info->id, "%s", id ? id : "");
    snprintf(info->date, sizeof info->date, "%s", date ? date : "");
    info->resumed = true;
    const enum tb_status replayed = journal_replay(state);
    if (replayed == TB_OK)
        external_forget_halves(state);
    return replayed;
}

typedef enum tb_status writer(const struct run_result *result, FILE *stream,
                              struct tb_error *error);

static enum tb_status write_file(struct run_state *state, const char *name, writer *write) {
    char path[JOURNAL_PATH_BYTES];
    FILE *stream = NULL;
    enum tb_status status = journal_begin_file(state->journal, name, path, &stream, state->error);
    if (status != TB_OK)
        return status;
    status = write(state->result, stream, state->error);
    if (status == TB_OK)
        return journal_publish(state->journal, name, stream, state->error);
    journal_discard(state->journal, name, stream);
    return status;
}

enum tb_status run_write_files(struct run_state *state) {
    enum tb_status status = write_file(state, "results.json", writer_json);
    if (status == TB_OK)
        status = write_file(state, "results.tsv", writer_tsv);
    if (status == TB_OK)
        status = journal_append(state->journal, json_pack("{s:b}", "end", 1), state->error);
    return status;
}

enum tb_status run_open_records(struct run_state *state) {
    struct run_result *result = state->result;
    const size_t count = state->plan->count;
    result->cells = calloc(count, sizeof *result->cells);
    state->output_sha256 = calloc(count, sizeof *state->output_sha256);
    state->boundaries = calloc(count, sizeof *state->boundaries);
    if (!result->cells || !state->output_sha256 || !state->boundaries)
        return tb_fail(state->error, TB_NO_MEMORY, "no memory for %zu cells", count);
    result->count = count;
    for (size_t i = 0; i < count; i++) {
        record_begin(&result->cells[i], &state->plan->cells[i]);
    }
    const int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE) / 4;
    state->input_budget = state->run->cache_bytes > 0 ? state->run->cache_bytes
                          : memory < MOST_CACHE_BYTES ? memory
                                                      : MOST_CACHE_BYTES;
    return TB_OK;
}

enum tb_status run_open(struct run_state *state) {
    if (state->plan->listing_only)
        return tb_fail(state->error, TB_UNAVAILABLE,
                       "this build has no kernels for the %s device: build with nvcc on PATH",
                       state->plan->device);
    const enum tb_status status = run_open_records(state);
    if (status != TB_OK)
        return status;
    describe_run(state);
    return open_journal(state);
}

void run_close(struct run_state *state) {
    plugin_pool_free(state->pool);
    run_inputs_free(state);
    run_slots_free(state);
    external_runs_free(state);
    journal_close(state->journal);
    free(state->output_sha256);
    for (size_t i = 0; state->boundaries && i < state->plan->count; i++)
        free(state->boundaries[i]);
    free(state->boundaries);
}

enum tb_status sweep_execute(const struct sweep_run *run, struct run_result *result,
                             struct tb_error *error) {
    struct run_state *state = calloc(1, sizeof *state);
    memset(result, 0, sizeof *result);
    if (!state)
        return tb_fail(error, TB_NO_MEMORY, "no memory for a run");
    *state = (struct run_state){
        .run = run, .plan = run->plan, .device = run->device, .result = result, .error = error};
    enum tb_status status = run_open(state);
    result->whole = status == TB_OK && run_is_whole(state);
    if (status == TB_OK && !result->whole)
        status = run_gate_all(state);
    if (status == TB_OK && !result->whole && !run_stopped(state))
        status = run_time_all(state);
    record_finish_run(result);
    result->info.oracle_cache = oracle_cache_to_json(run->oracle_cache);
    if (status == TB_OK && !result->whole && run_stopped(state))
        status = tb_fail(error, TB_INTERRUPTED,
                         "interrupted: %s keeps what was finished; --resume goes on with it",
                         run->out_dir);
    if (status == TB_OK && !result->whole)
        status = run_write_files(state);
    if (run->table && (status == TB_OK || status == TB_INTERRUPTED))
        writer_table(result, run->table, run->color);
    run_close(state);
    free(state);
    return status;
}
