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

static __device__ __forceinline__ float exact_floor(float max) {
    return fmaxf(max - EXACT_BELOW, -EXACT_GREATEST);
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

/* What a thread sums apart: a bucket so common in its warp that atomics would queue. */
struct exact_hot {
    uint32_t bucket, low, high;
};

static __device__ __forceinline__ void exact_add(struct exact_shared *s, float x, float floor_,
                                                 struct exact_hot *hot) {
    const struct exact_weight weight = exact_weigh(x);
    const uint32_t bucket = weight.bits % EXACT_BUCKETS;
    const bool in = x >= floor_, common = bucket == hot->bucket;
    if (in && !common) {
        atomicAdd(&s->low[bucket], exact_low(weight));
        atomicAdd(&s->high[bucket], exact_high(weight));
    }
    if (in && common) {
        hot->low += exact_low(weight);
        hot->high += exact_high(weight);
    }
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

static __device__ __forceinline__ void exact_clear(struct exact_shared *s,
                                                   const struct exact_args *args) {
    for (int i = threadIdx.x; i < EXACT_BUCKETS / 4; i += EXACT_THREADS) {
        ((uint4 *)s->low)[i] = make_uint4(0, 0, 0, 0);
        ((uint4 *)s->high)[i] = make_uint4(0, 0, 0, 0);
        if (args->wide)
            ((uint4 *)exact_over(args->ranks))[i] = make_uint4(0, 0, 0, 0);
    }
}

/* Makes room for another EXACT_SEGMENT logits. */
static __device__ void exact_fold(struct exact_shared *s, int32_t ranks) {
    uint32_t *const over = exact_over(ranks);
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

enum { EXACT_AHEAD = 4 }; /* vectors a thread has on their way at a time */

/* Starts vector v of the chunk on its way to shared memory; the same thread reads it. */
static __device__ __forceinline__ void exact_fetch(const struct exact_chunk *chunk, int32_t v) {
    if (v < exact_cached(chunk)) {
        float4 *const to = exact_cache(chunk->args) + v;
        if (exact_whole(chunk, chunk->first + 4 * v))
            exact_copy_async(to, chunk->base + 4 * (int64_t)v);
        else
            *to = exact_load(chunk, v);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* To be called once, before the first exact_histogram. */
static __device__ __forceinline__ void exact_fetch_first(const struct exact_chunk *chunk) {
#pragma unroll
    for (int k = 0; k < EXACT_AHEAD; k++)
        exact_fetch(chunk, k * EXACT_THREADS + threadIdx.x);
}

static __device__ __forceinline__ float exact_max4(float4 v) {
    return fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
}

/* The thread's first vector, once it is there. */
static __device__ __forceinline__ float4 exact_first(const struct exact_chunk *chunk) {
    asm volatile("cp.async.wait_group %0;" ::"n"((int)EXACT_AHEAD - 1) : "memory");
    if ((int32_t)threadIdx.x < exact_cached(chunk))
        return exact_cache(chunk->args)[threadIdx.x];
    return make_float4(-CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F);
}

/* Sums the whole chunk into the buckets; returns the thread's greatest logit. */
static __device__ __forceinline__ float
exact_histogram(struct exact_shared *s, const struct exact_chunk *chunk, float floor_) {
    const int32_t iterations = (chunk->vectors + EXACT_THREADS - 1) / EXACT_THREADS;
    const int32_t end = exact_cached(chunk);
    const int32_t cached = (end + EXACT_THREADS - 1) / EXACT_THREADS; /* iterations */
    const int32_t fold_every = EXACT_SEGMENT / 4 / EXACT_THREADS;
    const float4 *const cache = exact_cache(chunk->args);
    float4 next[EXACT_AHEAD];
#pragma unroll
    for (int k = 0; k < EXACT_AHEAD; k++)
        next[k] = exact_load(chunk, (cached + k) * EXACT_THREADS + threadIdx.x);
    struct exact_hot hot = exact_hot_pick(exact_first(chunk).x, floor_);
    float max = -CUDART_INF_F;
    int32_t v = threadIdx.x;
#pragma unroll 1
    for (int32_t i = 0; i < iterations; i++, v += EXACT_THREADS) {
        float4 x;
        exact_fetch(chunk, v + EXACT_AHEAD * EXACT_THREADS);
        if (i < cached) {
            asm volatile("cp.async.wait_group %0;" ::"n"((int)EXACT_AHEAD) : "memory");
            x = v < end ? cache[v] : exact_load(chunk, v);
        } else {
            x = next[0];
#pragma unroll
            for (int k = 0; k < EXACT_AHEAD - 1; k++)
                next[k] = next[k + 1];
            next[EXACT_AHEAD - 1] = exact_load(chunk, v + EXACT_AHEAD * EXACT_THREADS);
        }
        if (i && i % fold_every == 0 && chunk->args->wide) {
            exact_hot_flush(s, &hot);
            exact_fold(s, chunk->args->ranks);
        }
        max = fmaxf(max, exact_max4(x));
        exact_add(s, x.x, floor_, &hot);
        exact_add(s, x.y, floor_, &hot);
        exact_add(s, x.z, floor_, &hot);
        exact_add(s, x.w, floor_, &hot);
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    exact_hot_flush(s, &hot);
    return max;
}

/* e^(-k / 64). */
static __device__ __forceinline__ double exact_scale(int32_t k) {
    return exact_exp(k * -(1.0 / 64.0));
}

/* Masses of whole logits from the buckets, into s->coarse. scale: exact_scale of minus the place
 * of the thread's first bucket in its logit. Callers put a barrier of the block on either side. */
static __device__ __forceinline__ void
exact_coarsen(struct exact_shared *s, const struct exact_chunk *chunk, double scale) {
    const uint4 low = ((const uint4 *)s->low)[threadIdx.x];
    const uint4 high = ((const uint4 *)s->high)[threadIdx.x];
    const uint32_t lows[4] = {low.x, low.y, low.z, low.w};
    const uint32_t highs[4] = {high.x, high.y, high.z, high.w};
    double mass = 0.0;
#pragma unroll
    for (int n = 0; n < 4; n++) {
        uint64_t fixed = lows[n] + ((uint64_t)highs[n] << 16);
        if (chunk->args->wide)
            fixed += (uint64_t)exact_over(chunk->args->ranks)[4 * threadIdx.x + n] << 32;
        mass += (double)fixed * scale;
        scale *= 0x1.04080ab55de39p+0; /* e^(1/64) */
    }
#pragma unroll
    for (int step = 8; step; step /= 2)
        mass += __shfl_xor_sync(~0u, mass, step);
    if (threadIdx.x % 16 == 0)
        s->coarse.mass[threadIdx.x / 16] = mass;
}

enum exact_found_code {
    EXACT_FOUND = 0,
    EXACT_EMPTY,   /* no finite logit */
    EXACT_ALIASED, /* a block summed logits outside the ring's window */
    EXACT_FAR,     /* past the range of buckets, or the target was not reached */
};

/* Running mass over 64 bins, two a lane from the top down: the first bin that reaches the target.
 * Returns its number or -1; *above is the mass above it. */
static __device__ __forceinline__ int exact_reach(double first, double second, double base,
                                                  double target, double *above) {
    const int lane = exact_lane();
    double upto = first + second;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const double other = __shfl_up_sync(~0u, upto, step);
        if (lane >= step)
            upto += other;
    }
    upto += base;
    const uint32_t reached = __ballot_sync(~0u, upto >= target);
    if (!reached)
        return -1;
    const int owner = __ffs(reached) - 1;
    const double before = owner ? __shfl_sync(~0u, upto, owner ? owner - 1 : 0) : base;
    const double middle = before + __shfl_sync(~0u, first, owner);
    *above = middle >= target ? before : middle;
    return 2 * owner + (middle >= target ? 0 : 1);
}

/* Warp 0: the row's maximum, its total, and the bucket in which the running mass reaches
 * p * total, from what all blocks send. Into s->found and its neighbours. */
template <bool kCluster>
static __device__ __forceinline__ void exact_locate(struct exact_shared *s,
                                                    const struct exact_chunk *chunk, float p,
                                                    double scale_coarse, double scale_fine) {
    const int32_t ranks = chunk->args->ranks;
    const int lane = exact_lane();
    const struct exact_coarse *const coarse = kCluster ? exact_coarse_in() : &s->coarse;
    const struct exact_fine *const fine = kCluster ? exact_fine_in(ranks) : &s->fine;
    exact_exchange<kCluster>(s, exact_coarse_in() + chunk->rank, &s->coarse, sizeof s->coarse,
                             ranks);
    const int32_t early_max = lane < ranks ? coarse[lane].early_max : INT32_MIN;
    const int32_t chunk_max = lane < ranks ? coarse[lane].chunk_max : INT32_MIN;
    const float row_max = exact_logit(__reduce_max_sync(~0u, chunk_max));
    const float least = exact_floor(exact_logit(early_max));
    const bool out =
        lane < ranks && exact_logit(chunk_max) >= least && !(row_max - least <= EXACT_WINDOW);
    const bool far = !(fabsf(row_max) < EXACT_GREATEST - EXACT_WINDOW);
    int32_t code = !(row_max > -CUDART_INF_F) ? EXACT_EMPTY
                   : far                      ? EXACT_FAR
                   : __any_sync(~0u, out)     ? EXACT_ALIASED
                                              : EXACT_FOUND;
    if (code == EXACT_FOUND) { /* the same in the whole warp */
        const uint32_t top = exact_weigh(row_max).bits >> 6;
        double mass[2] = {0.0, 0.0}, above = 0.0;
        for (int r = 0; r < ranks; r++) {
            mass[0] += coarse[r].mass[(top - 2 * lane) % EXACT_BINS_COARSE];
            mass[1] += coarse[r].mass[(top - 2 * lane - 1) % EXACT_BINS_COARSE];
        }
        mass[0] *= scale_coarse;
        mass[1] *= scale_coarse * 0x1.78b56362cef38p-2; /* e^-1 */
        double total = mass[0] + mass[1];
#pragma unroll
        for (int step = 16; step; step /= 2)
            total += __shfl_xor_sync(~0u, total, step);
        const double target = (double)p * total;
        const int bin = exact_reach(mass[0], mass[1], 0.0, target, &above);
        const uint32_t bits = (top - bin) << 6 | 63; /* its highest bucket */
        const int32_t high = bits % EXACT_BUCKETS - 2 * lane;
        for (int n = 0; n < 2; n++) {
            s->fine.fixed[2 * lane + n] = s->low[high - n] + ((uint64_t)s->high[high - n] << 16);
            if (chunk->args->wide)
                s->fine.fixed[2 * lane + n] += (uint64_t)exact_over(ranks)[high - n] << 32;
        }
        exact_exchange<kCluster>(s, exact_fine_in(ranks) + chunk->rank, &s->fine, sizeof s->fine,
                                 ranks);
        uint64_t fixed[2] = {0, 0};
        for (int r = 0; r < ranks; r++) {
            fixed[0] += fine[r].fixed[2 * lane];
            fixed[1] += fine[r].fixed[2 * lane + 1];
        }
        /* Bucket n from the bin's top: e^((63 - n) / 64), of a bin e^-bin. */
        const double scale = scale_fine * exact_scale(64 * max(bin, 0));
        const int bucket = exact_reach(
            (double)fixed[0] * scale,
            (double)fixed[1] * scale * 0x1.f80feabfeefa5p-1 /* e^(-1/64) */, above, target, &above);
        if (bin < 0 || bucket < 0)
            code = EXACT_FAR;
        if (lane == 0) {
            s->target = target;
            s->found_above = above;
            s->found_bits = bits - bucket;
            s->found_units = exact_scale(63 - max(bucket, 0) - 64 * max(bin, 0));
        }
    }
    if (lane == 0) {
        s->max = row_max;
        s->found = code;
    }
}

#endif
