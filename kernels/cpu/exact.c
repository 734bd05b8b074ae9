/* The exact nucleus by selection: no sort of the row, no token undecided by rounding.
 *
 * Per row: maximum; one sweep of binary64 weights into the sums of 2048 linear buckets of 1/64
 * logit below the maximum (the last one takes all that is lower); the bucket in which the running
 * sum passes p * Z; its tokens gathered and narrowed by three radix digits of their order-keeping
 * keys to one logit; among the tokens equal to it, so many of the lowest ids as are needed. Then
 * one masking sweep.
 *
 * Why the mask is the oracle's. Let W_i be the oracle's weights (libm's exp of the rounded
 * difference, which is the same operation here), w_i ours, Z = sum W, A_n the sum of the first n
 * in canonical order, R_n = Z - A_n. The oracle keeps the smallest n with A_n >= p Z, that is with
 *     D_n = (1 - p) A_n - p R_n >= 0,
 * computed with a relative error of a few 2^-53 of Z (sums, target: each rounded once).
 * Here
 *   (1) |w_i - W_i| <= d W_i with d = EXP_F64X8_ERROR + 2^-51; weights under exp(-708) count as 0,
 *       which moves no sum by more than vocab * 2^-1021;
 *   (2) any order of adding at most vocab + 8192 numbers, all >= 0, in binary64 is off by at most
 *       (vocab + 8192) 2^-53 of their sum, that is of Z. 8192 also covers the sums over buckets,
 *       the few roundings of D_n itself, and the oracle's own;
 * hence |D_n - computed D_n| <= E_n = d ((1 - p) A_n + p R_n) + (vocab + 8192) 2^-52 Z, a factor
 * of two to spare in (2) and, by 2 d in the code, in (1). Weights of equal logits are equal, and
 * the buckets, digits and ids walk the row in canonical order, so that A_n sums over the true first
 * n. If computed D_n > E_n and computed D_(n-1) < -E_(n-1), the oracle's n is n: D grows with n, so
 * no other n can hold. If not (a boundary nearer to the target than the error bound: rare, and the
 * only way in which a wrong bucket could have been chosen), nothing has been written yet and the
 * row is redone as the oracle does it: exact_escalate.c.
 *
 * Deterministic: one thread, fixed order. Fused multiply-adds are allowed in this file (they only
 * save roundings), so whether a close row is escalated may differ between processors; its mask
 * may not. */
#include "kernels/cpu/exact_escalate.h"
#include "kernels/cpu/row.h"
#include "kernels/cpu/variants.h"
#include "kernels/cpu/vector_exp.h"
#include "kernels/vector.h"

enum {
    BUCKETS = 2048,
    BUCKETS_PER_LOGIT = 64,
    LANES = 4, /* copies of each histogram: neighbours do not wait for each other's sum */
    TILE = 512,
    SCAN = 64, /* tokens looked at together when a bucket's tokens are gathered */
};

/* Workspace: this, then the row's bucket numbers, then the candidates; an escalated row uses the
 * same bytes after the header. */
struct exact_header {
    int64_t escalated;
    int64_t reserved[7];
};

struct exact_scratch {
    double sums[LANES][BUCKETS];
    double total[BUCKETS];
    double weights[TILE];
    uint32_t digits[TILE];
    uint16_t *bucket; /* [vocab] */
    float *logit;     /* [vocab] candidates, in id order */
    uint32_t *id;     /* [vocab] */
};

/* A walk down the canonical order. */
struct exact_place {
    double above;  /* A: sum of all before this place */
    double target; /* p * Z */
};

static size_t align64(size_t bytes) {
    return (bytes + 63) & ~(size_t)63;
}

static size_t exact_workspace(const struct topp_problem *problem) {
    const size_t vocab = (size_t)problem->vocab;
    const size_t select = align64(sizeof(struct exact_scratch)) +
                          align64(vocab * sizeof(uint16_t)) + align64(vocab * sizeof(float)) +
                          align64(vocab * sizeof(uint32_t));
    const size_t escalate = exact_escalate_bytes(problem->vocab);
    return sizeof(struct exact_header) + (select > escalate ? select : escalate);
}

static struct exact_scratch *exact_scratch_at(void *memory, int64_t vocab) {
    struct exact_scratch *const s = memory;
    char *at = (char *)memory + align64(sizeof *s);
    s->bucket = (uint16_t *)(void *)at;
    at += align64((size_t)vocab * sizeof *s->bucket);
    s->logit = (float *)(void *)at;
    at += align64((size_t)vocab * sizeof *s->logit);
    s->id = (uint32_t *)(void *)at;
    return s;
}

