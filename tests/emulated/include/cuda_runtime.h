/* CUDA C++ for the emulated device: what nvcc knows without being told, as plain C++. */
#ifndef TOPP_TESTS_EMULATED_CUDA_RUNTIME_H
#define TOPP_TESTS_EMULATED_CUDA_RUNTIME_H

/* Before the macros below change what their headers say. */
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <tuple>
#include <type_traits>

#include "cuda_runtime_api.h"
#include "tests/emulated/device.h"

#define __host__
#define __device__
#define __global__
#define __shared__ static /* blocks that are not of a cluster run one after the other */
#define __grid_constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)

/* No macros: members of a launch's configuration have the same names. */
template <emulated::index3 emulated::place::*Which, unsigned emulated::index3::*Axis>
struct emulated_axis {
    operator unsigned() const {
        return emulated::here->*Which.*Axis;
    }
};
template <emulated::index3 emulated::place::*Which> struct emulated_index {
    emulated_axis<Which, &emulated::index3::x> x;
    emulated_axis<Which, &emulated::index3::y> y;
    emulated_axis<Which, &emulated::index3::z> z;
};
static constexpr emulated_index<&emulated::place::thread> threadIdx{};
static constexpr emulated_index<&emulated::place::block> blockIdx{};
static constexpr emulated_index<&emulated::place::block_size> blockDim{};
static constexpr emulated_index<&emulated::place::grid_size> gridDim{};

struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {
    }
};

static inline float4 make_float4(float x, float y, float z, float w) {
    return {x, y, z, w};
}
static inline uint2 make_uint2(unsigned x, unsigned y) {
    return {x, y};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
    return {x, y, z, w};
}

template <class To, class From> static inline To emulated_cast(From from) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

static inline int __float_as_int(float x) {
    return emulated_cast<int>(x);
}
static inline unsigned __float_as_uint(float x) {
    return emulated_cast<unsigned>(x);
}
static inline float __int_as_float(int x) {
    return emulated_cast<float>(x);
}
static inline float __uint_as_float(unsigned x) {
    return emulated_cast<float>(x);
}
static inline double __longlong_as_double(long long x) {
    return emulated_cast<double>(x);
}
static inline long long __double_as_longlong(double x) {
    return emulated_cast<long long>(x);
}

static inline float __fmaf_rn(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
static inline float __fadd_rn(float a, float b) {
    return a + b;
}
static inline float __fmul_rn(float a, float b) {
    return a * b;
}
static inline float __fdiv_rn(float a, float b) {
    return a / b;
}
static inline int __float2int_rn(float x) { /* saturates, NaN is 0 */
    return x != x ? 0 : x >= 0x1p31f ? INT32_MAX : x < -0x1p31f ? INT32_MIN : (int)rintf(x);
}
static inline int __ffs(int x) {
    return __builtin_ffs(x);
}
static inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}
static inline int __clz(int x) {
    return x ? __builtin_clz((unsigned)x) : 32;
}
static inline int __clzll(long long x) {
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
using std::max;
using std::min;

template <class T> static inline void __stcs(T *to, T value) {
    *to = value;
}

/* Barriers and operations of a warp. */
static inline void __syncthreads() {
    emulated::block_barrier(false);
}
static inline int __syncthreads_or(int value) {
    return emulated::block_barrier(value != 0);
}
static inline void __syncwarp(unsigned mask = ~0u) {
    emulated::warp_meet(mask, "__syncwarp", 0, true);
}

template <class T> static inline uint64_t emulated_word(T value) {
    static_assert(sizeof(T) <= 8, "a lane's value");
    uint64_t word = 0;
    memcpy(&word, &value, sizeof value);
    return word;
}
template <class T> static inline T emulated_value(uint64_t word) {
    T value;
    memcpy(&value, &word, sizeof value);
    return value;
}

template <class T>
static inline T emulated_shuffle(unsigned mask, const char *operation, T value, int from) {
    const uint64_t *const all = emulated::warp_meet(mask, operation, emulated_word(value), false);
    return emulated_value<T>(all[from]);
}
static inline int emulated_lane() {
    return (int)(threadIdx.x % 32);
}
template <class T> static inline T __shfl_sync(unsigned mask, T value, int lane) {
    return emulated_shuffle(mask, "__shfl_sync", value, lane & 31);
}
template <class T> static inline T __shfl_up_sync(unsigned mask, T value, unsigned by) {
    const int from = emulated_lane() - (int)by;
    return emulated_shuffle(mask, "__shfl_up_sync", value, from < 0 ? emulated_lane() : from);
}
template <class T> static inline T __shfl_down_sync(unsigned mask, T value, unsigned by) {
    const int from = emulated_lane() + (int)by;
    return emulated_shuffle(mask, "__shfl_down_sync", value, from > 31 ? emulated_lane() : from);
}
template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int by) {
    return emulated_shuffle(mask, "__shfl_xor_sync", value, emulated_lane() ^ by);
}

