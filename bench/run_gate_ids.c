/* The gate of samplers: many launches of one input, each with its own seeds and positions. */
#include "bench/run_external.h"

#include "oracle/gate_ids.h"

#include <stdlib.h>
#include <string.h>

/* One draw of a cell's rows and all launches on it; host memory. */
struct sampling {
    const struct logits *logits;
    struct gate_scene scene;
    int64_t launches;
    int64_t *ids;             /* [launches, batch] */
    int64_t *seed, *position; /* [batch]: of the latest launch */
    struct outcome outcome;
};

static enum tb_status sampling_make(struct run_state *state, struct gate_group *group,
                                    const struct cell *cell, int32_t draw,
                                    struct sampling *sampling) {
    const size_t words = (size_t)cell->batch * sizeof(int64_t);
    *sampling = (struct sampling){.launches = gate_ids_launches(cell->batch, cell->draws)};
    sampling->ids = malloc((size_t)sampling->launches * words);
    sampling->seed = malloc(words);
    sampling->position = malloc(words);
    if (!sampling->ids || !sampling->seed || !sampling->position)
        return tb_fail(state->error, TB_NO_MEMORY, "no memory for the ids of %s", cell->name);
    const enum tb_status status = gate_scene_make(state, group, cell, draw, &sampling->scene);
    return status == TB_OK ? run_input(state, cell, draw, &sampling->logits, NULL) : status;
}

static void sampling_free(struct sampling *sampling) {
    gate_scene_free(&sampling->scene);
    free(sampling->ids);
    free(sampling->seed);
    free(sampling->position);
}

/* The rows are placed before the first launch alone: a sampler leaves them as they are. */
static enum tb_status launch_once(struct run_state *state, const struct cell *cell, int32_t draw,
                                  int64_t launch, struct topp_call *call,
                                  struct sampling *sampling) {
    const struct device_ops *ops = state->device->ops;
    const size_t words = (size_t)cell->batch * sizeof(int64_t);
    const struct timed_call once = {.context = call,
                                    .prepare = launch == 0 ? topp_call_prepare : NULL,
                                    .run = topp_call_run,
                                    .name = cell->name};
    sampler_row_inputs(cell, draw, launch, sampling->seed, sampling->position);
    enum tb_status status = ops->upload(state->device, state->positions[draw].memory,
                                        sampling->position, words, state->error);
    if (status == TB_OK)
        status = run_call_once(state, &once, &call->status, &sampling->outcome);
    if (status == TB_OK && outcome_good(&sampling->outcome))
        status = ops->download(state->device, sampling->ids + launch * cell->batch, call->given.ids,
                               words, state->error);
    return status;
}

static enum tb_status rows_kept(struct run_state *state, const struct cell *cell,
                                const struct topp_call *call, struct sampling *sampling) {
    float *rows = sampling->scene.output;
    const enum tb_status status = state->device->ops->download(
        state->device, rows, call->given.logits, call->bytes, state->error);
    sampling->outcome.input_changed =
        sampling->outcome.input_changed ||
        (status == TB_OK && memcmp(rows, sampling->logits->data, row_bytes(cell)) != 0);
    return status;
}

static enum tb_status launch_all(struct run_state *state, const struct cell *cell, int32_t draw,
                                 struct sampling *sampling) {
    struct topp_call call;
    enum tb_status status = topp_call_make(state, cell, cell->topp, draw, NULL, true, &call);
    for (int64_t launch = 0; status == TB_OK && launch < sampling->launches &&
                             outcome_good(&sampling->outcome) && !run_stopped(state);
         launch++)
        status = launch_once(state, cell, draw, launch, &call, sampling);
    if (status == TB_OK && outcome_good(&sampling->outcome))
        status = topp_call_conduct(state, &call, draw, sampling->scene.p, sampling->seed,
                                   sampling->position, &sampling->outcome);
    if (status == TB_OK && outcome_good(&sampling->outcome))
        status = rows_kept(state, cell, &call, sampling);
    return status;
}

