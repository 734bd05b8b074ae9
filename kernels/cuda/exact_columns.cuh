/* What the short way of `exact` works with: weights by steps of 1/128 logit, sums in columns, and
 * messages between the blocks of a row.
 *
 * A logit x lies at step c = rint(128 x), d = x - c / 128 exactly, |d| <= 1/256. Sums are of
 * integers, 2^31 e^(x - h) with h the start of x's half logit (64 steps): a table for the step, a
 * polynomial for d. Each lane of a warp sums in its own bank of shared memory: no two atomics of a
 * warp meet. Error bound: docs/exact.md. */
#ifndef TOPP_KERNELS_CUDA_EXACT_COLUMNS_CUH
#define TOPP_KERNELS_CUDA_EXACT_COLUMNS_CUH

#include "kernels/cuda/exact_ties.cuh"

#define EXACT_QUICK_ERROR 1.1e-9         /* of a weight, relative */
#define EXACT_QUICK_BELOW_WEIGHT 7.1e-18 /* e^-39.5 and slack: QUICK_TOP_BINS half logits */
#define EXACT_QUICK_GREATEST 8192.0f     /* logits past it go the general way */

enum {
    QUICK_BINS = 128,    /* a level divides by as many */
    QUICK_TOP_BINS = 80, /* sent of the first level: 40 logits from a block maximum down */
    QUICK_STEPS = 64,    /* of 1/128 logit in each half logit */
    QUICK_STEP_BITS = 7, /* halves of steps in a half logit: 2^7 */
    QUICK_ROOM = 62,     /* tokens of a block in a list */
    QUICK_FINAL = 256,   /* tokens compared one by one at the end */
    QUICK_MESSAGES = 16, /* exchanges until the general way is taken */
};

/* What blocks send each other. Sizes are multiples of 16 bytes. */
struct quick_sums {
    int32_t max_key, min_key;
    uint32_t base; /* of the first level: see quick_base */
    uint32_t pad;
    uint64_t fixed[QUICK_BINS]; /* from the highest down; behind the first level's: quick_counts */
};

struct quick_list {
    struct exact_list head;
    struct exact_entry entries[QUICK_ROOM];
};

union quick_message {
    struct quick_sums sums;
    struct quick_list list;
};

/* With the first level: tokens of each key from max_key down, in a block that has no others; else
 * zeros. */
static __device__ __forceinline__ uint32_t *quick_counts(struct quick_sums *sums) {
    return (uint32_t *)&sums->fixed[QUICK_TOP_BINS];
}

static __device__ __forceinline__ const uint32_t *quick_counts(const struct quick_sums *sums) {
    return (const uint32_t *)&sums->fixed[QUICK_TOP_BINS];
}

enum { /* bytes of a level's message */
       QUICK_LEVEL_BYTES = 16 + QUICK_BINS * sizeof(uint64_t),
       QUICK_TOP_BYTES =
           16 + QUICK_TOP_BINS * sizeof(uint64_t) + EXACT_NARROW_KEYS * sizeof(uint32_t),
};
static_assert(QUICK_TOP_BYTES <= QUICK_LEVEL_BYTES, "counts behind the first level's sums");

struct quick_candidate {
    float logit;
    int32_t token;
    uint32_t weight, bin;
};

struct __align__(16) quick_shared {
    union {
        uint32_t columns[QUICK_BINS * 2 * 32]; /* bin, low or high halves, lane */
        struct quick_candidate candidates[EXACT_GREATEST_CLUSTER * QUICK_ROOM];
    };
    uint2 table[QUICK_STEPS * 32];                          /* a copy for each lane */
    union quick_message in[2][EXACT_GREATEST_CLUSTER], out; /* by turns */
    uint64_t barrier[2];                                    /* mbarriers, by turns */
    uint64_t totals[QUICK_BINS];
    uint32_t last[2][QUICK_BINS]; /* of the candidates: low and high halves */
    struct quick_candidate final_list[QUICK_FINAL];
    int32_t warp_max[32], warp_min[32], warp_least[32];
    uint32_t spans[EXACT_WARPS]; /* of exact_tie_count */
    struct exact_entry result;
    int32_t sure, final_count;
    uint32_t kept, ties_before, ties_here;
    double target, above; /* of quick_find */
    int32_t bin;
};

