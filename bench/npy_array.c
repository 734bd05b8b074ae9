#include "bench/npy_array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_MOST = 1 << 16, HEADER_BYTES = 64 };

/* Behind the key's colon, NULL without that key. */
static const char *value_of(const char *header, const char *key) {
    const char *at = strstr(header, key);
    at = at ? strchr(at, ':') : NULL;
    return at ? at + 1 + strspn(at + 1, " ") : NULL;
}

static void read_claim(const char *header, struct npy_claim *claim) {
    const char *descr = value_of(header, "'descr'"), *shape = value_of(header, "'shape'");
    snprintf(claim->descr, sizeof claim->descr, "?");
    if (descr && *descr == '\'' && strcspn(descr + 1, "'") < sizeof claim->descr)
        snprintf(claim->descr, sizeof claim->descr, "%.*s", (int)strcspn(descr + 1, "'"),
                 descr + 1);
    claim->dimensions = -1;
    if (!shape || *shape != '(')
        return;
    int dimensions = 0;
    for (const char *at = shape + 1; *at && *at != ')';) {
        char *end;
        const long long length = strtoll(at, &end, 10);
        if (end == at || dimensions == NPY_MOST_DIMENSIONS)
            return;
        claim->shape[dimensions++] = length;
        at = end + strspn(end, ", ");
    }
    claim->dimensions = dimensions;
}

enum tb_status npy_claim_read(const char *path, struct npy_claim *claim, struct tb_error *error) {
    static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    unsigned char start[12] = {0};
    FILE *file = fopen(path, "re");
    *claim = (struct npy_claim){.dimensions = -1};
    if (!file)
        return tb_fail_at(error, TB_UNREADABLE, path, 0, -1, "cannot be opened: %s",
                          strerror(errno));
    char *header = NULL;
    enum tb_status status = TB_OK;
    size_t prefix = 10, length = 0;
    if (fread(start, 1, 10, file) == 10 && !memcmp(start, magic, sizeof magic)) {
        length = start[8] | (size_t)start[9] << 8;
        if (start[6] > 1 && fread(start + 10, 1, 2, file) == 2) {
            prefix = 12;
            length |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
        }
    }
    header = length && length <= HEADER_MOST ? calloc(1, length + 1) : NULL;
    if (!header || fread(header, 1, length, file) != length)
        status = tb_fail_at(error, TB_UNREADABLE, path, 0, 0, "is no .npy file");
    else
        read_claim(header, claim);
    claim->data_at = (int64_t)(prefix + length);
    free(header);
    fclose(file);
    return status;
}

void npy_claim_text(const struct npy_claim *claim, char *text, size_t bytes) {
    int used = snprintf(text, bytes, "%s (", claim->descr);
    for (int i = 0; i < claim->dimensions && used >= 0 && (size_t)used < bytes; i++)
        used += snprintf(text + used, bytes - (size_t)used, "%s%lld", i ? ", " : "",
                         (long long)claim->shape[i]);
    if (used >= 0 && (size_t)used < bytes)
        snprintf(text + used, bytes - (size_t)used, "%s)", claim->dimensions == 1 ? "," : "");
}

enum tb_status npy_read_int64(const char *path, const struct npy_claim *claim, int64_t *values,
                              size_t count, struct tb_error *error) {
    FILE *file = fopen(path, "re");
    if (!file)
        return tb_fail_at(error, TB_UNREADABLE, path, 0, -1, "cannot be opened: %s",
                          strerror(errno));
    enum tb_status status = TB_OK;
    if (fseek(file, (long)claim->data_at, SEEK_SET) != 0 ||
        fread(values, sizeof *values, count, file) != count || fgetc(file) != EOF)
        status = tb_fail_at(error, TB_UNREADABLE, path, 0, claim->data_at,
                            "does not hold %zu values of 8 bytes", count);
    fclose(file);
    return status;
}

enum tb_status npy_write_vector(const char *path, const float *values, int64_t count,
                                struct tb_error *error) {
    char header[2 * HEADER_BYTES];
    FILE *file = fopen(path, "we");
    if (!file)
        return tb_fail_at(error, TB_IO, path, 0, -1, "cannot be created: %s", strerror(errno));
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)(sizeof header - 10);
    header[9] = 0;
    const int length =
        snprintf(header + 10, sizeof header - 10,
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld,), }", (long long)count);
    header[10 + length] = ' ';
    header[sizeof header - 1] = '\n';
    const bool good = fwrite(header, 1, sizeof header, file) == sizeof header &&
                      fwrite(values, sizeof *values, (size_t)count, file) == (size_t)count;
    if (fclose(file) == 0 && good)
        return TB_OK;
    return tb_fail_at(error, TB_IO, path, 0, -1, "cannot be written: %s", strerror(errno));
}
