/* A sampler's draws made again: the same seed draws the same, another one something else. */
#include "oracle/gate_ids.h"
#include "oracle/gate_row.h"
#include "oracle/parallel.h"

#include <math.h>
#include <stdlib.h>

/* Many bits, so that a sampler which takes only some of them has another seed all the same. */
static const int64_t other_bits = INT64_C(0x1e3779b97f4a7c15);

void gate_ids_reseed(int64_t *seed, int64_t batch, int half) {
    for (int64_t i = half; i < batch; i += 2)
        seed[i] ^= other_bits;
}

struct surprises {
    const struct gate_ids_case *the_case;
    double *bits; /* [batch] */
};

/* -log2 of the chance that two right draws of this row are one token. */
static void surprise(void *context, int64_t index) {
    const struct surprises *const surprises = context;
    const struct gate_ids_case *const the_case = surprises->the_case;
    const struct nucleus *const oracle = &the_case->oracle[index];
    const float *const input = the_case->input + index * the_case->stride;
    double alike = 0.0;
    for (int64_t t = 0; oracle->status == NUCLEUS_OK && t < the_case->vocab; t++)
        if (nucleus_keeps(oracle, input[t], t)) {
            const double p = exp((double)input[t] - (double)oracle->max_logit) / oracle->prefix;
            alike += p * p;
        }
    surprises->bits[index] = alike > 0.0 && alike < 1.0 ? -log2(alike) : 0.0;
}

/* Bits of one launch over the rows of each parity. */
static enum tb_status bits_of(const struct gate_ids_case *the_case, double bits[2],
                              struct tb_error *error) {
    struct surprises surprises = {the_case, malloc((size_t)the_case->batch * sizeof(double))};
    bits[0] = bits[1] = 0.0;
    if (surprises.bits == NULL)
        return tb_fail(error, TB_NO_MEMORY, "no memory for %lld rows", (long long)the_case->batch);
    parallel_rows(the_case->batch, 0, surprise, &surprises);
    for (int64_t i = 0; i < the_case->batch; i++)
        bits[i % 2] += surprises.bits[i];
    free(surprises.bits);
    return TB_OK;
}

enum tb_status gate_ids_again_launches(const struct gate_ids_case *the_case, int64_t *launches,
                                       struct tb_error *error) {
    double bits[2];
    const enum tb_status status = bits_of(the_case, bits, error);
    *launches = 1;
    for (int half = 0; half < 2 && half < the_case->batch; half++) {
        const double wanted = ceil(GATE_IDS_SEED_BITS / fmax(bits[half], 1e-9));
        if (wanted > (double)*launches)
            *launches = wanted < GATE_IDS_MOST_AGAIN ? (int64_t)wanted : GATE_IDS_MOST_AGAIN;
    }
    if (*launches > the_case->launches)
        *launches = the_case->launches;
    return status;
}

enum tb_status gate_ids_add_again(const struct gate_ids_case *the_case,
                                  const struct gate_ids_again *again,
                                  struct gate_ids_result *result, struct tb_error *error) {
    double bits[2];
    const enum tb_status status = bits_of(the_case, bits, error);
    if (status != TB_OK)
        return status;
    result->seed_bits[again->half] += bits[again->half] * (double)again->launches;
    for (int64_t i = 0; i < again->launches * the_case->batch; i++) {
        const int64_t row = i % the_case->batch;
        const bool same = again->ids[i] == the_case->ids[i];
        if (the_case->oracle[row].status != NUCLEUS_OK)
            continue;
        if (row % 2 == again->half) {
            result->reseeded++;
            result->seed_differs[again->half] = result->seed_differs[again->half] || !same;
            continue;
        }
        result->repeated++;
        if (same || result->rule != GATE_RULE_NONE)
            continue;
        result->rule = GATE_RULE_NOT_REPEATED;
        result->rows_by_rule[GATE_RULE_NOT_REPEATED]++;
        result->rows_failed++;
        result->input = result->inputs - 1;
        result->row = row;
        result->token = again->ids[i];
        result->launch = i / the_case->batch;
    }
    return TB_OK;
}
