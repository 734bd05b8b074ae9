/* bench_topp: is a sampling kernel right, and how fast is it? The command line; modes stand in
 * tool_*.c, options in options_table.c. */
#include "bench/plugin_worker.h"
#include "bench/tools.h"
#include "bench/worker_process.h"

#include <signal.h>
#include <string.h>

static int print_help(const struct options *options) {
    options_print_help(stdout, "bench_topp", options->mode == MODE_HELP);
    return tool_finish_output(0);
}

typedef int tool_function(const struct options *options);

static tool_function *const tools[] = {
    [MODE_SWEEP] = tool_sweep,
    [MODE_AB] = tool_ab,
    [MODE_MERGE] = tool_merge,
    [MODE_LIST] = tool_list,
    [MODE_ORACLE] = tool_oracle,
    [MODE_APPLY] = tool_apply,
    [MODE_BENCH_ORACLE] = tool_bench_oracle,
    [MODE_VERIFY] = tool_verify,
    [MODE_PLOT] = tool_plot,
    [MODE_REPORT] = tool_report,
    [MODE_VARIANTS] = tool_variants,
    [MODE_HELP] = print_help,
    [MODE_USAGE] = print_help,
    [MODE_VERSION] = tool_version,
};

int main(int argc, char **argv) {
    struct options options;
    struct tb_error error = TB_ERROR_INIT;
    /* A closed pipe is an error of a write, not the end of the program, */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* and so is a limit of file sizes */
    if (argc == 2 && !strcmp(argv[1], worker_argument))
        return plugin_worker_main();
    if (options_parse(argc, argv, &options, &error) != TB_OK)
        return error.code == TB_OK ? tb_exit_code(TB_USAGE) : tool_fail(&error);
    return tools[options.mode](&options);
}
