/* The memory floor: what any in-place masking must do at least, with the answer given. */
#include "kernels/cpu/row.h"
#include "kernels/cpu/variants.h"

#include <math.h>

static size_t floor_workspace(const struct topp_problem *problem) {
    (void)problem;
    return 0;
}

static int floor_launch(const struct topp_problem *problem, void *workspace, size_t workspace_bytes,
                        void *stream) {
    (void)workspace, (void)workspace_bytes, (void)stream;
    if (!problem->boundary)
        return KERNEL_UNSUPPORTED;
    for (int64_t i = 0; i < problem->batch; i++) {
        const struct topp_boundary b = problem->boundary[i];
        if (problem->p[i] >= 1.0f || b.logit == -INFINITY)
            continue;
        row_mask(problem->logits + i * problem->stride, problem->vocab, b.logit, b.token,
                 problem->mask_value);
    }
    return KERNEL_OK;
}

const struct topp_variant topp_cpu_floor = {
    .name = "floor",
    .summary = "one pass with the boundary given: what masking costs at least",
    .device = KERNEL_DEVICE_CPU,
    .contract = "exact",
    .max_batch = 0,
    .needs_boundary = 1,
    .workspace_size = floor_workspace,
    .launch = floor_launch,
};
