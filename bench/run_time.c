/* Accepted cells timed in blocks; Google Benchmark drives the repetitions and interleaves them. */
#include "bench/run_external.h"
#include "bench/run_plugin.h"

#include "bench/gbench.h"
#include "bench/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One cell as Google Benchmark's context. */
struct timed_cell {
    struct run_state *state;
    size_t cell;
    int32_t next;     /* repetition that comes next */
    int32_t replayed; /* blocks that an earlier run took */
    bool reported;    /* a time of this cell stands in Google Benchmark's file */
    enum tb_status *status;
    char refused[RECORD_REASON_BYTES];
};

/* The oracle's boundaries of all draws, asked for once. */
static enum tb_status boundaries_of(struct run_state *state, const struct cell *cell,
                                    struct topp_boundary **boundaries) {
    const size_t at = (size_t)(cell - state->plan->cells), batch = (size_t)cell->batch;
    const struct logits *logits;
    *boundaries = state->boundaries[at];
    if (*boundaries)
        return TB_OK;
    struct nucleus *nuclei = malloc(batch * sizeof *nuclei);
    float *p = malloc(batch * sizeof *p);
    *boundaries = malloc((size_t)cell->draws * batch * sizeof **boundaries);
    enum tb_status status = nuclei && p && *boundaries
                                ? TB_OK
                                : tb_fail(state->error, TB_NO_MEMORY, "no memory for boundaries");
    for (int32_t draw = 0; draw < cell->draws && status == TB_OK; draw++) {
        for (size_t row = 0; row < batch; row++)
            p[row] = family_row_p(&cell->family, cell->p, (int64_t)(row + batch * (size_t)draw));
        status = run_input(state, cell, draw, &logits, NULL);
        if (status == TB_OK)
            status = oracle_rows(state->run->oracle_cache, logits, p, 1, state->run->threads,
                                 nuclei, state->error);
        for (size_t row = 0; status == TB_OK && row < batch; row++)
            (*boundaries)[(size_t)draw * batch + row] = boundary_of(&nuclei[row]);
    }
    free(nuclei);
    free(p);
    if (status != TB_OK) {
        free(*boundaries);
        *boundaries = NULL;
    }
    state->boundaries[at] = *boundaries;
    return status;
}

/* All draws of a cell as timed calls. */
struct calls {
    struct topp_call topp[MOST_DRAWS];
    struct gumbel_call gumbel[MOST_DRAWS];
    struct timed_call timed[MOST_DRAWS];
};

static enum tb_status make_calls(struct run_state *state, const struct cell *cell,
                                 struct calls *calls) {
    struct topp_boundary *boundaries = NULL;
    enum tb_status status = TB_OK;
    if (cell->kind == CELL_TOPP && cell->topp->needs_boundary)
        status = boundaries_of(state, cell, &boundaries);
    for (int32_t draw = 0; draw < cell->draws && status == TB_OK; draw++) {
        struct timed_call *timed = &calls->timed[draw];
        *timed = (struct timed_call){.name = cell->name, .l2 = cell->l2, .launch = cell->launch};
        if (cell->kind == CELL_TOPP) {
            status =
                topp_call_make(state, cell, cell->topp, draw,
                               boundaries ? boundaries + (size_t)draw * (size_t)cell->batch : NULL,
                               false, &calls->topp[draw]);
            timed->context = &calls->topp[draw];
            timed->prepare = topp_call_prepare;
            timed->run = topp_call_run;
        } else {
            status = gumbel_call_make(state, cell, draw, false, &calls->gumbel[draw]);
            timed->context = &calls->gumbel[draw];
            timed->run = gumbel_call_run;
        }
    }
    /* A workspace that grew while later draws were made has moved for all. */
    for (int32_t draw = 0; draw < cell->draws; draw++) {
        calls->topp[draw].workspace = state->workspace.memory;
        calls->gumbel[draw].workspace = state->workspace.memory;
    }
    return status;
}

