/* Top-p by sorting, at any batch: what a serving library's fallback path computes.
 *
 * Ascending stable sort of each row, binary32 softmax of the sorted row, binary32 cumulative sum
 * from the smallest up, drop where it is <= 1 - p, never the last. Rows are sorted together, in
 * groups that bound the workspace: one 64-bit word holds row, logit and token, and only the bits of
 * row and logit take part, which is stable. The cumulative sum is taken in a fixed order, unlike a
 * scan with look-back: the same input gives the same mask. The first word that stays is the row's
 * threshold, so the mask is one pass over the rows and no scatter. */
#include "kernels/cuda/masking.cuh"
#include "kernels/cuda/variants.h"

#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>

namespace {

enum {
    SORT_THREADS = 256,
    SORT_ITEMS = 8,
    SORT_CHUNK = SORT_THREADS * SORT_ITEMS, /* logits that one block sums */
};
const int64_t SORT_GROUP = (int64_t)1 << 26; /* logits sorted together, unless a row is longer */

/* How a batch is cut into groups, and a group's words into bits and workspace. */
struct sort_plan {
    int64_t rows, words, chunks; /* of a full group; chunks: per row */
    int token_bits, row_bits;
    size_t buffer_bytes, sums_bytes, cuts_bytes, temp_bytes;
};

size_t round_up(size_t bytes) {
    return (bytes + 255) / 256 * 256;
}

int bits_for(int64_t values) {
    int bits = 0;
    while (((int64_t)1 << bits) < values)
        bits++;
    return bits;
}

cudaError_t sort_words(const struct sort_plan &plan, void *temp, size_t *temp_bytes,
                       cub::DoubleBuffer<uint64_t> &words, int64_t count, cudaStream_t stream) {
    return cub::DeviceRadixSort::SortKeys(temp, *temp_bytes, words, (int)count, plan.token_bits,
                                          plan.token_bits + 32 + plan.row_bits, stream);
}

struct sort_plan sort_plan_of(const struct topp_problem *problem) {
    struct sort_plan plan = {};
    plan.rows = SORT_GROUP / problem->vocab;
    plan.rows = plan.rows < 1 ? 1 : plan.rows > problem->batch ? problem->batch : plan.rows;
    plan.words = plan.rows * problem->vocab;
    plan.chunks = (problem->vocab + SORT_CHUNK - 1) / SORT_CHUNK;
    plan.token_bits = bits_for(problem->vocab);
    plan.row_bits = bits_for(plan.rows);
    plan.buffer_bytes = round_up((size_t)plan.words * sizeof(uint64_t));
    plan.sums_bytes = round_up((size_t)(plan.rows * plan.chunks) * sizeof(float));
    plan.cuts_bytes = round_up((size_t)plan.rows * sizeof(uint64_t));
    cub::DoubleBuffer<uint64_t> words;
    /* Without a device this fails and the launch will say so. */
    if (sort_words(plan, NULL, &plan.temp_bytes, words, plan.words, NULL) != cudaSuccess)
        plan.temp_bytes = 0;
    return plan;
}

/* A group of rows on its way through the kernels. */
struct sort_group {
    const float *logits; /* of the group's first row */
    const float *p;
    int64_t vocab, stride;
    uint32_t chunks;
    int token_bits;
    uint64_t *words; /* [rows, vocab] */
    float *sums;     /* [rows, chunks] of exp(logit - max) */
    uint64_t *cuts;  /* [rows] logit and token bits of the first word that stays */
};

/* Unsigned order of the bits is the order of the logits; -0 and +0 are one. */
__device__ __forceinline__ uint32_t logit_bits(float x) {
    const uint32_t bits = __float_as_uint(x + 0.0f);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ float logit_of(uint64_t word, int token_bits) {
    const uint32_t key = (uint32_t)(word >> token_bits);
    return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

__global__ void __launch_bounds__(SORT_THREADS) sort_pack_kernel(struct sort_group group) {
    const int64_t row = blockIdx.x / group.chunks, chunk = blockIdx.x % group.chunks;
    const float *const x = group.logits + row * group.stride;
    uint64_t *const out = group.words + row * group.vocab;
#pragma unroll
    for (int i = 0; i < SORT_ITEMS; i++) {
        const int64_t token = chunk * SORT_CHUNK + i * SORT_THREADS + threadIdx.x;
        if (token < group.vocab)
            out[token] =
                ((uint64_t)row << 32 | logit_bits(x[token])) << group.token_bits | (uint64_t)token;
    }
}

__global__ void __launch_bounds__(SORT_THREADS) sort_sum_kernel(struct sort_group group) {
    typedef cub::BlockReduce<float, SORT_THREADS> block_reduce;
    __shared__ typename block_reduce::TempStorage shared;
    const int64_t row = blockIdx.x / group.chunks, chunk = blockIdx.x % group.chunks;
    const uint64_t *const sorted = group.words + row * group.vocab;
    if (group.p[row] >= 1.0f)
        return;
    const float max = logit_of(sorted[group.vocab - 1], group.token_bits);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < SORT_ITEMS; i++) {
        const int64_t at = chunk * SORT_CHUNK + i * SORT_THREADS + threadIdx.x;
        if (at < group.vocab)
            sum += expf(logit_of(sorted[at], group.token_bits) - max);
    }
    sum = block_reduce(shared).Sum(sum);
    if (threadIdx.x == 0)
        group.sums[blockIdx.x] = sum;
}

/* One block a row: where the cumulative sum passes 1 - p. */
__global__ void __launch_bounds__(SORT_THREADS) sort_cut_kernel(struct sort_group group) {
    typedef cub::BlockReduce<float, SORT_THREADS> block_reduce;
    typedef cub::BlockScan<float, SORT_THREADS> block_scan;
    __shared__ union {
        typename block_reduce::TempStorage reduce;
        typename block_scan::TempStorage scan;
    } shared;
    __shared__ float total, base; /* base: cumulative sum before the chunk of the crossing */
    __shared__ int first;         /* first position that passes the limit; INT32_MAX: none yet */
    const int64_t row = blockIdx.x;
    const uint64_t *const sorted = group.words + row * group.vocab;
    const float p = group.p[row];
    if (p >= 1.0f)
        return;
    const float limit = 1.0f - p, max = logit_of(sorted[group.vocab - 1], group.token_bits);
    const float *const sums = group.sums + row * group.chunks;

    float sum = 0.0f;
    for (int c = threadIdx.x; c < (int)group.chunks; c += SORT_THREADS)
        sum += sums[c];
    sum = block_reduce(shared.reduce).Sum(sum);
    if (threadIdx.x == 0) {
        total = sum;
        base = 0.0f;
        first = INT32_MAX;
    }
    __syncthreads();

    float before = 0.0f; /* cumulative sum before the tile of chunks */
    for (int tile = 0; tile < (int)group.chunks && first == INT32_MAX; tile += SORT_THREADS) {
        const int c = tile + (int)threadIdx.x;
        const float share = c < (int)group.chunks ? sums[c] / total : 0.0f;
        float upto, all;
        block_scan(shared.scan).InclusiveSum(share, upto, all);
        __syncthreads();
        if (c < (int)group.chunks && before + upto > limit)
            atomicMin(&first, c);
        __syncthreads();
        if (c == first)
            base = before + (upto - share);
        before += all;
        __syncthreads();
    }
    const int chunk = first;
    __syncthreads();
    if (threadIdx.x == 0)
        first = INT32_MAX;
    __syncthreads();

    /* No chunk passes: rounding left the whole sum at or below the limit, or no sum exists. */
    const int64_t start = chunk == INT32_MAX ? group.vocab - 1 : (int64_t)chunk * SORT_CHUNK;
    float inner[SORT_ITEMS], shares = 0.0f;
#pragma unroll
    for (int i = 0; i < SORT_ITEMS; i++) {
        const int64_t at = start + threadIdx.x * SORT_ITEMS + i;
        if (at < group.vocab)
            shares += expf(logit_of(sorted[at], group.token_bits) - max) / total;
        inner[i] = shares;
    }
    float lower;
    block_scan(shared.scan).ExclusiveSum(shares, lower);
#pragma unroll
    for (int i = SORT_ITEMS - 1; i >= 0; i--)
        if (base + (lower + inner[i]) > limit)
            atomicMin(&first, (int)threadIdx.x * SORT_ITEMS + i);
    __syncthreads();
    if (threadIdx.x == 0) {
        int64_t cut = start + (first == INT32_MAX ? SORT_CHUNK : first);
        cut = cut < group.vocab ? cut : group.vocab - 1; /* never the last */
        group.cuts[row] = sorted[cut] & (((uint64_t)1 << (32 + group.token_bits)) - 1);
    }
}

/* Keeps the words from the cut on. */
struct sort_rows {
    const uint64_t *cuts;
    const uint64_t *words;
    int64_t vocab;
    int token_bits;

    struct keep {
        uint64_t cut;
        int token_bits;
        __device__ __forceinline__ bool operator()(float x, int64_t id) const {
            return ((uint64_t)logit_bits(x) << token_bits | (uint64_t)id) >= cut;
        }
    };

    __device__ __forceinline__ bool open(int64_t row, struct keep *keep) const {
        keep->cut = cuts[row];
        keep->token_bits = token_bits;
        /* A row of -inf alone has no valid token and stays as it is. */
        return logit_of(words[row * vocab + vocab - 1], token_bits) != -INFINITY;
    }
};

size_t sort_workspace(const struct topp_problem *problem) {
    const struct sort_plan plan = sort_plan_of(problem);
    return 2 * plan.buffer_bytes + plan.sums_bytes + plan.cuts_bytes + plan.temp_bytes;
}

int sort_group_enqueue(const struct topp_problem *problem, const struct sort_plan &plan,
                       char *memory, int64_t first_row, int64_t rows, cudaStream_t stream) {
    struct topp_problem part = *problem;
    part.logits = problem->logits + first_row * problem->stride;
    part.p = problem->p + first_row;
    part.batch = rows;
    cub::DoubleBuffer<uint64_t> words(reinterpret_cast<uint64_t *>(memory),
                                      reinterpret_cast<uint64_t *>(memory + plan.buffer_bytes));
    char *const rest = memory + 2 * plan.buffer_bytes;
    struct sort_group group = {};
    group.logits = part.logits;
    group.p = part.p;
    group.vocab = part.vocab;
    group.stride = part.stride;
    group.chunks = (uint32_t)plan.chunks;
    group.token_bits = plan.token_bits;
    group.words = words.Current();
    group.sums = reinterpret_cast<float *>(rest);
    group.cuts = reinterpret_cast<uint64_t *>(rest + plan.sums_bytes);
    const unsigned grid = (unsigned)(rows * plan.chunks);
    int code = launch_kernel(sort_pack_kernel, grid, SORT_THREADS, 0, stream, group);
    size_t temp_bytes = plan.temp_bytes;
    if (!code)
        code = (int)sort_words(plan, rest + plan.sums_bytes + plan.cuts_bytes, &temp_bytes, words,
                               rows * part.vocab, stream);
    group.words = words.Current();
    if (!code)
        code = launch_kernel(sort_sum_kernel, grid, SORT_THREADS, 0, stream, group);
    if (!code)
        code = launch_kernel(sort_cut_kernel, (unsigned)rows, SORT_THREADS, 0, stream, group);
    if (code)
        return code;
    const struct sort_rows keep = {group.cuts, group.words, group.vocab, group.token_bits};
    return masking_enqueue(&part, keep, stream);
}

int sort_enqueue(const struct topp_problem *problem, void *workspace, size_t workspace_bytes,
                 void *stream) {
    if (problem->vocab > INT32_MAX - SORT_CHUNK)
        return KERNEL_UNSUPPORTED;
    const struct sort_plan plan = sort_plan_of(problem);
    if (workspace_bytes <
        2 * plan.buffer_bytes + plan.sums_bytes + plan.cuts_bytes + plan.temp_bytes)
        return KERNEL_WORKSPACE;
    for (int64_t row = 0; row < problem->batch; row += plan.rows) {
        const int64_t rows = problem->batch - row < plan.rows ? problem->batch - row : plan.rows;
        const int code = sort_group_enqueue(problem, plan, static_cast<char *>(workspace), row,
                                            rows, static_cast<cudaStream_t>(stream));
        if (code)
            return code;
    }
    return KERNEL_OK;
}

} // namespace

const struct topp_variant topp_cuda_sort = {
    "sort",
    "stable radix sort, binary32 softmax and cumulative sum; keeps the higher tied ids",
    KERNEL_DEVICE_CUDA,
    TOPP_MASKED_LOGITS,
    "envelope",
    0,
    0,
    0,
    sort_workspace,
    sort_enqueue,
};
