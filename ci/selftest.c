/* Runs of made-up cells. The recorded ones are in selftest_recorded.c. */
#include "ci/selftest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const double selftest_effects[EFFECTS] = {0.01, 0.02, 0.03, 0.05, 0.10};

double rate_of(struct rate rate) {
    return rate.trials ? (double)rate.hits / (double)rate.trials : (double)NAN;
}

/* P(X >= hits) for X binomial. */
static double at_least(size_t hits, size_t trials, double p) {
    double sum = 0.0, n = (double)trials;
    for (size_t k = hits; k <= trials; k++)
        sum += exp(lgamma(n + 1.0) - lgamma((double)k + 1.0) - lgamma(n - (double)k + 1.0) +
                   (double)k * log(p) + (n - (double)k) * log1p(-p));
    return sum;
}

bool rate_above(struct rate rate, double limit) {
    return rate.trials > 0 && rate.hits > 0 && at_least(rate.hits, rate.trials, limit) < 0.01;
}

bool rate_below(struct rate rate, double limit) {
    return rate.trials > 0 && 1.0 - at_least(rate.hits + 1, rate.trials, limit) < 0.01;
}

static bool set_make(struct sample_set *set, size_t count, bool cycles) {
    set->time = malloc(count * sizeof *set->time);
    set->cycles = cycles ? malloc(count * sizeof *set->cycles) : NULL;
    set->block = malloc(count * sizeof *set->block);
    set->draw = malloc(count * sizeof *set->draw);
    return set->time && (!cycles || set->cycles) && set->block && set->draw;
}

static void set_free(struct sample_set *set) {
    free(set->time);
    free(set->cycles);
    free(set->block);
    free(set->draw);
}

static bool locate(struct sample_set *base, struct sample_set *new_side, struct verdict *verdict) {
    const struct sample_set *left[1] = {base}, *right[1] = {new_side};
    struct side sides[2] = {{left, 1}, {right, 1}};
    verdict->name = "synthetic";
    return estimate_locations(&sides[0], &sides[1], MEASURE_TIME, false, &verdict->time) &&
           (!base->cycles ||
            estimate_locations(&sides[0], &sides[1], MEASURE_CYCLES, false, &verdict->cycles));
}

static void scale(struct sample_set *set, double by) {
    for (size_t i = 0; i < set->count; i++) {
        set->time[i] *= by;
        if (set->cycles)
            set->cycles[i] *= by;
    }
}

struct synthetic_run {
    const struct synthetic_plan *plan;
    const struct compare_options *options;
    struct sample_set base, new_side; /* of one cell at a time */
    struct verdict *located, *judged; /* [cells] */
    struct random_state random;
};

static bool judge(struct synthetic_run *run, const struct verdict *verdicts) {
    struct comparison comparison = {0};
    memcpy(run->judged, verdicts, run->plan->cells * sizeof *run->judged);
    return compare_judge(run->judged, run->plan->cells, run->options, &comparison);
}

/* One pair of runs: judged as it is, then with one cell slowed by each effect. */
static bool one_run(struct synthetic_run *run, const struct synthetic *synthetic,
                    struct synthetic_result *result) {
    struct synthetic_process left = synthetic_process(synthetic, &run->random);
    struct synthetic_process right = synthetic_process(synthetic, &run->random);
    size_t planted = random_below(&run->random, run->plan->cells);
    struct verdict slowed[EFFECTS];
    memset(slowed, 0, sizeof slowed);
    memset(run->located, 0, run->plan->cells * sizeof *run->located);
    for (size_t c = 0; c < run->plan->cells; c++) {
        double level = log(1e4) + 5.0 * random_uniform(&run->random);
        synthetic_fill(synthetic, &left, level, &run->random, &run->base);
        synthetic_fill(synthetic, &right, level, &run->random, &run->new_side);
        if (!locate(&run->base, &run->new_side, &run->located[c]))
            return false;
        for (int e = 0; c == planted && e < EFFECTS; e++) {
            scale(&run->new_side, 1.0 + selftest_effects[e]);
            if (!locate(&run->base, &run->new_side, &slowed[e]))
                return false;
            scale(&run->new_side, 1.0 / (1.0 + selftest_effects[e]));
        }
    }
    if (!judge(run, run->located))
        return false;
    bool alarm = false;
    for (size_t c = 0; c < run->plan->cells; c++)
        alarm = alarm || run->judged[c].outcome == OUTCOME_REGRESSED;
    result->alarms.hits += alarm;
    result->alarms.trials++;
    for (int e = 0; e < EFFECTS; e++) {
        run->located[planted] = slowed[e];
        if (!judge(run, run->located))
            return false;
        result->caught[e].hits += run->judged[planted].outcome == OUTCOME_REGRESSED;
        result->caught[e].trials++;
    }
    return true;
}

static bool one_kind(struct synthetic_run *run, enum noise_kind kind,
                     struct synthetic_result *result) {
    const struct synthetic_plan *plan = run->plan;
    struct synthetic synthetic = {kind, plan->within, plan->between, plan->blocks, plan->samples};
    size_t count = (size_t)plan->blocks * (size_t)plan->samples;
    bool cycles =
        kind == NOISE_MODES_PROCESS || kind == NOISE_MODES_BLOCK || kind == NOISE_MODES_SAMPLE;
    *result = (struct synthetic_result){.kind = kind};
    random_seed(&run->random, plan->seed + (uint64_t)kind);
    memset(&run->base, 0, sizeof run->base);
    memset(&run->new_side, 0, sizeof run->new_side);
    bool good = set_make(&run->base, count, cycles) && set_make(&run->new_side, count, cycles);
    for (size_t r = 0; good && r < plan->runs; r++)
        good = one_run(run, &synthetic, result);
    set_free(&run->base);
    set_free(&run->new_side);
    return good;
}

bool selftest_synthetic(const struct synthetic_plan *plan, const struct compare_options *options,
                        struct synthetic_result results[NOISE_COUNT]) {
    struct synthetic_run run = {.plan = plan, .options = options};
    run.located = malloc(plan->cells * sizeof *run.located);
    run.judged = malloc(plan->cells * sizeof *run.judged);
    bool good = run.located && run.judged;
    for (int kind = 0; good && kind < NOISE_COUNT; kind++)
        good = one_kind(&run, (enum noise_kind)kind, &results[kind]);
    free(run.located);
    free(run.judged);
    return good;
}
