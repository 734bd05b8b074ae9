/* JSON text read in place, value by value: nothing is built in memory, so that a file of any size
 * costs what the caller keeps of it. As strict as jansson, but for keys that stand twice and for
 * numbers that are out of range where they are only stepped over. */
#ifndef TOPP_ORACLE_JSON_SCAN_H
#define TOPP_ORACLE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A piece of the text; not terminated, borrowed. */
struct json_span {
    const char *at;
    size_t length;
};

/* Where a walk through a text stands. Once bad is set nothing moves any more. */
struct json_scan {
    const char *at, *end;
    bool bad;   /* `at` is where the text stopped being JSON, or not what was asked for */
    bool fresh; /* just behind an opening bracket: no comma is due */
};

enum json_type {
    JSON_SCAN_NONE, /* no value begins here */
    JSON_SCAN_OBJECT,
    JSON_SCAN_ARRAY,
    JSON_SCAN_STRING,
    JSON_SCAN_NUMBER,
    JSON_SCAN_TRUE,
    JSON_SCAN_FALSE,
    JSON_SCAN_NULL,
};

struct json_scan json_scan_of(const char *text, size_t length);

/* The kind of value that begins here, by its first byte. */
enum json_type json_scan_peek(struct json_scan *scan);

/* Into an object: then json_scan_key() before each value, until it says false at the end (or at a
 * defect: scan->bad). The same of an array, with json_scan_item(). */
bool json_scan_object(struct json_scan *scan);
bool json_scan_key(struct json_scan *scan, struct json_span *key); /* as written, without quotes */
bool json_scan_array(struct json_scan *scan);
bool json_scan_item(struct json_scan *scan);

/* Reads one value. skip: of any kind, text: NULL or the value as written. string: as written,
 * without its quotes (json_span_text() decodes). number: also of an integer's spelling. */
bool json_scan_skip(struct json_scan *scan, struct json_span *text);
bool json_scan_string(struct json_scan *scan, struct json_span *string);
bool json_scan_number(struct json_scan *scan, double *value);
bool json_scan_integer(struct json_scan *scan, int64_t *value);

/* The numbers that stand next in an array that was entered, at most `room`; how many. What follows
 * them is left to json_scan_item(). values NULL: they are stepped over. */
size_t json_scan_numbers(struct json_scan *scan, double *values, size_t room);
/* The same of whole numbers from 0 to `most`; any other number is a defect. */
size_t json_scan_counts(struct json_scan *scan, int32_t *values, size_t room, int32_t most);

/* Nothing but white space is left. */
bool json_scan_done(struct json_scan *scan);

static inline bool json_span_is(struct json_span span, const char *text) {
    const size_t length = strlen(text);
    return span.length == length && !memcmp(span.at, text, length);
}
/* A string as written, decoded into text[bytes], cut to fit; false when it is no string. */
bool json_span_text(struct json_span string, char *text, size_t bytes);

#endif
