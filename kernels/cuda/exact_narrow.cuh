/* Rows and blocks of few neighbouring values (flat ones, say): counted by key. A row of them is
 * solved by its counts, with the oracle's own arithmetic; in another row the counts become the same
 * sums of buckets, cheaper than atomics at one place. */
#ifndef TOPP_KERNELS_CUDA_EXACT_NARROW_CUH
#define TOPP_KERNELS_CUDA_EXACT_NARROW_CUH

#include "kernels/cuda/exact_weight.cuh"

/* Extreme keys of what came first. */
struct exact_early {
    int32_t max, min;
};

/* Key of the least logit in the thread's first vector, -inf included. */
static __device__ __forceinline__ int32_t exact_first_min(const struct exact_chunk *chunk,
                                                          float4 x) {
    const int32_t v = threadIdx.x;
    const bool whole = v < exact_cached(chunk) && exact_whole(chunk, chunk->first + 4 * v);
    return whole ? exact_key(fminf(fminf(x.x, x.y), fminf(x.z, x.w))) : INT32_MAX;
}

/* A window of EXACT_NARROW_KEYS keys: bits * sign + offset is a logit's place in it, the least
 * first. */
struct exact_window {
    int32_t low;
    uint32_t sign, offset;
};

/* False if what came first says that a window will not do. The same in the whole block. */
static __device__ __forceinline__ bool exact_window_pick(const struct exact_early *early,
                                                         struct exact_window *window) {
    const int32_t huge = 0x7f000000;
    if (early->min <= -huge || early->max >= huge || early->max < early->min ||
        (uint32_t)early->max - (uint32_t)early->min >= EXACT_NARROW_KEYS ||
        (early->min < 0 && early->max >= 0))
        return false;
    const bool negative = early->max < 0;
    window->low = negative ? min(early->min, -EXACT_NARROW_KEYS) : early->min;
    window->sign = negative ? ~0u : 1u;
    window->offset = (negative ? 0x7fffffffu : 0u) - (uint32_t)window->low;
    return true;
}

/* Counts turned into the sums of buckets that the logits would have made. */
static __device__ __forceinline__ void
exact_counts_to_sums(struct exact_shared *s, const struct exact_chunk *chunk, int32_t low) {
    const uint32_t *const counts = (const uint32_t *)s->list;
    if (threadIdx.x < EXACT_NARROW_KEYS && counts[threadIdx.x]) {
        const int32_t key = low + (int32_t)threadIdx.x;
        const struct exact_weight weight = exact_weigh(exact_logit(key));
        const uint32_t bucket = weight.bits % EXACT_BUCKETS, place = exact_place(bucket);
        const uint64_t sum = (uint64_t)exact_fixed(weight) * counts[threadIdx.x];
        if (exact_logit(key) >= -EXACT_GREATEST) { /* others are as far below any row as sums go */
            atomicAdd(&s->low[place], (uint32_t)sum & 0xffff);
            if (chunk->args->wide) {
                atomicAdd(&s->high[place], (uint32_t)(sum >> 16) & 0xffff);
                atomicAdd(&exact_over(chunk->args->ranks)[bucket], (uint32_t)(sum >> 32));
            } else {
                atomicAdd(&s->high[place], (uint32_t)(sum >> 16));
            }
        }
        atomicMin(&s->coarse.narrow_min, key);
        atomicMax(&s->coarse.narrow_max, key);
        atomicMax(&s->coarse.chunk_max, key);
    }
}

/* The thread's counts, a byte each, into s->list. */
static __device__ __forceinline__ void exact_counts_flush(struct exact_shared *s,
                                                          uint64_t *packed) {
#pragma unroll
    for (int key = 0; key < EXACT_NARROW_KEYS; key++) {
        const uint32_t count = __reduce_add_sync(~0u, (uint32_t)(*packed >> (8 * key)) & 0xff);
        if (exact_lane() == 0 && count)
            atomicAdd(&((uint32_t *)s->list)[key], count);
    }
    *packed = 0;
}

