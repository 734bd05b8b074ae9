#include "bench/plugin_pool.h"

#include "bench/plugin_plan.h"
#include "bench/worker_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct plugin_pool {
    struct plugin_pool_options options;
    struct worker_process *workers[PLUGINS_MOST]; /* by place in the set; NULL: none runs */
    size_t served[PLUGINS_MOST];                  /* requests that it has answered */
};

enum tb_status plugin_pool_make(const struct plugin_pool_options *options,
                                struct plugin_pool **pool, struct tb_error *error) {
    *pool = calloc(1, sizeof **pool);
    if (!*pool)
        return tb_fail(error, TB_NO_MEMORY, "no memory for the workers of plug-ins");
    (*pool)->options = *options;
    return TB_OK;
}

void plugin_pool_free(struct plugin_pool *pool) {
    for (size_t i = 0; pool && i < PLUGINS_MOST; i++)
        worker_close(pool->workers[i]);
    free(pool);
}

static void end_worker(struct plugin_pool *pool, size_t at) {
    worker_close(pool->workers[at]);
    pool->workers[at] = NULL;
    pool->served[at] = 0;
}

static json_t *opening(const struct plugin_pool *pool, const struct plugin *plugin) {
    const struct plugin_pool_options *options = &pool->options;
    return json_pack("{s:s, s:s, s:s, s:s?, s:i, s:b, s:i, s:i, s:I, s:o}", "ask", "open", "path",
                     plugin->path, "sha256", plugin->sha256, "captured_dir", options->captured_dir,
                     "timer", (int)options->timer, "gate_only", (int)options->gate_only, "threads",
                     options->threads, "slices", (int)options->slices, "cache_bytes",
                     (json_int_t)options->cache_bytes, "plan",
                     plugin_plan_to_json(options->plan, options->set, plugin));
}

static const char *text_of(const json_t *json, const char *key) {
    const char *text = json_string_value(json_object_get(json, key));
    return text ? text : "";
}

/* No answer, or one that tells of a failure: what that means. Ends the worker. */
static enum tb_status take_end(struct plugin_pool *pool, size_t at, json_t *line,
                               enum plugin_end *end, char why[PLUGIN_WHY_BYTES],
                               struct tb_error *error) {
    const volatile sig_atomic_t *stop = pool->options.stop;
    const enum tb_status code =
        line ? (enum tb_status)json_integer_value(json_object_get(line, "code")) : TB_OK;
    snprintf(why, PLUGIN_WHY_BYTES, "%s", text_of(line, "message"));
    *end = PLUGIN_FAULT;
    if (!line && stop && *stop) {
        *end = PLUGIN_STOPPED;
    } else if (!line) {
        *end = worker_was_late(pool->workers[at]) ? PLUGIN_LATE : PLUGIN_CRASHED;
        worker_how(pool->workers[at], why, PLUGIN_WHY_BYTES);
    }
    json_decref(line);
    end_worker(pool, at);
    if (code == TB_UNAVAILABLE || code == TB_NO_MEMORY)
        return tb_fail(error, code, "a plug-in's process: %s", why);
    return TB_OK;
}

/* *end stays PLUGIN_ANSWERED when the worker is ready. */
static enum tb_status open_worker(struct plugin_pool *pool, size_t at, enum plugin_end *end,
                                  char why[PLUGIN_WHY_BYTES], struct tb_error *error) {
    const enum tb_status status = worker_start(&pool->workers[at], error);
    if (status != TB_OK)
        return status;
    json_t *line = worker_ask(pool->workers[at], opening(pool, &pool->options.set->at[at]),
                              pool->options.stop);
    if (!line || !strcmp(text_of(line, "line"), "error"))
        return take_end(pool, at, line, end, why, error);
    json_decref(line);
    return TB_OK;
}

/* Once, by a worker that is there or a fresh one. */
static enum tb_status ask_once(struct plugin_pool *pool, size_t at, json_t *request,
                               enum plugin_end *end, json_t **line, char why[PLUGIN_WHY_BYTES],
                               struct tb_error *error) {
    enum tb_status status = TB_OK;
    *end = PLUGIN_ANSWERED;
    if (!pool->workers[at])
        status = open_worker(pool, at, end, why, error);
    if (status != TB_OK || *end != PLUGIN_ANSWERED)
        return status;
    json_t *answer = worker_ask(pool->workers[at], json_incref(request), pool->options.stop);
    if (!answer || !strcmp(text_of(answer, "line"), "error"))
        return take_end(pool, at, answer, end, why, error);
    pool->served[at]++;
    /* A worker whose memory may be spoilt says that this was its last word. */
    if (json_is_true(json_object_get(answer, "last")))
        end_worker(pool, at);
    *line = answer;
    return TB_OK;
}

enum tb_status plugin_pool_ask(struct plugin_pool *pool, const struct cell *cell, json_t *request,
                               enum plugin_end *end, json_t **line, char why[PLUGIN_WHY_BYTES],
                               struct tb_error *error) {
    const struct plugin *plugin = plugin_of(pool->options.set, cell);
    const size_t at = (size_t)(plugin - pool->options.set->at);
    const bool served = pool->workers[at] && pool->served[at] > 0;
    *line = NULL;
    enum tb_status status = ask_once(pool, at, request, end, line, why, error);
    if (status == TB_OK && served && (*end == PLUGIN_CRASHED || *end == PLUGIN_FAULT))
        status = ask_once(pool, at, request, end, line, why, error);
    json_decref(request);
    return status;
}
