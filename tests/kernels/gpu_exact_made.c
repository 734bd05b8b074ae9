/* Rows of `exact`'s checks that no family makes: drawn ones, and such as put the boundary where it
 * hurts. */
#include "tests/kernels/gpu_exact.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Small generator of its own: shapes, spreads and p mixed. */
static uint64_t state = 0x9e3779b97f4a7c15ull;
static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}
static double uniform(void) {
    return (double)(next() >> 11) * 0x1p-53;
}

static float random_logit(int kind, double spread, float step) {
    const double u = uniform() + uniform() + uniform() + uniform() - 2.0;
    switch (kind) {
    case 0:
        return (float)(u * spread);
    case 1: /* as from a binary16 or bfloat16 model */
        return (float)(rint(u * spread / step) * step);
    case 2: /* heavy top */
        return (float)(-log(uniform() + 1e-300) * spread);
    case 3: /* many masked */
        return next() & 7 ? -INFINITY : (float)(u * spread);
    case 4: /* two levels */
        return next() & 1 ? 0.0f : -step;
    default: /* penalties */
        return next() & 15 ? (float)(u * spread) : -10000.0f;
    }
}

static float random_p(void) {
    switch (next() % 8) {
    case 0:
        return 0x1.fffffep-1f;
    case 1:
        return 1e-6f;
    case 2:
        return (float)(1.0 - 1e-3 * uniform());
    case 3:
        return 0.5f;
    default:
        return (float)(0.999999 * uniform() + 5e-7);
    }
}

void check_random(void) {
    const double since = seconds();
    struct gpu_count count = {0};
    float *const rows = malloc(sizeof *rows << 24);
    float p[2048];
    while (count.rows < random_rows) {
        static const int64_t sizes[] = {1, 2, 7, 33, 257, 1000, 1023, 4097, 9000, 33000, 70001};
        const int64_t vocab = sizes[next() % 11] + (int64_t)(next() % 3);
        int64_t batch = 1 + (int64_t)(next() % 1500);
        batch = batch * (vocab + 2) > 1 << 22 ? ((1 << 22) / (vocab + 2)) : batch;
        const int64_t stride = vocab + (int64_t)(next() % 3);
        for (int64_t row = 0; row < batch; row++) {
            const int kind = (int)(next() % 6);
            const double spread = exp(8.0 * uniform() - 3.0);
            const float step = exp2f((float)((int)(next() % 12) - 8));
            p[row] = random_p();
            for (int64_t t = 0; t < vocab; t++)
                rows[row * stride + t] = random_logit(kind, spread, step);
            if (kind == 3)
                rows[row * stride + (int64_t)(next() % (uint64_t)vocab)] = 0.25f;
            for (int64_t t = vocab; t < stride; t++)
                rows[row * stride + t] = 3e38f;
        }
        const struct gpu_case the_case = {"random",
                                          rows,
                                          p,
                                          batch,
                                          vocab,
                                          stride,
                                          next() & 1 ? -INFINITY : -1e4f,
                                          (int32_t)(next() & 3),
                                          NULL};
        gpu_check(variant, &the_case, next() & 1 ? GPU_GRAPH : GPU_STREAM, &count);
    }
    free(rows);
    report("random", &count, since);
}

/* Rows whose boundary the fast sums cannot certify: the prefix weight is the target, or one unit
 * from it. They must escalate and still be right. */
void check_planted(void) {
    const double since = seconds();
    struct gpu_count count = {0};
    static const int64_t vocabs[] = {2, 4, 64, 1000, 4096, 65536, 128256, 262144};
    for (size_t v = 0; v < sizeof vocabs / sizeof vocabs[0]; v++) {
        const int64_t vocab = vocabs[v];
        float *const rows = malloc((size_t)vocab * 8 * sizeof *rows);
        const float p[8] = {0.5f, 0x1.000002p-1f, 0x1.fffffep-2f, 0.25f, 0.75f, 0.5f, 0.5f, 0.5f};
        for (int64_t t = 0; t < vocab; t++) {
            for (int row = 0; row < 5; row++)
                rows[row * vocab + t] = 1.0f; /* flat: n / vocab hits p exactly */
            rows[5 * vocab + t] = t < vocab / 2 ? 3.0f : 3.0f - 800.0f; /* weights 1 and 0 */
            rows[6 * vocab + t] = t % 2 ? -0.0f : 0.0f;
            rows[7 * vocab + t] = t < vocab / 2 ? 1.0f : 1.0f - 0x1p-24f; /* one unit apart */
        }
        const struct gpu_case the_case = {"planted", rows, p, 8, vocab, vocab, -INFINITY, 0, NULL};
        const int64_t before = count.escalated;
        gpu_check(variant, &the_case, GPU_STREAM, &count);
        if (count.escalated - before < (vocab > 2 ? 5 : 2)) {
            printf("planted: only %lld of 8 rows of vocabulary %lld escalated\n",
                   (long long)(count.escalated - before), (long long)vocab);
            failures++;
        }
        free(rows);
    }
    report("planted", &count, since);
}