/* Counts the chunk by key if what came first is narrow. False if something came that was not:
 * nothing has happened then but that the chunk may have been brought to shared memory. */
static __device__ __noinline__ bool exact_count_chunk(struct exact_shared *s,
                                                      const struct exact_chunk *from,
                                                      struct exact_window window) {
    const struct exact_chunk chunk = *from;   /* in registers */
    const int most = 255 / (4 * EXACT_BATCH); /* batches that a byte holds */
    uint64_t packed = 0;
    int batches = 0;
    bool outside = false;
    if (threadIdx.x < EXACT_NARROW_KEYS)
        ((uint32_t *)s->list)[threadIdx.x] = 0;
    if (threadIdx.x == 0)
        s->narrow_low = window.low;
    __syncthreads();
    exact_each<true>(&chunk, [&](const float4(&x)[EXACT_BATCH], int32_t) {
#pragma unroll
        for (int k = 0; k < EXACT_BATCH; k++) {
            const float values[4] = {x[k].x, x[k].y, x[k].z, x[k].w};
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const uint32_t place = __float_as_uint(values[j]) * window.sign + window.offset;
                const bool in = place < EXACT_NARROW_KEYS;
                packed += in ? 1ull << (8 * place) : 0;
                outside |= !in && values[j] > -CUDART_INF_F;
            }
        }
        if (++batches % most == 0)
            exact_counts_flush(s, &packed);
    });
    exact_counts_flush(s, &packed);
    if (__syncthreads_or(outside))
        return false;
    if (threadIdx.x == 0) {
        s->coarse.narrow_min = INT32_MAX;
        s->coarse.narrow_max = INT32_MIN;
    }
    __syncthreads();
    exact_counts_to_sums(s, &chunk, window.low);
    return true;
}

static __device__ __forceinline__ bool exact_count_keys(struct exact_shared *s,
                                                        const struct exact_chunk *chunk,
                                                        const struct exact_early *early) {
    struct exact_window window;
    if (!exact_window_pick(early, &window))
        return false;
    const struct exact_chunk copy = *chunk;
    return exact_count_chunk(s, &copy, window);
}

/* Warp 0: whether all blocks have counted and the row's keys are few enough; of the lane's block,
 * if there is one. */
static __device__ __forceinline__ bool exact_row_narrow(const struct exact_coarse *coarse,
                                                        bool in) {
    const int32_t low = __reduce_min_sync(~0u, in ? coarse->narrow_min : INT32_MAX);
    const int32_t high = __reduce_max_sync(~0u, in ? coarse->narrow_max : INT32_MIN);
    return low <= high && (uint32_t)high - (uint32_t)low < EXACT_NARROW_KEYS;
}

static __device__ __forceinline__ bool exact_reached(const struct exact_sum *sum, double target) {
    return exact_sum_round(sum) >= target;
}

/* How many of `count` equal tokens, each of weight `one`, it takes from `above` to reach the
 * target. The quotient is off by one at most; the comparisons decide. */
static __device__ __noinline__ uint32_t exact_count_ties(const struct exact_sum *above,
                                                         const struct exact_sum *one,
                                                         uint32_t count, double target) {
    const double guess = ceil((target - exact_sum_round(above)) / exact_sum_round(one));
    uint32_t kept = guess < 1.0 ? 1 : guess < (double)count ? (uint32_t)guess : count;
    while (kept > 1) {
        struct exact_sum sum = *above;
        exact_sum_add_times(&sum, one, kept - 1);
        if (!exact_reached(&sum, target))
            break;
        kept--;
    }
    while (kept < count) {
        struct exact_sum sum = *above;
        exact_sum_add_times(&sum, one, kept);
        if (exact_reached(&sum, target))
            break;
        kept++;
    }
    return kept;
}

/* One warp: the boundary of a row that has count[n] tokens of key max_key - 2 lane - n and no
 * others. In the lane that holds it: which n, and tokens kept at it in *kept; -1 in the others. */
