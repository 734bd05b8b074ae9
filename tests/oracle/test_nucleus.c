/* The binary64 reference against an independent judge, on real rows, and under threads. */
#include "oracle/gate.h"
#include "oracle/nucleus.h"
#include "tests/oracle/judge.h"
#include "tests/oracle/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    JUDGED_ROWS = 2000,
    JUDGED_P = 4,
    VOCAB_GREATEST = 4200, /* past two blocks of checkpoints */
    CAPTURED_ROWS = 64,
    CAPTURED_VOCAB = 49152,
    CAPTURED_P = 6,
};

struct judged {
    float row[VOCAB_GREATEST], p[JUDGED_P];
    int64_t vocab;
    enum row_kind kind;
};

/* Row `seed` of the 2,000: every kind in turn, one in twenty long, and many of one or two tokens.
 */
static void make_judged(uint64_t seed, struct judged *judged) {
    static const int64_t edges[] = {1, 2, 3, 2047, 2048, 2049, 4096, 4097};
    uint64_t state = seed;
    const uint64_t pick = rows_below(&state, 40);
    judged->kind = (enum row_kind)(seed % ROW_KINDS);
    judged->vocab = pick < 8 ? edges[pick] : 1 + (int64_t)rows_below(&state, 300);
    if (pick >= 38)
        judged->vocab = 1 + (int64_t)rows_below(&state, VOCAB_GREATEST);
    for (int i = 0; i < JUDGED_P; i++)
        judged->p[i] = rows_p(&state);
    rows_fill(judged->kind, &state, judged->row, judged->vocab);
}

static void put(FILE *file, const struct judged *judged) {
    const int64_t head[] = {judged->vocab, JUDGED_P};
    assert_int_equal(fwrite(head, sizeof head, 1, file), 1);
    assert_int_equal(fwrite(judged->p, sizeof judged->p, 1, file), 1);
    assert_int_equal(fwrite(judged->row, sizeof(float), (size_t)judged->vocab, file),
                     judged->vocab);
}

static void check_answer(uint64_t seed, float p, const struct nucleus *got, const char *line) {
    char status[64], hex[3][64];
    long long n, token;
    assert_int_equal(
        sscanf(line, "%63s %lld %lld %63s %63s %63s", status, &n, &token, hex[0], hex[1], hex[2]),
        6);
    const double sums[] = {got->normalizer, got->prefix, got->prefix_less};
    bool same = strcmp(status, nucleus_status_name(got->status)) == 0 && n == got->kept &&
                token == got->boundary_token;
    for (int i = 0; i < 3; i++)
        same = same && strtod(hex[i], NULL) == sums[i];
    if (!same)
        fail_msg("row %d, p %a: %s n %lld token %lld sums %a %a %a, but the judge says %s",
                 (int)seed, (double)p, nucleus_status_name(got->status), (long long)got->kept,
                 (long long)got->boundary_token, sums[0], sums[1], sums[2], line);
}

static void test_judge(void **state) {
    (void)state;
    char line[512];
    struct judged *const judged = malloc(sizeof *judged);
    FILE *const requests = judge_requests();
    int64_t by_status[4] = {0}, cut = 0;
    for (uint64_t seed = 0; seed < JUDGED_ROWS; seed++) {
        make_judged(seed, judged);
        put(requests, judged);
    }
    FILE *const answers = judge_ask(requests, "--rows");
    for (uint64_t seed = 0; seed < JUDGED_ROWS; seed++) {
        struct nucleus got[JUDGED_P];
        struct tb_error error = TB_ERROR_INIT;
        make_judged(seed, judged);
        assert_int_equal(nucleus_rows(judged->row, 1, judged->vocab, judged->vocab, judged->p,
                                      JUDGED_P, 1, got, &error),
                         TB_OK);
        for (int i = 0; i < JUDGED_P; i++) {
            assert_non_null(fgets(line, sizeof line, answers));
            check_answer(seed, judged->p[i], &got[i], line);
            by_status[got[i].status]++;
            cut += got[i].status == NUCLEUS_OK && !got[i].untouched && got[i].kept > 1;
        }
    }
    judge_close(requests, answers);
    free(judged);
    print_message("judged: %d ok (%d of several tokens), %d empty, %d nonfinite, %d ambiguous\n",
                  (int)by_status[NUCLEUS_OK], (int)cut, (int)by_status[NUCLEUS_EMPTY_ROW],
                  (int)by_status[NUCLEUS_NONFINITE_INPUT], (int)by_status[NUCLEUS_AMBIGUOUS]);
    /* The comparison would prove nothing if the rows were all of one kind. */
    assert_true(cut > JUDGED_ROWS);
    assert_true(by_status[NUCLEUS_EMPTY_ROW] > 100 && by_status[NUCLEUS_NONFINITE_INPUT] > 100);
}

