/* The kernel of `exact`: one row a cluster (or block), read once, written once. */
#ifndef TOPP_KERNELS_CUDA_EXACT_KERNEL_CUH
#define TOPP_KERNELS_CUDA_EXACT_KERNEL_CUH

#include "kernels/cuda/exact_escalate.cuh"
#include "kernels/cuda/exact_quick.cuh"

/* What becomes of a row; written to the workspace for whoever wants to count. */
enum exact_path { EXACT_FAST = 0, EXACT_ESCALATED = 1 };

static __device__ __forceinline__ void exact_open(const struct exact_args *args, int64_t row,
                                                  int32_t rank, struct exact_chunk *chunk) {
    float *const start = args->logits + row * args->stride;
    const int32_t shift = (int32_t)((uintptr_t)start / 4 % 4);
    const int64_t vectors = (args->vocab + shift + 3) / 4;
    const int64_t begin = (int64_t)rank * args->chunk;
    const int64_t left = vectors - begin;
    chunk->args = args;
    chunk->base = start - shift + 4 * begin;
    chunk->first = (int32_t)(4 * begin) - shift;
    chunk->vectors = left <= 0 ? 0 : left < args->chunk ? (int32_t)left : args->chunk;
    chunk->rank = rank;
}

/* Extremes of what came first, for the whole block; and shared memory ready for sums. */
static __device__ __forceinline__ struct exact_early
exact_prepare(struct exact_shared *s, const struct exact_chunk *chunk) {
    const float4 x = exact_first(chunk);
    const int32_t warp_max = __reduce_max_sync(~0u, exact_key(exact_max4(x)));
    const int32_t warp_min = __reduce_min_sync(~0u, exact_first_min(chunk, x));
    if (exact_lane() == 0) {
        s->warp_max[threadIdx.x / 32] = warp_max;
        s->warp_min[threadIdx.x / 32] = warp_min;
    }
    __syncthreads();
    struct exact_early early;
    early.max = __reduce_max_sync(~0u, s->warp_max[exact_lane() % EXACT_WARPS]);
    early.min = __reduce_min_sync(~0u, s->warp_min[exact_lane() % EXACT_WARPS]);
    if (threadIdx.x == 0) {
        s->coarse.early_max = early.max;
        /* A block without logits goes with any row. */
        s->coarse.narrow_min = chunk->vectors > 0 ? INT32_MIN : INT32_MAX;
        s->coarse.narrow_max = chunk->vectors > 0 ? INT32_MAX : INT32_MIN;
    }
    return early;
}

/* Sums the row and finds the boundary's bucket, in a second try with a better floor if the first
 * left the ring's window. Everything ends up in s->found and its neighbours. */
template <bool kCluster>
static __device__ __forceinline__ void exact_find(struct exact_shared *s,
                                                  const struct exact_chunk *chunk, float p) {
    const struct exact_early early = exact_prepare(s, chunk);
    float least = exact_floor(exact_logit(early.max));
    const bool counted = exact_count_keys(s, chunk, &early);
#pragma unroll 1
    for (int again = 0;; again++) {
        const float mine = counted && !again ? -CUDART_INF_F : exact_histogram(s, chunk, least);
        const int32_t warp_max = __reduce_max_sync(~0u, exact_key(mine));
        if (exact_lane() == 0)
            atomicMax(&s->coarse.chunk_max, warp_max);
        __syncthreads();
        exact_coarsen(s, chunk);
        const uint32_t phase = s->phase;
        if (!again)
            exact_meet<kCluster>();
        __syncthreads();
        if (kCluster && (int32_t)threadIdx.x / 32 < chunk->args->ranks)
            exact_send(s, exact_coarse_in() + chunk->rank, &s->coarse,
                       (int32_t)threadIdx.x / 32 == chunk->rank ? 0 : sizeof s->coarse,
                       threadIdx.x / 32, phase);
        if (threadIdx.x < 32)
            exact_locate<kCluster>(s, chunk, p);
        __syncthreads();
        if (s->found != EXACT_ALIASED || again)
            return;
        least = exact_floor(s->max);
        exact_barrier<kCluster>(s, chunk->args->ranks);
        exact_clear(s, chunk->args);
        if (threadIdx.x == 0) /* what floor the sums have now */
            s->coarse.early_max = exact_key(s->max);
        __syncthreads();
    }
}

/* From a bracket to the boundary in s->result. Returns the number of tokens kept at its logit, 0
 * for "up to the token"; *sure false where only binary64 can tell. */
