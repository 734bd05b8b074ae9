/* From the boundary's bucket to the boundary's token, with a certificate or without. */
#ifndef TOPP_KERNELS_CUDA_EXACT_SETTLE_CUH
#define TOPP_KERNELS_CUDA_EXACT_SETTLE_CUH

#include "kernels/cuda/exact_mass.cuh"

enum { EXACT_BIN_BITS = EXACT_THREADS == 1024 ? 10 : 9 };
static_assert(1 << EXACT_BIN_BITS == EXACT_BINS, "a bin a thread");

enum { EXACT_FEW = 24 }; /* tokens that are compared without bins */

enum exact_verdict { EXACT_UNSURE = 0, EXACT_NARROWED, EXACT_DONE };

/* Logits in [key_low, key_high], one bucket or a part of it, hold the boundary. Masses are relative
 * to the weight of the maximum's whole logit, times 2^31. */
struct exact_bracket {
    int32_t key_low, key_high;
    double target; /* mass still to reach from the bracket's top */
    double margin; /* bound on the error of any comparison with target */
    double unit;   /* mass of 1 of the bucket's fixed-point weights */
};

/* Nothing is known of the boundary: all keys. */
static __device__ __forceinline__ void exact_bracket_open(struct exact_bracket *bracket) {
    bracket->key_low = INT32_MIN;
    bracket->key_high = INT32_MAX;
}

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

static __device__ __forceinline__ void exact_list_clear(struct exact_shared *s) {
    struct exact_list *const list = exact_list_out(s);
    list->count = 0;
    list->key_min = INT32_MAX;
    list->key_max = INT32_MIN;
}

/* Lists the chunk's tokens in the bracket; their number and extreme keys. */
static __device__ __forceinline__ void exact_gather(struct exact_shared *s,
                                                    const struct exact_chunk *chunk,
                                                    const struct exact_bracket *bracket) {
    struct exact_list *const list = exact_list_out(s);
    struct exact_entry *const entries = (struct exact_entry *)(list + 1);
    const int32_t room = exact_list_room(chunk->args), end = exact_cached(chunk);
    const float *const cache = (const float *)exact_cache(chunk->args);
    const float low = exact_logit(bracket->key_low), high = exact_logit(bracket->key_high);
    /* |x - centre| <= radius, rounded generously, tells nearly all that are outside; the few that
     * pass are read again one by one. */
    const float centre = low + 0.5f * (high - low);
    const float radius = (high - low) * 0.50001f + fabsf(centre) * 0x1p-22f;
    float min = CUDART_INF_F, max = -CUDART_INF_F;
    int32_t unlisted = 0;
    exact_each<false>(chunk, [&](const float4(&x)[EXACT_BATCH], int32_t v) {
        uint32_t near = 0;
#pragma unroll
        for (int k = 0; k < EXACT_BATCH; k++) {
            near |= fabsf(x[k].x - centre) <= radius ? 1u << (4 * k) : 0;
            near |= fabsf(x[k].y - centre) <= radius ? 2u << (4 * k) : 0;
            near |= fabsf(x[k].z - centre) <= radius ? 4u << (4 * k) : 0;
            near |= fabsf(x[k].w - centre) <= radius ? 8u << (4 * k) : 0;
        }
        if (!near)
            return;
        if (ptx_peek(&list->count) > room) { /* only count and extremes matter now */
#pragma unroll
            for (int k = 0; k < EXACT_BATCH; k++) {
                const float values[4] = {x[k].x, x[k].y, x[k].z, x[k].w};
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const bool in = values[j] >= low && values[j] <= high;
                    unlisted += in;
                    min = in ? fminf(min, values[j]) : min;
                    max = in ? fmaxf(max, values[j]) : max;
                }
            }
            return;
        }
#pragma unroll 1
        for (; near; near &= near - 1) {
            const int n = __ffs(near) - 1;
            const int32_t vector = v + n / 4 * EXACT_THREADS;
            const float logit =
                vector < end ? cache[4 * vector + n % 4] : chunk->base[4 * (int64_t)vector + n % 4];
            if (!(logit >= low && logit <= high))
                continue;
            min = fminf(min, logit);
            max = fmaxf(max, logit);
            const int32_t place = atomicAdd(&list->count, 1);
            if (place < room) {
                entries[place].logit = logit;
                entries[place].token = chunk->first + 4 * vector + n % 4;
            }
        }
    });
    const int32_t key_min = __reduce_min_sync(~0u, exact_key(min));
    const int32_t key_max = __reduce_max_sync(~0u, exact_key(max));
    unlisted = __reduce_add_sync(~0u, unlisted);
    if (exact_lane() == 0 && key_min <= key_max) {
        atomicMin(&list->key_min, key_min);
        atomicMax(&list->key_max, key_max);
        if (unlisted)
            atomicAdd(&list->count, unlisted);
    }
}

