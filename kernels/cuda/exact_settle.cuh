/* From the boundary's bucket to the boundary's token, with a certificate or without. */
#ifndef TOPP_KERNELS_CUDA_EXACT_SETTLE_CUH
#define TOPP_KERNELS_CUDA_EXACT_SETTLE_CUH

#include "kernels/cuda/exact_mass.cuh"

enum exact_verdict { EXACT_UNSURE = 0, EXACT_NARROWED, EXACT_DONE };

/* Logits in [key_low, key_high], one bucket or a part of it, hold the boundary. Masses are in units
 * of 2^-31 of the bucket's centre weight. */
struct exact_bracket {
    int32_t key_low, key_high;
    double target; /* mass still to reach from the bracket's top */
    double margin; /* bound on the error of any comparison with target */
};

/* What all blocks of the row found in a bracket. */
struct exact_found {
    int32_t count, key_min, key_max;
    bool listed; /* every token is in some block's list, and few enough */
};

/* Bucket of centre c / 64: the logits that exact_weigh rounds to c (ties to even). */
static __device__ __forceinline__ void exact_bucket_keys(uint32_t bits,
                                                         struct exact_bracket *bracket) {
    const float centre = __uint_as_float(bits) - EXACT_MAGIC;
    const int32_t open = bits & 1; /* MAGIC is even: odd buckets lose both of their ends */
    bracket->key_low = exact_key((centre - 0.5f) * (1.0f / 64.0f)) + open;
    bracket->key_high = exact_key((centre + 0.5f) * (1.0f / 64.0f)) - open;
}

static __device__ __forceinline__ void exact_found_clear(struct exact_shared *s) {
    s->count = 0;
    s->key_min = INT32_MAX;
    s->key_max = INT32_MIN;
}

/* Appends the warp's tokens that lie in the bracket to the block's list (as far as it goes). */
static __device__ __forceinline__ void exact_append(struct exact_shared *s, float4 v, int32_t token,
                                                    float low, float high) {
    const float x[4] = {v.x, v.y, v.z, v.w};
    uint32_t mask[4], before = (1u << exact_lane()) - 1;
    int32_t count = 0, place = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        mask[j] = __ballot_sync(~0u, x[j] >= low && x[j] <= high);
        place += __popc(mask[j] & before);
        count += __popc(mask[j]);
    }
    int32_t base = 0;
    if (exact_lane() == 0)
        base = atomicAdd(&s->count, count);
    place += __shfl_sync(~0u, base, 0);
#pragma unroll
    for (int j = 0; j < 4; j++) {
        if (mask[j] >> exact_lane() & 1) {
            if (place < EXACT_LIST) {
                s->list[place].logit = x[j];
                s->list[place].token = token + j;
            }
            place++;
        }
    }
}

/* Lists the chunk's tokens in the bracket; their number and extreme keys. */
static __device__ __forceinline__ void exact_gather(struct exact_shared *s,
                                                    const struct exact_chunk *chunk,
                                                    const float4 (&tile)[EXACT_TILE],
                                                    const struct exact_bracket *bracket) {
    const float low = exact_logit(bracket->key_low), high = exact_logit(bracket->key_high);
    float min = CUDART_INF_F, max = -CUDART_INF_F;
    exact_each(chunk, tile, [&](float4 v, int32_t i) {
        const bool in[4] = {v.x >= low && v.x <= high, v.y >= low && v.y <= high,
                            v.z >= low && v.z <= high, v.w >= low && v.w <= high};
        if (!__any_sync(~0u, in[0] || in[1] || in[2] || in[3]))
            return;
        const float x[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (in[j]) {
                min = fminf(min, x[j]);
                max = fmaxf(max, x[j]);
            }
        }
        exact_append(s, v, chunk->first + 4 * i, low, high);
    });
    if (__any_sync(~0u, min <= max)) {
        const int32_t key_min = __reduce_min_sync(~0u, exact_key(min));
        const int32_t key_max = __reduce_max_sync(~0u, exact_key(max));
        if (exact_lane() == 0) {
            atomicMin(&s->key_min, key_min);
            atomicMax(&s->key_max, key_max);
        }
    }
}

/* Joins the counts of all blocks, behind a barrier of the row. Every warp does it for itself. */
template <bool kCluster>
static __device__ __forceinline__ struct exact_found exact_join(struct exact_shared *s,
                                                                const struct exact_chunk *chunk) {
    const int lane = exact_lane();
    const bool in = lane < chunk->args->ranks;
    const int32_t count = in ? *exact_peer<kCluster>(&s->count, lane) : 0;
    const int32_t low = in ? *exact_peer<kCluster>(&s->key_min, lane) : INT32_MAX;
    const int32_t high = in ? *exact_peer<kCluster>(&s->key_max, lane) : INT32_MIN;
    struct exact_found found;
    found.count = __reduce_add_sync(~0u, count);
    found.key_min = __reduce_min_sync(~0u, low);
    found.key_max = __reduce_max_sync(~0u, high);
    found.listed = found.count <= EXACT_LISTED && __all_sync(~0u, count <= EXACT_LIST);
    return found;
}

