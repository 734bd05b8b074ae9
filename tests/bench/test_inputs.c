/* Inputs: the frozen generator's bytes, and each family against a plain restatement of it. */
#include "bench/inputs.h"
#include "kernels/philox.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 42, ROWS = 3, VOCAB = 3000 };

static const char captured_dir[] = TOPP_SOURCE_DIR "/profiles/captured";
static bool check_all;

static struct logits make(const char *text, int64_t batch, int64_t vocab, int64_t stride,
                          int64_t first_row, int64_t seed) {
    struct family family;
    struct logits out;
    struct tb_error error = TB_ERROR_INIT;
    assert_int_equal(family_parse(text, &family, &error), TB_OK);
    assert_string_equal(family.text, text);
    const struct input_request request = {.family = &family,
                                          .batch = batch,
                                          .vocab = vocab,
                                          .stride = stride,
                                          .first_row = first_row,
                                          .seed = seed,
                                          .captured_dir = captured_dir};
    if (input_make(&request, &out, &error) != TB_OK)
        fail_msg("%s: %s", text, error.message);
    return out;
}

/* ---- The generator ---- */

static void test_published_hashes(void **state) {
    (void)state;
    char line[256], name[32], sha256[80];
    long long seed, vocab, batch;
    int checked = 0;
    FILE *file = fopen(TOPP_SOURCE_DIR "/tests/data/input_sha256.tsv", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%31s %lld %lld %lld %79s", name, &seed, &vocab, &batch, sha256) != 5)
            continue;
        if (!check_all && vocab * batch > 600000)
            continue;
        struct logits out = make(name, batch, vocab, 0, 0, seed);
        assert_string_equal(out.sha256, sha256);
        logits_free(&out);
        checked++;
    }
    fclose(file);
    assert_int_equal(checked, check_all ? 48 : 26);
}

static void test_published_values(void **state) {
    (void)state;
    static const float row0[] = {-0x1.a4ae2p-1f, -0x1.447a72p-1f, -0x1.08825p-5f, 0x1.22cbf6p+0f};
    static const float row1[] = {-0x1.776a2ap-1f, -0x1.0ec424p+0f, -0x1.597170p+0f, 0x1.937cc6p-1f};
    static const float peaked[] = {-0x1.8dbda2p+1f, -0x1.00f93p+3f, -0x1.a7ec56p+2f,
                                   0x1.b6e308p-1f};
    struct logits normal = make("normal", 2, 1000, 0, 0, SEED);
    assert_memory_equal(normal.data, row0, sizeof row0);
    assert_memory_equal(normal.data + 1000, row1, sizeof row1);
    logits_free(&normal);
    struct logits strong = make("peaked", 1, 1000, 0, 0, SEED);
    assert_memory_equal(strong.data, peaked, sizeof peaked);
    assert_true(strong.data[999] == -0x1.5d4002p+0f);
    logits_free(&strong);
}

/* normal(seed, stream) as the definition reads, in 64-bit integers. */
static float plain_normal(int64_t seed, uint32_t row, uint32_t token, uint32_t stream) {
    const uint32_t k0 = (uint32_t)(uint64_t)seed, k1 = (uint32_t)((uint64_t)seed >> 32);
    int64_t sum = -4 * (((int64_t)1 << 24) - 1);
    for (uint32_t half = 0; half < 2; half++) {
        const struct philox_words w = philox4x32(token, row, stream, half, k0, k1);
        sum += (int64_t)(w.w0 >> 8) + (w.w1 >> 8) + (w.w2 >> 8) + (w.w3 >> 8);
    }
    const float scaled = (float)sum * 0x1p-24f;
    return scaled * 1.2247449f;
}

static uint32_t plain_word(int64_t seed, uint32_t row, uint32_t token, uint32_t stream) {
    const uint32_t k0 = (uint32_t)(uint64_t)seed, k1 = (uint32_t)((uint64_t)seed >> 32);
    return philox4x32(token, row, stream, 0, k0, k1).w0;
}

static float plain_peaked(int64_t seed, uint32_t row, uint32_t token) {
    const float tail = plain_normal(seed, row, token, 0) * 2.5f;
    if (token >= 64)
        return tail;
    const float peak = plain_normal(seed, row, token, 1) * 6.0f;
    return tail + peak;
}

