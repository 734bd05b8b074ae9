/* The short way to a row's boundary, for rows whose blocks hold them on chip, a few vectors a
 * thread: there latency is what counts. Level by level the boundary's bin is divided by 128: half
 * logits, then halves of steps, then keys, for as long as it is crowded; until its tokens fit
 * lists. One exchange a level, and one for the lists. A row that does not come out certain takes
 * the general way. */
#ifndef TOPP_KERNELS_CUDA_EXACT_QUICK_CUH
#define TOPP_KERNELS_CUDA_EXACT_QUICK_CUH

#include "kernels/cuda/exact_quick_steps.cuh"

/* The token up to which this block keeps ties of the row's first `kept`, from how many lie in
 * blocks before and how many here, into q->result. Ends behind a barrier of the block. */
static __device__ __noinline__ void quick_tie(struct quick_shared *q,
                                              const struct exact_chunk *chunk, float logit,
                                              uint32_t kept, uint32_t before, uint32_t here) {
    const int32_t side = exact_tie_side(kept, before, here); /* the same in the block */
    if (side == 0) {
        const struct exact_ties ties = exact_tie_count(chunk, logit, q->spans);
        exact_tie_find(chunk, logit, kept - before, ties, q->spans, &q->result.token);
    }
    if (threadIdx.x == 0) {
        q->result.logit = logit;
        if (side)
            q->result.token = side;
    }
    __syncthreads();
}

/* A bin of one value with more tokens than lists hold; count: of the lane's block. */
static __device__ __noinline__ bool quick_settle_ties(struct quick_shared *q,
                                                      const struct exact_chunk *chunk,
                                                      uint32_t count, int32_t key,
                                                      struct quick_bracket found) {
    const float logit = exact_logit(key);
    const double one = (double)quick_fixed(q, quick_step(logit)) * found.unit;
    const double rest = found.target - found.above, kept = ceil(rest / one);
    const double here = kept * one - rest;
    if (!(kept >= 1.0 && kept <= (double)__reduce_add_sync(~0u, count) && here > found.margin &&
          one - here > found.margin))
        return false;
    const uint32_t before = __reduce_add_sync(~0u, exact_lane() < chunk->rank ? count : 0);
    quick_tie(q, chunk, logit, (uint32_t)kept, before, __shfl_sync(~0u, count, chunk->rank));
    return true;
}

/* A row of few neighbouring values, counted by its blocks: solved with the oracle's own
 * arithmetic. */
static __device__ __noinline__ void quick_narrow(struct quick_shared *q,
                                                 const struct exact_chunk *chunk,
                                                 const union quick_message *in, int32_t max_key,
                                                 float p) {
    if (threadIdx.x < 32) {
        const int lane = exact_lane();
        uint32_t count[2] = {0, 0}, before[2] = {0, 0}, here[2] = {0, 0}, kept;
        for (int rank = 0; rank < chunk->args->ranks; rank++)
            for (int n = 0; n < 2; n++) {
                const uint32_t place = (uint32_t)(2 * lane + n) -
                                       ((uint32_t)max_key - (uint32_t)in[rank].sums.max_key);
                const uint32_t more =
                    place < EXACT_NARROW_KEYS ? quick_counts(&in[rank].sums)[place] : 0;
                count[n] += more;
                before[n] += rank < chunk->rank ? more : 0;
                here[n] = rank == chunk->rank ? more : here[n];
            }
        const int n = exact_solve_counts(count, max_key, p, &kept);
        if (n >= 0) {
            q->result.logit = exact_logit(max_key - 2 * lane - n);
            q->kept = kept;
            q->ties_before = n ? before[1] : before[0];
            q->ties_here = n ? here[1] : here[0];
        }
    }
    __syncthreads();
    const float logit = q->result.logit;
    const uint32_t kept = q->kept;
    __syncthreads();
    quick_tie(q, chunk, logit, kept, q->ties_before, q->ties_here);
}

/* One level by keys (exchange `number`), and the lists of the boundary's bin there (the next). NULL
 * if it is not found. */
static __device__ __noinline__ const union quick_message *
quick_divide(struct quick_shared *q, const struct exact_chunk *chunk,
             const struct quick_level *level, struct quick_bracket *found, int number) {
    uint32_t *const columns = quick_columns(q, 1);
    quick_clear(columns);
    __syncthreads();
    quick_sum<true>(q, chunk, level, columns);
    quick_add_up(q, columns, QUICK_BINS, false, 0);
    const union quick_message *const in = quick_exchange(q, chunk, number, QUICK_LEVEL_BYTES);
    quick_total(q, in, chunk->args->ranks, false, 0);
    const double steps[3] = {1.0, 1.0, 1.0};
    int bin;
    if (!quick_find(q, found->unit, steps, -1.0, found, &bin))
        return NULL;
    quick_gather<true>(q, chunk, level, (uint32_t)bin);
    return quick_exchange(q, chunk, number + 1, sizeof(struct quick_list));
}

enum quick_outcome { QUICK_UNSURE = 0, QUICK_CERTAIN, QUICK_SOLVED /* in binary64 */ };

/* The row's boundary into quick_memory()->result. QUICK_UNSURE: not for this way; nothing is on its
 * way between blocks then. */
