/* The gate of Gumbel cells: every drawn id against the binary64 winner, the noise itself, and the
 * statistics of a variant. */
#include "bench/run_state.h"

#include "oracle/gumbel_gate.h"
#include "oracle/gumbel_statistics.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Rows of the noise that are dumped and checked: it costs 8 bytes a token. */
enum { NOISE_ROWS = 1, MOST_THREADS = 16 };

struct host_draw {
    int64_t *seed, *position, *token;
    float *temperature;
};

static enum tb_status host_draw_make(struct run_state *state, const struct cell *cell, int32_t draw,
                                     struct host_draw *host) {
    const size_t batch = (size_t)cell->batch;
    *host = (struct host_draw){malloc(batch * sizeof(int64_t)), malloc(batch * sizeof(int64_t)),
                               malloc(batch * sizeof(int64_t)), malloc(batch * sizeof(float))};
    if (!host->seed || !host->position || !host->token || !host->temperature)
        return tb_fail(state->error, TB_NO_MEMORY, "no memory for the draws of %s", cell->name);
    gumbel_row_inputs(cell, draw, host->seed, host->position, host->temperature);
    return TB_OK;
}

static void host_draw_free(struct host_draw *host) {
    free(host->seed);
    free(host->position);
    free(host->token);
    free(host->temperature);
}

static enum tb_status judge(struct run_state *state, struct cell_record *record, int32_t draw,
                            const struct host_draw *host) {
    const struct cell *cell = record->cell;
    const struct logits *logits;
    struct gumbel_result result;
    struct gumbel_case the_case = {.batch = cell->batch,
                                   .vocab = cell->vocab,
                                   .stride = cell->stride,
                                   .seed = host->seed,
                                   .position = host->position,
                                   .temperature = host->temperature,
                                   .token = host->token};
    if (!noise_parse(gumbel_noise_name(cell->gumbel), &the_case.noise))
        return tb_fail(state->error, TB_INTERNAL, "the oracle knows no noise `%s`",
                       gumbel_noise_name(cell->gumbel));
    enum tb_status status = run_input(state, cell, draw, &logits, NULL);
    the_case.logits = status == TB_OK ? logits->data : NULL;
    if (status == TB_OK)
        status = gumbel_gate_check(&the_case, NULL, &result, state->error);
    if (status != TB_OK)
        return status;
    struct draw_record *drawn = &record->draws[draw];
    memcpy(drawn->input_sha256, logits->sha256, sizeof drawn->input_sha256);
    bytes_sha256(host->token, (size_t)cell->batch * sizeof *host->token, drawn->mask_sha256);
    drawn->rows_equal = cell->batch - result.rows_failed - result.rows_near;
    record->rows += cell->batch;
    record->rows_failed += result.rows_failed;
    record->rows_equal += drawn->rows_equal;
    if (result.verdict != GATE_ACCEPTED && record->verdict == GATE_ACCEPTED)
        record_refuse(record, result.verdict, gumbel_rule_name(result.rule), draw, result.row,
                      result.token, "%s", gumbel_rule_text(result.rule));
    return TB_OK;
}

/* A variant's noise as a call of the device. */
struct noise_call {
    const struct gumbel_variant *variant;
    struct gumbel_problem problem;
    double *noise;
};

static int dump_noise(void *context, void *stream) {
    const struct noise_call *call = context;
    return call->variant->noise(&call->problem, call->noise, stream);
}

/* The greatest error of the noise that the variant really adds, on its first rows. */
static enum tb_status measure_noise(struct run_state *state, struct cell_record *record,
                                    const struct gumbel_call *call, const struct host_draw *host) {
    const struct cell *cell = record->cell;
    const size_t bytes = NOISE_ROWS * (size_t)cell->vocab * sizeof(double);
    struct noise_call dump = {cell->gumbel, call->given, NULL};
    struct noise_error noise;
    bool timed_out = false;
    enum noise_kind kind = NOISE_LOG;
    dump.problem.batch = NOISE_ROWS;
    double *dumped = malloc(bytes);
    enum tb_status status = dumped ? slot_reserve(state, &state->noise, bytes)
                                   : tb_fail(state->error, TB_NO_MEMORY, "no memory for noise");
    if (status == TB_OK) {
        dump.noise = state->noise.memory;
        const struct timed_call once = {.context = &dump, .run = dump_noise, .name = cell->name};
        status = state->device->ops->run_once(state->device, &once, 0.0, &timed_out, state->error);
    }
    if (status == TB_OK)
        status = state->device->ops->download(state->device, dumped, state->noise.memory, bytes,
                                              state->error);
    if (status == TB_OK) {
        noise_parse(gumbel_noise_name(cell->gumbel), &kind);
        noise_check(kind, host->seed, host->position, NOISE_ROWS, cell->vocab, dumped, &noise);
        record->statistic =
            json_pack("{s:o, s:o, s:o}", "noise_error", json_number(noise.greatest),
                      "noise_error_share_of_bound", json_number(noise.share_of_bound),
                      "noise_greatest", json_number(noise_greatest(kind)));
        if (!(noise.share_of_bound <= 1.0) && record->verdict == GATE_ACCEPTED)
            record_refuse(record, GATE_REJECTED, "noise_error", 0, noise.row, noise.token,
                          "the noise of a token is further from binary64 than rounding explains");
    }
    free(dumped);
    return status;
}

