/* Masses of buckets: which bucket of 1/64 logit holds the boundary, and the mass above it. */
#ifndef TOPP_KERNELS_CUDA_EXACT_MASS_CUH
#define TOPP_KERNELS_CUDA_EXACT_MASS_CUH

#include "kernels/cuda/exact_narrow.cuh"

/* Where a thread adds to: the block's sums, or, for what does not count, a place of its lane. The
 * compiler would branch around predicated atomics. */
struct exact_adder {
    ptx_shared low, nowhere;
};
enum { EXACT_HIGH = sizeof(((struct exact_shared *)0)->low) }; /* from a low half to its high one */

/* What a thread sums apart: a bucket so common in its warp that atomics would queue. */
struct exact_hot {
    uint32_t bucket, low, high;
};

template <bool kHot>
static __device__ __forceinline__ void exact_add(struct exact_adder to, float x, float floor_,
                                                 struct exact_hot *hot) {
    const struct exact_weight weight = exact_weigh(x);
    const uint32_t bucket = weight.bits % EXACT_BUCKETS;
    const bool in = x >= floor_, common = kHot && bucket == hot->bucket;
    const ptx_shared place = to.low + sizeof(uint32_t) * exact_place(weight.bits);
    const ptx_shared at = in && !common ? place : to.nowhere;
    ptx_add(at, exact_low(weight));
    ptx_add(at + EXACT_HIGH, exact_high(weight));
    if (kHot && in && common) {
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
        atomicAdd(&s->low[exact_place(hot->bucket)], low);
        atomicAdd(&s->high[exact_place(hot->bucket)], high);
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

/* Makes room for another EXACT_SEGMENT logits. */
static __device__ __noinline__ void exact_fold(struct exact_shared *s, int32_t ranks) {
    uint32_t *const over = exact_over(ranks);
    __syncthreads();
    for (int i = threadIdx.x; i < EXACT_BUCKETS; i += EXACT_THREADS) {
        const uint32_t place = exact_place(i);
        const uint64_t sum = s->low[place] + ((uint64_t)s->high[place] << 16);
        s->low[place] = (uint32_t)sum & 0xffff;
        s->high[place] = (uint32_t)(sum >> 16) & 0xffff;
        over[i] += (uint32_t)(sum >> 32);
    }
    __syncthreads();
}

/* Sums the whole chunk into the buckets; returns the thread's greatest logit. */
template <bool kHot>
static __device__ __forceinline__ float exact_histogram_with(struct exact_shared *s,
                                                             const struct exact_chunk *chunk,
                                                             float floor_, struct exact_hot *hot) {
    struct exact_adder to;
    to.low = ptx_shared_of(s->low);
    to.nowhere = ptx_shared_of(&s->low[EXACT_BUCKETS + exact_lane()]);
    float max = -CUDART_INF_F;
    exact_each<true>(chunk, [&](const float4(&x)[EXACT_BATCH], int32_t v) {
        const int32_t first = v - (int32_t)threadIdx.x;
        if (chunk->args->wide && first && first % (EXACT_SEGMENT / 4) == 0) {
            if (kHot)
                exact_hot_flush(s, hot);
            exact_fold(s, chunk->args->ranks);
        }
#pragma unroll
        for (int k = 0; k < EXACT_BATCH; k++) {
            max = fmaxf(max, exact_max4(x[k]));
            exact_add<kHot>(to, x[k].x, floor_, hot);
            exact_add<kHot>(to, x[k].y, floor_, hot);
            exact_add<kHot>(to, x[k].z, floor_, hot);
            exact_add<kHot>(to, x[k].w, floor_, hot);
        }
    });
    if (kHot)
        exact_hot_flush(s, hot);
    return max;
}

static __device__ __forceinline__ float
exact_histogram(struct exact_shared *s, const struct exact_chunk *chunk, float floor_) {
    struct exact_hot hot = exact_hot_pick(exact_first(chunk).x, floor_);
    if (hot.bucket >= EXACT_BUCKETS) /* the same in the whole warp; block barriers match */
        return exact_histogram_with<false>(s, chunk, floor_, &hot);
    return exact_histogram_with<true>(s, chunk, floor_, &hot);
}
static_assert(EXACT_SEGMENT / 4 % EXACT_STEP == 0, "folds come between batches");

#define EXACT_E_STEP 0x1.04080ab55de39p+0      /* e^(1/64) */
#define EXACT_E_STEP_DOWN 0x1.f80feabfeefa5p-1 /* e^(-1/64) */
#define EXACT_E_DOWN 0x1.78b56362cef38p-2      /* e^-1 */

/* first^number for numbers of kBits bits, from the powers first^(2^i): a product, because a table
 * would lie where a cold launch finds it last. */
template <int kBits>
static __device__ __forceinline__ double exact_product(uint32_t number,
                                                       const double (&powers)[kBits]) {
    double product = 1.0;
#pragma unroll
    for (int i = 0; i < kBits; i++)
        product *= number >> i & 1 ? powers[i] : 1.0;
    return product;
}

/* e^(-2 i): two whole logits a lane, from the maximum's down. */
static __device__ __forceinline__ double exact_e_coarse(uint32_t lane) {
    const double powers[5] = {0x1.152aaa3bf81ccp-3, 0x1.2c155b8213cf4p-6, 0x1.5fc21041027adp-12,
                              0x1.e355bbaee85cbp-24, 0x1.c8464f7616468p-47};
    return exact_product(lane, powers);
}

/* e^((63 - 2 i) / 64): two buckets a lane, from a logit's highest down. */
static __device__ __forceinline__ double exact_e_fine(uint32_t lane) {
    const double powers[5] = {0x1.f03f56a88b5d8p-1, 0x1.e0fabfbc702a4p-1, 0x1.c3d6a24ed8222p-1,
                              0x1.8ebef9eac820bp-1, 0x1.368b2fc6f960ap-1};
    return 0x1.568bb722dd593p+1 * exact_product(lane, powers);
}

/* e^(4 i / 64): the thread's first bucket within its logit. */
static __device__ __forceinline__ double exact_e_place(uint32_t place) {
    const double powers[4] = {0x1.1082b577d34edp+0, 0x1.2216045b6f5cdp+0, 0x1.48b5e3c3e8186p+0,
                              0x1.a61298e1e069cp+0};
    return exact_product(place, powers);
}

enum {
    EXACT_EACH = EXACT_BUCKETS / EXACT_THREADS,     /* buckets a thread */
    EXACT_SHARERS = EXACT_BINS_COARSE / EXACT_EACH, /* threads a logit */
};

/* Masses of whole logits from the buckets, into s->coarse. Callers put a barrier of the block on
 * either side. */
static __device__ __forceinline__ void exact_coarsen(struct exact_shared *s,
                                                     const struct exact_chunk *chunk) {
    double mass = 0.0, scale = exact_e_place(threadIdx.x * (EXACT_EACH / 4) % 16);
#pragma unroll
    for (int n = 0; n < EXACT_EACH; n++) {
        const int bucket = threadIdx.x * EXACT_EACH + n;
        const uint32_t place = exact_place(bucket);
        uint64_t fixed = s->low[place] + ((uint64_t)s->high[place] << 16);
        if (chunk->args->wide)
            fixed += (uint64_t)exact_over(chunk->args->ranks)[bucket] << 32;
        mass += (double)fixed * scale;
        scale *= EXACT_E_STEP;
    }
#pragma unroll
    for (int step = EXACT_SHARERS / 2; step; step /= 2)
        mass += __shfl_xor_sync(~0u, mass, step);
    if (threadIdx.x % EXACT_SHARERS == 0)
        s->coarse.mass[threadIdx.x / EXACT_SHARERS] = mass;
}

enum exact_found_code {
    EXACT_FOUND = 0,
    EXACT_EMPTY,   /* no finite logit */
    EXACT_ALIASED, /* a block summed logits outside the ring's window */
    EXACT_FAR,     /* past the range of buckets, or the target was not reached */
    EXACT_NARROW,  /* so few neighbouring values that counts of them decided: s->result, s->count */
};

/* Mass from the top through this lane's bins, two a lane. */
static __device__ __forceinline__ double exact_upto(double both) {
    const int lane = exact_lane();
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const double other = __shfl_up_sync(~0u, both, step);
        if (lane >= step)
            both += other;
    }
    return both;
}

/* The first bin whose running mass, base and all, reaches the target: its number or -1; *above is
 * the mass above it. first: of the lane's upper bin. upto: exact_upto of the lane's two. */
static __device__ __forceinline__ int exact_reach(double first, double upto, double base,
                                                  double target, double *above) {
    const uint32_t reached = __ballot_sync(~0u, base + upto >= target);
    if (!reached)
        return -1;
    const int owner = __ffs(reached) - 1;
    const double before = base + (owner ? __shfl_sync(~0u, upto, max(owner - 1, 0)) : 0.0);
    const double middle = before + __shfl_sync(~0u, first, owner);
    *above = middle >= target ? before : middle;
    return 2 * owner + (middle >= target ? 0 : 1);
}

/* Warp 0: the row's maximum, its total, and the bucket in which the running mass reaches
 * p * total, from what all blocks send. Into s->found and its neighbours. */
template <bool kCluster>
static __device__ __forceinline__ void exact_locate(struct exact_shared *s,
                                                    const struct exact_chunk *chunk, float p) {
    const int32_t ranks = chunk->args->ranks;
    const int lane = exact_lane();
    const double scale_coarse = exact_e_coarse(lane), scale_fine = exact_e_fine(lane);
    const struct exact_coarse *const of_lane =
        exact_coarse_of<kCluster>(s, chunk->rank, lane < ranks ? lane : 0);
    exact_await<kCluster>(s);
    const int32_t early_max = lane < ranks ? of_lane->early_max : INT32_MIN;
    const int32_t chunk_max = lane < ranks ? of_lane->chunk_max : INT32_MIN;
    const float row_max = exact_logit(__reduce_max_sync(~0u, chunk_max));
    const float least = exact_floor(exact_logit(early_max));
    const bool out =
        lane < ranks && exact_logit(chunk_max) >= least && !(row_max - least <= EXACT_WINDOW);
    const bool far = !(fabsf(row_max) < EXACT_GREATEST - EXACT_WINDOW);
    int32_t code = !(row_max > -CUDART_INF_F)                ? EXACT_EMPTY
                   : exact_row_narrow(of_lane, lane < ranks) ? EXACT_NARROW
                   : far                                     ? EXACT_FAR
                   : __any_sync(~0u, out)                    ? EXACT_ALIASED
                                                             : EXACT_FOUND;
    if (code == EXACT_NARROW)
        exact_solve_narrow<kCluster>(s, chunk->rank, ranks, exact_key(row_max), p);
    if (code == EXACT_FOUND) { /* the same in the whole warp */
        const uint32_t top = exact_weigh(row_max).bits >> 6;
        double mass[2] = {0.0, 0.0}, above = 0.0;
#pragma unroll 1
        for (int r = 0; r < ranks; r += 4) {
#pragma unroll
            for (int j = 0; j < 4; j++) { /* four at a time, whatever the number */
                const bool in = r + j < ranks;
                const double *const from =
                    exact_coarse_of<kCluster>(s, chunk->rank, in ? r + j : r)->mass;
                mass[0] += in ? from[(top - 2 * lane) % EXACT_BINS_COARSE] : 0.0;
                mass[1] += in ? from[(top - 2 * lane - 1) % EXACT_BINS_COARSE] : 0.0;
            }
        }
        mass[0] *= scale_coarse;
        mass[1] *= scale_coarse * EXACT_E_DOWN;
        const double upto = exact_upto(mass[0] + mass[1]);
        const double target = (double)p * __shfl_sync(~0u, upto, 31);
        const int bin = exact_reach(mass[0], upto, 0.0, target, &above);
        const uint32_t bits = (top - bin) << 6 | 63; /* its highest bucket */
        const uint32_t high = bits % EXACT_BUCKETS - 2 * lane;
#pragma unroll
        for (int n = 0; n < 2; n++) {
            const uint32_t place = exact_place(high - n);
            uint64_t fixed = s->low[place] + ((uint64_t)s->high[place] << 16);
            if (chunk->args->wide)
                fixed += (uint64_t)exact_over(ranks)[high - n] << 32;
            s->fine.fixed[2 * lane + n] = fixed;
        }
        exact_exchange<kCluster>(s, exact_fine_in(ranks) + chunk->rank, &s->fine, sizeof s->fine,
                                 chunk->rank, ranks);
        uint64_t fixed[2] = {0, 0};
#pragma unroll 1
        for (int r = 0; r < ranks; r += 4) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const bool in = r + j < ranks;
                const uint64_t *const from =
                    exact_fine_of<kCluster>(s, chunk->rank, in ? r + j : r, ranks)->fixed;
                fixed[0] += in ? from[2 * lane] : 0;
                fixed[1] += in ? from[2 * lane + 1] : 0;
            }
        }
        double unit = __shfl_sync(~0u, scale_coarse, max(bin, 0) / 2); /* e^-bin */
        unit *= bin & 1 ? EXACT_E_DOWN : 1.0;
        const double first = (double)fixed[0] * (unit * scale_fine);
        const double second = (double)fixed[1] * (unit * scale_fine * EXACT_E_STEP_DOWN);
        const int bucket = exact_reach(first, exact_upto(first + second), above, target, &above);
        unit *= __shfl_sync(~0u, scale_fine, max(bucket, 0) / 2);
        unit *= bucket & 1 ? EXACT_E_STEP_DOWN : 1.0;
        if (bin < 0 || bucket < 0)
            code = EXACT_FAR;
        if (lane == 0) {
            s->target = target;
            s->found_above = above;
            s->found_bits = bits - bucket;
            s->found_unit = unit;
        }
    }
    if (lane == 0) {
        s->max = row_max;
        s->found = code;
    }
}

#endif
