#include "oracle/json_scan.h"

#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 512, NUMBER_BYTES = 512 };

struct json_scan json_scan_of(const char *text, size_t length) {
    return (struct json_scan){.at = text, .end = length ? text + length : text};
}

static bool fail(struct json_scan *scan) {
    scan->bad = true;
    return false;
}

static bool is_space(char byte) {
    return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}

static bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

static void spaces(struct json_scan *scan) {
    while (scan->at < scan->end && is_space(*scan->at))
        scan->at++;
}

/* The byte here, '\0' at the end: no JSON has one. */
static char here(const struct json_scan *scan) {
    return scan->at < scan->end ? *scan->at : '\0';
}

static bool take(struct json_scan *scan, char byte) {
    spaces(scan);
    if (scan->bad || here(scan) != byte)
        return fail(scan);
    scan->at++;
    return true;
}

enum json_type json_scan_peek(struct json_scan *scan) {
    spaces(scan);
    const char byte = scan->bad ? '\0' : here(scan);
    if (is_digit(byte))
        return JSON_SCAN_NUMBER;
    switch (byte) {
    case '{':
        return JSON_SCAN_OBJECT;
    case '[':
        return JSON_SCAN_ARRAY;
    case '"':
        return JSON_SCAN_STRING;
    case 't':
        return JSON_SCAN_TRUE;
    case 'f':
        return JSON_SCAN_FALSE;
    case 'n':
        return JSON_SCAN_NULL;
    default:
        return byte == '-' ? JSON_SCAN_NUMBER : JSON_SCAN_NONE;
    }
}

/* Escapes and what is no ASCII are rare: jansson judges and decodes them. */
static json_t *decode(const char *quoted, size_t length) {
    return json_loadb(quoted, length, JSON_DECODE_ANY, NULL);
}

/* Eight bytes at a time: has one of them this value, is below a blank, or no ASCII? Never misses
 * one; may be wrong about a byte above the first that it finds. */
static bool has_special(uint64_t word) {
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones << 7;
    const uint64_t quote = word ^ (ones * '"'), slash = word ^ (ones * '\\');
    const uint64_t found = ((quote - ones) & ~quote) | ((slash - ones) & ~slash) |
                           ((word - ones * 0x20) & ~word) | word;
    return found & tops;
}

/* The first byte from `at` on that is no plain ASCII of a string. */
static const char *plain_end(const char *at, const char *end) {
    uint64_t word;
    for (; end - at >= 8; at += 8) {
        memcpy(&word, at, sizeof word);
        if (has_special(word))
            break;
    }
    while (at < end && *at != '"' && *at != '\\' && *at >= 0x20 && *at < 0x7f)
        at++;
    return at;
}

bool json_scan_string(struct json_scan *scan, struct json_span *string) {
    if (!take(scan, '"'))
        return false;
    const char *begin = scan->at;
    bool rare = false;
    for (;;) {
        scan->at = plain_end(scan->at, scan->end);
        if (scan->at >= scan->end || (unsigned char)*scan->at < 0x20)
            return fail(scan);
        if (*scan->at == '"')
            break;
        rare = true;
        scan->at += *scan->at == '\\' && scan->at + 1 < scan->end ? 2 : 1;
    }
    if (string)
        *string = (struct json_span){begin, (size_t)(scan->at - begin)};
    scan->at++;
    scan->fresh = false;
    if (!rare)
        return true;
    json_t *decoded = decode(begin - 1, (size_t)(scan->at - begin) + 1);
    json_decref(decoded);
    return decoded != NULL || fail(scan);
}

static bool digits(struct json_scan *scan) {
    const char *begin = scan->at;
    while (scan->at < scan->end && is_digit(*scan->at))
        scan->at++;
    return scan->at > begin || fail(scan);
}

