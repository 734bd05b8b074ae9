/* Masses of buckets: which bucket of 1/64 logit holds the boundary, and the mass above it.
 *
 * A logit x lies in bucket c = rint(64 x), d = x - c / 64 exactly, |d| <= 1/128. Its weight
 * relative to the bucket's centre, e^d, becomes the integer rint(2^31 e^d), summed in two 32-bit
 * halves by native shared-memory atomics: integers, so that no order of arrival can change a bit. A
 * bucket's mass is that sum times e^(c / 64), in binary64, once per bucket. Error bound:
 * docs/exact.md. */
#ifndef TOPP_KERNELS_CUDA_EXACT_MASS_CUH
#define TOPP_KERNELS_CUDA_EXACT_MASS_CUH

#include "kernels/cuda/exact_row.cuh"

#define EXACT_MAGIC 12582912.0f /* 1.5 * 2^23: adding it rounds to an integer */
#define EXACT_GREATEST 16384.0f /* logits past it go to the binary64 path */
#define EXACT_BELOW 36.0f       /* logits that far under the maximum are left out of the sums */
#define EXACT_WINDOW 63.0f
#define EXACT_WEIGHT_ERROR 4.8e-10 /* of a fixed-point weight, relative: 2^-31 and slack */
#define EXACT_BELOW_WEIGHT 2.4e-16 /* e^-36 and slack */

struct exact_weight {
    uint32_t bits;  /* the bucket, as the bits of rint(64 x) + EXACT_MAGIC */
    uint32_t fixed; /* 2^31 e^d */
};

static __device__ __forceinline__ struct exact_weight exact_weigh(float x) {
    struct exact_weight weight;
    const float shifted = __fmaf_rn(x, 64.0f, EXACT_MAGIC);
    const float d = __fmaf_rn(__fadd_rn(shifted, -EXACT_MAGIC), -1.0f / 64.0f, x);
    float rest = __fmaf_rn(d, 1.0f / 24.0f, 1.0f / 6.0f);
    rest = __fmul_rn(d, __fmaf_rn(d, rest, 0.5f));
    rest = __fmaf_rn(d, rest, d); /* e^d - 1 */
    weight.bits = __float_as_uint(shifted);
    weight.fixed = 0x80000000u + (uint32_t)__float2int_rn(__fmul_rn(rest, 0x1p31f));
    return weight;
}

/* What a thread sums apart: a bucket so common in its warp that atomics would queue. */
struct exact_hot {
    uint32_t bucket, low, high;
};

static __device__ __forceinline__ void exact_add(struct exact_shared *s, float x, float floor_,
                                                 struct exact_hot *hot) {
    const struct exact_weight weight = exact_weigh(x);
    const uint32_t bucket = weight.bits % EXACT_BUCKETS;
    if (x >= floor_) {
        if (bucket == hot->bucket) {
            hot->low += weight.fixed & 0xffff;
            hot->high += weight.fixed >> 16;
        } else {
            atomicAdd(&s->low[bucket], weight.fixed & 0xffff);
            atomicAdd(&s->high[bucket], weight.fixed >> 16);
        }
    }
}

static __device__ __forceinline__ void exact_add_vector(struct exact_shared *s, float4 v,
                                                        float floor_, struct exact_hot *hot,
                                                        float *max) {
    *max = fmaxf(*max, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    exact_add(s, v.x, floor_, hot);
    exact_add(s, v.y, floor_, hot);
    exact_add(s, v.z, floor_, hot);
    exact_add(s, v.w, floor_, hot);
}

static __device__ __forceinline__ void exact_hot_flush(struct exact_shared *s,
                                                       struct exact_hot *hot) {
    if (hot->bucket >= EXACT_BUCKETS) /* the same in the whole warp */
        return;
    const uint32_t low = __reduce_add_sync(~0u, hot->low);
    const uint32_t high = __reduce_add_sync(~0u, hot->high);
    if (exact_lane() == 0) {
        atomicAdd(&s->low[hot->bucket], low);
        atomicAdd(&s->high[hot->bucket], high);
    }
    hot->low = hot->high = 0;
}

static __device__ __forceinline__ struct exact_hot exact_hot_pick(float sample, float floor_) {
    const uint32_t bucket = exact_weigh(sample).bits % EXACT_BUCKETS;
    const uint32_t same = __popc(__match_any_sync(~0u, bucket));
    const uint32_t best =
        __reduce_max_sync(~0u, sample >= floor_ ? same * EXACT_BUCKETS + bucket : 0);
    struct exact_hot hot = {best >= 8 * EXACT_BUCKETS ? best % EXACT_BUCKETS : ~0u, 0, 0};
    return hot;
}

static __device__ __forceinline__ void exact_clear(struct exact_shared *s, int wide) {
    for (int i = threadIdx.x; i < EXACT_BUCKETS / 4; i += EXACT_THREADS) {
        ((uint4 *)s->low)[i] = make_uint4(0, 0, 0, 0);
        ((uint4 *)s->high)[i] = make_uint4(0, 0, 0, 0);
        if (wide)
            ((uint4 *)exact_over())[i] = make_uint4(0, 0, 0, 0);
    }
}

/* Makes room for another EXACT_SEGMENT logits. */
static __device__ void exact_fold(struct exact_shared *s) {
    uint32_t *const over = exact_over();
    __syncthreads();
    for (int i = threadIdx.x; i < EXACT_BUCKETS; i += EXACT_THREADS) {
        const uint64_t sum = s->low[i] + ((uint64_t)s->high[i] << 16);
        s->low[i] = (uint32_t)sum & 0xffff;
        s->high[i] = (uint32_t)(sum >> 16) & 0xffff;
        over[i] += (uint32_t)(sum >> 32);
    }
    __syncthreads();
}

static __device__ __forceinline__ void exact_copy_async(float4 *to, const float *from) {
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
        "l"(from));
}

