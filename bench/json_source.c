#include "bench/json_source.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MOST = 4 << 20 };

void json_source_free(struct json_source *source) {
    if (!source)
        return;
    json_decref(source->root);
    free(source->text);
    memset(source, 0, sizeof *source);
}

static enum tb_status read_text(const char *file, struct json_source *source,
                                struct tb_error *error) {
    enum tb_status status = TB_OK;
    FILE *stream = fopen(file, "rb");
    if (!stream)
        return tb_fail_at(error, TB_UNREADABLE, file, 0, -1, "cannot be opened: %s",
                          strerror(errno));
    source->text = malloc(FILE_BYTES_MOST + 1);
    if (!source->text) {
        status = tb_fail(error, TB_NO_MEMORY, "no memory for reading %s", file);
    } else {
        source->length = fread(source->text, 1, FILE_BYTES_MOST + 1, stream);
        if (ferror(stream))
            status = tb_fail_at(error, TB_UNREADABLE, file, 0, (int64_t)source->length,
                                "cannot be read: %s", strerror(errno));
        else if (source->length > FILE_BYTES_MOST)
            status = tb_fail_at(error, TB_UNREADABLE, file, 0, FILE_BYTES_MOST,
                                "longer than %d bytes", FILE_BYTES_MOST);
        else
            source->text[source->length] = '\0';
    }
    fclose(stream);
    return status;
}

static void hash_text(struct json_source *source) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int length = 0;
    EVP_Digest(source->text, source->length, digest, &length, EVP_sha256(), NULL);
    for (unsigned int i = 0; i < length && i < 32; i++)
        snprintf(source->sha256 + 2 * i, 3, "%02x", digest[i]);
}

enum tb_status json_source_load(const char *file, struct json_source *source,
                                struct tb_error *error) {
    memset(source, 0, sizeof *source);
    source->error = error;
    if (snprintf(source->file, sizeof source->file, "%s", file) >= (int)sizeof source->file)
        return tb_fail_at(error, TB_USAGE, file, 0, -1, "path longer than %zu bytes",
                          sizeof source->file - 1);
    enum tb_status status = read_text(file, source, error);
    if (status == TB_OK) {
        json_error_t defect;
        source->root = json_loadb(source->text, source->length, JSON_REJECT_DUPLICATES, &defect);
        if (!source->root)
            status = tb_fail_at(error, TB_UNREADABLE, file, defect.line, defect.position,
                                "no valid JSON: %s", defect.text);
        else
            hash_text(source);
    }
    if (status != TB_OK)
        json_source_free(source);
    return status;
}

struct json_place json_source_root(const struct json_source *source) {
    return (struct json_place){.source = source, .value = source->root};
}

enum tb_status json_fail(const struct json_place *place, enum tb_status code, const char *format,
                         ...) {
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    const char *path = place->path[0] ? place->path : "(top level)";
    return tb_fail_at(place->source->error, code, place->source->file,
                      json_source_line(place->source, place->path), -1, "`%s`: %s", path, message);
}

static const char *type_name(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    default:
        return "null";
    }
}

static struct json_place below(const struct json_place *parent, const char *key, json_t *value) {
    struct json_place place = {.source = parent->source, .value = value};
    snprintf(place.path, sizeof place.path, "%.*s%s%.*s", JSON_PATH_BYTES / 2, parent->path,
             parent->path[0] ? "." : "", JSON_PATH_BYTES / 3, key);
    return place;
}

enum tb_status json_object_keys(const struct json_place *place, const char *const *keys) {
    const char *key;
    json_t *value;
    if (!json_is_object(place->value))
        return json_fail(place, TB_UNREADABLE, "is %s where an object is wanted",
                         type_name(place->value));
    json_object_foreach(place->value, key, value) {
        size_t i = 0;
        while (keys[i] && strcmp(keys[i], key) != 0)
            i++;
        if (keys[i])
            continue;
        char known[320] = "";
        for (i = 0; keys[i]; i++)
            snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "",
                     keys[i]);
        const struct json_place member = below(place, key, value);
        return json_fail(&member, TB_UNREADABLE, "unknown key; known here: %s", known);
    }
    return TB_OK;
}

bool json_member(const struct json_place *object, const char *key, struct json_place *member) {
    json_t *value = json_object_get(object->value, key);
    if (value)
        *member = below(object, key, value);
    return value != NULL;
}

enum tb_status json_require(const struct json_place *object, const char *key,
                            struct json_place *member) {
    if (json_member(object, key, member))
        return TB_OK;
    return json_fail(object, TB_UNREADABLE, "key `%s` is missing", key);
}

enum tb_status json_list(const struct json_place *place, size_t most, size_t *count) {
    if (!json_is_array(place->value))
        return json_fail(place, TB_UNREADABLE, "is %s where an array is wanted",
                         type_name(place->value));
    *count = json_array_size(place->value);
    if (*count == 0)
        return json_fail(place, TB_UNREADABLE, "is empty: it would match nothing");
    if (*count > most)
        return json_fail(place, TB_UNREADABLE, "has %zu elements: at most %zu", *count, most);
    return TB_OK;
}

struct json_place json_element(const struct json_place *array, size_t index) {
    struct json_place place = {.source = array->source,
                               .value = json_array_get(array->value, index)};
    snprintf(place.path, sizeof place.path, "%.*s[%zu]", JSON_PATH_BYTES - 24, array->path, index);
    return place;
}

enum tb_status json_text(const struct json_place *place, char *text, size_t text_bytes) {
    if (!json_is_string(place->value))
        return json_fail(place, TB_UNREADABLE, "is %s where a string is wanted",
                         type_name(place->value));
    const char *value = json_string_value(place->value);
    if (json_string_length(place->value) != strlen(value))
        return json_fail(place, TB_UNREADABLE, "holds a zero byte");
    if (!value[0])
        return json_fail(place, TB_UNREADABLE, "is an empty string");
    if (strlen(value) >= text_bytes)
        return json_fail(place, TB_UNREADABLE, "is %zu bytes long: at most %zu", strlen(value),
                         text_bytes - 1);
    snprintf(text, text_bytes, "%s", value);
    return TB_OK;
}

enum tb_status json_whole(const struct json_place *place, int64_t least, int64_t most,
                          int64_t *value) {
    if (!json_is_integer(place->value))
        return json_fail(place, TB_UNREADABLE, "is %s where a whole number is wanted",
                         json_is_real(place->value) ? "a fraction" : type_name(place->value));
    const json_int_t number = json_integer_value(place->value);
    if (number < least || number > most)
        return json_fail(place, TB_UNREADABLE, "is %lld: wanted %lld to %lld", (long long)number,
                         (long long)least, (long long)most);
    *value = number;
    return TB_OK;
}

enum tb_status json_number_in(const struct json_place *place, double least, double most,
                              double *value) {
    if (!json_is_number(place->value))
        return json_fail(place, TB_UNREADABLE, "is %s where a number is wanted",
                         type_name(place->value));
    const double number = json_number_value(place->value);
    if (!(number >= least && number <= most))
        return json_fail(place, TB_UNREADABLE, "is %g: wanted %g to %g", number, least, most);
    *value = number;
    return TB_OK;
}

enum tb_status json_flag(const struct json_place *place, bool *value) {
    if (!json_is_boolean(place->value))
        return json_fail(place, TB_UNREADABLE, "is %s where true or false is wanted",
                         type_name(place->value));
    *value = json_is_true(place->value);
    return TB_OK;
}