/* Is what the timed kernel left behind still what the gate saw? */
static enum tb_status check_drift(struct run_state *state, struct cell_record *record,
                                  const struct calls *calls) {
    const struct cell *cell = record->cell;
    const size_t at = (size_t)(record - state->result->cells);
    const bool topp = cell->kind == CELL_TOPP, ids = topp && cell->topp->output == TOPP_IDS;
    const bool rows = topp && !ids;
    const size_t bytes = rows ? row_bytes(cell) : (size_t)cell->batch * sizeof(int64_t);
    void *again = malloc(bytes);
    if (!again)
        return tb_fail(state->error, TB_NO_MEMORY, "no memory to check the output of %s again",
                       cell->name);
    enum tb_status status = TB_OK;
    for (int32_t draw = 0; draw < cell->draws && status == TB_OK; draw++) {
        char sha256[65];
        const void *timed = ids    ? (const void *)calls->topp[draw].given.ids
                            : topp ? (const void *)calls->topp[draw].given.logits
                                   : (const void *)calls->gumbel[draw].given.token;
        status = state->device->ops->download(state->device, again, timed, bytes, state->error);
        if (status != TB_OK)
            break;
        if (rows)
            rows_sha256(again, cell->batch, bytes / (size_t)cell->batch, state->run->threads,
                        sha256);
        else
            bytes_sha256(again, bytes, sha256);
        if (strcmp(sha256, state->output_sha256[at][draw]) == 0)
            continue;
        record_refuse(record, GATE_DRIFT, "drift", draw, -1, -1,
                      "after timing, the buffer is not what the gate accepted: a race, or a "
                      "launch that was skipped");
        break;
    }
    free(again);
    return status;
}

/* Did the timed kernel write where the gate saw it write nothing? */
static enum tb_status check_conduct(struct run_state *state, struct cell_record *record,
                                    const struct calls *calls) {
    const struct cell *cell = record->cell;
    const size_t batch = (size_t)cell->batch;
    const bool topp = cell->kind == CELL_TOPP, ids = topp && cell->topp->output == TOPP_IDS;
    struct outcome outcome = {0};
    int64_t *seed = malloc(2 * batch * sizeof *seed), *position = seed ? seed + batch : NULL;
    float *real = malloc(batch * sizeof *real); /* p or temperature */
    enum tb_status status =
        seed && real ? TB_OK
                     : tb_fail(state->error, TB_NO_MEMORY,
                               "no memory to look at the inputs of %s again", cell->name);
    for (int32_t draw = 0; draw < cell->draws && status == TB_OK; draw++) {
        if (!topp) {
            gumbel_row_inputs(cell, draw, seed, position, real);
            status =
                gumbel_call_conduct(state, &calls->gumbel[draw], seed, position, real, &outcome);
        } else {
            for (size_t row = 0; row < batch; row++)
                real[row] =
                    family_row_p(&cell->family, cell->p, (int64_t)(row + batch * (size_t)draw));
            sampler_row_inputs(cell, draw, 0, seed, position);
            status = topp_call_conduct(state, &calls->topp[draw], draw, real, ids ? seed : NULL,
                                       ids ? position : NULL, &outcome);
        }
        if (status == TB_OK)
            record_refuse_conduct(record, draw, &outcome);
    }
    free(seed);
    free(real);
    return status;
}

/* A kernel that the gate saw run, and that will not be launched any more. */
static bool launch_lost(struct run_state *state, struct cell_record *record,
                        const struct calls *calls) {
    const struct cell *cell = record->cell;
    for (int32_t draw = 0; draw < cell->draws; draw++) {
        const int launched =
            cell->kind == CELL_TOPP ? calls->topp[draw].status : calls->gumbel[draw].status;
        if (!run_forgive(state, launched))
            continue;
        record_refuse(record, GATE_DRIFT, "launch", draw, -1, -1,
                      "the gate saw this kernel run, later it returned %d (%s)", launched,
                      state->device->ops->error_text(state->device, launched));
        return true;
    }
    return false;
}

