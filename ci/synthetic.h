/* Made-up measurements of known noise: they test the ruler. */
#ifndef TOPP_CI_SYNTHETIC_H
#define TOPP_CI_SYNTHETIC_H

#include "ci/results.h"
#include "ci/statistics.h"

enum noise_kind {
    NOISE_PLAIN,
    NOISE_SPIKES,        /* 5% of samples at +20% */
    NOISE_AR1,           /* neighbours correlate by 0.6 */
    NOISE_MODES_PROCESS, /* the clock of a whole process is one of two, 3% apart */
    NOISE_MODES_BLOCK,   /* that of each block */
    NOISE_MODES_SAMPLE,  /* that of each sample */
    NOISE_DRIFT,         /* 0.5% linear within a run, either way */
    NOISE_COUNT
};
const char *noise_name(enum noise_kind kind);

struct synthetic {
    enum noise_kind kind;
    double within, between;  /* standard deviations of the log: samples, processes */
    int32_t blocks, samples; /* samples a block */
};

/* What all cells of one process share. */
struct synthetic_process {
    double clock; /* log */
    double drift; /* over the run */
};
struct synthetic_process synthetic_process(const struct synthetic *synthetic,
                                           struct random_state *random);

/* Fills a set with room for blocks x samples; cycles only where set->cycles is not NULL. level: log
 * of the nanoseconds. */
void synthetic_fill(const struct synthetic *synthetic, const struct synthetic_process *process,
                    double level, struct random_state *random, struct sample_set *set);

#endif
