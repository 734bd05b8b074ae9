// A top-p kernel of your own: a block finds its row's cut bit by bit. Ties stay whole: `bounded`.
#include "kernels/plugin.h"

enum { THREADS = 1024 };
// Orders like the logit does: greater logit, greater key; -0 is 0.
__device__ unsigned key_of(float logit) {
    const unsigned bits = __float_as_uint(logit + 0.0f);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__global__ void mask_rows(const topp_problem problem) {
    __shared__ double sums[THREADS / 32];
    float *const row = problem.logits + blockIdx.x * problem.stride;
    if (problem.p[blockIdx.x] >= 1.0f) // leaves the row as it is
        return;
    auto sum = [&](auto f) { // of f over all tokens, in every thread
        double part = 0.0;
        for (int64_t t = threadIdx.x; t < problem.vocab; t += THREADS)
            part += f(row[t]);
        for (int lanes = 16; lanes > 0; lanes /= 2)
            part += __shfl_xor_sync(~0u, part, lanes);
        sums[threadIdx.x / 32] = part;
        __syncthreads();
        part = 0.0;
        for (double of_warp : sums)
            part += of_warp;
        __syncthreads();
        return part;
    };
    unsigned top = 0, cut = 0; // the greatest key; the greatest one that reaches the target
    for (unsigned bit = 1u << 31; bit; bit >>= 1)
        top |= sum([=](float x) { return key_of(x) >= (top | bit); }) > 0.0 ? bit : 0;
    const double max = __uint_as_float(top & 0x80000000u ? top ^ 0x80000000u : ~top);
    auto mass = [&](unsigned least) {
        return sum([=](float x) { return key_of(x) >= least ? exp(x - max) : 0.0; });
    };
    const double target = problem.p[blockIdx.x] * mass(0);
    for (unsigned bit = 1u << 31; bit; bit >>= 1)
        cut |= mass(cut | bit) >= target ? bit : 0;
    for (int64_t t = threadIdx.x; t < problem.vocab; t += THREADS)
        if (key_of(row[t]) < cut)
            row[t] = problem.mask_value;
}

static size_t no_workspace(const topp_problem *) {
    return 0;
}
static int launch(const topp_problem *problem, void *, size_t, void *stream) {
    mask_rows<<<(unsigned)problem->batch, THREADS, 0, (cudaStream_t)stream>>>(*problem);
    return (int)cudaGetLastError();
}
static const topp_variant bisect = {.name = "bisect",
                                    .summary = "64 passes of a block over its row",
                                    .device = KERNEL_DEVICE_CUDA,
                                    .contract = "bounded",
                                    .workspace_size = no_workspace,
                                    .launch = launch};
static const topp_variant *const list[] = {&bisect, nullptr};
TOPP_PLUGIN_TABLE("example of a CUDA plug-in", list, nullptr)
