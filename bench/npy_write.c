#include "bench/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADER_BYTES = 128, CHUNK = 4096 };

/* Format 1.0: magic, version, length, dictionary, spaces up to a multiple of 64, line end. */
static void make_header(unsigned char header[HEADER_BYTES], int64_t batch, int64_t vocab) {
    char dictionary[HEADER_BYTES];
    const int length = snprintf(dictionary, sizeof dictionary,
                                "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %lld), }",
                                (long long)batch, (long long)vocab);
    memset(header, ' ', HEADER_BYTES);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = HEADER_BYTES - 10;
    header[9] = 0;
    memcpy(header + 10, dictionary, (size_t)length);
    header[HEADER_BYTES - 1] = '\n';
}

static enum tb_status write_all(int file, const char *path, const void *bytes, size_t count,
                                struct tb_error *error) {
    const char *from = bytes;
    while (count > 0) {
        const ssize_t put = write(file, from, count);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return tb_fail_at(error, TB_IO, path, 0, -1, "cannot be written: %s", strerror(errno));
        from += put;
        count -= (size_t)put;
    }
    return TB_OK;
}

static enum tb_status write_rows(int file, const char *path, const float *data, int64_t batch,
                                 int64_t vocab, int64_t stride, struct tb_error *error) {
    unsigned char chunk[4 * CHUNK];
    for (int64_t r = 0; r < batch; r++)
        for (int64_t t = 0; t < vocab; t += CHUNK) {
            const int64_t now = vocab - t < CHUNK ? vocab - t : CHUNK;
            for (int64_t i = 0; i < now; i++) {
                uint32_t bits;
                memcpy(&bits, data + r * stride + t + i, sizeof bits);
                for (int b = 0; b < 4; b++)
                    chunk[4 * i + b] = (unsigned char)(bits >> 8 * b);
            }
            const enum tb_status status = write_all(file, path, chunk, (size_t)now * 4, error);
            if (status != TB_OK)
                return status;
        }
    return TB_OK;
}

enum tb_status npy_write(const char *path, const float *data, int64_t batch, int64_t vocab,
                         int64_t stride, struct tb_error *error) {
    unsigned char header[HEADER_BYTES];
    char *temporary = NULL;
    if (batch < 1 || vocab < 1 || stride < vocab)
        return tb_fail_at(error, TB_USAGE, path, 0, -1, "a matrix of %lld x %lld is not written",
                          (long long)batch, (long long)vocab);
    if (asprintf(&temporary, "%s.%ld.tmp", path, (long)getpid()) < 0)
        return tb_fail(error, TB_NO_MEMORY, "no memory for a file name");
    const int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) {
        const enum tb_status status =
            tb_fail_at(error, TB_IO, path, 0, -1, "cannot be created: %s", strerror(errno));
        free(temporary);
        return status;
    }
    make_header(header, batch, vocab);
    enum tb_status status = write_all(file, path, header, sizeof header, error);
    if (status == TB_OK)
        status = write_rows(file, path, data, batch, vocab, stride, error);
    if (status == TB_OK && fsync(file))
        status = tb_fail_at(error, TB_IO, path, 0, -1, "cannot be finished: %s", strerror(errno));
    if (close(file) && status == TB_OK)
        status = tb_fail_at(error, TB_IO, path, 0, -1, "cannot be closed: %s", strerror(errno));
    if (status == TB_OK && rename(temporary, path))
        status = tb_fail_at(error, TB_IO, path, 0, -1, "cannot be renamed to: %s", strerror(errno));
    if (status != TB_OK)
        unlink(temporary);
    free(temporary);
    return status;
}
