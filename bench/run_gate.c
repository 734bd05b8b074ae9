/* The gate over all cells: input -> oracle once for all its p -> each kernel once on poisoned,
 * fresh memory -> verdict -> journal. */
#include "bench/run_external.h"
#include "bench/run_plugin.h"

#include "oracle/parallel.h"

#include <math.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_BYTES = 1 << 18 };

void record_refuse(struct cell_record *record, enum gate_verdict verdict, const char *rule,
                   int32_t draw, int64_t row, int64_t token, const char *format, ...) {
    va_list arguments;
    record->verdict = verdict;
    snprintf(record->rule, sizeof record->rule, "%s", rule);
    record->draw = draw;
    record->row = row;
    record->token = token;
    va_start(arguments, format);
    vsnprintf(record->reason, sizeof record->reason, format, arguments);
    va_end(arguments);
}

void record_refuse_outcome(const struct run_state *state, struct cell_record *record, int32_t draw,
                           const struct outcome *outcome) {
    if (outcome->timed_out)
        record_refuse(record, GATE_TIMEOUT, "timeout", draw, -1, -1,
                      "the kernel ran past the profile's %g seconds",
                      state->plan->limits.case_seconds);
    else if (record->verdict != GATE_ACCEPTED) /* the first reason stands */
        return;
    else if (outcome->status == KERNEL_UNSUPPORTED)
        record_refuse(record, GATE_UNSUPPORTED, "", draw, -1, -1,
                      "the kernel says that this shape is past its limits");
    else
        record_refuse(record, GATE_REJECTED, "launch", draw, -1, -1,
                      "the kernel did not run: it returned %d (%s)", outcome->status,
                      state->device->ops->error_text(state->device, outcome->status));
}

void record_refuse_conduct(struct cell_record *record, int32_t draw,
                           const struct outcome *outcome) {
    if (outcome->outside && strcmp(record->rule, "outside") != 0)
        record_refuse(record, GATE_REJECTED, "outside", draw, -1, -1,
                      "the kernel wrote before or behind its rows, or past its ids or workspace");
    else if (outcome->input_changed && !outcome->outside &&
             strcmp(record->rule, gate_rule_name(GATE_RULE_INPUT_CHANGED)) != 0)
        record_refuse(record, GATE_REJECTED, gate_rule_name(GATE_RULE_INPUT_CHANGED), draw, -1, -1,
                      "%s", gate_rule_text(GATE_RULE_INPUT_CHANGED));
}

bool record_refuse_shape(struct cell_record *record, const char *name, int64_t max_batch,
                         int64_t max_vocab) {
    const struct cell *cell = record->cell;
    if (max_batch > 0 && cell->batch > max_batch)
        record_refuse(record, GATE_UNSUPPORTED, "", -1, -1, -1, "%s takes batches up to %lld", name,
                      (long long)max_batch);
    else if (max_vocab > 0 && cell->vocab > max_vocab)
        record_refuse(record, GATE_UNSUPPORTED, "", -1, -1, -1, "%s takes vocabularies up to %lld",
                      name, (long long)max_vocab);
    return record->verdict == GATE_UNSUPPORTED;
}

void bytes_sha256(const void *bytes, size_t count, char sha256[65]) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    sha256[0] = '\0';
    if (EVP_Digest(bytes, count, digest, &length, EVP_sha256(), NULL) != 1)
        return;
    for (unsigned i = 0; i < length; i++)
        snprintf(sha256 + 2 * i, 3, "%02x", digest[i]);
}

struct row_hashes {
    const unsigned char *bytes;
    size_t row_bytes;
    unsigned char *digests; /* [rows, 32] */
};

static void hash_row(void *context, int64_t index) {
    const struct row_hashes *hashes = context;
    EVP_Digest(hashes->bytes + (size_t)index * hashes->row_bytes, hashes->row_bytes,
               hashes->digests + 32 * index, NULL, EVP_sha256(), NULL);
}

void rows_sha256(const void *bytes, int64_t rows, size_t row_bytes, int threads, char sha256[65]) {
    struct row_hashes hashes = {bytes, row_bytes, calloc((size_t)rows, 32)};
    sha256[0] = '\0';
    if (!hashes.digests)
        return;
    parallel_rows(rows, (size_t)rows * row_bytes < SMALL_BYTES ? 1 : threads, hash_row, &hashes);
    bytes_sha256(hashes.digests, 32 * (size_t)rows, sha256);
    free(hashes.digests);
}

