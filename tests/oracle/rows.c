#include "tests/oracle/rows.h"

#include <math.h>
#include <string.h>

uint64_t rows_word(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

double rows_uniform(uint64_t *state) {
    return ((double)(rows_word(state) >> 12) + 0.5) * 0x1p-52;
}

uint64_t rows_below(uint64_t *state, uint64_t limit) {
    return rows_word(state) % limit;
}

static double normal(uint64_t *state) {
    double sum = -6.0;
    for (int i = 0; i < 12; i++)
        sum += rows_uniform(state);
    return sum;
}

float rows_p(uint64_t *state) {
    static const float fixed[] = {0.1f,  0.25f, 0.5f,   0.75f,           0.9f,
                                  0.95f, 0.99f, 0.999f, 0x1p-149f,       1e-8f,
                                  1e-4f, 1.0f,  1.5f,   1.0f - 0x1p-24f, 1.0f - 0x1p-10f};
    const uint64_t count = sizeof fixed / sizeof *fixed;
    const uint64_t pick = rows_below(state, 2 * count);
    return pick < count ? fixed[pick] : (float)rows_uniform(state);
}

static float random_bits(uint64_t *state) {
    const uint32_t bits = (uint32_t)rows_word(state);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float bfloat16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= 0xffff0000u;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float one(enum row_kind kind, uint64_t *state) {
    static const float zeros[] = {0.0f, -0.0f, 0x1p-149f, -0x1p-149f};
    const double x = normal(state);
    switch (kind) {
    case ROW_STEPS:
        return (float)(rint(x * 4.0) / 4.0);
    case ROW_PLATEAU:
        return rows_below(state, 4) != 0 ? 1.0f : (float)x;
    case ROW_FLAT:
        return -87.0f;
    case ROW_ADJACENT:
        return 1.0f + (float)rows_below(state, 8) * 0x1p-23f;
    case ROW_MASKED:
        return rows_below(state, 10) != 0 ? -INFINITY : (float)(2.5 * x);
    case ROW_ZEROS:
        return zeros[rows_below(state, 4)];
    case ROW_UNDERFLOW:
        return (float)(-760.0 * rows_uniform(state));
    case ROW_HUGE:
        return (float)(3e38 * (2.0 * rows_uniform(state) - 1.0));
    case ROW_BFLOAT16:
        return bfloat16((float)(4.0 * x - 14.0));
    case ROW_EMPTY:
        return -INFINITY;
    case ROW_RANDOM_BITS:
        return random_bits(state);
    case ROW_PEAKED:
        return (float)(rows_below(state, 20) == 0 ? 6.0 * x : 2.5 * x);
    default:
        return (float)x;
    }
}

void rows_fill(enum row_kind kind, uint64_t *state, float *row, int64_t vocab) {
    const uint64_t place = rows_below(state, (uint64_t)vocab);
    for (int64_t t = 0; t < vocab; t++)
        row[t] = one(kind, state);
    if (kind == ROW_MASKED)
        row[place] = 1.0f;
    if (kind == ROW_FORCED)
        row[place] = rows_below(state, 2) ? 1e9f : 3e38f;
    if (kind == ROW_NAN)
        row[place] = rows_below(state, 2) ? NAN : -NAN;
    if (kind == ROW_INFINITY)
        row[place] = INFINITY;
}
