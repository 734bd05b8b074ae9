/* What the launcher of `exact` and its kernels agree on. */
#ifndef TOPP_KERNELS_CUDA_EXACT_ARGS_H
#define TOPP_KERNELS_CUDA_EXACT_ARGS_H

#include <stddef.h>
#include <stdint.h>

enum {
    EXACT_SEGMENT = 65536, /* logits that 32-bit sums of 16-bit halves surely hold */
    EXACT_GREATEST_CLUSTER = 16,
    EXACT_LISTED = 2048,     /* room for tokens of the boundary's bucket, in all lists of a row */
    EXACT_QUICK_VECTORS = 6, /* most of a thread for the short way */
};

struct exact_args {
    float *logits;
    const float *p;
    uint32_t *escalated; /* [batch] */
    int64_t vocab, stride;
    float mask_value;
    int32_t ranks;  /* blocks a row: 1, or the cluster's size */
    int32_t listed; /* of EXACT_LISTED, a block's; even */
    int32_t chunk;  /* vectors of four logits a block */
    int32_t cached; /* most vectors that fit shared memory */
    int32_t wide;   /* a chunk passes EXACT_SEGMENT: a third limb of sums */
};

/* The kernel for one number of threads a block. */
typedef void exact_function(struct exact_args args);
struct exact_kernel {
    exact_function *single, *cluster; /* without clusters, with */
    exact_function *quick;            /* with clusters, the short way first; or NULL */
    int32_t threads;
    /* Shared memory besides the row's cache, in bytes: fixed, for each block of the row, if wide,
     * if quick. */
    size_t fixed_bytes, rank_bytes, wide_bytes, quick_bytes;
};

/* 512 threads: parts of up to 65,536 logits, where what every warp does alike weighs most. 1,024
 * threads: longer parts, much of which is not in shared memory: loops need warps in flight. */
extern const struct exact_kernel exact_kernel_short, exact_kernel_long;

#endif
