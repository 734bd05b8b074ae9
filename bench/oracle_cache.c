#include "bench/oracle_cache.h"

#include "bench/oracle_entry.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXP_POINTS = 4096 };

struct oracle_cache {
    char dir[ORACLE_PATH_BYTES / 2];
    struct oracle_identity identity;
    FILE *diagnostics;
    struct oracle_cache_counts counts;
    bool said_unwritten, only_reads;
};

/* exp() decides the weights' last bits and differs between C libraries, and with a processor's
 * instructions inside one. */
static void hash_exp(char sha256[SHA256_HEX_BYTES]) {
    double values[EXP_POINTS];
    for (int i = 0; i < EXP_POINTS; i++)
        values[i] = exp(-(double)i * 0x1.8f5c29p-7 - (double)(i % 7) * 0x1.3p-30);
    sha256_memory(values, sizeof values, sha256);
}

static enum tb_status make_folders(const char *dir, struct tb_error *error) {
    char path[ORACLE_PATH_BYTES / 2];
    struct stat found;
    if (!dir[0] || (size_t)snprintf(path, sizeof path, "%s", dir) >= sizeof path)
        return tb_fail_at(error, TB_USAGE, dir, 0, -1, "--oracle-cache: no usable folder name");
    for (char *at = path + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        mkdir(path, 0777);
        *at = '/';
    }
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return tb_fail_at(error, TB_IO, dir, 0, -1, "--oracle-cache: cannot be made: %s",
                          strerror(errno));
    if (stat(path, &found) != 0 || !S_ISDIR(found.st_mode))
        return tb_fail_at(error, TB_IO, dir, 0, -1, "--oracle-cache: is not a folder");
    return TB_OK;
}

static enum tb_status make(const char *dir, const char *oracle_sha256, struct oracle_cache **cache,
                           struct tb_error *error) {
    struct oracle_cache *made = calloc(1, sizeof *made);
    if (!made)
        return tb_fail(error, TB_NO_MEMORY, "no memory for the oracle's cache");
    snprintf(made->dir, sizeof made->dir, "%s", dir);
    snprintf(made->identity.oracle_sha256, sizeof made->identity.oracle_sha256, "%s",
             oracle_sha256);
    hash_exp(made->identity.exp_sha256);
    *cache = made;
    return TB_OK;
}

enum tb_status oracle_cache_open(const char *dir, const char *oracle_sha256, FILE *diagnostics,
                                 struct oracle_cache **cache, struct tb_error *error) {
    *cache = NULL;
    enum tb_status status = make_folders(dir, error);
    if (status == TB_OK)
        status = make(dir, oracle_sha256, cache, error);
    if (status == TB_OK)
        (*cache)->diagnostics = diagnostics;
    return status;
}

json_t *oracle_cache_address(const struct oracle_cache *cache) {
    return cache ? json_pack("{s:s, s:s}", "dir", cache->dir, "oracle_sha256",
                             cache->identity.oracle_sha256)
                 : json_null();
}

enum tb_status oracle_cache_read_at(const json_t *address, struct oracle_cache **cache,
                                    struct tb_error *error) {
    const char *dir = json_string_value(json_object_get(address, "dir"));
    const char *sources = json_string_value(json_object_get(address, "oracle_sha256"));
    *cache = NULL;
    if (json_is_null(address))
        return TB_OK;
    if (!dir || !sources)
        return tb_fail(error, TB_INTERNAL, "the oracle's cache has no address");
    const enum tb_status status = make(dir, sources, cache, error);
    if (status == TB_OK)
        (*cache)->only_reads = true;
    return status;
}

void oracle_cache_close(struct oracle_cache *cache) {
    free(cache);
}

struct oracle_cache_counts oracle_cache_counts(const struct oracle_cache *cache) {
    return cache->counts;
}

json_t *oracle_cache_to_json(const struct oracle_cache *cache) {
    if (!cache)
        return json_null();
    const struct oracle_cache_counts *counts = &cache->counts;
    return json_pack("{s:I, s:I, s:I, s:I}", "read", (json_int_t)counts->read, "computed",
                     (json_int_t)counts->computed, "damaged", (json_int_t)counts->damaged,
                     "unwritten", (json_int_t)counts->unwritten);
}

json_t *oracle_cache_take_counts(struct oracle_cache *cache) {
    json_t *counts = oracle_cache_to_json(cache);
    if (cache)
        cache->counts = (struct oracle_cache_counts){0};
    return counts;
}

void oracle_cache_add_counts(struct oracle_cache *cache, const json_t *counts) {
    static const json_int_t most = 1000000;
    const json_int_t read = json_integer_value(json_object_get(counts, "read"));
    const json_int_t computed = json_integer_value(json_object_get(counts, "computed"));
    if (!cache || read < 0 || computed < 0 || read > most || computed > most)
        return;
    cache->counts.read += read;
    cache->counts.computed += computed;
}

