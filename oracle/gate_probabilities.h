/* The gate of a kernel that leaves probabilities: softmax over the kept tokens, 0 for all others.
 *
 * Kept is what is not 0. The kept set is judged by the very rules of masked logits; then each value
 * against the oracle's weight over the mass of what was kept, and their sum against 1.
 *
 * What is allowed to a value, d = max - logit in binary64, is
 *     2^-16 * max(1, d / 32)   relative, plus 2^-126 absolute.
 * Where that comes from: a binary32 evaluation rounds the difference (half a unit in the last place
 * of d: 2^-20 up to 32), its product with log2 e (2^-19.5 after ln 2) and log2 e itself (2^-20.6);
 * exp2 of the hardware is good to 2 units (2^-22), a division to 2^-24. The sum of the weights is
 * allowed runs of 128 terms one after another (2^-17 at worst) under a tree of 2^11 of them
 * (2^-20.5). Together 2^-16.4 up to d = 32; the first three grow with d. At p < 1 no token of a
 * nucleus has d above ln(vocab / (1 - p)), 29 at the very end of binary32. Below 2^-126 hardware
 * may flush to 0. */
#ifndef TOPP_ORACLE_GATE_PROBABILITIES_H
#define TOPP_ORACLE_GATE_PROBABILITIES_H

#include "oracle/gate.h"

#define GATE_PROBABILITY_ERROR 0x1p-16
#define GATE_PROBABILITY_FLOOR 0x1p-126

/* The relative error allowed to a token whose logit lies d >= 0 below the greatest. */
double gate_probability_error(double d);

/* Writes row `index` as the masked logits that keep the same tokens: masked [stride], the mask
 * value being -inf. What no mask could show stays visible to the gate of masked logits: a NaN as a
 * NaN, a masked token with a probability as one that came back. */
void gate_probabilities_mask(const struct gate_case *the_case, int64_t index, float *masked);

/* Judges the values of row `index` if its kept set passed: sets rule and token, value_error and
 * sum_error. */
void gate_probabilities_values(const struct gate_case *the_case, int64_t index,
                               struct gate_row *row);

#endif
