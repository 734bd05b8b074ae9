/* What the fuzz targets share. A target is one LLVMFuzzerTestOneInput: it feeds the bytes to one
 * reader and checks what that reader promises, beside not crashing. */
#ifndef TOPP_TESTS_FUZZ_H
#define TOPP_TESTS_FUZZ_H

#include "oracle/status.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process when a promise is broken: libFuzzer then keeps the input. */
#define PROMISE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fuzz_broken(__FILE__, __LINE__, #condition);                                           \
    } while (0)
void fuzz_broken(const char *file, int line, const char *condition) __attribute__((noreturn));

/* A file in memory that holds the bytes, opened under `path`; close the descriptor returned. */
enum { FUZZ_PATH_BYTES = 64 };
int fuzz_file(const uint8_t *data, size_t size, char path[FUZZ_PATH_BYTES]);

/* A refusal says why, in a whole sentence's worth of text, and carries the status returned. */
void fuzz_check_error(enum tb_status status, const struct tb_error *error);

#endif
