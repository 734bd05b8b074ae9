/* The CPU Gumbel variants: words, uniforms, noise against the oracle's, and the rules of a draw. */
#include "kernels/gumbel_noise.h"
#include "tests/kernels/gumbel_support.h"

#include <stdlib.h>

/* ---- words ----------------------------------------------------------------------------- */

static void test_philox(void **state) {
    (void)state;
    const struct philox_words w = philox4x32(0, 0, 0, 0, 0, 0);
    assert_int_equal(w.w0, 0x6627e8d5);
    assert_int_equal(w.w1, 0xe169c58d);
    assert_int_equal(w.w2, 0xbc57ac4c);
    assert_int_equal(w.w3, 0x9b00dbd8);
    const uint32_t zero[4] = {0};
    uint32_t words[4];
    noise_philox(zero, zero, words);
    assert_int_equal(words[0], w.w0);
    assert_int_equal(words[1], w.w1);
    assert_int_equal(words[2], w.w2);
    assert_int_equal(words[3], w.w3);
}

static void test_row_keys(void **state) {
    (void)state;
    static const uint32_t keys[8] = {1471882753, 2293545012, 3954876433, 271542295,
                                     1777714396, 2463119054, 3225889480, 78255843};
    for (int64_t p = 0; p < 8; p++) {
        assert_int_equal(gumbel_row_key(0xABCD, p), keys[p]);
        assert_int_equal(noise_row_key(0xABCD, p), keys[p]);
        /* The position's low half alone counts, the seed's both halves do. */
        assert_int_equal(gumbel_row_key(0xABCD, p + (INT64_C(1) << 32)), keys[p]);
        assert_int_not_equal(gumbel_row_key(0xABCD + (INT64_C(1) << 32), p), keys[p]);
    }
}

static void test_uniforms(void **state) {
    (void)state;
    static const double right[4] = {0.5349557399749756, 0.050541020929813385, 0.7169937491416931,
                                    0.6197795867919922};
    struct noise_word words[4];
    noise_words(NOISE_LOG, 0xABCD, 3, 0, 4, words);
    const uint32_t key = gumbel_row_key(0xABCD, 3);
    for (uint32_t t = 0; t < 4; t++) {
        assert_true(noise_uniform(NOISE_LOG, words[t]) == right[t]);
        assert_true((double)gumbel_uniform32(philox4x32(t, 0, 0, 0, key, 0).w0) == right[t]);
    }
    assert_true((double)gumbel_uniform32(0) == 0);
    assert_true((double)gumbel_uniform32(0xFFFFFFFFu) == 0);
    assert_true((double)gumbel_uniform32(0x7FFFFFFFu) == 1 - 0x1p-24);
    assert_true(gumbel_uniform64(UINT32_MAX, UINT32_MAX) == 1 - 0x1p-53);
    assert_true(gumbel_uniform64(0, 0) == 0x1p-1022);
    assert_true((double)gumbel_uniform_murmur(0) == 0x1p-33);
    assert_true((double)gumbel_uniform_murmur(UINT32_MAX) == 1);
}

/* Kernel and oracle, written apart, agree on words and uniforms bit for bit. */
static void test_words_agree(void **state) {
    (void)state;
    enum { N = 4096 };
    static struct noise_word words[N];
    static const int64_t seeds[] = {0, -1, 0xABCD, INT64_MIN, 0x123456789ABCDEF};
    for (size_t s = 0; s < sizeof seeds / sizeof seeds[0]; s++) {
        const int64_t position = (int64_t)s * 0x7654321987 - 5;
        const int64_t first = s == 1 ? INT64_C(0xFFFFF000) : 1000 * (int64_t)s;
        const uint32_t key = gumbel_row_key(seeds[s], position);
        noise_words(NOISE_FP64, seeds[s], position, first, N, words);
        for (int64_t i = 0; i < N; i++) {
            const struct philox_words w = philox4x32((uint32_t)(first + i), 0, 0, 0, key, 0);
            assert_true(w.w1 == words[i].high && w.w0 == words[i].low);
        }
        const uint32_t row = gumbel_murmur_row(seeds[s], position);
        noise_words(NOISE_MURMUR, seeds[s], position, first, N, words);
        for (int64_t i = 0; i < N; i++) {
            const uint32_t h = gumbel_murmur_word(row, (uint32_t)(first + i));
            assert_true(h == words[i].high);
            assert_true((double)gumbel_uniform_murmur(h) == noise_uniform(NOISE_MURMUR, words[i]));
        }
    }
}