template <bool kCluster>
static __device__ __forceinline__ uint32_t exact_settle(struct exact_shared *s,
                                                        const struct exact_chunk *chunk,
                                                        struct exact_bracket *bracket, bool *sure) {
    const int most = 8; /* each round divides the bracket by up to 1,024 */
    *sure = false;
    if (threadIdx.x == 0)
        exact_list_clear(s);
    __syncthreads();
#pragma unroll 1
    for (int round = 0; round < most; round++) {
        if (round) {
            exact_barrier<kCluster>(s, chunk->args->ranks);
            if (threadIdx.x == 0)
                exact_list_clear(s);
            __syncthreads();
        }
        exact_gather(s, chunk, bracket);
        exact_share<kCluster>(s, chunk);
        const struct exact_found found = exact_join<kCluster>(s, chunk);
        if (found.count <= 0) { /* the target is within a rounding of what lies above */
            exact_bracket_open(bracket);
            return 0;
        }
        if (found.key_min == found.key_max && found.count > EXACT_FINAL) {
            const uint32_t kept = exact_settle_ties(found, *bracket);
            *sure = kept > 0;
            if (!*sure && !round) /* the boundary may lie beside the bucket */
                exact_bracket_open(bracket);
            if (threadIdx.x == 0)
                s->result.logit = exact_logit(found.key_max);
            __syncthreads();
            return kept;
        }
        if (found.listed) {
            const enum exact_verdict verdict =
                exact_settle_list<kCluster>(s, chunk, &found, bracket);
            *sure = verdict == EXACT_DONE;
            if (verdict == EXACT_NARROWED)
                continue;
            if (verdict == EXACT_UNSURE && (s->bin_first < 0 || s->bin_last < 0))
                exact_bracket_open(bracket);
            return 0;
        }
        /* Copies: what a called function gets by address would live in memory for all. */
        const struct exact_chunk chunk_copy = *chunk;
        const struct exact_found found_copy = found;
        struct exact_bracket narrower = *bracket;
        const bool inside = exact_settle_crowd<kCluster>(s, &chunk_copy, &found_copy, &narrower);
        *bracket = narrower;
        if (!inside) {
            exact_bracket_open(bracket);
            return 0;
        }
    }
    return 0;
}

/* Writes the row's first or last vector, which other rows or the padding share. */
static __device__ __noinline__ void exact_store_partial(float *at, int32_t token, int32_t vocab,
                                                        float4 v) {
    if (token >= 0)
        at[0] = v.x;
    if (token + 1 >= 0 && token + 1 < vocab)
        at[1] = v.y;
    if (token + 2 >= 0 && token + 2 < vocab)
        at[2] = v.z;
    if (token + 3 < vocab)
        at[3] = v.w;
}

/* Masks all of a vector but what is above the boundary, or equal and up to its token. */
static __device__ __forceinline__ void exact_write_vector(const struct exact_chunk *chunk, float4 v,
                                                          int32_t i, float logit, int32_t token,
                                                          float mask) {
    const int32_t first = chunk->first + 4 * i;
    const float x[4] = {v.x, v.y, v.z, v.w};
    float out[4];
    bool equal = false;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        out[j] = x[j] > logit ? x[j] : mask;
        equal |= x[j] == logit;
    }
    if (equal) {
#pragma unroll
        for (int j = 0; j < 4; j++)
            out[j] = x[j] == logit && first + j <= token ? x[j] : out[j];
    }
    uint32_t changed = 0;
#pragma unroll
    for (int j = 0; j < 4; j++)
        changed |= __float_as_uint(out[j]) ^ __float_as_uint(x[j]);
    if (!changed || i >= chunk->vectors)
        return;
    float *const at = chunk->base + 4 * (int64_t)i;
    const float4 written = make_float4(out[0], out[1], out[2], out[3]);
    if (exact_whole(chunk, first))
        ptx_store(at, written);
    else
        exact_store_partial(at, first, (int32_t)chunk->args->vocab, written);
}

static __device__ __forceinline__ void exact_write(const struct exact_chunk *chunk, float logit,
                                                   int32_t token, float mask) {
    exact_each<false>(chunk, [&](const float4(&x)[EXACT_BATCH], int32_t v) {
#pragma unroll
        for (int k = 0; k < EXACT_BATCH; k++)
            exact_write_vector(chunk, x[k], v + k * EXACT_THREADS, logit, token, mask);
    });
}

static __device__ __forceinline__ void exact_write_quick(const struct exact_chunk *chunk,
                                                         struct exact_entry last) {
    quick_each(chunk, [&](float4 x, int32_t v) {
        exact_write_vector(chunk, x, v, last.logit, last.token, chunk->args->mask_value);
    });
}

