#include "bench/plugin_worker.h"

#include "bench/plugin_library.h"
#include "bench/plugin_plan.h"
#include "bench/run_state.h"
#include "bench/watchdog.h"
#include "bench/worker_process.h"

#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Seconds for a call into the library that runs no kernel (loading it, workspace_size), past a
 * kernel's own limit, and for a kernel without one. */
static const double call_seconds = 60.0, slack_seconds = 2.0, longest_seconds = 3600.0;

struct worker {
    const struct topp_plugin *table;
    struct plan plan;
    struct device *device;
    struct sweep_run run;
    struct run_result result;
    struct run_state *state;
    struct gate_group group;
    struct oracle_cache *oracle_cache; /* NULL: none */
    struct tb_error error;
    char captured_dir[PLUGIN_PATH_BYTES];
};

static double patience(void) {
    const char *text = getenv("TOPP_BENCH_PLUGIN_SECONDS");
    const double seconds = text ? strtod(text, NULL) : 0.0;
    return seconds > 0.0 ? seconds : call_seconds;
}

/* ---- The device, watched: a kernel's host code may loop where no device can stop it ---- */

static const struct device_ops *real_ops;

static double arm_for(double limit_seconds) {
    return watchdog_arm(limit_seconds > 0.0 ? limit_seconds + slack_seconds : longest_seconds);
}

static enum tb_status watched_run_once(struct device *device, const struct timed_call *call,
                                       double seconds, bool *timed_out, struct tb_error *error) {
    const double before = arm_for(seconds);
    const enum tb_status status = real_ops->run_once(device, call, seconds, timed_out, error);
    watchdog_back(before);
    return status;
}

static enum tb_status watched_time_block(struct device *device, const struct block_request *request,
                                         struct block_result *result, struct tb_error *error) {
    const double before = arm_for(request->limit_seconds);
    const enum tb_status status = real_ops->time_block(device, request, result, error);
    watchdog_back(before);
    return status;
}

static void watch_device(struct device *device) {
    static struct device_ops watched;
    real_ops = device->ops;
    watched = *real_ops;
    watched.run_once = watched_run_once;
    watched.time_block = watched_time_block;
    device->ops = &watched;
}

/* ---- Requests ---- */

static const char *text_of(const json_t *json, const char *key) {
    const char *text = json_string_value(json_object_get(json, key));
    return text ? text : "";
}

static int64_t whole_of(const json_t *json, const char *key) {
    return json_integer_value(json_object_get(json, key));
}

static bool answer_error(const struct tb_error *error) {
    char text[1280];
    worker_answer(json_pack("{s:s, s:i, s:s}", "line", "error", "code", (int)error->code, "message",
                            tb_error_text(error, text, sizeof text)));
    return false;
}

static enum tb_status load_library(struct worker *worker, const char *path) {
    const double before = watchdog_arm(patience());
    const enum tb_status status = plugin_library_open(path, &worker->table, &worker->error);
    watchdog_back(before);
    return status;
}

static bool describe(struct worker *worker, const json_t *request) {
    if (load_library(worker, text_of(request, "path")) != TB_OK)
        return answer_error(&worker->error);
    json_t *table = plugin_library_table(worker->table);
    json_object_set_new(table, "line", json_string("table"));
    return worker_answer(table);
}

static enum tb_status open_device(struct worker *worker, const json_t *request) {
    const struct device_options settings = {
        .timer = (enum timer_kind)whole_of(request, "timer"),
        .gate_only = json_is_true(json_object_get(request, "gate_only"))};
    const enum tb_status status =
        strcmp(worker->plan.device, "cuda")
            ? device_cpu_open(&settings, &worker->device, &worker->error)
            : device_cuda_open(&settings, &worker->device, &worker->error);
    if (status == TB_OK)
        watch_device(worker->device);
    return status;
}

