/* perfwatch: result files in, verdicts out. Needs no GPU. */
#include "ci/command.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"compare", command_compare, "BASE NEW: correct, slower, faster or the same, cell by cell"},
    {"devices", command_devices, "RESULTS...: one sweep on devices of one model: how far apart"},
    {"selftest", command_selftest, "RESULTS...: how often is compare wrong, what does it catch"},
    {"record", command_record, "RESULTS...: put runs into the history"},
    {"import", command_record, "the same: Google Benchmark's JSON, an exported history"},
    {"history", command_history, "[CELL]: one cell over all runs, change points"},
    {"export", command_export, "the whole history as JSON"},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void usage(FILE *stream) {
    fputs("usage: perfwatch COMMAND ...\n\n", stream);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(stream, "  %-9s %s\n", commands[i].name, commands[i].summary);
    fprintf(stream, "\nperfwatch COMMAND --help says more. %s\n", command_exit_codes + 1);
}

int main(int argc, char **argv) {
    char name[64];
    argp_err_exit_status = 2;
    if (argc < 2) {
        usage(stderr);
        return 2;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
        usage(stdout);
        return 0;
    }
    if (!strcmp(argv[1], "--version")) {
        puts("perfwatch " TOPP_VERSION);
        return 0;
    }
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(argv[1], commands[i].name)) {
            /* argp prints this as the program's name. */
            snprintf(name, sizeof name, "perfwatch %s", commands[i].name);
            argv[1] = name;
            return commands[i].run(argc - 1, argv + 1);
        }
    fprintf(stderr, "perfwatch: no command '%s'\n", argv[1]);
    usage(stderr);
    return 2;
}
