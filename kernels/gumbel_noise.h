/* Gumbel noise of the four variants, token by token: the same text on host and device.
 *
 * A token's noise is a function of (seed, position, token id) alone. Every function is free of
 * branches and memory, so that a loop over tokens vectorises; only the logarithms differ between
 * the sides (CUDA's own on the device, the ones below on the host), by last places at most. */
#ifndef TOPP_KERNELS_GUMBEL_NOISE_H
#define TOPP_KERNELS_GUMBEL_NOISE_H

#include "kernels/philox.h"

#include <math.h>
#include <string.h>

#define GUMBEL_FN PHILOX_FN

/* The step of the binary32 uniform: the decimal that upstream writes, which rounds to
 * 2^-31 * (1 - 2^-24); so u never reaches 1, and its greatest value is 1 - 2^-24. */
#define GUMBEL_STEP 4.6566127342e-10f

/* ---- random words ---------------------------------------------------------------------- */

/* Key of a row's token words. */
GUMBEL_FN uint32_t gumbel_row_key(int64_t seed, int64_t position) {
    const uint64_t s = (uint64_t)seed;
    return philox4x32((uint32_t)(uint64_t)position, 0, 0, 0, (uint32_t)s, (uint32_t)(s >> 32)).w0;
}

GUMBEL_FN uint32_t gumbel_rotate(uint32_t x, int bits) {
    return x << bits | x >> (32 - bits);
}

/* One 32-bit step of MurmurHash3 (Austin Appleby, public domain). */
GUMBEL_FN uint32_t gumbel_mix(uint32_t h, uint32_t k) {
    k *= 0xCC9E2D51u;
    k = gumbel_rotate(k, 15);
    k *= 0x1B873593u;
    h ^= k;
    h = gumbel_rotate(h, 13);
    return h * 5u + 0xE6546B64u;
}

/* The part of the murmur hash that a row's tokens share. */
GUMBEL_FN uint32_t gumbel_murmur_row(int64_t seed, int64_t position) {
    const uint64_t s = (uint64_t)seed;
    const uint32_t h = gumbel_mix(gumbel_mix(0, (uint32_t)s), (uint32_t)(s >> 32));
    return gumbel_mix(h, (uint32_t)(uint64_t)position);
}

GUMBEL_FN uint32_t gumbel_murmur_word(uint32_t row, uint32_t token) {
    uint32_t h = gumbel_mix(row, token);
    h ^= 16u; /* four words of four bytes */
    h ^= h >> 16;
    h *= 0x85EBCA6Bu;
    h ^= h >> 13;
    h *= 0xC2B2AE35u;
    return h ^ h >> 16;
}

/* ---- uniforms -------------------------------------------------------------------------- */

/* A word read as int32 w becomes w, or -w - 1 if it is negative: 31 bits. */
GUMBEL_FN uint32_t gumbel_fold(uint32_t word) {
    return word ^ (0u - (word >> 31));
}

/* 0 <= u <= 1 - 2^-24, from word 0, which may be folded already. */
GUMBEL_FN float gumbel_uniform32(uint32_t word) {
    return (float)(int32_t)gumbel_fold(word) * GUMBEL_STEP;
}

/* 2^-1022 <= u < 1, from words 1 (high) and 0 (low). The greatest 2^10 of the 2^64 words round to
 * 1, where the noise would be infinite; they count as the double below. */
GUMBEL_FN double gumbel_uniform64(uint32_t high, uint32_t low) {
    const double u = (double)((uint64_t)high << 32 | low) * 0x1p-64;
    const double clamped = u < 0x1p-1022 ? 0x1p-1022 : u;
    return clamped > 1.0 - 0x1p-53 ? 1.0 - 0x1p-53 : clamped;
}

/* 2^-33 <= u <= 1: the binary32 nearest to (h + 0.5) * 2^-32. Both halves are exact, so only
 * their sum rounds, and small u keep every bit of the word. */
GUMBEL_FN float gumbel_uniform_murmur(uint32_t h) {
    const float high = (float)(int32_t)(h >> 16) * 0x1p-16f;
    const float low = ((float)(int32_t)(h & 0xFFFFu) + 0.5f) * 0x1p-32f;
    return high + low;
}

/* ---- logarithms ------------------------------------------------------------------------ */

#ifdef __CUDACC__
/* Greatest errors documented by CUDA: logf 1 ulp, log1pf 1 ulp, log 1 ulp. Never the fast
 * intrinsics: this file must not be compiled with --use_fast_math. */
