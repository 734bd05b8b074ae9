/* The modes of bench_topp, one function each, and what they share. All print results to standard
 * output, diagnostics to standard error, and return the program's exit code. */
#ifndef TOPP_BENCH_TOOLS_H
#define TOPP_BENCH_TOOLS_H

#include "bench/external.h"
#include "bench/plugin.h"
#include "bench/runner.h"

int tool_sweep(const struct options *options); /* --sweep */
/* The same in this process, on one device. */
int tool_sweep_on(const struct options *options, enum kernel_device kind, int32_t index);
int tool_devices(const struct options *options); /* --sweep --devices */
int tool_ab(const struct options *options);
int tool_list(const struct options *options);
int tool_oracle(const struct options *options);
int tool_apply(const struct options *options);
int tool_bench_oracle(const struct options *options);
/* What a merge into this folder has come to, in words. */
struct merge_result;
void tool_say_merged(const struct merge_result *result, const char *out);
int tool_merge(const struct options *options);
int tool_verify(const struct options *options);
int tool_plot(const struct options *options);
int tool_report(const struct options *options);
int tool_variants(const struct options *options);
int tool_version(const struct options *options);

/* Prints the error ("bench_topp: ...") and returns its exit code. */
int tool_fail(const struct tb_error *error);

/* Ends standard output: tool_fail() if it could not be written (silent when its reader has
 * closed the pipe, as `| head` does), else exit_code. */
int tool_finish_output(int exit_code);

/* Folder of profiles: --profile-dir, $TOPP_BENCH_PROFILES, ../share/topp-bench/profiles beside
 * the executable, the source tree's. TB_UNREADABLE when none of them is a folder. */
enum tb_status tool_profile_dir(const struct options *options, char *dir, size_t bytes,
                                struct tb_error *error);

/* Folder of gnuplot scripts: ../share/topp-bench/plots beside the executable, the source tree's. */
enum tb_status tool_plot_dir(char *dir, size_t bytes, struct tb_error *error);

/* Says on standard error which device runs and why; --device cuda is not checked here. */
enum kernel_device tool_pick_device(const struct options *options);
enum tb_status tool_open_device(enum kernel_device kind, const struct device_options *settings,
                                struct device **device, struct tb_error *error);

/* Can a file be made at this path? Checked before any work; leaves nothing behind. */
enum tb_status tool_check_writable(const char *path, struct tb_error *error);

/* --input of a plan: the captured folder and family text that stand for the user's file.
 * A <u2 file (bfloat16) is widened into out_dir first, as the families are <f4 and <f2. */
struct tool_input {
    char dir[512];    /* captured_dir to use */
    char family[128]; /* "captured=NAME" */
    char path[4096];  /* of the file that is read, absolute where it can be */
};
enum tb_status tool_plan_input(const struct options *options, const char *out_dir,
                               struct tool_input *input, struct tb_error *error);

/* A plan and what it was resolved from. Start zeroed, release with tool_plan_free(). */
struct tool_plan {
    struct plan plan;
    struct tool_input input;
    struct plugin_set plugins;
    struct external_list externals;
    char profile_dir[512], captured_dir[600];
    char profile_file[4096]; /* --profile FILE.json: absolute where it can be */
};
/* any_device: a profile for another device may be listed. */
enum tb_status tool_resolve(const struct options *options, enum kernel_device device,
                            bool any_device, struct tool_plan *resolved, struct tb_error *error);
/* The same, --shard left aside. */
enum tb_status tool_resolve_whole(const struct options *options, enum kernel_device device,
                                  bool any_device, struct tool_plan *resolved,
                                  struct tb_error *error);
/* One side of --ab: --out is that side's folder. */
enum tb_status tool_resolve_pair(const struct options *options, const struct plan_pair *pair,
                                 enum kernel_device device, struct tool_plan *resolved,
                                 struct tb_error *error);
void tool_plan_free(struct tool_plan *resolved);

/* What a run notes of the user's own files. */
void tool_own_files(const struct options *options, struct tool_plan *resolved,
                    struct sweep_run *run);

/* --out of a sweep, or its default. */
const char *tool_out_folder(const struct options *options);

/* Binds the files in --out, which must be in place. pair: NULL but for a side of --ab. */
enum tb_status tool_leave_receipt(const struct options *options, const struct tool_plan *resolved,
                                  const struct plan_pair *pair, struct tb_error *error);

/* SIGINT and SIGTERM raise this flag once; a second one ends the program. */
volatile sig_atomic_t *tool_catch_stop(void);

/* The folder of the running executable, without a slash at its end. */
bool tool_executable_dir(char *dir, size_t bytes);

#endif
