/* The statistics on a perfect sampler, accepted, and on the same sampler with planted defects: one
 * of the size that `power` promises to see, and each fault of a sampler in its simplest form. */
#include "oracle/gumbel_noise.h"
#include "oracle/gumbel_statistics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum defect {
    DEFECT_NONE,
    DEFECT_TAIL_LOST,     /* a share of all draws but the head's goes to the head */
    DEFECT_TAIL_GAINED,   /* as many more as the share of them */
    DEFECT_TILTED,        /* even ids more, odd ids less probable, by the share */
    DEFECT_COPIED,        /* a share of the draws at odd positions or with the salt repeats */
    DEFECT_SHARED_STREAM, /* the salt is dropped */
    DEFECT_SHARED_SEED,   /* the seed is dropped */
    DEFECT_OUT_OF_RANGE,  /* one id past the end */
    DEFECT_NEGATIVE,      /* one id of -1 */
    DEFECT_UNTOUCHED,     /* one draw not written */
    DEFECT_WARM_GREEDY,   /* temperature 0 read as 1 */
    DEFECT_LAST_TIE,      /* the highest of equal ids at temperature 0 */
    DEFECT_MASK_LEAKS,    /* a masked token now and then */
    DEFECT_FIRST_ID_ONLY, /* always id 0 */
    DEFECT_FAILS,         /* the sampler gives up */
};

/* Draws by inversion of the cumulative weights: exact, and cheap at any vocabulary. */
struct perfect {
    enum defect defect;
    double share;
    double *cumulative;
    int64_t vocab, head; /* head: the first of the greatest logits */
};

static int64_t argmax(const float *logits, int64_t vocab, bool last) {
    int64_t best = 0;
    for (int64_t v = 1; v < vocab; v++)
        if (logits[v] > logits[best] || (last && logits[v] == logits[best]))
            best = v;
    return best;
}

static void prepare(struct perfect *p, const float *logits, int64_t vocab) {
    free(p->cumulative);
    p->cumulative = malloc((size_t)vocab * sizeof *p->cumulative);
    assert_non_null(p->cumulative);
    p->vocab = vocab;
    p->head = argmax(logits, vocab, false);
    double sum = 0;
    for (int64_t v = 0; v < vocab; v++) {
        double weight = exp((double)logits[v]);
        if (p->defect == DEFECT_TILTED)
            weight *= v % 2 ? 1 - p->share : 1 + p->share;
        if (p->defect == DEFECT_MASK_LEAKS && !(weight > 0))
            weight = 1e-2;
        sum += weight;
        p->cumulative[v] = sum;
    }
}

static double uniform_of(int64_t seed, int64_t position, uint32_t stream) {
    const uint64_t s = (uint64_t)seed, at = (uint64_t)position;
    const uint32_t counter[4] = {(uint32_t)at, (uint32_t)(at >> 32), stream, 9};
    const uint32_t key[2] = {(uint32_t)s, (uint32_t)(s >> 32)};
    uint32_t words[4];
    noise_philox(counter, key, words);
    return ((double)words[0] + (double)words[1] * 0x1p-32 + 0x1p-34) * 0x1p-32;
}

