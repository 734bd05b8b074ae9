/* What several CPU kernels do to one row, vectorised. Single-threaded, no allocation; NaN is never
 * greater, smaller or kept by comparison, and breaks nothing. */
#ifndef TOPP_KERNELS_CPU_ROW_H
#define TOPP_KERNELS_CPU_ROW_H

#include <stdint.h>
#include <string.h>

/* Greatest logit, -inf for a row without one. */
float row_max(const float *row, int64_t vocab);

/* Masks a row below its boundary: a token stays when logit > boundary or logit == boundary and
 * id <= token; the others become mask. */
void row_mask(float *row, int64_t vocab, float boundary, int64_t token, float mask);

/* A key that orders as the logit does (ascending); +0 and -0 share one. */
static inline uint32_t row_key(float x) {
    uint32_t bits;
    x += 0.0f;
    memcpy(&bits, &x, sizeof bits);
    return bits ^ ((uint32_t)((int32_t)bits >> 31) | 0x80000000u);
}

#endif
