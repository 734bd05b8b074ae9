/* Verdicts and blocks as journal lines, and back: what a resumed run need not do again. */
#include "bench/run_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

json_t *verdict_line(const struct run_state *state, size_t cell) {
    struct cell_record *record = &state->result->cells[cell];
    json_t *outputs = json_array();
    for (int32_t i = 0; i < record->draw_count; i++)
        json_array_append_new(outputs, json_string(state->output_sha256[cell][i]));
    record_finish_cell(record);
    return json_pack("{s:s, s:s, s:o, s:o}", "line", "verdict", "cell", record->cell->name,
                     "record", record_to_json(record), "outputs", outputs);
}

/* A plug-in's worker has no journal. */
enum tb_status journal_verdict(struct run_state *state, size_t cell) {
    return state->journal ? journal_append(state->journal, verdict_line(state, cell), state->error)
                          : TB_OK;
}

static json_t *evidence_to_json(const struct kernel_evidence *kernels, size_t count) {
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct kernel_evidence *kernel = &kernels[i];
        json_array_append_new(
            array, json_pack("{s:s, s:[i,i,i], s:[i,i,i], s:i, s:i}", "name", kernel->name, "grid",
                             (int)kernel->grid[0], (int)kernel->grid[1], (int)kernel->grid[2],
                             "block", (int)kernel->block[0], (int)kernel->block[1],
                             (int)kernel->block[2], "shared_bytes", (int)kernel->shared_bytes,
                             "registers", (int)kernel->registers));
    }
    return array;
}

json_t *block_line(const struct run_state *state, size_t cell, int32_t block,
                   const struct block_result *result) {
    return json_pack("{s:s, s:s, s:i, s:o, s:o, s:o, s:s, s:o}", "line", "block", "cell",
                     state->plan->cells[cell].name, "block", (int)block, "samples",
                     samples_to_json(result->samples, result->count), "kernels",
                     evidence_to_json(result->kernels, result->kernel_count), "events_ns",
                     json_number(result->events_ns), "refused", result->refused, "conditions",
                     result->conditions ? json_incref(result->conditions) : json_null());
}

enum tb_status journal_block(struct run_state *state, size_t cell, int32_t block,
                             const struct block_result *result) {
    return journal_append(state->journal, block_line(state, cell, block, result), state->error);
}

void block_result_free(struct block_result *result) {
    free(result->samples);
    free(result->kernels);
    json_decref(result->conditions);
    memset(result, 0, sizeof *result);
}

static void drop_samples(struct cell_record *record) {
    free(record->samples);
    record->samples = NULL;
    record->sample_count = 0;
    record->events_ns = NAN;
}

void record_drop_timing(struct cell_record *record) {
    drop_samples(record);
    free(record->kernels);
    record->kernels = NULL;
    record->kernel_count = 0;
    json_decref(record->conditions);
    record->conditions = NULL;
    record->blocks = 0;
    record->unmeasured[0] = '\0';
}

enum tb_status record_add_block(struct cell_record *record, struct block_result *result,
                                struct tb_error *error) {
    enum tb_status status = TB_OK;
    struct sample *samples =
        realloc(record->samples, (record->sample_count + result->count + 1) * sizeof *samples);
    if (samples) {
        record->samples = samples;
        if (result->count)
            memcpy(samples + record->sample_count, result->samples,
                   result->count * sizeof *samples);
        record->sample_count += result->count;
    } else {
        status =
            tb_fail(error, TB_NO_MEMORY, "no memory for the samples of %s", record->cell->name);
    }
    if (!record->kernels) {
        record->kernels = result->kernels;
        record->kernel_count = result->kernel_count;
        result->kernels = NULL;
    }
    if (isfinite(result->events_ns))
        record->events_ns = result->events_ns;
    if (result->refused[0] && !record->unmeasured[0])
        snprintf(record->unmeasured, sizeof record->unmeasured, "%s", result->refused);
    if (record->unmeasured[0])
        drop_samples(record);
    if (result->conditions) {
        if (!record->conditions)
            record->conditions = json_array();
        json_array_append(record->conditions, result->conditions);
    }
    record->blocks++;
    block_result_free(result);
    return status;
}

static const char *text_of(const json_t *json, const char *key) {
    const char *text = json_string_value(json_object_get(json, key));
    return text ? text : "";
}

