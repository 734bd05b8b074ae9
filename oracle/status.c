#include "oracle/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void fill(struct tb_error *error, enum tb_status code, const char *file, int64_t line,
                 int64_t byte, const char *format, va_list arguments) {
    if (!error || error->code != TB_OK)
        return;
    error->code = code;
    error->line = line;
    error->byte = byte;
    snprintf(error->file, sizeof error->file, "%s", file ? file : "");
    vsnprintf(error->message, sizeof error->message, format, arguments);
}

enum tb_status tb_fail(struct tb_error *error, enum tb_status code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fill(error, code, NULL, 0, -1, format, arguments);
    va_end(arguments);
    return code;
}

enum tb_status tb_fail_at(struct tb_error *error, enum tb_status code, const char *file,
                          int64_t line, int64_t byte, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fill(error, code, file, line, byte, format, arguments);
    va_end(arguments);
    return code;
}

char *tb_error_text(const struct tb_error *error, char *text, uint64_t text_bytes) {
    char line[32] = "", byte[32] = "";
    if (error->line > 0)
        snprintf(line, sizeof line, ":%lld", (long long)error->line);
    if (error->byte >= 0)
        snprintf(byte, sizeof byte, "byte %lld: ", (long long)error->byte);
    const char *separator = error->file[0] ? ": " : "";
    snprintf(text, text_bytes, "%s%s%s%s%s", error->file, line, separator, byte, error->message);
    return text;
}

int tb_exit_code(enum tb_status status) {
    switch (status) {
    case TB_OK:
        return 0;
    case TB_USAGE:
    case TB_UNREADABLE:
    case TB_IO:
        return 2;
    case TB_INTERRUPTED:
        return 4;
    case TB_UNAVAILABLE:
    case TB_NO_MEMORY:
    case TB_INTERNAL:
        return 3;
    }
    return 3;
}