static enum tb_status gate_draw(struct run_state *state, struct gate_group *group,
                                struct cell_record *record, int32_t draw,
                                struct gate_ids_result *result) {
    const struct cell *cell = record->cell;
    struct draw_record *drawn = &record->draws[draw];
    struct sampling sampling;
    bool came = true;
    enum tb_status status = sampling_make(state, group, cell, draw, &sampling);
    if (status == TB_OK)
        memcpy(drawn->input_sha256, sampling.logits->sha256, sizeof drawn->input_sha256);
    if (status == TB_OK && external_of(cell->topp))
        status = external_draw_ids(state, record, draw, sampling.scene.p, sampling.ids,
                                   sampling.launches, &came);
    else if (status == TB_OK)
        status = launch_all(state, cell, draw, &sampling);
    if (status == TB_OK)
        record_refuse_conduct(record, draw, &sampling.outcome);
    if (status == TB_OK && !outcome_good(&sampling.outcome)) {
        record_refuse_outcome(state, record, draw, &sampling.outcome);
    } else if (status == TB_OK && came && !run_stopped(state)) {
        const struct gate_ids_case the_case = {.input = sampling.logits->data,
                                               .batch = cell->batch,
                                               .vocab = cell->vocab,
                                               .stride = cell->stride,
                                               .oracle = sampling.scene.oracle,
                                               .ids = sampling.ids,
                                               .launches = sampling.launches,
                                               .hazard = family_is_hazard(&cell->family)};
        const int64_t right = result->rows_equal;
        /* The timed launch is the first one. */
        bytes_sha256(sampling.ids, (size_t)cell->batch * sizeof *sampling.ids, drawn->mask_sha256);
        memcpy(state->output_sha256[record - state->result->cells][draw], drawn->mask_sha256, 65);
        status = gate_ids_add(&the_case, result, state->error);
        drawn->rows_equal = result->rows_equal - right;
    }
    sampling_free(&sampling);
    return status;
}

static void take_result(struct cell_record *record, const struct gate_ids_result *result) {
    record->rows = result->rows;
    record->rows_failed = result->rows_failed;
    record->rows_equal = result->rows_equal;
    for (int rule = 0; rule < GATE_RULE_COUNT; rule++)
        record->rows_by_rule[rule] = result->rows_by_rule[rule];
    record->statistic =
        json_pack("{s:I, s:I, s:I, s:o, s:o, s:I, s:o}", "draws", (json_int_t)result->draws,
                  "outside", (json_int_t)result->outside, "tested", (json_int_t)result->tested,
                  "chi2", json_number(result->chi2), "chi2_limit", json_number(result->chi2_limit),
                  "degrees_of_freedom", (json_int_t)result->degrees, "smallest_defect",
                  json_number(result->smallest_defect));
    if (result->verdict == GATE_ACCEPTED || record->verdict != GATE_ACCEPTED)
        return;
    if (result->rule == GATE_RULE_CHI_SQUARE)
        record_refuse(record, result->verdict, gate_rule_name(result->rule), -1, -1, -1,
                      "%s chi-square %.1f, limit %.1f, over %lld draws",
                      gate_rule_text(result->rule), result->chi2, result->chi2_limit,
                      (long long)result->tested);
    else
        record_refuse(record, result->verdict, gate_rule_name(result->rule), (int32_t)result->input,
                      result->row, result->token, "%s %lld of %lld draws",
                      gate_rule_text(result->rule), (long long)result->outside,
                      (long long)result->draws);
}

enum tb_status gate_ids_cell(struct run_state *state, struct gate_group *group,
                             struct cell_record *record) {
    struct gate_ids_result result;
    enum tb_status status = TB_OK;
    gate_ids_begin(&result);
    for (int32_t draw = 0; draw < record->cell->draws && status == TB_OK && !run_stopped(state) &&
                           record->verdict == GATE_ACCEPTED;
         draw++)
        status = gate_draw(state, group, record, draw, &result);
    gate_ids_finish(&result);
    if (status == TB_OK && !run_stopped(state))
        take_result(record, &result);
    return status;
}
