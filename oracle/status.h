/* One status enum and one error struct for everything outside the kernels.
 *
 * The caller owns the struct; the first error put into it wins, so that a clean-up that fails too
 * does not hide the cause. Library code never prints, exits or aborts. */
#ifndef TOPP_ORACLE_STATUS_H
#define TOPP_ORACLE_STATUS_H

#include <stdint.h>

enum tb_status {
    TB_OK = 0,
    TB_USAGE,       /* the request makes no sense: exit code 2 */
    TB_UNREADABLE,  /* a file or its content cannot be used: exit code 2 */
    TB_IO,          /* a write failed: exit code 2, what was finished is kept */
    TB_UNAVAILABLE, /* cannot be done on this machine: exit code 3 */
    TB_INTERRUPTED, /* a signal: exit code 4 */
    TB_NO_MEMORY,   /* exit code 3 */
    TB_INTERNAL,    /* a bug or a device fault, named in the message: exit code 3 */
};

struct tb_error {
    enum tb_status code;
    char message[640]; /* what is wrong and how to mend it, without the place */
    char file[320];    /* file or command-line option it stands in, "" if none */
    int64_t line;      /* 1-based line in file, 0 if none */
    int64_t byte;      /* 0-based byte in file, -1 if none */
};

#define TB_ERROR_INIT                                                                              \
    { TB_OK, "", "", 0, -1 }

/* Puts an error into *error unless one is there already (or error is NULL); returns code. */
enum tb_status tb_fail(struct tb_error *error, enum tb_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As tb_fail, with the place: file may be NULL, line 0 and byte -1 mean "none". */
enum tb_status tb_fail_at(struct tb_error *error, enum tb_status code, const char *file,
                          int64_t line, int64_t byte, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* Writes "file:line: byte N: message" into text (always terminated); returns text. */
char *tb_error_text(const struct tb_error *error, char *text, uint64_t text_bytes);

/* The exit code of both programs that stands for a status (design of exit codes: docs/guide). */
int tb_exit_code(enum tb_status status);

#endif
