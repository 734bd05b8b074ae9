/* Small kernels of the ruler itself: clock stamps, the L2 probe and a spin of known length. */
#ifndef TOPP_BENCH_CUDA_PROBE_H
#define TOPP_BENCH_CUDA_PROBE_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Written by one thread: the SM clock, the global timer in ns, and which SM it ran on. */
struct cuda_stamp {
    int64_t clock, time_ns;
    uint32_t sm, written; /* written: 1 once the stamp is there */
};

/* As CUPTI prints it: how the stamps are told from the kernels under test. */
#define CUDA_STAMP_KERNEL "topp_bench_stamp"

/* Enqueues a stamp into slot (device memory). Returns the launch's status. */
cudaError_t cuda_stamp_launch(struct cuda_stamp *slot, cudaStream_t stream);

/* Enqueues a pointer chase by one thread over `lines` 128-byte lines of memory (device, set up by
 * cuda_chase_setup), writing the mean cycles per load to *cycles (device). */
cudaError_t cuda_chase_setup(uint32_t *memory, uint32_t lines, cudaStream_t stream);
cudaError_t cuda_chase_launch(const uint32_t *memory, uint32_t lines, float *cycles,
                              cudaStream_t stream);

/* Enqueues a kernel that spins for `nanoseconds` on the global timer; it writes what it spun. */
cudaError_t cuda_spin_launch(int64_t nanoseconds, int64_t *spun_ns, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