static float *read_captured(void) {
    const char *const path = TOPP_SOURCE_DIR "/profiles/captured/smollm2_135m_decode.npy";
    const size_t bytes = (size_t)CAPTURED_ROWS * CAPTURED_VOCAB * sizeof(float);
    FILE *const file = fopen(path, "rb");
    float *const data = malloc(bytes);
    assert_non_null(file);
    assert_non_null(data);
    assert_int_equal(fseek(file, -(long)bytes, SEEK_END), 0);
    assert_int_equal(fread(data, 1, bytes, file), bytes);
    fclose(file);
    return data;
}

/* The mask that a nucleus stands for, as golden files spell it. */
static void check_sha8(const float *row, const struct nucleus *nucleus, const char *want) {
    static float output[CAPTURED_VOCAB];
    static uint8_t bits[CAPTURED_VOCAB / 8];
    char sha8[GATE_SHA8_BYTES];
    for (int64_t t = 0; t < CAPTURED_VOCAB; t++)
        output[t] = nucleus_keeps(nucleus, row[t], t) ? row[t] : -INFINITY;
    gate_kept_bits(row, output, CAPTURED_VOCAB, bits);
    assert_int_equal(gate_row_sha8(bits, CAPTURED_VOCAB, sha8, NULL), TB_OK);
    assert_string_equal(sha8, want);
}

/* Counts published for the captured rows, and the masks of the original kernels where those kept
 * as many. */
static void test_captured(void **state) {
    (void)state;
    char line[256];
    float p[CAPTURED_ROWS * CAPTURED_P];
    static struct nucleus got[CAPTURED_ROWS * CAPTURED_P];
    static const float values[CAPTURED_P] = {0.5f, 0.8f, 0.9f, 0.95f, 0.99f, 0.999f};
    int lines = 0;
    float *const data = read_captured();
    for (int i = 0; i < CAPTURED_ROWS * CAPTURED_P; i++)
        p[i] = values[i % CAPTURED_P];
    assert_int_equal(nucleus_rows(data, CAPTURED_ROWS, CAPTURED_VOCAB, CAPTURED_VOCAB, p,
                                  CAPTURED_P, 0, got, NULL),
                     TB_OK);
    FILE *const file = fopen(TOPP_SOURCE_DIR "/tests/data/captured_oracle.tsv", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        int row;
        long long kept;
        float value;
        char sha8[GATE_SHA8_BYTES];
        if (line[0] == '#')
            continue;
        assert_int_equal(sscanf(line, "%d %f %lld %16s", &row, &value, &kept, sha8), 4);
        assert_true(value == values[lines % CAPTURED_P] && row == lines / CAPTURED_P);
        assert_int_equal(got[lines].status, NUCLEUS_OK);
        assert_int_equal(got[lines].kept, kept);
        if (sha8[0] != '-')
            check_sha8(data + (size_t)row * CAPTURED_VOCAB, &got[lines], sha8);
        lines++;
    }
    assert_int_equal(lines, CAPTURED_ROWS * CAPTURED_P);
    fclose(file);
    free(data);
}

struct refusal {
    const char *name;
    int64_t batch, vocab, stride;
    float p;
};

static const struct refusal refusals[] = {
    {"p = 0", 1, 4, 4, 0.0f},
    {"p below 0", 1, 4, 4, -0.5f},
    {"p NaN", 1, 4, 4, NAN},
    {"no tokens", 1, 0, 4, 0.5f},
    {"stride too short", 1, 4, 3, 0.5f},
    {"batch below 0", -1, 4, 4, 0.5f},
};

static void test_refusals(void **state) {
    (void)state;
    const float row[4] = {1.0f, 2.0f, 3.0f, 4.0f};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *const r = &refusals[i];
        struct nucleus out;
        struct tb_error error = TB_ERROR_INIT;
        if (nucleus_rows(row, r->batch, r->vocab, r->stride, &r->p, 1, 1, &out, &error) != TB_USAGE)
            fail_msg("%s was taken", r->name);
        assert_true(error.message[0] != '\0');
    }
}

