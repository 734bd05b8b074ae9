/* Barriers and messages between the blocks of a row. */
#ifndef TOPP_KERNELS_CUDA_EXACT_EXCHANGE_CUH
#define TOPP_KERNELS_CUDA_EXACT_EXCHANGE_CUH

#include "kernels/cuda/exact_row.cuh"

#include <cooperative_groups.h>

/* Before the first barrier of the row; the cluster's other blocks may then arrive here. */
template <bool kCluster>
static __device__ __forceinline__ void exact_barrier_init(struct exact_shared *s, int32_t ranks) {
#if __CUDA_ARCH__ >= 900
    if (kCluster) {
        if (threadIdx.x == 0) {
            s->phase = 0;
            for (int i = 0; i < 2; i++)
                asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(
                                 (uint32_t)__cvta_generic_to_shared(&s->barrier[i])),
                             "r"(ranks));
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    }
#endif
    (void)s, (void)ranks;
}

/* Waits until all blocks of the row have passed exact_barrier_init (or, at the end, have arrived
 * again): orders execution, not memory. */
template <bool kCluster> static __device__ __forceinline__ void exact_meet() {
#if __CUDA_ARCH__ >= 900
    if (kCluster)
        asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
}

template <bool kCluster> static __device__ __forceinline__ void exact_arrive() {
#if __CUDA_ARCH__ >= 900
    if (kCluster)
        asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}

/* Waits until mbarrier `barrier` has completed its phase of this parity. */
static __device__ __forceinline__ void exact_wait_for(uint64_t *barrier, uint32_t parity) {
#if __CUDA_ARCH__ >= 900
    uint32_t done = 0;
    while (!done)
        asm volatile("{\n"
                     ".reg .pred done;\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, done;\n"
                     "}"
                     : "=r"(done)
                     : "r"((uint32_t)__cvta_generic_to_shared(barrier)), "r"(parity)
                     : "memory");
#endif
    (void)barrier, (void)parity;
}

/* Waits until all blocks of the row have arrived for the phase-th time. */
static __device__ __forceinline__ void exact_wait(struct exact_shared *s, uint32_t phase) {
    exact_wait_for(&s->barrier[phase & 1], phase >> 1 & 1);
}

/* 16 bytes to address `to` of this block, as it is in block `rank`. */
static __device__ __forceinline__ void exact_put(void *to, uint4 value, int32_t rank) {
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n"
                 ".reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "st.shared::cluster.v4.b32 [there], {%2, %3, %4, %5};\n"
                 "}" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
                 "r"(rank), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w)
                 : "memory");
#endif
    (void)to, (void)value, (void)rank;
}

/* Arrives at the mbarrier of block `rank`; releases what the thread knows of. */
static __device__ __forceinline__ void exact_arrive_at(uint64_t *barrier, int32_t rank) {
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n"
                 ".reg .b32 peer;\n"
                 "mapa.shared::cluster.u32 peer, %0, %1;\n"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [peer];\n"
                 "}" ::"r"((uint32_t)__cvta_generic_to_shared(barrier)),
                 "r"(rank)
                 : "memory");
#endif
    (void)barrier, (void)rank;
}

/* A warp sends a message to block `rank` and arrives there: bytes (a multiple of 16) of this
 * block's shared memory, to the same address `to` over there. Plain stores: bulk copies would need
 * fewer instructions, but compute-sanitizer takes their address for one of this block. */
static __device__ __forceinline__ void exact_send(struct exact_shared *s, void *to,
                                                  const void *message, uint32_t bytes, int32_t rank,
                                                  uint32_t phase) {
    for (uint32_t i = threadIdx.x % 32; i < bytes / 16; i += 32)
        exact_put((uint4 *)to + i, ((const uint4 *)message)[i], rank);
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        exact_arrive_at(&s->barrier[phase & 1], rank);
}

/* Warp 0 alone waits for what all blocks send. */
template <bool kCluster>
static __device__ __forceinline__ void exact_await(struct exact_shared *s) {
    if (!kCluster)
        return;
    const uint32_t phase = s->phase;
    exact_wait(s, phase);
    __syncwarp();
    if (threadIdx.x == 0)
        s->phase = phase + 1;
    __syncwarp();
}

/* Warp 0 alone sends a message to all blocks and waits for theirs. */
template <bool kCluster>
static __device__ __forceinline__ void exact_exchange(struct exact_shared *s, void *to,
                                                      const void *message, uint32_t bytes,
                                                      int32_t ranks) {
    if (!kCluster)
        return;
    __syncwarp();
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < bytes / 16; i += 32) {
        const uint4 piece = ((const uint4 *)message)[i];
        for (int32_t rank = 0; rank < ranks; rank++)
            exact_put((uint4 *)to + i, piece, rank);
    }
    __syncwarp();
    if ((int32_t)threadIdx.x < ranks)
        exact_arrive_at(&s->barrier[s->phase & 1], threadIdx.x);
    exact_await<kCluster>(s);
}

/* A barrier of all blocks of the row; orders shared memory among them. One thread a block releases
 * to each other block: a cluster barrier with release in every thread costs a fence in each. */
template <bool kCluster>
static __device__ __forceinline__ void exact_barrier(struct exact_shared *s, int32_t ranks) {
    __syncthreads();
    if (!kCluster)
        return;
    const uint32_t phase = s->phase;
    if ((int32_t)threadIdx.x < ranks)
        exact_arrive_at(&s->barrier[phase & 1], threadIdx.x);
    exact_wait(s, phase);
    __syncthreads(); /* all have read the phase */
    if (threadIdx.x == 0)
        s->phase = phase + 1;
}

template <bool kCluster, class T>
static __device__ __forceinline__ T *exact_peer(T *mine, int32_t rank) {
#if __CUDA_ARCH__ >= 900
    if (kCluster)
        return cooperative_groups::this_cluster().map_shared_rank(mine, rank);
#endif
    (void)rank;
    return mine;
}

#endif
