/* What the Gumbel tests of the CPU variants share. */
#ifndef TOPP_TESTS_KERNELS_GUMBEL_SUPPORT_H
#define TOPP_TESTS_KERNELS_GUMBEL_SUPPORT_H

#include "kernels/gumbel.h"
#include "oracle/gumbel_gate.h"
#include "oracle/gumbel_statistics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { CPU_VARIANTS = 4 };
extern const char *const cpu_variant[CPU_VARIANTS]; /* log, log1p, fp64, murmur */

/* Sanitized builds draw a fraction of what the others do. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* A defect that the sampler below is given. */
enum plant { PLANT_NONE, PLANT_SHARED_STREAM /* drops the salt of the target's stream */ };

struct sampler {
    const struct gumbel_variant *variant;
    enum plant plant;
};

/* A statistic_draw over a struct sampler, on two threads. */
int sampler_draw(void *context, const float *logits, int64_t vocab, const int64_t *seeds,
                 const int64_t *positions, float temperature, int64_t n, int64_t *tokens);

/* Draws a batch of one row each: seeds and positions of [batch]. */
void draw_rows(const char *variant, const float *logits, int64_t batch, int64_t vocab,
               int64_t stride, const int64_t *seed, const int64_t *position,
               const float *temperature, int64_t *token);

/* One row, one draw. */
int64_t draw_one(const char *variant, const float *logits, int64_t vocab, int64_t seed,
                 int64_t position, float temperature);

/* The gate's verdict on what was drawn. */
enum gumbel_rule judge_rows(const char *noise, const float *logits, int64_t batch, int64_t vocab,
                            int64_t stride, const int64_t *seed, const int64_t *position,
                            const float *temperature, const int64_t *token);

#endif
