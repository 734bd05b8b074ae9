/* The commands of perfwatch. Each parses its own words and returns the exit code. */
#ifndef TOPP_CI_COMMAND_H
#define TOPP_CI_COMMAND_H

#include "oracle/share.h"
#include "oracle/status.h"

#include <stdbool.h>
#include <stdio.h>

int command_compare(int argc, char **argv);
int command_devices(int argc, char **argv);
int command_selftest(int argc, char **argv);
int command_record(int argc, char **argv);
int command_history(int argc, char **argv);
int command_export(int argc, char **argv);

/* $PERFWATCH_DB, else perfwatch.db. */
const char *command_database(void);

/* Exit codes, for the end of every --help. */
extern const char command_exit_codes[];

/* Prints the error to standard error; returns its exit code. */
int command_fail(const struct tb_error *error);

enum tb_status whole_parse(const char *option, const char *text, long least, long most, long *value,
                           struct tb_error *error);

/* An output file: checked before any work, written beside its place, renamed when whole. "-" is
 * standard output. $GITHUB_STEP_SUMMARY is appended to, as steps share it; so is anything that is
 * no regular file. A link stays one: its target is replaced (/dev/stderr is a link, perhaps to a
 * file). */
struct output {
    const char *path; /* NULL: not asked for */
    char target[4096], temporary[4200];
    FILE *stream;
    bool append;
};
enum tb_status output_open(const char *path, struct output *output, struct tb_error *error);
/* "-", /dev/stdout or another of its names. A document there takes the place of what is printed for
 * people. */
bool output_is_standard(const char *path);
/* Of several outputs (NULL: none) no two may go to one place, and none over one of the `inputs`:
 * files, or folders with results.json. */
enum tb_status outputs_apart(const char *const *outputs, size_t output_count,
                             const char *const *inputs, size_t input_count, struct tb_error *error);
/* good: false drops what was written. */
enum tb_status output_close(struct output *output, bool good, struct tb_error *error);

#endif
