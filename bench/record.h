/* One result: what a cell's gate said and every sample that was taken of it, in memory. Writers
 * turn a run into a table, JSON and TSV; docs/formats.md describes the files field by field. */
#ifndef TOPP_BENCH_RECORD_H
#define TOPP_BENCH_RECORD_H

#include "bench/device.h"
#include "bench/sweep.h"
#include "oracle/gate.h"

#include <stdio.h>

enum { RECORD_RULE_BYTES = 32, RECORD_REASON_BYTES = 256 };

/* One draw of a cell's rows: the bytes that went in and what came out. */
struct draw_record {
    char input_sha256[65]; /* packed little-endian logits of this draw */
    char mask_sha256[65];  /* top-p: the kept bits (oracle/gate.h); Gumbel: the ids as little-endian
                              int64; "" when nothing came out */
    int64_t kept, oracle;  /* top-p: sums over the draw's rows */
    int64_t rows_equal;    /* top-p: rows whose set is the oracle's; Gumbel: winners equal */
};

struct cell_summary {
    size_t samples;
    double median_ns;                 /* median over draws of each draw's median */
    double ci_low_ns, ci_high_ns;     /* 95% interval of the median, spread over repeats alone */
    double p05_ns, p95_ns;            /* spread over repeats: each draw scaled to the same median */
    double draw_low_ns, draw_high_ns; /* least and greatest median of a draw */
    double busy_ns;                   /* median of what the device was busy; NAN on the CPU */
    double cycles;                    /* median SM cycles; NAN on the CPU */
    double sm_mhz;                    /* median SM clock; NAN on the CPU */
};

struct cell_record {
    const struct cell *cell; /* the plan's */
    bool gated;              /* a verdict exists (false only in an interrupted run) */
    enum gate_verdict verdict;
    char rule[RECORD_RULE_BYTES];     /* gate_rule_name(), or a rule of the Gumbel gate; "" */
    char reason[RECORD_REASON_BYTES]; /* one sentence for people; "" when accepted */
    int32_t draw;                     /* draw of the first offending row, -1 if none */
    int64_t row, token;               /* first offending row (in its draw) and token, -1 if none */
    int64_t row_kept, row_oracle;     /* that row's counts, -1 if none */
    bool excused;                     /* refused, but only as the profile tolerates */
    bool as_expected;                 /* the exit code is unmoved by this cell */

    /* Over all rows of all draws. */
    int64_t rows, rows_failed, rows_equal, rows_excused;
    int64_t rows_by_rule[GATE_RULE_COUNT]; /* top-p only */
    int64_t kept, oracle;                  /* top-p: sums of counts */
    int64_t most_surplus, most_missing;    /* top-p: greatest of a row */
    double surplus_mass, missing_mass;     /* top-p: greatest of a row, share of the normalizer */
    json_t *
        statistic; /* Gumbel: figures of its gate (noise error, z, chi-square ...) or NULL; owned */

    struct draw_record *draws; /* [cell->draws], owned */
    int32_t draw_count;

    /* Timing; nothing of it exists unless the verdict is accepted. */
    struct sample *samples; /* owned, block after block */
    size_t sample_count;
    int32_t blocks;                       /* finished blocks, refused ones included */
    char unmeasured[RECORD_REASON_BYTES]; /* why an accepted, timed cell has no valid samples */
    struct kernel_evidence *kernels;      /* owned: what really ran in one call */
    size_t kernel_count;
    double events_ns;            /* CUDA: of the last block, a pass with tracing off; else NAN */
    json_t *conditions;          /* array, one entry a block, or NULL; owned */
    struct cell_summary summary; /* all NAN without samples */
    double bytes_moved;          /* per call: docs/formats.md */
    double bytes_per_second;     /* NAN without samples */
    double ratio_to_floor;       /* NAN when the floor was not timed beside it */
    char samples_sha256[65];     /* samples_hash() of samples; "" without */
};

/* What a run was, apart from its cells. */
struct run_info {
    char id[33];   /* 32 random hex digits */
    char date[32]; /* start, UTC, "2025-01-31T12:34:56Z" */
    char profile_name[64], profile_sha256[65];
    char plan_sha256[65]; /* of the resolved cells: names and settings in order */
    char sources_sha256[65];
    char profile_file[4096], input[4096]; /* of the user's own, "" when there is none */
    struct plan_shard shard;              /* index 0: the whole plan ran */
    int64_t seed;
    bool unfrozen, subset, resumed;
    int32_t slices; /* as asked for, 0 = as upstream */
    char device_kind[16];
    struct timing_settings timing;
    struct profile_limits limits;
    json_t *device;       /* device_ops.describe(); owned */
    json_t *externals;    /* other programs (bench/external.h); an array; owned */
    json_t *host;         /* host name, system, CPU, processors, memory; owned */
    json_t *oracle_cache; /* counts of --oracle-cache, null without one; owned */
    json_t *build;        /* version, compiler, flags, build type, commit; owned */
    json_t *plugins;      /* plugin_set_to_json(); owned */
};

struct run_result {
    struct run_info info;
    struct cell_record *cells; /* [count], in plan order; owned */
    size_t count;
    size_t by_verdict[GATE_UNSUPPORTED + 1];
    size_t timed;      /* cells with valid samples */
    size_t unexpected; /* cells against the profile's expectation: exit code 1 */
    size_t unmeasured; /* accepted, to be timed, but without valid samples: exit code 3 */
    size_t unfinished; /* an interrupted run's cells without verdict or blocks */
    bool whole;        /* resumed, but finished before: all files stay as they were */
};

/* Frees what the result owns; a zeroed struct is fine. */
void run_result_free(struct run_result *result);

/* A record of nothing yet; what it owned before is forgotten. */
void record_begin(struct cell_record *record, const struct cell *cell);

/* Computes summary, throughput, hash, as_expected and the run's counts from verdicts and samples.
 */
void record_finish_cell(struct cell_record *record);
void record_finish_run(struct run_result *result);

/* SHA-256 of the canonical text of samples: one line each, `block draw time busy cycles mhz\n`,
 * block and draw decimal, the others the 16 hex digits of the binary64 bit pattern, "-" if NAN. */
void samples_hash(const struct sample *samples, size_t count, char sha256[65]);

/* {"time_ns": [...], ..., "block": [...], "draw": [...]}; an array of nulls alone is null. */
json_t *samples_to_json(const struct sample *samples, size_t count);
/* The reverse, strict: false when a member is missing or lengths differ. *samples: free(). */
bool samples_from_json(const json_t *json, struct sample **samples, size_t *count);

/* {"index", "count", "cells", "list_sha256"}, null for a whole plan. */
json_t *shard_to_json(const struct plan_shard *shard);

/* A finite number as a JSON real, anything else as null. */
json_t *json_number(double value);

/* Writers. Each writes to a stream; all numbers are independent of the locale. */
json_t *record_to_json(const struct cell_record *record);
enum tb_status writer_json(const struct run_result *result, FILE *stream, struct tb_error *error);
enum tb_status writer_tsv(const struct run_result *result, FILE *stream, struct tb_error *error);
/* The table for people; color: ANSI colours (the caller honours NO_COLOR). */
void writer_table(const struct run_result *result, FILE *stream, bool color);

#endif