/* Runs a variant on fresh memory and brings its output back, if one came out. */
static enum tb_status run_topp(struct run_state *state, const struct cell *cell,
                               const struct topp_variant *variant, int32_t draw,
                               const struct gate_scene *scene, float *output,
                               struct outcome *outcome) {
    struct topp_call call;
    enum tb_status status = topp_call_make(
        state, cell, variant, draw, variant->needs_boundary ? scene->boundary : NULL, true, &call);
    const struct timed_call once = {
        .context = &call, .prepare = topp_call_prepare, .run = topp_call_run, .name = cell->name};
    if (status == TB_OK)
        status = run_call_once(state, &once, &call.status, outcome);
    if (status == TB_OK && outcome_good(outcome))
        status = state->device->ops->download(state->device, output, call.given.logits, call.bytes,
                                              state->error);
    if (status == TB_OK && outcome_good(outcome))
        status = topp_call_conduct(state, &call, draw, scene->p, NULL, NULL, outcome);
    return status;
}

/* Of probabilities: how far they are from the oracle's, greatest over all draws. */
static void add_errors(struct cell_record *record, const struct gate_result *result) {
    static const char value[] = "value_error_share_of_bound", sum[] = "sum_error";
    const double old_value = json_number_value(json_object_get(record->statistic, value));
    const double old_sum = json_number_value(json_object_get(record->statistic, sum));
    json_decref(record->statistic);
    record->statistic =
        json_pack("{s:o, s:o}", value, json_number(fmax(old_value, result->value_error)), sum,
                  json_number(fmax(old_sum, result->sum_error)));
}

static void add_result(struct cell_record *record, int32_t draw, const struct gate_case *the_case,
                       const struct gate_row *rows, const struct gate_result *result) {
    struct draw_record *drawn = &record->draws[draw];
    memcpy(drawn->mask_sha256, result->mask_sha256, sizeof drawn->mask_sha256);
    drawn->rows_equal = result->rows_equal;
    for (int64_t row = 0; row < the_case->batch; row++) {
        drawn->kept += rows[row].kept;
        drawn->oracle += rows[row].oracle;
    }
    record->rows += the_case->batch;
    record->rows_failed += result->rows_failed;
    record->rows_equal += result->rows_equal;
    record->rows_excused += result->rows_excused;
    for (int rule = 0; rule < GATE_RULE_COUNT; rule++)
        record->rows_by_rule[rule] += result->rows_by_rule[rule];
    record->kept += drawn->kept;
    record->oracle += drawn->oracle;
    if (result->most_surplus > record->most_surplus)
        record->most_surplus = result->most_surplus;
    if (result->most_missing > record->most_missing)
        record->most_missing = result->most_missing;
    record->surplus_mass = fmax(record->surplus_mass, result->surplus_mass);
    record->missing_mass = fmax(record->missing_mass, result->missing_mass);
    if (the_case->kind == GATE_PROBABILITIES)
        add_errors(record, result);
    if (result->verdict == GATE_ACCEPTED || record->verdict != GATE_ACCEPTED)
        return;
    const bool contract = gate_rule_of_contract(result->rule);
    record_refuse(record, result->verdict, gate_rule_name(result->rule), draw, result->row,
                  result->token, "%s%s%s%s", contract ? "Claimed contract " : "",
                  contract ? record->cell->topp->contract : "", contract ? ": " : "",
                  gate_rule_text(result->rule));
    if (result->row >= 0) {
        record->row_kept = rows[result->row].kept;
        record->row_oracle = rows[result->row].oracle;
    }
}

