/* Barriers and messages between the blocks of a row. */
#ifndef TOPP_KERNELS_CUDA_EXACT_EXCHANGE_CUH
#define TOPP_KERNELS_CUDA_EXACT_EXCHANGE_CUH

#include "kernels/cuda/exact_row.cuh"

/* Before the first barrier of the row; the cluster's other blocks may then arrive here. */
template <bool kCluster>
static __device__ __forceinline__ void exact_barrier_init(struct exact_shared *s, int32_t ranks) {
    if (!kCluster)
        return;
    if (threadIdx.x == 0) {
        s->phase = 0;
        for (int i = 0; i < 2; i++)
            ptx_barrier_init(&s->barrier[i], ranks);
        ptx_barrier_init_release();
    }
    ptx_cluster_arrive();
}

/* Waits until all blocks of the row have passed exact_barrier_init (or, at the end, have arrived
 * again): orders execution, not memory. */
template <bool kCluster> static __device__ __forceinline__ void exact_meet() {
    if (kCluster)
        ptx_cluster_wait();
}

template <bool kCluster> static __device__ __forceinline__ void exact_arrive() {
    if (kCluster)
        ptx_cluster_arrive();
}

/* Waits until all blocks of the row have arrived for the phase-th time. */
static __device__ __forceinline__ void exact_wait(struct exact_shared *s, uint32_t phase) {
    ptx_barrier_wait(&s->barrier[phase & 1], phase >> 1 & 1);
}

/* A warp sends a message to block `rank` and arrives there: bytes (a multiple of 16) of this
 * block's shared memory, to the same address `to` over there. Plain stores: bulk copies would need
 * fewer instructions, but compute-sanitizer takes their address for one of this block. */
static __device__ __forceinline__ void exact_send(struct exact_shared *s, void *to,
                                                  const void *message, uint32_t bytes, int32_t rank,
                                                  uint32_t phase) {
    for (uint32_t i = threadIdx.x % 32; i < bytes / 16; i += 32)
        ptx_peer_store((uint4 *)to + i, ((const uint4 *)message)[i], rank);
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        ptx_peer_arrive(&s->barrier[phase & 1], rank);
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

/* Warp 0 alone sends a message to all other blocks and waits for theirs. */
template <bool kCluster>
static __device__ __forceinline__ void exact_exchange(struct exact_shared *s, void *to,
                                                      const void *message, uint32_t bytes,
                                                      int32_t own, int32_t ranks) {
    if (!kCluster)
        return;
    __syncwarp();
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < bytes / 16; i += 32) {
        const uint4 piece = ((const uint4 *)message)[i];
        for (int32_t rank = 0; rank < ranks; rank++)
            if (rank != own)
                ptx_peer_store((uint4 *)to + i, piece, rank);
    }
    __syncwarp();
    if ((int32_t)threadIdx.x < ranks)
        ptx_peer_arrive(&s->barrier[s->phase & 1], threadIdx.x);
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
        ptx_peer_arrive(&s->barrier[phase & 1], threadIdx.x);
    exact_wait(s, phase);
    __syncthreads(); /* all have read the phase */
    if (threadIdx.x == 0)
        s->phase = phase + 1;
}

template <bool kCluster, class T>
static __device__ __forceinline__ T *exact_peer(T *mine, int32_t rank) {
    return kCluster ? ptx_peer(mine, rank) : mine;
}

#endif
