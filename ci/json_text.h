/* A JSON file as text, with errors that say where and what a person did wrong: nothing in it, log
 * lines before the brace, cut off, NaN for a number. */
#ifndef TOPP_CI_JSON_TEXT_H
#define TOPP_CI_JSON_TEXT_H

#include "oracle/status.h"

#include <jansson.h>
#include <stddef.h>

struct json_text {
    const char *file;
    const char *bytes; /* mapped; not terminated */
    size_t length;
    char sha256[65];
};

/* Maps the file and checks that something like a JSON object is in it. */
enum tb_status json_text_open(const char *file, struct json_text *text, struct tb_error *error);
void json_text_close(struct json_text *text);

/* Tells the system that bytes [from, to) are not needed now; they can be read again. */
void json_text_forget(const struct json_text *text, size_t from, size_t to);

/* Parses [from, from + length) strictly; NULL with an error at its line and byte. */
json_t *json_text_parse(const struct json_text *text, size_t from, size_t length,
                        struct tb_error *error);

/* 1-based line of a byte. */
int64_t json_text_line(const struct json_text *text, size_t byte);

/* SHA-256 as 64 hex digits. */
void sha256_text(const void *bytes, size_t length, char digest[65]);

#endif
