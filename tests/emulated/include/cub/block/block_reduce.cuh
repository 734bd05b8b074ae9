/* The part of CUB that kernels call, for the emulated device: each thread adds up for itself. */
#ifndef TOPP_TESTS_EMULATED_BLOCK_REDUCE_CUH
#define TOPP_TESTS_EMULATED_BLOCK_REDUCE_CUH

#include <cuda_runtime.h>

namespace cub {

template <class T, int kThreads> struct BlockReduce {
    struct TempStorage {
        T values[kThreads];
    };
    struct TempStorage &storage;
    explicit BlockReduce(struct TempStorage &storage_) : storage(storage_) {
    }
    T Sum(T value) {
        storage.values[threadIdx.x] = value;
        __syncthreads();
        T sum = 0;
        for (int i = 0; i < kThreads; i++)
            sum += storage.values[i];
        return sum;
    }
};

} // namespace cub

#endif
