/* One start of another program, shared by the files that make it and judge how it ended. */
#ifndef TOPP_BENCH_EXTERNAL_START_H
#define TOPP_BENCH_EXTERNAL_START_H

#include "bench/external_process.h"
#include "bench/run_external.h"

enum { EXTERNAL_PATH_BYTES = 256 };

/* Files of a start, in a temporary folder of its own. */
enum external_file { FILE_IN, FILE_P, FILE_OUT, FILE_LAST, FILE_TRACE, FILE_LOG, FILES };

struct external_runs {
    char folder[64];            /* of the latest start */
    char cupti[4096];           /* the file that this process found, "" if it has none */
    struct block_result *taken; /* [cells]: samples until the verdict is journaled; owned */
    char (*absent)[RECORD_REASON_BYTES]; /* [programs]: why it cannot run here, "" if it can */
};

struct external_start {
    struct run_state *state;
    struct cell_record *record;
    const struct external *external;
    int32_t draw;
    int32_t repeats;  /* 0: nothing is timed */
    int64_t launches; /* ids: draws of each row; else 0 */
    char path[FILES][EXTERNAL_PATH_BYTES];
};

/* Why the program cannot run here, where it has said so: [RECORD_REASON_BYTES]. */
char *external_absent(const struct external_start *start);

/* Each is true, or refuses the record and is false. */
bool external_ended_well(const struct external_start *start, const struct process_result *result);
/* rows: [batch, stride]; the padding is the input's. */
bool external_take_rows(const struct external_start *start, const struct logits *input,
                        float *rows);
bool external_take_ids(const struct external_start *start, int64_t *ids); /* [launches, batch] */

/* Keeps what the program said in the results folder: the latest failure of each program. */
void external_keep_log(const struct external_start *start);

#endif
