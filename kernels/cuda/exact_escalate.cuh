/* The boundary of a row in binary64, as the oracle defines it: for rows that the fast sums cannot
 * decide. Weights are the C library's bit for bit, sums are exact integers rounded once,
 * comparisons are the oracle's own. Reads the row from global memory, which is still unchanged. */
#ifndef TOPP_KERNELS_CUDA_EXACT_ESCALATE_CUH
#define TOPP_KERNELS_CUDA_EXACT_ESCALATE_CUH

#include "kernels/cuda/exact_ties.cuh"

struct exact_solver {
    struct exact_shared *s;
    const struct exact_chunk *chunk;
    float max, p;
};

/* A listed token with its weight: 32 bytes, over s->low and s->high. */
struct exact_weighed {
    uint64_t limb[3]; /* the top bit of limb[2]: inexact */
    struct exact_entry entry;
};
static_assert(EXACT_THREADS * 32 <= 2 * EXACT_BUCKETS * 4, "one a thread");

static __device__ __forceinline__ double exact_difference(const struct exact_solver *solver,
                                                          float x) {
    return x == solver->max ? 0.0 : (double)x - (double)solver->max;
}

/* Calls visit(logit, token) for each logit of the chunk by whole warps: one after the other, for
 * bodies too long to be copied 16 times. */
template <class Visit>
static __device__ __forceinline__ void exact_each_logit(const struct exact_chunk *chunk,
                                                        Visit visit) {
    exact_each<false>(chunk, [&](const float4(&vectors)[EXACT_BATCH], int32_t v) {
        float4 rest[EXACT_BATCH];
#pragma unroll
        for (int k = 0; k < EXACT_BATCH; k++)
            rest[k] = vectors[k];
#pragma unroll 1
        for (int k = 0; k < EXACT_BATCH; k++) {
            float4 now = rest[0];
#pragma unroll
            for (int i = 0; i < EXACT_BATCH - 1; i++)
                rest[i] = rest[i + 1];
#pragma unroll 1
            for (int j = 0; j < 4; j++) {
                visit(now.x, chunk->first + 4 * (v + k * EXACT_THREADS) + j);
                now.x = now.y;
                now.y = now.z;
                now.z = now.w;
            }
        }
    });
}

static __device__ void exact_sum_block(struct exact_shared *s, struct exact_sum sum, int which) {
#pragma unroll
    for (int step = 16; step; step /= 2) {
        for (int i = 0; i < 3; i++)
            sum.limb[i] += __shfl_xor_sync(~0u, sum.limb[i], step);
        sum.inexact += __shfl_xor_sync(~0u, sum.inexact, step);
    }
    __syncthreads();
    if (exact_lane() == 0)
        s->warp_sum[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        struct exact_sum total = s->warp_sum[0];
        for (int w = 1; w < EXACT_WARPS; w++)
            exact_sum_merge(&total, &s->warp_sum[w]);
        s->total[which] = total;
    }
}

template <bool kCluster>
static __device__ struct exact_sum exact_sum_row(const struct exact_solver *solver, int which) {
    struct exact_sum total = *exact_peer<kCluster>(&solver->s->total[which], 0);
    for (int r = 1; r < solver->chunk->args->ranks; r++) {
        const struct exact_sum other = *exact_peer<kCluster>(&solver->s->total[which], r);
        exact_sum_merge(&total, &other);
    }
    return total;
}

/* Exact sums of all weights and of those with a key in (low, high]. Both end up in every thread. */
template <bool kCluster>
static __device__ __noinline__ void exact_weigh_row(const struct exact_solver *solver, int32_t low,
                                                    int32_t high, bool everything,
                                                    struct exact_sum *all, struct exact_sum *part) {
    struct exact_sum mine = {{0, 0, 0}, 0}, mine_part = {{0, 0, 0}, 0};
    const struct exact_chunk chunk = *solver->chunk; /* in registers */
    const struct exact_solver here = {solver->s, NULL, solver->max, solver->p};
    exact_each_logit(&chunk, [&](float x, int32_t) {
        const int32_t key = exact_key(x);
        const bool in = key > low && key <= high;
        if (!(x > -CUDART_INF_F) || !(in || everything))
            return;
        struct exact_sum one = {{0, 0, 0}, 0};
        exact_sum_add(&one, exact_difference(&here, x));
        exact_sum_merge(&mine, &one);
        if (in)
            exact_sum_merge(&mine_part, &one);
    });
    exact_sum_block(solver->s, mine, 0);
    exact_sum_block(solver->s, mine_part, 1);
    exact_barrier<kCluster>(solver->s, solver->chunk->args->ranks);
    *all = exact_sum_row<kCluster>(solver, 0);
    *part = exact_sum_row<kCluster>(solver, 1);
    exact_barrier<kCluster>(solver->s, solver->chunk->args->ranks);
}

