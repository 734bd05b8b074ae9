/* `floor`: the boundary is given, so nothing is left but to read every logit and to write the
 * masked ones. No kernel that masks in place can be faster: the yardstick of the others. */
#include "kernels/cuda/masking.cuh"
#include "kernels/cuda/variants.h"

namespace {

/* Canonical order: a logit above the boundary's, or the same and an id up to its token. */
struct floor_rows {
    const struct topp_boundary *boundary;

    struct keep {
        float logit;
        int32_t token;
        __device__ __forceinline__ bool operator()(float x, int64_t id) const {
            return x > logit || (x == logit && id <= token);
        }
    };

    __device__ __forceinline__ bool open(int64_t row, struct keep *keep) const {
        keep->logit = boundary[row].logit;
        keep->token = boundary[row].token;
        return keep->logit != -INFINITY;
    }
};

size_t floor_workspace(const struct topp_problem *problem) {
    (void)problem;
    return 0;
}

int floor_enqueue(const struct topp_problem *problem, void *workspace, size_t workspace_bytes,
                  void *stream) {
    (void)workspace;
    (void)workspace_bytes;
    if (!problem->boundary)
        return KERNEL_UNSUPPORTED;
    const struct floor_rows rows = {problem->boundary};
    return masking_enqueue(problem, rows, static_cast<cudaStream_t>(stream));
}

} // namespace

const struct topp_variant topp_cuda_floor = {
    "floor",
    "reads every logit and writes the masked ones, boundary given: the limit, no contender",
    KERNEL_DEVICE_CUDA,
    TOPP_MASKED_LOGITS,
    "exact",
    0,
    0,
    1,
    floor_workspace,
    floor_enqueue,
};
