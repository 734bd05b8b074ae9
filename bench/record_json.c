/* Records as JSON. The members of a cell are the columns of results.tsv, and more. */
#include "bench/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

json_t *json_number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *shard_to_json(const struct plan_shard *shard) {
    if (shard->index == 0)
        return json_null();
    return json_pack("{s:i, s:i, s:I, s:s}", "index", (int)shard->index, "count", (int)shard->count,
                     "cells", (json_int_t)shard->cells, "list_sha256", shard->list_sha256);
}

static json_t *text_or_null(const char *text) {
    return text[0] ? json_string(text) : json_null();
}

static json_t *count_or_null(int64_t count) {
    return count >= 0 ? json_integer(count) : json_null();
}

/* Columns of doubles in struct sample. */
static const struct {
    const char *name;
    size_t offset;
} columns[] = {
    {"time_ns", offsetof(struct sample, time_ns)},
    {"busy_ns", offsetof(struct sample, busy_ns)},
    {"cycles", offsetof(struct sample, cycles)},
    {"sm_mhz", offsetof(struct sample, sm_mhz)},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static double *column_of(struct sample *sample, size_t column) {
    return (double *)(void *)((char *)sample + columns[column].offset);
}

json_t *samples_to_json(const struct sample *samples, size_t count) {
    json_t *json = json_object();
    for (size_t column = 0; column < COLUMNS; column++) {
        json_t *array = json_array();
        bool any = false;
        for (size_t i = 0; i < count; i++) {
            struct sample sample = samples[i];
            double value = *column_of(&sample, column);
            any = any || isfinite(value);
            json_array_append_new(array, json_number(value));
        }
        if (!any) {
            json_decref(array);
            array = json_null();
        }
        json_object_set_new(json, columns[column].name, array);
    }
    json_t *blocks = json_array(), *draws = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(blocks, json_integer(samples[i].block));
        json_array_append_new(draws, json_integer(samples[i].draw));
    }
    json_object_set_new(json, "block", blocks);
    json_object_set_new(json, "draw", draws);
    return json;
}

static bool read_small(const json_t *json, int32_t *value) {
    if (!json_is_integer(json) || json_integer_value(json) < 0 ||
        json_integer_value(json) > INT32_MAX)
        return false;
    *value = (int32_t)json_integer_value(json);
    return true;
}

static bool read_column(const json_t *json, size_t column, struct sample *samples, size_t count) {
    const json_t *array = json_object_get(json, columns[column].name);
    if (!array || (!json_is_null(array) && json_array_size(array) != count))
        return false;
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_is_null(array) ? NULL : json_array_get(array, i);
        if (value && !json_is_null(value) && !json_is_number(value))
            return false;
        *column_of(&samples[i], column) =
            value && json_is_number(value) ? json_number_value(value) : (double)NAN;
    }
    return true;
}

bool samples_from_json(const json_t *json, struct sample **samples, size_t *count) {
    const json_t *blocks = json_object_get(json, "block"), *draws = json_object_get(json, "draw");
    *samples = NULL;
    *count = json_array_size(blocks);
    if (!json_is_array(blocks) || !json_is_array(draws) || json_array_size(draws) != *count)
        return false;
    struct sample *read = calloc(*count + 1, sizeof *read);
    bool good = read != NULL;
    for (size_t i = 0; good && i < *count; i++)
        good = read_small(json_array_get(blocks, i), &read[i].block) &&
               read_small(json_array_get(draws, i), &read[i].draw);
    for (size_t column = 0; good && column < COLUMNS; column++)
        good = read_column(json, column, read, *count);
    if (!good) {
        free(read);
        *count = 0;
        return false;
    }
    *samples = read;
    return true;
}

