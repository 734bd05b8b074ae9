/* "topp-bench.verdict/1": docs/perfwatch.md describes every member. */
#include "ci/report.h"

#include <math.h>

static json_t *number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *measure_to_json(const struct estimate *estimate, double common, bool significant) {
    if (!estimate->valid)
        return json_null();
    json_t *json = json_object();
    json_object_set_new(json, "shift", number(expm1(estimate->shift - common)));
    json_object_set_new(json, "low", number(expm1(estimate->low)));
    json_object_set_new(json, "high", number(expm1(estimate->high)));
    json_object_set_new(json, "standard_error", number(estimate->se));
    json_object_set_new(json, "degrees_of_freedom", number(estimate->df));
    json_object_set_new(json, "p_worse", number(estimate->p_worse));
    json_object_set_new(json, "p_better", number(estimate->p_better));
    json_object_set_new(json, "significant", json_boolean(significant));
    json_object_set_new(json, "rank_p_worse", number(estimate->rank_worse));
    json_object_set_new(json, "rank_p_better", number(estimate->rank_better));
    json_object_set_new(
        json, "rank_values",
        json_pack("[I,I]", (json_int_t)estimate->rank_base, (json_int_t)estimate->rank_new));
    json_object_set_new(json, "rank_reliable", json_boolean(estimate->rank_reliable));
    json_object_set_new(json, "blocks",
                        json_pack("[I,I]", (json_int_t)estimate->base.blocks,
                                  (json_int_t)estimate->new_side.blocks));
    json_object_set_new(json, "samples",
                        json_pack("[I,I]", (json_int_t)estimate->base.samples,
                                  (json_int_t)estimate->new_side.samples));
    return json;
}

static json_t *verdict_to_json(const struct comparison *comparison, const struct verdict *verdict) {
    json_t *json = json_object();
    const struct result_cell *base = verdict->base, *new_side = verdict->new_side;
    const struct result_cell *either = base ? base : new_side;
    json_object_set_new(json, "name", json_string(verdict->name));
    json_object_set_new(json, "outcome", json_string(outcome_name(verdict->outcome)));
    json_object_set_new(json, "excused", json_boolean(verdict->excused));
    json_object_set_new(json, "reason",
                        verdict->reason[0] ? json_string(verdict->reason) : json_null());
    json_object_set_new(json, "better", json_string(either->higher_is_better ? "higher" : "lower"));
    json_object_set_new(json, "base_median", base ? number(base->median) : json_null());
    json_object_set_new(json, "new_median", new_side ? number(new_side->median) : json_null());
    json_object_set_new(json, "base_verdict",
                        base && base->verdict[0] ? json_string(base->verdict) : json_null());
    json_object_set_new(json, "new_verdict",
                        new_side && new_side->verdict[0] ? json_string(new_side->verdict)
                                                         : json_null());
    json_object_set_new(json, "ratio", number(verdict->ratio));
    json_object_set_new(json, "process_sigma",
                        verdict->time.valid ? number(verdict->process_sigma) : json_null());
    json_object_set_new(
        json, "time",
        measure_to_json(&verdict->time, comparison->common[MEASURE_TIME], verdict->significant));
    json_object_set_new(json, "cycles",
                        measure_to_json(&verdict->cycles, comparison->common[MEASURE_CYCLES],
                                        verdict->significant_cycles));
    return json;
}

static json_t *differences_to_json(const struct differences *differences) {
    static const char *const weights[] = {"note", "ignored", "refuses"};
    json_t *array = json_array();
    for (size_t i = 0; i < differences->count; i++) {
        const struct difference *difference = &differences->list[i];
        json_array_append_new(array, json_pack("{s:s,s:s,s:s,s:s}", "field", difference->field,
                                               "weight", weights[difference->weight], "base",
                                               difference->base, "new", difference->new_side));
    }
    return array;
}

bool report_json(const struct report *report, FILE *stream) {
    const struct comparison *comparison = report->comparison;
    char headline[1024];
    report_headline(report, headline, sizeof headline);
    json_t *json = json_object(), *counts = json_object(), *cells = json_array();
    json_object_set_new(json, "schema", json_string("topp-bench.verdict/1"));
    json_object_set_new(json, "base", json_string(report->base));
    json_object_set_new(json, "new", json_string(report->new_side));
    json_object_set_new(json, "exit_code", json_integer(comparison->exit_code));
    json_object_set_new(json, "headline", json_string(headline));
    json_object_set_new(json, "refused",
                        comparison->refused[0] ? json_string(comparison->refused) : json_null());
    json_object_set_new(json, "margin", number(report->options->margin));
    json_object_set_new(json, "false_discovery_rate", number(report->options->fdr));
    json_object_set_new(json, "calibrated", json_boolean(report->options->calibration != NULL));
    json_object_set_new(json, "common_shift_time", number(comparison->common[MEASURE_TIME]));
    json_object_set_new(json, "common_shift_cycles", number(comparison->common[MEASURE_CYCLES]));
    json_object_set_new(json, "same_sources",
                        comparison->sources_known ? json_boolean(comparison->same_sources)
                                                  : json_null());
    json_object_set_new(json, "environment", differences_to_json(&comparison->differences));
    for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++)
        json_object_set_new(counts, outcome_name((enum outcome)outcome),
                            json_integer((json_int_t)comparison->by_outcome[outcome]));
    json_object_set_new(json, "counts", counts);
    for (size_t i = 0; i < comparison->count; i++)
        json_array_append_new(cells, verdict_to_json(comparison, &comparison->verdicts[i]));
    json_object_set_new(json, "cells", cells);
    bool good = json_dumpf(json, stream, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) == 0 &&
                fputc('\n', stream) != EOF;
    json_decref(json);
    return good;
}
