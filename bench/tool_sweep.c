/* --sweep: options -> plan -> run -> receipt. */
#include "bench/oracle_cache.h"
#include "bench/receipt_make.h"
#include "bench/runner.h"
#include "bench/shard.h"
#include "bench/sources.h"
#include "bench/tools.h"
#include "bench/workers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t stop_asked;

/* Once: the runner ends after the current sample. A second signal ends the program. */
static void ask_stop(int signal_number) {
    (void)signal_number;
    stop_asked = 1;
}

volatile sig_atomic_t *tool_catch_stop(void) {
    struct sigaction action = {.sa_handler = ask_stop, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return &stop_asked;
}

static bool wants_color(void) {
    const char *no_color = getenv("NO_COLOR");
    return (!no_color || !*no_color) && isatty(STDOUT_FILENO);
}

/* The library opens its own file when everything is gated, and ends the program if it cannot. */
static enum tb_status check_benchmark_out(const char *path, const char *out,
                                          struct tb_error *error) {
    const size_t length = strlen(out);
    /* Right in the output folder, which is made, and found to be writable, before any work. */
    if (!strncmp(path, out, length) && path[length] == '/' && !strchr(path + length + 1, '/'))
        return TB_OK;
    return tool_check_writable(path, error);
}

static enum tb_status check_flags(const struct options *options, struct tb_error *error) {
    static const char out_flag[] = "--benchmark_out=";
    for (int32_t i = 0; i < options->passed_count; i++) {
        const char *flag = options->passed[i];
        enum tb_status status = TB_OK;
        if (!gbench_flag_allowed(flag))
            status =
                tb_fail(error, TB_USAGE,
                        "%s: of Google Benchmark's flags only those of output are passed on", flag);
        else if (!strncmp(flag, out_flag, sizeof out_flag - 1))
            status =
                check_benchmark_out(flag + sizeof out_flag - 1, tool_out_folder(options), error);
        if (status != TB_OK)
            return status;
    }
    return TB_OK;
}

/* JSON or CSV of Google Benchmark go to standard output: the table would spoil them. */
static bool takes_stdout(const struct options *options) {
    bool taken = false;
    for (int32_t i = 0; i < options->passed_count; i++)
        if (!strncmp(options->passed[i], "--benchmark_format=", 19))
            taken = strcmp(options->passed[i] + 19, "console") != 0;
    return taken;
}

static void say_where(const char *out) {
    fflush(stdout);
    fprintf(stderr,
            "results: %s/results.json, results.tsv, benchmark.json\n"
            "receipt: %s/receipt.json (bench_topp --verify checks it)\n",
            out, out);
}

enum tb_status tool_leave_receipt(const struct options *options, const struct tool_plan *resolved,
                                  const struct plan_pair *pair, struct tb_error *error) {
    const struct receipt_request request = {
        .options = options,
        .plan = &resolved->plan,
        .out_dir = tool_out_folder(options),
        .family = options->input ? resolved->input.family : NULL,
        .captured_dir = resolved->captured_dir,
        .pair = pair,
    };
    return receipt_make(&request, error);
}

static enum tb_status open_cache(const struct options *options, struct oracle_cache **cache,
                                 struct tb_error *error) {
    char sources[SHA256_HEX_BYTES];
    if (!options->oracle_cache)
        return TB_OK;
    sources_hash_oracle(sources);
    return oracle_cache_open(options->oracle_cache, sources, stderr, cache, error);
}

/* Whatever is refused before a device is opened. A plug-in may lack libraries here that the machine
 * of the sweep has: then nothing is known about its cells. */
static int dry_run(const struct options *options) {
    struct tb_error error = TB_ERROR_INIT;
    struct tool_plan resolved = {0};
    const enum kernel_device kind = tool_pick_device(options);
    const bool any_device = options->device == CHOOSE_AUTO;
    enum tb_status status = check_flags(options, &error);
    if (status == TB_OK)
        status = tool_resolve(options, kind, any_device, &resolved, &error);
    if (status == TB_OK)
        printf("%zu cells of %zu inputs\n", resolved.plan.count, shard_inputs(&resolved.plan));
    int exit_code = status == TB_OK ? 0 : tool_fail(&error);
    if (resolved.plugins.refused)
        exit_code = tb_exit_code(TB_UNAVAILABLE);
    tool_plan_free(&resolved);
    return tool_finish_output(exit_code);
}

int tool_sweep(const struct options *options) {
    if (options->dry_run)
        return dry_run(options);
    if (options->all_devices || options->device_count > 1)
        return tool_devices(options);
    return tool_sweep_on(options, tool_pick_device(options),
                         options->device_count ? options->devices[0] : 0);
}

int tool_sweep_on(const struct options *options, enum kernel_device kind, int32_t index) {
    struct tb_error error = TB_ERROR_INIT;
    struct tool_plan resolved = {0};
    struct device *device = NULL;
    struct run_result result = {0};
    struct oracle_cache *cache = NULL;
    char sources[65], folder[480];
    sources_hash(sources);
    FILE *const feed = workers_feed();
    const struct device_options settings = {
        .index = index, .timer = options->timer, .gate_only = options->gate_only};
    enum tb_status status = check_flags(options, &error);
    if (status == TB_OK)
        status = tool_resolve(options, kind, false, &resolved, &error);
    if (status == TB_OK)
        status = open_cache(options, &cache, &error);
    if (status == TB_OK)
        status = tool_open_device(kind, &settings, &device, &error);
    if (tool_executable_dir(folder, sizeof folder))
        external_find_inject(&resolved.externals, folder);
    if (status == TB_OK) {
        struct sweep_run run = {
            .plan = &resolved.plan,
            .device = device,
            .out_dir = tool_out_folder(options),
            .captured_dir = resolved.captured_dir,
            .sources_sha256 = sources,
            .build = &topp_build,
            .externals = &resolved.externals,
            .plugins = &resolved.plugins,
            .timer = options->timer,
            .resume = options->resume,
            .force = options->force,
            .subset = options->case_name || options->filter,
            .gate_only = options->gate_only,
            .color = wants_color(),
            .table = feed || takes_stdout(options) ? NULL : stdout,
            .progress = feed ? NULL : stderr,
            .feed = feed,
            .threads = options->threads,
            .slices = options->slices,
            .oracle_cache = cache,
            .stop = tool_catch_stop(),
            .gbench_flags = (const char *const *)options->passed,
            .gbench_flag_count = (size_t)options->passed_count,
        };
        tool_own_files(options, &resolved, &run);
        status = sweep_execute(&run, &result, &error);
    }
    if (status == TB_OK && result.whole)
        fprintf(stderr, "%s: was finished before; its files stay as they are\n",
                tool_out_folder(options));
    else if (status == TB_OK)
        status = tool_leave_receipt(options, &resolved, NULL, &error);
    int exit_code = status == TB_OK ? sweep_exit_code(&result) : tb_exit_code(status);
    if (resolved.plugins.refused) /* the rest ran; this is what there is to mend first */
        exit_code = tb_exit_code(TB_UNREADABLE);
    if (status != TB_OK)
        exit_code = tool_fail(&error);
    else if (feed)
        fprintf(feed, WORKERS_FINISHED "\n");
    else
        say_where(tool_out_folder(options));
    oracle_cache_close(cache);
    run_result_free(&result);
    tool_plan_free(&resolved);
    if (device)
        device->ops->close(device);
    return status == TB_OK ? tool_finish_output(exit_code) : exit_code;
}
