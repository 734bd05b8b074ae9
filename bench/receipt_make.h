/* The receipt of a finished run: written from the files that the run left, never from memory, so
 * that it binds what is on disk. Format: docs/receipt.md. */
#ifndef TOPP_BENCH_RECEIPT_MAKE_H
#define TOPP_BENCH_RECEIPT_MAKE_H

#include "bench/options.h"
#include "bench/sweep.h"
#include "oracle/receipt.h"

struct receipt_request {
    const struct options *options; /* what was asked for: resolving it again gives the same plan */
    const struct plan *plan;
    const char *out_dir;      /* holds results.json and the other outputs; receives receipt.json */
    const char *family;       /* --input: the family that stands for the user's file, else NULL */
    const char *captured_dir; /* where that file is */
    const struct plan_pair *pair; /* of --ab, else NULL */
};
enum tb_status receipt_make(const struct receipt_request *request, struct tb_error *error);

/* Files of a run that a receipt binds, in this order; NULL ends the list. request: the receipt's.
 * A side of --ab has no benchmark.json. */
const char *const *receipt_outputs(const json_t *request);

/* One hash for all compiled-in sources: of the lines `sha256  path\n` in order of path. */
void sources_hash(char hex[SHA256_HEX_BYTES]);
/* Of the oracle's sources alone. */
void sources_hash_oracle(char hex[SHA256_HEX_BYTES]);
/* The same of a receipt's "sources" array; "" when it is malformed. */
void sources_hash_of(const json_t *sources, char hex[SHA256_HEX_BYTES]);

/* Members of a cell in results.json that the receipt repeats; NULL ends the list. */
extern const char *const receipt_repeated[];

/* What a receipt says of one cell: derived from that cell of results.json. New object or NULL. */
json_t *receipt_cell(const json_t *result_cell);

#endif