/* Eight logits, those past n as -inf, widened. */
VECTOR_FN f64x8 exact_load(const float *x, int64_t n) {
    f32x8 v;
    if (n >= 8)
        memcpy(&v, x, sizeof v);
    else
        for (int k = 0; k < 8; k++)
            v[k] = k < n ? x[k] : -INFINITY;
    return __builtin_convertvector(v, f64x8);
}

/* Weights exp(x - max) and bucket numbers of n <= TILE logits. */
VECTOR_CLONES
static void exact_weigh(const float *x, int64_t n, double max, double *weights, uint16_t *bucket) {
    for (int64_t i = 0; i < n; i += 8) {
        const f64x8 d = exact_load(x + i, n - i) - f64x8_set(max);
        const f64x8 w = exp_f64x8(d);
        memcpy(weights + i, &w, sizeof w);
        f64x8 b = d * f64x8_set(-BUCKETS_PER_LOGIT);
        b = f64x8_select(b < f64x8_set(BUCKETS - 1), b, f64x8_set(BUCKETS - 1));
        const i32x8 whole = __builtin_convertvector(b, i32x8);
        const uint16_t __attribute__((vector_size(16))) narrow =
            __builtin_convertvector(whole, uint16_t __attribute__((vector_size(16))));
        if (n - i >= 8)
            memcpy(bucket + i, &narrow, sizeof narrow);
        else
            memcpy(bucket + i, &narrow, (size_t)(n - i) * sizeof *bucket);
    }
}

/* Folds the lanes into total; returns the sum over all buckets. */
static double exact_fold(struct exact_scratch *s) {
    double sum = 0.0;
    for (int b = 0; b < BUCKETS; b++) {
        s->total[b] = (s->sums[0][b] + s->sums[1][b]) + (s->sums[2][b] + s->sums[3][b]);
        sum += s->total[b];
    }
    return sum;
}

/* First bucket at whose end the sum reaches the target, with place moved to its start; -1: none. */
static int exact_find(const struct exact_scratch *s, struct exact_place *place) {
    for (int b = 0; b < BUCKETS; b++) {
        if (place->above + s->total[b] >= place->target)
            return b;
        place->above += s->total[b];
    }
    return -1;
}

/* Bucket sums of the whole row; returns Z. */
static double exact_sum_row(const float *row, int64_t vocab, float max, struct exact_scratch *s) {
    memset(s->sums, 0, sizeof s->sums);
    for (int64_t start = 0; start < vocab; start += TILE) {
        const int64_t n = vocab - start < TILE ? vocab - start : TILE;
        uint16_t *const bucket = s->bucket + start;
        exact_weigh(row + start, n, (double)max, s->weights, bucket);
        int64_t i = 0;
        for (; i + LANES <= n; i += LANES) {
            s->sums[0][bucket[i]] += s->weights[i];
            s->sums[1][bucket[i + 1]] += s->weights[i + 1];
            s->sums[2][bucket[i + 2]] += s->weights[i + 2];
            s->sums[3][bucket[i + 3]] += s->weights[i + 3];
        }
        for (; i < n; i++)
            s->sums[0][bucket[i]] += s->weights[i];
    }
    return exact_fold(s);
}

/* True when any of SCAN bucket numbers is b. */
VECTOR_FN int exact_any(const uint16_t *bucket, int b) {
    int any = 0;
    for (int k = 0; k < SCAN; k++)
        any |= bucket[k] == b;
    return any;
}

/* Gathers the tokens of bucket b into the candidate list; returns how many. */
VECTOR_CLONES
static int64_t exact_gather(const float *row, int64_t vocab, int b, struct exact_scratch *s) {
    int64_t count = 0;
    for (int64_t start = 0; start < vocab; start += SCAN) {
        const int64_t end = start + SCAN < vocab ? start + SCAN : vocab;
        if (end - start == SCAN && !exact_any(s->bucket + start, b))
            continue;
        for (int64_t i = start; i < end; i++) {
            /* Written always, counted when it belongs: no branch to mispredict. */
            s->logit[count] = row[i];
            s->id[count] = (uint32_t)i;
            count += s->bucket[i] == b;
        }
    }
    return count;
}

/* Narrows the candidates by one digit of their keys, descending; returns how many are left, 0 if
 * the sums do not reach the target. */
