/* Reads tests/data/golden_*.tsv: what the original kernels kept on an H200, a case at a time. */
#ifndef TOPP_TESTS_KERNELS_GOLDEN_FILE_H
#define TOPP_TESTS_KERNELS_GOLDEN_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { GOLDEN_VARIANTS = 3, GOLDEN_MAX_BATCH = 64 };
extern const char *const golden_variant[GOLDEN_VARIANTS]; /* stock, patched, patched_fine */

struct golden_mask {
    int64_t kept;
    char sha8[17]; /* first 16 hex digits of the SHA-256 of the packed kept bits */
};

struct golden_row {
    int64_t reference; /* count of the reference (captured) or of a plain binary64 sum */
    int64_t sort;      /* count of the sort path, -1 if not recorded */
    struct golden_mask mask[GOLDEN_VARIANTS];
};

struct golden_case {
    char family[96];
    long long seed, vocab, batch;
    float p;
    int slices, slices_fine; /* slices_fine 0: not recorded */
    char sha256[65];         /* of the input, "-" if not recorded */
    struct golden_row rows[GOLDEN_MAX_BATCH];
};

/* Reads the next case; false at the end of the file. *error is set when a line does not parse. */
bool golden_next(FILE *file, struct golden_case *out, bool *error);

#endif
