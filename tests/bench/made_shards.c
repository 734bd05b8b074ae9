/* Finished runs of any size without running anything: cells of a profile with made-up verdicts and
 * samples, written by bench_topp's own writers, each with its receipt. For tests and figures of
 * what only reads results.
 *
 * usage: made_shards PROFILE.json OUT SHARDS SAMPLES SEED [UUID...]
 * OUT/K holds shard K of SHARDS (0: OUT holds the whole run). SAMPLES: in each of five blocks.
 * Runs of one SEED are alike to the last bit, of two differ by noise. UUID: of the shards' devices,
 * one behind the other, over and over; one whose last letter is b is 1% slower than one with a, and
 * so on. */
#include "bench/options.h"
#include "bench/plan_hash.h"
#include "bench/receipt_make.h"
#include "bench/record.h"
#include "bench/shard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BLOCKS = 5 };

struct making {
    const char *profile, *out;
    int32_t shards, samples;
    uint64_t seed;
    char **uuids;
    int32_t uuid_count;
};

static void stop(const char *what, const struct tb_error *error) {
    char text[1280] = "";
    fprintf(stderr, "made_shards: %s %s\n", what,
            error ? tb_error_text(error, text, sizeof text) : "");
    exit(2);
}

/* splitmix64: a word of the stream that `state` stands for. */
static uint64_t word_of(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double share_of(uint64_t *state) {
    return (double)(word_of(state) >> 11) * 0x1p-53;
}

static uint64_t name_state(const char *name) {
    uint64_t state = 0xcbf29ce484222325u;
    for (; *name; name++)
        state = (state ^ (unsigned char)*name) * 0x100000001b3u;
    return state;
}

static void make_hash(uint64_t state, char hex[65]) {
    for (int i = 0; i < 4; i++)
        snprintf(hex + 16 * i, 17, "%016llx", (unsigned long long)word_of(&state));
}

static void make_draws(struct cell_record *record, uint64_t state) {
    record->draw_count = record->cell->draws;
    record->draws = calloc((size_t)record->draw_count, sizeof *record->draws);
    record->rows = record->cell->batch * record->draw_count;
    record->rows_equal = record->rows;
    for (int32_t d = 0; record->draws && d < record->draw_count; d++) {
        struct draw_record *draw = &record->draws[d];
        make_hash(state + 2 * (uint64_t)d, draw->input_sha256);
        make_hash(state + 2 * (uint64_t)d + 1, draw->mask_sha256);
        draw->kept = draw->oracle = (int64_t)(state % 100 + 1);
        draw->rows_equal = record->cell->batch;
        record->kept += draw->kept;
        record->oracle += draw->oracle;
    }
}

/* Whole nanoseconds, as CUPTI gives them. */
static void make_samples(const struct making *making, struct cell_record *record, uint64_t state,
                         double slower) {
    const size_t count = (size_t)making->samples * BLOCKS;
    const double base = (2000.0 + (double)(state % 50000)) * slower;
    uint64_t noise = state ^ (making->seed * 0x9e3779b97f4a7c15u);
    const double process = 1.0 + 0.004 * (share_of(&noise) - 0.5);
    record->samples = calloc(count + 1, sizeof *record->samples);
    record->sample_count = count;
    record->blocks = BLOCKS;
    for (size_t i = 0; i < count; i++) {
        struct sample *sample = &record->samples[i];
        sample->block = (int32_t)i / making->samples;
        sample->draw = (int32_t)i % record->cell->draws;
        sample->time_ns = floor(base * process * (1.0 + 0.01 * share_of(&noise)));
        sample->busy_ns = sample->time_ns - 100.0;
        sample->sm_mhz = 1980.0 - (double)(word_of(&noise) % 1000) / 128.0;
        sample->cycles = floor(sample->time_ns * sample->sm_mhz / 1000.0);
    }
}

static void make_record(const struct making *making, const struct cell *cell,
                        struct cell_record *record, double slower) {
    uint64_t state = name_state(cell->name);
    *record =
        (struct cell_record){.cell = cell, .gated = true, .verdict = GATE_ACCEPTED, .draw = -1};
    record->row = record->token = record->row_kept = record->row_oracle = -1;
    record->events_ns = NAN;
    make_draws(record, state);
    if (cell->expect == EXPECT_REJECT) {
        record->verdict = GATE_REJECTED;
        snprintf(record->rule, sizeof record->rule, "%s",
                 cell->expect_rule[0] ? cell->expect_rule : "empty_mask");
        snprintf(record->reason, sizeof record->reason, "made up");
    } else if (cell->timed) {
        make_samples(making, record, state, slower);
    }
}

static const char *uuid_of(const struct making *making, int32_t shard) {
    return making->uuid_count ? making->uuids[(shard > 0 ? shard - 1 : 0) % making->uuid_count]
                              : NULL;
}

static double slower_of(const struct making *making, int32_t shard) {
    const char *uuid = uuid_of(making, shard);
    const char last = uuid && *uuid ? uuid[strlen(uuid) - 1] : 'a';
    return last >= 'a' && last <= 'z' ? 1.0 + 0.01 * (last - 'a') : 1.0;
}

static json_t *device_of(const struct making *making, int32_t shard) {
    json_t *device = json_pack("{s:s, s:s, s:i, s:s, s:i}", "kind", "cpu", "model", "Made-up 1",
                               "processors", 2, "timer", "clock_monotonic", "sm_count", 132);
    if (uuid_of(making, shard))
        json_object_set_new(device, "uuid", json_string(uuid_of(making, shard)));
    return device;
}

static void make_info(const struct making *making, const struct plan *plan, struct run_info *info) {
    uint64_t state = making->seed + (uint64_t)plan->shard.index;
    snprintf(info->id, sizeof info->id, "%016llx%016llx", (unsigned long long)word_of(&state),
             (unsigned long long)word_of(&state));
    snprintf(info->date, sizeof info->date, "2026-01-31T12:34:%02dZ", (int)plan->shard.index % 60);
    snprintf(info->profile_name, sizeof info->profile_name, "%s", plan->profile_name);
    memcpy(info->profile_sha256, plan->profile_sha256, sizeof info->profile_sha256);
    plan_hash_cells(plan, info->plan_sha256);
    sources_hash(info->sources_sha256);
    info->shard = plan->shard;
    info->seed = plan->seed;
    snprintf(info->device_kind, sizeof info->device_kind, "%s", plan->device);
    info->timing = plan->timing;
    info->limits = plan->limits;
    info->device = device_of(making, plan->shard.index);
    info->host = json_pack("{s:s, s:i}", "name", "made", "processors", 2);
    info->build = json_pack("{s:s, s:s}", "version", "0", "commit", "0123456789");
}

typedef enum tb_status writer(const struct run_result *result, FILE *stream,
                              struct tb_error *error);

static FILE *open_in(const char *dir, const char *name) {
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *stream = fopen(path, "w");
    if (!stream)
        stop(path, NULL);
    return stream;
}

static void write_with(writer *write, const struct run_result *result, const char *dir,
                       const char *name) {
    struct tb_error error = TB_ERROR_INIT;
    FILE *stream = open_in(dir, name);
    if (write(result, stream, &error) != TB_OK || fclose(stream) != 0)
        stop(name, &error);
}

static void put_entry(FILE *stream, const struct run_result *result, size_t cell, int repetition,
                      const char *aggregate) {
    const struct cell_record *record = &result->cells[cell];
    char name[CELL_NAME_BYTES + 64];
    snprintf(name, sizeof name, "%s/iterations:1/repeats:%d/manual_time", record->cell->name,
             BLOCKS);
    fprintf(stream,
            "    {\n      \"name\": \"%s%s\",\n      \"family_index\": %zu,\n"
            "      \"per_family_instance_index\": 0,\n      \"run_name\": \"%s\",\n"
            "      \"run_type\": \"%s\",\n      \"repetitions\": %d,\n",
            name, aggregate, cell, name, aggregate[0] ? "aggregate" : "iteration", BLOCKS);
    if (aggregate[0])
        fprintf(stream,
                "      \"threads\": 1,\n      \"aggregate_name\": \"%s\",\n"
                "      \"aggregate_unit\": \"time\",\n      \"iterations\": %d,\n",
                aggregate + 1, BLOCKS);
    else
        fprintf(stream,
                "      \"repetition_index\": %d,\n      \"threads\": 1,\n"
                "      \"iterations\": 1,\n",
                repetition);
    fprintf(stream,
            "      \"real_time\": %.16e,\n      \"cpu_time\": %.16e,\n"
            "      \"time_unit\": \"ns\",\n      \"kept\": %.16e\n    }",
            record->summary.median_ns, record->summary.median_ns * 40.0, (double)record->kept);
}

static void write_benchmark(const struct run_result *result, const char *dir) {
    static const char *const aggregates[] = {"_mean", "_median", "_stddev", "_cv"};
    FILE *stream = open_in(dir, "benchmark.json");
    const char *comma = "\n";
    fprintf(stream,
            "{\n  \"context\": {\n    \"num_cpus\": 2,\n    \"topp_bench_run\": \"%s\"\n  },\n"
            "  \"benchmarks\": [",
            result->info.id);
    for (size_t i = 0; i < result->count; i++)
        for (int entry = 0; result->cells[i].sample_count && entry < BLOCKS + 4; entry++) {
            fputs(comma, stream);
            put_entry(stream, result, i, entry, entry < BLOCKS ? "" : aggregates[entry - BLOCKS]);
            comma = ",\n";
        }
    fputs("\n  ]\n}\n", stream);
    if (fclose(stream) != 0)
        stop("benchmark.json", NULL);
}

static void write_journal(const struct run_result *result, const char *dir) {
    FILE *stream = open_in(dir, "journal.jsonl");
    fprintf(stream, "{\"schema\":\"topp-bench.journal/1\",\"id\":\"%s\",\"gate_only\":false}\n",
            result->info.id);
    fputs("{\"end\":true}\n", stream);
    if (fclose(stream) != 0)
        stop("journal.jsonl", NULL);
}

static void make_run(const struct making *making, int32_t shard) {
    struct tb_error error = TB_ERROR_INIT;
    struct plan plan;
    char dir[4096], captured[4096];
    const struct options options = {.mode = MODE_SWEEP, .profile = making->profile};
    snprintf(captured, sizeof captured, "%s/profiles/captured", TOPP_SOURCE_DIR);
    const struct plan_options request = {.profile = making->profile,
                                         .profile_dir = TOPP_SOURCE_DIR "/profiles",
                                         .captured_dir = captured,
                                         .device = KERNEL_DEVICE_CPU};
    if (plan_load(&request, &plan, &error) != TB_OK ||
        (shard && shard_select(&plan, shard, making->shards, &error) != TB_OK))
        stop("plan", &error);
    snprintf(dir, sizeof dir, shard ? "%s/%d" : "%s", making->out, shard);
    if (mkdir(dir, 0777) != 0)
        stop(dir, NULL);
    struct run_result result = {.count = plan.count,
                                .cells = calloc(plan.count, sizeof *result.cells)};
    make_info(making, &plan, &result.info);
    for (size_t i = 0; i < plan.count; i++)
        make_record(making, &plan.cells[i], &result.cells[i], slower_of(making, shard));
    record_finish_run(&result);
    write_with(writer_json, &result, dir, "results.json");
    write_with(writer_tsv, &result, dir, "results.tsv");
    write_benchmark(&result, dir);
    write_journal(&result, dir);
    run_result_free(&result);
    const struct receipt_request receipt = {.options = &options, .plan = &plan, .out_dir = dir};
    if (receipt_make(&receipt, &error) != TB_OK)
        stop("receipt", &error);
    plan_free(&plan);
}

int main(int argc, char **argv) {
    if (argc < 6)
        stop("usage: made_shards PROFILE.json OUT SHARDS SAMPLES SEED [UUID...]", NULL);
    const struct making making = {.profile = argv[1],
                                  .out = argv[2],
                                  .shards = atoi(argv[3]),
                                  .samples = atoi(argv[4]),
                                  .seed = strtoull(argv[5], NULL, 10),
                                  .uuids = argv + 6,
                                  .uuid_count = argc - 6};
    if (!making.shards) {
        make_run(&making, 0);
        return 0;
    }
    mkdir(making.out, 0777);
    for (int32_t shard = 1; shard <= making.shards; shard++)
        make_run(&making, shard);
    return 0;
}
