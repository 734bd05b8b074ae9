/* Runs bench_topp as a user does, for the tests of its modes. */
#ifndef TOPP_TESTS_PROGRAM_H
#define TOPP_TESTS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* The words of a command line, for the functions below. */
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* What a run left: exit code (128 + number of a signal), and both streams, terminated. */
struct program_run {
    int exit_code;
    char *output, *errors; /* owned: program_free() */
};

/* words: NULL-terminated, without the program's name. output: file to write standard output to,
 * or NULL to capture it. */
struct program_run program_run_to(const char *const *words, const char *output);
struct program_run program_run(const char *const *words);
/* With a PATH on which nothing is found. */
struct program_run program_run_alone(const char *const *words);
void program_free(struct program_run *run);

/* Fails the test with `name` unless the run ended so and its standard error says so (NULL: not
 * asked); frees it. */
void program_ended(const char *name, struct program_run run, int exit_code, const char *says);
void program_expect(const char *name, const char *const *words, int exit_code, const char *says);

/* A fresh empty folder, and its removal with all it holds: fixtures of a group or of a test. */
extern char scratch[64];
int scratch_make(void **state);
int scratch_drop(void **state);
/* A path in it, until the next call, and the file there, owned. */
const char *scratch_path(const char *name);
char *scratch_text(const char *name);

void assert_has(const char *text, const char *part);
void assert_has_not(const char *text, const char *part);

/* Where there is no gnuplot, false and a word that says so. */
bool gnuplot_here(void);

bool file_exists(const char *path);
/* The whole file, terminated; owned. Fails the test when it cannot be read. */
char *file_text(const char *path, size_t *length);
void file_write(const char *path, const char *bytes, size_t length);

#endif