static bool skip_number(struct json_scan *scan) {
    scan->at += here(scan) == '-';
    if (here(scan) == '0')
        scan->at++;
    else if (!digits(scan))
        return false;
    if (here(scan) == '.') {
        scan->at++;
        if (!digits(scan))
            return false;
    }
    if (here(scan) == 'e' || here(scan) == 'E') {
        scan->at++;
        scan->at += here(scan) == '+' || here(scan) == '-';
        return digits(scan);
    }
    return true;
}

static bool skip_word(struct json_scan *scan, const char *word) {
    const size_t length = strlen(word);
    if ((size_t)(scan->end - scan->at) < length || memcmp(scan->at, word, length) != 0)
        return fail(scan);
    scan->at += length;
    return true;
}

bool json_scan_object(struct json_scan *scan) {
    scan->fresh = take(scan, '{');
    return scan->fresh;
}

bool json_scan_array(struct json_scan *scan) {
    scan->fresh = take(scan, '[');
    return scan->fresh;
}

/* The comma before the next member, or the closing bracket; true when a member is due. */
static bool next(struct json_scan *scan, char closing) {
    spaces(scan);
    if (scan->bad)
        return false;
    if (here(scan) == closing) {
        scan->at++;
        scan->fresh = false;
        return false;
    }
    if (!scan->fresh && !take(scan, ','))
        return false;
    scan->fresh = false;
    return true;
}

bool json_scan_key(struct json_scan *scan, struct json_span *key) {
    return next(scan, '}') && json_scan_string(scan, key) && take(scan, ':');
}

bool json_scan_item(struct json_scan *scan) {
    return next(scan, ']');
}

/* Any spelling, whatever the locale. */
static bool slow_number(struct json_span text, double *value) {
    static locale_t plain;
    char copy[NUMBER_BYTES];
    locale_t known = __atomic_load_n(&plain, __ATOMIC_ACQUIRE);
    if (!known) {
        known = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        __atomic_store_n(&plain, known, __ATOMIC_RELEASE); /* a race leaves two alike */
    }
    if (!known || text.length >= sizeof copy)
        return false;
    memcpy(copy, text.at, text.length);
    copy[text.length] = '\0';
    *value = strtod_l(copy, NULL, known);
    return isfinite(*value);
}

/* Digits from here on, taken into the mantissa; false when there is none. */
static bool take_digits(struct json_scan *scan, uint64_t *mantissa, int *used) {
    const char *at = scan->at;
    uint64_t value = *mantissa;
    for (; at < scan->end && is_digit(*at); at++) {
        value = 10 * value + (uint64_t)(*at - '0');
        *used += value > 0;
    }
    const bool any = at > scan->at;
    scan->at = at;
    *mantissa = value;
    return any || fail(scan);
}

/* A number begins here. */
static bool read_number(struct json_scan *scan, double *value) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *begin = scan->at;
    uint64_t mantissa = 0;
    int used = 0;
    ptrdiff_t after = 0;
    scan->at += *begin == '-';
    scan->fresh = false;
    if (here(scan) == '0')
        scan->at++;
    else if (!take_digits(scan, &mantissa, &used))
        return false;
    if (here(scan) == '.') {
        const char *point = ++scan->at;
        if (!take_digits(scan, &mantissa, &used))
            return false;
        after = scan->at - point;
    }
    const bool exponent = here(scan) == 'e' || here(scan) == 'E';
    /* Both factors are exact, so the one division rounds rightly. */
    if (!exponent && used <= 18 && mantissa <= (UINT64_C(1) << 53) && after <= 22) {
        *value = (double)mantissa / powers[after];
        *value = *begin == '-' ? -*value : *value;
        return true;
    }
    scan->at = begin;
    if (!skip_number(scan))
        return false;
    const struct json_span text = {begin, (size_t)(scan->at - begin)};
    return slow_number(text, value) || fail(scan);
}

bool json_scan_number(struct json_scan *scan, double *value) {
    return json_scan_peek(scan) == JSON_SCAN_NUMBER ? read_number(scan, value) : fail(scan);
}

/* In front of a number of an array that was entered: past the comma that is due. Otherwise nothing
 * moves, and false. */
