/* The workers of a run's plug-ins: a process for each variant, so that whatever happens in one is
 * that variant's doing; started when it is first needed, and anew after it ended. */
#ifndef TOPP_BENCH_PLUGIN_POOL_H
#define TOPP_BENCH_PLUGIN_POOL_H

#include "bench/device.h"
#include "bench/plugin.h"

struct plugin_pool;
struct oracle_cache;

/* What a worker is told besides its plan. Everything is borrowed. */
struct plugin_pool_options {
    const struct plugin_set *set;
    const struct plan *plan;
    const char *captured_dir;
    const char *gpu; /* UUID of the one to use of several, NULL or "": the only one */
    enum timer_kind timer;
    bool gate_only;
    int threads;
    int32_t slices;
    int64_t cache_bytes;
    const struct oracle_cache *oracle_cache; /* NULL: none; workers read it and do not write */
    const volatile sig_atomic_t *stop;       /* NULL: never */
};

enum tb_status plugin_pool_make(const struct plugin_pool_options *options,
                                struct plugin_pool **pool, struct tb_error *error);
void plugin_pool_free(struct plugin_pool *pool); /* ends the workers; NULL is fine */

enum plugin_end {
    PLUGIN_ANSWERED, /* *line holds the answer */
    PLUGIN_STOPPED,  /* *stop was set */
    PLUGIN_LATE,     /* it did not come back in time */
    PLUGIN_CRASHED,  /* its process ended */
    PLUGIN_FAULT,    /* its device or process failed and says so */
};

/* Asks the worker of the cell's variant; the request is owned. Answers: a verdict line or a block
 * line of the journal (docs/formats.md). why: what happened, when it did not answer. TB_OK whatever
 * the plug-in does; an error is of this machine. */
enum tb_status plugin_pool_ask(struct plugin_pool *pool, const struct cell *cell, json_t *request,
                               enum plugin_end *end, json_t **line, char why[PLUGIN_WHY_BYTES],
                               struct tb_error *error);

/* Ends the worker of the cell's variant: it answered something else than it was asked. */
void plugin_pool_distrust(struct plugin_pool *pool, const struct cell *cell);

#endif