/* The boundary of the row, into s->result. False: leave the row as it is. Each block may see its
 * own token: what it keeps of ties. */
template <bool kCluster>
static __device__ __forceinline__ bool exact_boundary(struct exact_shared *s,
                                                      const struct exact_chunk *chunk, float p,
                                                      uint32_t *escalated) {
    exact_find<kCluster>(s, chunk, p);
    if (s->found == EXACT_EMPTY)
        return false;
    struct exact_bracket bracket = {INT32_MIN, INT32_MAX, 0.0, 0.0, 0.0};
    bool sure = false;
    uint32_t ties = s->found == EXACT_NARROW ? s->count : 0;
    if (s->found == EXACT_FOUND) {
        bracket.target = s->target - s->found_above;
        bracket.margin =
            exact_margin(chunk->args, s->target, (double)p, EXACT_WEIGHT_ERROR, EXACT_BELOW_WEIGHT);
        bracket.unit = s->found_unit;
        exact_bucket_keys(s->found_bits, &bracket);
        ties = exact_settle<kCluster>(s, chunk, &bracket, &sure);
    }
    if (!sure && !ties) {
        const struct exact_chunk chunk_copy = *chunk;
        const struct exact_solver solver = {s, &chunk_copy, s->max, p};
        exact_barrier<kCluster>(s, chunk->args->ranks);
        ties = exact_escalate<kCluster>(&solver, bracket);
    }
    *escalated = sure ? EXACT_FAST : EXACT_ESCALATED;
    if (ties) {
        const struct exact_chunk chunk_copy = *chunk;
        if (s->found == EXACT_NARROW)
            exact_tie_known(s, &chunk_copy);
        else
            exact_tie<kCluster>(s, &chunk_copy, s->result.logit, ties);
    }
    return true;
}

template <bool kCluster, bool kQuick>
static __global__ void __launch_bounds__(EXACT_THREADS, 1)
    exact_row_kernel(const __grid_constant__ struct exact_args args) {
    struct exact_shared *const s = exact_memory();
    const uint32_t row_in_grid = blockIdx.x / (uint32_t)args.ranks;
    const int64_t row = row_in_grid;
    const int32_t rank = (int32_t)(blockIdx.x - row_in_grid * (uint32_t)args.ranks);
    const float p = args.p[row];
    const bool first = rank == 0 && threadIdx.x == 0;
    struct exact_chunk chunk;
    exact_open(&args, row, rank, &chunk);
    exact_fetch_first(&chunk); /* before p is needed, which takes its time */
    if constexpr (kQuick)
        quick_open(quick_memory(&args));
    if (!(p < 1.0f)) { /* the whole cluster leaves */
        if (first)
            args.escalated[row] = EXACT_FAST;
        ptx_copy_wait_all();
        return;
    }
    if constexpr (kQuick) {
        exact_arrive<true>();
        const enum quick_outcome outcome = exact_quick(&chunk, p);
        if (outcome != QUICK_UNSURE) {
            /* All that others send here has come in: the block may leave before them. */
            exact_write_quick(&chunk, quick_memory(&args)->result);
            if (first)
                args.escalated[row] = outcome == QUICK_SOLVED ? EXACT_ESCALATED : EXACT_FAST;
            return;
        }
    }
    exact_barrier_init<kCluster>(s, args.ranks);
    exact_clear(s, &args);
    if (threadIdx.x == 0)
        s->coarse.chunk_max = INT32_MIN;
    uint32_t escalated = EXACT_FAST;
    const bool masked = exact_boundary<kCluster>(s, &chunk, p, &escalated);
    /* Others may still read this block's shared memory: it must not leave before them. */
    exact_arrive<kCluster>();
    if (masked)
        exact_write(&chunk, s->result.logit, s->result.token, args.mask_value);
    if (first)
        args.escalated[row] = escalated;
    exact_meet<kCluster>();
}

#ifdef EXACT_QUICK
#define EXACT_QUICK_KERNEL exact_row_kernel<true, true>
#else
#define EXACT_QUICK_KERNEL NULL
#endif

/* What the launcher needs to know of this build of the kernel. */
#define EXACT_KERNEL                                                                               \
    {                                                                                              \
        exact_row_kernel<false, false>, exact_row_kernel<true, false>, EXACT_QUICK_KERNEL,         \
            EXACT_THREADS, sizeof(struct exact_shared),                                            \
            sizeof(struct exact_coarse) + sizeof(struct exact_fine),                               \
            EXACT_BUCKETS * sizeof(uint32_t), sizeof(struct quick_shared),                         \
    }

#endif