static bool take(struct oracle_cache *cache, const struct oracle_entry *entry,
                 struct nucleus *nuclei) {
    char path[ORACLE_PATH_BYTES], why[256];
    oracle_entry_path(cache->dir, entry, path);
    const enum oracle_found found = oracle_entry_read(path, entry, nuclei, why, sizeof why);
    if (found == ORACLE_DAMAGED) {
        cache->counts.damaged++;
        if (cache->diagnostics)
            fprintf(cache->diagnostics, "oracle cache: %s: damaged: %s: computed again\n", path,
                    why);
    }
    cache->counts.read += found == ORACLE_FOUND;
    return found == ORACLE_FOUND;
}

static void keep(struct oracle_cache *cache, const struct oracle_entry *entry,
                 const struct nucleus *nuclei) {
    char path[ORACLE_PATH_BYTES], why[256];
    oracle_entry_path(cache->dir, entry, path);
    cache->counts.computed++;
    if (cache->only_reads)
        return;
    if (oracle_entry_write(path, entry, nuclei, why, sizeof why))
        return;
    cache->counts.unwritten++;
    if (cache->diagnostics && !cache->said_unwritten)
        fprintf(cache->diagnostics,
                "oracle cache: %s: cannot be kept: %s (said once; the run goes on without)\n", path,
                why);
    cache->said_unwritten = true;
}

/* Buffers of one request; all owned, [batch] or [batch, count]. */
struct columns {
    float *p, *missing_p;
    struct nucleus *nuclei, *missing;
    size_t *missing_at; /* [count]: which values of p the cache lacks */
};

static bool columns_make(struct columns *columns, size_t batch, size_t count) {
    columns->p = malloc(batch * sizeof *columns->p);
    columns->missing_p = malloc(batch * count * sizeof *columns->missing_p);
    columns->nuclei = malloc(batch * sizeof *columns->nuclei);
    columns->missing = malloc(batch * count * sizeof *columns->missing);
    columns->missing_at = malloc(count * sizeof *columns->missing_at);
    return columns->p && columns->missing_p && columns->nuclei && columns->missing &&
           columns->missing_at;
}

static void columns_free(struct columns *columns) {
    free(columns->p);
    free(columns->missing_p);
    free(columns->nuclei);
    free(columns->missing);
    free(columns->missing_at);
}

static void describe(const struct oracle_cache *cache, const struct logits *logits, const float *p,
                     size_t count, size_t at, float *column, struct oracle_entry *entry) {
    for (size_t row = 0; row < (size_t)logits->batch; row++)
        column[row] = p[row * count + at];
    *entry = (struct oracle_entry){&cache->identity, logits, column};
}

static size_t take_all(struct oracle_cache *cache, const struct logits *logits, const float *p,
                       size_t count, struct columns *columns, struct nucleus *out) {
    const size_t batch = (size_t)logits->batch;
    size_t missing = 0;
    for (size_t i = 0; i < count; i++) {
        struct oracle_entry entry;
        describe(cache, logits, p, count, i, columns->p, &entry);
        if (!take(cache, &entry, columns->nuclei)) {
            columns->missing_at[missing++] = i;
            continue;
        }
        for (size_t row = 0; row < batch; row++)
            out[row * count + i] = columns->nuclei[row];
    }
    return missing;
}

/* Solves the missing values of p in one pass over the rows, and keeps them. */
static enum tb_status solve(struct oracle_cache *cache, const struct logits *logits, const float *p,
                            size_t count, int threads, struct columns *columns, size_t missing,
                            struct nucleus *out, struct tb_error *error) {
    const size_t batch = (size_t)logits->batch;
    for (size_t row = 0; row < batch; row++)
        for (size_t i = 0; i < missing; i++)
            columns->missing_p[row * missing + i] = p[row * count + columns->missing_at[i]];
    const enum tb_status status =
        nucleus_rows(logits->data, logits->batch, logits->vocab, logits->stride, columns->missing_p,
                     missing, threads, columns->missing, error);
    for (size_t i = 0; status == TB_OK && i < missing; i++) {
        struct oracle_entry entry;
        describe(cache, logits, p, count, columns->missing_at[i], columns->p, &entry);
        for (size_t row = 0; row < batch; row++) {
            columns->nuclei[row] = columns->missing[row * missing + i];
            out[row * count + columns->missing_at[i]] = columns->nuclei[row];
        }
        keep(cache, &entry, columns->nuclei);
    }
    return status;
}

enum tb_status oracle_rows(struct oracle_cache *cache, const struct logits *logits, const float *p,
                           size_t count, int threads, struct nucleus *out, struct tb_error *error) {
    if (!cache || count == 0)
        return nucleus_rows(logits->data, logits->batch, logits->vocab, logits->stride, p, count,
                            threads, out, error);
    struct columns columns = {0};
    enum tb_status status = TB_OK;
    if (columns_make(&columns, (size_t)logits->batch, count)) {
        const size_t missing = take_all(cache, logits, p, count, &columns, out);
        if (missing)
            status = solve(cache, logits, p, count, threads, &columns, missing, out, error);
    } else {
        status = tb_fail(error, TB_NO_MEMORY, "no memory for %lld rows of the oracle's cache",
                         (long long)logits->batch);
    }
    columns_free(&columns);
    return status;
}
