#include "ci/command.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char command_exit_codes[] =
    "\vExit codes: 0 everything as expected; 1 correctness changed, a regression, missing cells, "
    "or what an option asks to fail on; 2 usage, or a file that cannot be read or written (named, "
    "with its place); 3 nothing comparable; 4 interrupted.";

int command_fail(const struct tb_error *error) {
    char text[1200];
    fprintf(stderr, "perfwatch: %s\n", tb_error_text(error, text, sizeof text));
    return tb_exit_code(error->code);
}

enum tb_status whole_parse(const char *option, const char *text, long least, long most, long *value,
                           struct tb_error *error) {
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (end == text || *end || errno || number < least || number > most)
        return tb_fail(error, TB_USAGE, "%s: '%s' is not a whole number from %ld to %ld", option,
                       text, least, most);
    *value = number;
    return TB_OK;
}

bool output_is_standard(const char *path) {
    static const char *const names[] = {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
    for (size_t i = 0; path && i < sizeof names / sizeof *names; i++)
        if (!strcmp(path, names[i]))
            return true;
    return false;
}

static bool same_file(const char *left, const char *right) {
    struct stat one, other;
    if (!strcmp(left, right) || (output_is_standard(left) && output_is_standard(right)))
        return true;
    return stat(left, &one) == 0 && stat(right, &other) == 0 && S_ISREG(one.st_mode) &&
           one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

enum tb_status outputs_apart(const char *const *outputs, size_t output_count,
                             const char *const *inputs, size_t input_count,
                             struct tb_error *error) {
    char inside[4200];
    for (size_t i = 0; i < output_count; i++) {
        if (!outputs[i])
            continue;
        for (size_t other = 0; other < i; other++)
            if (outputs[other] && same_file(outputs[i], outputs[other]))
                return tb_fail(error, TB_USAGE,
                               "two outputs go to %s, where nothing could read them: leave one "
                               "out, or give it a file of its own",
                               output_is_standard(outputs[i]) ? "standard output" : outputs[i]);
        for (size_t input = 0; input < input_count; input++) {
            snprintf(inside, sizeof inside, "%.4000s/results.json", inputs[input]);
            if (same_file(outputs[i], inputs[input]) || same_file(outputs[i], inside))
                return tb_fail(error, TB_USAGE,
                               "%s would be written over the results that are compared: give the "
                               "output another name",
                               outputs[i]);
        }
    }
    return TB_OK;
}

static enum tb_status cannot(const char *path, struct tb_error *error) {
    return tb_fail_at(error, TB_IO, path, 0, -1, "cannot be written: %s", strerror(errno));
}

enum tb_status output_open(const char *path, struct output *output, struct tb_error *error) {
    const char *summary = getenv("GITHUB_STEP_SUMMARY");
    struct stat stat_of;
    *output = (struct output){.path = path};
    if (!path)
        return TB_OK;
    if (output_is_standard(path)) {
        output->stream = stdout;
        return TB_OK;
    }
    output->append = (summary && !strcmp(summary, path)) ||
                     (stat(path, &stat_of) == 0 && !S_ISREG(stat_of.st_mode));
    if (output->append) {
        output->stream = fopen(path, "a");
        return output->stream ? TB_OK : cannot(path, error);
    }
    if (!realpath(path, output->target) &&
        snprintf(output->target, sizeof output->target, "%s", path) >= (int)sizeof output->target)
        return tb_fail_at(error, TB_USAGE, path, 0, -1, "path too long");
    snprintf(output->temporary, sizeof output->temporary, "%s.XXXXXX", output->target);
    int file = mkstemp(output->temporary);
    if (file >= 0 && fchmod(file, 0644) == 0)
        output->stream = fdopen(file, "w");
    if (!output->stream) {
        enum tb_status status = cannot(path, error);
        if (file >= 0) {
            close(file);
            unlink(output->temporary);
        }
        return status;
    }
    return TB_OK;
}

enum tb_status output_close(struct output *output, bool good, struct tb_error *error) {
    enum tb_status status = TB_OK;
    if (!output->stream)
        return TB_OK;
    if (ferror(output->stream) || fflush(output->stream) != 0)
        status = good ? cannot(output->path, error) : TB_IO;
    if (output->stream != stdout && fclose(output->stream) != 0 && status == TB_OK)
        status = cannot(output->path, error);
    output->stream = NULL;
    if (!output->temporary[0])
        return status;
    if (status == TB_OK && good && rename(output->temporary, output->target) != 0)
        status = cannot(output->path, error);
    if (status != TB_OK || !good)
        unlink(output->temporary);
    output->temporary[0] = '\0';
    return status;
}
