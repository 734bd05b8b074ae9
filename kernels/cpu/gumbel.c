/* Gumbel-max sampling on the CPU: log, log1p, fp64, murmur.
 *
 * A row is walked in blocks of 1024 tokens, as on the device: random words of the block, then
 * scores, then the block's winner against the best so far. Noise is monotone in the word, so the
 * block's extreme word bounds its noise, and a block whose greatest logit with that noise cannot
 * reach the best score is left without a logarithm.
 *
 * Rules shared with the device and the gate: a score of NaN or -inf is never drawn, equal scores go
 * to the lowest id, and a row in which nothing can be drawn gives id 0. */
#include "kernels/cpu/philox_words.h"
#include "kernels/cpu/variants.h"
#include "kernels/gumbel_noise.h"
#include "kernels/vector.h"

enum { BLOCK = 1024, LANES = 16 };

/* The random words of one block and their extremes. */
struct block {
    uint32_t high[BLOCK]; /* log, log1p: word 0, folded; fp64: word 1; murmur: the hash */
    uint32_t low[BLOCK];  /* fp64: word 0 */
    uint32_t least, greatest;
    float logit_max; /* NaN skipped; -inf if nothing can be drawn */
    double score[BLOCK];
};

struct noise_kind {
    uint32_t (*row_state)(int64_t seed, int64_t position);
    void (*words)(uint32_t state, uint32_t first, int64_t n, struct block *block);
    /* Noise of one token, widened: for the bound of a block. */
    double (*bound)(const struct block *block);
    /* Noise of every token of the block, widened, into score. */
    void (*noise)(int64_t n, struct block *block);
    int wide; /* scores in binary64 instead of binary32 */
};

static uint32_t philox_state(int64_t seed, int64_t position) {
    return gumbel_row_key(seed, position);
}

static uint32_t murmur_state(int64_t seed, int64_t position) {
    return gumbel_murmur_row(seed, position);
}

VECTOR_CLONES
static void fold_words(int64_t n, struct block *block) {
    uint32_t least = UINT32_MAX, greatest = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t folded = gumbel_fold(block->high[i]);
        block->high[i] = folded;
        least = folded < least ? folded : least;
        greatest = folded > greatest ? folded : greatest;
    }
    block->least = least;
    block->greatest = greatest;
}

static void philox32_words(uint32_t state, uint32_t first, int64_t n, struct block *block) {
    philox_words(state, first, n, block->high, NULL);
    fold_words(n, block);
}

VECTOR_CLONES
static uint32_t greatest_word(int64_t n, const uint32_t *words) {
    uint32_t greatest = 0;
    for (int64_t i = 0; i < n; i++)
        greatest = words[i] > greatest ? words[i] : greatest;
    return greatest;
}

static void philox64_words(uint32_t state, uint32_t first, int64_t n, struct block *block) {
    philox_words(state, first, n, block->low, block->high);
    block->least = 0;
    block->greatest = greatest_word(n, block->high);
}

VECTOR_CLONES
static void murmur_words(uint32_t state, uint32_t first, int64_t n, struct block *block) {
    uint32_t least = UINT32_MAX;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t h = gumbel_murmur_word(state, first + (uint32_t)i);
        block->high[i] = h;
        least = h < least ? h : least;
    }
    block->least = least;
    block->greatest = UINT32_MAX;
}

static double log_bound(const struct block *block) {
    return gumbel_noise_log(block->greatest);
}
static double log1p_bound(const struct block *block) {
    return gumbel_noise_log1p(block->least);
}
static double murmur_bound(const struct block *block) {
    return gumbel_noise_murmur(block->least);
}
static double fp64_bound(const struct block *block) {
    return gumbel_noise_fp64(block->greatest, UINT32_MAX);
}

VECTOR_CLONES
static void log_noise(int64_t n, struct block *block) {
    for (int64_t i = 0; i < n; i++)
        block->score[i] = gumbel_noise_log(block->high[i]);
}

VECTOR_CLONES
static void log1p_noise(int64_t n, struct block *block) {
    for (int64_t i = 0; i < n; i++)
        block->score[i] = gumbel_noise_log1p(block->high[i]);
}

VECTOR_CLONES
static void fp64_noise(int64_t n, struct block *block) {
    for (int64_t i = 0; i < n; i++)
        block->score[i] = gumbel_noise_fp64(block->high[i], block->low[i]);
}

VECTOR_CLONES
static void murmur_noise(int64_t n, struct block *block) {
    for (int64_t i = 0; i < n; i++)
        block->score[i] = gumbel_noise_murmur(block->high[i]);
}

static const struct noise_kind noise_log = {philox_state, philox32_words, log_bound, log_noise, 0};
static const struct noise_kind noise_log1p = {philox_state, philox32_words, log1p_bound,
                                              log1p_noise, 0};
static const struct noise_kind noise_fp64 = {philox_state, philox64_words, fp64_bound, fp64_noise,
                                             1};
static const struct noise_kind noise_murmur = {murmur_state, murmur_words, murmur_bound,
                                               murmur_noise, 0};

/* Greatest logit, NaN skipped, -inf if there is none. */
VECTOR_CLONES
static float greatest_logit(const float *logits, int64_t n) {
    float lane[LANES];
    for (int j = 0; j < LANES; j++)
        lane[j] = -INFINITY;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lane[j] = logits[i + j] > lane[j] ? logits[i + j] : lane[j];
    for (; i < n; i++)
        lane[0] = logits[i] > lane[0] ? logits[i] : lane[0];
    float best = lane[0];
    for (int j = 1; j < LANES; j++)
        best = lane[j] > best ? lane[j] : best;
    return best;
}

