/* Steps of the short way: from a block's sums to the row's, to the boundary's bin, to its tokens.
 */
#ifndef TOPP_KERNELS_CUDA_EXACT_QUICK_STEPS_CUH
#define TOPP_KERNELS_CUDA_EXACT_QUICK_STEPS_CUH

#include "kernels/cuda/exact_columns.cuh"

#define EXACT_E_HALF_DOWN 0x1.368b2fc6f960ap-1     /* e^(-1/2) */
#define EXACT_E_3_HALVES_DOWN 0x1.c8f87724b5c1dp-3 /* e^(-3/2) */

/* What is known of the boundary; the same in all threads of the row. */
struct quick_bracket {
    double target, above, margin;
    double unit; /* mass of 1 of the fixed-point weights of the boundary's half logit */
};

static __device__ __forceinline__ void quick_clear(uint32_t *columns) {
#pragma unroll
    for (int i = 0; i < QUICK_BINS * 2 * 32 / 4 / EXACT_THREADS; i++)
        ((uint4 *)columns)[i * EXACT_THREADS + threadIdx.x] = make_uint4(0, 0, 0, 0);
}

/* No candidates. */
static __device__ __forceinline__ void quick_forget(struct quick_shared *q) {
    if (threadIdx.x < 2 * QUICK_BINS)
        (&q->last[0][0])[threadIdx.x] = 0;
    if (threadIdx.x == 0)
        q->final_count = 0;
}

/* Everything zero, the table in place, the barriers ready; while the logits are on their way. Ends
 * behind a barrier of the block. */
static __device__ __forceinline__ void quick_open(struct quick_shared *q) {
#pragma unroll
    for (int number = 0; number < 2; number++)
        quick_clear(quick_columns(q, number));
    quick_forget(q);
    if (threadIdx.x == 0) {
        quick_barriers_init(q);
        q->sure = 0;
    }
#pragma unroll
    for (int i = 0; i < QUICK_STEPS / EXACT_WARPS; i++)
        q->table[(threadIdx.x / 32 + i * EXACT_WARPS) * 32 + exact_lane()] =
            quick_e_step(threadIdx.x / 32 + i * EXACT_WARPS);
    __syncthreads();
}

/* Least of a vector's tokens that exist; `first`: its first token's id. */
static __device__ __noinline__ float quick_min_partial(float4 x, int32_t first, int32_t vocab) {
    const float values[4] = {x.x, x.y, x.z, x.w};
    float min = CUDART_INF_F;
#pragma unroll
    for (int j = 0; j < 4; j++)
        min = first + j >= 0 && first + j < vocab ? fminf(min, values[j]) : min;
    return min;
}

/* What a block finds on its first way through its logits. */
struct quick_extent {
    int32_t max_key, min_key; /* of all its tokens */
    bool wide;                /* a ring of half logits does not hold what lies between */
};

/* Sums of half logits into the columns before anything is known: a ring of QUICK_BINS of them. The
 * extreme keys into q->out, too. Ends behind a barrier of the block. */
static __device__ __forceinline__ struct quick_extent
quick_first(struct quick_shared *q, const struct exact_chunk *chunk, uint32_t *columns) {
    const ptx_shared column = ptx_shared_of(columns + exact_lane());
    float max = -CUDART_INF_F, min = CUDART_INF_F, least = CUDART_INF_F; /* least: but for -inf */
    quick_each(chunk, [&](float4 x, int32_t v) {
        const float values[4] = {x.x, x.y, x.z, x.w};
        uint32_t fixed[4], place[4];
        max = fmaxf(max, exact_max4(x));
        min = fminf(min,
                    exact_whole(chunk, chunk->first + 4 * v)
                        ? fminf(fminf(x.x, x.y), fminf(x.z, x.w))
                        : quick_min_partial(x, chunk->first + 4 * v, (int32_t)chunk->args->vocab));
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const bool in = values[j] > -CUDART_INF_F;
            const struct quick_step step = quick_step(values[j]);
            least = in ? fminf(least, values[j]) : least;
            fixed[j] = quick_fixed(q, step);
            place[j] = in ? (step.order >> QUICK_STEP_BITS) % QUICK_BINS : (uint32_t)QUICK_BINS;
        }
        quick_add(column, place, fixed);
    });
    const int32_t warp_max = __reduce_max_sync(~0u, exact_key(max));
    const int32_t warp_min = __reduce_min_sync(~0u, exact_key(min));
    const int32_t warp_least = __reduce_min_sync(~0u, exact_key(least));
    if (exact_lane() == 0) {
        q->warp_max[threadIdx.x / 32] = warp_max;
        q->warp_min[threadIdx.x / 32] = warp_min;
        q->warp_least[threadIdx.x / 32] = warp_least;
    }
    if (threadIdx.x < EXACT_NARROW_KEYS)
        quick_counts(&q->out.sums)[threadIdx.x] = 0;
    __syncthreads();
    struct quick_extent extent;
    extent.max_key = __reduce_max_sync(~0u, q->warp_max[exact_lane() % EXACT_WARPS]);
    extent.min_key = __reduce_min_sync(~0u, q->warp_min[exact_lane() % EXACT_WARPS]);
    const float most = exact_logit(extent.max_key);
    least = exact_logit(__reduce_min_sync(~0u, q->warp_least[exact_lane() % EXACT_WARPS]));
    extent.wide = least <= most && /* there is one */
                  quick_base(most) - quick_base(fmaxf(least, most - 100.0f)) >=
                      (uint32_t)QUICK_BINS << QUICK_STEP_BITS;
    if (threadIdx.x == 0) {
        q->out.sums.max_key = extent.max_key;
        q->out.sums.min_key = extent.min_key;
        q->out.sums.base = quick_base(most);
    }
    return extent;
}