static int64_t exact_narrow(int64_t count, int shift, float max, struct exact_scratch *s,
                            struct exact_place *place) {
    uint16_t unused[TILE];
    memset(s->sums, 0, sizeof s->sums);
    for (int64_t start = 0; start < count; start += TILE) {
        const int64_t n = count - start < TILE ? count - start : TILE;
        exact_weigh(s->logit + start, n, (double)max, s->weights, unused);
        for (int64_t i = 0; i < n; i++) {
            const uint32_t digit = ~row_key(s->logit[start + i]) >> shift & (BUCKETS - 1);
            s->sums[i % LANES][digit] += s->weights[i];
        }
    }
    exact_fold(s);
    const int digit = exact_find(s, place);
    if (digit < 0)
        return 0;
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        const float x = s->logit[i];
        const uint32_t id = s->id[i];
        s->logit[kept] = x;
        s->id[kept] = id;
        kept += (~row_key(x) >> shift & (BUCKETS - 1)) == (uint32_t)digit;
    }
    return kept;
}

/* Computed D_n against its bound: 1 surely >= 0, -1 surely < 0, 0 uncertain. */
static int exact_sign(double above, double z, float p, int64_t vocab) {
    const double kept = (1.0 - (double)p) * above, lost = (double)p * (z - above);
    const double bound = 2.0 * (EXP_F64X8_ERROR + 0x1p-51) * (kept + fabs(lost)) +
                         (double)(vocab + 8192) * 0x1p-52 * z;
    const double d = kept - lost;
    return d > bound ? 1 : d < -bound ? -1 : 0;
}

/* The boundary by selection; false when it is not certain. */
static bool exact_select(const float *row, int64_t vocab, float max, float p, void *memory,
                         struct exact_boundary *boundary) {
    struct exact_scratch *const s = exact_scratch_at(memory, vocab);
    const double z = exact_sum_row(row, vocab, max, s);
    if (!(z < INFINITY)) { /* NaN or +inf in the row: no nucleus, nothing to mask */
        boundary->whole = true;
        return true;
    }
    struct exact_place place = {0.0, (double)p * z};
    const int b = exact_find(s, &place);
    if (b < 0)
        return false;
    int64_t count = exact_gather(row, vocab, b, s);
    for (int shift = 22; shift >= 0 && count > 0; shift -= 11)
        count = exact_narrow(count, shift, max, s, &place);
    if (count == 0)
        return false;

    /* All candidates share one logit and one weight; below exp(-708) it is 0 here. */
    uint16_t unused[8];
    double weight[8];
    exact_weigh(s->logit, 1, (double)max, weight, unused);
    if (!(weight[0] > 0.0))
        return false;
    const double need = ceil((place.target - place.above) / weight[0]);
    const int64_t n = need < 1.0 ? 1 : need < (double)count ? (int64_t)need : count;
    if (exact_sign(place.above + (double)n * weight[0], z, p, vocab) != 1)
        return false;
    const bool first = n == 1 && place.above == 0.0; /* nothing before it: 0 < p Z always */
    if (!first && exact_sign(place.above + (double)(n - 1) * weight[0], z, p, vocab) != -1)
        return false;
    boundary->whole = false;
    boundary->logit = s->logit[0];
    boundary->token = s->id[n - 1];
    return true;
}

static int exact_launch(const struct topp_problem *problem, void *workspace, size_t workspace_bytes,
                        void *stream) {
    (void)stream;
    if (problem->vocab > INT32_MAX)
        return KERNEL_UNSUPPORTED;
    if (workspace_bytes < exact_workspace(problem))
        return KERNEL_WORKSPACE;
    struct exact_header *const header = workspace;
    void *const memory = header + 1;
    header->escalated = 0;
    for (int64_t i = 0; i < problem->batch; i++) {
        float *const row = problem->logits + i * problem->stride;
        const float p = problem->p[i];
        if (p >= 1.0f)
            continue;
        const float max = row_max(row, problem->vocab);
        struct exact_boundary boundary;
        if (max == -INFINITY)
            continue;
        if (!exact_select(row, problem->vocab, max, p, memory, &boundary)) {
            header->escalated++;
            exact_escalate(row, problem->vocab, max, p, memory, &boundary);
        }
        if (!boundary.whole)
            row_mask(row, problem->vocab, boundary.logit, boundary.token, problem->mask_value);
    }
    return KERNEL_OK;
}

const struct topp_variant topp_cpu_exact = {
    .name = "exact",
    .summary = "selection by bucket sums, certified or redone in binary64: the oracle's mask",
    .device = KERNEL_DEVICE_CPU,
    .contract = "exact",
    .max_batch = 0,
    .workspace_size = exact_workspace,
    .launch = exact_launch,
};
