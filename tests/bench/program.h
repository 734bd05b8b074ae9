/* Runs bench_topp as a user does, for the tests of its modes. */
#ifndef TOPP_TESTS_PROGRAM_H
#define TOPP_TESTS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* What a run left: exit code (128 + number of a signal), and both streams, terminated. */
struct program_run {
    int exit_code;
    char *output, *errors; /* owned: program_free() */
};

/* words: NULL-terminated, without the program's name. output: file to write standard output to,
 * or NULL to capture it. */
struct program_run program_run_to(const char *const *words, const char *output);
struct program_run program_run(const char *const *words);
void program_free(struct program_run *run);

/* A fresh empty folder, removed with all it holds by scratch_remove(). */
void scratch_make(char *path, size_t bytes);
void scratch_remove(const char *path);

bool file_exists(const char *path);
/* The whole file, terminated; owned. Fails the test when it cannot be read. */
char *file_text(const char *path, size_t *length);
void file_write(const char *path, const char *bytes, size_t length);

#endif
