#include "bench/generator.h"

#include "kernels/philox.h"
#include "kernels/vector.h"

#include <math.h>
#include <string.h>

enum { STREAM_NORMAL = 0, STREAM_PEAKS = 1, STREAM_CHOICE = 2, STREAM_MASK = 3 };
enum { PEAKS = 64, HAZARD_TOKEN = 7 };

static inline uint32_t low_word(int64_t seed) {
    return (uint32_t)((uint64_t)seed & 0xFFFFFFFFu);
}

static inline uint32_t high_word(int64_t seed) {
    return (uint32_t)((uint64_t)seed >> 32);
}

/* Eight words, top 24 bits of each, summed and centred: S has a standard deviation of
 * 2^24 * sqrt(8 / 12), so the last factor, sqrt(3 / 2), makes x about standard normal. */
VECTOR_CLONES static void normal_span(float *restrict out, uint32_t count, uint32_t row,
                                      uint32_t stream, uint32_t k0, uint32_t k1) {
    for (uint32_t t = 0; t < count; t++) {
        const struct philox_words a = philox4x32(t, row, stream, 0, k0, k1);
        const struct philox_words b = philox4x32(t, row, stream, 1, k0, k1);
        const uint32_t sum = (a.w0 >> 8) + (a.w1 >> 8) + (a.w2 >> 8) + (a.w3 >> 8) + (b.w0 >> 8) +
                             (b.w1 >> 8) + (b.w2 >> 8) + (b.w3 >> 8);
        const int32_t centred = (int32_t)sum - 4 * ((1 << 24) - 1);
        out[t] = (float)centred * 0x1p-24f * 1.2247449f;
    }
}

VECTOR_CLONES static void word_span(uint32_t *restrict out, uint32_t count, uint32_t row,
                                    uint32_t stream, uint32_t k0, uint32_t k1) {
    for (uint32_t t = 0; t < count; t++)
        out[t] = philox4x32(t, row, stream, 0, k0, k1).w0;
}

VECTOR_CLONES static void scale(float *restrict x, int64_t count, float factor) {
    for (int64_t t = 0; t < count; t++)
        x[t] *= factor;
}

VECTOR_CLONES static void round_to_quarters(float *restrict x, int64_t count) {
    for (int64_t t = 0; t < count; t++)
        x[t] = rintf(x[t] / 0.25f) * 0.25f;
}

static void fill(float *out, int64_t count, float value) {
    for (int64_t t = 0; t < count; t++)
        out[t] = value;
}

void generator_normal(float *out, int64_t vocab, int64_t row, uint32_t stream, int64_t seed) {
    normal_span(out, (uint32_t)vocab, (uint32_t)row, stream, low_word(seed), high_word(seed));
}

void generator_words(uint32_t *out, int64_t vocab, int64_t row, uint32_t stream, int64_t seed) {
    word_span(out, (uint32_t)vocab, (uint32_t)row, stream, low_word(seed), high_word(seed));
}

static void peaked(float *out, int64_t vocab, int64_t row, int64_t seed) {
    float peaks[PEAKS];
    const int64_t count = vocab < PEAKS ? vocab : PEAKS;
    generator_normal(out, vocab, row, STREAM_NORMAL, seed);
    scale(out, vocab, 2.5f);
    generator_normal(peaks, count, row, STREAM_PEAKS, seed);
    for (int64_t t = 0; t < count; t++)
        out[t] += peaks[t] * 6.0f;
}

static void plateau(float *out, int64_t vocab, int64_t row, int64_t seed, uint32_t *words) {
    generator_normal(out, vocab, row, STREAM_NORMAL, seed);
    generator_words(words, vocab, row, STREAM_CHOICE, seed);
    for (int64_t t = 0; t < vocab; t++)
        if (words[t] % 4 != 0)
            out[t] = 1.0f;
}

/* Neighbours of 1.0: k steps above it is 1 + k * 2^-23, exact in binary32. */
static void adjacent(float *out, int64_t vocab, int64_t row, int64_t seed, uint32_t *words) {
    generator_words(words, vocab, row, STREAM_CHOICE, seed);
    for (int64_t t = 0; t < vocab; t++)
        out[t] = 1.0f + (float)(words[t] % 8) * 0x1p-23f;
}