static int64_t count_of(const json_t *json, const char *key, int64_t missing) {
    const json_t *value = json_object_get(json, key);
    return json_is_integer(value) ? json_integer_value(value) : missing;
}

static void read_draws(const json_t *inputs, struct cell_record *record) {
    for (int32_t i = 0; i < record->draw_count; i++) {
        const json_t *json = json_array_get(inputs, (size_t)i);
        struct draw_record *draw = &record->draws[i];
        snprintf(draw->input_sha256, sizeof draw->input_sha256, "%s",
                 text_of(json, "input_sha256"));
        snprintf(draw->mask_sha256, sizeof draw->mask_sha256, "%s", text_of(json, "mask_sha256"));
        draw->kept = count_of(json, "kept", 0);
        draw->oracle = count_of(json, "oracle", 0);
        draw->rows_equal = count_of(json, "rows_equal", 0);
    }
}

/* What was refused and why, if it was. */
static bool read_refusal(const json_t *json, struct cell_record *record) {
    const char *verdict = text_of(json, "verdict");
    int found = GATE_ACCEPTED;
    while (found <= GATE_UNSUPPORTED &&
           strcmp(gate_verdict_name((enum gate_verdict)found), verdict) != 0)
        found++;
    if (found > GATE_UNSUPPORTED)
        return false;
    record->verdict = (enum gate_verdict)found;
    record->gated = true;
    snprintf(record->rule, sizeof record->rule, "%s", text_of(json, "rule"));
    snprintf(record->reason, sizeof record->reason, "%s", text_of(json, "reason"));
    record->draw = (int32_t)count_of(json, "bad_draw", -1);
    record->row = count_of(json, "bad_row", -1);
    record->token = count_of(json, "bad_token", -1);
    record->row_kept = count_of(json, "bad_row_kept", -1);
    record->row_oracle = count_of(json, "bad_row_oracle", -1);
    return true;
}

static bool read_verdict(const json_t *json, struct cell_record *record) {
    if (!read_refusal(json, record))
        return false;
    record->excused = json_is_true(json_object_get(json, "excused"));
    record->rows = count_of(json, "rows", 0);
    record->rows_failed = count_of(json, "rows_failed", 0);
    record->rows_equal = count_of(json, "rows_equal", 0);
    record->rows_excused = count_of(json, "rows_excused", 0);
    const json_t *rules = json_object_get(json, "rows_by_rule");
    for (int rule = GATE_RULE_NONE + 1; rule < GATE_RULE_COUNT; rule++)
        record->rows_by_rule[rule] = count_of(rules, gate_rule_name((enum gate_rule)rule), 0);
    record->kept = count_of(json, "kept", 0);
    record->oracle = count_of(json, "oracle", 0);
    record->most_surplus = count_of(json, "most_surplus", 0);
    record->most_missing = count_of(json, "most_missing", 0);
    record->surplus_mass = json_number_value(json_object_get(json, "surplus_mass"));
    record->missing_mass = json_number_value(json_object_get(json, "missing_mass"));
    json_t *statistic = json_object_get(json, "statistic_figures");
    json_decref(record->statistic);
    record->statistic = json_is_object(statistic) ? json_incref(statistic) : NULL;
    return true;
}

bool verdict_lost_from_line(struct run_state *state, const json_t *line, size_t cell) {
    return read_refusal(json_object_get(line, "record"), &state->result->cells[cell]);
}

bool verdict_from_line(struct run_state *state, const json_t *line, size_t cell) {
    struct cell_record *record = &state->result->cells[cell];
    const json_t *json = json_object_get(line, "record");
    if (!record->draws) {
        record->draws = calloc((size_t)record->cell->draws, sizeof *record->draws);
        record->draw_count = record->draws ? record->cell->draws : 0;
    }
    if (!record->draws || !read_verdict(json, record))
        return false;
    if (record->verdict != GATE_ACCEPTED) /* a second verdict, after blocks: the first was lost */
        record_drop_timing(record);
    read_draws(json_object_get(json, "inputs"), record);
    const json_t *outputs = json_object_get(line, "outputs");
    for (int32_t i = 0; i < record->draw_count; i++) {
        const char *hash = json_string_value(json_array_get(outputs, (size_t)i));
        snprintf(state->output_sha256[cell][i], 65, "%s", hash ? hash : "");
    }
    return true;
}