/* ---- Families, token by token ---- */

typedef float (*plain_token)(int64_t seed, uint32_t row, uint32_t token);

static float plain_normal0(int64_t seed, uint32_t row, uint32_t token) {
    return plain_normal(seed, row, token, 0);
}
static float plain_flat(int64_t seed, uint32_t row, uint32_t token) {
    (void)seed, (void)row, (void)token;
    return -87.0f;
}
/* To nearest even by hand: the quarters are exact in binary64. */
static float plain_step(int64_t seed, uint32_t row, uint32_t token) {
    const double quarters = (double)(plain_normal(seed, row, token, 0) / 0.25f);
    double whole = floor(quarters);
    const double part = quarters - whole;
    if (part > 0.5 || (part == 0.5 && fmod(whole, 2.0) != 0))
        whole += 1;
    return (float)copysign(whole * 0.25, quarters);
}
static float plain_plateau(int64_t seed, uint32_t row, uint32_t token) {
    return plain_word(seed, row, token, 2) % 4 ? 1.0f : plain_normal(seed, row, token, 0);
}
static float plain_adjacent(int64_t seed, uint32_t row, uint32_t token) {
    float value = 1.0f;
    for (uint32_t k = plain_word(seed, row, token, 2) % 8; k > 0; k--)
        value = nextafterf(value, 2.0f);
    return value;
}
static float plain_huge(int64_t seed, uint32_t row, uint32_t token) {
    return plain_peaked(seed, row, token) * 8e36f;
}
static float plain_subnormal(int64_t seed, uint32_t row, uint32_t token) {
    return (float)ldexp((double)plain_peaked(seed, row, token), -140);
}
static float plain_nan(int64_t seed, uint32_t row, uint32_t token) {
    return row == 0 && token == 7 ? NAN : plain_peaked(seed, row, token);
}
static float plain_inf(int64_t seed, uint32_t row, uint32_t token) {
    return row == 0 && token == 7 ? INFINITY : plain_peaked(seed, row, token);
}
static float plain_empty(int64_t seed, uint32_t row, uint32_t token) {
    return row == 0 ? -INFINITY : plain_peaked(seed, row, token);
}
static float plain_forced(int64_t seed, uint32_t row, uint32_t token) {
    return token == 13 ? (float)(1e9 / 0.6) : plain_normal(seed, row, token, 0);
}
static float plain_forced_last(int64_t seed, uint32_t row, uint32_t token) {
    return token == VOCAB - 1 ? 3e38f : plain_normal(seed, row, token, 0);
}

static const struct {
    const char *name;
    plain_token token;
} families[] = {
    {"normal", plain_normal0},
    {"peaked", plain_peaked},
    {"mixed", plain_peaked},
    {"forced=1e9/0.6@13", plain_forced},
    {"forced=3e38@last", plain_forced_last},
    {"flat=-87", plain_flat},
    {"ties=step", plain_step},
    {"ties=plateau", plain_plateau},
    {"adjacent", plain_adjacent},
    {"hazard=nan", plain_nan},
    {"hazard=inf", plain_inf},
    {"hazard=empty", plain_empty},
    {"hazard=huge", plain_huge},
    {"hazard=subnormal", plain_subnormal},
};

static void check_family(size_t i, int64_t seed, int64_t first_row) {
    const int64_t stride = VOCAB + 5;
    struct logits out = make(families[i].name, ROWS, VOCAB, stride, first_row, seed);
    for (int64_t r = 0; r < ROWS; r++) {
        for (int64_t t = 0; t < VOCAB; t++) {
            const float want = families[i].token(seed, (uint32_t)(first_row + r), (uint32_t)t);
            const float have = out.data[r * stride + t];
            if (!(have == want && signbit(have) == signbit(want)) && !(isnan(have) && isnan(want)))
                fail_msg("%s row %d token %d: %a, wanted %a", families[i].name, (int)r, (int)t,
                         (double)have, (double)want);
        }
        for (int64_t t = VOCAB; t < stride; t++)
            assert_true(out.data[r * stride + t] == 3e38f);
    }
    logits_free(&out);
}

static void test_families(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        check_family(i, SEED, 0);
        check_family(i, -7, 1000);
        check_family(i, INT64_C(0x123456789ABCDEF), 5);
    }
}

