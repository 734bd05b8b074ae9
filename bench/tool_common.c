#include "bench/sources.h"
#include "bench/tools.h"
#include "bench/workers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int tool_fail(const struct tb_error *error) {
    char text[1280];
    fprintf(stderr, "bench_topp: %s\n", tb_error_text(error, text, sizeof text));
    return tb_exit_code(error->code);
}

int tool_finish_output(int exit_code) {
    errno = 0;
    const bool failed = fflush(stdout) != 0 || ferror(stdout);
    if (!failed)
        return exit_code;
    if (errno != EPIPE) {
        struct tb_error error = TB_ERROR_INIT;
        tb_fail(&error, TB_IO, "standard output could not be written: %s",
                errno ? strerror(errno) : "an earlier write failed");
        tool_fail(&error);
    }
    return tb_exit_code(TB_IO);
}

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool tool_executable_dir(char *dir, size_t bytes) {
    const ssize_t length = readlink("/proc/self/exe", dir, bytes - 1);
    if (length <= 0)
        return false;
    dir[length] = '\0';
    char *slash = strrchr(dir, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return true;
}

enum tb_status tool_profile_dir(const struct options *options, char *dir, size_t bytes,
                                struct tb_error *error) {
    const char *asked = options->profile_dir, *from = "--profile-dir";
    if (!asked) {
        asked = getenv("TOPP_BENCH_PROFILES");
        from = "TOPP_BENCH_PROFILES";
    }
    if (asked && *asked) {
        snprintf(dir, bytes, "%s", asked);
        if (is_folder(dir))
            return TB_OK;
        return tb_fail_at(error, TB_UNREADABLE, asked, 0, -1,
                          "%s names it as the folder of profiles, but it is none", from);
    }
    char self[480];
    if (tool_executable_dir(self, sizeof self)) {
        snprintf(dir, bytes, "%s/../share/topp-bench/profiles", self);
        if (is_folder(dir))
            return TB_OK;
    }
    snprintf(dir, bytes, "%s/profiles", topp_build.source_dir);
    if (is_folder(dir))
        return TB_OK;
    return tb_fail(error, TB_UNREADABLE,
                   "no folder of profiles beside the program (../share/topp-bench/profiles): "
                   "give --profile-dir or set TOPP_BENCH_PROFILES");
}

enum tb_status tool_plot_dir(char *dir, size_t bytes, struct tb_error *error) {
    char self[480];
    if (tool_executable_dir(self, sizeof self)) {
        snprintf(dir, bytes, "%s/../share/topp-bench/plots", self);
        if (is_folder(dir))
            return TB_OK;
    }
    snprintf(dir, bytes, "%s/plots", topp_build.source_dir);
    if (is_folder(dir))
        return TB_OK;
    return tb_fail(error, TB_UNREADABLE,
                   "no folder of gnuplot scripts beside the program (../share/topp-bench/plots)");
}

enum kernel_device tool_pick_device(const struct options *options) {
    char why[256] = "";
    const bool worker = workers_feed() != NULL; /* its watcher has said so */
    if (options->device != CHOOSE_AUTO) {
        const bool cpu = options->device == CHOOSE_CPU;
        if (!worker)
            fprintf(stderr, "device: %s (asked for)\n", cpu ? "cpu" : "cuda");
        return cpu ? KERNEL_DEVICE_CPU : KERNEL_DEVICE_CUDA;
    }
    if (device_cuda_usable(why, sizeof why)) {
        fprintf(stderr, "device: cuda (a usable CUDA device is here)\n");
        return KERNEL_DEVICE_CUDA;
    }
    fprintf(stderr, "device: cpu (no usable CUDA device: %s)\n", why);
    return KERNEL_DEVICE_CPU;
}

enum tb_status tool_open_device(enum kernel_device kind, const struct device_options *settings,
                                struct device **device, struct tb_error *error) {
    return kind == KERNEL_DEVICE_CUDA ? device_cuda_open(settings, device, error)
                                      : device_cpu_open(settings, device, error);
}

enum tb_status tool_check_writable(const char *path, struct tb_error *error) {
    char trial[4200];
    struct stat status;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return tb_fail_at(error, TB_IO, path, 0, -1, "is a folder: name a file to write");
    /* A rename would put a file in the place of a device such as /dev/null, or of a link. */
    if (lstat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return tb_fail_at(
            error, TB_IO, path, 0, -1,
            "is a link or a device, which a file would replace: name a file to write");
    if ((size_t)snprintf(trial, sizeof trial, "%s.XXXXXX", path) >= sizeof trial)
        return tb_fail_at(error, TB_IO, path, 0, -1, "the path is too long");
    const int file = mkstemp(trial);
    if (file < 0)
        return tb_fail_at(error, TB_IO, path, 0, -1, "cannot be written: %s", strerror(errno));
    close(file);
    unlink(trial);
    return TB_OK;
}

/* The file's name without folder and ".npy". */
static enum tb_status stem_of(const char *path, char *stem, size_t bytes, struct tb_error *error) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const size_t length = strlen(name);
    if (length <= 4 || strcmp(name + length - 4, ".npy") != 0)
        return tb_fail_at(error, TB_USAGE, path, 0, -1,
                          "--input: a file to sweep over is called NAME.npy, as its name stands "
                          "in the names of cells");
    snprintf(stem, bytes, "%.*s", (int)(length - 4), name);
    return TB_OK;
}

enum tb_status tool_plan_input(const struct options *options, const char *out_dir,
                               struct tool_input *input, struct tb_error *error) {
    char stem[96];
    struct logits logits = {0};
    enum tb_status status = stem_of(options->input, stem, sizeof stem, error);
    if (status != TB_OK)
        return status;
    snprintf(input->family, sizeof input->family, "captured=%s", stem);
    const char *slash = strrchr(options->input, '/');
    if (slash == options->input)
        snprintf(input->dir, sizeof input->dir, "/");
    else if (slash)
        snprintf(input->dir, sizeof input->dir, "%.*s", (int)(slash - options->input),
                 options->input);
    else
        snprintf(input->dir, sizeof input->dir, ".");
    if (!options->bfloat16)
        return TB_OK;

    char path[sizeof input->dir + sizeof stem + 8];
    snprintf(input->dir, sizeof input->dir, "%s", out_dir);
    snprintf(path, sizeof path, "%s/%s.npy", out_dir, stem);
    status = npy_read(options->input, true, &logits, error);
    if (status == TB_OK && mkdir(out_dir, 0777) != 0 && errno != EEXIST)
        status = tb_fail_at(error, TB_IO, out_dir, 0, -1, "cannot be made: %s", strerror(errno));
    if (status == TB_OK)
        status = npy_write(path, logits.data, logits.batch, logits.vocab, logits.stride, error);
    logits_free(&logits);
    return status;
}
