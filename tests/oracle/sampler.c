#include "tests/oracle/sampler.h"

#include <math.h>

int64_t ids[GATE_IDS_DRAWS];
static double until[BATCH][VOCAB]; /* summed weights of the sampler, by rank */

void begin(enum row_kind kind, float p) {
    uint64_t words = 5;
    scene_draw(BATCH, VOCAB, kind, p, &words);
}

void sampler(double temperature, double skew, int64_t surplus) {
    for (int64_t row = 0; row < BATCH; row++) {
        const struct nucleus *const oracle = &scene->oracle[row];
        double total = 0.0, before = 0.0, sum = 0.0;
        for (int pass = 0; pass < 2; pass++) {
            for (int64_t rank = 0; rank < oracle->kept + surplus; rank++) {
                const int64_t token = scene->order[row][rank];
                const double d =
                    (double)scene->input[row * scene->stride + token] - (double)oracle->max_logit;
                const double w = exp(d / temperature);
                if (pass == 0) {
                    total += w;
                    continue;
                }
                sum += w * (before + w / 2 < total / 2 ? 1.0 - 2.0 * skew : 1.0 + 2.0 * skew);
                before += w;
                until[row][rank] = sum;
            }
        }
    }
}

int64_t draw_at(int64_t row, int64_t surplus, double share) {
    int64_t low = 0, high = scene->oracle[row].kept + surplus - 1;
    const double reached = share * until[row][high];
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (reached < until[row][middle])
            high = middle;
        else
            low = middle + 1;
    }
    return scene->order[row][low];
}

struct gate_ids_case the_case(void) {
    return (struct gate_ids_case){.input = scene->input,
                                  .batch = BATCH,
                                  .vocab = VOCAB,
                                  .stride = scene->stride,
                                  .oracle = scene->oracle,
                                  .ids = ids,
                                  .launches = gate_ids_launches(BATCH, 1),
                                  .rows_apart = true};
}
