/* A JSON file read strictly: duplicate keys, unknown keys and wrong types are errors that name
 * file, line and key. */
#ifndef TOPP_BENCH_JSON_SOURCE_H
#define TOPP_BENCH_JSON_SOURCE_H

#include "oracle/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { JSON_PATH_BYTES = 160 };

/* A file and its parsed root. Release with json_source_free. */
struct json_source {
    char file[512];
    char *text; /* terminated; owned */
    size_t length;
    json_t *root; /* owned */
    char sha256[65];
    struct tb_error *error; /* the caller's; receives every error of the readers below */
};

/* One value and where it stands, as `matrix[1].vocab[2]`; the value is borrowed from the root. */
struct json_place {
    const struct json_source *source;
    json_t *value;
    char path[JSON_PATH_BYTES];
};

enum tb_status json_source_load(const char *file, struct json_source *source,
                                struct tb_error *error);
void json_source_free(struct json_source *source);
struct json_place json_source_root(const struct json_source *source);

/* 1-based line of the value (or key) at path; the line of its nearest parent that is found. */
int64_t json_source_line(const struct json_source *source, const char *path);

/* An error about a place: file, line, "`key`: message". */
enum tb_status json_fail(const struct json_place *place, enum tb_status code, const char *format,
                         ...) __attribute__((format(printf, 3, 4)));

/* TB_OK when place is an object whose keys all stand in keys (NULL-terminated). */
enum tb_status json_object_keys(const struct json_place *place, const char *const *keys);

/* False when the key is absent. */
bool json_member(const struct json_place *object, const char *key, struct json_place *member);
/* As json_member; absent is an error. */
enum tb_status json_require(const struct json_place *object, const char *key,
                            struct json_place *member);

/* An array with 1 to most elements. */
enum tb_status json_list(const struct json_place *place, size_t most, size_t *count);
struct json_place json_element(const struct json_place *array, size_t index);

enum tb_status json_text(const struct json_place *place, char *text, size_t text_bytes);
enum tb_status json_whole(const struct json_place *place, int64_t least, int64_t most,
                          int64_t *value);
/* Any JSON number in [least, most]. */
enum tb_status json_number_in(const struct json_place *place, double least, double most,
                              double *value);
enum tb_status json_flag(const struct json_place *place, bool *value);

#endif