/* ---- Masked rows ---- */

static void test_masked_share(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double share;
    } cases[] = {
        {"masked=0.5", 0.5}, {"masked=0.9", 0.9}, {"masked=0.99", 0.99}, {"masked=0.9999", 0.9999}};
    for (size_t i = 0; i < 4; i++) {
        struct logits out = make(cases[i].name, ROWS, VOCAB, 0, 0, SEED);
        for (uint32_t r = 0; r < ROWS; r++) {
            uint32_t best = 0;
            for (uint32_t t = 1; t < VOCAB; t++)
                if (plain_peaked(SEED, r, t) > plain_peaked(SEED, r, best))
                    best = t;
            for (uint32_t t = 0; t < VOCAB; t++) {
                const bool masked =
                    t != best && (double)plain_word(SEED, r, t, 3) < cases[i].share * 0x1p32;
                const float have = out.data[r * VOCAB + t];
                assert_true(masked ? have == -INFINITY : have == plain_peaked(SEED, r, t));
            }
        }
        logits_free(&out);
    }
}

static void test_masked_keep(void **state) {
    (void)state;
    static const int keep[] = {1, 2, 5, 1024};
    for (size_t i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "masked=keep%d", keep[i]);
        const uint32_t vocab = keep[i] == 1024 ? 1500 : VOCAB;
        struct logits out = make(name, ROWS, vocab, 0, 0, SEED);
        for (uint32_t r = 0; r < ROWS; r++) {
            int kept = 0;
            for (uint32_t t = 0; t < vocab; t++) {
                int smaller = 0; /* how many tokens come before t by (word, id) */
                for (uint32_t u = 0; u < vocab && smaller < keep[i]; u++)
                    smaller += plain_word(SEED, r, u, 3) < plain_word(SEED, r, t, 3) ||
                               (plain_word(SEED, r, u, 3) == plain_word(SEED, r, t, 3) && u < t);
                const float have = out.data[r * vocab + t];
                assert_true(smaller < keep[i] ? have == plain_peaked(SEED, r, t)
                                              : have == -INFINITY);
                kept += smaller < keep[i];
            }
            assert_int_equal(kept, keep[i]);
        }
        logits_free(&out);
    }
    struct logits few = make("masked=keep5", 1, 3, 0, 0, SEED);
    for (uint32_t t = 0; t < 3; t++)
        assert_true(few.data[t] == plain_peaked(SEED, 0, t));
    logits_free(&few);
}

/* ---- Captured rows ---- */

static void test_captured(void **state) {
    (void)state;
    struct logits file, rows;
    struct tb_error error = TB_ERROR_INIT;
    int64_t batch = 0, vocab = 0;
    const char *path = TOPP_SOURCE_DIR "/profiles/captured/smollm2_135m_decode.npy";
    assert_int_equal(npy_shape(path, &batch, &vocab, &error), TB_OK);
    assert_int_equal(batch, 64);
    assert_int_equal(vocab, 49152);
    assert_int_equal(npy_read(path, false, &file, &error), TB_OK);
    rows = make("captured=smollm2_135m_decode", 5, 0, 0, 62, SEED);
    assert_int_equal(rows.vocab, vocab);
    for (int64_t i = 0; i < 5; i++) /* rows 62, 63, then from the start again */
        assert_memory_equal(rows.data + i * vocab, file.data + (62 + i) % 64 * vocab,
                            (size_t)vocab * sizeof(float));
    logits_free(&rows);
    logits_free(&file);
}

/* ---- Names and requests ---- */

static void test_forced_tokens(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t vocab, token;
    } cases[] = {{"forced=1e9@0", 100, 0},          {"forced=1e9@13", 100, 13},
                 {"forced=1e9@last", 100, 99},      {"forced=1e9@tail", 100, 0},
                 {"forced=1e9@tail", 8192, 0},      {"forced=1e9@tail", 8193, 8192},
                 {"forced=1e9@tail", 32000, 24576}, {"normal", 100, -1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct family family;
        struct tb_error error = TB_ERROR_INIT;
        assert_int_equal(family_parse(cases[i].name, &family, &error), TB_OK);
        assert_int_equal(family_forced_token(&family, cases[i].vocab), cases[i].token);
    }
}

