/* One draw of a cell run again, for --verify: what was kept, as a hash. */
#ifndef TOPP_BENCH_VERIFY_MASK_H
#define TOPP_BENCH_VERIFY_MASK_H

#include "bench/once.h"

/* Runs the cell's kernel once on these rows and hashes what came out as draw_record.mask_sha256
 * does. slices: as sweep_run; evidence may be NULL. Any error: it cannot be recomputed here. */
enum tb_status mask_again(struct device *device, const struct cell *cell, int32_t slices,
                          const struct logits *logits, int32_t draw, struct once_evidence *evidence,
                          char mask_sha256[65], struct tb_error *error);

#endif
