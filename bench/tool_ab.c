/* --ab A B: two kernels in alternating blocks, then perfwatch's verdict on the pair of results. */
#include "bench/receipt_make.h"
#include "bench/run_ab.h"
#include "bench/sources.h"
#include "bench/tools.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_BYTES = 4200, FEWEST_BLOCKS = 10, MOST_WORDS = 16 };

/* One of the two. */
struct ab_side {
    struct options options; /* the user's, with this side's folder */
    struct tool_plan resolved;
    char out[PATH_BYTES - 64];
    struct plan_pair pair;
};

/* As many blocks as were asked for; else the profile's, but enough for the rank test, and even, so
 * that each kernel is first as often as second. */
static int32_t blocks_of(const struct options *options, const struct plan *plan) {
    if (options->blocks)
        return options->blocks;
    const int32_t blocks =
        plan->timing.blocks < FEWEST_BLOCKS ? FEWEST_BLOCKS : plan->timing.blocks;
    return blocks + blocks % 2;
}

static enum tb_status resolve_side(const struct options *options, int which,
                                   enum kernel_device device, struct ab_side *side,
                                   struct tb_error *error) {
    const char *out = options->out ? options->out : "ab-out";
    const char *kernels[2] = {options->subject, options->against};
    side->options = *options;
    side->pair = (struct plan_pair){.kernel = kernels[which], .beside = kernels[1 - which]};
    if ((size_t)snprintf(side->out, sizeof side->out, "%s/%c", out, "ab"[which]) >=
        sizeof side->out)
        return tb_fail_at(error, TB_USAGE, out, 0, -1, "the path is too long");
    side->options.out = side->out;
    const enum tb_status status =
        tool_resolve_pair(&side->options, &side->pair, device, &side->resolved, error);
    side->resolved.plan.timing.blocks = blocks_of(options, &side->resolved.plan);
    return status;
}

static void describe_run(struct ab_side *side, const struct options *options, struct device *device,
                         const char *sources, struct sweep_run *run) {
    *run = (struct sweep_run){
        .plan = &side->resolved.plan,
        .device = device,
        .out_dir = side->out,
        .captured_dir = side->resolved.captured_dir,
        .sources_sha256 = sources,
        .build = &topp_build,
        .plugins = &side->resolved.plugins,
        .timer = options->timer,
        .resume = options->resume,
        .force = options->force,
        .subset = true,
        .progress = stderr,
        .threads = options->threads,
        .slices = options->slices,
        .stop = tool_catch_stop(),
    };
    tool_own_files(options, &side->resolved, run);
}

static enum tb_status execute(const struct options *options, struct ab_side sides[2],
                              struct device *device, struct tb_error *error) {
    struct sweep_run runs[2];
    struct run_result results[2];
    char sources[65];
    sources_hash(sources);
    for (int i = 0; i < 2; i++)
        describe_run(&sides[i], options, device, sources, &runs[i]);
    enum tb_status status = ab_execute(runs, results, error);
    for (int i = 0; i < 2 && status == TB_OK; i++)
        status = tool_leave_receipt(&sides[i].options, &sides[i].resolved, &sides[i].pair, error);
    for (int i = 0; i < 2; i++)
        run_result_free(&results[i]);
    return status;
}

/* Beside this program, or where the build tree has it. */
static enum tb_status find_perfwatch(char *path, size_t bytes, struct tb_error *error) {
    static const char *const places[] = {"perfwatch", "../ci/perfwatch"};
    char self[PATH_BYTES - 64];
    if (tool_executable_dir(self, sizeof self))
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            snprintf(path, bytes, "%s/%s", self, places[i]);
            if (access(path, X_OK) == 0)
                return TB_OK;
        }
    return tb_fail(error, TB_UNAVAILABLE,
                   "--ab: perfwatch, which decides, is not beside this program: build it, or "
                   "install both with cmake --install");
}

/* Its exit code is ours. */
static int decide(const struct options *options, const struct ab_side sides[2],
                  const char *perfwatch, struct tb_error *error) {
    char kernels[200];
    const char *words[MOST_WORDS] = {perfwatch, "compare", "--all", "--kernels", kernels};
    size_t count = 5;
    snprintf(kernels, sizeof kernels, "%s,%s", options->subject, options->against);
    if (options->margin) {
        words[count++] = "--margin";
        words[count++] = options->margin;
    }
    if (options->strict)
        words[count++] = "--strict";
    if (sides[0].resolved.plan.unfrozen)
        words[count++] = "--allow-unfrozen";
    words[count++] = sides[0].out;
    words[count++] = sides[1].out;
    fputs("decided by: perfwatch", stderr);
    for (size_t i = 1; i < count; i++)
        fprintf(stderr, " %s", words[i]);
    fputc('\n', stderr);
    fflush(stdout);
    pid_t process = 0;
    int how = 0;
    const int failed =
        posix_spawn(&process, perfwatch, NULL, NULL, (char *const *)(const void *)words, environ);
    while (!failed && waitpid(process, &how, 0) < 0 && errno == EINTR)
        ;
    if (!failed && WIFEXITED(how))
        return WEXITSTATUS(how);
    tb_fail(error, TB_UNAVAILABLE, "%s: %s", perfwatch,
            failed ? strerror(failed) : "ended by a signal");
    return tool_fail(error);
}

int tool_ab(const struct options *options) {
    struct tb_error error = TB_ERROR_INIT;
    struct ab_side *sides = calloc(2, sizeof *sides);
    struct device *device = NULL;
    char perfwatch[PATH_BYTES];
    const enum kernel_device kind = tool_pick_device(options);
    const struct device_options settings = {.timer = options->timer};
    enum tb_status status = sides ? find_perfwatch(perfwatch, sizeof perfwatch, &error)
                                  : tb_fail(&error, TB_NO_MEMORY, "no memory for two runs");
    for (int i = 0; i < 2 && status == TB_OK; i++)
        status = resolve_side(options, i, kind, &sides[i], &error);
    if (status == TB_OK)
        status = tool_open_device(kind, &settings, &device, &error);
    if (status == TB_OK)
        status = execute(options, sides, device, &error);
    const int exit_code =
        status == TB_OK ? decide(options, sides, perfwatch, &error) : tool_fail(&error);
    for (int i = 0; sides && i < 2; i++)
        tool_plan_free(&sides[i].resolved);
    free(sides);
    if (device)
        device->ops->close(device);
    return exit_code;
}
