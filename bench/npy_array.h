/* .npy arrays that are no matrix of logits: what programs are given and leave beside them. */
#ifndef TOPP_BENCH_NPY_ARRAY_H
#define TOPP_BENCH_NPY_ARRAY_H

#include "oracle/status.h"

#include <stdbool.h>
#include <stddef.h>

enum { NPY_MOST_DIMENSIONS = 4 };

/* The type and shape that a file's header claims. */
struct npy_claim {
    char descr[16]; /* "<f4"; "?" when it is no plain type */
    int dimensions; /* -1 when there is no shape */
    int64_t shape[NPY_MOST_DIMENSIONS];
    int64_t data_at; /* first byte of the data */
};

/* Reads the header alone, without judging what it claims. TB_UNREADABLE: no .npy file. */
enum tb_status npy_claim_read(const char *path, struct npy_claim *claim, struct tb_error *error);
/* "<f4 (16, 32000)" */
void npy_claim_text(const struct npy_claim *claim, char *text, size_t bytes);

/* Exactly `count` values `<i8` that the claim's file holds, C order. */
enum tb_status npy_read_int64(const char *path, const struct npy_claim *claim, int64_t *values,
                              size_t count, struct tb_error *error);

/* Writes `<f4` [count]. */
enum tb_status npy_write_vector(const char *path, const float *values, int64_t count,
                                struct tb_error *error);

#endif
