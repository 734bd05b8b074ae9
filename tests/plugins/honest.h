/* What the test plug-ins have in common: the right nucleus of a row, on the host. */
#ifndef TOPP_TESTS_PLUGINS_HONEST_H
#define TOPP_TESTS_PLUGINS_HONEST_H

#include "kernels/plugin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct honest_token {
    float logit;
    int32_t id;
};

static inline int honest_rank(const void *left, const void *right) {
    const struct honest_token *a = left, *b = right;
    return a->logit != b->logit ? (a->logit < b->logit) - (a->logit > b->logit) : a->id - b->id;
}

static inline size_t honest_workspace(const struct topp_problem *problem) {
    return (size_t)problem->vocab * sizeof(struct honest_token);
}

/* Puts the row into canonical order and returns how many tokens its nucleus has. */
static inline int64_t honest_cut(const float *row, int64_t vocab, float p,
                                 struct honest_token *tokens) {
    double sum = 0.0, prefix = 0.0;
    int64_t n = 0, finite = 0;
    for (int64_t t = 0; t < vocab; t++)
        tokens[t] = (struct honest_token){row[t], (int32_t)t};
    qsort(tokens, (size_t)vocab, sizeof *tokens, honest_rank);
    while (finite < vocab && tokens[finite].logit > -INFINITY)
        finite++;
    for (int64_t i = 0; i < finite; i++)
        sum += exp((double)tokens[i].logit - (double)tokens[0].logit);
    if (p >= 1.0f)
        return finite;
    while (n < finite && prefix < (double)p * sum)
        prefix += exp((double)tokens[n++].logit - (double)tokens[0].logit);
    return n;
}

/* Masks what is right, in rows of this stride. */
static inline int honest_mask(const struct topp_problem *problem, void *workspace, int64_t stride) {
    for (int64_t i = 0; i < problem->batch; i++) {
        float *row = problem->logits + i * stride;
        struct honest_token *tokens = workspace;
        if (problem->p[i] >= 1.0f)
            continue;
        for (int64_t n = honest_cut(row, problem->vocab, problem->p[i], tokens); n < problem->vocab;
             n++)
            row[tokens[n].id] = problem->mask_value;
    }
    return KERNEL_OK;
}

static inline int honest_launch(const struct topp_problem *problem, void *workspace,
                                size_t workspace_bytes, void *stream) {
    (void)workspace_bytes, (void)stream;
    return honest_mask(problem, workspace, problem->stride);
}

#endif
