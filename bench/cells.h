/* Inside of plan_load: multiplying a profile out into cells, and choosing some of them. */
#ifndef TOPP_BENCH_CELLS_H
#define TOPP_BENCH_CELLS_H

#include "bench/profile.h"

/* Fills plan->cells from the profile; plan's other fields are set already. */
enum tb_status cells_build(const struct profile *profile, const struct plan_options *options,
                           struct plan *plan, struct tb_error *error);

/* Keeps the cells that options->filter and options->case_name ask for. */
enum tb_status cells_select(const struct plan_options *options, struct plan *plan,
                            struct tb_error *error);

#endif
