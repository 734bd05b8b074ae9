/* What the oracle said of an input, kept in a folder that many runs may share, on one machine or
 * on a shared file system. The address of an entry is a hash of all that decides it: the oracle's
 * sources, what this machine's exp() returns, the input's bytes and shape, and p of each row.
 *
 * Entries appear by rename and are verified on reading: sealed by a hash, made for this very
 * request, and fitting the rows. One that does not hold is said on the diagnostics stream, computed
 * again and replaced. A folder that cannot be written costs time alone. */
#ifndef TOPP_BENCH_ORACLE_CACHE_H
#define TOPP_BENCH_ORACLE_CACHE_H

#include "bench/inputs.h"
#include "oracle/nucleus.h"

#include <jansson.h>
#include <stdio.h>

struct oracle_cache;

/* Entries: one input (a draw of a cell) and one p. */
struct oracle_cache_counts {
    int64_t read, computed; /* taken from the folder; solved here */
    int64_t damaged;        /* of computed: an entry was there and did not hold */
    int64_t unwritten;      /* of computed: could not be kept */
};

/* dir is made if missing, parents too. oracle_sha256: hash of the oracle's sources. diagnostics:
 * NULL = silent. TB_IO: dir cannot be made or is no folder. */
enum tb_status oracle_cache_open(const char *dir, const char *oracle_sha256, FILE *diagnostics,
                                 struct oracle_cache **cache, struct tb_error *error);
void oracle_cache_close(struct oracle_cache *cache); /* NULL is fine */
struct oracle_cache_counts oracle_cache_counts(const struct oracle_cache *cache);
/* {"read", "computed", "damaged", "unwritten"}; null without a cache. */
json_t *oracle_cache_to_json(const struct oracle_cache *cache);

/* A second process with the same cache, which must not be trusted with what others read: a
 * plug-in's. It takes entries and keeps none, silently. address: what such a process is told; null
 * without a cache. read_at: *cache NULL for null; TB_INTERNAL: no address. */
json_t *oracle_cache_address(const struct oracle_cache *cache);
enum tb_status oracle_cache_read_at(const json_t *address, struct oracle_cache **cache,
                                    struct tb_error *error);
/* What it has read and computed since the last time, and adding that to those of its owner, who may
 * be told anything. */
json_t *oracle_cache_take_counts(struct oracle_cache *cache);
void oracle_cache_add_counts(struct oracle_cache *cache, const json_t *counts);

/* As nucleus_rows() over logits (with their sha256), p and out [batch, count]: the same figures to
 * the last bit, from the cache where it has them. cache NULL: nucleus_rows() itself. */
enum tb_status oracle_rows(struct oracle_cache *cache, const struct logits *logits, const float *p,
                           size_t count, int threads, struct nucleus *out, struct tb_error *error);

#endif