GUMBEL_FN float gumbel_log32(float x) {
    return logf(x);
}
GUMBEL_FN float gumbel_log1p32(float x) {
    return log1pf(x);
}
GUMBEL_FN double gumbel_log64(double x) {
    return log(x);
}
#else
/* log of a normal positive binary64. x = 2^k m with m in [sqrt(1/2), sqrt(2)), f = m - 1 (exact),
 * s = f / (2 + f): log(1 + f) = 2 atanh(s) = f - f^2/2 + s (f^2/2 + R),
 * R = 2 (s^2/3 + s^4/5 + ...), |s| < 0.1716; ten terms leave less than 2^-56 of the result.
 * The form starts from the exact f, so the error stays near one place for x near 1 too. */
GUMBEL_FN double gumbel_log64(double x) {
    const uint64_t one = UINT64_C(1023) << 52, root_half = UINT64_C(0x3FE6A09E667F3BCD);
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint64_t exponent = (bits + (one - root_half)) >> 52; /* k + 1023 */
    const uint64_t mantissa = bits - ((exponent << 52) - one);
    const uint64_t shifted = exponent | UINT64_C(0x4330000000000000); /* 2^52 + k + 1023 */
    double m, k;
    memcpy(&m, &mantissa, sizeof m);
    memcpy(&k, &shifted, sizeof k);
    k -= 0x1p52 + 1023.0;
    const double f = m - 1.0, half = 0.5 * f * f, s = f / (2.0 + f), z = s * s;
    double r = 1.0 / 21.0;
    r = r * z + 1.0 / 19.0;
    r = r * z + 1.0 / 17.0;
    r = r * z + 1.0 / 15.0;
    r = r * z + 1.0 / 13.0;
    r = r * z + 1.0 / 11.0;
    r = r * z + 1.0 / 9.0;
    r = r * z + 1.0 / 7.0;
    r = r * z + 1.0 / 5.0;
    r = r * z + 1.0 / 3.0;
    r = 2.0 * r * z;
    /* log 2 in two parts; the first has 33 bits, so that its product with k is exact. */
    const double log2_high = 0x1.62e42feep-1, log2_low = 0x1.a39ef35793c76p-33;
    return k * log2_high - ((half - (s * (half + r) + k * log2_low)) - f);
}

/* Through binary64: half a place of binary32 and a sliver. */
GUMBEL_FN float gumbel_log32(float x) {
    return (float)gumbel_log64((double)x);
}

/* log(1 + x) for x in (-1, 0]. w + d = 1 + x exactly; d counts only where w is near 1. */
GUMBEL_FN float gumbel_log1p32(float x) {
    const double w = 1.0 + (double)x;
    const double d = (1.0 - w) + (double)x;
    return (float)(gumbel_log64(w) + d);
}
#endif

/* ---- noise ----------------------------------------------------------------------------- */

/* Both logarithms in binary32. 2^-126 stops u = 0 alone: the grid never comes near it, and the
 * fault of this variant is the other end, where u has steps of 2^-24. */
GUMBEL_FN float gumbel_noise_log(uint32_t word) {
    const float u = gumbel_uniform32(word);
    return -gumbel_log32(-gumbel_log32(u > 0x1p-126f ? u : 0x1p-126f));
}

GUMBEL_FN float gumbel_noise_log1p(uint32_t word) {
    const float u = gumbel_uniform32(word);
    return -gumbel_log32(-gumbel_log1p32(-(u > GUMBEL_STEP ? u : GUMBEL_STEP)));
}

GUMBEL_FN double gumbel_noise_fp64(uint32_t high, uint32_t low) {
    return -gumbel_log64(-gumbel_log64(gumbel_uniform64(high, low)));
}

/* log(1 - u) is a series for small u, whose relative precision carries the upper tail, and a
 * logarithm of the difference (at least 2^-24) elsewhere. */
GUMBEL_FN float gumbel_noise_murmur(uint32_t h) {
    const float u = gumbel_uniform_murmur(h);
    float series = 1.0f / 8.0f;
    series = series * u + 1.0f / 7.0f;
    series = series * u + 1.0f / 6.0f;
    series = series * u + 1.0f / 5.0f;
    series = series * u + 1.0f / 4.0f;
    series = series * u + 1.0f / 3.0f;
    series = series * u + 1.0f / 2.0f;
    series = series * u + 1.0f;
    const float rest = 1.0f - u;
    const float direct = -gumbel_log32(rest > 0x1p-24f ? rest : 0x1p-24f);
    return -gumbel_log32(u < 0.25f ? series * u : direct);
}

#endif
