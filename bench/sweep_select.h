/* The order of a plan's cells, and which of them were asked for. */
#ifndef TOPP_BENCH_SWEEP_SELECT_H
#define TOPP_BENCH_SWEEP_SELECT_H

#include "bench/sweep.h"

/* True when two cells run on the same bytes: family, vocabulary, batch, stride and seed. */
bool sweep_same_input(const struct cell *left, const struct cell *right);

/* Brings cells of one input together, at the place of the first of them; checks that names are
 * unique. */
enum tb_status sweep_group(struct plan *plan, struct tb_error *error);

/* Keeps what filter and case_name choose; nothing chosen is TB_USAGE. */
enum tb_status sweep_select(const struct plan_options *options, struct plan *plan,
                            struct tb_error *error);

#endif
