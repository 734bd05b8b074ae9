/* Input rows: the frozen generator (version 1), its families, and logits from .npy files.
 * Same bytes on every machine: integers, and single binary32 operations in a fixed order. */
#ifndef TOPP_BENCH_INPUTS_H
#define TOPP_BENCH_INPUTS_H

#include "oracle/status.h"

#include <stdbool.h>
#include <stddef.h>

enum family_kind {
    FAMILY_NORMAL,
    FAMILY_PEAKED,
    FAMILY_FORCED,       /* forced=VALUE@ID */
    FAMILY_FLAT,         /* flat=VALUE */
    FAMILY_TIES_STEP,    /* ties=step */
    FAMILY_TIES_PLATEAU, /* ties=plateau */
    FAMILY_ADJACENT,
    FAMILY_MASKED_SHARE, /* masked=0.99 */
    FAMILY_MASKED_KEEP,  /* masked=keep5 */
    FAMILY_MIXED,        /* p = 1 on odd rows */
    FAMILY_HAZARD_NAN,
    FAMILY_HAZARD_INF,
    FAMILY_HAZARD_EMPTY,
    FAMILY_HAZARD_HUGE,
    FAMILY_HAZARD_SUBNORMAL,
    FAMILY_CAPTURED, /* captured=NAME: a .npy file of real logits */
};

enum {
    FAMILY_TEXT_BYTES = 96,
    FAMILY_TOKEN_LAST = -1,
    FAMILY_TOKEN_TAIL = -2,
    FAMILY_KEEP_MOST = 1024, /* greatest K of masked=keepK */
};

struct family {
    enum family_kind kind;
    char text[FAMILY_TEXT_BYTES]; /* canonical spelling, as in a cell's name */
    float value;                  /* forced, flat */
    double share;                 /* masked share */
    int64_t token;                /* forced: id, FAMILY_TOKEN_LAST or FAMILY_TOKEN_TAIL */
    int64_t keep;                 /* masked keepK */
    char file[FAMILY_TEXT_BYTES]; /* captured: NAME */
};

/* Spellings are those of a cell's name; anything else is TB_USAGE with the list of families. */
enum tb_status family_parse(const char *text, struct family *family, struct tb_error *error);
bool family_is_hazard(const struct family *family); /* robustness only, never timed */
bool family_is_masked(const struct family *family); /* -inf is legal in it */
/* The id that a forced family forces at this vocabulary, -1 for the other families. `tail` is the
 * first token of the last tile of 8192 (a full one when vocab is a multiple of 8192). */
int64_t family_forced_token(const struct family *family, int64_t vocab);
/* The p that row `row` (counted as in input_request: first_row + i) is run with when the cell
 * says p. */
float family_row_p(const struct family *family, float p, int64_t row);

/* A matrix of logits in host memory. */
struct logits {
    float *data; /* binary32 [batch, stride], host, owned; free with logits_free */
    int64_t batch, vocab, stride;
    char sha256[65]; /* of the packed little-endian [batch, vocab] bytes */
};

/* What to generate: rows first_row .. first_row + batch of the family's endless matrix (captured:
 * rows of the file, wrapping around). stride 0 means vocab; padding is filled with a large
 * poison value (3e38). captured_dir: where captured=NAME is looked up as NAME.npy. */
struct input_request {
    const struct family *family;
    int64_t batch, vocab, stride, first_row;
    int64_t seed;
    const char *captured_dir;
};
/* Runs on as many threads as there are processors. captured: vocab 0 means the file's; any other
 * must be the file's. */
enum tb_status input_make(const struct input_request *request, struct logits *out,
                          struct tb_error *error);
/* Sets sha256 from the rows (padding left out). */
enum tb_status logits_hash(struct logits *logits, struct tb_error *error);
void logits_free(struct logits *logits); /* NULL and zeroed structs are fine */

/* NumPy format 1.0 and 2.0, C order, 2-D, at least 1 x 1, dtype `<f4`, `<f2`, or `<u2` when
 * u16_is_bfloat16 says so; the narrow ones are widened exactly. Strict: every defect is
 * TB_UNREADABLE and names file and byte. A file is read straight into the matrix. */
enum tb_status npy_read(const char *path, bool u16_is_bfloat16, struct logits *out,
                        struct tb_error *error);
enum tb_status npy_read_memory(const void *bytes, size_t length, const char *name,
                               bool u16_is_bfloat16, struct logits *out, struct tb_error *error);
/* Shape [batch, vocab] of a file without reading its data. */
enum tb_status npy_shape(const char *path, int64_t *batch, int64_t *vocab, struct tb_error *error);
/* Writes `<f4` [batch, vocab] packed, through a temporary file and rename. */
enum tb_status npy_write(const char *path, const float *data, int64_t batch, int64_t vocab,
                         int64_t stride, struct tb_error *error);

#endif
