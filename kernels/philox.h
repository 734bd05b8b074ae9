/* Philox4x32-10: counter-based random words, the same on host and device.
 * Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
 * Known answer: counter 0, key 0 gives 6627e8d5 e169c58d bc57ac4c 9b00dbd8. */
#ifndef TOPP_KERNELS_PHILOX_H
#define TOPP_KERNELS_PHILOX_H

#include <stdint.h>

/* Functions usable from C, C++ and both sides of CUDA. */
#ifdef __CUDACC__
#define PHILOX_FN static __host__ __device__ __forceinline__
#elif defined(__GNUC__)
#define PHILOX_FN static inline __attribute__((always_inline))
#else
#define PHILOX_FN static inline
#endif

struct philox_words {
    uint32_t w0, w1, w2, w3;
};

/* The four words of one counter under one key. No branches, no memory: a loop over counters
 * vectorises, and words that are not used cost nothing. */
PHILOX_FN struct philox_words philox4x32(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3,
                                         uint32_t k0, uint32_t k1) {
#define PHILOX_ROUND                                                                               \
    do {                                                                                           \
        const uint64_t a_ = (uint64_t)0xD2511F53u * c0, b_ = (uint64_t)0xCD9E8D57u * c2;           \
        c0 = (uint32_t)(b_ >> 32) ^ c1 ^ k0;                                                       \
        c1 = (uint32_t)b_;                                                                         \
        c2 = (uint32_t)(a_ >> 32) ^ c3 ^ k1;                                                       \
        c3 = (uint32_t)a_;                                                                         \
        k0 += 0x9E3779B9u;                                                                         \
        k1 += 0xBB67AE85u;                                                                         \
    } while (0)
    PHILOX_ROUND;
    PHILOX_ROUND;
    PHILOX_ROUND;
    PHILOX_ROUND;
    PHILOX_ROUND;
    PHILOX_ROUND;
    PHILOX_ROUND;
    PHILOX_ROUND;
    PHILOX_ROUND;
    PHILOX_ROUND;
#undef PHILOX_ROUND
    struct philox_words words;
    words.w0 = c0;
    words.w1 = c1;
    words.w2 = c2;
    words.w3 = c3;
    return words;
}

#endif
