/* One batch for tests of the gate: input, oracle, and an output to spoil. */
#ifndef TOPP_TESTS_ORACLE_SCENE_H
#define TOPP_TESTS_ORACLE_SCENE_H

#include "oracle/gate.h"

enum { SCENE_BATCH = 4, SCENE_VOCAB = 2400, SCENE_PADDING = 8 };

struct scene {
    int64_t batch, vocab, stride;
    float input[SCENE_BATCH * (SCENE_VOCAB + SCENE_PADDING)];
    float output[SCENE_BATCH * (SCENE_VOCAB + SCENE_PADDING)];
    float stock[SCENE_BATCH * (SCENE_VOCAB + SCENE_PADDING)];
    float p[SCENE_BATCH];
    struct nucleus oracle[SCENE_BATCH];
    int64_t order[SCENE_BATCH][SCENE_VOCAB]; /* token ids in canonical order */
    struct gate_case the_case;
};

/* Starts with batch rows of vocab tokens, padding poisoned; fill input and p, then scene_solve. */
void scene_begin(struct scene *scene, int64_t batch, int64_t vocab);

/* Solves every row; output and stock become the oracle's masks; contract exact. */
void scene_solve(struct scene *scene);

/* Makes row `row` of mask (output or stock) keep the first n tokens in canonical order. */
void scene_keep(const struct scene *scene, float *mask, int64_t row, int64_t n);

/* Keeps or drops the token at place `rank` (0-based) of the canonical order. */
void scene_set(const struct scene *scene, float *mask, int64_t row, int64_t rank, bool keep);

/* Judges the scene; rows of `rows` [batch] may be NULL. */
struct gate_result scene_judge(struct scene *scene, struct gate_row *rows);

#endif