/* The settings: all that a name says, each in a member of its own. */
static void put_settings(json_t *json, const struct cell *cell) {
    static const char *const kinds[] = {"topp", "gumbel", "gumbel_statistic"};
    bool topp = cell->kind == CELL_TOPP;
    const char *device =
        (topp ? cell->topp->device : cell->gumbel->device) == KERNEL_DEVICE_CUDA ? "cuda" : "cpu";
    json_object_set_new(json, "name", json_string(cell->name));
    json_object_set_new(json, "kind", json_string(kinds[cell->kind]));
    json_object_set_new(json, "kernel", json_string(topp ? cell->topp->name : cell->gumbel->name));
    json_object_set_new(
        json, "output",
        json_string(gate_output_name(topp ? (enum gate_output)cell->topp->output : GATE_IDS)));
    json_object_set_new(json, "contract", topp ? json_string(cell->topp->contract) : json_null());
    json_object_set_new(json, "family", text_or_null(cell->family.text));
    json_object_set_new(json, "statistic", text_or_null(cell->statistic));
    json_object_set_new(json, "vocab", json_integer(cell->vocab));
    json_object_set_new(json, "batch", json_integer(cell->batch));
    json_object_set_new(json, "stride", json_integer(cell->stride));
    json_object_set_new(json, "p", topp ? json_number((double)cell->p) : json_null());
    json_object_set_new(json, "p_text", topp ? json_string(cell->p_text) : json_null());
    json_object_set_new(json, "temperature",
                        topp ? json_null() : json_number((double)cell->temperature));
    json_object_set_new(json, "seed", json_integer(cell->seed));
    json_object_set_new(json, "draws", json_integer(cell->draws));
    json_object_set_new(json, "device", json_string(device));
    json_object_set_new(json, "l2", text_or_null(cell_l2_name(cell->l2)));
    json_object_set_new(json, "launch", text_or_null(cell_launch_name(cell->launch)));
    json_object_set_new(json, "timed", json_boolean(cell->timed));
    json_object_set_new(json, "expect", json_string(expectation_name(cell->expect)));
    json_object_set_new(json, "either_share",
                        cell->expect == EXPECT_EITHER ? json_number(cell->either_share)
                                                      : json_null());
    json_object_set_new(json, "expect_why", text_or_null(cell->expect_why));
}

static json_t *rules_to_json(const struct cell_record *record) {
    json_t *rules = json_object();
    for (int rule = GATE_RULE_NONE + 1; rule < GATE_RULE_COUNT; rule++)
        if (record->rows_by_rule[rule] > 0)
            json_object_set_new(rules, gate_rule_name((enum gate_rule)rule),
                                json_integer(record->rows_by_rule[rule]));
    return rules;
}

/* Does the cell's kernel leave a kept set, so that there is something to count? */
static bool keeps_a_set(const struct cell *cell) {
    return cell->kind == CELL_TOPP && cell->topp->output != TOPP_IDS;
}

static json_t *draws_to_json(const struct cell_record *record) {
    const bool sets = keeps_a_set(record->cell);
    json_t *draws = json_array();
    for (int32_t i = 0; i < record->draw_count; i++) {
        const struct draw_record *draw = &record->draws[i];
        json_t *json = json_object();
        json_object_set_new(json, "input_sha256", text_or_null(draw->input_sha256));
        json_object_set_new(json, "mask_sha256", text_or_null(draw->mask_sha256));
        json_object_set_new(json, "kept", sets ? count_or_null(draw->kept) : json_null());
        json_object_set_new(json, "oracle", sets ? count_or_null(draw->oracle) : json_null());
        json_object_set_new(json, "rows_equal", count_or_null(draw->rows_equal));
        json_array_append_new(draws, json);
    }
    return draws;
}

