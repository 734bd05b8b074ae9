#include "ci/json_text.h"

#include "oracle/json_canonical.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void sha256_text(const void *bytes, size_t length, char digest[65]) {
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    EVP_Digest(bytes, length, raw, &size, EVP_sha256(), NULL);
    for (unsigned int i = 0; i < 32; i++)
        snprintf(digest + 2 * (size_t)i, 3, "%02x", raw[i]);
}

int64_t json_text_line(const struct json_text *text, size_t byte) {
    int64_t line = 1;
    for (size_t i = 0; i < byte && i < text->length; i++)
        line += text->bytes[i] == '\n';
    return line;
}

static enum tb_status fail_at(const struct json_text *text, size_t byte, struct tb_error *error,
                              const char *message) {
    return tb_fail_at(error, TB_UNREADABLE, text->file, json_text_line(text, byte), (int64_t)byte,
                      "%s", message);
}

static enum tb_status check_start(const struct json_text *text, struct tb_error *error) {
    size_t at = 0;
    char message[320];
    if (text->length >= 3 && !memcmp(text->bytes, "\xef\xbb\xbf", 3))
        return fail_at(text, 0, error, "starts with a byte order mark: save it as plain UTF-8");
    while (at < text->length && isspace((unsigned char)text->bytes[at]))
        at++;
    if (at == text->length)
        return fail_at(text, at, error,
                       "nothing in it: the run that should have written it did not finish");
    if (text->bytes[at] == '{')
        return TB_OK;
    size_t end = at;
    while (end < text->length && text->bytes[end] != '\n' && end - at < 60)
        end++;
    const char *brace = memchr(text->bytes + at, '{', text->length - at);
    int shown = (int)(end - at);
    char line[64];
    for (int i = 0; i < shown; i++)
        line[i] =
            isprint((unsigned char)text->bytes[at + (size_t)i]) ? text->bytes[at + (size_t)i] : '?';
    if (brace)
        snprintf(message, sizeof message,
                 "other text before the JSON ('%.*s'; the first brace is at byte %zu): write the "
                 "results to a file of their own, not into the log",
                 shown, line, (size_t)(brace - text->bytes));
    else
        snprintf(message, sizeof message, "no JSON object in it, but '%.*s'", shown, line);
    return fail_at(text, at, error, message);
}

/* Step by step, so that a large file is never in memory as a whole. */
static bool hash_all(struct json_text *text) {
    const size_t step = (size_t)4 << 20;
    struct sha256_stream stream;
    sha256_begin(&stream);
    for (size_t at = 0; at < text->length; at += step) {
        const size_t length = text->length - at < step ? text->length - at : step;
        sha256_put(&stream, text->bytes + at, length);
        json_text_forget(text, at, at + length);
    }
    sha256_end(&stream, text->sha256);
    return text->sha256[0] != '\0';
}

enum tb_status json_text_open(const char *file, struct json_text *text, struct tb_error *error) {
    struct stat stat;
    *text = (struct json_text){.file = file};
    int descriptor = open(file, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || fstat(descriptor, &stat) != 0) {
        int cause = errno;
        if (descriptor >= 0)
            close(descriptor);
        return tb_fail_at(error, TB_UNREADABLE, file, 0, -1, "cannot be opened: %s",
                          strerror(cause));
    }
    if (!S_ISREG(stat.st_mode)) {
        close(descriptor);
        return tb_fail_at(error, TB_UNREADABLE, file, 0, -1, "is no regular file");
    }
    if (stat.st_size > 0) {
        void *bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (bytes == MAP_FAILED) {
            int cause = errno;
            close(descriptor);
            return tb_fail_at(error, TB_UNREADABLE, file, 0, -1, "cannot be read: %s",
                              strerror(cause));
        }
        text->bytes = bytes;
        text->length = (size_t)stat.st_size;
    }
    close(descriptor);
    enum tb_status status = check_start(text, error);
    if (status == TB_OK && !hash_all(text))
        status = tb_fail(error, TB_NO_MEMORY, "no memory to hash %s", file);
    if (status != TB_OK)
        json_text_close(text);
    return status;
}

void json_text_forget(const struct json_text *text, size_t from, size_t to) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), begin = from / page * page;
    if (to > begin)
        madvise((void *)(text->bytes + begin), to - begin, MADV_DONTNEED);
}

void json_text_close(struct json_text *text) {
    if (text->bytes)
        munmap((void *)text->bytes, text->length);
    text->bytes = NULL;
    text->length = 0;
}

static bool word_here(const char *at, const char *end, const char *word) {
    size_t length = strlen(word);
    return (size_t)(end - at) >= length && strncasecmp(at, word, length) == 0;
}

/* The first bare NaN or Infinity outside strings, or NULL. */
static const char *not_finite(const char *at, const char *end) {
    bool quoted = false;
    for (; at < end; at++) {
        if (quoted && *at == '\\')
            at++;
        else if (*at == '"')
            quoted = !quoted;
        else if (!quoted && (word_here(at, end, "nan") || word_here(at, end, "inf")))
            return at;
    }
    return NULL;
}

json_t *json_text_parse(const struct json_text *text, size_t from, size_t length,
                        struct tb_error *error) {
    json_error_t defect;
    json_t *json = json_loadb(text->bytes + from, length, JSON_REJECT_DUPLICATES, &defect);
    if (json)
        return json;
    size_t byte = from + (defect.position > 0 ? (size_t)defect.position : 0);
    const char *bare = not_finite(text->bytes + from, text->bytes + from + length);
    char message[320];
    /* jansson stops right behind the token; it reads the sign as a token of its own. */
    if (bare && (size_t)(bare - text->bytes) <= byte + 1) {
        if (bare > text->bytes && (bare[-1] == '-' || bare[-1] == '+'))
            bare--;
        byte = (size_t)(bare - text->bytes);
        size_t word = 1;
        while (byte + word < text->length && isalpha((unsigned char)bare[word]))
            word++;
        snprintf(message, sizeof message,
                 "%.*s is no JSON number: the writer should put null (a mean of no samples?)",
                 (int)(word < 12 ? word : 12), bare);
    } else if (json_error_code(&defect) == json_error_premature_end_of_input) {
        byte = from + length;
        snprintf(message, sizeof message,
                 "ends early, in the middle of the document: the run that wrote it was cut off");
    } else {
        snprintf(message, sizeof message, "no valid JSON: %s", defect.text);
    }
    fail_at(text, byte, error, message);
    return NULL;
}
