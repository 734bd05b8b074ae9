/* results.json: strict JSON, one cell a line, so that a run of thousands of cells is written
 * without holding its text in memory. */
#include "bench/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static json_t *info_to_json(const struct run_info *info) {
    json_t *json = json_object();
    json_object_set_new(json, "id", json_string(info->id));
    json_object_set_new(json, "date", json_string(info->date));
    json_object_set_new(json, "profile",
                        json_pack("{s:s, s:s, s:s?}", "name", info->profile_name, "sha256",
                                  info->profile_sha256, "file",
                                  info->profile_file[0] ? info->profile_file : NULL));
    json_object_set_new(json, "input", info->input[0] ? json_string(info->input) : json_null());
    json_object_set_new(json, "plan_sha256", json_string(info->plan_sha256));
    json_object_set_new(json, "shard", shard_to_json(&info->shard));
    json_object_set_new(json, "sources_sha256",
                        info->sources_sha256[0] ? json_string(info->sources_sha256) : json_null());
    json_object_set_new(json, "seed", json_integer(info->seed));
    json_object_set_new(json, "unfrozen", json_boolean(info->unfrozen));
    json_object_set_new(json, "subset", json_boolean(info->subset));
    json_object_set_new(json, "resumed", json_boolean(info->resumed));
    json_object_set_new(json, "slices", json_integer(info->slices));
    json_object_set_new(json, "oracle_cache",
                        info->oracle_cache ? json_incref(info->oracle_cache) : json_null());
    const struct timing_settings *timing = &info->timing;
    json_t *settings = json_object();
    json_object_set_new(settings, "blocks", json_integer(timing->blocks));
    json_object_set_new(settings, "min_samples", json_integer(timing->min_samples));
    json_object_set_new(settings, "max_samples", json_integer(timing->max_samples));
    json_object_set_new(settings, "precision", json_number(timing->precision));
    json_object_set_new(settings, "block_seconds", json_number(timing->block_seconds));
    json_object_set_new(settings, "warmup_seconds", json_number(timing->warmup_seconds));
    json_object_set_new(json, "timing", settings);
    const struct profile_limits *limits = &info->limits;
    json_t *bounds = json_object();
    json_object_set_new(bounds, "max_vocab", json_integer(limits->max_vocab));
    json_object_set_new(bounds, "max_batch", json_integer(limits->max_batch));
    json_object_set_new(bounds, "case_seconds", json_number(limits->case_seconds));
    json_object_set_new(bounds, "artifact_bytes", json_integer(limits->artifact_bytes));
    json_object_set_new(json, "limits", bounds);
    json_object_set_new(json, "device_kind", json_string(info->device_kind));
    json_object_set_new(json, "device", info->device ? json_incref(info->device) : json_null());
    json_object_set_new(json, "externals",
                        info->externals ? json_incref(info->externals) : json_array());
    json_object_set_new(json, "host", info->host ? json_incref(info->host) : json_null());
    json_object_set_new(json, "build", info->build ? json_incref(info->build) : json_null());
    json_object_set_new(json, "plugins", info->plugins ? json_incref(info->plugins) : json_array());
    return json;
}

static json_t *summary_to_json(const struct run_result *result) {
    json_t *json = json_object();
    json_object_set_new(json, "cells", json_integer((json_int_t)result->count));
    for (int verdict = GATE_ACCEPTED; verdict <= GATE_UNSUPPORTED; verdict++)
        json_object_set_new(json, gate_verdict_name((enum gate_verdict)verdict),
                            json_integer((json_int_t)result->by_verdict[verdict]));
    json_object_set_new(json, "timed", json_integer((json_int_t)result->timed));
    json_object_set_new(json, "unexpected", json_integer((json_int_t)result->unexpected));
    json_object_set_new(json, "unmeasured", json_integer((json_int_t)result->unmeasured));
    json_object_set_new(json, "as_expected", json_boolean(result->unexpected == 0));
    return json;
}

/* Writes `before`, the value (owned, freed), and `after`. */
static bool put(FILE *stream, const char *before, json_t *value, const char *after) {
    bool good = value && fputs(before, stream) >= 0 &&
                json_dumpf(value, stream, JSON_COMPACT | JSON_REAL_PRECISION(17)) == 0 &&
                fputs(after, stream) >= 0;
    json_decref(value);
    return good;
}

enum tb_status writer_json(const struct run_result *result, FILE *stream, struct tb_error *error) {
    errno = 0;
    bool good = fputs("{\"schema\":\"topp-bench.results/1\",\n", stream) >= 0;
    good = good && put(stream, "\"run\":", info_to_json(&result->info), ",\n");
    good = good && put(stream, "\"summary\":", summary_to_json(result), ",\n\"cells\":[\n");
    for (size_t i = 0; good && i < result->count; i++)
        good = put(stream, "", record_to_json(&result->cells[i]),
                   i + 1 < result->count ? ",\n" : "\n");
    good = good && fputs("]}\n", stream) >= 0 && fflush(stream) == 0;
    if (!good)
        return tb_fail(error, TB_IO, "cannot write the results: %s",
                       errno ? strerror(errno) : "text that is not UTF-8, or no memory");
    return TB_OK;
}