static int descending(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* Ordinary rows with a p chosen so that some prefix comes within 1e-10 of the target, and of what
 * is left. */
void check_near(void) {
    enum { ROWS = 64, VOCAB = 6000 };
    const double since = seconds();
    struct gpu_count count = {0};
    float *const rows = malloc(sizeof *rows * ROWS * VOCAB), *const sorted =
                                                                 malloc(sizeof *sorted * VOCAB);
    float p[ROWS];
    for (int row = 0; row < ROWS; row++) {
        long double sum = 0.0L, prefix = 0.0L, nearest = 1.0L;
        for (int t = 0; t < VOCAB; t++)
            rows[row * VOCAB + t] = sorted[t] = random_logit(0, 2.0 + row % 4, 1.0f);
        qsort(sorted, VOCAB, sizeof *sorted, descending);
        for (int t = 0; t < VOCAB; t++)
            sum += expl((long double)sorted[t] - sorted[0]);
        for (int t = 0; t < VOCAB - 1; t++) {
            prefix += expl((long double)sorted[t] - sorted[0]);
            const float rounded = (float)(prefix / sum);
            const long double distance =
                fabsl(rounded * sum / prefix - 1.0L) / (1.0L - prefix / sum);
            if (rounded < 1.0f && distance < nearest) {
                nearest = distance;
                p[row] = rounded;
            }
        }
    }
    const struct gpu_case the_case = {"near", rows, p, ROWS, VOCAB, VOCAB, -INFINITY, 0, NULL};
    gpu_check(variant, &the_case, GPU_STREAM, &count);
    if (count.escalated < ROWS) {
        printf("near: only %lld of %d rows escalated\n", (long long)count.escalated, ROWS);
        failures++;
    }
    free(rows);
    free(sorted);
    report("near", &count, since);
}

/* Rows that span more than the windows of buckets: penalties, and slopes around their widths. */
void check_wide(void) {
    static const int64_t vocabs[] = {3000, 16001, 40001};
    static const float ranges[] = {-10000.0f, -1e9f, 31.0f, 36.5f, 62.9f, 63.4f, 64.2f, 130.0f};
    enum { ROWS = sizeof ranges / sizeof *ranges };
    const double since = seconds();
    struct gpu_count count = {0};
    for (size_t v = 0; v < sizeof vocabs / sizeof *vocabs; v++) {
        const int64_t vocab = vocabs[v];
        float *const rows = malloc((size_t)vocab * ROWS * sizeof *rows), p[ROWS];
        for (int row = 0; row < ROWS; row++) {
            p[row] = row % 2 ? 0.95f : 0x1.fffffep-1f;
            for (int64_t t = 0; t < vocab; t++)
                rows[row * vocab + t] = ranges[row] < 0.0f
                                            ? next() & 15 ? random_logit(0, 3.0, 0) : ranges[row]
                                            : (float)(uniform() * ranges[row]) - 7.25f;
        }
        const struct gpu_case the_case = {"wide", rows, p, ROWS, vocab, vocab, -INFINITY, 0, NULL};
        gpu_check(variant, &the_case, GPU_STREAM, &count);
        const struct gpu_case alone = {"wide", rows, p, 1, vocab, vocab, -INFINITY, 0, NULL};
        gpu_check(variant, &alone, GPU_GRAPH, &count);
        free(rows);
    }
    report("wide", &count, since);
}

/* Whole blocks of padding: one value far below, in parts long and short, before the row's logits
 * and behind them. */
void check_padded(void) {
    static const float values[] = {-16384.0f, -16385.0f, -20000.0f, -1e5f,
                                   -1e9f,     -3e37f,    -1.6e38f,  -3e38f};
    enum { ROWS = sizeof values / sizeof *values };
    static const int64_t vocabs[] = {20000, 300000};
    const double since = seconds();
    struct gpu_count count = {0};
    for (size_t v = 0; v < sizeof vocabs / sizeof *vocabs; v++) {
        const int64_t vocab = vocabs[v];
        float *const rows = malloc((size_t)vocab * ROWS * sizeof *rows), p[ROWS];
        for (int row = 0; row < ROWS; row++) {
            p[row] = row % 2 ? 0.95f : 0.5f;
            for (int64_t t = 0; t < vocab; t++) {
                const bool padding = row % 4 < 2 ? t > vocab / 2 : t < vocab / 2;
                rows[row * vocab + t] = padding ? values[row] : random_logit(0, 3.0, 0);
            }
        }
        const struct gpu_case all = {"padded", rows, p, ROWS, vocab, vocab, -INFINITY, 0, NULL};
        gpu_check(variant, &all, GPU_STREAM, &count);
        free(rows);
    }
    report("padded", &count, since);
}

static void check_one(const char *name, const float *row, int64_t vocab, float p,
                      struct gpu_count *count) {
    const struct gpu_case one = {name, row, &p, 1, vocab, vocab, -INFINITY, 0, NULL};
    gpu_check(variant, &one, GPU_STREAM, count);
}

/* Two values with a target on the sum of the greater: all lies in buckets of more ties than lists
 * hold, and the boundary may be beside the one that sums point to. */
static void check_two_levels(float *row, struct gpu_count *count) {
    enum { VOCAB = 20000, ROWS = 6 };
    const float high = 2.003f, low = 1.0021f;
    const double weight = exp((double)low - (double)high);
    int made = 0;
    for (int many = 100; many < 600 && made < ROWS; many += 25)
        for (int more = 200; more < 19000 && made < ROWS; more++) {
            const double sum = many + more * weight;
            const float p = (float)(many / sum);
            if (!(fabs((double)p * sum / many - 1.0) < 1e-10 * (1.0 - (double)p)))
                continue;
            for (int t = 0; t < VOCAB; t++)
                row[t] = t < many ? high : t < many + more ? low : -INFINITY;
            check_one("two levels", row, VOCAB, p, count);
            made++;
        }
    if (made < ROWS) {
        printf("unsure: only %d of %d rows of two levels made\n", made, ROWS);
        failures++;
    }
}

/* Rows made against steps of the kernel, each of which has gone wrong once. */
void check_unsure(void) {
    enum { VOCAB = 412000 };
    const double since = seconds();
    struct gpu_count count = {0};
    float *const row = malloc(sizeof *row * VOCAB);
    check_two_levels(row, &count);
    /* A block's first logit lies as far under the maximum as buckets tell apart, and another as far
     * under that one as is summed. */
    for (int t = 0; t < 8000; t++)
        row[t] = -INFINITY;
    row[0] = -10.0f + 63.5f / 64.0f - 0x1p-19f + 40.0f;
    row[100] = row[0] - 40.0f;
    for (int i = 0; i < 5; i++)
        row[5000 + i] = 54.0f - 0x1p-7f - (float)i;
    for (int i = 1; i < 20; i += 2)
        check_one("far", row, 8000, (float)i / 20.0f, &count);
    /* More tokens of one bin in a block than its 32-bit halves would hold. */
    for (int t = 0; t < 151936; t++)
        row[t] = t % 3 < 2 ? 0x1.ff254p-2f : 0x1.ff254p-2f - 0x1p-10f;
    check_one("few values", row, 151936, 0.7f, &count);
    for (int t = 0; t < VOCAB; t++) {
        const int turn = (int)((uint64_t)t * 2654435761u % 41); /* 14, 1, 13 and 13 of 41 */
        row[t] = 0.5f - (turn < 14 ? 0.0f : turn < 15 ? 1.0f : turn < 28 ? 2.0f : 3.0f) * 0x1p-10f;
    }
    check_one("few values", row, VOCAB, 0x1.6a230ep-2f, &count);
    check_one("few values", row, VOCAB, 0.5f, &count);
    /* The target is within a rounding of the sum above an empty bucket: so many buckets below the
     * maximum, so many tokens. */
    static const int steps[][2] = {{0, 23},  {1, 3},    {2, 27},  {3, 40},  {4, 21},
                                   {5, 14},  {64, 334}, {153, 1}, {366, 1}, {689, 1},
                                   {967, 1}, {1544, 1}, {1796, 1}};
    int vocab = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        for (int n = 0; n < steps[i][1]; n++)
            row[vocab++] = (float)(4095 - steps[i][0]) / 64.0f;
    check_one("empty bucket", row, vocab, 0.5f, &count);
    /* Lists hold each block's tokens, and one of the finer bins more of them than are compared. */
    for (int t = 0; t < 50000; t++) {
        const int place = t % 3125; /* of a part, should there be 16 */
        row[t] = place < 55    ? 0.1f + (float)(place % 4) * 0x1p-27f
                 : place == 55 ? 0.1f - 0x1p-19f
                               : -20.0f - (float)uniform();
    }
    check_one("one bin", row, 50000, 0.4537f, &count);
    free(row);
    report("unsure", &count, since);
}

/* Ties around what lists hold, in one block or in all; blocks that hold nothing. */
void check_crowded(void) {
    enum { VOCAB = 32768, ROWS = 12 };
    static const int ties[ROWS] = {61, 62, 63, 64, 65, 66, 300, 400, 900, 1100, 300, 63};
    const double since = seconds();
    struct gpu_count count = {0};
    float *const rows = malloc(sizeof *rows * ROWS * VOCAB), p[ROWS];
    for (int row = 0; row < ROWS; row++) {
        float *const x = rows + (size_t)row * VOCAB;
        for (int t = 0; t < VOCAB; t++)
            x[t] = row >= 10 && t < VOCAB / 8 ? -INFINITY : -20.0f - (float)uniform();
        for (int i = 0; i < ties[row]; i++) /* the first ones side by side, the others spread */
            x[row < 6 ? i : VOCAB / ties[row] * i + 3] = 0.1f;
        x[VOCAB - 5] = row < 6 ? -19.0f : 0.1f + 0x1p-20f;
        p[row] = 0.5037f;
        const struct gpu_case one = {"crowded", x, &p[row], 1, VOCAB, VOCAB, -INFINITY, 0, NULL};
        gpu_check(variant, &one, GPU_STREAM, &count);
    }
    free(rows);
    report("crowded", &count, since);
}
