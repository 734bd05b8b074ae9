/* `exact` on a GPU against the oracle, bit for bit. Arguments: which checks (nearly all by
 * default), `portable` for the path without clusters, `quick` for what takes seconds, random=ROWS,
 * captured=DIRECTORY. Exit code 77 without a GPU. */
#include "tests/kernels/gpu_exact.h"

#include "bench/inputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const struct topp_variant *variant;
int64_t random_rows = 100000;
int failures;
static const char *captured = "profiles/captured";

double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void report(const char *what, const struct gpu_count *count, double since) {
    printf("%-10s %-15s rows %lld, certified %lld, equal %lld, escalated %lld (%.3f%%), %.1f s%s\n",
           what, variant->name, (long long)count->rows, (long long)count->certified,
           (long long)count->equal, (long long)count->escalated,
           100.0 * (double)count->escalated / (double)(count->rows ? count->rows : 1),
           seconds() - since, count->equal == count->certified ? "" : "  FAILED");
    fflush(stdout);
    failures += count->equal != count->certified;
}

static float *fill_p(const struct family *family, int64_t batch, float p) {
    float *const all = malloc((size_t)batch * sizeof *all);
    for (int64_t row = 0; all && row < batch; row++)
        all[row] = family_row_p(family, p, row);
    return all;
}

/* One family, shape and a list of p: the oracle solves the rows once for all p. */
static void check_shape(const char *text, int64_t vocab, int64_t batch, int64_t stride,
                        const char *directory, const float *ps, size_t p_count,
                        struct gpu_count *count) {
    struct tb_error error = TB_ERROR_INIT;
    struct family family;
    struct logits rows = {0};
    if (family_parse(text, &family, &error) != TB_OK)
        gpu_require(-1, error.message);
    const struct input_request request = {&family, batch, vocab, stride, 0, 42, directory};
    if (input_make(&request, &rows, &error) != TB_OK)
        gpu_require(-1, error.message);
    float *const matrix = malloc((size_t)rows.batch * p_count * sizeof *matrix);
    struct nucleus *const solved = malloc((size_t)rows.batch * p_count * sizeof *solved);
    struct nucleus *const nucleus = malloc((size_t)rows.batch * sizeof *nucleus);
    float *const out = malloc((size_t)(rows.batch * rows.stride) * sizeof *out);
    uint32_t *const escalated = malloc((size_t)rows.batch * sizeof *escalated);
    for (int64_t row = 0; row < rows.batch; row++)
        for (size_t k = 0; k < p_count; k++)
            matrix[(size_t)row * p_count + k] = family_row_p(&family, ps[k], row);
    if (nucleus_rows(rows.data, rows.batch, rows.vocab, rows.stride, matrix, p_count, 0, solved,
                     &error) != TB_OK)
        gpu_require(-1, error.message);
    for (size_t k = 0; k < p_count; k++) {
        float *const p = fill_p(&family, rows.batch, ps[k]);
        const struct gpu_case the_case = {text,        rows.data, p, rows.batch, rows.vocab,
                                          rows.stride, -INFINITY, 0, NULL};
        for (int64_t row = 0; row < rows.batch; row++)
            nucleus[row] = solved[(size_t)row * p_count + k];
        gpu_run(variant, &the_case, k % 2 ? GPU_GRAPH : GPU_STREAM, out, escalated);
        gpu_compare(&the_case, nucleus, out, count);
        for (int64_t row = 0; row < rows.batch; row++)
            count->escalated += escalated[row];
        free(p);
    }
    free(matrix);
    free(solved);
    free(nucleus);
    free(out);
    free(escalated);
    logits_free(&rows);
}

static const float usual[] = {0.1f, 0.5f, 0.9f, 0.95f, 0.99f, 0.999f};
static const float ends[] = {1e-6f, 1e-4f, 0.4f, 0.95f, 0x1.ff8p-1f, 0x1.fffffep-1f};

static void check_golden(void) {
    static const int64_t vocabs[] = {1000, 32000, 50257, 128256, 151936, 262144};
    static const int64_t batches[] = {1, 4, 16, 64};
    const double since = seconds();
    struct gpu_count count = {0};
    for (size_t v = 0; v < 6; v++)
        for (size_t b = 0; b < 4; b++) {
            check_shape("normal", vocabs[v], batches[b], 0, NULL, usual, 6, &count);
            check_shape("peaked", vocabs[v], batches[b], 0, NULL, usual, 6, &count);
        }
    report("golden", &count, since);
}

