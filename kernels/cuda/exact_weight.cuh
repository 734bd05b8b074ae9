/* Weights of logits, and the buckets of 1/64 logit that they are summed in.
 *
 * A logit x lies in bucket c = rint(64 x), d = x - c / 64 exactly, |d| <= 1/128. Its weight
 * relative to the bucket's centre, e^d, becomes the integer rint(2^31 e^d), summed in two 32-bit
 * halves by native shared-memory atomics: integers, so that no order of arrival can change a bit. A
 * bucket's mass is that sum times e^(c / 64), in binary64, once per bucket. Error bound:
 * docs/exact.md. */
#ifndef TOPP_KERNELS_CUDA_EXACT_WEIGHT_CUH
#define TOPP_KERNELS_CUDA_EXACT_WEIGHT_CUH

#include "kernels/cuda/exact_exchange.cuh"

#define EXACT_MAGIC 12582912.0f /* 1.5 * 2^23: adding it rounds to an integer */
#define EXACT_GREATEST 16384.0f /* logits past it go to the binary64 path */
#define EXACT_BELOW 40.0f       /* logits that far under the maximum are left out of the sums */
#define EXACT_WINDOW 62.0f      /* of logits that buckets surely tell apart: 64 but for roundings */
#define EXACT_WEIGHT_ERROR 4.8e-10 /* of a fixed-point weight, relative: 2^-31 and slack */
#define EXACT_BELOW_WEIGHT 4.3e-18 /* e^-40 and slack */

static __device__ __forceinline__ float exact_floor(float max) {
    return fmaxf(max - EXACT_BELOW, -EXACT_GREATEST);
}

/* How far the sum through a token may be off p of the whole when each weight may be off by `error`,
 * relative, and each token left out weighs `below` of the whole at most: docs/exact.md. */
static __device__ __forceinline__ double exact_margin(const struct exact_args *args, double target,
                                                      double p, double error, double below) {
    return 2.1 * target * ((1.0 - p) * error + (double)args->vocab * below + 1e-13);
}

struct exact_weight {
    uint32_t bits; /* the bucket, as the bits of rint(64 x) + EXACT_MAGIC */
    int32_t less;  /* 2^31 (e^d - 1) */
};

/* Halves of 2^31 e^d. */
static __device__ __forceinline__ uint32_t exact_low(struct exact_weight weight) {
    return (uint32_t)weight.less & 0xffff;
}

static __device__ __forceinline__ uint32_t exact_high(struct exact_weight weight) {
    return (uint32_t)((weight.less >> 16) + 0x8000);
}

static __device__ __forceinline__ uint32_t exact_fixed(struct exact_weight weight) {
    return 0x80000000u + (uint32_t)weight.less;
}

static __device__ __forceinline__ struct exact_weight exact_weigh(float x) {
    struct exact_weight weight;
    const float shifted = __fmaf_rn(x, 64.0f, EXACT_MAGIC);
    const float d = __fmaf_rn(__fadd_rn(shifted, -EXACT_MAGIC), -1.0f / 64.0f, x);
    float rest = __fmaf_rn(d, 1.0f / 24.0f, 1.0f / 6.0f);
    rest = __fmul_rn(d, __fmaf_rn(d, rest, 0.5f));
    rest = __fmaf_rn(d, rest, d); /* e^d - 1 */
    weight.bits = __float_as_uint(shifted);
    weight.less = __float2int_rn(__fmul_rn(rest, 0x1p31f));
    return weight;
}

/* Where a bucket's sums stand. Logits of coarse steps fall on buckets 4, 16 or 32 apart: turning
 * banks keeps those out of one bank of shared memory. */
static __device__ __forceinline__ uint32_t exact_place(uint32_t bucket) {
    return (bucket ^ (bucket >> 5 & 31)) % EXACT_BUCKETS;
}

static __device__ __forceinline__ void exact_clear(struct exact_shared *s,
                                                   const struct exact_args *args) {
    for (int i = threadIdx.x; i < EXACT_BUCKETS / 4; i += EXACT_THREADS)
        ((uint4 *)s->low)[i] = ((uint4 *)s->high)[i] = make_uint4(0, 0, 0, 0);
    if (args->wide)
        for (int i = threadIdx.x; i < EXACT_BUCKETS; i += EXACT_THREADS)
            exact_over(args->ranks)[i] = 0;
}

static __device__ __forceinline__ float exact_max4(float4 v) {
    return fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
}

/* The thread's first vector, once its batch is there. */
static __device__ __forceinline__ float4 exact_first(const struct exact_chunk *chunk) {
    ptx_copy_wait<EXACT_AHEAD - 1>();
    if ((int32_t)threadIdx.x < exact_cached(chunk))
        return exact_cache(chunk->args)[threadIdx.x];
    return make_float4(-CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F);
}

#endif
