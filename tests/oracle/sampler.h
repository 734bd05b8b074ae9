/* A made-up sampler of the scene's rows, and the gate's look at what it drew. */
#ifndef TOPP_TESTS_ORACLE_SAMPLER_H
#define TOPP_TESTS_ORACLE_SAMPLER_H

#include "oracle/gate_ids.h"
#include "tests/oracle/scene.h"

enum { BATCH = 4, VOCAB = 1200 };

extern int64_t ids[GATE_IDS_DRAWS]; /* what was drawn: [launches, BATCH] */

/* Rows of one kind in the scene. */
void begin(enum row_kind kind, float p);

/* A sampler of the oracle's nuclei and `surplus` tokens more, whose logits are divided by
 * `temperature`; skew moves that share of the mass from the likelier half to the other. */
void sampler(double temperature, double skew, int64_t surplus);

/* The token of a row where this share of the summed weights is reached. */
int64_t draw_at(int64_t row, int64_t surplus, double share);

/* The scene and ids as the gate gets them. */
struct gate_ids_case the_case(void);

#endif