static __device__ __noinline__ int exact_solve_counts(const uint32_t count[2], int32_t max_key,
                                                      float p, uint32_t *kept) {
    const int lane = exact_lane();
    struct exact_sum one[2] = {{{0, 0, 0}, 0}, {{0, 0, 0}, 0}}, part[2] = {one[0], one[0]};
    const double max = (double)exact_logit(max_key);
#pragma unroll 1
    for (int n = 0; n < 2; n++) {
        exact_sum_add(&one[n], (double)exact_logit(max_key - 2 * lane - n) - max);
        exact_sum_add_times(&part[n], &one[n], count[n]);
    }
    struct exact_sum upto = part[0];
    exact_sum_merge(&upto, &part[1]);
#pragma unroll 1
    for (int step = 1; step < 32; step *= 2) {
        struct exact_sum other;
        for (int i = 0; i < 3; i++)
            other.limb[i] = __shfl_up_sync(~0u, upto.limb[i], step);
        other.inexact = __shfl_up_sync(~0u, upto.inexact, step);
        if (lane >= step)
            exact_sum_merge(&upto, &other);
    }
    struct exact_sum all;
    for (int i = 0; i < 3; i++)
        all.limb[i] = __shfl_sync(~0u, upto.limb[i], 31);
    all.inexact = __shfl_sync(~0u, upto.inexact, 31);
    const double target = (double)p * exact_sum_round(&all);
    const uint32_t reached = __ballot_sync(~0u, exact_reached(&upto, target));
    if (lane != __ffs(reached) - 1)
        return -1;
    struct exact_sum above = upto; /* all that is not in this lane's two */
    for (int i = 0; i < 3; i++)
        above.limb[i] -= part[0].limb[i] + part[1].limb[i];
    above.inexact -= part[0].inexact + part[1].inexact;
    struct exact_sum middle = above;
    exact_sum_merge(&middle, &part[0]);
    const int n = exact_reached(&middle, target) ? 0 : 1;
    if (n)
        above = middle;
    *kept = exact_count_ties(&above, &one[n], count[n], target);
    return n;
}

/* Warp 0: the boundary of a narrow row, into s->result.logit and s->count (tokens kept at it). */
template <bool kCluster>
static __device__ __noinline__ void exact_solve_narrow(struct exact_shared *s, int32_t rank,
                                                       int32_t ranks, int32_t max_key, float p) {
    const int lane = exact_lane();
    const uint32_t *const counts = (const uint32_t *)s->list;
    const bool here = s->coarse.narrow_min <= s->coarse.narrow_max;
    for (int n = 0; n < 2; n++) { /* of the keys max_key - 2 lane - n */
        const uint32_t place =
            (uint32_t)max_key - (uint32_t)(2 * lane + n) - (uint32_t)s->narrow_low;
        s->fine.fixed[2 * lane + n] = here && place < EXACT_NARROW_KEYS ? counts[place] : 0;
    }
    exact_exchange<kCluster>(s, exact_fine_in(ranks) + rank, &s->fine, sizeof s->fine, rank, ranks);
    uint32_t count[2] = {0, 0}, before[2] = {0, 0}, kept;
    for (int r = 0; r < ranks; r++)
        for (int n = 0; n < 2; n++) {
            const uint32_t more =
                (uint32_t)exact_fine_of<kCluster>(s, rank, r, ranks)->fixed[2 * lane + n];
            count[n] += more;
            before[n] += r < rank ? more : 0;
        }
    const int n = exact_solve_counts(count, max_key, p, &kept);
    if (n < 0)
        return;
    s->result.logit = exact_logit(max_key - 2 * lane - n);
    s->count = (int32_t)kept;
    s->ties_before = (int32_t)(n ? before[1] : before[0]);
    s->ties_here = (int32_t)s->fine.fixed[2 * lane + n];
}

#endif