enum { EXACT_GROUPS = 4 }; /* of the copies to shared memory, summed as they arrive */

/* Iterations of a group, each a vector a thread. */
static __device__ __forceinline__ int32_t exact_group(const struct exact_chunk *chunk) {
    const int32_t iterations = (exact_cached(chunk) + EXACT_THREADS - 1) / EXACT_THREADS;
    return (iterations + EXACT_GROUPS - 1) / EXACT_GROUPS;
}

/* Starts the chunk on its way to shared memory; each thread later reads its own vectors alone. */
static __device__ __forceinline__ void exact_fetch(const struct exact_chunk *chunk) {
    const int32_t group = exact_group(chunk);
    for (int g = 0; g < EXACT_GROUPS; g++) {
        for (int32_t i = g * group; i < (g + 1) * group; i++) {
            const int32_t v = i * EXACT_THREADS + threadIdx.x;
            if (v >= exact_cached(chunk))
                continue;
            const int32_t from = v + EXACT_TILE * EXACT_THREADS;
            if (exact_whole(chunk, chunk->first + 4 * from))
                exact_copy_async(exact_cache(chunk->args) + v, chunk->base + 4 * (int64_t)from);
            else
                exact_cache(chunk->args)[v] = exact_load(chunk, from);
        }
        asm volatile("cp.async.commit_group;");
    }
}

template <int kPending>
static __device__ __forceinline__ void
exact_add_group(struct exact_shared *s, const struct exact_chunk *chunk, float floor_,
                struct exact_hot *hot, float *max) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kPending));
    const int32_t group = exact_group(chunk), g = EXACT_GROUPS - 1 - kPending;
    for (int32_t i = g * group; i < (g + 1) * group; i++) {
        const int32_t v = i * EXACT_THREADS + threadIdx.x;
        if (v < exact_cached(chunk))
            exact_add_vector(s, exact_cache(chunk->args)[v], floor_, hot, max);
    }
}

/* Sums the whole chunk into the buckets; returns the thread's greatest logit. */
static __device__ __forceinline__ float exact_histogram(struct exact_shared *s,
                                                        const struct exact_chunk *chunk,
                                                        const float4 (&tile)[EXACT_TILE],
                                                        float floor_) {
    struct exact_hot hot = exact_hot_pick(tile[0].x, floor_);
    float max = -CUDART_INF_F;
#pragma unroll
    for (int k = 0; k < EXACT_TILE; k++)
        exact_add_vector(s, tile[k], floor_, &hot, &max);
    exact_add_group<3>(s, chunk, floor_, &hot, &max);
    exact_add_group<2>(s, chunk, floor_, &hot, &max);
    exact_add_group<1>(s, chunk, floor_, &hot, &max);
    exact_add_group<0>(s, chunk, floor_, &hot, &max);
    int32_t v = EXACT_TILE * EXACT_THREADS + exact_cached(chunk) + threadIdx.x;
    int32_t done =
        EXACT_TILE * EXACT_THREADS + exact_cached(chunk); /* vectors since the last fold */
    for (; v - (int32_t)threadIdx.x < chunk->vectors; v += EXACT_THREADS) {
        if (chunk->args->wide && done + EXACT_THREADS > EXACT_SEGMENT / 4) {
            exact_hot_flush(s, &hot);
            exact_fold(s);
            done = 0;
        }
        exact_add_vector(s, exact_load(chunk, v), floor_, &hot, &max);
        done += EXACT_THREADS;
    }
    exact_hot_flush(s, &hot);
    return max;
}