/* ---- noise ----------------------------------------------------------------------------- */

static void test_noise_within_bound(void **state) {
    (void)state;
    enum { ROWS = 8, VOCAB = 8191 };
    static double noise[ROWS * VOCAB];
    static const int64_t seed[ROWS] = {1, 2, 3, -4, 5, 6, 7, INT64_MAX};
    static const int64_t position[ROWS] = {0, 1, 2, 3, -1, 1 << 30, 9, 10};
    for (int v = 0; v < CPU_VARIANTS; v++) {
        const struct gumbel_variant *variant = gumbel_find(cpu_variant[v], KERNEL_DEVICE_CPU);
        const struct gumbel_problem problem = {NULL, ROWS,     VOCAB, VOCAB,
                                               seed, position, NULL,  NULL};
        assert_int_equal(variant->noise(&problem, noise, NULL), KERNEL_OK);
        enum noise_kind kind;
        assert_true(noise_parse(variant->name, &kind));
        struct noise_error error;
        noise_check(kind, seed, position, ROWS, VOCAB, noise, &error);
        print_message("%s: greatest noise error %.3g, %.2f of the bound\n", variant->name,
                      error.greatest, error.share_of_bound);
        assert_true(error.share_of_bound <= 1);
        /* The check can fail: one noise off by twice its bound, and one NaN. */
        noise[5] += 2 * noise_bound(kind, noise[5]);
        noise_check(kind, seed, position, ROWS, VOCAB, noise, &error);
        assert_true(error.share_of_bound > 1 && error.row == 0 && error.token == 5);
        noise[VOCAB + 6] = NAN;
        noise_check(kind, seed, position, ROWS, VOCAB, noise, &error);
        assert_true(isinf(error.greatest) && error.row == 1 && error.token == 6);
    }
}

/* ---- rules of a draw ------------------------------------------------------------------- */

static const struct {
    const char *name;
    int64_t vocab;
    float logits[6];
    float temperature;
    int64_t token; /* -1: any in range */
} rules[] = {
    {"one token", 1, {-3}, 1, 0},
    {"one masked token", 1, {-INFINITY}, 1, 0},
    {"one NaN", 1, {NAN}, 1, 0},
    {"nothing to draw", 4, {-INFINITY, NAN, -INFINITY, NAN}, 1, 0},
    {"nothing to draw, greedy", 4, {NAN, -INFINITY, NAN, -INFINITY}, 0, 0},
    {"NaN is skipped, greedy", 3, {NAN, 6, 8}, 0, 2},
    {"lone finite", 5, {-INFINITY, NAN, -INFINITY, -80, -INFINITY}, 1, 3},
    {"lone finite at the end", 4, {-INFINITY, -INFINITY, NAN, -3e38f}, 1, 3},
    {"greedy ties to the lowest", 5, {1, 7, 2, 7, 7}, 0, 1},
    {"greedy zeros of both signs", 3, {-0.0f, 0.0f, -1}, 0, 0},
    {"plus infinity wins", 4, {3, INFINITY, 2, INFINITY}, 1, 1},
    {"quotients that overflow tie to the lowest", 4, {1, 3e38f, 3.4e38f, 2}, 0.01f, 1},
    {"a huge gap", 4, {0, 0, 1000, 0}, 1, 2},
    {"small temperature", 4, {1, 2, 3, 2.5f}, 1e-4f, 2},
    {"great temperature", 4, {1, 2, 3, 2.5f}, 1e30f, -1},
    {"subnormal logits", 3, {1e-41f, 2e-41f, 3e-41f}, 1, -1},
};