static bool read_evidence(const json_t *array, struct block_result *result) {
    const size_t count = json_array_size(array);
    result->kernels = calloc(count + 1, sizeof *result->kernels);
    if (!result->kernels)
        return false;
    for (size_t i = 0; i < count; i++) {
        const json_t *json = json_array_get(array, i);
        struct kernel_evidence *kernel = &result->kernels[i];
        snprintf(kernel->name, sizeof kernel->name, "%s", text_of(json, "name"));
        for (size_t axis = 0; axis < 3; axis++) {
            kernel->grid[axis] =
                (uint32_t)json_integer_value(json_array_get(json_object_get(json, "grid"), axis));
            kernel->block[axis] =
                (uint32_t)json_integer_value(json_array_get(json_object_get(json, "block"), axis));
        }
        kernel->shared_bytes = (uint32_t)count_of(json, "shared_bytes", 0);
        kernel->registers = (uint32_t)count_of(json, "registers", 0);
    }
    result->kernel_count = count;
    return true;
}

bool block_from_line(const json_t *line, struct block_result *result) {
    *result = (struct block_result){.events_ns = NAN};
    if (!samples_from_json(json_object_get(line, "samples"), &result->samples, &result->count))
        return false;
    if (!read_evidence(json_object_get(line, "kernels"), result)) {
        block_result_free(result);
        return false;
    }
    snprintf(result->refused, sizeof result->refused, "%s", text_of(line, "refused"));
    if (json_is_number(json_object_get(line, "events_ns")))
        result->events_ns = json_number_value(json_object_get(line, "events_ns"));
    json_t *conditions = json_object_get(line, "conditions");
    result->conditions = json_is_object(conditions) ? json_incref(conditions) : NULL;
    return true;
}

static bool replay_block(struct run_state *state, const json_t *line, size_t cell) {
    struct cell_record *record = &state->result->cells[cell];
    struct block_result result;
    if (count_of(line, "block", -1) != record->blocks || !block_from_line(line, &result))
        return false;
    return record_add_block(record, &result, state->error) == TB_OK;
}

static int by_name(const void *left, const void *right, void *context) {
    const struct cell *cells = context;
    return strcmp(cells[*(const size_t *)left].name, cells[*(const size_t *)right].name);
}

/* Indices of the plan's cells, ascending by name: a journal has a line for each of their blocks.
 * NULL without memory. Owned. */
static size_t *sort_cells(const struct plan *plan) {
    size_t *sorted = malloc((plan->count + 1) * sizeof *sorted);
    for (size_t i = 0; sorted && i < plan->count; i++)
        sorted[i] = i;
    if (sorted)
        qsort_r(sorted, plan->count, sizeof *sorted, by_name, plan->cells);
    return sorted;
}

/* plan->count when there is none of that name. */
static size_t find_cell(const struct plan *plan, const size_t *sorted, const char *name) {
    size_t low = 0, high = plan->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(name, plan->cells[sorted[middle]].name);
        if (order == 0)
            return sorted[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return plan->count;
}

static bool replay_line(struct run_state *state, const json_t *line, size_t cell) {
    const char *kind = text_of(line, "line");
    if (cell == state->plan->count)
        return false;
    return !strcmp(kind, "verdict") ? verdict_from_line(state, line, cell)
           : !strcmp(kind, "block") ? replay_block(state, line, cell)
                                    : false;
}

enum tb_status journal_replay(struct run_state *state) {
    const json_t *lines = journal_lines(state->journal);
    size_t *sorted = sort_cells(state->plan);
    enum tb_status status =
        sorted ? TB_OK : tb_fail(state->error, TB_NO_MEMORY, "no memory to resume the run");
    for (size_t i = 0; status == TB_OK && i < json_array_size(lines); i++) {
        const json_t *line = json_array_get(lines, i);
        const char *name = text_of(line, "cell");
        if (!json_object_get(line, "end") &&
            !replay_line(state, line, find_cell(state->plan, sorted, name)))
            status = tb_fail_at(state->error, TB_UNREADABLE, "journal.jsonl", (int64_t)i + 2, -1,
                                "this line (%s of %s) does not fit the run: give --force without "
                                "--resume to start afresh",
                                text_of(line, "line"), name);
    }
    free(sorted);
    return status;
}