static enum tb_status gate_draw(struct run_state *state, struct cell_record *record, int32_t draw) {
    const struct cell *cell = record->cell;
    struct host_draw host;
    struct gumbel_call call;
    struct outcome outcome = {0};
    enum tb_status status = host_draw_make(state, cell, draw, &host);
    if (status == TB_OK)
        status = gumbel_call_make(state, cell, draw, true, &call);
    const struct timed_call once = {.context = &call, .run = gumbel_call_run, .name = cell->name};
    if (status == TB_OK)
        status = run_call_once(state, &once, &call.status, &outcome);
    const bool ran = outcome_good(&outcome);
    if (status == TB_OK && !ran)
        record_refuse_outcome(state, record, draw, &outcome);
    if (status == TB_OK && ran)
        status =
            gumbel_call_conduct(state, &call, host.seed, host.position, host.temperature, &outcome);
    if (status == TB_OK && ran)
        record_refuse_conduct(record, draw, &outcome);
    if (status == TB_OK && ran)
        status =
            state->device->ops->download(state->device, host.token, call.given.token,
                                         (size_t)cell->batch * sizeof *host.token, state->error);
    if (status == TB_OK && ran)
        status = judge(state, record, draw, &host);
    if (status == TB_OK && ran) {
        const size_t at = (size_t)(record - state->result->cells);
        memcpy(state->output_sha256[at][draw], record->draws[draw].mask_sha256, 65);
    }
    if (status == TB_OK && ran && draw == 0 && cell->gumbel->noise)
        status = measure_noise(state, record, &call, &host);
    host_draw_free(&host);
    return status;
}

enum tb_status gate_gumbel_cell(struct run_state *state, struct cell_record *record) {
    const struct gumbel_variant *variant = record->cell->gumbel;
    enum tb_status status = TB_OK;
    if (record_refuse_shape(record, variant->name, variant->max_batch, variant->max_vocab))
        return TB_OK;
    for (int32_t draw = 0; draw < record->cell->draws && status == TB_OK && !run_stopped(state) &&
                           record->verdict != GATE_TIMEOUT && record->verdict != GATE_UNSUPPORTED;
         draw++)
        status = gate_draw(state, record, draw);
    return status;
}

/* Draws of a statistic: one distribution, many (seed, position). */
struct sampler {
    struct run_state *state;
    const struct cell *cell;
    struct outcome outcome;
};

struct part {
    struct gumbel_call call;
    int status;
};

static void *draw_part(void *argument) {
    struct part *part = argument;
    part->status = gumbel_call_run(&part->call, NULL);
    return NULL;
}

/* The CPU's kernels use one thread a launch: a batch is drawn in parts, one a processor. */
static int run_parts(struct run_state *state, const struct gumbel_variant *variant,
                     const struct gumbel_problem *problem) {
    struct part parts[MOST_THREADS];
    pthread_t threads[MOST_THREADS];
    long processors = state->run->threads > 0 ? state->run->threads : sysconf(_SC_NPROCESSORS_ONLN);
    int count = processors < 1 ? 1 : processors > MOST_THREADS ? MOST_THREADS : (int)processors;
    if (count > problem->batch)
        count = (int)problem->batch;
    const int64_t share = (problem->batch + count - 1) / count;
    const size_t each = (variant->workspace_size(problem) + 255) / 256 * 256;
    if (slot_reserve(state, &state->workspace, each * (size_t)count + 256) != TB_OK)
        return -1;
    int started = 0, status = 0;
    for (int64_t at = 0; at < problem->batch; at += share, started++) {
        struct part *part = &parts[started];
        *part = (struct part){
            .call = {.device = state->device,
                     .variant = variant,
                     .problem = *problem,
                     .workspace = (char *)state->workspace.memory + each * (size_t)started,
                     .workspace_bytes = each}};
        struct gumbel_problem *own = &part->call.problem;
        own->batch = problem->batch - at < share ? problem->batch - at : share;
        own->seed += at;
        own->position += at;
        own->temperature += at;
        own->token += at;
        if (pthread_create(&threads[started], NULL, draw_part, part) != 0)
            break;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        status = status ? status : parts[i].status;
    }
    return status;
}

