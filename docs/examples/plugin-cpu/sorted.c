/* A top-p kernel of your own: sorts each row and cuts it where the mass reaches p. */
#include "kernels/plugin.h"

#include <math.h>
#include <stdlib.h>

struct token {
    float logit;
    int32_t id;
};

/* Greatest logit first, equal ones by id. */
static int by_rank(const void *left, const void *right) {
    const struct token *a = left, *b = right;
    return a->logit != b->logit ? (a->logit < b->logit) - (a->logit > b->logit) : a->id - b->id;
}

/* One row's tokens: memory comes from the caller, a launch never allocates. */
static size_t workspace_size(const struct topp_problem *problem) {
    return (size_t)problem->vocab * sizeof(struct token);
}

static void mask_row(float *row, int64_t vocab, float p, float mask_value, struct token *tokens) {
    double sum = 0.0, prefix = 0.0;
    int64_t n = 0;
    for (int64_t t = 0; t < vocab; t++)
        tokens[t] = (struct token){row[t], (int32_t)t};
    qsort(tokens, (size_t)vocab, sizeof *tokens, by_rank);
    for (int64_t i = 0; i < vocab; i++)
        sum += exp((double)tokens[i].logit - (double)tokens[0].logit);
    while (n < vocab && prefix < (double)p * sum)
        prefix += exp((double)tokens[n++].logit - (double)tokens[0].logit);
    for (int64_t i = n; i < vocab; i++)
        row[tokens[i].id] = mask_value;
}

static int launch(const struct topp_problem *problem, void *workspace, size_t workspace_bytes,
                  void *stream) {
    (void)workspace_bytes, (void)stream;
    for (int64_t i = 0; i < problem->batch; i++)
        if (problem->p[i] < 1.0f) /* p >= 1 leaves the row as it is */
            mask_row(problem->logits + i * problem->stride, problem->vocab, problem->p[i],
                     problem->mask_value, workspace);
    return KERNEL_OK;
}

static const struct topp_variant sorted = {.name = "sorted",
                                           .summary = "qsort and a running sum in binary64",
                                           .device = KERNEL_DEVICE_CPU,
                                           .output = TOPP_MASKED_LOGITS,
                                           .contract = "exact",
                                           .workspace_size = workspace_size,
                                           .launch = launch};
static const struct topp_variant *const list[] = {&sorted, NULL};
TOPP_PLUGIN_TABLE("example of a CPU plug-in", list, NULL)
