#include "bench/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAGIC_BYTES = 6,
    HEADER_MOST = 1 << 16, /* bytes of the dictionary; a real one has about 118 */
    CHUNK_VALUES = 1 << 18,
};

enum npy_dtype { NPY_FLOAT32, NPY_FLOAT16, NPY_BFLOAT16_AS_U16 };

struct npy_header {
    enum npy_dtype dtype;
    int64_t shape[2];
    int64_t data_at; /* first byte of the data */
    bool have_descr, have_order, have_shape;
};

/* The part of a file that the parser looks at, and where it is. */
struct cursor {
    const unsigned char *bytes;
    int64_t at, end; /* of the header dictionary */
    const char *name;
    bool u16_is_bfloat16;
    struct tb_error *error;
};

#define FAIL(cursor, byte, ...)                                                                    \
    tb_fail_at((cursor)->error, TB_UNREADABLE, (cursor)->name, 0, (byte), __VA_ARGS__)

static void skip_spaces(struct cursor *c) {
    while (c->at < c->end && (c->bytes[c->at] == ' ' || c->bytes[c->at] == '\t'))
        c->at++;
}

static bool next_is(struct cursor *c, char wanted) {
    skip_spaces(c);
    if (c->at >= c->end || c->bytes[c->at] != (unsigned char)wanted)
        return false;
    c->at++;
    return true;
}

/* A quoted string without escapes, into text; false when there is none or it is too long. */
static bool read_string(struct cursor *c, char *text, size_t text_bytes) {
    skip_spaces(c);
    if (c->at >= c->end || (c->bytes[c->at] != '\'' && c->bytes[c->at] != '"'))
        return false;
    const unsigned char quote = c->bytes[c->at];
    const int64_t from = c->at + 1;
    int64_t to = from;
    while (to < c->end && c->bytes[to] != quote && c->bytes[to] != '\\' && c->bytes[to] >= ' ')
        to++;
    if (to >= c->end || c->bytes[to] != quote || (size_t)(to - from) >= text_bytes)
        return false;
    memcpy(text, c->bytes + from, (size_t)(to - from));
    text[to - from] = '\0';
    c->at = to + 1;
    return true;
}

static enum tb_status read_descr(struct cursor *c, struct npy_header *header) {
    char descr[16];
    skip_spaces(c);
    const int64_t at = c->at;
    if (!read_string(c, descr, sizeof descr))
        return FAIL(c, at, "'descr' is no plain type: wanted '<f4' (binary32) or '<f2'");
    if (!strcmp(descr, "<f4")) {
        header->dtype = NPY_FLOAT32;
    } else if (!strcmp(descr, "<f2")) {
        header->dtype = NPY_FLOAT16;
    } else if (!strcmp(descr, "<u2")) {
        if (!c->u16_is_bfloat16)
            return FAIL(c, at, "type '<u2' is read only as bfloat16, and only when asked for");
        header->dtype = NPY_BFLOAT16_AS_U16;
    } else {
        return FAIL(c, at,
                    "type '%s': wanted '<f4' (binary32) or '<f2'; convert with "
                    "array.astype('<f4')",
                    descr);
    }
    return TB_OK;
}

static enum tb_status read_order(struct cursor *c) {
    static const char no[] = "False", yes[] = "True";
    skip_spaces(c);
    const int64_t at = c->at, left = c->end - c->at;
    if (left >= 5 && !memcmp(c->bytes + at, no, 5)) {
        c->at += 5;
        return TB_OK;
    }
    if (left >= 4 && !memcmp(c->bytes + at, yes, 4))
        return FAIL(c, at,
                    "Fortran order: save rows one after another with "
                    "numpy.ascontiguousarray");
    return FAIL(c, at, "'fortran_order' is neither False nor True");
}

static enum tb_status read_length(struct cursor *c, int64_t *length) {
    skip_spaces(c);
    const int64_t at = c->at;
    int64_t value = 0;
    while (c->at < c->end && c->bytes[c->at] >= '0' && c->bytes[c->at] <= '9') {
        const int64_t digit = c->bytes[c->at] - '0';
        if (value > (INT64_MAX - digit) / 10)
            return FAIL(c, at, "a length in 'shape' is past 2^63");
        value = value * 10 + digit;
        c->at++;
    }
    if (c->at == at)
        return FAIL(c, at, "'shape' wants two whole numbers, as (rows, vocabulary)");
    *length = value;
    return TB_OK;
}

