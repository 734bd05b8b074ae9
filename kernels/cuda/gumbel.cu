/* Gumbel-max sampling on CUDA, in upstream's launch shape: one block per 1024 tokens leaves a
 * partial (score, id), then one block per row takes the best of its partials. Two launches, no
 * atomics: the same ids in every run.
 *
 * The rules are those of kernels/gumbel.h. They fall out of the comparisons: a candidate replaces
 * the best only if its score is greater, or equal with a lower id, and the best starts as
 * (-inf, id 0); NaN is never greater, and nothing is below -inf. */
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/variants.h"
#include "kernels/gumbel_noise.h"

namespace {

constexpr int block_tokens = 1024, threads = 128, row_threads = 256;
constexpr unsigned max_grid_rows = 65535;

template <typename Score> struct best_of {
    Score score;
    int64_t id;

    __device__ void offer(Score other_score, int64_t other_id) {
        if (other_score > score || (other_score == score && other_id < id)) {
            score = other_score;
            id = other_id;
        }
    }
};

/* The four noises. The quotient is binary32 in all of them, as upstream forms it; every operation
 * of a score rounds by itself, so that nothing depends on what the compiler fuses. */
struct noise_log {
    using score = float;
    static __device__ uint32_t row(int64_t seed, int64_t position) {
        return gumbel_row_key(seed, position);
    }
    static __device__ float token(uint32_t row, uint32_t id) {
        return gumbel_noise_log(philox4x32(id, 0, 0, 0, row, 0).w0);
    }
};

struct noise_log1p : noise_log {
    static __device__ float token(uint32_t row, uint32_t id) {
        return gumbel_noise_log1p(philox4x32(id, 0, 0, 0, row, 0).w0);
    }
};

struct noise_fp64 : noise_log {
    using score = double;
    static __device__ double token(uint32_t row, uint32_t id) {
        const philox_words words = philox4x32(id, 0, 0, 0, row, 0);
        return gumbel_noise_fp64(words.w1, words.w0);
    }
};

struct noise_murmur {
    using score = float;
    static __device__ uint32_t row(int64_t seed, int64_t position) {
        return gumbel_murmur_row(seed, position);
    }
    static __device__ float token(uint32_t row, uint32_t id) {
        return gumbel_noise_murmur(gumbel_murmur_word(row, id));
    }
};

__device__ float sum(float quotient, float noise) {
    return __fadd_rn(quotient, noise);
}
__device__ double sum(float quotient, double noise) {
    return (double)quotient + noise;
}

/* Best of a block's threads; the result holds in thread 0. */
template <typename Score, int Threads> __device__ best_of<Score> block_best(best_of<Score> mine) {
    __shared__ Score scores[Threads / 32];
    __shared__ int64_t ids[Threads / 32];
    for (int step = 16; step > 0; step /= 2) {
        const Score score = __shfl_down_sync(0xFFFFFFFFu, mine.score, step);
        const long long id = __shfl_down_sync(0xFFFFFFFFu, (long long)mine.id, step);
        mine.offer(score, id);
    }
    __syncthreads(); /* readers of the previous row are done */
    if (threadIdx.x % 32 == 0) {
        scores[threadIdx.x / 32] = mine.score;
        ids[threadIdx.x / 32] = mine.id;
    }
    __syncthreads();
    if (threadIdx.x == 0)
        for (int warp = 1; warp < Threads / 32; warp++)
            mine.offer(scores[warp], ids[warp]);
    return mine;
}

/* Where the partials of a batch lie in the workspace: scores, then ids, [batch, blocks] each. */
template <typename Score> struct partials {
    int64_t *id;
    Score *score;
    int64_t blocks;

    static int64_t blocks_of(const gumbel_problem *problem) {
        return (problem->vocab + block_tokens - 1) / block_tokens;
    }
    static size_t bytes(const gumbel_problem *problem) {
        return (size_t)(problem->batch * blocks_of(problem)) * (sizeof(int64_t) + sizeof(Score));
    }
    static partials in(const gumbel_problem *problem, void *workspace) {
        const int64_t blocks = blocks_of(problem);
        int64_t *id = (int64_t *)workspace;
        return {id, (Score *)(id + problem->batch * blocks), blocks};
    }
};

template <typename Noise>
__global__ void __launch_bounds__(threads)
    gumbel_blocks(gumbel_problem problem, partials<typename Noise::score> out) {
    using Score = typename Noise::score;
    const int64_t first = (int64_t)blockIdx.x * block_tokens;
    for (int64_t i = blockIdx.y; i < problem.batch; i += gridDim.y) {
        const float *logits = problem.logits + i * problem.stride;
        const float temperature = problem.temperature[i];
        const uint32_t row = Noise::row(problem.seed[i], problem.position[i]);
        best_of<Score> best = {(Score)-INFINITY, 0};
#pragma unroll
        for (int j = 0; j < block_tokens / threads; j++) {
            const int64_t id = first + j * threads + (int)threadIdx.x;
            if (id >= problem.vocab)
                break;
            const float logit = logits[id];
            const Score score = temperature == 0.0f ? (Score)logit
                                                    : sum(__fdiv_rn(logit, temperature),
                                                          Noise::token(row, (uint32_t)id));
            if (score > best.score) /* ids ascend: the first of equals stays */
                best = {score, id};
        }
        best = block_best<Score, threads>(best);
        if (threadIdx.x == 0) {
            out.score[i * out.blocks + blockIdx.x] = best.score;
            out.id[i * out.blocks + blockIdx.x] = best.id;
        }
    }
}

template <typename Score>
__global__ void __launch_bounds__(row_threads)
    gumbel_rows(gumbel_problem problem, partials<Score> in) {
    for (int64_t i = blockIdx.x; i < problem.batch; i += gridDim.x) {
        best_of<Score> best = {(Score)-INFINITY, 0};
        for (int64_t b = threadIdx.x; b < in.blocks; b += row_threads)
            if (in.score[i * in.blocks + b] > best.score)
                best = {in.score[i * in.blocks + b], in.id[i * in.blocks + b]};
        best = block_best<Score, row_threads>(best);
        if (threadIdx.x == 0)
            problem.token[i] = best.id;
    }
}

template <typename Noise> __global__ void gumbel_dump(gumbel_problem problem, double *noise) {
    const int64_t count = problem.batch * problem.vocab;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < count;
         at += (int64_t)gridDim.x * blockDim.x) {
        const int64_t i = at / problem.vocab;
        noise[at] = (double)Noise::token(Noise::row(problem.seed[i], problem.position[i]),
                                         (uint32_t)(at % problem.vocab));
    }
}

