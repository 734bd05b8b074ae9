#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void fuzz_broken(const char *file, int line, const char *condition) {
    fprintf(stderr, "%s:%d: broken promise: %s\n", file, line, condition);
    abort();
}

int fuzz_file(const uint8_t *data, size_t size, char path[FUZZ_PATH_BYTES]) {
    const int file = memfd_create("fuzz", MFD_CLOEXEC);
    PROMISE(file >= 0);
    for (size_t done = 0; done < size;) {
        const ssize_t wrote = write(file, data + done, size - done);
        PROMISE(wrote > 0);
        done += (size_t)wrote;
    }
    snprintf(path, FUZZ_PATH_BYTES, "/proc/self/fd/%d", file);
    return file;
}

void fuzz_check_error(enum tb_status status, const struct tb_error *error) {
    PROMISE(error->code == status);
    if (status != TB_OK) {
        PROMISE(strlen(error->message) > 4);
        PROMISE(error->line >= 0 && error->byte >= -1);
    }
}
