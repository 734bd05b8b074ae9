/* The contract of a top-p variant: what a kernel is given, what it must leave behind, and how it
 * is described to whoever runs it. Kernels know nothing of oracle, gate or timing. */
#ifndef TOPP_KERNELS_TOPP_H
#define TOPP_KERNELS_TOPP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a launch returns: 0, a negative value of this enum, or a positive CUDA error code. */
enum kernel_status {
    KERNEL_OK = 0,
    KERNEL_UNSUPPORTED = -1, /* batch or shape past the variant's limits */
    KERNEL_WORKSPACE = -2,   /* workspace smaller than workspace_size() */
};

enum kernel_device { KERNEL_DEVICE_CPU = 0, KERNEL_DEVICE_CUDA = 1 };

/* What a variant leaves behind, hence what the gate judges. */
enum topp_output {
    TOPP_MASKED_LOGITS = 0, /* in place: kept logits as they were, the others mask_value */
    TOPP_PROBABILITIES,     /* in place: softmax over the kept tokens, 0 for all others; at p >= 1
                               the softmax of the whole row */
    TOPP_IDS,               /* ids: one token a row, drawn from the softmax over the kept tokens;
                               the logits are left as they were */
};

/* The last kept token of a row in canonical order (logit descending, then token id ascending). */
struct topp_boundary {
    float logit;   /* -inf keeps the whole row */
    int32_t token; /* tokens with this very logit are kept up to and including this id */
};

/* Top-p, in place but for ids. All pointers are memory of the variant's device (host for CPU).
 * Nothing but the variant's output is ever written: p, seed and position stay as they are. */
struct topp_problem {
    float *logits;  /* binary32 [batch, vocab], row-major; row i starts at logits + i * stride */
    const float *p; /* binary32 [batch], each in (0, inf); p >= 1 leaves the row untouched */
    int64_t batch;  /* rows, >= 1 */
    int64_t vocab;  /* tokens in a row, >= 1 */
    int64_t stride; /* elements from row to row, >= vocab; the tail is neither used nor written */
    float mask_value;
    int32_t sm_count; /* multiprocessors that the split variants cut their slices for (132: H200) */
    int32_t slices;   /* split variants: slices per row, 0 = as upstream for sm_count */
    const struct topp_boundary *boundary; /* [batch], given to `floor` alone; NULL otherwise */

    /* Output TOPP_IDS alone, NULL otherwise. A draw depends on its row's logits, p, seed and
     * position and on nothing else: the same again gives the same id, another position or seed an
     * independent draw. Both are read when the kernel runs, as a replayed graph needs it. */
    const int64_t *seed;     /* [batch] */
    const int64_t *position; /* [batch], >= 0 */
    int64_t *ids;            /* [batch], out: each in [0, vocab) whatever the logits hold */
};

struct topp_variant {
    const char *name;    /* unique per device */
    const char *summary; /* one line: the idea and where it comes from */
    enum kernel_device device;
    enum topp_output output;
    const char *contract;   /* what the gate holds it to: exact, bounded, conservative, envelope */
    int64_t max_batch;      /* greatest batch, 0 = any */
    int64_t max_vocab;      /* greatest vocabulary, 0 = any */
    int32_t needs_boundary; /* 1: wants topp_problem.boundary, not a contender in comparisons */
    /* Bytes of workspace that launch needs for this shape (pointers are not looked at). */
    size_t (*workspace_size)(const struct topp_problem *problem);
    /* Enqueues on stream (a cudaStream_t; NULL for CPU, where it runs to completion). Never
     * allocates, never synchronises, may be captured in a CUDA graph, never changes the problem.
     * The workspace holds arbitrary bytes and is 256-byte aligned. */
    int (*launch)(const struct topp_problem *problem, void *workspace, size_t workspace_bytes,
                  void *stream);
};

/* Every built-in variant, CPU first; *count receives how many. */
const struct topp_variant *const *topp_variants(size_t *count);

/* NULL if there is none of that name for that device. */
const struct topp_variant *topp_find(const char *name, enum kernel_device device);

#ifdef __cplusplus
}
#endif
#endif