enum tb_status run_take_block(struct run_state *state, size_t at, int32_t block, bool warm,
                              struct block_result *result) {
    if (run_plugin_has(state, at))
        return run_plugin_block(state, at, block, warm, result);
    struct cell_record *record = &state->result->cells[at];
    const struct cell *cell = record->cell;
    struct calls *calls = calloc(1, sizeof *calls);
    if (!calls)
        return tb_fail(state->error, TB_NO_MEMORY, "no memory for the calls of %s", cell->name);
    enum tb_status status = make_calls(state, cell, calls);
    const struct block_request request = {
        .calls = calls->timed,
        .draws = cell->draws,
        .block = block,
        .settings = &state->plan->timing,
        .warmup_seconds = warm ? state->plan->timing.warmup_seconds : 0.0,
        .limit_seconds = state->plan->limits.case_seconds,
        .stop = state->run->stop,
    };
    if (status == TB_OK)
        status = state->device->ops->time_block(state->device, &request, result, state->error);
    if (status != TB_OK && launch_lost(state, record, calls)) {
        free(calls);
        return TB_OK;
    }
    if (status == TB_OK && result->timed_out)
        record_refuse(record, GATE_TIMEOUT, "timeout", -1, -1, -1,
                      "a block ran past the profile's %g seconds", request.limit_seconds);
    if (status == TB_OK && block + 1 == state->plan->timing.blocks && !result->timed_out &&
        !result->refused[0] && !run_stopped(state)) {
        status = check_drift(state, record, calls);
        if (status == TB_OK)
            status = check_conduct(state, record, calls);
    }
    free(calls);
    return status;
}

static void block_median(const struct cell_record *record, int32_t block,
                         struct cell_summary *summary) {
    size_t first = 0;
    while (first < record->sample_count && record->samples[first].block != block)
        first++;
    size_t end = first;
    while (end < record->sample_count && record->samples[end].block == block)
        end++;
    summary_of_samples(record->samples + first, end - first, summary);
}

static void counter(struct gbench_block *block, const char *name, double value) {
    if (isfinite(value) && block->counter_count < GBENCH_MOST_COUNTERS)
        block->counters[block->counter_count++] = (struct gbench_counter){name, value};
}

static void report(const struct cell_record *record, int32_t block, struct gbench_block *out) {
    struct cell_summary summary;
    block_median(record, block, &summary);
    out->seconds = summary.median_ns * 1e-9;
    counter(out, "samples", (double)summary.samples);
    counter(out, "p05_ns", summary.p05_ns);
    counter(out, "p95_ns", summary.p95_ns);
    counter(out, "busy_ns", summary.busy_ns);
    counter(out, "cycles", summary.cycles);
    if (record->cell->kind == CELL_TOPP && record->cell->topp->output != TOPP_IDS)
        counter(out, "kept", (double)record->kept);
    counter(out, "bytes_per_second", record->bytes_moved / out->seconds);
}

static enum tb_status keep_block(struct run_state *state, size_t cell, int32_t block,
                                 struct block_result *result) {
    struct cell_record *record = &state->result->cells[cell];
    if (record->verdict != GATE_ACCEPTED) {
        block_result_free(result);
        record_drop_timing(record);
        return journal_verdict(state, cell);
    }
    const enum tb_status status = journal_block(state, cell, block, result);
    if (status == TB_OK)
        return record_add_block(record, result, state->error);
    block_result_free(result);
    return status;
}

enum tb_status run_block(struct run_state *state, size_t cell, int32_t block, bool warm) {
    const struct cell_record *record = &state->result->cells[cell];
    if (run_stopped(state) || record->verdict != GATE_ACCEPTED || record->unmeasured[0])
        return TB_OK;
    struct block_result result = {.events_ns = NAN};
    progress_now(&state->progress, record->cell->name);
    enum tb_status status = run_take_block(state, cell, block, warm, &result);
    if (status == TB_OK && run_stopped(state))
        block_result_free(&result);
    else if (status == TB_OK)
        status = keep_block(state, cell, block, &result);
    progress_step(&state->progress, record->cell->name);
    return status;
}

/* Google Benchmark asks for the next repetition of a cell. */
static void measure(void *context, size_t cell, struct gbench_block *out) {
    struct timed_cell *timed = (struct timed_cell *)context + cell;
    const struct cell_record *record = &timed->state->result->cells[cell];
    const int32_t block = timed->next++;
    if (block >= timed->replayed && *timed->status == TB_OK)
        *timed->status = run_block(timed->state, cell, block, block == timed->replayed);
    const char *refused = *timed->status != TB_OK            ? "the run ended with an error"
                          : record->verdict != GATE_ACCEPTED ? record->reason
                          : record->unmeasured[0]            ? record->unmeasured
                          : block >= record->blocks          ? "interrupted"
                                                             : "";
    snprintf(out->error, sizeof out->error, "%s", refused);
    if (refused[0])
        return;
    report(record, block, out);
    timed->reported = true;
}