static __device__ __forceinline__ struct quick_shared *quick_memory(const struct exact_args *args) {
    return (struct quick_shared *)(exact_cache(args) + args->cached);
}

/* e^(step / 128) in units of 2^-31, step < QUICK_STEPS: rounded to an integer, and as binary32. */
static __device__ __forceinline__ uint2 quick_e_step(uint32_t step) {
    const double powers[6] = {0x1.0202015600446p+0, 0x1.04080ab55de39p+0, 0x1.08205601127edp+0,
                              0x1.1082b577d34edp+0, 0x1.2216045b6f5cdp+0, 0x1.48b5e3c3e8186p+0};
    const double e = 0x1p31 * exact_product(step, powers);
    return make_uint2((uint32_t)rint(e), __float_as_uint((float)e));
}

/* order numbers the halves of steps, in the order of the logits; d is what x lies above its step.
 */
struct quick_step {
    uint32_t order;
    float d;
};

static __device__ __forceinline__ struct quick_step quick_step(float x) {
    struct quick_step step;
    const float shifted = __fmaf_rn(x, 128.0f, EXACT_MAGIC);
    step.d = __fmaf_rn(__fadd_rn(shifted, -EXACT_MAGIC), -1.0f / 128.0f, x);
    step.order = 2 * __float_as_uint(shifted) + (step.d >= 0.0f);
    return step;
}

/* 2^31 e^(x - h). */
static __device__ __forceinline__ uint32_t quick_fixed(const struct quick_shared *q,
                                                       struct quick_step step) {
    const uint2 e = q->table[step.order / 2 % QUICK_STEPS * 32 + exact_lane()];
    float rest = __fmaf_rn(step.d, 1.0f / 6.0f, 0.5f);
    rest = __fmaf_rn(step.d, __fmul_rn(step.d, rest), step.d); /* e^d - 1 */
    return e.x + (uint32_t)__float2int_rn(__fmul_rn(__uint_as_float(e.y), rest));
}

/* The last half step of x's half logit: the base of a level of half logits that starts with x. Far
 * below any row of this way it stays as far below. */
static __device__ __forceinline__ uint32_t quick_base(float x) {
    return quick_step(fmaxf(x, -2.0f * EXACT_QUICK_GREATEST)).order | ((1 << QUICK_STEP_BITS) - 1);
}

/* How a level divides the logits into bins, the highest first: by half steps, or by keys. Logits
 * outside have places from QUICK_BINS on. */
struct quick_level {
    uint32_t base;
    int32_t shift;
    int32_t least; /* by keys: those below are outside */
    float low;     /* logits are raised to it, which is outside, so that none aliases */
};

template <bool kKeys>
static __device__ __forceinline__ uint32_t quick_place(const struct quick_level *level, float x,
                                                       struct quick_step step) {
    if (!kKeys)
        return (level->base - step.order) >> level->shift;
    const int32_t key = exact_key(x);
    return key < level->least ? (uint32_t)QUICK_BINS
                              : (level->base - (uint32_t)key) >> level->shift;
}

/* Calls visit(vector, v) for the chunk's vectors of this thread: few. */
template <class Visit>
static __device__ __forceinline__ void quick_each(const struct exact_chunk *chunk, Visit visit) {
    const float4 *const cache = exact_cache(chunk->args);
#pragma unroll 1
    for (int32_t v = threadIdx.x; v < chunk->vectors; v += EXACT_THREADS)
        visit(cache[v], v);
}

/* Columns of even and odd levels: the odd ones over the general way's sums. */
static __device__ __forceinline__ uint32_t *quick_columns(struct quick_shared *q, int number) {
    return number & 1 ? (uint32_t *)exact_memory() : q->columns;
}
static_assert(sizeof(((struct quick_shared *)0)->columns) <=
                  2 * sizeof(((struct exact_shared *)0)->low),
              "columns over low and high");