template <class T, class Join>
static inline T emulated_reduce(unsigned mask, const char *operation, T value, Join join) {
    const uint64_t *const all = emulated::warp_meet(mask, operation, emulated_word(value), false);
    T result = emulated_value<T>(all[0]);
    for (int i = 1; i < 32; i++)
        result = join(result, emulated_value<T>(all[i]));
    return result;
}
template <class T> static inline T __reduce_add_sync(unsigned mask, T value) {
    return emulated_reduce(mask, "__reduce_add_sync", value,
                           [](T a, T b) { return (T)((unsigned)a + (unsigned)b); });
}
template <class T> static inline T __reduce_max_sync(unsigned mask, T value) {
    return emulated_reduce(mask, "__reduce_max_sync", value, [](T a, T b) { return max(a, b); });
}
template <class T> static inline T __reduce_min_sync(unsigned mask, T value) {
    return emulated_reduce(mask, "__reduce_min_sync", value, [](T a, T b) { return min(a, b); });
}

static inline unsigned emulated_vote(unsigned mask, const char *operation, bool value) {
    const uint64_t *const all = emulated::warp_meet(mask, operation, value, false);
    unsigned votes = 0;
    for (int i = 0; i < 32; i++)
        votes |= (unsigned)all[i] << i;
    return votes;
}
static inline unsigned __ballot_sync(unsigned mask, int value) {
    return emulated_vote(mask, "__ballot_sync", value != 0);
}
static inline int __any_sync(unsigned mask, int value) {
    return emulated_vote(mask, "__any_sync", value != 0) != 0;
}
static inline int __all_sync(unsigned mask, int value) {
    return emulated_vote(mask, "__all_sync", value != 0) == ~0u;
}
template <class T> static inline unsigned __match_any_sync(unsigned mask, T value) {
    const uint64_t mine = emulated_word(value);
    const uint64_t *const all = emulated::warp_meet(mask, "__match_any_sync", mine, false);
    unsigned same = 0;
    for (int i = 0; i < 32; i++)
        same |= (unsigned)(all[i] == mine) << i;
    return same;
}

/* Atomics of any memory; relaxed, as they are on the device. */
template <class T> static inline T atomicAdd(T *at, T value) {
    const T old = __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
    emulated::breathe();
    return old;
}
template <class T, class Join> static inline T emulated_atomic(T *at, T value, Join join) {
    T old = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(at, &old, join(old, value), false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
        ;
    emulated::breathe();
    return old;
}
template <class T> static inline T atomicMin(T *at, T value) {
    return emulated_atomic(at, value, [](T a, T b) { return min(a, b); });
}
template <class T> static inline T atomicMax(T *at, T value) {
    return emulated_atomic(at, value, [](T a, T b) { return max(a, b); });
}

/* Launches. */
enum cudaLaunchAttributeID { cudaLaunchAttributeClusterDimension = 4 };
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    struct {
        struct {
            unsigned x, y, z;
        } clusterDim;
    } val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
};
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize,
    cudaFuncAttributeNonPortableClusterSizeAllowed,
};
cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value);
template <class... Formal>
static inline cudaError_t cudaFuncSetAttribute(void (*function)(Formal...),
                                               cudaFuncAttribute attribute, int value) {
    return cudaFuncSetAttribute((const void *)function, attribute, value);
}
cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *function,
                                           const cudaLaunchConfig_t *config);

namespace emulated {
cudaError_t enqueue(const cudaLaunchConfig_t *config, const std::function<void()> &kernel);
/* Work of a stream that stands for kernels of a library. */
cudaError_t enqueue_host(cudaStream_t stream, const std::function<void()> &work);
} // namespace emulated

template <class... Formal, class... Actual>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config,
                                             void (*kernel)(Formal...), Actual &&...actual) {
    const std::tuple<Formal...> arguments(actual...); /* copies: the launch outlives the call */
    return emulated::enqueue(config, [=]() { std::apply(kernel, arguments); });
}

#endif