static enum tb_status judge(struct run_state *state, struct cell_record *record, int32_t draw,
                            const struct logits *logits, const struct gate_scene *scene) {
    const struct cell *cell = record->cell;
    struct gate_case the_case = {
        .kind = cell->topp->output == TOPP_PROBABILITIES ? GATE_PROBABILITIES : GATE_MASKED_LOGITS,
        .input = logits->data,
        .output = scene->output,
        .batch = cell->batch,
        .vocab = cell->vocab,
        .stride = cell->stride,
        .mask_value = -INFINITY,
        .p = scene->p,
        .oracle = scene->oracle,
        .stock_output = scene->stock,
        .forced_token = family_forced_token(&cell->family, cell->vocab),
        .hazard = family_is_hazard(&cell->family),
        .either = cell->expect == EXPECT_EITHER,
        .either_share = cell->either_share,
    };
    if (!gate_contract_parse(cell->topp->contract, &the_case.contract))
        return tb_fail(state->error, TB_INTERNAL, "%s claims the unknown contract `%s`",
                       cell->topp->name, cell->topp->contract);
    the_case.split_path =
        the_case.contract == GATE_BOUNDED || the_case.contract == GATE_CONSERVATIVE;
    struct gate_row *rows = calloc((size_t)cell->batch, sizeof *rows);
    struct gate_result result;
    if (!rows)
        return tb_fail(state->error, TB_NO_MEMORY, "no memory for the verdicts of %s", cell->name);
    const enum tb_status status = gate_check(&the_case, rows, &result, state->error);
    if (status == TB_OK)
        add_result(record, draw, &the_case, rows, &result);
    free(rows);
    return status;
}

/* Stock on the same bytes, for a contract that compares with it; nothing when it did not do. */
static enum tb_status run_stock(struct run_state *state, const struct cell *cell, int32_t draw,
                                struct gate_scene *scene) {
    const struct topp_variant *stock = topp_find("stock", cell->topp->device);
    struct outcome outcome = {0};
    enum tb_status status = TB_OK;
    scene->stock = stock ? malloc(row_bytes(cell)) : NULL;
    if (scene->stock)
        status = run_topp(state, cell, stock, draw, scene, scene->stock, &outcome);
    if (!outcome_harmless(&outcome)) { /* nothing to compare with: the gate's rule says so */
        free(scene->stock);
        scene->stock = NULL;
    }
    return status;
}

/* *harmed is set when the kernel did what no rule of a row stands for: nothing excuses that. */
static enum tb_status gate_draw(struct run_state *state, struct gate_group *group,
                                struct cell_record *record, int32_t draw, bool *harmed) {
    const struct cell *cell = record->cell;
    const struct logits *logits;
    struct gate_scene scene = {0};
    struct outcome outcome = {0};
    bool came = true;
    enum tb_status status = run_input(state, cell, draw, &logits, NULL);
    if (status == TB_OK)
        memcpy(record->draws[draw].input_sha256, logits->sha256, sizeof logits->sha256);
    if (status == TB_OK)
        status = gate_scene_make(state, group, cell, draw, &scene);
    if (status == TB_OK && !strcmp(cell->topp->contract, "conservative"))
        status = run_stock(state, cell, draw, &scene);
    if (status == TB_OK && external_of(cell->topp))
        status = external_draw_rows(state, record, draw, scene.p, scene.output, &came);
    else if (status == TB_OK)
        status = run_topp(state, cell, cell->topp, draw, &scene, scene.output, &outcome);
    *harmed = *harmed || !outcome_harmless(&outcome) || !came;
    if (status == TB_OK)
        record_refuse_conduct(record, draw, &outcome);
    if (status == TB_OK && !outcome_good(&outcome)) {
        record_refuse_outcome(state, record, draw, &outcome);
    } else if (status == TB_OK && came) {
        status = run_input(state, cell, draw, &logits, NULL);
        if (status == TB_OK)
            status = judge(state, record, draw, logits, &scene);
        const size_t at = (size_t)(record - state->result->cells);
        rows_sha256(scene.output, cell->batch, (size_t)cell->stride * sizeof(float),
                    state->run->threads, state->output_sha256[at][draw]);
    }
    gate_scene_free(&scene);
    return status;
}

static enum tb_status gate_topp_cell(struct run_state *state, struct gate_group *group,
                                     struct cell_record *record) {
    const struct cell *cell = record->cell;
    enum tb_status status = TB_OK;
    bool harmed = false;
    if (record_refuse_shape(record, cell->topp->name, cell->topp->max_batch, cell->topp->max_vocab))
        return TB_OK;
    if (cell->topp->output == TOPP_IDS)
        return gate_ids_cell(state, group, record);
    for (int32_t draw = 0; draw < cell->draws && status == TB_OK && !run_stopped(state); draw++) {
        status = gate_draw(state, group, record, draw, &harmed);
        if (record->verdict == GATE_TIMEOUT || record->verdict == GATE_UNSUPPORTED ||
            (record->verdict != GATE_ACCEPTED && external_of(cell->topp)))
            break;
    }
    /* The share is of all rows that the cell saw, a part of a row counting as one. */
    record->excused =
        !harmed && cell->expect == EXPECT_EITHER && record->verdict == GATE_REJECTED &&
        record->rows_failed == record->rows_excused &&
        (double)record->rows_failed <= ceil(cell->either_share * (double)record->rows - 1e-9);
    return status;
}