/* Adds the weights to the lane's column where the places are bins. Apart from what comes before, so
 * that no load has to move up across an atomic. */
static __device__ __forceinline__ void quick_add(ptx_shared column, const uint32_t (&place)[4],
                                                 const uint32_t (&fixed)[4]) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
        if (place[j] >= QUICK_BINS)
            continue;
        ptx_add(column + 256 * place[j], fixed[j] & 0xffff);
        ptx_add(column + 256 * place[j] + 128, fixed[j] >> 16);
    }
}

/* Weights of the chunk's logits into the columns of a level. Ends behind a barrier of the block. */
template <bool kKeys>
static __device__ __forceinline__ void
quick_sum(const struct quick_shared *q, const struct exact_chunk *chunk,
          const struct quick_level *level, uint32_t *columns) {
    const ptx_shared column = ptx_shared_of(columns + exact_lane());
    quick_each(chunk, [&](float4 x, int32_t) {
        const float values[4] = {x.x, x.y, x.z, x.w};
        uint32_t fixed[4], place[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float value = fmaxf(values[j], level->low); /* NaN becomes low, too */
            const struct quick_step step = quick_step(value);
            fixed[j] = quick_fixed(q, step);
            place[j] = quick_place<kKeys>(level, value, step);
        }
        quick_add(column, place, fixed);
    });
    __syncthreads();
}

/* Adds the columns up into the first `most` sums of q->out, four threads a bin. ring: bins stand by
 * half logit modulo QUICK_BINS, and `top` is the one that comes first; else they stand in order.
 * Ends behind a barrier of the block. */
static __device__ __forceinline__ void quick_add_up(struct quick_shared *q, const uint32_t *columns,
                                                    uint32_t most, bool ring, uint32_t top) {
    if (threadIdx.x < 4 * QUICK_BINS) {
        const uint32_t bin = threadIdx.x / 4;
        const uint32_t place = ring ? (top - bin) % QUICK_BINS : bin;
        const uint4 *const from = (const uint4 *)(columns + bin * 64 + threadIdx.x % 4 * 8);
        const int first = bin & 1; /* keeps neighbours out of each other's banks */
        const uint4 a = from[first], b = from[1 - first], c = from[8 + first], d = from[9 - first];
        const uint32_t low = (a.x + a.y + a.z + a.w) + (b.x + b.y + b.z + b.w);
        const uint32_t high = (c.x + c.y + c.z + c.w) + (d.x + d.y + d.z + d.w);
        uint64_t sum = low + ((uint64_t)high << 16);
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        if (threadIdx.x % 4 == 0 && place < most)
            q->out.sums.fixed[place] = sum;
    }
    __syncthreads();
}

static __device__ __forceinline__ void quick_barriers_init(struct quick_shared *q) {
    for (int i = 0; i < 2; i++)
        ptx_barrier_init(&q->barrier[i], 1);
    ptx_barrier_init_release();
}

/* Exchange number `number`, from 0: sends q->out to all blocks and waits for theirs. They come in
 * by turns, since a block may send the next before this one has read all. bytes: of each message.
 * Called behind a barrier of the block. */
static __device__ __forceinline__ const union quick_message *
quick_exchange(struct quick_shared *q, const struct exact_chunk *chunk, int number,
               uint32_t bytes) {
    const int32_t ranks = chunk->args->ranks, rank = threadIdx.x / 32;
    const int turn = number & 1;
    if (threadIdx.x == 0)
        ptx_barrier_expect(&q->barrier[turn], bytes * ranks);
    if (rank < ranks) /* a warp for each block: the quickest for messages this short */
        for (uint32_t i = exact_lane(); i < bytes / 16; i += 32)
            ptx_peer_store_async((uint4 *)&q->in[turn][chunk->rank] + i,
                                 ((const uint4 *)&q->out)[i], &q->barrier[turn], rank);
    ptx_barrier_wait(&q->barrier[turn], number >> 1 & 1);
    return q->in[turn];
}

#endif