/* A boundary of p = 1 rows is the last finite token; -inf is never counted. */
static void test_untouched(void **state) {
    (void)state;
    const float row[] = {-INFINITY, 1.0f, -3.0f, 2.0f, -3.0f, -INFINITY}, p[] = {1.0f, 0.5f};
    struct nucleus out[2];
    assert_int_equal(nucleus_rows(row, 1, 6, 6, p, 2, 1, out, NULL), TB_OK);
    assert_true(out[0].untouched && out[0].status == NUCLEUS_OK);
    assert_int_equal(out[0].kept, 4);
    assert_int_equal(out[0].boundary_token, 4);
    assert_true(out[0].boundary_logit == -3.0f && out[0].prefix == out[0].normalizer);
    assert_true(out[0].prefix_less < out[0].prefix);
    assert_true(!out[1].untouched && out[1].kept == 1 && out[1].boundary_token == 3);
}

/* A target that no prefix reaches certifies nothing: nucleus_row() alone, whose p nobody checked.
 */
static void test_never_reached(void **state) {
    (void)state;
    const float row[] = {1.0f, 2.0f, 3.0f}, p = NAN;
    struct nucleus out;
    void *const scratch = aligned_alloc(64, nucleus_scratch_bytes(3));
    assert_non_null(scratch);
    nucleus_row(row, 3, &p, 1, &out, scratch);
    assert_int_equal(out.status, NUCLEUS_AMBIGUOUS);
    assert_int_equal(out.boundary_token, -1);
    free(scratch);
}

/* Two zeros are one logit: the cut between them goes by id, and the boundary has the row's bits. */
static void test_zeros(void **state) {
    (void)state;
    const float row[] = {-0.0f, 0.0f, -0.0f, 0.0f}, p = 0.75f;
    struct nucleus out;
    assert_int_equal(nucleus_rows(row, 1, 4, 4, &p, 1, 1, &out, NULL), TB_OK);
    assert_int_equal(out.kept, 3);
    assert_int_equal(out.boundary_token, 2);
    assert_true(out.boundary_logit == 0.0f && signbit(out.boundary_logit));
}

/* Padding is poison, threads take rows as they come: neither shows in the answers. */
static void test_threads_and_stride(void **state) {
    (void)state;
    enum { BATCH = 37, VOCAB = 2500, STRIDE = 2511, COUNT = 3 };
    float *const rows = malloc((size_t)BATCH * STRIDE * sizeof *rows);
    float p[BATCH * COUNT];
    static struct nucleus want[BATCH * COUNT], got[BATCH * COUNT];
    uint64_t seed = 7;
    for (int i = 0; i < BATCH; i++) {
        rows_fill((enum row_kind)(i % ROW_KINDS), &seed, rows + i * STRIDE, VOCAB);
        for (int t = VOCAB; t < STRIDE; t++)
            rows[i * STRIDE + t] = t % 2 ? NAN : INFINITY;
    }
    for (int i = 0; i < BATCH * COUNT; i++)
        p[i] = rows_p(&seed);
    for (int i = 0; i < BATCH; i++)
        assert_int_equal(nucleus_rows(rows + i * STRIDE, 1, VOCAB, VOCAB, p + i * COUNT, COUNT, 1,
                                      want + i * COUNT, NULL),
                         TB_OK);
    static const int threads[] = {0, 1, 2, 5, 64};
    for (size_t k = 0; k < sizeof threads / sizeof *threads; k++) {
        memset(got, 0xa5, sizeof got);
        assert_int_equal(nucleus_rows(rows, BATCH, VOCAB, STRIDE, p, COUNT, threads[k], got, NULL),
                         TB_OK);
        for (int i = 0; i < BATCH * COUNT; i++) {
            assert_int_equal(got[i].status, want[i].status);
            assert_int_equal(got[i].kept, want[i].kept);
            assert_int_equal(got[i].boundary_token, want[i].boundary_token);
            assert_true(got[i].normalizer == want[i].normalizer &&
                        got[i].prefix == want[i].prefix &&
                        got[i].prefix_less == want[i].prefix_less);
        }
    }
    free(rows);
}

/* The scratch of a row must stay within twice the row, counters and a block or so aside. */
static void test_memory(void **state) {
    (void)state;
    static const int64_t vocabs[] = {1, 1000, 128256, 10000019};
    for (size_t i = 0; i < sizeof vocabs / sizeof *vocabs; i++)
        assert_true(nucleus_scratch_bytes(vocabs[i]) <= (size_t)vocabs[i] * 8 + 65536);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_judge),    cmocka_unit_test(test_captured),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_untouched),
        cmocka_unit_test(test_zeros),    cmocka_unit_test(test_threads_and_stride),
        cmocka_unit_test(test_memory),   cmocka_unit_test(test_never_reached),
    };
    return cmocka_run_group_tests_name("nucleus", tests, NULL, NULL);
}