/* Weight of bucket number k below the maximum's, relative to it. */
static __device__ __forceinline__ double exact_scale(int32_t k) {
    return exp(k * -(1.0 / 64.0));
}

/* Adds up this block's slice of the buckets over all blocks of the row and leaves, in place, the
 * running mass from the slice's top: words of a binary64 in low and high of the bucket. Only this
 * block reads those words until the next barrier. */
template <bool kCluster>
static __device__ __forceinline__ void
exact_slice(struct exact_shared *s, const struct exact_chunk *chunk, uint32_t top_bits) {
    const int32_t length = EXACT_BUCKETS / chunk->args->ranks;
    const int32_t each = length > EXACT_THREADS ? length / EXACT_THREADS : 1;
    double mass[EXACT_BUCKETS / EXACT_THREADS], sum = 0.0;
    const int32_t begin = chunk->rank * length + threadIdx.x * each;
    const bool active = (int32_t)threadIdx.x * each < length;
#pragma unroll
    for (int i = 0; i < EXACT_BUCKETS / EXACT_THREADS; i++) {
        if (i < each && active) {
            const uint32_t raw = (top_bits - (begin + i)) % EXACT_BUCKETS;
            uint64_t fixed = 0;
#pragma unroll 4
            for (int r = 0; r < chunk->args->ranks; r++) {
                fixed += exact_peer<kCluster>(s->low, r)[raw] +
                         ((uint64_t)exact_peer<kCluster>(s->high, r)[raw] << 16);
                if (chunk->args->wide)
                    fixed += (uint64_t)exact_peer<kCluster>(exact_over(), r)[raw] << 32;
            }
            sum += (double)fixed * exact_scale(begin + i);
        }
        mass[i] = sum;
    }
    const double before = exact_scan(sum, s->scan) - sum;
#pragma unroll
    for (int i = 0; i < EXACT_BUCKETS / EXACT_THREADS; i++) {
        if (i < each && active) {
            const uint32_t raw = (top_bits - (begin + i)) % EXACT_BUCKETS;
            const uint64_t bits = exact_bits(before + mass[i]);
            s->low[raw] = (uint32_t)bits;
            s->high[raw] = (uint32_t)(bits >> 32);
        }
    }
    if (threadIdx.x == EXACT_THREADS - 1)
        s->slice_total = before + sum;
}

/* Finds the bucket in which the running mass reaches target = p * total. After it
 * s->found_bucket is the bucket's number below the maximum's, or -1, and s->found_above the mass
 * above it; both are for readers past the next barrier of the block. Returns the target. */
template <bool kCluster>
static __device__ __forceinline__ double
exact_find(struct exact_shared *s, const struct exact_chunk *chunk, uint32_t top_bits, float p) {
    const int lane = exact_lane();
    const double mine =
        lane < chunk->args->ranks ? *exact_peer<kCluster>(&s->slice_total, lane) : 0.0;
    double total = 0.0, base = 0.0;
    for (int r = 0; r < chunk->args->ranks; r++)
        total += __shfl_sync(~0u, mine, r);
    const double target = (double)p * total;
    int owner = 0;
    for (; owner < chunk->args->ranks - 1; owner++) {
        const double next = base + __shfl_sync(~0u, mine, owner);
        if (next >= target)
            break;
        base = next;
    }
    const int32_t length = EXACT_BUCKETS / chunk->args->ranks;
    const uint32_t *const low = exact_peer<kCluster>(s->low, owner);
    const uint32_t *const high = exact_peer<kCluster>(s->high, owner);
    for (int32_t i = threadIdx.x; i < length; i += EXACT_THREADS) {
        const uint32_t raw = (top_bits - (owner * length + i)) % EXACT_BUCKETS;
        const uint32_t raw_above = (raw + 1) % EXACT_BUCKETS;
        const double here = exact_double(low[raw] | (uint64_t)high[raw] << 32);
        const double above =
            i ? exact_double(low[raw_above] | (uint64_t)high[raw_above] << 32) : 0.0;
        if (base + above < target && base + here >= target) {
            s->found_bucket = owner * length + i;
            s->found_above = base + above;
        }
    }
    return target;
}

#endif
