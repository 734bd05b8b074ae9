/* --verify: every derived figure computed again from the samples. */
#include "bench/verify.h"

#include <stdlib.h>
#include <string.h>

/* Members of a cell that follow from its samples and verdict. */
static const char *const derived[] = {
    "sample_count",     "median_ns",      "ci_low_ns",      "ci_high_ns",  "p05_ns", "p95_ns",
    "draw_low_ns",      "draw_high_ns",   "busy_ns",        "cycles",      "sm_mhz", "bytes_moved",
    "bytes_per_second", "ratio_to_floor", "samples_sha256", "as_expected",
};

static bool parse_verdict(const char *name, enum gate_verdict *verdict) {
    for (int i = GATE_ACCEPTED; name && i <= GATE_UNSUPPORTED; i++)
        if (!strcmp(gate_verdict_name((enum gate_verdict)i), name)) {
            *verdict = (enum gate_verdict)i;
            return true;
        }
    return false;
}

static void copy_text(char *text, size_t bytes, const json_t *json) {
    const char *value = json_string_value(json);
    snprintf(text, bytes, "%s", value ? value : "");
}

/* Fills what record_finish_run() derives from; false when the samples cannot be read. */
static bool read_record(const json_t *json, struct cell_record *record) {
    const json_t *samples = json_object_get(json, "samples");
    record->gated =
        parse_verdict(json_string_value(json_object_get(json, "verdict")), &record->verdict);
    record->excused = json_is_true(json_object_get(json, "excused"));
    copy_text(record->rule, sizeof record->rule, json_object_get(json, "rule"));
    copy_text(record->unmeasured, sizeof record->unmeasured, json_object_get(json, "unmeasured"));
    if (json_is_null(samples))
        return true;
    return samples_from_json(samples, &record->samples, &record->sample_count);
}

/* A sample exists only of an accepted cell, whatever the file says. */
static void verify_record(struct verification *verification, const struct cell_record *record,
                          const json_t *found, const json_t *bound) {
    json_t *again = record_to_json(record);
    const char *name = record->cell->name, *wrong = NULL;
    for (size_t i = 0; !wrong && i < sizeof derived / sizeof derived[0]; i++) {
        const json_t *is = json_object_get(found, derived[i]);
        const json_t *should = json_object_get(again, derived[i]);
        if (!is || !should || !json_equal(is, should))
            wrong = derived[i];
    }
    if (wrong)
        receipt_add(&verification->items, RECEIPT_CHANGED, "figures", name,
                    "%s does not follow from the samples and the verdict", wrong);
    else if (record->sample_count && (!record->gated || record->verdict != GATE_ACCEPTED))
        receipt_add(&verification->items, RECEIPT_CHANGED, "figures", name,
                    "has samples, but was not accepted");
    else
        receipt_add(&verification->items, RECEIPT_VERIFIED, "figures", name, "%s", "");
    if (record->sample_count || !json_is_null(json_object_get(bound, "samples_sha256")))
        verify_equal(verification, "samples", name, json_object_get(bound, "samples_sha256"),
                     json_object_get(again, "samples_sha256"));
    json_decref(again);
}

static void verify_count(struct verification *verification, const char *name, size_t count) {
    const json_t *summary = json_object_get(verification->results, "summary");
    json_t *should = json_integer((json_int_t)count);
    verify_equal(verification, "summary", name, json_object_get(summary, name), should);
    json_decref(should);
}

static void verify_summary(struct verification *verification, const struct run_result *run) {
    verify_count(verification, "cells", run->count);
    for (int verdict = GATE_ACCEPTED; verdict <= GATE_UNSUPPORTED; verdict++)
        verify_count(verification, gate_verdict_name((enum gate_verdict)verdict),
                     run->by_verdict[verdict]);
    verify_count(verification, "timed", run->timed);
    verify_count(verification, "unexpected", run->unexpected);
    verify_count(verification, "unmeasured", run->unmeasured);
}

void verify_figures(struct verification *verification) {
    const json_t *found = json_object_get(verification->results, "cells");
    const json_t *bound = json_object_get(verification->receipt, "cells");
    const size_t count = json_array_size(bound);
    if (!verification->have_plan || json_array_size(found) != count) {
        receipt_add(&verification->items, RECEIPT_ELSEWHERE, "figures", "all cells",
                    "the cells of results.json are not those that the profile gives here");
        return;
    }
    struct run_result run = {.count = count, .cells = calloc(count + 1, sizeof *run.cells)};
    bool *readable = calloc(count + 1, sizeof *readable);
    if (!run.cells || !readable) {
        verification->items.short_of_memory = true;
        free(readable);
        free(run.cells);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        run.cells[i].cell = &verification->plan.cells[i];
        readable[i] = read_record(json_array_get(found, i), &run.cells[i]);
    }
    record_finish_run(&run);
    for (size_t i = 0; i < count; i++) {
        if (readable[i])
            verify_record(verification, &run.cells[i], json_array_get(found, i),
                          json_array_get(bound, i));
        else
            receipt_add(&verification->items, RECEIPT_CHANGED, "samples", run.cells[i].cell->name,
                        "cannot be read from results.json");
    }
    verify_summary(verification, &run);
    free(readable);
    run_result_free(&run);
}