static enum tb_status open_run(struct worker *worker, const json_t *request) {
    const enum tb_status status = oracle_cache_read_at(json_object_get(request, "oracle_cache"),
                                                       &worker->oracle_cache, &worker->error);
    if (status != TB_OK)
        return status;
    snprintf(worker->captured_dir, sizeof worker->captured_dir, "%s",
             text_of(request, "captured_dir"));
    worker->run =
        (struct sweep_run){.plan = &worker->plan,
                           .device = worker->device,
                           .captured_dir = worker->captured_dir,
                           .gate_only = json_is_true(json_object_get(request, "gate_only")),
                           .threads = (int)whole_of(request, "threads"),
                           .slices = (int32_t)whole_of(request, "slices"),
                           .cache_bytes = whole_of(request, "cache_bytes"),
                           .oracle_cache = worker->oracle_cache};
    worker->state = calloc(1, sizeof *worker->state);
    if (!worker->state)
        return tb_fail(&worker->error, TB_NO_MEMORY, "no memory for a run");
    *worker->state = (struct run_state){.run = &worker->run,
                                        .plan = &worker->plan,
                                        .device = worker->device,
                                        .result = &worker->result,
                                        .error = &worker->error};
    return run_open_records(worker->state);
}

static bool open_all(struct worker *worker, const json_t *request) {
    const char *path = text_of(request, "path");
    char sha256[SHA256_HEX_BYTES];
    enum tb_status status = sha256_file(path, sha256, &worker->error);
    if (status == TB_OK && strcmp(sha256, text_of(request, "sha256")) != 0)
        status = tb_fail(&worker->error, TB_UNREADABLE,
                         "the library was changed after its table was read: start again");
    /* Of several GPUs, the one that the run is on, whatever its number: before anything asks. */
    if (*text_of(request, "gpu"))
        setenv("CUDA_VISIBLE_DEVICES", text_of(request, "gpu"), 1);
    if (status == TB_OK)
        status = load_library(worker, path);
    if (status == TB_OK)
        status = plugin_plan_from_json(json_object_get(request, "plan"), worker->table,
                                       &worker->plan, &worker->error);
    if (status == TB_OK)
        status = open_device(worker, request);
    if (status == TB_OK)
        status = open_run(worker, request);
    return status == TB_OK ? worker_answer(json_pack("{s:s}", "line", "ready"))
                           : answer_error(&worker->error);
}

/* The cell that a request names; NULL after an answer that there is none. */
static struct cell_record *find_record(struct worker *worker, const json_t *request) {
    const char *name = text_of(request, "cell");
    for (size_t i = 0; worker->state && i < worker->plan.count; i++)
        if (!strcmp(worker->plan.cells[i].name, name))
            return &worker->result.cells[i];
    tb_fail(&worker->error, TB_INTERNAL, "no cell `%.200s` was opened", name);
    answer_error(&worker->error);
    return NULL;
}

/* An endless workspace_size() would else never be told from a long gate, nor one that is no size
 * from a lack of memory. */
static enum tb_status try_workspace(const struct cell *cell, struct tb_error *error) {
    const double before = watchdog_arm(patience());
    size_t bytes = 0;
    if (cell->topp) {
        const struct topp_problem problem = {.batch = cell->batch,
                                             .vocab = cell->vocab,
                                             .stride = cell->stride,
                                             .mask_value = -__builtin_inff()};
        bytes = cell->topp->workspace_size(&problem);
    } else if (cell->kind == CELL_GUMBEL) {
        const struct gumbel_problem problem = {
            .batch = cell->batch, .vocab = cell->vocab, .stride = cell->stride};
        bytes = cell->gumbel->workspace_size(&problem);
    }
    watchdog_back(before);
    return bytes <= PTRDIFF_MAX / 2
               ? TB_OK
               : tb_fail(error, TB_NO_MEMORY, "its workspace_size asks for %zu bytes", bytes);
}

/* Rows that only the gate and other kernels read may have been written to. */
static enum tb_status check_inputs(struct worker *worker, struct cell_record *record) {
    bool intact = true;
    enum tb_status status = TB_OK;
    for (int32_t draw = 0; draw < record->draw_count && status == TB_OK && intact; draw++) {
        status = run_input_intact(worker->state, record->cell, draw, &intact);
        if (status == TB_OK && !intact) {
            const struct outcome outcome = {.input_changed = true};
            record_refuse_conduct(record, draw, &outcome);
        }
    }
    return status;
}

/* After these this process's memory is not to be trusted any more. */
static bool is_spoilt(const struct cell_record *record) {
    return record->verdict == GATE_TIMEOUT || !strcmp(record->rule, "outside") ||
           !strcmp(record->rule, gate_rule_name(GATE_RULE_INPUT_CHANGED));
}