static __device__ __forceinline__ void exact_short_clear(struct exact_shared *s) {
    s->count = 0;
    s->key_min = INT32_MAX;
    s->key_max = INT32_MIN;
}

template <bool kCluster>
static __device__ __forceinline__ struct exact_found
exact_short_join(struct exact_shared *s, const struct exact_chunk *chunk) {
    const int lane = exact_lane();
    const bool in = lane < chunk->args->ranks;
    const int32_t count = in ? *exact_peer<kCluster>(&s->count, lane) : 0;
    const int32_t low = in ? *exact_peer<kCluster>(&s->key_min, lane) : INT32_MAX;
    const int32_t high = in ? *exact_peer<kCluster>(&s->key_max, lane) : INT32_MIN;
    struct exact_found found;
    found.count = __reduce_add_sync(~0u, count);
    found.key_min = __reduce_min_sync(~0u, low);
    found.key_max = __reduce_max_sync(~0u, high);
    found.listed = found.count <= EXACT_THREADS && __all_sync(~0u, count <= EXACT_SHORT_LIST);
    return found;
}

/* Lists the tokens of positive weight with keys in the bracket. */
template <bool kCluster>
static __device__ __noinline__ struct exact_found
exact_gather_row(const struct exact_solver *solver, const struct exact_bracket *bracket) {
    struct exact_shared *const s = solver->s;
    exact_barrier<kCluster>(solver->s, solver->chunk->args->ranks);
    if (threadIdx.x == 0)
        exact_short_clear(s);
    __syncthreads();
    int32_t key_min = INT32_MAX, key_max = INT32_MIN, unlisted = 0;
    const struct exact_chunk chunk = *solver->chunk; /* in registers */
    const struct exact_solver here = {solver->s, NULL, solver->max, solver->p};
    const int32_t key_low = bracket->key_low, key_high = bracket->key_high;
    exact_each_logit(&chunk, [&](float x, int32_t token) {
        const int32_t key = exact_key(x);
        const bool in = x > -CUDART_INF_F && key >= key_low && key <= key_high &&
                        exact_difference(&here, x) >= EXACT_LEAST_EXPONENT;
        if (!in)
            return;
        key_min = min(key_min, key);
        key_max = max(key_max, key);
        if (ptx_peek(&s->count) > EXACT_SHORT_LIST) { /* only the count matters */
            unlisted++;
            return;
        }
        const int32_t place = atomicAdd(&s->count, 1);
        if (place < EXACT_SHORT_LIST) {
            s->list[place].logit = x;
            s->list[place].token = token;
        }
    });
    key_min = __reduce_min_sync(~0u, key_min);
    key_max = __reduce_max_sync(~0u, key_max);
    unlisted = __reduce_add_sync(~0u, unlisted);
    if (exact_lane() == 0) {
        atomicMin(&s->key_min, key_min);
        atomicMax(&s->key_max, key_max);
        atomicAdd(&s->count, unlisted);
    }
    exact_barrier<kCluster>(solver->s, solver->chunk->args->ranks);
    return exact_short_join<kCluster>(s, solver->chunk);
}

/* Each listed token's exact prefix against the target: quadratic in the list, which is short. */
template <bool kCluster>
static __device__ __noinline__ void
exact_scan_list(const struct exact_solver *solver, const struct exact_sum *above,
                const struct exact_found *found, double target) {
    struct exact_shared *const s = solver->s;
    struct exact_weighed *const weighed = (struct exact_weighed *)s->low;
    int32_t place = threadIdx.x, rank = 0;
    const bool mine = place < found->count;
    struct exact_entry entry = {0.0f, 0};
    if (mine) {
        for (;; rank++) {
            const int32_t count = *exact_peer<kCluster>(&s->count, rank);
            if (place < count)
                break;
            place -= count;
        }
        entry = exact_peer<kCluster>(s->list, rank)[place];
        struct exact_sum one = {{0, 0, 0}, 0};
        exact_sum_add(&one, exact_difference(solver, entry.logit));
        struct exact_weighed *const to = &weighed[threadIdx.x];
        for (int i = 0; i < 3; i++)
            to->limb[i] = one.limb[i];
        to->limb[2] |= one.inexact ? 1ull << 63 : 0;
        to->entry = entry;
    }
    __syncthreads();
    if (mine) {
        struct exact_sum before = *above, upto;
        for (int32_t j = 0; j < found->count; j++) {
            const struct exact_weighed *const other = &weighed[j];
            if (other->entry.logit > entry.logit ||
                (other->entry.logit == entry.logit && other->entry.token < entry.token)) {
                before.limb[0] += other->limb[0];
                before.limb[1] += other->limb[1];
                before.limb[2] += other->limb[2] & ~(1ull << 63);
                before.inexact += (uint32_t)(other->limb[2] >> 63);
            }
        }
        upto = before;
        exact_sum_add(&upto, exact_difference(solver, entry.logit));
        if (exact_reached(&upto, target) && !exact_reached(&before, target))
            s->result = entry;
    }
    __syncthreads();
}

