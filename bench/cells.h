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

/* cells_name.c. False: longer than any name may be, which would be a bug of the profile's limits.
 */
bool cell_set_name(struct cell *cell, const struct plan *plan);
/* The first expectation of the profile that the cell meets; used[i] is set for it. */
void cell_set_expectation(const struct profile *profile, struct cell *cell, bool *used);
bool profile_has_whole(const struct profile_whole *list, int64_t value);

/* cells_extra.c. The name that a profile gives to an extra variant (`plugin:NAME`); NULL: it is no
 * such name. */
const char *extra_name(const char *name);
bool entry_names_extras(const struct profile_entry *entry);
/* Is it of this kind and device and, where a name is given, of that name? */
bool extra_fits(const struct plan_extra *extra, enum cell_kind kind, enum kernel_device device,
                const char *name);

#endif
