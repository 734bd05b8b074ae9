#include "ci/synthetic.h"

#include <math.h>

#define MODES_APART 0.03
#define CYCLES_PER_NS 1.98

const char *noise_name(enum noise_kind kind) {
    static const char *const names[NOISE_COUNT] = {"plain",
                                                   "spikes 5% at +20%",
                                                   "AR(1) 0.6",
                                                   "clock modes by process",
                                                   "clock modes by block",
                                                   "clock modes by sample",
                                                   "drift 0.5% a run"};
    return names[kind];
}

static double mode(struct random_state *random) {
    return random_uniform(random) < 0.5 ? 0.0 : log1p(MODES_APART);
}

struct synthetic_process synthetic_process(const struct synthetic *synthetic,
                                           struct random_state *random) {
    struct synthetic_process process = {0.0, 0.0};
    if (synthetic->kind == NOISE_MODES_PROCESS)
        process.clock = mode(random);
    if (synthetic->kind == NOISE_DRIFT)
        process.drift = random_uniform(random) < 0.5 ? -0.005 : 0.005;
    return process;
}

void synthetic_fill(const struct synthetic *synthetic, const struct synthetic_process *process,
                    double level, struct random_state *random, struct sample_set *set) {
    size_t total = (size_t)synthetic->blocks * (size_t)synthetic->samples;
    double own = synthetic->between * random_normal(random), memory = random_normal(random);
    double clock = process->clock;
    set->count = 0;
    for (int32_t block = 0; block < synthetic->blocks; block++) {
        if (synthetic->kind == NOISE_MODES_BLOCK)
            clock = mode(random);
        for (int32_t i = 0; i < synthetic->samples; i++) {
            double noise = random_normal(random), at = (double)set->count / (double)total;
            if (synthetic->kind == NOISE_AR1)
                noise = memory = 0.6 * memory + 0.8 * noise;
            double value = level + own + synthetic->within * noise + process->drift * at;
            if (synthetic->kind == NOISE_SPIKES && random_uniform(random) < 0.05)
                value += log(1.2);
            if (synthetic->kind == NOISE_MODES_SAMPLE)
                clock = mode(random);
            set->time[set->count] = exp(value + clock);
            if (set->cycles)
                set->cycles[set->count] = CYCLES_PER_NS * exp(value);
            set->block[set->count] = block;
            set->draw[set->count] = 0;
            set->count++;
        }
    }
}