static int run_whole(struct sampler *sampler, const struct gumbel_problem *problem) {
    struct run_state *state = sampler->state;
    const struct cell *cell = sampler->cell;
    struct gumbel_call call = {.device = state->device,
                               .variant = cell->gumbel,
                               .problem = *problem,
                               .workspace_bytes = cell->gumbel->workspace_size(problem)};
    if (slot_reserve(state, &state->workspace, call.workspace_bytes + 256) != TB_OK)
        return -1;
    call.workspace = state->workspace.memory;
    const struct timed_call once = {.context = &call, .run = gumbel_call_run, .name = cell->name};
    return run_call_once(state, &once, &call.status, &sampler->outcome) != TB_OK ||
           !outcome_good(&sampler->outcome);
}

static int draw_tokens(void *context, const float *logits, int64_t vocab, const int64_t *seeds,
                       const int64_t *positions, float temperature, int64_t n, int64_t *tokens) {
    struct sampler *sampler = context;
    struct run_state *state = sampler->state;
    float temperatures[STATISTIC_BATCH];
    const size_t words = (size_t)n * sizeof *seeds;
    for (int64_t i = 0; i < n; i++)
        temperatures[i] = temperature;
    if (run_stopped(state))
        return -1;
    if (slot_upload(state, &state->rows, logits, (size_t)vocab * sizeof *logits) != TB_OK ||
        slot_upload(state, &state->seeds[0], seeds, words) != TB_OK ||
        slot_upload(state, &state->positions[0], positions, words) != TB_OK ||
        slot_upload(state, &state->temperatures[0], temperatures,
                    (size_t)n * sizeof temperatures[0]) != TB_OK ||
        slot_reserve(state, &state->tokens[0], words) != TB_OK)
        return -1;
    const struct gumbel_problem problem = {.logits = state->rows.memory,
                                           .batch = n,
                                           .vocab = vocab,
                                           .stride = 0,
                                           .seed = state->seeds[0].memory,
                                           .position = state->positions[0].memory,
                                           .temperature = state->temperatures[0].memory,
                                           .token = state->tokens[0].memory};
    const int status = state->device->kind == KERNEL_DEVICE_CPU
                           ? run_parts(state, sampler->cell->gumbel, &problem)
                           : run_whole(sampler, &problem);
    if (status < 0)
        sampler->outcome.status = status;
    if (status)
        return status;
    return state->device->ops->download(state->device, tokens, problem.token, words,
                                        state->error) != TB_OK;
}

enum tb_status gate_statistic_cell(struct run_state *state, struct cell_record *record) {
    const struct cell *cell = record->cell;
    const struct gumbel_statistic *statistic = gumbel_statistic_find(cell->statistic);
    const struct statistic_size *size =
        state->device->kind == KERNEL_DEVICE_CPU ? &statistic_cpu : &statistic_full;
    struct statistic_result result;
    struct sampler sampler = {.state = state, .cell = cell};
    if (!statistic)
        return tb_fail(state->error, TB_INTERNAL, "there is no statistic `%s`", cell->statistic);
    const enum tb_status status =
        statistic->run(size, draw_tokens, &sampler, &result, state->error);
    /* What ended the sampling, not that it ended, is what is to be said. */
    const bool refused = !outcome_good(&sampler.outcome);
    if (status != TB_OK && (run_stopped(state) || refused)) {
        if (state->error)
            *state->error = (struct tb_error)TB_ERROR_INIT;
        if (refused && !run_stopped(state))
            record_refuse_outcome(state, record, 0, &sampler.outcome);
        return TB_OK;
    }
    if (status != TB_OK)
        return status;
    record->rows = result.draws;
    record->statistic = json_pack(
        "{s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:s}", "size", size->name, "vocab",
        (json_int_t)result.vocab, "draws", (json_int_t)result.draws, "observed",
        (json_int_t)result.observed, "expected", json_number(result.expected), "z_head",
        json_number(result.z_head), "z_tail", json_number(result.z_tail), "chi2",
        json_number(result.chi2), "chi2_limit", json_number(result.chi2_limit), "smallest_defect",
        json_number(result.power), "smallest_defect_of", statistic->power, "measured", result.why);
    if (result.verdict != GATE_ACCEPTED)
        record_refuse(record, result.verdict, cell->statistic, 0, -1, -1, "%s", result.why);
    return TB_OK;
}