static void check_families(void) {
    static const char *const families[] = {
        "forced=1e9@0", "forced=1e9@13",   "forced=3e38@last", "forced=1e9@tail",
        "flat=1",       "flat=0",          "flat=-87",         "ties=step",
        "ties=plateau", "adjacent",        "masked=0.5",       "masked=0.9",
        "masked=0.99",  "masked=0.9999",   "masked=keep1",     "masked=keep2",
        "masked=keep5", "mixed",           "normal",           "peaked",
        "hazard=huge",  "hazard=subnormal"};
    static const struct {
        int64_t vocab, batch, stride;
    } shapes[] = {{1000, 4, 0},      {40000, 64, 0},       {32000, 65, 32003}, {128256, 1, 0},
                  {50257, 4, 50257}, {151936, 16, 151937}, {128256, 70, 0}};
    static const float all[] = {0.95f, 0.1f, 0x1.fffffep-1f, 1e-6f, 1e-4f,
                                0.4f,  0.5f, 0.9f,           0.99f, 0.999f};
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++) {
        struct gpu_count count = {0};
        const double since = seconds();
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            check_shape(families[f], shapes[s].vocab, shapes[s].batch, shapes[s].stride, NULL, all,
                        s < 6 ? 10 : 3, &count);
        }
        report(families[f], &count, since);
    }
}

static void check_captured(void) {
    static const float all[] = {0.5f, 0.8f, 0.9f, 0.95f, 0.99f, 0.999f, 1e-6f, 0x1.fffffep-1f};
    const double since = seconds();
    struct gpu_count count = {0};
    check_shape("captured=smollm2_135m_decode", 49152, 64, 0, captured, all, 8, &count);
    check_shape("captured=smollm2_135m_decode", 49152, 1, 0, captured, all, 8, &count);
    report("captured", &count, since);
}

/* The same row alone, in a batch, in a graph, and in a thousand repetitions. */
static void check_same(void) {
    const double since = seconds();
    struct tb_error error = TB_ERROR_INIT;
    struct gpu_count count = {0};
    static const char *const texts[] = {"normal", "peaked", "ties=plateau"};
    static const int64_t vocabs[] = {128256, 32000, 50257};
    for (int f = 0; f < 3; f++) {
        struct family family;
        struct logits rows = {0};
        (void)family_parse(texts[f], &family, &error);
        const struct input_request request = {&family, 66, vocabs[f], 0, 0, 7, NULL};
        if (input_make(&request, &rows, &error) != TB_OK)
            gpu_require(-1, error.message);
        const size_t bytes = (size_t)(rows.batch * rows.stride) * sizeof(float);
        float *const first = malloc(bytes), *const again = malloc(bytes);
        float *const p = fill_p(&family, rows.batch, 0.95f);
        struct gpu_case the_case = {"same",      rows.data, p, rows.batch, rows.vocab,
                                    rows.stride, -INFINITY, 0, NULL};
        gpu_run(variant, &the_case, GPU_STREAM, first, NULL);
        for (int repeat = 0; repeat < 20; repeat++) {
            gpu_run(variant, &the_case, repeat % 2 ? GPU_STREAM : GPU_GRAPH, again, NULL);
            failures += memcmp(first, again, bytes) != 0;
            count.equal += !memcmp(first, again, bytes);
            count.rows++;
        }
        static const int64_t batches[] = {1, 2, 5, 16, 33};
        for (int b = 0; b < 5; b++) {
            the_case.batch = batches[b];
            const size_t part = (size_t)(batches[b] * rows.stride) * sizeof(float);
            for (int repeat = 0; repeat < (b ? 20 : 1000); repeat++) {
                gpu_run(variant, &the_case, GPU_STREAM, again, NULL);
                count.equal += !memcmp(first, again, part);
                count.rows++;
            }
        }
        free(first);
        free(again);
        free(p);
        logits_free(&rows);
    }
    count.certified = count.rows;
    report("same", &count, since);
}

/* Sizes at the edges of registers, shared memory, lists and segments. */
static void check_edges(void) {
    const double since = seconds();
    struct gpu_count count = {0};
    static const int64_t vocabs[] = {1,     2,     3,     4,      5,       31,     127,
                                     129,   4095,  4096,  4097,   16383,   16384,  16385,
                                     65535, 65536, 65537, 100003, 1048576, 1200001};
    for (size_t v = 0; v < sizeof vocabs / sizeof vocabs[0]; v++)
        for (int64_t batch = 1; batch <= (vocabs[v] > 200000 ? 1 : 9); batch += 4)
            for (int family = 0; family < 3; family++)
                check_shape(family == 0   ? "normal"
                            : family == 1 ? "ties=step"
                                          : "adjacent",
                            vocabs[v], batch, vocabs[v] + batch / 4, NULL, ends, 6, &count);
    report("edges", &count, since);
}