/* Sends the block's list to all blocks of the row and waits for theirs. */
template <bool kCluster>
static __device__ __forceinline__ void exact_share(struct exact_shared *s,
                                                   const struct exact_chunk *chunk) {
    __syncthreads();
    if (!kCluster)
        return;
    const int32_t rank = threadIdx.x / 32;
    const struct exact_list *const list = exact_list_out(s);
    const uint32_t phase = s->phase;
    const int32_t sent = list->count <= exact_list_room(chunk->args) ? list->count : 0;
    if (rank < chunk->args->ranks) /* a warp for each block */
        exact_send(s, exact_list_in<kCluster>(s, chunk->args, chunk->rank), list,
                   (uint32_t)(sizeof *list + (sent + 1) / 2 * 2 * sizeof(struct exact_entry)), rank,
                   phase);
    exact_wait(s, phase);
    __syncthreads();
    if (threadIdx.x == 0)
        s->phase = phase + 1;
}
static_assert((int)EXACT_WARPS >= (int)EXACT_GREATEST_CLUSTER, "a warp for each block");

/* Joins the lists' heads, after exact_share. Every warp does it for itself. */
template <bool kCluster>
static __device__ __forceinline__ struct exact_found exact_join(struct exact_shared *s,
                                                                const struct exact_chunk *chunk) {
    const int lane = exact_lane();
    struct exact_list head = {0, INT32_MAX, INT32_MIN, 0};
    if (lane < chunk->args->ranks)
        head = *exact_list_in<kCluster>(s, chunk->args, lane);
    struct exact_found found;
    found.count = __reduce_add_sync(~0u, head.count);
    found.key_min = __reduce_min_sync(~0u, head.key_min);
    found.key_max = __reduce_max_sync(~0u, head.key_max);
    found.listed = __all_sync(~0u, head.count <= exact_list_room(chunk->args));
    return found;
}

