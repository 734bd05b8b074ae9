/* The gate of samplers: many launches of one input, each with its own seeds and positions. */
#include "bench/run_external.h"

#include "oracle/gate_ids.h"

#include <stdlib.h>
#include <string.h>

/* One draw of a cell's rows and all launches on it; host memory. */
struct sampling {
    const struct logits *logits;
    struct gate_scene scene;
    struct gate_ids_case the_case;
    int64_t *ids;             /* [launches, batch] */
    int64_t again;            /* of these launches, how many are made again for each half */
    int64_t *again_ids[2];    /* [again, batch] */
    int64_t *seed, *position; /* [batch]: of the latest launch */
    struct outcome outcome;
};

static enum tb_status sampling_make(struct run_state *state, struct gate_group *group,
                                    const struct cell *cell, int32_t draw,
                                    struct sampling *sampling) {
    const size_t words = (size_t)cell->batch * sizeof(int64_t);
    const int64_t launches = gate_ids_launches(cell->batch, cell->draws);
    *sampling = (struct sampling){.ids = malloc((size_t)launches * words)};
    sampling->seed = malloc(words);
    sampling->position = malloc(words);
    for (int half = 0; half < 2; half++)
        sampling->again_ids[half] = malloc(GATE_IDS_MOST_AGAIN * words);
    if (!sampling->ids || !sampling->seed || !sampling->position || !sampling->again_ids[0] ||
        !sampling->again_ids[1])
        return tb_fail(state->error, TB_NO_MEMORY, "no memory for the ids of %s", cell->name);
    enum tb_status status = gate_scene_make(state, group, cell, draw, &sampling->scene);
    if (status == TB_OK)
        status = run_input(state, cell, draw, &sampling->logits, NULL);
    if (status != TB_OK)
        return status;
    /* A program has one start, one seed and no positions. */
    const bool own = !external_of(cell->topp);
    sampling->the_case = (struct gate_ids_case){.input = sampling->logits->data,
                                                .batch = cell->batch,
                                                .vocab = cell->vocab,
                                                .stride = cell->stride,
                                                .oracle = sampling->scene.oracle,
                                                .ids = sampling->ids,
                                                .launches = launches,
                                                .hazard = family_is_hazard(&cell->family),
                                                .rows_apart = own};
    return own ? gate_ids_again_launches(&sampling->the_case, &sampling->again, state->error)
               : TB_OK;
}

static void sampling_free(struct sampling *sampling) {
    gate_scene_free(&sampling->scene);
    free(sampling->ids);
    free(sampling->again_ids[0]);
    free(sampling->again_ids[1]);
    free(sampling->seed);
    free(sampling->position);
}

enum { NO_HALF = -1 };

/* Launches that differ in their positions alone. */
struct series {
    int half; /* the rows that have another seed; NO_HALF: none */
    int64_t launches;
    int64_t *ids; /* [launches, batch] */
};

static void make_inputs(const struct cell *cell, int32_t draw, const struct series *series,
                        int64_t launch, struct sampling *sampling) {
    sampler_row_inputs(cell, draw, launch, sampling->seed, sampling->position);
    if (series->half != NO_HALF)
        gate_ids_reseed(sampling->seed, cell->batch, series->half);
}

/* The rows are placed before the very first launch alone: a sampler leaves them as they are. */
static enum tb_status launch_once(struct run_state *state, const struct cell *cell, int32_t draw,
                                  const struct series *series, int64_t launch,
                                  struct topp_call *call, struct sampling *sampling) {
    const struct device_ops *ops = state->device->ops;
    const size_t words = (size_t)cell->batch * sizeof(int64_t);
    const bool first = launch == 0 && series->half == NO_HALF;
    const struct timed_call once = {.context = call,
                                    .prepare = first ? topp_call_prepare : NULL,
                                    .run = topp_call_run,
                                    .name = cell->name};
    make_inputs(cell, draw, series, launch, sampling);
    enum tb_status status = ops->upload(state->device, state->positions[draw].memory,
                                        sampling->position, words, state->error);
    if (status == TB_OK)
        status = run_call_once(state, &once, &call->status, &sampling->outcome);
    if (status == TB_OK && outcome_good(&sampling->outcome))
        status = ops->download(state->device, series->ids + launch * cell->batch, call->given.ids,
                               words, state->error);
    return status;
}

static enum tb_status launch_series(struct run_state *state, const struct cell *cell, int32_t draw,
                                    const struct series *series, struct topp_call *call,
                                    struct sampling *sampling) {
    make_inputs(cell, draw, series, 0, sampling);
    enum tb_status status =
        state->device->ops->upload(state->device, state->seeds[draw].memory, sampling->seed,
                                   (size_t)cell->batch * sizeof(int64_t), state->error);
    for (int64_t launch = 0; status == TB_OK && launch < series->launches &&
                             outcome_good(&sampling->outcome) && !run_stopped(state);
         launch++)
        status = launch_once(state, cell, draw, series, launch, call, sampling);
    if (status == TB_OK && outcome_good(&sampling->outcome))
        status = topp_call_conduct(state, call, draw, sampling->scene.p, sampling->seed,
                                   sampling->position, &sampling->outcome);
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
    const struct series series[] = {{NO_HALF, sampling->the_case.launches, sampling->ids},
                                    {0, sampling->again, sampling->again_ids[0]},
                                    {1, sampling->again, sampling->again_ids[1]}};
    for (int i = 0; status == TB_OK && i < 3; i++)
        status = launch_series(state, cell, draw, &series[i], &call, sampling);
    if (status == TB_OK && outcome_good(&sampling->outcome))
        status = rows_kept(state, cell, &call, sampling);
    return status;
}