static int64_t inverted(const struct perfect *p, double u) {
    const double at = u * p->cumulative[p->vocab - 1];
    int64_t low = 0, high = p->vocab - 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (p->cumulative[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int64_t draw_one(const struct perfect *p, const float *logits, int64_t vocab, int64_t seed,
                        int64_t position, float temperature) {
    if (p->defect == DEFECT_FIRST_ID_ONLY)
        return 0;
    if (temperature == 0 && p->defect != DEFECT_WARM_GREEDY)
        return p->defect == DEFECT_LAST_TIE ? argmax(logits, vocab, true) : p->head;
    if (p->defect == DEFECT_SHARED_SEED)
        seed = 0;
    if (p->defect == DEFECT_SHARED_STREAM ||
        (p->defect == DEFECT_COPIED && uniform_of(seed, position, 1) < p->share))
        position &= ~(INT64_C(1) << 30);
    const int64_t token = inverted(p, uniform_of(seed, position, 0));
    const int64_t head = p->head;
    if (p->defect == DEFECT_TAIL_LOST && token != head && uniform_of(seed, position, 1) < p->share)
        return head;
    if (p->defect == DEFECT_TAIL_GAINED && token == head) {
        const double tail = 1 - exp((double)logits[head]) / p->cumulative[vocab - 1];
        if (uniform_of(seed, position, 1) < p->share * tail)
            return (head + 1) % vocab;
    }
    return token;
}

static int perfect_draw(void *context, const float *logits, int64_t vocab, const int64_t *seeds,
                        const int64_t *positions, float temperature, int64_t n, int64_t *tokens) {
    struct perfect *p = context;
    prepare(p, logits, vocab);
    for (int64_t i = 0; i < n; i++)
        if (p->defect != DEFECT_UNTOUCHED || i != n / 2)
            tokens[i] = draw_one(p, logits, vocab, seeds[i], positions[i], temperature);
    if (p->defect == DEFECT_OUT_OF_RANGE)
        tokens[n - 1] = vocab;
    if (p->defect == DEFECT_NEGATIVE)
        tokens[n - 1] = -1;
    return p->defect == DEFECT_FAILS ? 42 : 0;
}

/* Full sizes where a perfect sampler can afford them, the CPU's elsewhere. */
static struct statistic_result run(const char *name, const struct statistic_size *size,
                                   enum defect defect, double share) {
    struct perfect perfect = {.defect = defect, .share = share};
    struct statistic_result result;
    struct tb_error error = TB_ERROR_INIT;
    const enum tb_status status =
        gumbel_statistic_find(name)->run(size, perfect_draw, &perfect, &result, &error);
    assert_int_equal(status, TB_OK);
    free(perfect.cumulative);
    return result;
}

static const char *const names[] = {"heavy_tail", "whole_vocabulary", "greedy", "streams"};
enum { NAMES = sizeof names / sizeof names[0] };

static void test_perfect_is_accepted(void **state) {
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        const struct statistic_result result = run(names[i], &statistic_cpu, DEFECT_NONE, 0);
        print_message("%s: %s\n", names[i], result.why);
        assert_int_equal(result.verdict, GATE_ACCEPTED);
        assert_true(fabs(result.z_tail) < 5);
    }
}

/* The power that is stated is the power that is there: a defect 1.3 times the smallest that shows
 * in half of all runs is rejected, one of 0.6 times is not. */
static const struct {
    const char *name;
    enum defect defect;
    double seen, unseen; /* times the stated power */
} planted[] = {
    {"heavy_tail", DEFECT_TAIL_LOST, 1.3, 0.6},
    {"heavy_tail", DEFECT_TAIL_GAINED, 1.5, 0.6},
    {"whole_vocabulary", DEFECT_TILTED, 1.3, 0.6},
    {"streams", DEFECT_COPIED, 1.3, 0.6},
};

static void test_power(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof planted / sizeof planted[0]; i++) {
        const struct gumbel_statistic *statistic = gumbel_statistic_find(planted[i].name);
        const double power = statistic->smallest_defect(&statistic_cpu);
        const struct statistic_result seen =
            run(planted[i].name, &statistic_cpu, planted[i].defect, planted[i].seen * power);
        const struct statistic_result unseen =
            run(planted[i].name, &statistic_cpu, planted[i].defect, planted[i].unseen * power);
        print_message("%s: power %.3f, above it: %s; below it: %s\n", planted[i].name, power,
                      seen.why, unseen.why);
        assert_true(seen.power == power);
        assert_int_equal(seen.verdict, GATE_REJECTED);
        assert_int_equal(unseen.verdict, GATE_ACCEPTED);
    }
}

static const struct {
    const char *name;
    enum defect defect;
} faults[] = {
    {"heavy_tail", DEFECT_OUT_OF_RANGE},   {"heavy_tail", DEFECT_NEGATIVE},
    {"heavy_tail", DEFECT_UNTOUCHED},      {"heavy_tail", DEFECT_FIRST_ID_ONLY},
    {"whole_vocabulary", DEFECT_NEGATIVE}, {"whole_vocabulary", DEFECT_FIRST_ID_ONLY},
    {"greedy", DEFECT_OUT_OF_RANGE},       {"greedy", DEFECT_UNTOUCHED},
    {"greedy", DEFECT_WARM_GREEDY},        {"greedy", DEFECT_LAST_TIE},
    {"greedy", DEFECT_MASK_LEAKS},         {"greedy", DEFECT_FIRST_ID_ONLY},
    {"streams", DEFECT_SHARED_STREAM},     {"streams", DEFECT_SHARED_SEED},
    {"streams", DEFECT_OUT_OF_RANGE},      {"streams", DEFECT_FIRST_ID_ONLY},
};

static void test_faults(void **state) {
    (void)state;
    struct statistic_size size = statistic_cpu;
    size.heavy_draws = 5000;
    size.stream_draws = 20000;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        const struct statistic_result result = run(faults[i].name, &size, faults[i].defect, 0);
        if (result.verdict != GATE_REJECTED)
            fail_msg("%s accepted defect %d: %s", faults[i].name, (int)faults[i].defect,
                     result.why);
        assert_true(result.why[0] != 0);
    }
}

static void test_failing_sampler(void **state) {
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        struct perfect perfect = {.defect = DEFECT_FAILS};
        struct statistic_result result;
        struct tb_error error = TB_ERROR_INIT;
        assert_int_equal(gumbel_statistic_find(names[i])->run(&statistic_cpu, perfect_draw,
                                                              &perfect, &result, &error),
                         TB_INTERNAL);
        assert_non_null(strstr(error.message, "42"));
        free(perfect.cumulative);
    }
}

/* The sizes' stated power, as the docs print it. */
static void test_stated_power(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double full, cpu;
    } stated[] = {{"heavy_tail", 0.181, 0.641},
                  {"whole_vocabulary", 0.0398, 0.0562},
                  {"streams", 0.00437, 0.0124},
                  {"greedy", 0, 0}};
    for (size_t i = 0; i < sizeof stated / sizeof stated[0]; i++) {
        const struct gumbel_statistic *statistic = gumbel_statistic_find(stated[i].name);
        assert_true(fabs(statistic->smallest_defect(&statistic_full) - stated[i].full) <=
                    0.005 * stated[i].full);
        assert_true(fabs(statistic->smallest_defect(&statistic_cpu) - stated[i].cpu) <=
                    0.005 * stated[i].cpu);
    }
    int64_t count;
    gumbel_statistics(&count);
    assert_int_equal(count, NAMES);
    assert_null(gumbel_statistic_find("nothing"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_perfect_is_accepted),
        cmocka_unit_test(test_power),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_failing_sampler),
        cmocka_unit_test(test_stated_power),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
