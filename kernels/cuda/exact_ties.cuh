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
    uint64_t sum = 0;
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
                if (bin != run && sum) {
                    exact_bin_add(s, run, sum);
                    sum = 0;
                }
                run = bin;
                sum += exact_fixed(weight);
            }
        }
    });
    if (sum)
        exact_bin_add(s, run, sum);
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
        mass += exact_bin_sum<kCluster>(s, threadIdx.x, r);
    exact_pick_bins(s, mass, bracket);
    const bool inside = exact_narrow(s, found, shift, bracket);
    exact_barrier<kCluster>(s, chunk->args->ranks);
    return inside;
}

/* The chunk's vectors by rows of 32: those of the thread's warp, one behind the other. */
struct exact_span {
    int32_t begin, end;
};

static __device__ __forceinline__ struct exact_span exact_span(const struct exact_chunk *chunk) {
    const int32_t rows = (chunk->vectors + 31) / 32, each = (rows + EXACT_WARPS - 1) / EXACT_WARPS;
    struct exact_span span;
    span.begin = min((int32_t)threadIdx.x / 32 * each, rows);
    span.end = min(span.begin + each, rows);
    return span;
}

/* The lane's four tokens of a row. */
static __device__ __forceinline__ float4 exact_row_vector(const struct exact_chunk *chunk,
                                                          int32_t row) {
    const int32_t v = row * 32 + exact_lane();
    return v < exact_cached(chunk) ? exact_cache(chunk->args)[v] : exact_load(chunk, v);
}

/* Tokens of one very logit: in the chunk, and in the lane's rows of its warp's span, of which each
 * lane has the same number `each`. */
struct exact_ties {
    uint32_t all, mine;
    int32_t each;
};

/* Counts the chunk's tokens of this very logit; those of each warp's span are left in
 * spans[EXACT_WARPS], in shared memory. Ends behind a barrier of the block. */
static __device__ __noinline__ struct exact_ties exact_tie_count(const struct exact_chunk *from,
                                                                 float logit, uint32_t *spans) {
    const struct exact_chunk chunk = *from; /* in registers */
    const struct exact_span span = exact_span(&chunk);
    struct exact_ties ties = {0, 0, (span.end - span.begin + 31) / 32};
    int32_t owner = 0, owned = 0;
#pragma unroll 4
    for (int32_t row = span.begin; row < span.end; row++) {
        const float4 x = exact_row_vector(&chunk, row);
        const uint32_t here = (x.x == logit) + (x.y == logit) + (x.z == logit) + (x.w == logit);
        const uint32_t all = __reduce_add_sync(~0u, here);
        ties.mine += owner == exact_lane() ? all : 0;
        owned++;
        owner += owned == ties.each;
        owned = owned == ties.each ? 0 : owned;
    }
    const uint32_t count = __reduce_add_sync(~0u, ties.mine);
    if (exact_lane() == 0)
        spans[threadIdx.x / 32] = count;
    __syncthreads();
    ties.all = __reduce_add_sync(~0u, exact_lane() < EXACT_WARPS ? spans[exact_lane()] : 0);
    return ties;
}

/* Sum over the lanes up to this one. */
static __device__ __forceinline__ uint32_t exact_lanes_upto(uint32_t value) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const uint32_t other = __shfl_up_sync(~0u, value, step);
        value += exact_lane() >= step ? other : 0;
    }
    return value;
}

/* After exact_tie_count: the id of the chunk's tie number `number`, from 1 to as many as there are,
 * into *token, in shared memory. Ends behind a barrier of the block. */
static __device__ __noinline__ void exact_tie_find(const struct exact_chunk *from, float logit,
                                                   uint32_t number, struct exact_ties ties,
                                                   const uint32_t *spans, int32_t *token) {
    const struct exact_chunk chunk = *from; /* in registers */
    const struct exact_span span = exact_span(&chunk);
    const int lane = exact_lane(), warp = threadIdx.x / 32;
    uint32_t before = __reduce_add_sync(~0u, lane < warp ? spans[lane] : 0);
    if (before < number && number <= before + spans[warp]) { /* in one warp */
        const uint32_t upto = before + exact_lanes_upto(ties.mine);
        const int owner = __ffs(__ballot_sync(~0u, upto >= number)) - 1;
        before = __shfl_sync(~0u, upto - ties.mine, owner);
        for (int32_t row = span.begin + owner * ties.each;; row++) {
            const float4 x = exact_row_vector(&chunk, row);
            const float value[4] = {x.x, x.y, x.z, x.w};
            uint32_t here = 0;
            for (int j = 0; j < 4; j++)
                here += value[j] == logit;
            const uint32_t through = before + exact_lanes_upto(here);
            before = __shfl_sync(~0u, through, 31);
            if (before < number)
                continue;
            uint32_t at = through - here;
            for (int j = 0; j < 4; j++)
                if (value[j] == logit && ++at == number)
                    *token = chunk.first + 4 * (row * 32 + lane) + j;
            break;
        }
    }
    __syncthreads();
}

/* The token up to which a block keeps ties when the row keeps `kept` of them and `before` lie in
 * blocks before, `here` in this: INT32_MAX for all, -1 for none, 0 for one of its own. */
static __device__ __forceinline__ int32_t exact_tie_side(uint32_t kept, uint32_t before,
                                                         uint32_t here) {
    return kept <= before ? -1 : kept - before >= here ? INT32_MAX : 0;
}

/* Which of the row's tokens of this very logit is number `number` (from 1) by id, as this block
 * needs it, into s->result.token: its id if it lies here, else INT32_MAX (it lies behind: keep all
 * here) or -1. Ends behind a barrier of the block; the others may still read s->ties then. */
template <bool kCluster>
static __device__ __noinline__ void
exact_tie(struct exact_shared *s, const struct exact_chunk *chunk, float logit, uint32_t number) {
    const struct exact_ties ties = exact_tie_count(chunk, logit, s->spans);
    if (threadIdx.x == 0)
        s->ties = ties.all;
    exact_barrier<kCluster>(s, chunk->args->ranks);
    const int lane = exact_lane();
    const uint32_t before =
        __reduce_add_sync(~0u, lane < chunk->rank ? *exact_peer<kCluster>(&s->ties, lane) : 0);
    const int32_t side = exact_tie_side(number, before, ties.all);
    if (side == 0)
        exact_tie_find(chunk, logit, number - before, ties, s->spans, &s->result.token);
    else if (threadIdx.x == 0)
        s->result.token = side;
    __syncthreads();
}

/* The same for a narrow row, whose blocks know their counts: `number` is s->count. */
static __device__ __noinline__ void exact_tie_known(struct exact_shared *s,
                                                    const struct exact_chunk *chunk) {
    const float logit = s->result.logit;
    const int32_t side = exact_tie_side(s->count, s->ties_before, s->ties_here);
    if (side == 0) {
        const struct exact_ties ties = exact_tie_count(chunk, logit, s->spans);
        exact_tie_find(chunk, logit, (uint32_t)(s->count - s->ties_before), ties, s->spans,
                       &s->result.token);
    } else if (threadIdx.x == 0) {
        s->result.token = side;
    }
    __syncthreads();
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