static enum tb_status read_shape(struct cursor *c, struct npy_header *header) {
    skip_spaces(c);
    const int64_t at = c->at;
    int dimensions = 0;
    if (!next_is(c, '('))
        return FAIL(c, at, "'shape' is no tuple");
    while (!next_is(c, ')')) {
        int64_t length = 0;
        const enum tb_status status = read_length(c, &length);
        if (status != TB_OK)
            return status;
        if (dimensions < 2)
            header->shape[dimensions] = length;
        dimensions++;
        if (next_is(c, ','))
            continue;
        if (!next_is(c, ')'))
            return FAIL(c, c->at, "'shape' goes on without a comma or `)`");
        break;
    }
    if (dimensions != 2)
        return FAIL(c, at,
                    "%d dimensions: wanted 2, [rows, vocabulary]; one row is "
                    "array.reshape(1, -1)",
                    dimensions);
    if (header->shape[0] < 1 || header->shape[1] < 1)
        return FAIL(c, at, "shape (%lld, %lld) holds no logit", (long long)header->shape[0],
                    (long long)header->shape[1]);
    if (header->shape[1] > INT32_MAX)
        return FAIL(c, at, "vocabulary of %lld: token ids end at 2^31 - 1",
                    (long long)header->shape[1]);
    if (header->shape[0] > INT64_MAX / (int64_t)sizeof(float) / header->shape[1])
        return FAIL(c, at, "shape (%lld, %lld) is past 2^63 bytes", (long long)header->shape[0],
                    (long long)header->shape[1]);
    return TB_OK;
}

static enum tb_status read_entry(struct cursor *c, struct npy_header *header) {
    char key[32];
    skip_spaces(c);
    const int64_t at = c->at;
    if (!read_string(c, key, sizeof key))
        return FAIL(c, at, "the header's dictionary wants a quoted key here");
    bool *seen = !strcmp(key, "descr")           ? &header->have_descr
                 : !strcmp(key, "fortran_order") ? &header->have_order
                 : !strcmp(key, "shape")         ? &header->have_shape
                                                 : NULL;
    if (!seen)
        return FAIL(c, at, "unknown key '%s' in the header", key);
    if (*seen)
        return FAIL(c, at, "key '%s' stands twice in the header", key);
    *seen = true;
    if (!next_is(c, ':'))
        return FAIL(c, c->at, "no `:` after key '%s'", key);
    return seen == &header->have_descr   ? read_descr(c, header)
           : seen == &header->have_order ? read_order(c)
                                         : read_shape(c, header);
}

static enum tb_status read_dictionary(struct cursor *c, struct npy_header *header) {
    if (!next_is(c, '{'))
        return FAIL(c, c->at, "the header is no dictionary");
    while (!next_is(c, '}')) {
        const enum tb_status status = read_entry(c, header);
        if (status != TB_OK)
            return status;
        if (next_is(c, ','))
            continue;
        if (!next_is(c, '}'))
            return FAIL(c, c->at, "the header's dictionary goes on without a comma or `}`");
        break;
    }
    const char *missing = !header->have_descr   ? "descr"
                          : !header->have_order ? "fortran_order"
                          : !header->have_shape ? "shape"
                                                : NULL;
    if (missing)
        return FAIL(c, c->at, "key '%s' is missing in the header", missing);
    while (c->at < c->end - 1 && c->bytes[c->at] == ' ')
        c->at++;
    if (c->at != c->end - 1 || c->bytes[c->at] != '\n')
        return FAIL(c, c->at, "after the header's dictionary come spaces and one line end alone");
    return TB_OK;
}

static int64_t value_bytes(const struct npy_header *header) {
    return header->dtype == NPY_FLOAT32 ? 4 : 2;
}

