/* One file of the oracle's cache: format, address and checks. docs/formats.md describes it. */
#ifndef TOPP_BENCH_ORACLE_ENTRY_H
#define TOPP_BENCH_ORACLE_ENTRY_H

#include "bench/inputs.h"
#include "oracle/nucleus.h"
#include "oracle/receipt.h"

enum { ORACLE_PATH_BYTES = 4096 };

/* What computes. */
struct oracle_identity {
    char oracle_sha256[SHA256_HEX_BYTES]; /* sources */
    char exp_sha256[SHA256_HEX_BYTES];    /* what exp() returns here */
};

/* What is asked: one p for each row of one input. Borrows everything. */
struct oracle_entry {
    const struct oracle_identity *identity;
    const struct logits *logits; /* with their sha256 */
    const float *p;              /* [batch] */
};

enum oracle_found { ORACLE_FOUND, ORACLE_ABSENT, ORACLE_DAMAGED };

/* Where the entry is in dir; path: ORACLE_PATH_BYTES. */
void oracle_entry_path(const char *dir, const struct oracle_entry *entry, char *path);

/* nuclei: [batch], complete when found. why: what is wrong with a damaged one. */
enum oracle_found oracle_entry_read(const char *path, const struct oracle_entry *entry,
                                    struct nucleus *nuclei, char *why, size_t why_bytes);

/* Through a temporary file of its own beside the place, then rename: writers at the same time do no
 * harm. False: not written, nothing left behind, why says the cause. */
bool oracle_entry_write(const char *path, const struct oracle_entry *entry,
                        const struct nucleus *nuclei, char *why, size_t why_bytes);

#endif
