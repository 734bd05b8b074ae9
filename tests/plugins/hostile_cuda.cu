/* CUDA kernels that misbehave, each in one known way, and the repository's exact one between them.
 */
#include "kernels/cuda/variants.h"
#include "kernels/plugin.h"

static __global__ void write_at(float *where) {
    *where = 1.0f;
}

static __global__ void loop(volatile float *flag) {
    while (*flag != 12345.0f)
        ;
}

static int honest(const topp_problem *problem, void *workspace, size_t bytes, void *stream) {
    return topp_cuda_exact.launch(problem, workspace, bytes, stream);
}

static size_t honest_workspace(const topp_problem *problem) {
    return topp_cuda_exact.workspace_size(problem);
}

static int crashes(const topp_problem *, void *, size_t, void *) {
    volatile int *nowhere = nullptr;
    return *nowhere;
}

static int reads_nowhere(const topp_problem *, void *, size_t, void *stream) {
    write_at<<<1, 1, 0, (cudaStream_t)stream>>>((float *)16);
    return (int)cudaGetLastError();
}

static int loops(const topp_problem *problem, void *, size_t, void *stream) {
    loop<<<1, 1, 0, (cudaStream_t)stream>>>(problem->logits);
    return (int)cudaGetLastError();
}

static volatile int never_zero = 1;

static int loops_on_host(const topp_problem *, void *, size_t, void *) {
    while (never_zero)
        ;
    return KERNEL_OK;
}

static int writes_behind(const topp_problem *problem, void *workspace, size_t bytes, void *stream) {
    const int status = honest(problem, workspace, bytes, stream);
    write_at<<<1, 1, 0, (cudaStream_t)stream>>>(problem->logits + problem->batch * problem->stride +
                                                5);
    return status;
}

static int changes_p(const topp_problem *problem, void *workspace, size_t bytes, void *stream) {
    const int status = honest(problem, workspace, bytes, stream);
    write_at<<<1, 1, 0, (cudaStream_t)stream>>>((float *)(size_t)problem->p);
    return status;
}

static int bad_launch(const topp_problem *problem, void *, size_t, void *stream) {
    write_at<<<1, 4096, 0, (cudaStream_t)stream>>>(problem->logits);
    return (int)cudaGetLastError();
}

static int skips(const topp_problem *, void *, size_t, void *) {
    return KERNEL_OK;
}

#define VARIANT(NAME)                                                                              \
    static const topp_variant variant_##NAME = {.name = #NAME,                                     \
                                                .summary = "of the tests",                         \
                                                .device = KERNEL_DEVICE_CUDA,                      \
                                                .contract = "exact",                               \
                                                .workspace_size = honest_workspace,                \
                                                .launch = NAME}
VARIANT(crashes);
VARIANT(reads_nowhere);
VARIANT(loops);
VARIANT(loops_on_host);
VARIANT(writes_behind);
VARIANT(changes_p);
VARIANT(bad_launch);
VARIANT(skips);
VARIANT(honest);

static const topp_variant *const list[] = {&variant_crashes,       &variant_reads_nowhere,
                                           &variant_loops,         &variant_loops_on_host,
                                           &variant_writes_behind, &variant_changes_p,
                                           &variant_bad_launch,    &variant_skips,
                                           &variant_honest,        nullptr};
TOPP_PLUGIN_TABLE("hostile on CUDA", list, nullptr)
