#include "bench/cuda_probe.h"

static __device__ __forceinline__ int64_t global_timer_ns(void) {
    int64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

extern "C" __global__ void topp_bench_stamp(struct cuda_stamp *slot) {
    uint32_t sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    slot->clock = clock64();
    slot->time_ns = global_timer_ns();
    slot->sm = sm;
    slot->written = 1;
}

cudaError_t cuda_stamp_launch(struct cuda_stamp *slot, cudaStream_t stream) {
    topp_bench_stamp<<<1, 1, 0, stream>>>(slot);
    return cudaGetLastError();
}

enum { LINE_WORDS = 32 };

/* A stride that is odd to any power-of-two line count visits each line once. */
static __global__ void topp_bench_chase_setup(uint32_t *memory, uint32_t lines) {
    for (uint32_t i = threadIdx.x; i < lines; i += blockDim.x)
        memory[(size_t)i * LINE_WORDS] = (i + 1237u) % lines;
}

static __global__ void topp_bench_chase(const uint32_t *memory, uint32_t lines, float *cycles) {
    uint32_t at = 0;
    int64_t start = clock64();
    for (uint32_t i = 0; i < lines; i++)
        at = __ldcg(memory + (size_t)at * LINE_WORDS); /* past L1: this asks L2 */
    int64_t end = clock64();
    *cycles = (float)(end - start) / (float)lines + (at == 0xffffffffu ? 1.0f : 0.0f);
}

cudaError_t cuda_chase_setup(uint32_t *memory, uint32_t lines, cudaStream_t stream) {
    topp_bench_chase_setup<<<1, 256, 0, stream>>>(memory, lines);
    return cudaGetLastError();
}

cudaError_t cuda_chase_launch(const uint32_t *memory, uint32_t lines, float *cycles,
                              cudaStream_t stream) {
    topp_bench_chase<<<1, 1, 0, stream>>>(memory, lines, cycles);
    return cudaGetLastError();
}

static __global__ void topp_bench_spin(int64_t nanoseconds, int64_t *spun_ns) {
    int64_t start = global_timer_ns(), now = start;
    while (now - start < nanoseconds)
        now = global_timer_ns();
    *spun_ns = now - start;
}

cudaError_t cuda_spin_launch(int64_t nanoseconds, int64_t *spun_ns, cudaStream_t stream) {
    topp_bench_spin<<<1, 1, 0, stream>>>(nanoseconds, spun_ns);
    return cudaGetLastError();
}