static size_t describe_cells(struct run_state *state, struct timed_cell *timed,
                             struct gbench_cell *cells, enum tb_status *status) {
    size_t blocks = 0;
    for (size_t i = 0; i < state->plan->count; i++) {
        const struct cell_record *record = &state->result->cells[i];
        const int32_t wanted = cell_blocks(state->plan, record->cell);
        timed[i] = (struct timed_cell){
            .state = state, .cell = i, .replayed = record->blocks, .status = status};
        cells[i] = (struct gbench_cell){.name = record->cell->name, .repetitions = wanted};
        if (record->verdict != GATE_ACCEPTED) {
            snprintf(timed[i].refused, sizeof timed[i].refused, "%s%s%s",
                     gate_verdict_name(record->verdict), record->rule[0] ? ": " : "", record->rule);
            cells[i].skip = timed[i].refused;
        } else if (!record->cell->timed || state->run->gate_only) {
            cells[i].skip = "accepted; not to be timed";
        } else if (!record->unmeasured[0] && record->blocks < wanted) {
            blocks += (size_t)(wanted - record->blocks);
        }
    }
    return blocks;
}

/* Did a cell lose its verdict after a time of it had been reported? */
static bool any_lost(const struct run_state *state, const struct timed_cell *timed) {
    for (size_t i = 0; i < state->plan->count; i++) {
        const struct cell_record *record = &state->result->cells[i];
        if (timed[i].reported && (record->verdict != GATE_ACCEPTED || record->unmeasured[0]))
            return true;
    }
    return false;
}

static enum tb_status run_gbench(struct run_state *state, const struct gbench_cell *cells,
                                 struct timed_cell *timed, const enum tb_status *blocks_status) {
    char path[JOURNAL_PATH_BYTES], why[JOURNAL_PATH_BYTES + 256] = "";
    const char *const context[] = {"topp_bench_profile",
                                   state->plan->profile_name,
                                   "topp_bench_device",
                                   state->plan->device,
                                   "topp_bench_run",
                                   state->result->info.id,
                                   NULL};
    enum tb_status status =
        journal_begin_file(state->journal, "benchmark.json", path, NULL, state->error);
    if (status != TB_OK)
        return status;
    const struct gbench_run run = {
        .cells = cells,
        .count = state->plan->count,
        .measure = measure,
        .context = timed,
        .stop = state->run->stop,
        .interleave = true,
        .json_path = path,
        .flags = state->run->gbench_flags,
        .flag_count = state->run->gbench_flag_count,
        .context_pairs = context,
    };
    const int failed = gbench_execute(&run, why, sizeof why);
    status = *blocks_status;
    if (status == TB_OK && failed)
        status = tb_fail(state->error, TB_IO, "Google Benchmark's results: %s", why);
    if (status == TB_OK && !run_stopped(state) && any_lost(state, timed))
        status = benchmark_json_strip(state->result, path, state->error);
    if (status == TB_OK && !run_stopped(state))
        return journal_publish(state->journal, "benchmark.json", NULL, state->error);
    journal_discard(state->journal, "benchmark.json", NULL);
    return status;
}

enum tb_status run_time_all(struct run_state *state) {
    enum tb_status blocks_status = TB_OK;
    struct timed_cell *timed = calloc(state->plan->count, sizeof *timed);
    struct gbench_cell *cells = calloc(state->plan->count, sizeof *cells);
    enum tb_status status = TB_OK;
    if (!timed || !cells) {
        status = tb_fail(state->error, TB_NO_MEMORY, "no memory for the cells to be timed");
    } else {
        progress_begin(&state->progress, state->run->progress, "timing",
                       describe_cells(state, timed, cells, &blocks_status));
        state->progress.feed = state->run->feed;
        progress_now(&state->progress, "");
        status = run_gbench(state, cells, timed, &blocks_status);
        progress_end(&state->progress);
    }
    free(timed);
    free(cells);
    return status;
}