static bool at_number(struct json_scan *scan) {
    const struct json_scan before = *scan;
    spaces(scan);
    if (!scan->fresh && here(scan) == ',') {
        scan->at++;
        spaces(scan);
    } else if (!scan->fresh) {
        *scan = before;
        return false;
    }
    if (!scan->bad && (is_digit(here(scan)) || here(scan) == '-'))
        return true;
    *scan = before;
    return false;
}

size_t json_scan_numbers(struct json_scan *scan, double *values, size_t room) {
    size_t count = 0;
    while (count < room && at_number(scan)) {
        if (!(values ? read_number(scan, &values[count]) : skip_number(scan)))
            return count;
        scan->fresh = false;
        count++;
    }
    return count;
}

size_t json_scan_counts(struct json_scan *scan, int32_t *values, size_t room, int32_t most) {
    size_t count = 0;
    while (count < room && at_number(scan)) {
        uint64_t value = 0;
        int used = 0;
        if (!take_digits(scan, &value, &used) || used > 10 || value > (uint64_t)most ||
            here(scan) == '.' || here(scan) == 'e' || here(scan) == 'E') {
            fail(scan);
            return count;
        }
        values[count++] = (int32_t)value;
        scan->fresh = false;
    }
    return count;
}

static bool skip_value(struct json_scan *scan, int depth) {
    struct json_span key;
    if (depth > MOST_DEPTH)
        return fail(scan);
    switch (json_scan_peek(scan)) {
    case JSON_SCAN_OBJECT:
        for (json_scan_object(scan); json_scan_key(scan, &key);)
            skip_value(scan, depth + 1);
        break;
    case JSON_SCAN_ARRAY:
        json_scan_array(scan);
        for (json_scan_numbers(scan, NULL, SIZE_MAX); json_scan_item(scan);)
            skip_value(scan, depth + 1);
        break;
    case JSON_SCAN_STRING:
        json_scan_string(scan, NULL);
        break;
    case JSON_SCAN_NUMBER:
        skip_number(scan);
        break;
    case JSON_SCAN_TRUE:
        skip_word(scan, "true");
        break;
    case JSON_SCAN_FALSE:
        skip_word(scan, "false");
        break;
    case JSON_SCAN_NULL:
        skip_word(scan, "null");
        break;
    case JSON_SCAN_NONE:
        fail(scan);
        break;
    }
    scan->fresh = false;
    return !scan->bad;
}

bool json_scan_skip(struct json_scan *scan, struct json_span *text) {
    spaces(scan);
    const char *begin = scan->at;
    if (!skip_value(scan, 0))
        return false;
    if (text)
        *text = (struct json_span){begin, (size_t)(scan->at - begin)};
    return true;
}

bool json_scan_integer(struct json_scan *scan, int64_t *value) {
    if (json_scan_peek(scan) != JSON_SCAN_NUMBER)
        return fail(scan);
    const bool negative = here(scan) == '-';
    const char *begin = scan->at + negative;
    uint64_t magnitude = 0;
    int used = 0;
    scan->at = begin;
    if (here(scan) == '0')
        scan->at++;
    else if (!take_digits(scan, &magnitude, &used))
        return false;
    const char behind = here(scan);
    if (used > 19 || behind == '.' || behind == 'e' || behind == 'E' ||
        magnitude > (uint64_t)INT64_MAX + negative)
        return fail(scan);
    *value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    scan->fresh = false;
    return true;
}

bool json_scan_done(struct json_scan *scan) {
    spaces(scan);
    return !scan->bad && scan->at == scan->end;
}

bool json_span_text(struct json_span string, char *text, size_t bytes) {
    bool plain = true;
    for (size_t i = 0; plain && i < string.length; i++)
        plain = string.at[i] != '\\';
    if (plain) {
        snprintf(text, bytes, "%.*s", (int)string.length, string.at);
        return true;
    }
    json_t *decoded = decode(string.at - 1, string.length + 2);
    snprintf(text, bytes, "%s", decoded ? json_string_value(decoded) : "");
    json_decref(decoded);
    return decoded != NULL;
}