/* A cell that differs in l2 and launch alone: the same kernel on the same bytes. */
static const struct cell_record *find_twin(const struct run_state *state,
                                           const struct gate_group *group, size_t at) {
    const struct cell *cell = &state->plan->cells[at];
    for (size_t i = at; i-- > group->first;) {
        const struct cell_record *other = &state->result->cells[i];
        if (other->gated && other->cell->kind == cell->kind &&
            cell->kind != CELL_GUMBEL_STATISTIC && other->cell->topp == cell->topp &&
            other->cell->gumbel == cell->gumbel && other->cell->p == cell->p &&
            other->cell->temperature == cell->temperature && other->cell->draws == cell->draws &&
            other->verdict != GATE_DRIFT && other->verdict != GATE_TIMEOUT)
            return other;
    }
    return NULL;
}

static void copy_verdict(struct run_state *state, const struct cell_record *from, size_t at) {
    struct cell_record *record = &state->result->cells[at];
    const struct cell_record own = *record;
    *record = *from;
    record->cell = own.cell;
    record->draws = own.draws;
    memcpy(record->draws, from->draws, (size_t)from->draw_count * sizeof *from->draws);
    record->statistic = from->statistic ? json_incref(from->statistic) : NULL;
    record->samples = NULL;
    record->sample_count = 0;
    record->blocks = 0;
    record->unmeasured[0] = '\0';
    record->kernels = NULL;
    record->kernel_count = 0;
    record->conditions = NULL;
    record->events_ns = NAN;
    memcpy(state->output_sha256[at], state->output_sha256[from - state->result->cells],
           sizeof state->output_sha256[at]);
}

static enum tb_status judge_cell(struct run_state *state, struct gate_group *group,
                                 struct cell_record *record) {
    switch (record->cell->kind) {
    case CELL_TOPP:
        return gate_topp_cell(state, group, record);
    case CELL_GUMBEL:
        return gate_gumbel_cell(state, record);
    case CELL_GUMBEL_STATISTIC:
        break;
    }
    return gate_statistic_cell(state, record);
}

static enum tb_status gate_cell(struct run_state *state, struct gate_group *group, size_t at) {
    struct cell_record *record = &state->result->cells[at];
    const struct cell_record *twin = find_twin(state, group, at);
    record->draws = calloc((size_t)record->cell->draws, sizeof *record->draws);
    if (!record->draws)
        return tb_fail(state->error, TB_NO_MEMORY, "no memory for a record");
    record->draw_count = record->cell->draws;
    enum tb_status status = TB_OK;
    if (twin) {
        copy_verdict(state, twin, at);
        return journal_verdict(state, at);
    }
    status =
        run_plugin_has(state, at) ? run_plugin_gate(state, at) : judge_cell(state, group, record);
    if (status != TB_OK || run_stopped(state))
        return status;
    record->gated = true;
    status = journal_verdict(state, at);
    return status == TB_OK && record->cell->kind == CELL_TOPP && external_of(record->cell->topp)
               ? external_keep_block(state, at)
               : status;
}

enum tb_status run_gate_cell(struct run_state *state, struct gate_group *group, size_t cell) {
    enum tb_status status = TB_OK;
    if (cell < group->first || cell >= group->end) {
        size_t first = cell;
        while (first > 0 &&
               cell_same_input(&state->plan->cells[first - 1], &state->plan->cells[cell]))
            first--;
        gate_group_free(group);
        status = gate_group_make(state, first, group);
    }
    return status == TB_OK ? gate_cell(state, group, cell) : status;
}

enum tb_status run_gate_all(struct run_state *state) {
    enum tb_status status = TB_OK;
    struct gate_group group = {0};
    progress_begin(&state->progress, state->run->progress, "gating", state->plan->count);
    state->progress.feed = state->run->feed;
    for (size_t i = 0; i < state->plan->count && status == TB_OK && !run_stopped(state); i++) {
        progress_now(&state->progress, state->plan->cells[i].name);
        if (!state->result->cells[i].gated)
            status = run_gate_cell(state, &group, i);
        progress_step(&state->progress, state->plan->cells[i].name);
    }
    gate_group_free(&group);
    progress_end(&state->progress);
    return status;
}
