#include "program.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_WORDS = 40 };

char *file_text(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s: %s", path, strerror(errno));
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    char *text = malloc((size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)size, file), size);
    text[size] = '\0';
    fclose(file);
    if (length)
        *length = (size_t)size;
    return text;
}

void file_write(const char *path, const char *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    if (!file)
        fail_msg("%s: %s", path, strerror(errno));
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

bool file_exists(const char *path) {
    return access(path, F_OK) == 0;
}

/* A stream into an unlinked temporary file: no pipe that could fill up. */
static int temporary(void) {
    char path[] = "/tmp/topp-program-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    unlink(path);
    return file;
}

static char *slurp(int file) {
    const off_t size = lseek(file, 0, SEEK_END);
    char *text = calloc(1, (size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(pread(file, text, (size_t)size, 0), size);
    close(file);
    return text;
}

struct program_run program_run_to(const char *const *words, const char *output) {
    char *arguments[MOST_WORDS] = {(char *)TOPP_PROGRAM};
    for (int i = 0; words[i]; i++) {
        assert_true(i + 2 < MOST_WORDS);
        arguments[i + 1] = (char *)words[i];
    }
    const int out = output ? open(output, O_WRONLY) : temporary(), errors = temporary();
    assert_true(out >= 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(out, STDOUT_FILENO);
        dup2(errors, STDERR_FILENO);
        execv(TOPP_PROGRAM, arguments);
        _exit(126);
    }
    int how = 0;
    while (waitpid(child, &how, 0) < 0 && errno == EINTR)
        ;
    struct program_run run = {.exit_code = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how)};
    run.errors = slurp(errors);
    if (output)
        close(out);
    run.output = output ? calloc(1, 1) : slurp(out);
    return run;
}

struct program_run program_run(const char *const *words) {
    return program_run_to(words, NULL);
}

struct program_run program_run_alone(const char *const *words) {
    const char *const now = getenv("PATH");
    char *const path = strdup(now ? now : "/usr/bin:/bin");
    assert_non_null(path);
    setenv("PATH", scratch, 1);
    const struct program_run run = program_run(words);
    setenv("PATH", path, 1);
    free(path);
    return run;
}

void program_free(struct program_run *run) {
    free(run->output);
    free(run->errors);
}

void program_ended(const char *name, struct program_run run, int exit_code, const char *says) {
    if (run.exit_code != exit_code)
        fail_msg("%s: exit code %d, not %d: %s", name, run.exit_code, exit_code, run.errors);
    if (says && !strstr(run.errors, says))
        fail_msg("%s: does not say '%s' but: %s", name, says, run.errors);
    program_free(&run);
}

void program_expect(const char *name, const char *const *words, int exit_code, const char *says) {
    program_ended(name, program_run(words), exit_code, says);
}

void assert_has(const char *text, const char *part) {
    if (!strstr(text, part))
        fail_msg("'%s' is missing in: %.2000s", part, text);
}

void assert_has_not(const char *text, const char *part) {
    if (strstr(text, part))
        fail_msg("'%s' must not be there", part);
}

bool gnuplot_here(void) {
    const bool here = system("gnuplot --version >/dev/null 2>&1") == 0;
    if (!here)
        printf("skipped: no gnuplot here (ci/setup installs it)\n");
    return here;
}

static const char scratch_form[] = "/tmp/topp-scratch-XXXXXX";
char scratch[64];

int scratch_make(void **state) {
    (void)state;
    snprintf(scratch, sizeof scratch, "%s", scratch_form);
    return mkdtemp(scratch) ? 0 : -1;
}

const char *scratch_path(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    return path;
}

char *scratch_text(const char *name) {
    return file_text(scratch_path(name), NULL);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk) {
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

int scratch_drop(void **state) {
    (void)state;
    assert_memory_equal(scratch, scratch_form, sizeof scratch_form - 7); /* but for the X */
    return nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