/* All that came out of one draw's rows. */
static enum tb_status judge(struct run_state *state, const struct sampling *sampling,
                            struct gate_ids_result *result) {
    enum tb_status status = gate_ids_add(&sampling->the_case, result, state->error);
    for (int half = 0; status == TB_OK && sampling->again && half < 2; half++) {
        const struct gate_ids_again again = {half, sampling->again_ids[half], sampling->again};
        status = gate_ids_add_again(&sampling->the_case, &again, result, state->error);
    }
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
                                   sampling.the_case.launches, &came);
    else if (status == TB_OK)
        status = launch_all(state, cell, draw, &sampling);
    if (status == TB_OK)
        record_refuse_conduct(record, draw, &sampling.outcome);
    if (status == TB_OK && !outcome_good(&sampling.outcome)) {
        record_refuse_outcome(state, record, draw, &sampling.outcome);
    } else if (status == TB_OK && came && !run_stopped(state)) {
        const int64_t right = result->rows_equal;
        /* The timed launch is the first one. */
        bytes_sha256(sampling.ids, (size_t)cell->batch * sizeof *sampling.ids, drawn->mask_sha256);
        memcpy(state->output_sha256[record - state->result->cells][draw], drawn->mask_sha256, 65);
        status = judge(state, &sampling, result);
        drawn->rows_equal = result->rows_equal - right;
    }
    sampling_free(&sampling);
    return status;
}

static json_t *figures(const struct gate_ids_result *result) {
    const struct gate_pairs *pairs = &result->pairs;
    const double *bits = result->seed_bits; /* a lone row is the first half */
    json_t *json =
        json_pack("{s:I, s:I, s:I, s:o, s:o, s:I, s:o}", "draws", (json_int_t)result->draws,
                  "outside", (json_int_t)result->outside, "tested", (json_int_t)result->tested,
                  "chi2", json_number(result->chi2), "chi2_limit", json_number(result->chi2_limit),
                  "degrees_of_freedom", (json_int_t)result->degrees, "smallest_defect",
                  json_number(result->smallest_defect));
    json_t *more = json_pack(
        "{s:I, s:o, s:o, s:I, s:o, s:I, s:I, s:o}", "pairs", (json_int_t)pairs->pairs, "pairs_chi2",
        json_number(pairs->chi2), "pairs_chi2_limit", json_number(result->pairs_limit),
        "pairs_degrees_of_freedom", (json_int_t)pairs->degrees, "smallest_repeat",
        json_number(result->smallest_repeat), "repeated", (json_int_t)result->repeated, "reseeded",
        (json_int_t)result->reseeded, "seed_bits",
        json_number(bits[1] > 0.0 && bits[1] < bits[0] ? bits[1] : bits[0]));
    json_object_update(json, more);
    json_decref(more);
    return json;
}

static void refuse(struct cell_record *record, const struct gate_ids_result *result) {
    const char *const rule = gate_rule_name(result->rule), *text = gate_rule_text(result->rule);
    if (result->rule == GATE_RULE_CHI_SQUARE)
        record_refuse(record, result->verdict, rule, -1, -1, -1,
                      "%s chi-square %.1f, limit %.1f, over %lld draws", text, result->chi2,
                      result->chi2_limit, (long long)result->tested);
    else if (result->rule == GATE_RULE_DEPENDENT)
        record_refuse(record, result->verdict, rule, -1, -1, -1,
                      "%s chi-square %.1f, limit %.1f, over %lld pairs of draws", text,
                      result->pairs.chi2, result->pairs_limit, (long long)result->pairs.pairs);
    else if (result->rule == GATE_RULE_SEED_IGNORED)
        record_refuse(record, result->verdict, rule, -1, -1, -1,
                      "%s %lld draws, alike by chance in 2^-%d of all cases at most", text,
                      (long long)result->reseeded, GATE_IDS_SEED_BITS);
    else if (result->rule == GATE_RULE_NOT_REPEATED)
        record_refuse(record, result->verdict, rule, (int32_t)result->input, result->row,
                      result->token, "%s Launch %lld.", text, (long long)result->launch);
    else
        record_refuse(record, result->verdict, rule, (int32_t)result->input, result->row,
                      result->token, "%s %lld of %lld draws", text, (long long)result->outside,
                      (long long)result->draws);
}

static void take_result(struct cell_record *record, const struct gate_ids_result *result) {
    record->rows = result->rows;
    record->rows_failed = result->rows_failed;
    record->rows_equal = result->rows_equal;
    for (int rule = 0; rule < GATE_RULE_COUNT; rule++)
        record->rows_by_rule[rule] = result->rows_by_rule[rule];
    record->statistic = figures(result);
    if (result->verdict != GATE_ACCEPTED && record->verdict == GATE_ACCEPTED)
        refuse(record, result);
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
