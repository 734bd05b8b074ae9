/* Numbers as text, the same in every locale. */
#ifndef TOPP_BENCH_TEXT_H
#define TOPP_BENCH_TEXT_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>

/* The C locale, made once; for uselocale() around code that prints or reads numbers. Zero when the
 * system could not make it. */
locale_t text_c_locale(void);

/* A plain decimal number of `length` characters: digits, point, exponent, sign; finite. */
bool text_real(const char *text, size_t length, double *value);

/* Shortest decimal that reads back as this binary32 value: 0.95, 1e-6, 0.99999994. */
void text_float(float value, char *text, size_t text_bytes);

#endif