/* Division of [key_min, key_max] into at most EXACT_BINS bins, the highest first. */
static __device__ __forceinline__ int exact_bin_shift(const struct exact_found *found) {
    const uint32_t range = (uint32_t)found->key_max - (uint32_t)found->key_min;
    const int bits = 32 - __clz(range);
    return bits > 10 ? bits - 10 : 0;
}

static __device__ __forceinline__ int exact_bin(const struct exact_found *found, int shift,
                                                float x) {
    return (int)(((uint32_t)found->key_max - (uint32_t)exact_key(x)) >> shift);
}

/* Behind a barrier of the block: the bins that may hold the boundary into s->bin_first and
 * s->bin_last (-1 where none does), and the mass above them into s->bin_base. */
static __device__ __forceinline__ void exact_pick_bins(struct exact_shared *s, uint64_t mass,
                                                       const struct exact_bracket *bracket) {
    const uint64_t sum = exact_scan(mass, (uint64_t *)s->scan);
    const double here = (double)sum, above = (double)(sum - mass);
    const double early = bracket->target - bracket->margin;
    const double late = bracket->target + bracket->margin;
    if (above < early && here >= early) {
        s->bin_first = threadIdx.x;
        s->bin_base = sum - mass;
    }
    if (above < late && here >= late)
        s->bin_last = threadIdx.x;
    __syncthreads();
}

static __device__ __forceinline__ void exact_bins_clear(struct exact_shared *s) {
    s->low[threadIdx.x] = 0;
    s->high[threadIdx.x] = 0;
    if (threadIdx.x == 0) {
        s->bin_first = s->bin_last = -1;
        s->final_count = 0;
        s->verdict = EXACT_UNSURE;
    }
    __syncthreads();
}

/* Cuts the bracket to the bins picked. False if the boundary may lie outside. */
static __device__ __forceinline__ bool exact_narrow(const struct exact_shared *s,
                                                    const struct exact_found *found, int shift,
                                                    struct exact_bracket *bracket) {
    const int first = s->bin_first, last = s->bin_last;
    if (first < 0 || last < 0)
        return false;
    const uint32_t top = (uint32_t)found->key_max;
    const uint32_t low = top - (((uint32_t)last + 1) << shift) + 1;
    bracket->key_high = (int32_t)(top - ((uint32_t)first << shift));
    bracket->key_low = top - low < top - (uint32_t)found->key_min ? (int32_t)low : found->key_min;
    bracket->target -= (double)s->bin_base;
    return true;
}

/* The few tokens of s->final_list against the target, one a thread. */
static __device__ __forceinline__ void exact_compare(struct exact_shared *s,
                                                     const struct exact_bracket *bracket) {
    const int count = s->final_count;
    if ((int)threadIdx.x >= count)
        return;
    const struct exact_entry mine = s->final_list[threadIdx.x];
    uint64_t sum = 0;
    for (int j = 0; j < count; j++) {
        const struct exact_entry other = s->final_list[j];
        if (other.logit > mine.logit || (other.logit == mine.logit && other.token <= mine.token))
            sum += exact_weigh(other.logit).fixed;
    }
    const double here = (double)sum - bracket->target;
    const double above = here - (double)exact_weigh(mine.logit).fixed;
    if (here >= 0.0 && above < 0.0) {
        s->result = mine;
        s->verdict = here > bracket->margin && -above > bracket->margin ? EXACT_DONE : EXACT_UNSURE;
    }
}