static void put_verdict(json_t *json, const struct cell_record *record) {
    const bool topp = record->cell->kind == CELL_TOPP, sets = keeps_a_set(record->cell);
    json_object_set_new(json, "verdict",
                        record->gated ? json_string(gate_verdict_name(record->verdict))
                                      : json_null());
    json_object_set_new(json, "rule", text_or_null(record->rule));
    json_object_set_new(json, "reason", text_or_null(record->reason));
    json_object_set_new(json, "bad_draw", count_or_null(record->draw));
    json_object_set_new(json, "bad_row", count_or_null(record->row));
    json_object_set_new(json, "bad_token", count_or_null(record->token));
    json_object_set_new(json, "bad_row_kept", count_or_null(record->row_kept));
    json_object_set_new(json, "bad_row_oracle", count_or_null(record->row_oracle));
    json_object_set_new(json, "excused", json_boolean(record->excused));
    json_object_set_new(json, "as_expected", json_boolean(record->as_expected));
    json_object_set_new(json, "rows", json_integer(record->rows));
    json_object_set_new(json, "rows_failed", json_integer(record->rows_failed));
    json_object_set_new(json, "rows_equal", json_integer(record->rows_equal));
    json_object_set_new(json, "rows_excused", json_integer(record->rows_excused));
    json_object_set_new(json, "rows_by_rule", topp ? rules_to_json(record) : json_null());
    json_object_set_new(json, "kept", sets ? json_integer(record->kept) : json_null());
    json_object_set_new(json, "oracle", sets ? json_integer(record->oracle) : json_null());
    json_object_set_new(json, "most_surplus",
                        sets ? json_integer(record->most_surplus) : json_null());
    json_object_set_new(json, "most_missing",
                        sets ? json_integer(record->most_missing) : json_null());
    json_object_set_new(json, "surplus_mass",
                        sets ? json_number(record->surplus_mass) : json_null());
    json_object_set_new(json, "missing_mass",
                        sets ? json_number(record->missing_mass) : json_null());
    json_object_set_new(json, "statistic_figures",
                        record->statistic ? json_incref(record->statistic) : json_null());
    json_object_set_new(json, "inputs", draws_to_json(record));
}

static json_t *kernels_to_json(const struct cell_record *record) {
    json_t *kernels = json_array();
    for (size_t i = 0; i < record->kernel_count; i++) {
        const struct kernel_evidence *kernel = &record->kernels[i];
        json_t *json =
            json_pack("{s:s, s:[I, I, I], s:[I, I, I], s:I, s:I}", "name", kernel->name, "grid",
                      (json_int_t)kernel->grid[0], (json_int_t)kernel->grid[1],
                      (json_int_t)kernel->grid[2], "block", (json_int_t)kernel->block[0],
                      (json_int_t)kernel->block[1], (json_int_t)kernel->block[2], "shared_bytes",
                      (json_int_t)kernel->shared_bytes, "registers", (json_int_t)kernel->registers);
        json_array_append_new(kernels, json ? json : json_null());
    }
    return kernels;
}

static void put_timing(json_t *json, const struct cell_record *record) {
    const struct cell_summary *summary = &record->summary;
    bool timed = summary->samples > 0;
    json_object_set_new(json, "sample_count", json_integer((json_int_t)summary->samples));
    json_object_set_new(json, "blocks", json_integer(record->blocks));
    json_object_set_new(json, "median_ns", json_number(summary->median_ns));
    json_object_set_new(json, "ci_low_ns", json_number(summary->ci_low_ns));
    json_object_set_new(json, "ci_high_ns", json_number(summary->ci_high_ns));
    json_object_set_new(json, "p05_ns", json_number(summary->p05_ns));
    json_object_set_new(json, "p95_ns", json_number(summary->p95_ns));
    json_object_set_new(json, "draw_low_ns", json_number(summary->draw_low_ns));
    json_object_set_new(json, "draw_high_ns", json_number(summary->draw_high_ns));
    json_object_set_new(json, "busy_ns", json_number(summary->busy_ns));
    json_object_set_new(json, "cycles", json_number(summary->cycles));
    json_object_set_new(json, "sm_mhz", json_number(summary->sm_mhz));
    json_object_set_new(json, "events_ns", json_number(record->events_ns));
    json_object_set_new(json, "bytes_moved", json_number(record->bytes_moved));
    json_object_set_new(json, "bytes_per_second", json_number(record->bytes_per_second));
    json_object_set_new(json, "ratio_to_floor", json_number(record->ratio_to_floor));
    json_object_set_new(json, "unmeasured", text_or_null(record->unmeasured));
    json_object_set_new(json, "samples_sha256", text_or_null(record->samples_sha256));
    json_object_set_new(json, "samples",
                        timed ? samples_to_json(record->samples, record->sample_count)
                              : json_null());
    json_object_set_new(json, "kernels", kernels_to_json(record));
    json_object_set_new(json, "conditions",
                        record->conditions ? json_incref(record->conditions) : json_null());
}

json_t *record_to_json(const struct cell_record *record) {
    json_t *json = json_object();
    put_settings(json, record->cell);
    put_verdict(json, record);
    put_timing(json, record);
    return json;
}