/* Adds logit / temperature in the variant's precision to the noise that score holds. The quotient
 * is binary32 in all of them, as upstream forms it before it looks at the noise. */
VECTOR_CLONES
static void add_logits(const float *logits, float temperature, int64_t n, int wide, double *score) {
    if (wide)
        for (int64_t i = 0; i < n; i++)
            score[i] = (double)(logits[i] / temperature) + score[i];
    else
        for (int64_t i = 0; i < n; i++)
            score[i] = (double)(logits[i] / temperature + (float)score[i]);
}

/* Can a block reach `best`? Its noise bound and the quotient are exact but for last places of
 * binary32: four of each, and an absolute part for noise near zero, are more than all variants'
 * roundings together. */
static int out_of_reach(float quotient, double noise, double best) {
    const double slack = 0x1p-21 * (fabs((double)quotient) + fabs(noise)) + 0x1p-20;
    return (double)quotient + noise + slack < best;
}

static int64_t greedy_row(const float *logits, int64_t vocab) {
    float best = -INFINITY;
    int64_t token = 0;
    for (int64_t first = 0; first < vocab; first += BLOCK) {
        const int64_t n = vocab - first < BLOCK ? vocab - first : BLOCK;
        const float block_best = greatest_logit(logits + first, n);
        if (!(block_best > best))
            continue;
        best = block_best;
        for (token = first; logits[token] != best; token++)
            continue;
    }
    return token;
}

static int64_t draw_row(const struct noise_kind *kind, const float *logits, int64_t vocab,
                        float temperature, uint32_t state, struct block *block) {
    double best = -INFINITY;
    int64_t token = 0;
    for (int64_t first = 0; first < vocab; first += BLOCK) {
        const int64_t n = vocab - first < BLOCK ? vocab - first : BLOCK;
        block->logit_max = greatest_logit(logits + first, n);
        if (block->logit_max == -INFINITY)
            continue;
        kind->words(state, (uint32_t)first, n, block);
        if (out_of_reach(block->logit_max / temperature, kind->bound(block), best))
            continue;
        kind->noise(n, block);
        add_logits(logits + first, temperature, n, kind->wide, block->score);
        for (int64_t i = 0; i < n; i++)
            if (block->score[i] > best) {
                best = block->score[i];
                token = first + i;
            }
    }
    return token;
}

static int launch(const struct noise_kind *kind, const struct gumbel_problem *problem) {
    struct block block;
    for (int64_t i = 0; i < problem->batch; i++) {
        const float *logits = problem->logits + i * problem->stride;
        const float temperature = problem->temperature[i];
        problem->token[i] =
            temperature == 0.0f
                ? greedy_row(logits, problem->vocab)
                : draw_row(kind, logits, problem->vocab, temperature,
                           kind->row_state(problem->seed[i], problem->position[i]), &block);
    }
    return KERNEL_OK;
}

static int dump(const struct noise_kind *kind, const struct gumbel_problem *problem,
                double *noise) {
    struct block block;
    for (int64_t i = 0; i < problem->batch; i++) {
        const uint32_t state = kind->row_state(problem->seed[i], problem->position[i]);
        for (int64_t first = 0; first < problem->vocab; first += BLOCK) {
            const int64_t n = problem->vocab - first < BLOCK ? problem->vocab - first : BLOCK;
            kind->words(state, (uint32_t)first, n, &block);
            kind->noise(n, &block);
            memcpy(noise + i * problem->vocab + first, block.score, (size_t)n * sizeof *noise);
        }
    }
    return KERNEL_OK;
}

static size_t no_workspace(const struct gumbel_problem *problem) {
    (void)problem;
    return 0;
}

#define GUMBEL_CPU_VARIANT(NAME, SUMMARY)                                                          \
    static int NAME##_launch(const struct gumbel_problem *problem, void *workspace,                \
                             size_t workspace_bytes, void *stream) {                               \
        (void)workspace, (void)workspace_bytes, (void)stream;                                      \
        return launch(&noise_##NAME, problem);                                                     \
    }                                                                                              \
    static int NAME##_dump(const struct gumbel_problem *problem, double *noise, void *stream) {    \
        (void)stream;                                                                              \
        return dump(&noise_##NAME, problem, noise);                                                \
    }                                                                                              \
    const struct gumbel_variant gumbel_cpu_##NAME = {                                              \
        .name = #NAME,                                                                             \
        .summary = (SUMMARY),                                                                      \
        .device = KERNEL_DEVICE_CPU,                                                               \
        .workspace_size = no_workspace,                                                            \
        .launch = NAME##_launch,                                                                   \
        .noise = NAME##_dump,                                                                      \
    };

GUMBEL_CPU_VARIANT(log, "-log(-log(u)) in binary32: cuts noise off near 16.6 (before the fix)")
GUMBEL_CPU_VARIANT(log1p, "-log(-log1p(-u)) in binary32: the tail sits where u is fine (the fix)")
GUMBEL_CPU_VARIANT(fp64, "-log(-log(u)) with 64-bit words in binary64: the reference path")
GUMBEL_CPU_VARIANT(murmur, "hashed words, log(1 - u) by series near 0: what ships today")