static __device__ __forceinline__ bool quick_is_narrow(int32_t max_key, int32_t min_key) {
    return (uint32_t)max_key - (uint32_t)min_key < EXACT_NARROW_KEYS;
}

/* Counts the tokens of a block of few neighbouring values by key, into q->out. Ends behind a
 * barrier of the block. */
static __device__ __noinline__ void quick_count(struct quick_shared *q,
                                                const struct exact_chunk *chunk, int32_t max_key) {
    uint64_t counts = 0; /* eight bits a key: a thread has no more than 24 tokens */
    quick_each(chunk, [&](float4 x, int32_t) {
        const float values[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const uint32_t below = (uint32_t)max_key - (uint32_t)exact_key(values[j]);
            counts += below < EXACT_NARROW_KEYS ? (uint64_t)1 << 8 * below : 0;
        }
    });
#pragma unroll
    for (int key = 0; key < EXACT_NARROW_KEYS; key++) {
        const uint32_t count = __reduce_add_sync(~0u, (uint32_t)(counts >> 8 * key) & 0xff);
        if (exact_lane() == key && count)
            atomicAdd(&quick_counts(&q->out.sums)[key], count);
    }
    __syncthreads();
}
static_assert(4 * EXACT_QUICK_VECTORS < 256 && EXACT_NARROW_KEYS == 8, "counts of a thread");

/* Where a bin of the row's first level, which starts with base, stands among a block's, which start
 * with its own maximum. QUICK_TOP_BINS or more: it has none. */
static __device__ __forceinline__ uint32_t quick_top_place(const union quick_message *in,
                                                           int32_t rank, uint32_t base,
                                                           uint32_t bin) {
    return bin - ((base - in[rank].sums.base) >> QUICK_STEP_BITS);
}

/* Whether lists surely, but for a few tokens, hold all of a bin of the first level: a token weighs
 * 0.996 x 2^31 or more. The same in all threads of the row. */
static __device__ __forceinline__ bool quick_fits(const union quick_message *in, int32_t ranks,
                                                  uint32_t base, uint32_t bin) {
    const int32_t rank = min(exact_lane(), ranks - 1);
    const uint32_t place = quick_top_place(in, rank, base, bin);
    const uint64_t sum = place < QUICK_TOP_BINS ? in[rank].sums.fixed[place] : 0;
    return __all_sync(~0u, sum < (uint64_t)QUICK_ROOM << 31);
}

/* The row's sums of each bin into q->totals, four threads a bin. At the first level blocks' bins
 * start with their own maxima, the row's with base. Ends behind a barrier of the block. */
static __device__ __forceinline__ void quick_total(struct quick_shared *q,
                                                   const union quick_message *in, int32_t ranks,
                                                   bool first, uint32_t base) {
    if (threadIdx.x < 4 * QUICK_BINS) {
        const uint32_t bin = threadIdx.x / 4;
        uint64_t sum = 0;
#pragma unroll
        for (int i = 0; i < EXACT_GREATEST_CLUSTER / 4; i++) {
            const int32_t rank = threadIdx.x % 4 + 4 * i;
            if (rank < ranks) {
                const uint32_t place = first ? quick_top_place(in, rank, base, bin) : bin;
                const uint32_t most = first ? QUICK_TOP_BINS : QUICK_BINS;
                sum += place < most ? in[rank].sums.fixed[place] : 0;
            }
        }
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        if (threadIdx.x % 4 == 0)
            q->totals[bin] = sum;
    }
    __syncthreads();
}

