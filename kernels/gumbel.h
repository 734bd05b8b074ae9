/* The contract of a Gumbel-max sampling variant: token = argmax of logit / T + Gumbel noise. */
#ifndef TOPP_KERNELS_GUMBEL_H
#define TOPP_KERNELS_GUMBEL_H

#include "kernels/topp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All pointers are memory of the variant's device (host for CPU). The draw of a row depends on
 * (seed, position, token id) alone, all read from memory when the kernel runs, so that a replayed
 * graph follows a change of them. Rules: a score of NaN or -inf is never drawn, equal scores go to
 * the lowest id, a row in which nothing can be drawn gives id 0. A stride of 0 is allowed: every
 * row reads the same logits (many draws of one distribution). */
struct gumbel_problem {
    const float *logits;          /* binary32 [batch, vocab]; row i at logits + i * stride */
    int64_t batch, vocab, stride; /* stride in elements: >= vocab, or 0 */
    const int64_t *seed;          /* [batch] */
    const int64_t *position;      /* [batch] */
    const float *temperature;     /* binary32 [batch], >= 0; 0 means plain argmax */
    int64_t *token; /* [batch], out: id in [0, vocab) whatever the logits hold; ties: lowest id */
};

struct gumbel_variant {
    const char *name;       /* unique per device */
    const char *noise_name; /* of the noise it claims: log, log1p, fp64 or murmur; NULL: name */
    const char *summary;
    enum kernel_device device;
    int64_t max_batch, max_vocab; /* greatest shape, 0 = any */
    size_t (*workspace_size)(const struct gumbel_problem *problem);
    int (*launch)(const struct gumbel_problem *problem, void *workspace, size_t workspace_bytes,
                  void *stream);
    /* Writes the noise this variant adds to each token, widened to binary64, to noise
     * [batch, vocab] packed (device memory). For checking, never timed. NULL: its ids alone are
     * checked. */
    int (*noise)(const struct gumbel_problem *problem, double *noise, void *stream);
};

static inline const char *gumbel_noise_name(const struct gumbel_variant *variant) {
    return variant->noise_name ? variant->noise_name : variant->name;
}

const struct gumbel_variant *const *gumbel_variants(size_t *count);
const struct gumbel_variant *gumbel_find(const char *name, enum kernel_device device);

#ifdef __cplusplus
}
#endif
#endif
