/* The CPU variants against ids drawn by the original kernels on an H200, and against the gate. */
#include "bench/inputs.h"
#include "kernels/gumbel.h"
#include "oracle/gumbel_gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Sanitized builds leave out the largest vocabulary. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

enum { ROWS = 64, CASES = SANITIZED ? 8 : 12 };
static const char *const variant_names[] = {"log", "log1p", "fp64", "murmur"};
enum { VARIANTS = sizeof variant_names / sizeof variant_names[0] };

struct golden {
    struct logits logits;
    int64_t seed[ROWS], position[ROWS], token[ROWS];
    float temperature[ROWS];
};

struct tally {
    long rows, equal, near;
};

static void read_case(const char *line, struct golden *golden) {
    char text[96];
    long long input_seed, vocab, rows, seed;
    float temperature;
    assert_int_equal(sscanf(line, "case %95s %lld %lld %lld %lld %f", text, &input_seed, &vocab,
                            &rows, &seed, &temperature),
                     6);
    assert_int_equal(rows, ROWS);
    struct family family;
    assert_int_equal(family_parse(text, &family, NULL), TB_OK);
    const struct input_request request = {
        .family = &family, .batch = rows, .vocab = vocab, .seed = input_seed};
    logits_free(&golden->logits);
    assert_int_equal(input_make(&request, &golden->logits, NULL), TB_OK);
    for (int i = 0; i < ROWS; i++) {
        golden->seed[i] = seed;
        golden->position[i] = i;
        golden->temperature[i] = temperature;
    }
}

/* The next tab-separated integer of *text. */
static long long next_id(char **text) {
    const char *field = strsep(text, "\t");
    assert_non_null(field);
    return atoll(field);
}

static void compare_variant(int v, char *ids, struct golden *golden, struct tally *tally) {
    const struct gumbel_variant *variant = gumbel_find(variant_names[v], KERNEL_DEVICE_CPU);
    const struct logits *l = &golden->logits;
    const struct gumbel_problem problem = {l->data,
                                           l->batch,
                                           l->vocab,
                                           l->stride,
                                           golden->seed,
                                           golden->position,
                                           golden->temperature,
                                           golden->token};
    assert_non_null(variant);
    assert_int_equal(variant->launch(&problem, NULL, 0, NULL), KERNEL_OK);

    int64_t upstream[ROWS];
    for (int i = 0; i < ROWS; i++) {
        upstream[i] = next_id(&ids);
        tally[v].rows++;
        tally[v].equal += upstream[i] == golden->token[i];
    }
    struct gumbel_case the_case = {.logits = l->data,
                                   .batch = l->batch,
                                   .vocab = l->vocab,
                                   .stride = l->stride,
                                   .seed = golden->seed,
                                   .position = golden->position,
                                   .temperature = golden->temperature,
                                   .token = golden->token};
    assert_true(noise_parse(variant_names[v], &the_case.noise));
    struct gumbel_result result;
    assert_int_equal(gumbel_gate_check(&the_case, NULL, &result, NULL), TB_OK);
    assert_int_equal(result.verdict, GATE_ACCEPTED);
    if (!memcmp(upstream, golden->token, sizeof upstream))
        return;
    /* The original ids pass too: whatever differs is explained by last places. */
    the_case.token = upstream;
    assert_int_equal(gumbel_gate_check(&the_case, NULL, &result, NULL), TB_OK);
    assert_int_equal(result.verdict, GATE_ACCEPTED);
    tally[v].near += result.rows_near;
}

static void test_golden_ids(void **state) {
    (void)state;
    FILE *file = fopen(TOPP_SOURCE_DIR "/tests/data/golden_gumbel.tsv", "r");
    assert_non_null(file);
    struct golden golden = {0};
    struct tally tally[VARIANTS] = {0};
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, file) > 0) {
        if (line[0] == '#')
            continue;
        if (SANITIZED && strstr(line, "\t128256\t64\t")) { /* and its variants' lines */
            for (int v = 0; v < VARIANTS; v++)
                assert_true(getline(&line, &size, file) > 0);
            continue;
        }
        if (!strncmp(line, "case\t", 5)) {
            read_case(line, &golden);
            continue;
        }
        char *ids = line;
        const char *name = strsep(&ids, "\t");
        for (int v = 0; v < VARIANTS; v++)
            if (!strcmp(name, variant_names[v]))
                compare_variant(v, ids, &golden, tally);
    }
    for (int v = 0; v < VARIANTS; v++) {
        print_message("%s: %ld of %ld ids equal, %ld upstream ids accepted as near\n",
                      variant_names[v], tally[v].equal, tally[v].rows, tally[v].near);
        assert_int_equal(tally[v].rows, CASES * ROWS);
        assert_true(1000 * tally[v].equal >= 999 * tally[v].rows);
    }
    logits_free(&golden.logits);
    free(line);
    fclose(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden_ids)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
