#include "tests/kernels/gumbel_support.h"

#include <pthread.h>

const char *const cpu_variant[CPU_VARIANTS] = {"log", "log1p", "fp64", "murmur"};

struct part {
    const struct gumbel_variant *variant;
    struct gumbel_problem problem;
    int code;
};

static void *draw_part(void *context) {
    struct part *part = context;
    part->code =
        part->problem.batch > 0 ? part->variant->launch(&part->problem, NULL, 0, NULL) : KERNEL_OK;
    return NULL;
}

int sampler_draw(void *context, const float *logits, int64_t vocab, const int64_t *seeds,
                 const int64_t *positions, float temperature, int64_t n, int64_t *tokens) {
    const struct sampler *sampler = context;
    static float temperatures[STATISTIC_BATCH];
    static int64_t places[STATISTIC_BATCH];
    for (int64_t i = 0; i < n; i++) {
        temperatures[i] = temperature;
        places[i] = sampler->plant == PLANT_SHARED_STREAM ? positions[i] & ~(INT64_C(1) << 30)
                                                          : positions[i];
    }
    const int64_t half = n / 2;
    struct part parts[2] = {
        {sampler->variant, {logits, half, vocab, 0, seeds, places, temperatures, tokens}, 0},
        {sampler->variant,
         {logits, n - half, vocab, 0, seeds + half, places + half, temperatures + half,
          tokens + half},
         0},
    };
    pthread_t thread;
    if (pthread_create(&thread, NULL, draw_part, &parts[0]))
        return 1;
    draw_part(&parts[1]);
    pthread_join(thread, NULL);
    return parts[0].code ? parts[0].code : parts[1].code;
}

void draw_rows(const char *variant, const float *logits, int64_t batch, int64_t vocab,
               int64_t stride, const int64_t *seed, const int64_t *position,
               const float *temperature, int64_t *token) {
    const struct gumbel_variant *v = gumbel_find(variant, KERNEL_DEVICE_CPU);
    assert_non_null(v);
    const struct gumbel_problem problem = {logits, batch,    vocab,       stride,
                                           seed,   position, temperature, token};
    for (int64_t i = 0; i < batch; i++)
        token[i] = -7; /* poison: no draw can leave it */
    assert_int_equal(v->launch(&problem, NULL, 0, NULL), KERNEL_OK);
}

int64_t draw_one(const char *variant, const float *logits, int64_t vocab, int64_t seed,
                 int64_t position, float temperature) {
    int64_t token;
    draw_rows(variant, logits, 1, vocab, vocab, &seed, &position, &temperature, &token);
    return token;
}

enum gumbel_rule judge_rows(const char *noise, const float *logits, int64_t batch, int64_t vocab,
                            int64_t stride, const int64_t *seed, const int64_t *position,
                            const float *temperature, const int64_t *token) {
    struct gumbel_case the_case = {.logits = logits,
                                   .batch = batch,
                                   .vocab = vocab,
                                   .stride = stride,
                                   .seed = seed,
                                   .position = position,
                                   .temperature = temperature,
                                   .token = token};
    assert_true(noise_parse(noise, &the_case.noise));
    struct gumbel_result result;
    assert_int_equal(gumbel_gate_check(&the_case, NULL, &result, NULL), TB_OK);
    assert_int_equal(result.verdict == GATE_ACCEPTED, result.rule == GUMBEL_RULE_NONE);
    return result.rule;
}
