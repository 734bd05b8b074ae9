/* One run of one kernel on rows in host memory, without judging or timing: what --apply and
 * --verify do. Device memory is made and freed in each call. */
#ifndef TOPP_BENCH_ONCE_H
#define TOPP_BENCH_ONCE_H

#include "bench/device.h"

/* Which kernels a call really ran, traced by a device opened with its timer. */
struct once_evidence {
    enum cell_l2 l2;
    enum cell_launch launch;
    struct kernel_evidence *kernels; /* out; owned by the caller: free() */
    size_t count;
    char refused[256]; /* out: not empty: why there is no evidence */
};

/* input, output: binary32 [batch, stride], host memory, may be the same. p: [batch], each above 0.
 * Dropped tokens become -inf. A variant that wants the boundary is given the oracle's.
 * slices: split variants, 0 = as upstream. TB_UNAVAILABLE: the kernel did not end. */
struct topp_once {
    const struct topp_variant *variant;
    const float *input;
    float *output;
    int64_t batch, vocab, stride;
    const float *p;
    int32_t slices;
    struct once_evidence *evidence; /* NULL: not wanted */
};
enum tb_status topp_once(struct device *device, const struct topp_once *once,
                         struct tb_error *error);

/* input as above; seed, position, temperature: [batch]; token: [batch], out. */
struct gumbel_once {
    const struct gumbel_variant *variant;
    const float *input;
    int64_t batch, vocab, stride;
    const int64_t *seed, *position;
    const float *temperature;
    int64_t *token;
    struct once_evidence *evidence; /* NULL: not wanted */
};
enum tb_status gumbel_once(struct device *device, const struct gumbel_once *once,
                           struct tb_error *error);

#endif