static void test_rules(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        for (int v = 0; v < CPU_VARIANTS; v++)
            for (int64_t position = 0; position < 32; position++) {
                const int64_t seed = 99,
                              token = draw_one(cpu_variant[v], rules[i].logits, rules[i].vocab,
                                               seed, position, rules[i].temperature);
                const bool right = rules[i].token < 0 ? token >= 0 && token < rules[i].vocab
                                                      : token == rules[i].token;
                if (!right)
                    fail_msg("%s, %s: id %lld", rules[i].name, cpu_variant[v], (long long)token);
                assert_int_equal(judge_rows(cpu_variant[v], rules[i].logits, 1, rules[i].vocab,
                                            rules[i].vocab, &seed, &position, &rules[i].temperature,
                                            &token),
                                 GUMBEL_RULE_NONE);
            }
}

/* Row, batch, stride and neighbours do not matter; the gate agrees on every row. */
static void test_rows_stand_alone(void **state) {
    (void)state;
    enum { ROWS = 7, STRIDE = 4110 };
    static const int64_t vocabularies[] = {1, 2, 15, 17, 999, 1023, 1024, 1025, 4097};
    static float logits[ROWS * STRIDE];
    int64_t seed[ROWS], position[ROWS], token[ROWS], shared[ROWS];
    float temperature[ROWS];
    for (int64_t i = 0; i < ROWS * STRIDE; i++)
        logits[i] = (float)(philox4x32((uint32_t)i, 0, 0, 0, 7, 0).w0 % 6000) * 1e-3f;
    for (int i = 0; i < ROWS; i++) {
        seed[i] = 40 + i % 2;
        position[i] = 100 - i;
        temperature[i] = (float)i * 0.3f;
    }
    for (size_t n = 0; n < sizeof vocabularies / sizeof vocabularies[0]; n++)
        for (int v = 0; v < CPU_VARIANTS; v++) {
            const int64_t vocab = vocabularies[n];
            draw_rows(cpu_variant[v], logits, ROWS, vocab, STRIDE, seed, position, temperature,
                      token);
            for (int i = 0; i < ROWS; i++)
                assert_int_equal(token[i], draw_one(cpu_variant[v], logits + i * STRIDE, vocab,
                                                    seed[i], position[i], temperature[i]));
            assert_int_equal(judge_rows(cpu_variant[v], logits, ROWS, vocab, STRIDE, seed, position,
                                        temperature, token),
                             GUMBEL_RULE_NONE);
            /* Stride 0: all rows read the first one's logits. */
            draw_rows(cpu_variant[v], logits, ROWS, vocab, 0, seed, position, temperature, shared);
            for (int i = 0; i < ROWS; i++)
                assert_int_equal(shared[i], draw_one(cpu_variant[v], logits, vocab, seed[i],
                                                     position[i], temperature[i]));
        }
}

static void test_descriptors(void **state) {
    (void)state;
    size_t count;
    const struct gumbel_variant *const *all = gumbel_variants(&count);
    assert_true(count >= CPU_VARIANTS);
    for (size_t i = 0; i < count; i++) {
        enum noise_kind kind;
        assert_non_null(all[i]->summary);
        assert_non_null(all[i]->workspace_size);
        assert_non_null(all[i]->launch);
        assert_non_null(all[i]->noise);
        assert_true(noise_parse(all[i]->name, &kind));
        assert_ptr_equal(gumbel_find(all[i]->name, all[i]->device), all[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_philox),
        cmocka_unit_test(test_row_keys),
        cmocka_unit_test(test_uniforms),
        cmocka_unit_test(test_words_agree),
        cmocka_unit_test(test_noise_within_bound),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_rows_stand_alone),
        cmocka_unit_test(test_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
