/* The one batch of a test of the gate: input, oracle, and an output to spoil. Most tests spoil row
 * BAD alone and keep the others right. */
#ifndef TOPP_TESTS_ORACLE_SCENE_H
#define TOPP_TESTS_ORACLE_SCENE_H

#include "oracle/gate.h"
#include "tests/oracle/rows.h"

enum { SCENE_BATCH = 4, SCENE_VOCAB = 2400, SCENE_PADDING = 8, BAD = 1 };

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

extern struct scene *const scene;

/* Starts with batch rows of vocab tokens, padding poisoned; fill input and p, then scene_solve. */
void scene_begin(int64_t batch, int64_t vocab);

/* Solves every row; output and stock become the oracle's masks; contract exact. */
void scene_solve(void);

/* Begins, fills with rows of one kind drawn from *words and with one p, and solves. */
void scene_draw(int64_t batch, int64_t vocab, enum row_kind kind, float p, uint64_t *words);

/* Row `row` of input, output or stock. */
float *scene_row(float *rows, int64_t row);

/* Makes row `row` of mask (output or stock) keep the first n tokens in canonical order. */
void scene_keep(float *mask, int64_t row, int64_t n);

/* Keeps or drops the token at place `rank` (0-based) of the canonical order. */
void scene_set(float *mask, int64_t row, int64_t rank, bool keep);

/* Judges the scene; rows of `rows` [batch] may be NULL. */
struct gate_result scene_judge(struct gate_row *rows);

/* Of row BAD: its input, its output, how many tokens the oracle keeps, the token at a place of the
 * canonical order. */
static inline float *in(void) {
    return scene_row(scene->input, BAD);
}

static inline float *out(void) {
    return scene_row(scene->output, BAD);
}

static inline int64_t n(void) {
    return scene->oracle[BAD].kept;
}

static inline int64_t at(int64_t rank) {
    return scene->order[BAD][rank];
}

#endif
