/* One cell of results.json, read from its text: for results_topp.c and results_samples.c. */
#ifndef TOPP_CI_RESULTS_CELL_H
#define TOPP_CI_RESULTS_CELL_H

#include "ci/results.h"
#include "oracle/json_scan.h"

/* Why a cell could not be read. `what` NULL: the text is no JSON where the scan stopped. */
struct cell_defect {
    char name[400]; /* of the cell, "" while it is not known */
    const char *what;
    bool memory; /* there was none */
};

/* Reads one object into *cell (zeroed, as results_append() leaves it). With samples_later their
 * arrays are checked and counted, and not kept. false: see *defect. */
bool cell_read(struct json_scan *scan, const char *text, bool samples_later,
               struct sample_buffer *buffer, struct result_cell *cell, struct cell_defect *defect);

/* Reads the object "samples" into the buffer, valid ones alone; *invalid and *zero as in struct
 * result_cell. cycles: whether every one has them. */
struct samples_facts {
    size_t invalid;
    bool zero, cycles;
};
bool samples_read(struct json_scan *scan, struct sample_buffer *buffer, struct samples_facts *facts,
                  struct cell_defect *defect);

#endif
