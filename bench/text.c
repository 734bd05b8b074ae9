#include "bench/text.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void make_c_locale(void) {
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t text_c_locale(void) {
    pthread_once(&c_locale_once, make_c_locale);
    return c_locale;
}

bool text_real(const char *text, size_t length, double *value) {
    char copy[64];
    if (length == 0 || length >= sizeof copy || text[0] == '+')
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (strspn(copy, "0123456789.eE+-") != length)
        return false; /* strtod also takes hexadecimal, inf and nan */
    char *end = NULL;
    const locale_t locale = text_c_locale();
    *value = locale ? strtod_l(copy, &end, locale) : strtod(copy, &end);
    return *end == '\0' && isfinite(*value);
}

void text_float(float value, char *text, size_t text_bytes) {
    const locale_t locale = text_c_locale(), before = locale ? uselocale(locale) : (locale_t)0;
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, text_bytes, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value)
            break;
    }
    if (locale)
        uselocale(before);
    char *exponent = strchr(text, 'e'); /* e-06 becomes e-6, e+06 becomes e6 */
    if (!exponent)
        return;
    char *to = exponent + 1;
    const char *from = to + 1;
    if (*to == '-')
        to++;
    while (*from == '0')
        from++;
    memmove(to, from, strlen(from) + 1);
}