/* NaN, +inf, empty rows: it ends, and the ordinary rows are right. */
static void check_hazards(void) {
    const double since = seconds();
    struct gpu_count count = {0};
    static const char *const families[] = {"hazard=nan", "hazard=inf", "hazard=empty"};
    for (int f = 0; f < 3; f++) {
        check_shape(families[f], 1000, 4, 1003, NULL, usual, 6, &count);
        check_shape(families[f], 128256, 4, 0, NULL, usual, 6, &count);
    }
    float rows[3 * 64];
    const float p[3] = {0.9f, 0.9f, 0.9f};
    for (int t = 0; t < 64; t++) {
        rows[t] = NAN;
        rows[64 + t] = t ? INFINITY : NAN;
        rows[128 + t] = (float)t;
    }
    const struct gpu_case the_case = {"hazards", rows, p, 3, 64, 64, -INFINITY, 0, NULL};
    gpu_check(variant, &the_case, GPU_STREAM, &count);
    report("hazards", &count, since);
}

/* A few launches of every kind, for sanitizers: parts of a row short and long, one block a row and
 * many. */
static void check_kinds(const char *what, int64_t batch, size_t p_count) {
    const double since = seconds();
    struct gpu_count count = {0};
    static const char *const families[] = {"normal",        "ties=step", "flat=1",
                                           "forced=1e9@13", "adjacent",  "ties=plateau"};
    static const float few[] = {0.95f, 0.5f};
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        check_shape(families[f], 1000, batch, 1003, NULL, few, p_count, &count);
        check_shape(families[f], 16000, batch, 16001, NULL, few, p_count, &count);
        check_shape(families[f], 40001, batch, 0, NULL, few, p_count, &count);
        if (batch > 1)
            check_shape(families[f], 70001, 1, 0, NULL, few, p_count, &count);
    }
    if (batch > 1) {
        check_shape("normal", 140001, 1, 0, NULL, few, p_count, &count);
        check_shape("normal", 40001, 34, 0, NULL, few, 1, &count); /* two long parts a row */
        check_shape("normal", 70000, 70, 70001, NULL, few, p_count, &count);
    }
    report(what, &count, since);
}

static void check_small(void) {
    check_kinds("small", 2, 2);
}

/* The least of it, for tools that take their time. */
static void check_least(void) {
    check_kinds("least", 1, 1);
}

static const struct check {
    const char *name;
    void (*run)(void);
    bool always, quick; /* without being named; that in seconds, too */
} checks[] = {
    {"small", check_small, false, false},      {"least", check_least, false, false},
    {"wide", check_wide, true, true},          {"padded", check_padded, true, true},
    {"crowded", check_crowded, true, true},    {"unsure", check_unsure, true, true},
    {"planted", check_planted, true, true},    {"near", check_near, true, true},
    {"edges", check_edges, true, true},        {"hazards", check_hazards, true, true},
    {"families", check_families, true, false}, {"captured", check_captured, true, true},
    {"same", check_same, true, false},         {"random", check_random, true, true},
    {"golden", check_golden, true, false},
};
enum { CHECKS = sizeof checks / sizeof *checks };

struct request {
    bool quick, portable, some, named[CHECKS];
};

/* random=ROWS, captured=DIRECTORY; false for anything else. */
static bool take_setting(const char *word) {
    char *end;
    if (!strncmp(word, "captured=", 9)) {
        captured = word + 9;
        return *captured;
    }
    if (strncmp(word, "random=", 7) != 0)
        return false;
    random_rows = strtoll(word + 7, &end, 10);
    return random_rows > 0 && !*end;
}

static bool take_word(const char *word, struct request *request) {
    if (!strcmp(word, "quick"))
        return request->quick = true;
    if (!strcmp(word, "portable"))
        return request->portable = true;
    for (size_t k = 0; k < CHECKS; k++)
        if (!strcmp(word, checks[k].name))
            return request->some = request->named[k] = true;
    return take_setting(word);
}

static int refuse(const char *word) {
    fprintf(stderr,
            "gpu_exact: %s is no check and no setting; there are: quick portable random=ROWS "
            "captured=DIRECTORY",
            word);
    for (size_t k = 0; k < CHECKS; k++)
        fprintf(stderr, " %s", checks[k].name);
    fputc('\n', stderr);
    return 2;
}

int main(int argc, char **argv) {
    struct request request = {0};
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "quick")) /* random= may say otherwise */
            random_rows = 3000;
    for (int i = 1; i < argc; i++)
        if (!take_word(argv[i], &request))
            return refuse(argv[i]);
    variant = topp_find(request.portable ? "exact_portable" : "exact", KERNEL_DEVICE_CUDA);
    if (!variant || !gpu_present()) {
        fprintf(stderr, "no CUDA device here: skipped\n");
        return 77;
    }
    for (size_t k = 0; k < CHECKS; k++)
        if (request.some ? request.named[k]
                         : checks[k].always && (checks[k].quick || !request.quick))
            checks[k].run();
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