/* bytes: the first `available` of `total`; enough when available covers the header. */
static enum tb_status parse_header(const unsigned char *bytes, int64_t available, int64_t total,
                                   const char *name, bool u16_is_bfloat16,
                                   struct npy_header *header, struct tb_error *error) {
    struct cursor c = {bytes, 0, 0, name, u16_is_bfloat16, error};
    static const unsigned char magic[MAGIC_BYTES] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    memset(header, 0, sizeof *header);
    for (int64_t i = 0; i < MAGIC_BYTES; i++)
        if (i >= available || bytes[i] != magic[i])
            return FAIL(&c, i, "no .npy file: it starts with \\x93NUMPY");
    if (available < 8)
        return FAIL(&c, available, "the file ends before its format version");
    if ((bytes[6] != 1 && bytes[6] != 2) || bytes[7] != 0)
        return FAIL(&c, 6, "format version %d.%d: wanted 1.0 or 2.0", bytes[6], bytes[7]);
    const int64_t prefix = bytes[6] == 1 ? 10 : 12;
    if (available < prefix)
        return FAIL(&c, available, "the file ends before the length of its header");
    int64_t length = bytes[8] | (int64_t)bytes[9] << 8;
    if (prefix == 12)
        length |= (int64_t)bytes[10] << 16 | (int64_t)bytes[11] << 24;
    if (length > HEADER_MOST)
        return FAIL(&c, 8, "header of %lld bytes: at most %d", (long long)length, HEADER_MOST);
    if (length > available - prefix)
        return FAIL(&c, available, "the file ends inside its header of %lld bytes",
                    (long long)length);
    c.at = prefix;
    c.end = header->data_at = prefix + length;
    const enum tb_status status = read_dictionary(&c, header);
    if (status != TB_OK)
        return status;
    const int64_t want = header->shape[0] * header->shape[1] * value_bytes(header);
    const int64_t have = total - header->data_at;
    if (have < want)
        return FAIL(&c, total, "truncated: the data ends after %lld of %lld bytes", (long long)have,
                    (long long)want);
    if (have > want)
        return FAIL(&c, header->data_at + want, "%lld bytes too many after the data",
                    (long long)(have - want));
    return TB_OK;
}

/* binary16 to binary32 on the bits: every binary16 value is a binary32 one, and a NaN keeps its
 * payload. */
static uint32_t widen_half(uint32_t half) {
    const uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31u;
    uint32_t fraction = half & 0x3FFu;
    if (exponent == 31)
        return sign | 0x7F800000u | fraction << 13;
    if (exponent)
        return sign | (exponent + 112) << 23 | fraction << 13;
    if (!fraction)
        return sign;
    uint32_t shift = 0; /* a subnormal: fraction * 2^-24, brought to 1.f */
    for (; !(fraction & 0x400u); shift++)
        fraction <<= 1;
    return sign | (113 - shift) << 23 | (fraction & 0x3FFu) << 13;
}

static void widen(const unsigned char *bytes, int64_t count, enum npy_dtype dtype, float *out) {
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        if (dtype == NPY_FLOAT32) {
            const unsigned char *b = bytes + 4 * i;
            bits = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
        } else {
            bits = bytes[2 * i] | (uint32_t)bytes[2 * i + 1] << 8;
            bits = dtype == NPY_FLOAT16 ? widen_half(bits) : bits << 16;
        }
        memcpy(out + i, &bits, sizeof bits);
    }
}

static enum tb_status make_matrix(const struct npy_header *header, const char *name,
                                  struct logits *out, struct tb_error *error) {
    out->batch = header->shape[0];
    out->vocab = out->stride = header->shape[1];
    out->data = malloc((size_t)out->batch * (size_t)out->vocab * sizeof(float));
    if (!out->data)
        return tb_fail_at(error, TB_NO_MEMORY, name, 0, -1, "no memory for %lld x %lld logits",
                          (long long)out->batch, (long long)out->vocab);
    return TB_OK;
}