/* In every warp, four bins a lane: the first bin at which the running mass, above and all, reaches
 * the target (or p times the total, if p >= 0, which sets the target); -1 if none does. *above
 * becomes the mass above that bin. */
static __device__ __forceinline__ int quick_reach(const double (&mass)[4], double p, double *target,
                                                  double *above) {
    const int lane = exact_lane();
    const double upto = exact_upto((mass[0] + mass[1]) + (mass[2] + mass[3]));
    if (p >= 0.0)
        *target = p * __shfl_sync(~0u, upto, 31);
    const uint32_t reached = __ballot_sync(~0u, *above + upto >= *target);
    if (!reached)
        return -1;
    const double before = __shfl_up_sync(~0u, upto, 1);
    double here = *above + (lane ? before : 0.0);
    int bin = 4 * lane;
#pragma unroll
    for (int i = 0; i < 3; i++) {
        const bool past = bin == 4 * lane + i && here + mass[i] < *target;
        here = past ? here + mass[i] : here;
        bin += past;
    }
    const int owner = __ffs(reached) - 1;
    *above = __shfl_sync(~0u, here, owner);
    return __shfl_sync(~0u, bin, owner);
}

/* Warp 0, from q->totals: the boundary's bin for all, into *bin, *target and *above. mass of bin
 * 4 l + i: total * scale (of lane l) * steps[i - 1]. False if there is none. Ends behind a barrier
 * of the block. */
static __device__ __forceinline__ bool quick_find(struct quick_shared *q, double scale,
                                                  const double (&steps)[3], double p,
                                                  struct quick_bracket *found, int *bin) {
    if (threadIdx.x < 32) {
        double mass[4], target = found->target, above = found->above;
        mass[0] = (double)q->totals[4 * exact_lane()] * scale;
#pragma unroll
        for (int i = 1; i < 4; i++)
            mass[i] = (double)q->totals[4 * exact_lane() + i] * (scale * steps[i - 1]);
        const int reached = quick_reach(mass, p, &target, &above);
        if (threadIdx.x == 0) {
            q->bin = reached;
            q->target = target;
            q->above = above;
        }
    }
    __syncthreads();
    *bin = q->bin;
    found->target = q->target;
    found->above = q->above;
    return *bin >= 0;
}

/* Least and greatest of the logits in a run of half steps; one on its edge may be of the next. */
static __device__ __forceinline__ void quick_range_of_steps(uint32_t last, uint32_t count,
                                                            float *low, float *high) {
    const uint32_t first = last - (count - 1);
    *low = (__uint_as_float(first / 2) - EXACT_MAGIC - (first % 2 ? 0.0f : 0.5f)) * (1.0f / 128.0f);
    *high = (__uint_as_float(last / 2) - EXACT_MAGIC + (last % 2 ? 0.5f : 0.0f)) * (1.0f / 128.0f);
}

/* Lists the chunk's tokens in one bin of a level. Ends behind a barrier of the block. */
template <bool kKeys>
static __device__ __forceinline__ void quick_gather(struct quick_shared *q,
                                                    const struct exact_chunk *chunk,
                                                    const struct quick_level *level, uint32_t bin) {
    struct quick_list *const list = &q->out.list;
    if (threadIdx.x == 0) {
        list->head.count = 0;
        list->head.key_min = INT32_MAX;
        list->head.key_max = INT32_MIN;
    }
    __syncthreads();
    int32_t key_min = INT32_MAX, key_max = INT32_MIN, unlisted = 0;
    const uint32_t last = level->base - (bin << level->shift), size = 1u << level->shift;
    float low = exact_logit((int32_t)(last - (size - 1))), high = exact_logit((int32_t)last);
    if (!kKeys)
        quick_range_of_steps(last, size, &low, &high);
    quick_each(chunk, [&](float4 x, int32_t v) {
        const float values[4] = {x.x, x.y, x.z, x.w};
        uint32_t near = 0; /* in, but for some on the edges */
#pragma unroll
        for (int j = 0; j < 4; j++)
            near |= values[j] >= low && values[j] <= high ? 1u << j : 0;
#pragma unroll 1
        for (; near; near &= near - 1) {
            const int j = __ffs(near) - 1;
            const float value = j == 0 ? x.x : j == 1 ? x.y : j == 2 ? x.z : x.w;
            if (quick_place<kKeys>(level, value, quick_step(value)) != bin)
                continue;
            key_min = min(key_min, exact_key(value));
            key_max = max(key_max, exact_key(value));
            if (ptx_peek(&list->head.count) > QUICK_ROOM) {
                unlisted++;
                continue;
            }
            const int32_t place = atomicAdd(&list->head.count, 1);
            if (place < QUICK_ROOM) {
                list->entries[place].logit = value;
                list->entries[place].token = chunk->first + 4 * v + j;
            }
        }
    });
    if (__any_sync(~0u, key_min <= key_max)) {
        key_min = __reduce_min_sync(~0u, key_min);
        key_max = __reduce_max_sync(~0u, key_max);
        unlisted = __reduce_add_sync(~0u, unlisted);
        if (exact_lane() == 0) {
            atomicMin(&list->head.key_min, key_min);
            atomicMax(&list->head.key_max, key_max);
            if (unlisted)
                atomicAdd(&list->head.count, unlisted);
        }
    }
    __syncthreads();
}

