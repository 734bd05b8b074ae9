#include "bench/journal_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum tb_status bad_line(const char *path, int64_t number, const json_error_t *why,
                               struct tb_error *error) {
    return tb_fail_at(error, TB_UNREADABLE, path, number, -1,
                      "the journal is damaged (%s): it cannot be resumed; move it away, or --force "
                      "to start afresh",
                      why->text[0] ? why->text : "not an object");
}

static enum tb_status read_lines(FILE *file, const char *path, struct journal_text *text,
                                 struct tb_error *error) {
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    enum tb_status status = TB_OK;
    for (int64_t number = 1; status == TB_OK && (length = getline(&line, &room, file)) > 0;
         number++) {
        if (line[length - 1] != '\n')
            break;
        json_error_t why = {.text = ""};
        json_t *object = json_loadb(line, (size_t)length, JSON_REJECT_DUPLICATES, &why);
        if (!json_is_object(object)) {
            json_decref(object);
            status = bad_line(path, number, &why, error);
        } else if (!text->header) {
            text->header = object;
        } else {
            text->finished = json_object_get(object, "end") != NULL;
            json_array_append_new(text->lines, object);
        }
        text->whole_bytes += length;
    }
    free(line);
    if (status == TB_OK && ferror(file))
        status =
            tb_fail_at(error, TB_UNREADABLE, path, 0, -1, "cannot be read: %s", strerror(errno));
    return status;
}

enum tb_status journal_read(const char *path, struct journal_text *text, struct tb_error *error) {
    memset(text, 0, sizeof *text);
    FILE *file = fopen(path, "re");
    if (!file && errno == ENOENT)
        return TB_OK;
    if (!file)
        return tb_fail_at(error, TB_UNREADABLE, path, 0, -1, "cannot be read: %s", strerror(errno));
    text->lines = json_array();
    enum tb_status status = read_lines(file, path, text, error);
    fclose(file);
    if (status != TB_OK || !text->header) {
        json_decref(text->header);
        json_decref(text->lines);
        memset(text, 0, sizeof *text);
    }
    return status;
}
