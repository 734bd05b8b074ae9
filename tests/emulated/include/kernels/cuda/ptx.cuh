/* kernels/cuda/ptx.cuh for the emulated device: the same functions, found first. */
#ifndef TOPP_TESTS_EMULATED_PTX_CUH
#define TOPP_TESTS_EMULATED_PTX_CUH

#include "tests/emulated/device.h"

#include <cuda_runtime.h>
#include <stdint.h>

static inline uint4 *ptx_dynamic_shared() {
    return (uint4 *)emulated::here->shared;
}

typedef unsigned char *ptx_shared;
static inline ptx_shared ptx_shared_of(const void *at) {
    return (unsigned char *)at;
}

static inline void ptx_copy_async(void *to, const void *from) {
    emulated::copy_start(to, from);
}

static inline void ptx_copy_commit() {
    emulated::copy_commit();
}

template <int kGroups> static inline void ptx_copy_wait() {
    emulated::copy_wait(kGroups);
}

static inline void ptx_copy_wait_all() {
    emulated::copy_wait_all();
}

static inline int32_t ptx_peek(const int32_t *at) {
    return __atomic_load_n(at, __ATOMIC_RELAXED);
}

static inline void ptx_add(ptx_shared to, uint32_t value) {
    atomicAdd((uint32_t *)(void *)to, value);
}

static inline void ptx_store(float *at, float4 value) {
    *(float4 *)at = value;
}

static inline void ptx_cluster_arrive() {
    emulated::cluster_arrive();
}

static inline void ptx_cluster_wait() {
    emulated::cluster_wait();
}

static inline void ptx_barrier_init(uint64_t *barrier, uint32_t arrivals) {
    emulated::barrier_init(barrier, arrivals);
}

static inline void ptx_barrier_init_release() {
    emulated::barrier_init_release();
}

static inline void ptx_barrier_expect(uint64_t *barrier, uint32_t bytes) {
    emulated::barrier_arrive(barrier, bytes);
}

static inline void ptx_barrier_wait(uint64_t *barrier, uint32_t parity) {
    emulated::barrier_wait(barrier, parity);
}

static inline void ptx_peer_arrive(uint64_t *barrier, int32_t rank) {
    emulated::barrier_arrive((uint64_t *)emulated::peer(barrier, rank), 0);
}

static inline void ptx_peer_store(void *to, uint4 value, int32_t rank) {
    *(uint4 *)emulated::peer(to, rank) = value;
}

static inline void ptx_peer_store_async(void *to, uint4 value, uint64_t *barrier, int32_t rank) {
    emulated::store_async(emulated::peer(to, rank), &value,
                          (uint64_t *)emulated::peer(barrier, rank));
}

template <class T> static inline T *ptx_peer(T *mine, int32_t rank) {
    return (T *)emulated::peer(mine, rank);
}

#endif