template <typename Noise> size_t workspace_size(const gumbel_problem *problem) {
    return partials<typename Noise::score>::bytes(problem);
}

template <typename Noise>
int launch(const gumbel_problem *problem, void *workspace, size_t workspace_bytes, void *stream) {
    using Score = typename Noise::score;
    if (workspace_bytes < partials<Score>::bytes(problem))
        return KERNEL_WORKSPACE;
    const partials<Score> parts = partials<Score>::in(problem, workspace);
    if (parts.blocks > INT32_MAX)
        return KERNEL_UNSUPPORTED;
    const unsigned rows =
        (unsigned)(problem->batch < max_grid_rows ? problem->batch : (int64_t)max_grid_rows);
    const int code = launch_kernel(gumbel_blocks<Noise>, dim3((unsigned)parts.blocks, rows),
                                   threads, 0, (cudaStream_t)stream, *problem, parts);
    if (code)
        return code;
    return launch_kernel(gumbel_rows<Score>, rows, row_threads, 0, (cudaStream_t)stream, *problem,
                         parts);
}

template <typename Noise> int dump(const gumbel_problem *problem, double *noise, void *stream) {
    return launch_kernel(gumbel_dump<Noise>, 1024, 256, 0, (cudaStream_t)stream, *problem, noise);
}

} // namespace

const struct gumbel_variant gumbel_cuda_log = {
    "log",
    NULL,
    "-log(-log(u)) in binary32: cuts noise off near 16.6 (before the fix)",
    KERNEL_DEVICE_CUDA,
    0,
    0,
    workspace_size<noise_log>,
    launch<noise_log>,
    dump<noise_log>,
};
const struct gumbel_variant gumbel_cuda_log1p = {
    "log1p",
    NULL,
    "-log(-log1p(-u)) in binary32: the tail sits where u is fine (the fix)",
    KERNEL_DEVICE_CUDA,
    0,
    0,
    workspace_size<noise_log1p>,
    launch<noise_log1p>,
    dump<noise_log1p>,
};
const struct gumbel_variant gumbel_cuda_fp64 = {
    "fp64",
    NULL,
    "-log(-log(u)) with 64-bit words in binary64: the reference path",
    KERNEL_DEVICE_CUDA,
    0,
    0,
    workspace_size<noise_fp64>,
    launch<noise_fp64>,
    dump<noise_fp64>,
};
const struct gumbel_variant gumbel_cuda_murmur = {
    "murmur",
    NULL,
    "hashed words, log(1 - u) by series near 0: what ships today",
    KERNEL_DEVICE_CUDA,
    0,
    0,
    workspace_size<noise_murmur>,
    launch<noise_murmur>,
    dump<noise_murmur>,
};