/* All listed tokens of the row side by side with their weights, and these summed in bins of keys
 * from key_max down. Ends behind a barrier. */
static __device__ __forceinline__ void quick_collect(struct quick_shared *q,
                                                     const union quick_message *in, int32_t ranks,
                                                     int32_t count, int32_t key_max, int shift) {
    const int lane = exact_lane();
    int32_t upto = count; /* of the lane's block; then of all blocks up to it */
#pragma unroll
    for (int step = 1; step < EXACT_GREATEST_CLUSTER; step *= 2) {
        const int32_t other = __shfl_up_sync(~0u, upto, step);
        if (lane >= step)
            upto += other;
    }
#pragma unroll 1
    for (int rank = threadIdx.x / 32; rank < ranks; rank += EXACT_WARPS) {
        const int32_t many = __shfl_sync(~0u, count, rank);
        const int32_t base = __shfl_sync(~0u, upto, rank) - many;
#pragma unroll 1
        for (int place = lane; place < many; place += 32) {
            const struct exact_entry entry = in[rank].list.entries[place];
            const uint32_t weight = quick_fixed(q, quick_step(entry.logit));
            const uint32_t bin = (uint32_t)(key_max - exact_key(entry.logit)) >> shift;
            atomicAdd(&q->last[0][bin], weight & 0xffff);
            atomicAdd(&q->last[1][bin], weight >> 16);
            *(uint4 *)&q->candidates[base + place] =
                make_uint4(__float_as_uint(entry.logit), (uint32_t)entry.token, weight, bin);
        }
    }
    __syncthreads();
}

enum quick_verdict { QUICK_NOT_HERE, QUICK_HERE, QUICK_CROWDED /* too many to compare */ };

/* The boundary among the candidates. Ends behind a barrier of the block. */
static __device__ __forceinline__ enum quick_verdict
quick_settle(struct quick_shared *q, int32_t count, struct quick_bracket *found) {
    const int lane = exact_lane();
    double mass[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        mass[i] = (double)(q->last[0][4 * lane + i] + ((uint64_t)q->last[1][4 * lane + i] << 16)) *
                  found->unit;
    const int bin = quick_reach(mass, -1.0, &found->target, &found->above);
    if (bin < 0)
        return QUICK_NOT_HERE;
#pragma unroll 1
    for (int i = threadIdx.x; i < count; i += EXACT_THREADS) {
        const uint4 candidate = *(const uint4 *)&q->candidates[i];
        if (candidate.w == (uint32_t)bin) {
            const int32_t place = atomicAdd(&q->final_count, 1);
            if (place < QUICK_FINAL)
                *(uint4 *)&q->final_list[place] = candidate;
        }
    }
    __syncthreads();
    const int final_count = q->final_count;
    if (final_count > QUICK_FINAL)
        return QUICK_CROWDED;
    if ((int)threadIdx.x < final_count) {
        const struct quick_candidate mine = q->final_list[threadIdx.x];
        uint64_t sum = 0;
#pragma unroll 1
        for (int j = 0; j < final_count; j++) {
            const struct quick_candidate other = q->final_list[j];
            const bool upto = other.logit > mine.logit ||
                              (other.logit == mine.logit && other.token <= mine.token);
            sum += upto ? other.weight : 0;
        }
        const double here = found->above + (double)sum * found->unit - found->target;
        const double above =
            found->above + (double)(sum - mine.weight) * found->unit - found->target;
        if (here > found->margin && -above > found->margin) {
            q->result.logit = mine.logit;
            q->result.token = mine.token;
            q->sure = 1;
        }
    }
    __syncthreads();
    return q->sure ? QUICK_HERE : QUICK_NOT_HERE;
}

#endif
