/* Instructions and memory that `exact` needs and CUDA C has no words for, one function each; what
 * is of Hopper does nothing on GPUs before it, where no kernel gets there. The only place of inline
 * PTX of `exact`: tests/emulated has the same functions for a machine without a GPU.
 * Semantics: PTX ISA, "Parallel synchronization and communication instructions". */
#ifndef TOPP_KERNELS_CUDA_PTX_CUH
#define TOPP_KERNELS_CUDA_PTX_CUH

#include <cooperative_groups.h>
#include <stdint.h>

/* The block's dynamic shared memory. */
static __device__ __forceinline__ uint4 *ptx_dynamic_shared() {
    extern __shared__ uint4 ptx_memory[];
    return ptx_memory;
}

/* An address in shared memory, to be added to in bytes. */
typedef uint32_t ptx_shared;
static __device__ __forceinline__ ptx_shared ptx_shared_of(const void *at) {
    return (uint32_t)__cvta_generic_to_shared(at);
}

/* 16 bytes of global memory on their way to shared memory: there once a wait for them is over. */
static __device__ __forceinline__ void ptx_copy_async(void *to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(ptx_shared_of(to)), "l"(from));
}

/* The copies that the thread has started since the last time become a group. */
static __device__ __forceinline__ void ptx_copy_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most `kGroups` of the thread's latest groups are on their way. */
template <int kGroups> static __device__ __forceinline__ void ptx_copy_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}

static __device__ __forceinline__ void ptx_copy_wait_all() {
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* A count that others may be adding to: some value of it. */
static __device__ __forceinline__ int32_t ptx_peek(const int32_t *at) {
    return *(const volatile int32_t *)at;
}

/* *to += value, nothing returned. */
static __device__ __forceinline__ void ptx_add(ptx_shared to, uint32_t value) {
    asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(to), "r"(value) : "memory");
}

/* Four logits in one store; left to the compiler, it becomes four. at: 16-byte aligned, global. */
static __device__ __forceinline__ void ptx_store(float *at, float4 value) {
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(at), "f"(value.x), "f"(value.y),
                 "f"(value.z), "f"(value.w)
                 : "memory");
}

/* Barrier of the cluster's threads that orders execution, not memory. */
static __device__ __forceinline__ void ptx_cluster_arrive() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}

static __device__ __forceinline__ void ptx_cluster_wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
}

/* An mbarrier of this block whose phase ends by so many arrivals (and the bytes expected). */
static __device__ __forceinline__ void ptx_barrier_init(uint64_t *barrier, uint32_t arrivals) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(ptx_shared_of(barrier)),
                 "r"(arrivals)
                 : "memory");
#endif
    (void)barrier, (void)arrivals;
}

/* Makes the thread's initialisations known to the cluster's other blocks, once they have met. */
static __device__ __forceinline__ void ptx_barrier_init_release() {
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

/* Arrives at this block's mbarrier, whose phase also waits for so many bytes. */
static __device__ __forceinline__ void ptx_barrier_expect(uint64_t *barrier, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(ptx_shared_of(barrier)),
        "r"(bytes)
        : "memory");
#endif
    (void)barrier, (void)bytes;
}

/* Waits until the phase of this parity is over; acquires what arrivals released. */
static __device__ __forceinline__ void ptx_barrier_wait(uint64_t *barrier, uint32_t parity) {
#if __CUDA_ARCH__ >= 900
    uint32_t done = 0;
    while (!done)
        asm volatile("{\n"
                     ".reg .pred done;\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, done;\n"
                     "}"
                     : "=r"(done)
                     : "r"(ptx_shared_of(barrier)), "r"(parity)
                     : "memory");
#endif
    (void)barrier, (void)parity;
}

/* Arrives at the mbarrier that block `rank` of the cluster has at this address; releases what the
 * thread knows of. */
static __device__ __forceinline__ void ptx_peer_arrive(uint64_t *barrier, int32_t rank) {
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n"
                 ".reg .b32 peer;\n"
                 "mapa.shared::cluster.u32 peer, %0, %1;\n"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [peer];\n"
                 "}" ::"r"(ptx_shared_of(barrier)),
                 "r"(rank)
                 : "memory");
#endif
    (void)barrier, (void)rank;
}

/* 16 bytes to address `to` of this block, as it is in block `rank`. */
static __device__ __forceinline__ void ptx_peer_store(void *to, uint4 value, int32_t rank) {
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n"
                 ".reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "st.shared::cluster.v4.b32 [there], {%2, %3, %4, %5};\n"
                 "}" ::"r"(ptx_shared_of(to)),
                 "r"(rank), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w)
                 : "memory");
#endif
    (void)to, (void)value, (void)rank;
}

/* The same without waiting, counted in bytes by that block's mbarrier at `barrier`. */
static __device__ __forceinline__ void ptx_peer_store_async(void *to, uint4 value,
                                                            uint64_t *barrier, int32_t rank) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "{\n"
        ".reg .b32 there, peer;\n"
        "mapa.shared::cluster.u32 there, %0, %2;\n"
        "mapa.shared::cluster.u32 peer, %1, %2;\n"
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [there], {%3, %4, %5, "
        "%6}, [peer];\n"
        "}" ::"r"(ptx_shared_of(to)),
        "r"(ptx_shared_of(barrier)), "r"(rank), "r"(value.x), "r"(value.y), "r"(value.z),
        "r"(value.w)
        : "memory");
#endif
    (void)to, (void)value, (void)barrier, (void)rank;
}

/* Address `mine` of this block, as it is in block `rank`: to be read from here. */
template <class T> static __device__ __forceinline__ T *ptx_peer(T *mine, int32_t rank) {
#if __CUDA_ARCH__ >= 900
    return cooperative_groups::this_cluster().map_shared_rank(mine, rank);
#else
    (void)rank;
    return mine;
#endif
}

#endif