/* Settles a bracket whose tokens are all listed. Ends behind a barrier of the block. */
template <bool kCluster>
static __device__ __forceinline__ enum exact_verdict
exact_settle_list(struct exact_shared *s, const struct exact_chunk *chunk,
                  const struct exact_found *found, struct exact_bracket *bracket) {
    const int shift = exact_bin_shift(found);
    const int lane = exact_lane();
    const int32_t mine = lane < chunk->args->ranks ? *exact_peer<kCluster>(&s->count, lane) : 0;
    struct exact_entry entry[EXACT_LISTED / EXACT_THREADS];
    int bin[EXACT_LISTED / EXACT_THREADS];
    exact_bins_clear(s);
#pragma unroll
    for (int e = 0; e < EXACT_LISTED / EXACT_THREADS; e++) {
        int32_t place = e * EXACT_THREADS + threadIdx.x, rank = -1, start = 0;
        for (int r = 0; r < chunk->args->ranks; r++) {
            const int32_t count = __shfl_sync(~0u, mine, r);
            if (rank < 0 && place < start + count) {
                rank = r;
                place -= start;
            }
            start += count;
        }
        bin[e] = -1;
        if (rank >= 0) {
            entry[e] = exact_peer<kCluster>(s->list, rank)[place];
            bin[e] = exact_bin(found, shift, entry[e].logit);
            const uint32_t fixed = exact_weigh(entry[e].logit).fixed;
            atomicAdd(&s->low[bin[e]], fixed & 0xffff);
            atomicAdd(&s->high[bin[e]], fixed >> 16);
        }
    }
    __syncthreads();
    exact_pick_bins(s, s->low[threadIdx.x] + ((uint64_t)s->high[threadIdx.x] << 16), bracket);
    const int first = s->bin_first, last = s->bin_last;
    if (!exact_narrow(s, found, shift, bracket))
        return EXACT_UNSURE;
#pragma unroll
    for (int e = 0; e < EXACT_LISTED / EXACT_THREADS; e++) {
        if (bin[e] >= 0 && bin[e] >= first && bin[e] <= last) {
            const int32_t place = atomicAdd(&s->final_count, 1);
            if (place < EXACT_FINAL)
                s->final_list[place] = entry[e];
        }
    }
    __syncthreads();
    if (s->final_count > EXACT_FINAL)
        return EXACT_NARROWED;
    exact_compare(s, bracket);
    __syncthreads();
    return (enum exact_verdict)s->verdict;
}

/* Weights of the bracket's tokens into bins, straight from the chunk. */
static __device__ __forceinline__ void exact_fill_bins(struct exact_shared *s,
                                                       const struct exact_chunk *chunk,
                                                       const struct exact_found *found, int shift) {
    const float low = exact_logit(found->key_min), high = exact_logit(found->key_max);
    exact_each_again(chunk, [&](float4 v, int32_t) {
        const float x[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const bool in = x[j] >= low && x[j] <= high;
            const uint32_t lanes = __ballot_sync(~0u, in);
            if (!in)
                continue;
            const uint32_t fixed = exact_weigh(x[j]).fixed;
            const int bin = exact_bin(found, shift, x[j]);
            int all;
            __match_all_sync(lanes, bin, &all);
            if (all) { /* ties: one atomic for the warp */
                const uint32_t low_sum = __reduce_add_sync(lanes, fixed & 0xffff);
                const uint32_t high_sum = __reduce_add_sync(lanes, fixed >> 16);
                if (exact_lane() == __ffs(lanes) - 1) {
                    atomicAdd(&s->low[bin], low_sum);
                    atomicAdd(&s->high[bin], high_sum);
                }
            } else {
                atomicAdd(&s->low[bin], fixed & 0xffff);
                atomicAdd(&s->high[bin], fixed >> 16);
            }
        }
    });
}

/* Narrows a bracket with more tokens than lists hold. Ends behind a barrier of the row. */
template <bool kCluster>
static __device__ __noinline__ bool
exact_settle_crowd(struct exact_shared *s, const struct exact_chunk *chunk,
                   const struct exact_found *found, struct exact_bracket *bracket) {
    const int shift = exact_bin_shift(found);
    exact_bins_clear(s);
    exact_fill_bins(s, chunk, found, shift);
    exact_barrier<kCluster>();
    uint64_t mass = 0;
    for (int r = 0; r < chunk->args->ranks; r++)
        mass += exact_peer<kCluster>(s->low, r)[threadIdx.x] +
                ((uint64_t)exact_peer<kCluster>(s->high, r)[threadIdx.x] << 16);
    exact_pick_bins(s, mass, bracket);
    const bool inside = exact_narrow(s, found, shift, bracket);
    exact_barrier<kCluster>();
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
    exact_each_again(chunk, [&](float4 v, int32_t i) {
        const int mine = (v.x == logit) + (v.y == logit) + (v.z == logit) + (v.w == logit);
        const uint32_t count = __reduce_add_sync(~0u, mine);
        if (exact_lane() == 0 && count)
            atomicAdd(&slots[i / 32 / group], count);
    });
    __syncthreads();
    uint32_t sum = 0;
    for (int i = 0; i < each; i++)
        sum += slots[each * threadIdx.x + i];
    const uint32_t total = exact_scan(sum, (uint32_t *)s->scan);
    if (threadIdx.x == EXACT_THREADS - 1)
        s->ties = total;
    exact_barrier<kCluster>();
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
    exact_barrier<kCluster>();
    return token;
}

/* A bracket of one value: how many of its tokens are kept. 0 if that is not certain. */
static __device__ __forceinline__ uint32_t exact_settle_ties(const struct exact_found *found,
                                                             const struct exact_bracket *bracket) {
    const double one = (double)exact_weigh(exact_logit(found->key_max)).fixed;
    const double kept = ceil(bracket->target / one);
    if (!(kept >= 1.0 && kept <= (double)found->count))
        return 0;
    const double here = kept * one - bracket->target;
    if (!(here > bracket->margin && one - here > bracket->margin))
        return 0;
    return (uint32_t)kept;
}

#endif