static __device__ __forceinline__ enum quick_outcome exact_quick(const struct exact_chunk *chunk,
                                                                 float p) {
    const struct exact_args *const args = chunk->args;
    struct quick_shared *const q = quick_memory(args);
    const int lane = exact_lane();
    const bool in_row = lane < args->ranks;
    struct quick_bracket found = {0.0, 0.0, 0.0, 1.0};
    double scale = exact_e_coarse(lane);
    double steps[3] = {EXACT_E_HALF_DOWN, EXACT_E_DOWN, EXACT_E_3_HALVES_DOWN};
    ptx_copy_wait_all();
    const struct quick_extent extent = quick_first(q, chunk, quick_columns(q, 0));
    const float block_max = exact_logit(extent.max_key);
    struct quick_level level = {quick_base(block_max), QUICK_STEP_BITS, INT32_MIN,
                                block_max - 65.0f};
    if (extent.wide) {
        quick_clear(quick_columns(q, 0));
        __syncthreads();
    }
    const union quick_message *in;
    int bin, number = 0;
#pragma unroll 1
    for (;; number++) { /* half logits, then halves of steps */
        if (number || extent.wide)
            quick_sum<false>(q, chunk, &level, quick_columns(q, number));
        quick_add_up(q, quick_columns(q, number), number ? QUICK_BINS : QUICK_TOP_BINS,
                     !number && !extent.wide, level.base >> QUICK_STEP_BITS);
        if (number == 0) {
            if (quick_is_narrow(extent.max_key, extent.min_key)) {
                const struct exact_chunk copy = *chunk;
                quick_count(q, &copy, extent.max_key);
            }
            exact_meet<true>();
        }
        in = quick_exchange(q, chunk, number, number ? QUICK_LEVEL_BYTES : QUICK_TOP_BYTES);
        if (number == 0) {
            const int32_t max_key =
                __reduce_max_sync(~0u, in_row ? in[lane].sums.max_key : INT32_MIN);
            const int32_t min_key =
                __reduce_min_sync(~0u, in_row ? in[lane].sums.min_key : INT32_MAX);
            const float row_max = exact_logit(max_key);
            if (fabsf(row_max) < 0x1p120f && quick_is_narrow(max_key, min_key)) {
                const struct exact_chunk copy = *chunk;
                quick_narrow(q, &copy, in, max_key, p);
                return QUICK_SOLVED;
            }
            if (!(fabsf(row_max) < EXACT_QUICK_GREATEST))
                return QUICK_UNSURE;
            level.base = quick_base(row_max);
            level.low = row_max - 65.0f;
        }
        quick_total(q, in, args->ranks, number == 0, level.base);
        if (!quick_find(q, scale, steps, number ? -1.0 : (double)p, &found, &bin))
            return QUICK_UNSURE;
        if (number)
            break;
        found.unit = __shfl_sync(~0u, scale, bin / 4);
        found.unit *= bin % 4 == 0   ? 1.0
                      : bin % 4 == 1 ? steps[0]
                      : bin % 4 == 2 ? steps[1]
                                     : steps[2];
        found.margin = exact_margin(args, found.target, (double)p, EXACT_QUICK_ERROR,
                                    EXACT_QUICK_BELOW_WEIGHT);
        const bool fits = quick_fits(in, args->ranks, level.base, (uint32_t)bin);
        level.base -= (uint32_t)bin << QUICK_STEP_BITS;
        bin = 0;
        if (fits)
            break;
        scale = found.unit;
        steps[0] = steps[1] = steps[2] = 1.0;
        level.shift = 0;
    }
    quick_gather<false>(q, chunk, &level, (uint32_t)bin);
    in = quick_exchange(q, chunk, ++number, sizeof(struct quick_list));
#pragma unroll 1
    for (;;) {
        struct exact_list head = {0, INT32_MAX, INT32_MIN, 0};
        if (in_row)
            head = in[lane].list.head;
        const int32_t key_max = __reduce_max_sync(~0u, head.key_max);
        const int32_t key_min = __reduce_min_sync(~0u, head.key_min);
        const int bits = 32 - __clz((uint32_t)key_max - (uint32_t)key_min);
        level.base = (uint32_t)key_max;
        level.least = key_min;
        level.shift = bits > 7 ? bits - 7 : 0;
        const int32_t count = (int32_t)__reduce_add_sync(~0u, head.count);
        const bool listed = !__any_sync(~0u, head.count > QUICK_ROOM);
        if (key_min == key_max && (count > EXACT_FINAL || !listed)) {
            /* Copies: what a called function gets by address would live in memory for all. */
            const struct exact_chunk copy = *chunk;
            return quick_settle_ties(q, &copy, head.count, key_max, found) ? QUICK_CERTAIN
                                                                           : QUICK_UNSURE;
        }
        if (listed) {
            struct quick_bracket last = found;
            quick_collect(q, in, args->ranks, head.count, key_max, level.shift);
            const enum quick_verdict verdict = quick_settle(q, count, &last);
            if (verdict != QUICK_CROWDED)
                return verdict == QUICK_HERE ? QUICK_CERTAIN : QUICK_UNSURE;
            __syncthreads(); /* all have read the number of candidates */
            quick_forget(q);
        }
        if (number + 2 >= QUICK_MESSAGES)
            return QUICK_UNSURE;
        const struct exact_chunk copy = *chunk;
        const struct quick_level level_copy = level;
        struct quick_bracket narrower = found;
        in = quick_divide(q, &copy, &level_copy, &narrower, number + 1);
        if (!in)
            return QUICK_UNSURE;
        number += 2;
        found = narrower;
    }
}

#endif
