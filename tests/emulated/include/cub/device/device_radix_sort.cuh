/* The part of CUB that kernels call, for the emulated device. */
#ifndef TOPP_TESTS_EMULATED_DEVICE_RADIX_SORT_CUH
#define TOPP_TESTS_EMULATED_DEVICE_RADIX_SORT_CUH

#include <cuda_runtime.h>

namespace cub {

template <class T> struct DoubleBuffer {
    T *buffers[2];
    int selector;
    DoubleBuffer(T *current = NULL, T *other = NULL) : buffers{current, other}, selector(0) {
    }
    T *Current() {
        return buffers[selector];
    }
};

struct DeviceRadixSort {
    /* Into the other buffer, so that whoever reads the first one is found out. */
    template <class T>
    static cudaError_t SortKeys(void *temp, size_t &temp_bytes, DoubleBuffer<T> &keys, int count,
                                int begin_bit, int end_bit, cudaStream_t stream) {
        if (!temp) {
            temp_bytes = 1;
            return cudaSuccess;
        }
        T *const from = keys.buffers[keys.selector], *const to = keys.buffers[1 - keys.selector];
        const int bits = end_bit - begin_bit;
        const T mask = bits < (int)(8 * sizeof(T)) ? ((T)1 << bits) - 1 : ~(T)0;
        keys.selector = 1 - keys.selector;
        return emulated::enqueue_host(stream, [=]() {
            std::copy(from, from + count, to);
            std::stable_sort(to, to + count, [=](T a, T b) {
                return ((a >> begin_bit) & mask) < ((b >> begin_bit) & mask);
            });
            std::fill(from, from + count, (T)0xa5a5a5a5a5a5a5a5);
        });
    }
};

} // namespace cub

#endif
