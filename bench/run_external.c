/* Cells of other programs: one start for each draw brings the output that is gated and the samples
 * that are its times. */
#include "bench/external_start.h"

#include "bench/external_records.h"
#include "bench/inject.h"
#include "bench/npy_array.h"

#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* MARK: the variable that tells what a start has started; its folder is like no other. */
enum { VALUE_BYTES = 4200, MARK = 0 };

static const char *const file_names[FILES] = {"in.npy",   "p.npy", "out.npy",
                                              "last.npy", "trace", "log"};

char *external_absent(const struct external_start *start) {
    return start->state->external->absent[start->external - start->state->run->externals->items];
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *place) {
    (void)facts, (void)kind, (void)place;
    remove(path);
    return 0;
}

/* With whatever a program has put there. */
static void remove_folder(struct external_runs *runs) {
    if (!runs->folder[0])
        return;
    (void)!chmod(runs->folder, 0700);
    nftw(runs->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    runs->folder[0] = '\0';
}

/* Each start has a folder of its own: what another did to its files is nobody else's. */
static enum tb_status make_folder(struct run_state *state) {
    struct external_runs *runs = state->external;
    const char *base = getenv("TMPDIR");
    remove_folder(runs);
    if (!base || !*base || strlen(base) > sizeof runs->folder - 32)
        base = "/tmp";
    snprintf(runs->folder, sizeof runs->folder, "%s/topp-external-XXXXXX", base);
    if (mkdtemp(runs->folder))
        return TB_OK;
    runs->folder[0] = '\0';
    return tb_fail_at(state->error, TB_IO, base, 0, -1, "no folder can be made there: %s",
                      strerror(errno));
}

static enum tb_status open_runs(struct run_state *state) {
    if (state->external)
        return TB_OK;
    struct external_runs *runs = calloc(1, sizeof *runs);
    if (!runs)
        return tb_fail(state->error, TB_NO_MEMORY, "no memory for the programs of --external");
    state->external = runs;
    runs->taken = calloc(state->plan->count, sizeof *runs->taken);
    runs->absent = calloc(OPTION_MOST_EXTERNAL, sizeof *runs->absent);
    if (!runs->taken || !runs->absent)
        return tb_fail(state->error, TB_NO_MEMORY, "no memory for the programs of --external");
    /* "130000 (FILE)": the program has to find the same one. */
    const char *version = json_string_value(json_object_get(state->result->info.device, "cupti"));
    const char *file = version ? strchr(version, '(') : NULL;
    if (file)
        snprintf(runs->cupti, sizeof runs->cupti, "%.*s", (int)strcspn(file + 1, ")"), file + 1);
    return TB_OK;
}

void external_runs_free(struct run_state *state) {
    struct external_runs *runs = state->external;
    if (!runs)
        return;
    remove_folder(runs);
    for (size_t i = 0; runs->taken && i < state->plan->count; i++)
        block_result_free(&runs->taken[i]);
    free(runs->taken);
    free(runs->absent);
    free(runs);
    state->external = NULL;
}

static enum tb_status write_inputs(struct external_start *start, const struct logits *logits,
                                   const float *p) {
    struct tb_error *error = start->state->error;
    enum tb_status status = make_folder(start->state);
    for (size_t i = 0; i < FILES; i++)
        snprintf(start->path[i], sizeof start->path[i], "%s/%s", start->state->external->folder,
                 file_names[i]);
    if (status == TB_OK)
        status = npy_write(start->path[FILE_IN], logits->data, logits->batch, logits->vocab,
                           logits->stride, error);
    return status == TB_OK ? npy_write_vector(start->path[FILE_P], p, logits->batch, error)
                           : status;
}

/* NAME=VALUE strings of a start. */
struct variables {
    char text[10][VALUE_BYTES + 64];
    const char *list[11];
    size_t count;
};

static void set(struct variables *variables, const char *name, const char *value) {
    char *text = variables->text[variables->count];
    snprintf(text, sizeof variables->text[0], "%s=%s", name, value);
    variables->list[variables->count++] = text;
    variables->list[variables->count] = NULL;
}

static void make_variables(const struct external_start *start, struct variables *variables) {
    const struct sweep_run *run = start->state->run;
    const bool cuda = start->state->device->kind == KERNEL_DEVICE_CUDA;
    char repeats[16];
    variables->count = 0;
    const char *uuid =
        json_string_value(json_object_get(start->state->result->info.device, "uuid"));
    snprintf(repeats, sizeof repeats, "%d", (int)start->repeats);
    set(variables, "TOPP_OUT_LAST", start->path[FILE_LAST]); /* MARK */
    set(variables, "TOPP_DEVICE", cuda ? "cuda" : "cpu");
    /* Of several GPUs, the one that our kernels run on, whatever its number. */
    if (start->state->device->visible > 1 && uuid && *uuid)
        set(variables, "CUDA_VISIBLE_DEVICES", uuid);
    set(variables, "TOPP_LAUNCH", start->external->launch == LAUNCH_GRAPH ? "graph" : "stream");
    if (start->repeats == 0 || !run->externals->inject[0])
        return;
    set(variables, INJECT_OUT, start->path[FILE_TRACE]);
    set(variables, INJECT_REPEATS, repeats);
    set(variables, "NVTX_INJECTION64_PATH", run->externals->inject);
    if (cuda)
        set(variables, "CUDA_INJECTION64_PATH", run->externals->inject);
    if (cuda && start->state->external->cupti[0])
        set(variables, INJECT_CUPTI, start->state->external->cupti);
}

static enum tb_status run_program(const struct external_start *start,
                                  struct process_result *result) {
    static struct variables variables;
    char repeats[16], draws[24], seed[24];
    snprintf(repeats, sizeof repeats, "%d", (int)start->repeats);
    snprintf(draws, sizeof draws, "%lld", (long long)start->launches);
    /* Each draw of a cell's rows has a seed of its own, the same in every run. */
    snprintf(seed, sizeof seed, "%lld", (long long)start->record->cell->seed + start->draw);
    const char *const arguments[] = {"--input",
                                     start->path[FILE_IN],
                                     "--p",
                                     start->path[FILE_P],
                                     "--out",
                                     start->path[FILE_OUT],
                                     "--repeats",
                                     repeats,
                                     start->launches ? "--draws" : NULL,
                                     draws,
                                     "--seed",
                                     seed,
                                     NULL};
    make_variables(start, &variables);
    const struct process_request request = {
        .command = start->external->command,
        .arguments = arguments,
        .environment = variables.list,
        .log = start->path[FILE_LOG],
        .mark = variables.text[MARK],
        .limit_seconds = start->state->plan->limits.case_seconds,
        .stop = start->state->run->stop,
    };
    return process_run(&request, result, start->state->error);
}

static bool timed_by_events(const struct external_start *start) {
    const char *timer =
        json_string_value(json_object_get(start->state->result->info.device, "timer"));
    return timer && !strcmp(timer, "events");
}

/* Adds the samples of a start to what the cell has; a refusal stays. */
static enum tb_status take_samples(const struct external_start *start) {
    struct run_state *state = start->state;
    struct block_result *taken = &state->external->taken[start->record - state->result->cells];
    struct external_trace trace;
    struct tb_error defect = TB_ERROR_INIT;
    const struct trace_want want = {(size_t)start->repeats,
                                    state->device->kind == KERNEL_DEVICE_CUDA,
                                    start->external->launch, start->draw};
    if (taken->refused[0] || start->repeats == 0)
        return TB_OK;
    if (!state->run->externals->inject[0] || timed_by_events(start)) {
        snprintf(taken->refused, sizeof taken->refused, "%s",
                 timed_by_events(start)
                     ? "other programs are timed by CUPTI alone: leave --timer events out"
                     : "libtopp_inject.so is not beside the program: name it in "
                       "TOPP_BENCH_INJECT");
        return TB_OK;
    }
    struct sample *samples =
        realloc(taken->samples, (taken->count + want.repeats) * sizeof *samples);
    if (!samples)
        return tb_fail(state->error, TB_NO_MEMORY, "no memory for samples");
    taken->samples = samples;
    if (trace_read(start->path[FILE_TRACE], &trace, &defect) != TB_OK)
        snprintf(taken->refused, sizeof taken->refused,
                 "the injected library's file: line %lld %.200s", (long long)defect.line,
                 defect.message);
    else if (trace_judge(&trace, &want, samples + taken->count, &taken->kernels,
                         &taken->kernel_count, taken->refused, sizeof taken->refused))
        taken->count += want.repeats;
    if (taken->refused[0]) {
        taken->count = 0;
        external_keep_log(start);
    }
    trace_free(&trace);
    return TB_OK;
}

/* One start up to its end. *ended: it left an output that can be looked at. */
static enum tb_status start_program(struct external_start *start, const float *p, bool *ended) {
    struct run_state *state = start->state;
    const struct cell *cell = start->record->cell;
    const struct logits *logits;
    struct process_result result = {0};
    *ended = false;
    enum tb_status status = open_runs(state);
    if (status != TB_OK)
        return status;
    const char *absent = external_absent(start);
    if (absent[0]) { /* it said so, and would say it again */
        record_refuse(start->record, GATE_UNSUPPORTED, "absent", start->draw, -1, -1, "%s", absent);
        return TB_OK;
    }
    if (cell->timed && !state->run->gate_only)
        start->repeats = external_repeats(start->external, &state->plan->timing, cell->draws);
    status = run_input(state, cell, start->draw, &logits, NULL);
    if (status == TB_OK)
        status = write_inputs(start, logits, p);
    if (status == TB_OK)
        status = run_program(start, &result);
    if (status == TB_OK && !result.stopped)
        *ended = external_ended_well(start, &result);
    return status;
}

enum tb_status external_draw_rows(struct run_state *state, struct cell_record *record, int32_t draw,
                                  const float *p, float *rows, bool *came) {
    const struct logits *logits;
    struct external_start start = {.state = state,
                                   .record = record,
                                   .external = external_of(record->cell->topp),
                                   .draw = draw};
    enum tb_status status = start_program(&start, p, came);
    if (status == TB_OK && *came)
        status = run_input(state, record->cell, draw, &logits, NULL);
    if (status == TB_OK && *came)
        *came = external_take_rows(&start, logits, rows);
    return status == TB_OK && *came ? take_samples(&start) : status;
}

enum tb_status external_draw_ids(struct run_state *state, struct cell_record *record, int32_t draw,
                                 const float *p, int64_t *ids, int64_t launches, bool *came) {
    struct external_start start = {.state = state,
                                   .record = record,
                                   .external = external_of(record->cell->topp),
                                   .draw = draw,
                                   .launches = launches};
    const enum tb_status status = start_program(&start, p, came);
    if (status == TB_OK && *came)
        *came = external_take_ids(&start, ids);
    return status == TB_OK && *came ? take_samples(&start) : status;
}

enum tb_status external_keep_block(struct run_state *state, size_t cell) {
    struct cell_record *record = &state->result->cells[cell];
    struct block_result *taken = state->external ? &state->external->taken[cell] : NULL;
    if (!taken)
        return TB_OK;
    if (record->verdict != GATE_ACCEPTED || !record->cell->timed || state->run->gate_only) {
        block_result_free(taken);
        return TB_OK;
    }
    taken->events_ns = NAN;
    const enum tb_status status = journal_block(state, cell, 0, taken);
    return status == TB_OK ? record_add_block(record, taken, state->error) : status;
}

void external_forget_halves(struct run_state *state) {
    for (size_t i = 0; i < state->plan->count; i++) {
        struct cell_record *record = &state->result->cells[i];
        if (record->cell->kind != CELL_TOPP || !external_of(record->cell->topp) || !record->gated ||
            record->verdict != GATE_ACCEPTED || record->blocks > 0 || !record->cell->timed ||
            state->run->gate_only)
            continue;
        free(record->draws);
        json_decref(record->statistic);
        record_begin(record, record->cell);
    }
}
