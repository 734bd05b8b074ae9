/* Result files in memory: our own results.json and Google Benchmark's JSON, reduced to what a
 * comparison or a history needs. No kernel, no device, no bench/ header: files only. */
#ifndef TOPP_CI_RESULTS_H
#define TOPP_CI_RESULTS_H

#include "oracle/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct json_text;

enum result_format { FORMAT_TOPP, FORMAT_GBENCH };

/* Samples of one cell in one process, in the order taken. Times in nanoseconds; for a throughput
 * row (higher_is_better) in its own unit. Only finite values above 0 are in here. */
struct sample_set {
    size_t count;
    double *time;
    double *cycles; /* NULL when some sample has none */
    int32_t *block, *draw;
};

struct result_cell {
    char *name;
    char *settings;   /* "field=value" lines that must agree for a comparison */
    char *reason;     /* of the gate, or why it failed or has no samples; "" if none */
    char verdict[20]; /* gate verdict; Google Benchmark: "ok" or "error"; "" when never gated */
    char rule[32];
    char masks[65];       /* hash over the draws' mask hashes; "" when there are none */
    int64_t kept, oracle; /* -1 when not counted */
    int64_t rows_failed;
    bool as_expected;
    bool timed; /* should have samples if accepted */
    bool higher_is_better;
    bool zero;      /* measured, and every value was 0 */
    size_t invalid; /* samples that were not finite or not above 0 */
    double median;  /* the file's own, or of the samples; NAN without */
    double median_cycles, sm_mhz, p05, p95, ci_low, ci_high;
    int32_t blocks;
    struct sample_set samples;        /* read_options.samples_later: its count alone, arrays NULL */
    size_t samples_at, samples_bytes; /* where they stand in the file */
    int32_t shard;                    /* of a merged run, in run.shards, from 1; 0: none */
    char device_uuid[72];             /* that it was measured on, of a merged run; "" if none */
};

struct results {
    char *file;
    enum result_format format;
    char id[65]; /* run id; Google Benchmark: hash of the file */
    char date[40];
    char commit[96], profile[64], profile_sha256[65], sources_sha256[65], plan_sha256[65];
    char sha256[65];         /* of the file */
    char receipt_sha256[65]; /* of receipt.json beside it; "" when there is none */
    bool unfrozen, subset;
    json_t *environment;       /* flat: "device.model" -> scalar */
    json_t *run;               /* the file's own run or context object */
    struct result_cell *cells; /* in the file's order, names unique */
    size_t count;
    size_t *by_name;        /* indices of cells, ascending by name */
    struct json_text *text; /* samples_later: the file, for results_samples(); else NULL; owned */
};

/* Which rows of a Google Benchmark file are judged. */
struct read_options {
    const char *metric; /* NULL: time and, where reported, items and bytes per second; else one of
                           real_time, cpu_time, items_per_second, bytes_per_second or a counter */
    bool samples_later; /* keep a cell's samples in its file (results.json) until they are asked
                           for: memory does not grow with them */
};

enum tb_status results_load(const char *file, const struct read_options *options,
                            struct results *results, struct tb_error *error);
void results_free(struct results *results);
const struct result_cell *results_find(const struct results *results, const char *name);

/* A cell's samples: its own, or read from the file into the buffer, where they stay until its next
 * use. Any number of threads, each with its buffer. NULL without memory. */
struct sample_buffer {
    struct sample_set set; /* cycles: NULL or those below */
    double *cycles;
    size_t room;
};
const struct sample_set *results_samples(const struct results *results,
                                         const struct result_cell *cell,
                                         struct sample_buffer *buffer);
void sample_buffer_free(struct sample_buffer *buffer);
/* Lets go of pages of the file that reading has brought in; now and then, while many samples are
 * asked for. */
void results_release_pages(const struct results *results);

/* Several processes that measured the same thing. */
struct results_set {
    char *name; /* as given on the command line */
    struct results *files;
    size_t count;
};

/* path: a file; a folder with results.json; or a folder of such folders (or of .json files), each
 * of them one process. */
enum tb_status results_set_load(const char *path, const struct read_options *options,
                                struct results_set *set, struct tb_error *error);
void results_set_free(struct results_set *set);

/* For readers of formats: fills results->by_name; duplicate names are an error. */
enum tb_status results_index(struct results *results, struct tb_error *error);
/* Appends a cell (zeroed, median fields NAN); NULL without memory. */
struct result_cell *results_append(struct results *results);
void result_cell_free(struct result_cell *cell);

#endif
