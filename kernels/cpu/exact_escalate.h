/* The nucleus of one row in binary64, step by step as the reference defines it: the last resort of
 * `exact`, for rows whose boundary lies within the error bound of the fast sums. */
#ifndef TOPP_KERNELS_CPU_EXACT_ESCALATE_H
#define TOPP_KERNELS_CPU_EXACT_ESCALATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The last kept token of a row in canonical order. */
struct exact_boundary {
    bool whole; /* the row stays as it is; logit and token are not set */
    float logit;
    int64_t token; /* tokens of this very logit stay up to and including this id */
};

size_t exact_escalate_bytes(int64_t vocab);

/* row: binary32 [vocab], finite or -inf, greatest logit max (finite); 0 < p < 1.
 * memory: exact_escalate_bytes(vocab), 64-byte aligned, contents arbitrary. */
void exact_escalate(const float *row, int64_t vocab, float max, float p, void *memory,
                    struct exact_boundary *boundary);

#endif