static void test_mixed_p(void **state) {
    (void)state;
    struct family mixed, normal;
    assert_int_equal(family_parse("mixed", &mixed, NULL), TB_OK);
    assert_int_equal(family_parse("normal", &normal, NULL), TB_OK);
    assert_true(family_row_p(&mixed, 0.5f, 0) == 0.5f && family_row_p(&mixed, 0.5f, 1) == 1.0f);
    assert_true(family_row_p(&normal, 0.5f, 1) == 0.5f);
}

static void test_unknown_names(void **state) {
    (void)state;
    static const char *const names[] = {
        "",
        "norma",
        "normal ",
        "normal=1",
        "forced=",
        "forced=1e9",
        "forced=1e9@",
        "forced=x@1",
        "forced=1e9@-1",
        "forced=1e9@1.5",
        "forced=1e9@007",
        "forced=1e40@0",
        "forced=nan@0",
        "forced=0x1@0",
        "forced=1e9/0@1",
        "flat=",
        "flat=inf",
        "flat=+1",
        "masked=0",
        "masked=1",
        "masked=1.5",
        "masked=keep0",
        "masked=keep",
        "masked=keep1025",
        "ties=",
        "ties=other",
        "adjacent=1",
        "hazard=other",
        "captured=",
        "captured=../x",
        "captured=.x",
        "captured=a/b",
        "captured=a b",
        "captured="
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaa"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct family family;
        struct tb_error error = TB_ERROR_INIT;
        if (family_parse(names[i], &family, &error) != TB_USAGE || !error.message[0])
            fail_msg("`%s` was taken for a family", names[i]);
    }
}

static void test_refused_requests(void **state) {
    (void)state;
    static const struct {
        const char *name, *family;
        int64_t batch, vocab, stride, first_row;
        enum tb_status status;
        const char *says;
    } cases[] = {
        {"no row", "normal", 0, 10, 0, 0, TB_USAGE, "batch and vocab start at 1"},
        {"no token", "normal", 1, 0, 0, 0, TB_USAGE, "batch and vocab start at 1"},
        {"vocab", "normal", 1, INT64_C(1) << 31, 0, 0, TB_USAGE, "2^31 - 1"},
        {"stride", "normal", 1, 10, 9, 0, TB_USAGE, "stride 9"},
        {"row", "normal", 1, 10, 0, -1, TB_USAGE, "2^32"},
        {"rows", "normal", 1, 10, 0, UINT32_MAX, TB_USAGE, "2^32"},
        {"forced id", "forced=1e9@10", 1, 10, 0, 0, TB_USAGE, "token 10 is outside"},
        {"memory", "normal", UINT32_MAX - 1, INT32_MAX, 0, 0, TB_NO_MEMORY, "memory"},
        {"captured file", "captured=no_such", 1, 0, 0, 0, TB_UNREADABLE, "cannot be opened"},
        {"captured vocab", "captured=smollm2_135m_decode", 1, 49151, 0, 0, TB_USAGE, "49152"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct family family;
        struct logits out;
        struct tb_error error = TB_ERROR_INIT;
        assert_int_equal(family_parse(cases[i].family, &family, NULL), TB_OK);
        const struct input_request request = {.family = &family,
                                              .batch = cases[i].batch,
                                              .vocab = cases[i].vocab,
                                              .stride = cases[i].stride,
                                              .first_row = cases[i].first_row,
                                              .captured_dir = captured_dir};
        const enum tb_status status = input_make(&request, &out, &error);
        if (status != cases[i].status || !strstr(error.message, cases[i].says))
            fail_msg("%s: status %d, `%s`", cases[i].name, status, error.message);
        assert_null(out.data);
    }
}

int main(int argc, char **argv) {
    check_all = argc > 1 && !strcmp(argv[1], "--all");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_hashes), cmocka_unit_test(test_published_values),
        cmocka_unit_test(test_families),         cmocka_unit_test(test_masked_share),
        cmocka_unit_test(test_masked_keep),      cmocka_unit_test(test_captured),
        cmocka_unit_test(test_forced_tokens),    cmocka_unit_test(test_mixed_p),
        cmocka_unit_test(test_unknown_names),    cmocka_unit_test(test_refused_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
