/* The part of CUB that kernels call, for the emulated device: each thread adds up for itself. */
#ifndef TOPP_TESTS_EMULATED_BLOCK_SCAN_CUH
#define TOPP_TESTS_EMULATED_BLOCK_SCAN_CUH

#include <cuda_runtime.h>

namespace cub {

template <class T, int kThreads> struct BlockScan {
    struct TempStorage {
        T values[kThreads];
    };
    struct TempStorage &storage;
    explicit BlockScan(struct TempStorage &storage_) : storage(storage_) {
    }
    void InclusiveSum(T value, T &upto, T &all) {
        storage.values[threadIdx.x] = value;
        __syncthreads();
        all = 0;
        for (int i = 0; i < kThreads; i++) {
            all += storage.values[i];
            if (i == (int)threadIdx.x)
                upto = all;
        }
    }
    void ExclusiveSum(T value, T &before) {
        T upto, all;
        InclusiveSum(value, upto, all);
        before = 0;
        for (int i = 0; i < (int)threadIdx.x; i++)
            before += storage.values[i];
    }
};

} // namespace cub

#endif