enum tb_status npy_read_memory(const void *bytes, size_t length, const char *name,
                               bool u16_is_bfloat16, struct logits *out, struct tb_error *error) {
    struct npy_header header;
    memset(out, 0, sizeof *out);
    enum tb_status status = parse_header(bytes, (int64_t)length, (int64_t)length, name,
                                         u16_is_bfloat16, &header, error);
    if (status == TB_OK)
        status = make_matrix(&header, name, out, error);
    if (status == TB_OK) {
        widen((const unsigned char *)bytes + header.data_at, out->batch * out->vocab, header.dtype,
              out->data);
        status = logits_hash(out, error);
    }
    if (status != TB_OK)
        logits_free(out);
    return status;
}

/* Reads exactly count bytes at offset; TB_UNREADABLE when the file ends earlier. */
static enum tb_status read_at(int file, const char *path, void *to, int64_t count, int64_t offset,
                              struct tb_error *error) {
    for (int64_t done = 0; done < count;) {
        const ssize_t got = pread(file, (char *)to + done, (size_t)(count - done), offset + done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return tb_fail_at(error, TB_UNREADABLE, path, 0, offset + done, "cannot be read: %s",
                              got < 0 ? strerror(errno) : "the file became shorter");
        done += got;
    }
    return TB_OK;
}

/* Opens and parses; *file receives a descriptor to close, -1 on failure. */
static enum tb_status open_npy(const char *path, bool u16_is_bfloat16, int *file,
                               struct npy_header *header, struct tb_error *error) {
    struct stat facts;
    *file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*file < 0)
        return tb_fail_at(error, TB_UNREADABLE, path, 0, -1, "cannot be opened: %s",
                          strerror(errno));
    enum tb_status status = TB_OK;
    unsigned char *start = NULL;
    if (fstat(*file, &facts) || !S_ISREG(facts.st_mode))
        status = tb_fail_at(error, TB_UNREADABLE, path, 0, -1, "is no regular file");
    if (status == TB_OK) {
        const int64_t size = facts.st_size;
        const int64_t head = size < HEADER_MOST + 12 ? size : HEADER_MOST + 12;
        start = malloc((size_t)head + 1);
        status = start ? read_at(*file, path, start, head, 0, error)
                       : tb_fail(error, TB_NO_MEMORY, "no memory for a header");
        if (status == TB_OK)
            status = parse_header(start, head, size, path, u16_is_bfloat16, header, error);
    }
    free(start);
    if (status != TB_OK) {
        close(*file);
        *file = -1;
    }
    return status;
}

static enum tb_status read_values(int file, const char *path, const struct npy_header *header,
                                  float *out, struct tb_error *error) {
    const int64_t width = value_bytes(header), count = header->shape[0] * header->shape[1];
    unsigned char *chunk = malloc((size_t)CHUNK_VALUES * (size_t)width);
    enum tb_status status =
        chunk ? TB_OK : tb_fail(error, TB_NO_MEMORY, "no memory for reading %s", path);
    for (int64_t i = 0; status == TB_OK && i < count; i += CHUNK_VALUES) {
        const int64_t now = count - i < CHUNK_VALUES ? count - i : CHUNK_VALUES;
        status = read_at(file, path, chunk, now * width, header->data_at + i * width, error);
        if (status == TB_OK)
            widen(chunk, now, header->dtype, out + i);
    }
    free(chunk);
    return status;
}

enum tb_status npy_read(const char *path, bool u16_is_bfloat16, struct logits *out,
                        struct tb_error *error) {
    struct npy_header header;
    int file = -1;
    memset(out, 0, sizeof *out);
    enum tb_status status = open_npy(path, u16_is_bfloat16, &file, &header, error);
    if (status == TB_OK)
        status = make_matrix(&header, path, out, error);
    if (status == TB_OK)
        status = read_values(file, path, &header, out->data, error);
    if (status == TB_OK)
        status = logits_hash(out, error);
    if (file >= 0)
        close(file);
    if (status != TB_OK)
        logits_free(out);
    return status;
}

enum tb_status npy_shape(const char *path, int64_t *batch, int64_t *vocab, struct tb_error *error) {
    struct npy_header header;
    int file = -1;
    const enum tb_status status = open_npy(path, true, &file, &header, error);
    if (status == TB_OK) {
        *batch = header.shape[0];
        *vocab = header.shape[1];
        close(file);
    }
    return status;
}
