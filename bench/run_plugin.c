#include "bench/run_plugin.h"

#include <string.h>

bool run_plugin_has(const struct run_state *state, size_t cell) {
    return plugin_of(state->run->plugins, &state->plan->cells[cell]) != NULL;
}

static enum tb_status open_pool(struct run_state *state) {
    const struct sweep_run *run = state->run;
    const json_t *uuid = json_object_get(state->result->info.device, "uuid");
    const struct plugin_pool_options options = {
        .set = run->plugins,
        .plan = state->plan,
        .captured_dir = run->captured_dir,
        .gpu = state->device->visible > 1 ? json_string_value(uuid) : NULL,
        .timer = run->timer,
        .gate_only = run->gate_only,
        .threads = run->threads,
        .slices = run->slices,
        .cache_bytes = run->cache_bytes,
        .oracle_cache = run->oracle_cache,
        .stop = run->stop};
    return state->pool ? TB_OK : plugin_pool_make(&options, &state->pool, state->error);
}

/* The verdict on a plug-in that gave none itself. */
static void refuse(struct cell_record *record, enum plugin_end end, const char *why,
                   const char *doing) {
    if (end == PLUGIN_LATE)
        record_refuse(record, GATE_TIMEOUT, "timeout", -1, -1, -1,
                      "the plug-in did not come back in time while it was %s: its process was "
                      "ended",
                      doing);
    else if (end == PLUGIN_CRASHED)
        record_refuse(record, GATE_REJECTED, "crash", -1, -1, -1,
                      "the plug-in's process %s while it was %s", why, doing);
    else
        record_refuse(record, GATE_REJECTED, "fault", -1, -1, -1, "%s", why);
}

static const char while_timed[] = "timed, after the gate had accepted it";

/* A line of this kind, and of the very cell that was asked for. */
static bool is_line(const json_t *line, const char *kind, const struct cell *cell) {
    const char *text = json_string_value(json_object_get(line, "line"));
    const char *name = json_string_value(json_object_get(line, "cell"));
    return text && !strcmp(text, kind) && name && !strcmp(name, cell->name);
}

/* Something wrote into the connection beside the worker. */
static void not_understood(struct run_state *state, size_t cell, const char *doing) {
    plugin_pool_distrust(state->pool, &state->plan->cells[cell]);
    refuse(&state->result->cells[cell], PLUGIN_CRASHED,
           "wrote something else than answers into its connection: it was ended", doing);
}

enum tb_status run_plugin_gate(struct run_state *state, size_t cell) {
    const char *name = state->plan->cells[cell].name;
    char why[PLUGIN_WHY_BYTES] = "";
    enum plugin_end end = PLUGIN_STOPPED;
    json_t *line = NULL;
    enum tb_status status = open_pool(state);
    if (status == TB_OK)
        status = plugin_pool_ask(state->pool, &state->plan->cells[cell],
                                 json_pack("{s:s, s:s}", "ask", "gate", "cell", name), &end, &line,
                                 why, state->error);
    if (status != TB_OK || end == PLUGIN_STOPPED)
        return status;
    if (end != PLUGIN_ANSWERED)
        refuse(&state->result->cells[cell], end, why, "gated");
    else if (!is_line(line, "verdict", &state->plan->cells[cell]) ||
             !verdict_from_line(state, line, cell))
        not_understood(state, cell, "gated");
    else
        oracle_cache_add_counts(state->run->oracle_cache, json_object_get(line, "oracle"));
    json_decref(line);
    return status;
}

static json_t *block_request(const struct run_state *state, size_t cell, int32_t block, bool warm) {
    json_t *outputs = json_array();
    for (int32_t i = 0; i < state->result->cells[cell].draw_count; i++)
        json_array_append_new(outputs, json_string(state->output_sha256[cell][i]));
    return json_pack("{s:s, s:s, s:i, s:b, s:o}", "ask", "block", "cell",
                     state->plan->cells[cell].name, "block", (int)block, "warm", (int)warm,
                     "outputs", outputs);
}

enum tb_status run_plugin_block(struct run_state *state, size_t cell, int32_t block, bool warm,
                                struct block_result *result) {
    char why[PLUGIN_WHY_BYTES] = "";
    enum plugin_end end = PLUGIN_STOPPED;
    json_t *line = NULL;
    enum tb_status status = open_pool(state);
    if (status == TB_OK)
        status = plugin_pool_ask(state->pool, &state->plan->cells[cell],
                                 block_request(state, cell, block, warm), &end, &line, why,
                                 state->error);
    if (status != TB_OK || end == PLUGIN_STOPPED)
        return status;
    if (end != PLUGIN_ANSWERED)
        refuse(&state->result->cells[cell], end, why, while_timed);
    else if (is_line(line, "verdict", &state->plan->cells[cell])
                 ? !verdict_lost_from_line(state, line, cell)
                 : !is_line(line, "block", &state->plan->cells[cell]) ||
                       !block_from_line(line, result))
        not_understood(state, cell, while_timed);
    json_decref(line);
    return status;
}
