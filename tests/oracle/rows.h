/* Random and adversarial rows for the tests of oracle/. Deterministic from a seed. */
#ifndef TOPP_TESTS_ORACLE_ROWS_H
#define TOPP_TESTS_ORACLE_ROWS_H

#include <stdint.h>

enum row_kind {
    ROW_NORMAL,
    ROW_PEAKED,
    ROW_STEPS,       /* normal on a grid: many ties */
    ROW_PLATEAU,     /* three quarters equal */
    ROW_FLAT,        /* all equal: prefixes meet dyadic targets exactly */
    ROW_ADJACENT,    /* neighbouring binary32 values */
    ROW_FORCED,      /* one logit of 1e9 or 3e38 */
    ROW_MASKED,      /* most are -inf */
    ROW_ZEROS,       /* +0, -0 and the smallest subnormals */
    ROW_UNDERFLOW,   /* weights down through the subnormals to 0 */
    ROW_HUGE,        /* up to 3e38 of either sign */
    ROW_BFLOAT16,    /* few significant bits */
    ROW_EMPTY,       /* all -inf */
    ROW_NAN,         /* one NaN of either sign */
    ROW_INFINITY,    /* one +inf */
    ROW_RANDOM_BITS, /* any binary32 at all */
    ROW_KINDS
};
#define ROW_FINITE_KINDS ROW_EMPTY /* kinds below this one have a nucleus */

uint64_t rows_word(uint64_t *state);                  /* splitmix64 */
double rows_uniform(uint64_t *state);                 /* in (0, 1) */
uint64_t rows_below(uint64_t *state, uint64_t limit); /* in [0, limit) */
float rows_p(uint64_t *state);                        /* above 0, at times >= 1 */
void rows_fill(enum row_kind kind, uint64_t *state, float *row, int64_t vocab);

#endif
