/* Runs a CPU variant on host rows as its contract demands: poisoned, aligned, guarded workspace. */
#ifndef TOPP_TESTS_KERNELS_VARIANT_RUN_H
#define TOPP_TESTS_KERNELS_VARIANT_RUN_H

#include "kernels/topp.h"

struct run {
    const char *variant;
    float *logits; /* [batch, stride], masked in place */
    const float *p;
    int64_t batch, vocab, stride;
    int slices;
    const struct topp_boundary *boundary;
    int64_t escalated; /* out, `exact`: rows that were redone in binary64 */
};

/* The launch's status; fails the test when bytes past the workspace were written. */
int run_variant(struct run *run);

/* A generated logit: about standard normal, from the words of (seed, row, token). */
float random_normal(uint32_t seed, uint32_t row, uint32_t token);
/* A word of a stream of its own. */
uint32_t random_word(uint32_t seed, uint32_t row, uint32_t token);

/* Copies of rows, and their comparison by bits; free() them. */
float *rows_copy(const float *rows, int64_t count);
int rows_differ(const float *a, const float *b, int64_t count);

/* Asserts that out is `in` masked as the oracle demands for each row and p. */
void assert_oracle_mask(const float *in, const float *out, int64_t batch, int64_t vocab,
                        int64_t stride, const float *p, const char *name);

#endif