/* Rows in which only the maximum has weight (forced tokens) or all logits are equal: how many
 * tokens are kept, without any exp. 0 for other rows. */
template <bool kCluster>
static __device__ __noinline__ uint32_t exact_count_peak(const struct exact_solver *solver) {
    struct exact_shared *const s = solver->s;
    int32_t equal = 0, others = 0;
    const struct exact_chunk chunk = *solver->chunk; /* in registers */
    const struct exact_solver here = {solver->s, NULL, solver->max, solver->p};
    exact_each<false>(&chunk, [&](const float4(&x)[EXACT_BATCH], int32_t) {
#pragma unroll
        for (int k = 0; k < EXACT_BATCH; k++) {
            const float values[4] = {x[k].x, x[k].y, x[k].z, x[k].w};
#pragma unroll
            for (int j = 0; j < 4; j++) {
                equal += values[j] == here.max;
                others += values[j] != here.max &&
                          exact_difference(&here, values[j]) >= EXACT_LEAST_EXPONENT;
            }
        }
    });
    exact_barrier<kCluster>(s, solver->chunk->args->ranks);
    if (threadIdx.x == 0)
        s->count = s->key_max = 0;
    __syncthreads();
    equal = __reduce_add_sync(~0u, equal);
    others = __reduce_add_sync(~0u, others);
    if (exact_lane() == 0) {
        atomicAdd(&s->count, equal);
        atomicAdd(&s->key_max, others);
    }
    exact_barrier<kCluster>(s, solver->chunk->args->ranks);
    equal = others = 0;
    for (int r = 0; r < solver->chunk->args->ranks; r++) {
        equal += *exact_peer<kCluster>(&s->count, r);
        others += *exact_peer<kCluster>(&s->key_max, r);
    }
    exact_barrier<kCluster>(s, solver->chunk->args->ranks);
    /* All weights are 1: the sum of the first n is n, the target p * equal, rounded once. */
    return others ? 0 : (uint32_t)max(ceil((double)solver->p * (double)equal), 1.0);
}

/* The whole solution. The boundary surely lies in the bracket's keys; its other fields are not
 * used. Returns the number of tokens kept at the boundary's logit (s->result.logit), or 0 when
 * s->result is the last kept token itself. */
template <bool kCluster>
static __device__ __noinline__ uint32_t exact_escalate(const struct exact_solver *solver,
                                                       struct exact_bracket bracket) {
    struct exact_shared *const s = solver->s;
    struct exact_sum all, above, part;
    /* A bracket under the maximum has the maximum's weight above it and its own. */
    const uint32_t peak =
        bracket.key_high < exact_key(solver->max) ? 0 : exact_count_peak<kCluster>(solver);
    if (peak) {
        if (threadIdx.x == 0)
            s->result.logit = solver->max;
        __syncthreads();
        return peak;
    }
    exact_weigh_row<kCluster>(solver, bracket.key_high, INT32_MAX, true, &all, &above);
    const double target = (double)solver->p * exact_sum_round(&all);
    struct exact_found found = exact_gather_row<kCluster>(solver, &bracket);
    while (found.key_min < found.key_max && !found.listed) {
        const int32_t middle =
            (int32_t)(found.key_min +
                      (int64_t)(((uint32_t)found.key_max - (uint32_t)found.key_min) / 2));
        exact_weigh_row<kCluster>(solver, middle, found.key_max, false, &all, &part);
        exact_sum_merge(&part, &above);
        bracket.key_low = found.key_min;
        bracket.key_high = found.key_max;
        if (exact_reached(&part, target)) {
            bracket.key_low = middle + 1;
        } else {
            bracket.key_high = middle;
            above = part;
        }
        found = exact_gather_row<kCluster>(solver, &bracket);
    }
    if (threadIdx.x == 0) {
        s->result.logit = solver->max; /* kept should nothing be found (a row of hazards) */
        s->result.token = INT32_MAX;
    }
    __syncthreads();
    if (found.count <= 0)
        return 0;
    if (found.key_min == found.key_max) {
        if (threadIdx.x == 0)
            s->result.logit = exact_logit(found.key_max);
        __syncthreads();
        struct exact_sum one = {{0, 0, 0}, 0};
        exact_sum_add(&one, exact_difference(solver, exact_logit(found.key_max)));
        return exact_count_ties(&above, &one, (uint32_t)found.count, target);
    }
    exact_scan_list<kCluster>(solver, &above, &found, target);
    return 0;
}

#endif
