/* The one thing that gcc does not find by itself: a 32 x 32 -> 64 bit product is a single vector
 * instruction (vpmuludq), where its loops take the three times slower 64 x 64 one. Everything else
 * here is plain arithmetic on vectors of 64-bit lanes, whose upper halves the product ignores. */
#include "kernels/cpu/philox_words.h"

#include "kernels/philox.h"

#include <stddef.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>

typedef uint64_t lanes4 __attribute__((vector_size(32)));
typedef uint64_t lanes8 __attribute__((vector_size(64)));

#define MULTIPLY4(a, b) ((lanes4)_mm256_mul_epu32((__m256i)(a), (__m256i)(b)))
#define MULTIPLY8(a, b) ((lanes8)_mm512_mul_epu32((__m512i)(a), (__m512i)(b)))

/* One round on one vector of counters. */
#define ROUND(LANES, MULTIPLY, c, k0, k1)                                                          \
    do {                                                                                           \
        const LANES even_ = MULTIPLY(c##0, (LANES){0} + 0xD2511F53u);                              \
        const LANES odd_ = MULTIPLY(c##2, (LANES){0} + 0xCD9E8D57u);                               \
        c##0 = (odd_ >> 32) ^ c##1 ^ (k0);                                                         \
        c##1 = odd_;                                                                               \
        c##2 = (even_ >> 32) ^ c##3 ^ (k1);                                                        \
        c##3 = even_;                                                                              \
    } while (0)

/* Handles whole groups of tokens and returns how many tokens that were. Tokens 2l and 2l + 1 of a
 * group share lane l of two vectors, so that their words store as one lane. */
#define PHILOX_VECTORS(NAME, TARGET, LANES, MULTIPLY)                                              \
    __attribute__((target(TARGET))) static int64_t NAME(uint32_t key, uint32_t first, int64_t n,   \
                                                        uint32_t *w0, uint32_t *w1) {              \
        enum { GROUP = 2 * sizeof(LANES) / sizeof(uint64_t) };                                     \
        LANES step = {0};                                                                          \
        for (int l = 0; l < GROUP / 2; l++)                                                        \
            step[l] = 2 * (uint64_t)l;                                                             \
        int64_t i = 0;                                                                             \
        for (; i + GROUP <= n; i += GROUP) {                                                       \
            LANES a0 = step + (uint64_t)(first + (uint32_t)i), a1 = {0}, a2 = {0}, a3 = {0};       \
            LANES b0 = a0 + 1, b1 = {0}, b2 = {0}, b3 = {0};                                       \
            _Pragma("GCC unroll 10") for (uint32_t round = 0; round < 10; round++) {               \
                const uint64_t k0 = key + round * 0x9E3779B9u;                                     \
                const uint64_t k1 = (uint32_t)(round * 0xBB67AE85u);                               \
                ROUND(LANES, MULTIPLY, a, k0, k1);                                                 \
                ROUND(LANES, MULTIPLY, b, k0, k1);                                                 \
            }                                                                                      \
            const LANES zero = (a0 & 0xFFFFFFFFu) | b0 << 32;                                      \
            memcpy(w0 + i, &zero, sizeof zero);                                                    \
            if (w1) {                                                                              \
                const LANES one = (a1 & 0xFFFFFFFFu) | b1 << 32;                                   \
                memcpy(w1 + i, &one, sizeof one);                                                  \
            }                                                                                      \
        }                                                                                          \
        return i;                                                                                  \
    }

PHILOX_VECTORS(philox_avx2, "avx2", lanes4, MULTIPLY4)
PHILOX_VECTORS(philox_avx512, "avx512f", lanes8, MULTIPLY8)

static int64_t whole_groups(uint32_t key, uint32_t first, int64_t n, uint32_t *w0, uint32_t *w1) {
    if (__builtin_cpu_supports("avx512f"))
        return philox_avx512(key, first, n, w0, w1);
    if (__builtin_cpu_supports("avx2"))
        return philox_avx2(key, first, n, w0, w1);
    return 0;
}
#else
static int64_t whole_groups(uint32_t key, uint32_t first, int64_t n, uint32_t *w0, uint32_t *w1) {
    (void)key, (void)first, (void)n, (void)w0, (void)w1;
    return 0;
}
#endif

void philox_words(uint32_t key, uint32_t first, int64_t n, uint32_t *w0, uint32_t *w1) {
    for (int64_t i = whole_groups(key, first, n, w0, w1); i < n; i++) {
        const struct philox_words words = philox4x32(first + (uint32_t)i, 0, 0, 0, key, 0);
        w0[i] = words.w0;
        if (w1)
            w1[i] = words.w1;
    }
}