/* Division of [key_min, key_max] into at most EXACT_BINS bins, the highest first. */
static __device__ __forceinline__ int exact_bin_shift(const struct exact_found *found) {
    const uint32_t range = (uint32_t)found->key_max - (uint32_t)found->key_min;
    const int bits = 32 - __clz(range);
    return max(bits - EXACT_BIN_BITS, 0);
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
    const double here = (double)sum * bracket->unit, above = (double)(sum - mass) * bracket->unit;
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

/* Low and high words of the bins' sums: in front of the block's list. */
static __device__ __forceinline__ uint32_t *exact_bins(struct exact_shared *s, int half) {
    return s->high + half * EXACT_BINS;
}

/* Adds to a bin, of which there is no end: who makes the low word overflow carries. */
static __device__ __forceinline__ void exact_bin_add(struct exact_shared *s, int bin,
                                                     uint64_t sum) {
    const uint32_t low = (uint32_t)sum;
    const uint32_t carry = atomicAdd(&exact_bins(s, 0)[bin], low) > ~low;
    atomicAdd(&exact_bins(s, 1)[bin], (uint32_t)(sum >> 32) + carry);
}

/* A bin's sum in block `rank`. */
template <bool kCluster>
static __device__ __forceinline__ uint64_t exact_bin_sum(struct exact_shared *s, int bin,
                                                         int32_t rank) {
    return exact_peer<kCluster>(exact_bins(s, 0), rank)[bin] +
           ((uint64_t)exact_peer<kCluster>(exact_bins(s, 1), rank)[bin] << 32);
}

static __device__ __forceinline__ void exact_bins_clear(struct exact_shared *s) {
    exact_bins(s, 0)[threadIdx.x] = 0;
    exact_bins(s, 1)[threadIdx.x] = 0;
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
    bracket->target -= (double)s->bin_base * bracket->unit;
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
#pragma unroll 1
    for (int j = 0; j < count; j++) {
        const struct exact_entry other = s->final_list[j];
        if (other.logit > mine.logit || (other.logit == mine.logit && other.token <= mine.token))
            sum += exact_fixed(exact_weigh(other.logit));
    }
    const double here = (double)sum * bracket->unit - bracket->target;
    const double above = here - (double)exact_fixed(exact_weigh(mine.logit)) * bracket->unit;
    /* The boundary is at this token or above, surely inside; one thread says so. */
    if (here > bracket->margin && above <= bracket->margin)
        s->bin_last = 0;
    if (here >= 0.0 && above < 0.0) {
        s->result = mine;
        s->verdict = here > bracket->margin && -above > bracket->margin ? EXACT_DONE : EXACT_UNSURE;
    }
}

/* Calls visit(entry) for every listed token of the row, each by one thread of the block. */
template <bool kCluster, class Visit>
static __device__ __forceinline__ void
exact_each_listed(struct exact_shared *s, const struct exact_args *args, Visit visit) {
    const uint32_t each = args->listed, slots = args->ranks * each; /* one list behind the other */
#pragma unroll 1
    for (uint32_t slot = threadIdx.x; slot < slots; slot += EXACT_THREADS) {
        const uint32_t rank = slot / each;
        const struct exact_list *const list = exact_list_in<kCluster>(s, args, (int32_t)rank);
        const int32_t place = (int32_t)(slot - rank * each);
        if (place < list->count)
            visit(((const struct exact_entry *)(list + 1))[place]);
    }
}

/* Settles a bracket whose tokens are all listed. Ends behind a barrier of the block. */
template <bool kCluster>
static __device__ __forceinline__ enum exact_verdict
exact_settle_list(struct exact_shared *s, const struct exact_chunk *chunk,
                  const struct exact_found *found, struct exact_bracket *bracket) {
    const int shift = exact_bin_shift(found);
    exact_bins_clear(s);
    if (found->count <= EXACT_FEW && bracket->target > bracket->margin) {
        exact_each_listed<kCluster>(s, chunk->args, [&](struct exact_entry entry) {
            s->final_list[atomicAdd(&s->final_count, 1)] = entry;
        });
        bracket->key_low = found->key_min;
        bracket->key_high = found->key_max;
        if (threadIdx.x == 0)
            s->bin_first = 0;
        __syncthreads();
        exact_compare(s, bracket);
        __syncthreads();
        return (enum exact_verdict)s->verdict;
    }
    exact_each_listed<kCluster>(s, chunk->args, [&](struct exact_entry entry) {
        const int bin = exact_bin(found, shift, entry.logit);
        exact_bin_add(s, bin, exact_fixed(exact_weigh(entry.logit)));
    });
    __syncthreads();
    exact_pick_bins(s, exact_bin_sum<false>(s, threadIdx.x, 0), bracket);
    const int first = s->bin_first, last = s->bin_last;
    if (!exact_narrow(s, found, shift, bracket))
        return EXACT_UNSURE;
    exact_each_listed<kCluster>(s, chunk->args, [&](struct exact_entry entry) {
        const int bin = exact_bin(found, shift, entry.logit);
        if (bin >= first && bin <= last) {
            const int32_t place = atomicAdd(&s->final_count, 1);
            if (place < EXACT_FINAL)
                s->final_list[place] = entry;
        }
    });
    __syncthreads();
    if (s->final_count > EXACT_FINAL)
        return EXACT_NARROWED;
    exact_compare(s, bracket);
    __syncthreads();
    return (enum exact_verdict)s->verdict;
}

#endif
