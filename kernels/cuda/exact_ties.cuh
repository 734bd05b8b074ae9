/* Crowded buckets: more tokens than lists hold, most of them ties. */
#ifndef TOPP_KERNELS_CUDA_EXACT_TIES_CUH
#define TOPP_KERNELS_CUDA_EXACT_TIES_CUH

#include "kernels/cuda/exact_settle.cuh"

/* Weights of the bracket's tokens into bins, straight from the chunk. A thread adds up runs of one
 * bin by itself: ties would queue at one address. */
static __device__ __forceinline__ void exact_fill_bins(struct exact_shared *s,
                                                       const struct exact_chunk *chunk,
                                                       const struct exact_found *found, int shift) {
    const float low = exact_logit(found->key_min), high = exact_logit(found->key_max);
    uint32_t *const lows = exact_bins(s, 0), *const highs = exact_bins(s, 1);
    uint32_t low_sum = 0, high_sum = 0;
    int run = 0;
    exact_each<false>(chunk, [&](const float4(&x)[EXACT_BATCH], int32_t) {
#pragma unroll
        for (int k = 0; k < EXACT_BATCH; k++) {
            const float values[4] = {x[k].x, x[k].y, x[k].z, x[k].w};
#pragma unroll
            for (int j = 0; j < 4; j++) {
                if (!(values[j] >= low && values[j] <= high))
                    continue;
                const struct exact_weight weight = exact_weigh(values[j]);
                const int bin = exact_bin(found, shift, values[j]);
                if (bin != run && high_sum) {
                    atomicAdd(&lows[run], low_sum);
                    atomicAdd(&highs[run], high_sum);
                    low_sum = high_sum = 0;
                }
                run = bin;
                low_sum += exact_low(weight);
                high_sum += exact_high(weight);
            }
        }
    });
    if (high_sum) {
        atomicAdd(&lows[run], low_sum);
        atomicAdd(&highs[run], high_sum);
    }
}

/* Narrows a bracket with more tokens than lists hold. Ends behind a barrier of the row. */
template <bool kCluster>
static __device__ __noinline__ bool
exact_settle_crowd(struct exact_shared *s, const struct exact_chunk *chunk,
                   const struct exact_found *found, struct exact_bracket *bracket) {
    const int shift = exact_bin_shift(found);
    exact_bins_clear(s);
    exact_fill_bins(s, chunk, found, shift);
    exact_barrier<kCluster>(s, chunk->args->ranks);
    uint64_t mass = 0;
    for (int r = 0; r < chunk->args->ranks; r++)
        mass += exact_peer<kCluster>(exact_bins(s, 0), r)[threadIdx.x] +
                ((uint64_t)exact_peer<kCluster>(exact_bins(s, 1), r)[threadIdx.x] << 16);
    exact_pick_bins(s, mass, bracket);
    const bool inside = exact_narrow(s, found, shift, bracket);
    exact_barrier<kCluster>(s, chunk->args->ranks);
    return inside;
}

/* Which of the row's tokens of this very logit is number `number` (from 1) by id, as this block
 * needs it: its id if it lies here, else INT32_MAX (it lies behind: keep all here) or -1. Counts
 * per group of warp rows (32 vectors) in s->low and s->high. Ends behind a barrier of the row. */
template <bool kCluster>
static __device__ __noinline__ int32_t exact_tie(struct exact_shared *s,
                                                 const struct exact_chunk *chunk, float logit,
                                                 uint32_t number) {
    uint32_t *const slots = s->low; /* low and high are one array of 8 slots a thread */
    const int each = 2 * EXACT_BUCKETS / EXACT_THREADS;
    const int32_t rows = (chunk->vectors + 31) / 32;
    const int32_t group = rows / (2 * EXACT_BUCKETS) + 1;
    for (int i = 0; i < each; i++)
        slots[i * EXACT_THREADS + threadIdx.x] = 0;
    __syncthreads();
    exact_each<false>(chunk, [&](const float4(&x)[EXACT_BATCH], int32_t v) {
#pragma unroll
        for (int k = 0; k < EXACT_BATCH; k++) {
            const int mine =
                (x[k].x == logit) + (x[k].y == logit) + (x[k].z == logit) + (x[k].w == logit);
            const uint32_t count = __reduce_add_sync(~0u, mine);
            if (exact_lane() == 0 && count)
                atomicAdd(&slots[(v + k * EXACT_THREADS) / 32 / group], count);
        }
    });
    __syncthreads();
    uint32_t sum = 0;
    for (int i = 0; i < each; i++)
        sum += slots[each * threadIdx.x + i];
    const uint32_t total = exact_scan(sum, (uint32_t *)s->scan);
    if (threadIdx.x == EXACT_THREADS - 1)
        s->ties = total;
    exact_barrier<kCluster>(s, chunk->args->ranks);
    for (int r = 0; r < chunk->rank; r++) {
        const uint32_t count = *exact_peer<kCluster>(&s->ties, r);
        number = number > count ? number - count : 0;
    }
    const bool here = number > 0 && number <= s->ties;
    if (here && total - sum < number && number <= total) {
        uint32_t before = total - sum;
        int i = 0;
        while (before + slots[each * threadIdx.x + i] < number)
            before += slots[each * threadIdx.x + i++];
        s->found_slot = each * threadIdx.x + i;
        s->found_before = before;
    }
    __syncthreads();
    if (here && threadIdx.x < 32) {
        uint32_t before = s->found_before;
        for (int32_t row = s->found_slot * group; row < (int32_t)(s->found_slot + 1) * group;
             row++) {
            const int32_t v = row * 32 + threadIdx.x;
            const float4 x = exact_load(chunk, v);
            const float value[4] = {x.x, x.y, x.z, x.w};
            uint32_t mine = 0, upto;
            for (int j = 0; j < 4; j++)
                mine += value[j] == logit;
            upto = mine;
            for (int step = 1; step < 32; step *= 2) {
                const uint32_t other = __shfl_up_sync(~0u, upto, step);
                upto += exact_lane() >= step ? other : 0;
            }
            const uint32_t row_total = __shfl_sync(~0u, upto, 31);
            uint32_t at = before + upto - mine;
            for (int j = 0; j < 4; j++)
                if (value[j] == logit && ++at == number)
                    s->result.token = chunk->first + 4 * v + j;
            before += row_total;
        }
    }
    __syncthreads();
    const int32_t token = here ? s->result.token : number > 0 ? INT32_MAX : -1;
    exact_barrier<kCluster>(s, chunk->args->ranks);
    return token;
}

/* A bracket of one value: how many of its tokens are kept. 0 if that is not certain. */
static __device__ __noinline__ uint32_t exact_settle_ties(struct exact_found found,
                                                          struct exact_bracket bracket) {
    const double one = (double)exact_fixed(exact_weigh(exact_logit(found.key_max))) * bracket.unit;
    const double kept = ceil(bracket.target / one);
    if (!(kept >= 1.0 && kept <= (double)found.count))
        return 0;
    const double here = kept * one - bracket.target;
    if (!(here > bracket.margin && one - here > bracket.margin))
        return 0;
    return (uint32_t)kept;
}

#endif
