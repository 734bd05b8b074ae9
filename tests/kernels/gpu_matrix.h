/* Rows on host and GPU that several cases share, solved by the oracle for all their p at once. */
#ifndef TOPP_TESTS_KERNELS_GPU_MATRIX_H
#define TOPP_TESTS_KERNELS_GPU_MATRIX_H

#include "bench/inputs.h"
#include "kernels/topp.h"
#include "oracle/nucleus.h"

enum { MATRIX_MAX_P = 8, MATRIX_MAX_BATCH = 256, MATRIX_SM_COUNT = 132 };

struct matrix {
    char family[96];
    int64_t vocab;
    struct logits rows; /* [batch, vocab], packed */
    float p[MATRIX_MAX_P];
    size_t p_count;                 /* set p and p_count before matrix_solve */
    struct nucleus *nucleus;        /* [batch, p_count] */
    float *pristine, *work;         /* device memory, [batch, vocab] */
    float *device_p;                /* device memory, [batch] */
    struct topp_boundary *boundary; /* device memory, [batch] */
};

/* All of these exit with a message when something fails. */
void matrix_require(bool good, const char *what, const struct tb_error *error);
void matrix_make(struct matrix *m, const char *family, int64_t vocab, int64_t batch, long long seed,
                 const char *captured_dir);
void matrix_solve(struct matrix *m);
void matrix_free(struct matrix *m); /* leaves it zeroed */
/* The first `batch` rows as a problem, every row with the same p. */
struct topp_problem matrix_problem(const struct matrix *m, int64_t batch, float p);
void *device_memory(size_t bytes);

#endif