static bool answer_verdict(struct worker *worker, struct cell_record *record) {
    json_t *line = verdict_line(worker->state, (size_t)(record - worker->result.cells));
    json_object_set_new(line, "last", json_boolean(is_spoilt(record)));
    json_object_set_new(line, "oracle", oracle_cache_take_counts(worker->oracle_cache));
    return worker_answer(line) && !is_spoilt(record);
}

static bool gate(struct worker *worker, const json_t *request) {
    struct cell_record *record = find_record(worker, request);
    if (!record)
        return false;
    enum tb_status status = try_workspace(record->cell, &worker->error);
    if (status == TB_OK)
        status =
            run_gate_cell(worker->state, &worker->group, (size_t)(record - worker->result.cells));
    if (status == TB_OK)
        status = check_inputs(worker, record);
    return status == TB_OK ? answer_verdict(worker, record) : answer_error(&worker->error);
}

/* What another process of this kind found in the gate. */
static enum tb_status take_verdict(struct worker *worker, struct cell_record *record,
                                   const json_t *request) {
    const json_t *outputs = json_object_get(request, "outputs");
    if (!record->draws)
        record->draws = calloc((size_t)record->cell->draws, sizeof *record->draws);
    if (!record->draws)
        return tb_fail(&worker->error, TB_NO_MEMORY, "no memory for a record");
    record->draw_count = record->cell->draws;
    record->gated = true;
    for (int32_t i = 0; i < record->draw_count; i++) {
        const char *hash = json_string_value(json_array_get(outputs, (size_t)i));
        snprintf(worker->state->output_sha256[record - worker->result.cells][i], 65, "%s",
                 hash ? hash : "");
    }
    return TB_OK;
}

static bool block(struct worker *worker, const json_t *request) {
    struct cell_record *record = find_record(worker, request);
    if (!record)
        return false;
    const size_t at = (size_t)(record - worker->result.cells);
    struct block_result result = {.events_ns = NAN};
    enum tb_status status = take_verdict(worker, record, request);
    if (status == TB_OK)
        status = run_take_block(worker->state, at, (int32_t)whole_of(request, "block"),
                                json_is_true(json_object_get(request, "warm")), &result);
    if (status == TB_OK && record->verdict == GATE_ACCEPTED)
        status = check_inputs(worker, record);
    if (status != TB_OK)
        return answer_error(&worker->error);
    if (record->verdict != GATE_ACCEPTED) {
        block_result_free(&result);
        return answer_verdict(worker, record);
    }
    json_t *line = block_line(worker->state, at, (int32_t)whole_of(request, "block"), &result);
    block_result_free(&result);
    return worker_answer(line);
}

/* Where memory runs out, the kernel shall end this process and not the one that holds the run. */
static void offer_memory(void) {
    FILE *file = fopen("/proc/self/oom_score_adj", "we");
    if (file) {
        fputs("1000\n", file);
        fclose(file);
    }
}

int plugin_worker_main(void) {
    static struct worker worker = {.error = TB_ERROR_INIT};
    static const struct {
        const char *name;
        bool (*serve)(struct worker *worker, const json_t *request);
    } requests[] = {{"describe", describe}, {"open", open_all}, {"gate", gate}, {"block", block}};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN);  /* the parent decides when this ends */
    signal(SIGTTOU, SIG_IGN); /* and a background process may write to a terminal */
    if (!worker_serve() || !watchdog_start(WORKER_EXIT_LATE)) {
        fprintf(stderr, "bench_topp: %s is how --plugin starts its processes: not for people\n",
                worker_argument);
        return 2;
    }
    offer_memory();
    json_t *request;
    bool going = true;
    while (going && (request = worker_next())) {
        const char *ask = text_of(request, "ask");
        size_t i = 0;
        while (i < sizeof requests / sizeof requests[0] && strcmp(requests[i].name, ask) != 0)
            i++;
        going = i < sizeof requests / sizeof requests[0] && requests[i].serve(&worker, request);
        json_decref(request);
    }
    /* Destructors of a foreign library are none of this program's business. */
    _exit(0);
}
