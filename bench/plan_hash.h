/* What binds a resolved list of cells in results, journals and receipts. */
#ifndef TOPP_BENCH_PLAN_HASH_H
#define TOPP_BENCH_PLAN_HASH_H

#include "bench/sweep.h"

/* plan_sha256: of the cells in order with what their names do not say: what is drawn, timed and
 * expected. "" without memory. */
void plan_hash_cells(const struct plan *plan, char sha256[65]);

/* list_sha256: of the names in order, a line break between two. */
enum tb_status plan_hash_names(const struct plan *plan, char sha256[65], struct tb_error *error);

#endif
