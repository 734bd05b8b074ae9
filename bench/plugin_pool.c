#include "bench/plugin_pool.h"

#include "bench/oracle_cache.h"
#include "bench/plugin_plan.h"
#include "bench/worker_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Processes at a time: on a GPU each holds a context. The one used longest ago makes room. */
enum { WORKERS_MOST = 8 };

static const int64_t worker_cache_bytes = (int64_t)1 << 30;

struct slot_of_worker {
    const void *variant; /* NULL: free */
    struct worker_process *worker;
    uint64_t last_use;
};

struct plugin_pool {
    struct plugin_pool_options options;
    struct slot_of_worker slots[WORKERS_MOST];
    uint64_t clock;
};

enum tb_status plugin_pool_make(const struct plugin_pool_options *options,
                                struct plugin_pool **pool, struct tb_error *error) {
    *pool = calloc(1, sizeof **pool);
    if (!*pool)
        return tb_fail(error, TB_NO_MEMORY, "no memory for the workers of plug-ins");
    (*pool)->options = *options;
    return TB_OK;
}

static void end_worker(struct slot_of_worker *slot) {
    worker_close(slot->worker);
    *slot = (struct slot_of_worker){0};
}

void plugin_pool_free(struct plugin_pool *pool) {
    for (size_t i = 0; pool && i < WORKERS_MOST; i++)
        end_worker(&pool->slots[i]);
    free(pool);
}

static const void *variant_of(const struct cell *cell) {
    return cell->topp ? (const void *)cell->topp : (const void *)cell->gumbel;
}

/* The variant's slot, with or without a worker in it. */
static struct slot_of_worker *find_slot(struct plugin_pool *pool, const void *variant) {
    struct slot_of_worker *oldest = &pool->slots[0], *found = NULL;
    for (size_t i = 0; i < WORKERS_MOST && !found; i++) {
        if (pool->slots[i].variant == variant)
            found = &pool->slots[i];
        else if (pool->slots[i].last_use < oldest->last_use)
            oldest = &pool->slots[i];
    }
    if (!found) {
        end_worker(oldest);
        oldest->variant = variant;
        found = oldest;
    }
    found->last_use = ++pool->clock;
    return found;
}

static json_t *opening(const struct plugin_pool *pool, const struct cell *cell) {
    const struct plugin_pool_options *options = &pool->options;
    const struct plugin *plugin = plugin_of(options->set, cell);
    const int64_t cache = options->cache_bytes ? options->cache_bytes : worker_cache_bytes;
    return json_pack("{s:s, s:s, s:s, s:s?, s:s?, s:i, s:b, s:i, s:i, s:I, s:o, s:o}", "ask",
                     "open", "path", plugin->path, "sha256", plugin->sha256, "captured_dir",
                     options->captured_dir, "gpu", options->gpu, "timer", (int)options->timer,
                     "gate_only", (int)options->gate_only, "threads", options->threads, "slices",
                     (int)options->slices, "cache_bytes", (json_int_t)cache, "oracle_cache",
                     oracle_cache_address(options->oracle_cache), "plan",
                     plugin_plan_to_json(options->plan, cell));
}

static const char *text_of(const json_t *json, const char *key) {
    const char *text = json_string_value(json_object_get(json, key));
    return text ? text : "";
}

/* No answer, or one that tells of a failure: what that means. Ends the worker. Also a lack of
 * memory or of a device is this plug-in's alone: it may be its own doing. */
static void take_end(const struct plugin_pool *pool, struct slot_of_worker *slot, json_t *line,
                     enum plugin_end *end, char why[PLUGIN_WHY_BYTES]) {
    const volatile sig_atomic_t *stop = pool->options.stop;
    snprintf(why, PLUGIN_WHY_BYTES, "%s", text_of(line, "message"));
    *end = PLUGIN_FAULT;
    if (!line && stop && *stop) {
        *end = PLUGIN_STOPPED;
    } else if (!line) {
        *end = worker_was_late(slot->worker) ? PLUGIN_LATE : PLUGIN_CRASHED;
        worker_how(slot->worker, why, PLUGIN_WHY_BYTES);
    }
    json_decref(line);
    end_worker(slot);
}

static bool is_failure(const json_t *line) {
    return !line || !strcmp(text_of(line, "line"), "error");
}

/* *end stays PLUGIN_ANSWERED when the worker is ready. */
static enum tb_status open_worker(struct plugin_pool *pool, struct slot_of_worker *slot,
                                  const struct cell *cell, enum plugin_end *end,
                                  char why[PLUGIN_WHY_BYTES], struct tb_error *error) {
    const enum tb_status status = worker_start(&slot->worker, error);
    if (status != TB_OK)
        return status;
    json_t *line = worker_ask(slot->worker, opening(pool, cell), pool->options.stop);
    if (is_failure(line))
        take_end(pool, slot, line, end, why);
    else
        json_decref(line);
    return TB_OK;
}

void plugin_pool_distrust(struct plugin_pool *pool, const struct cell *cell) {
    end_worker(find_slot(pool, variant_of(cell)));
}

enum tb_status plugin_pool_ask(struct plugin_pool *pool, const struct cell *cell, json_t *request,
                               enum plugin_end *end, json_t **line, char why[PLUGIN_WHY_BYTES],
                               struct tb_error *error) {
    struct slot_of_worker *slot = find_slot(pool, variant_of(cell));
    enum tb_status status = TB_OK;
    *line = NULL;
    *end = PLUGIN_ANSWERED;
    if (!slot->worker)
        status = open_worker(pool, slot, cell, end, why, error);
    if (status != TB_OK || *end != PLUGIN_ANSWERED) {
        json_decref(request);
        return status;
    }
    json_t *answer = worker_ask(slot->worker, request, pool->options.stop);
    if (is_failure(answer)) {
        take_end(pool, slot, answer, end, why);
        return TB_OK;
    }
    /* A worker whose memory may be spoilt says that this was its last word. */
    if (json_is_true(json_object_get(answer, "last")))
        end_worker(slot);
    *line = answer;
    return TB_OK;
}
