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

/* Warp rows a slot of exact_tie_count. */
static __device__ __forceinline__ int32_t exact_tie_group(const struct exact_chunk *chunk) {
    return (chunk->vectors + 31) / 32 / (2 * EXACT_BUCKETS) + 1;
}

/* Counts the chunk's tokens of this very logit, per group of warp rows (32 vectors) in s->low and
 * s->high: the thread's `each` slots hold *mine, those up to its last one are returned. Ends behind
 * a barrier of the block. */
static __device__ __noinline__ uint32_t exact_tie_count(struct exact_shared *s,
                                                        const struct exact_chunk *from, float logit,
                                                        uint32_t *mine_here) {
    const struct exact_chunk copy = *from, *const chunk = &copy; /* in registers */
    uint32_t *const slots = s->low; /* low and high are one array of 8 slots a thread */
    const int each = 2 * EXACT_BUCKETS / EXACT_THREADS;
    const int32_t group = exact_tie_group(chunk);
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
    *mine_here = sum;
    return exact_scan(sum, (uint32_t *)s->scan);
}

/* After exact_tie_count: the id of the chunk's tie number `number`, from 1 to as many as there are,
 * into s->result.token. Ends behind a barrier of the block. */
static __device__ __noinline__ void exact_tie_find(struct exact_shared *s,
                                                   const struct exact_chunk *chunk, float logit,
                                                   uint32_t number, uint32_t upto, uint32_t mine) {
    uint32_t *const slots = s->low;
    const int each = 2 * EXACT_BUCKETS / EXACT_THREADS;
    const int32_t group = exact_tie_group(chunk);
    if (upto - mine < number && number <= upto) {
        uint32_t before = upto - mine;
        int i = 0;
        while (before + slots[each * threadIdx.x + i] < number)
            before += slots[each * threadIdx.x + i++];
        s->found_slot = each * threadIdx.x + i;
        s->found_before = before;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        uint32_t before = s->found_before;
        for (int32_t row = s->found_slot * group; row < (int32_t)(s->found_slot + 1) * group;
             row++) {
            const int32_t v = row * 32 + threadIdx.x;
            const float4 x = exact_load(chunk, v);
            const float value[4] = {x.x, x.y, x.z, x.w};
            uint32_t here = 0, sum;
            for (int j = 0; j < 4; j++)
                here += value[j] == logit;
            sum = here;
            for (int step = 1; step < 32; step *= 2) {
                const uint32_t other = __shfl_up_sync(~0u, sum, step);
                sum += exact_lane() >= step ? other : 0;
            }
            const uint32_t row_total = __shfl_sync(~0u, sum, 31);
            uint32_t at = before + sum - here;
            for (int j = 0; j < 4; j++)
                if (value[j] == logit && ++at == number)
                    s->result.token = chunk->first + 4 * v + j;
            before += row_total;
        }
    }
    __syncthreads();
}

/* Which of the row's tokens of this very logit is number `number` (from 1) by id, as this block
 * needs it: its id if it lies here, else INT32_MAX (it lies behind: keep all here) or -1. Ends
 * behind a barrier of the row. */
template <bool kCluster>
static __device__ __noinline__ int32_t exact_tie(struct exact_shared *s,
                                                 const struct exact_chunk *chunk, float logit,
                                                 uint32_t number) {
    uint32_t mine;
    const uint32_t upto = exact_tie_count(s, chunk, logit, &mine);
    if (threadIdx.x == EXACT_THREADS - 1)
        s->ties = upto;
    exact_barrier<kCluster>(s, chunk->args->ranks);
    for (int r = 0; r < chunk->rank; r++) {
        const uint32_t count = *exact_peer<kCluster>(&s->ties, r);
        number = number > count ? number - count : 0;
    }
    const bool here = number > 0 && number <= s->ties; /* the same in the whole block */
    if (here)
        exact_tie_find(s, chunk, logit, number, upto, mine);
    const int32_t token = here ? s->result.token : number > 0 ? INT32_MAX : -1;
    exact_barrier<kCluster>(s, chunk->args->ranks);
    return token;
}

/* The same for a narrow row, whose blocks know their counts. Ends behind a barrier of the block. */
static __device__ __noinline__ int32_t exact_tie_known(struct exact_shared *s,
                                                       const struct exact_chunk *chunk) {
    const int32_t number = s->count - s->ties_before;
    if (number <= 0)
        return -1;
    if (number >= s->ties_here)
        return INT32_MAX;
    uint32_t mine;
    const uint32_t upto = exact_tie_count(s, chunk, s->result.logit, &mine);
    exact_tie_find(s, chunk, s->result.logit, (uint32_t)number, upto, mine);
    const int32_t token = s->result.token;
    __syncthreads();
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
