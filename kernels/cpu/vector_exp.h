/* exp on vectors of fixed width, in plain operations: gcc lowers them to what each clone has, and
 * every clone gives the same bits. Include from .c files of the CPU kernels only. */
#ifndef TOPP_KERNELS_CPU_VECTOR_EXP_H
#define TOPP_KERNELS_CPU_VECTOR_EXP_H

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef float f32x16 __attribute__((vector_size(64)));
typedef int32_t i32x16 __attribute__((vector_size(64)));
typedef uint32_t u32x16 __attribute__((vector_size(64)));
typedef float f32x8 __attribute__((vector_size(32)));
typedef int32_t i32x8 __attribute__((vector_size(32)));
typedef double f64x8 __attribute__((vector_size(64)));
typedef int64_t i64x8 __attribute__((vector_size(64)));
typedef uint64_t u64x8 __attribute__((vector_size(64)));

#define VECTOR_FN static inline __attribute__((always_inline))

VECTOR_FN f32x16 f32x16_load(const float *p) {
    f32x16 v;
    memcpy(&v, p, sizeof v);
    return v;
}

VECTOR_FN void f32x16_store(float *p, f32x16 v) {
    memcpy(p, &v, sizeof v);
}

VECTOR_FN f32x16 f32x16_set(float x) {
    return (f32x16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
}

VECTOR_FN f64x8 f64x8_set(double x) {
    return (f64x8){x, x, x, x, x, x, x, x};
}

/* Lanes of a where the mask is all ones, else of b. Hand it one comparison, written in the call:
 * gcc 12 takes masks that are combined or kept apart lane by lane where the target has mask
 * registers. */
VECTOR_FN f32x16 f32x16_select(i32x16 mask, f32x16 a, f32x16 b) {
    return (f32x16)((mask & (i32x16)a) | (~mask & (i32x16)b));
}

VECTOR_FN i32x16 i32x16_one_where(i32x16 mask) {
    return mask & (i32x16){1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
}

VECTOR_FN f64x8 f64x8_select(i64x8 mask, f64x8 a, f64x8 b) {
    return (f64x8)((mask & (i64x8)a) | (~mask & (i64x8)b));
}

/* Sums in a fixed tree: the same bits for every instruction set. */
VECTOR_FN float f32x16_sum(f32x16 v) {
    float a[16];
    f32x16_store(a, v);
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++)
            a[i] += a[i + half];
    return a[0];
}

VECTOR_FN float f32x16_min(f32x16 v) {
    float a[16];
    f32x16_store(a, v);
    for (int i = 1; i < 16; i++)
        a[0] = a[i] < a[0] ? a[i] : a[0];
    return a[0];
}

VECTOR_FN float f32x16_max(f32x16 v) {
    float a[16];
    f32x16_store(a, v);
    for (int i = 1; i < 16; i++)
        a[0] = a[i] > a[0] ? a[i] : a[0];
    return a[0];
}

/* exp(x) for x <= 0, within 2 ulp; -inf and anything below -150 give 0, NaN gives NaN.
 * x = n ln 2 + r, |r| <= ln 2 / 2; e^r = 1 + r + r^2 q(r), q of degree 4 through the Chebyshev
 * nodes (relative error 1.1e-8); 2^n in two factors, so that subnormal results round once. */
VECTOR_FN f32x16 exp_f32x16(f32x16 x) {
    const f32x16 magic = f32x16_set(0x1.8p23f);
    x = f32x16_select(x < f32x16_set(-150.0f), f32x16_set(-150.0f), x);
    const f32x16 t = x * f32x16_set(0x1.715476p+0f) + magic, n = t - magic;
    /* ln 2 in two parts: n times the first has no rounding. */
    const f32x16 r = x - n * f32x16_set(0x1.63p-1f) - n * f32x16_set(-0x1.bd0106p-13f);
    f32x16 q = f32x16_set(0x1.6d113cp-10f);
    q = q * r + f32x16_set(0x1.120ba2p-7f);
    q = q * r + f32x16_set(0x1.55551ap-5f);
    q = q * r + f32x16_set(0x1.5554dcp-3f);
    q = q * r + f32x16_set(0.5f);
    const f32x16 e = (r + r * r * q) + f32x16_set(1.0f);
    /* Unsigned: NaN brings bits that wrap. */
    const u32x16 whole = (u32x16)t - (u32x16)magic, half = (u32x16)((i32x16)whole >> 1);
    const u32x16 a = (half + 127) << 23, b = (whole - half + 127) << 23;
    return e * (f32x16)a * (f32x16)b;
}

/* Greatest relative error of exp_f64x8 against the real exp, for results >= 2^-1021. */
#define EXP_F64X8_ERROR 0x1p-33

/* exp(x) for x <= 0, within EXP_F64X8_ERROR; 0 below -708, NaN for NaN. Degree 7 through the
 * Chebyshev nodes (5.6e-11); the error of n ln 2 in one part is below 2e-13. */
VECTOR_FN f64x8 exp_f64x8(f64x8 x) {
    const f64x8 magic = f64x8_set(0x1.8p52);
    const f64x8 t = x * f64x8_set(0x1.71547652b82fep+0) + magic, n = t - magic;
    const f64x8 r = x - n * f64x8_set(0x1.62e42fefa39efp-1);
    f64x8 e = f64x8_set(0x1.a17e4e342227ap-13);
    e = e * r + f64x8_set(0x1.6da7b9dadbe4fp-10);
    e = e * r + f64x8_set(0x1.1110a5eb56603p-7);
    e = e * r + f64x8_set(0x1.55546425752f3p-5);
    e = e * r + f64x8_set(0x1.5555557e90c81p-3);
    e = e * r + f64x8_set(0x1.0000005cd11d7p-1);
    e = e * r + f64x8_set(0x1.fffffffff615bp-1);
    e = e * r + f64x8_set(0x1.ffffffffa6b80p-1);
    /* The low bits of t are n: added to the exponent of e. */
    const f64x8 scaled = (f64x8)((u64x8)e + ((u64x8)t << 52));
    return f64x8_select(x < f64x8_set(-708.0), f64x8_set(0.0), scaled);
}

#endif