static void mask_share(float *out, int64_t vocab, int64_t row, int64_t seed, double share,
                       uint32_t *words) {
    int64_t best = 0;
    for (int64_t t = 1; t < vocab; t++)
        if (out[t] > out[best])
            best = t;
    const float most = out[best];
    const double limit = share * 0x1p32;
    generator_words(words, vocab, row, STREAM_MASK, seed);
    for (int64_t t = 0; t < vocab; t++)
        if ((double)words[t] < limit)
            out[t] = -INFINITY;
    out[best] = most;
}

/* Keeps the tokens of the smallest (word, id). `kept` stays sorted; among equal words the earlier
 * id came first and stays. */
static void mask_keep(float *out, int64_t vocab, int64_t row, int64_t seed, int64_t keep,
                      uint32_t *words) {
    struct {
        int64_t token;
        uint32_t word;
        float logit;
    } kept[FAMILY_KEEP_MOST];
    int64_t count = 0;
    generator_words(words, vocab, row, STREAM_MASK, seed);
    for (int64_t t = 0; t < vocab; t++) {
        if (count > 0 && count == keep && words[t] >= kept[count - 1].word)
            continue;
        int64_t at = count < keep ? count++ : count - 1;
        for (; at > 0 && kept[at - 1].word > words[t]; at--)
            kept[at] = kept[at - 1];
        kept[at].word = words[t];
        kept[at].token = t;
        kept[at].logit = out[t];
    }
    fill(out, vocab, -INFINITY);
    for (int64_t i = 0; i < count; i++)
        out[kept[i].token] = kept[i].logit;
}

static void hazard(const struct family *family, float *out, int64_t vocab, int64_t row,
                   int64_t seed) {
    const int64_t token = HAZARD_TOKEN < vocab ? HAZARD_TOKEN : vocab - 1;
    peaked(out, vocab, row, seed);
    switch (family->kind) {
    case FAMILY_HAZARD_NAN:
    case FAMILY_HAZARD_INF:
        if (row == 0)
            out[token] = family->kind == FAMILY_HAZARD_NAN ? NAN : INFINITY;
        break;
    case FAMILY_HAZARD_EMPTY:
        if (row == 0)
            fill(out, vocab, -INFINITY);
        break;
    case FAMILY_HAZARD_HUGE:
        scale(out, vocab, 8e36f);
        break;
    default: /* subnormal: one factor of 2^-140 is no normal number, two are */
        scale(out, vocab, 0x1p-70f);
        scale(out, vocab, 0x1p-70f);
        break;
    }
}

void generator_row(const struct family *family, float *out, int64_t vocab, int64_t row,
                   int64_t seed, uint32_t *scratch) {
    switch (family->kind) {
    case FAMILY_NORMAL:
        generator_normal(out, vocab, row, STREAM_NORMAL, seed);
        break;
    case FAMILY_PEAKED:
    case FAMILY_MIXED:
        peaked(out, vocab, row, seed);
        break;
    case FAMILY_FORCED:
        generator_normal(out, vocab, row, STREAM_NORMAL, seed);
        out[family_forced_token(family, vocab)] = family->value;
        break;
    case FAMILY_FLAT:
        fill(out, vocab, family->value);
        break;
    case FAMILY_TIES_STEP:
        generator_normal(out, vocab, row, STREAM_NORMAL, seed);
        round_to_quarters(out, vocab);
        break;
    case FAMILY_TIES_PLATEAU:
        plateau(out, vocab, row, seed, scratch);
        break;
    case FAMILY_ADJACENT:
        adjacent(out, vocab, row, seed, scratch);
        break;
    case FAMILY_MASKED_SHARE:
        peaked(out, vocab, row, seed);
        mask_share(out, vocab, row, seed, family->share, scratch);
        break;
    case FAMILY_MASKED_KEEP:
        peaked(out, vocab, row, seed);
        mask_keep(out, vocab, row, seed, family->keep, scratch);
        break;
    case FAMILY_HAZARD_NAN:
    case FAMILY_HAZARD_INF:
    case FAMILY_HAZARD_EMPTY:
    case FAMILY_HAZARD_HUGE:
    case FAMILY_HAZARD_SUBNORMAL:
        hazard(family, out, vocab, row, seed);
        break;
    case FAMILY_CAPTURED:
        break;
    }
}
