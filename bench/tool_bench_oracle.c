/* --bench-oracle: rows per second and memory of the oracle, against the plain Python judge of the
 * tests on the same rows in the same run. Shows figures, judges nothing but equal counts. */
#include "bench/sources.h"
#include "bench/tools.h"
#include "oracle/nucleus.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    BENCH_VOCAB = 128256,
    BENCH_ROWS = 64,
    JUDGE_ROWS = 6,
    BENCH_SEED = 42,
    TARGET_RATIO = 50, /* times the judge's rows per second */
    SPARE_MIB = 64,    /* memory beside three times the input */
};
static const float bench_p = 0.9f;
static const double least_seconds = 1.0;

/* What the measuring process sends back. */
struct oracle_figures {
    double rows_per_second;
    int64_t input_bytes, peak_bytes;
    int64_t kept[JUDGE_ROWS];
    int32_t rounds, exit_code;
};

static double now_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Most memory this process held, since the last reset where the kernel allows one. */
static int64_t peak_memory(void) {
    char line[256];
    long long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && kib < 0 && fgets(line, sizeof line, file))
        if (!strncmp(line, "VmHWM:", 6))
            kib = strtoll(line + 6, NULL, 10);
    if (file)
        fclose(file);
    return kib < 0 ? -1 : kib * 1024;
}

static void reset_peak_memory(void) {
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (file) {
        fputs("5", file);
        fclose(file);
    }
}

static enum tb_status measure(const struct options *options, const char *path,
                              struct oracle_figures *figures, struct tb_error *error) {
    struct logits logits = {0};
    struct family family;
    struct nucleus rows[BENCH_ROWS];
    float p[BENCH_ROWS];
    enum tb_status status = family_parse("peaked", &family, error);
    const struct input_request request = {
        .family = &family, .batch = BENCH_ROWS, .vocab = BENCH_VOCAB, .seed = BENCH_SEED};
    if (status == TB_OK)
        status = input_make(&request, &logits, error);
    if (status == TB_OK)
        status = npy_write(path, logits.data, JUDGE_ROWS, BENCH_VOCAB, logits.stride, error);
    for (int r = 0; r < BENCH_ROWS; r++)
        p[r] = bench_p;
    reset_peak_memory();
    /* The best round: others on the machine only ever slow one down. */
    double total = 0.0, best = INFINITY;
    while (status == TB_OK && total < least_seconds) {
        const double start = now_seconds();
        status = nucleus_rows(logits.data, logits.batch, logits.vocab, logits.stride, p, 1,
                              options->threads, rows, error);
        const double seconds = now_seconds() - start;
        total += seconds;
        best = seconds < best ? seconds : best;
        figures->rounds++;
    }
    figures->rows_per_second = BENCH_ROWS / best;
    figures->peak_bytes = peak_memory();
    figures->input_bytes = (int64_t)BENCH_ROWS * BENCH_VOCAB * (int64_t)sizeof(float);
    for (int r = 0; status == TB_OK && r < JUDGE_ROWS; r++)
        figures->kept[r] = rows[r].kept;
    logits_free(&logits);
    return status;
}

/* In a process of its own, whose memory is the oracle's and the input's alone. */
static enum tb_status measure_apart(const struct options *options, const char *path,
                                    struct oracle_figures *figures, struct tb_error *error) {
    int ends[2];
    if (pipe(ends) != 0)
        return tb_fail(error, TB_INTERNAL, "no pipe: %s", strerror(errno));
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0)
        return tb_fail(error, TB_INTERNAL, "no second process: %s", strerror(errno));
    if (child == 0) {
        struct tb_error own = TB_ERROR_INIT;
        struct oracle_figures result = {0};
        if (measure(options, path, &result, &own) != TB_OK)
            result.exit_code = tool_fail(&own);
        _exit(write(ends[1], &result, sizeof result) == (ssize_t)sizeof result ? 0 : 1);
    }
    close(ends[1]);
    const ssize_t got = read(ends[0], figures, sizeof *figures);
    close(ends[0]);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    if (got != (ssize_t)sizeof *figures || figures->exit_code)
        return tb_fail(error, TB_INTERNAL, "the measuring process ended without figures");
    return TB_OK;
}

/* Runs the judge: its JSON line, or NULL and why in *error. */
static json_t *ask_judge(const char *path, struct tb_error *error) {
    char judge[600], rows[16];
    snprintf(judge, sizeof judge, "%s/tests/oracle/python_judge.py", topp_build.source_dir);
    snprintf(rows, sizeof rows, "%d", JUDGE_ROWS);
    if (access(judge, R_OK) != 0) {
        tb_fail_at(error, TB_UNAVAILABLE, judge, 0, -1,
                   "the Python judge is not here: run --bench-oracle from a build of the source "
                   "tree");
        return NULL;
    }
    int ends[2];
    const pid_t child = pipe(ends) == 0 ? fork() : -1;
    if (child < 0) {
        tb_fail(error, TB_INTERNAL, "no second process: %s", strerror(errno));
        return NULL;
    }
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        execlp("python3", "python3", judge, "--bench", path, "0.9", rows, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *answer = fdopen(ends[0], "r");
    json_error_t fault;
    json_t *json = answer ? json_loadf(answer, 0, &fault) : NULL;
    if (answer)
        fclose(answer);
    int how = 0;
    while (waitpid(child, &how, 0) < 0 && errno == EINTR)
        ;
    if (!json)
        tb_fail(error, TB_UNAVAILABLE,
                WIFEXITED(how) && WEXITSTATUS(how) == 127
                    ? "python3 is not on PATH: the comparison needs it"
                    : "the Python judge printed no figures");
    return json;
}

/* A fast oracle that answers otherwise than the judge is no oracle. */
static bool same_counts(const struct oracle_figures *figures, const json_t *judge) {
    const json_t *kept = json_object_get(judge, "kept");
    if (json_array_size(kept) != JUDGE_ROWS)
        return false;
    for (size_t r = 0; r < JUDGE_ROWS; r++)
        if (json_integer_value(json_array_get(kept, r)) != figures->kept[r])
            return false;
    return true;
}

static int print_figures(const struct oracle_figures *figures, const json_t *judge) {
    const double theirs = json_number_value(json_object_get(judge, "rows_per_second"));
    const double mib = 1024.0 * 1024.0;
    const double most = 3.0 * (double)figures->input_bytes / mib + SPARE_MIB;
    printf("oracle  %10.1f rows/s  (vocab %d, p 0.9, %d rows, best of %d rounds)\n",
           figures->rows_per_second, BENCH_VOCAB, BENCH_ROWS, figures->rounds);
    printf("judge   %10.2f rows/s  (python3, sorted, math.exp, math.fsum, %d rows)\n", theirs,
           JUDGE_ROWS);
    printf("ratio   %10.1f times   (target: at least %d)\n", figures->rows_per_second / theirs,
           TARGET_RATIO);
    printf(
        "memory  %10.1f MiB     (input %.1f MiB; target: at most 3 times that + %d MiB = %.1f)\n",
        (double)figures->peak_bytes / mib, (double)figures->input_bytes / mib, SPARE_MIB, most);
    const bool same = same_counts(figures, judge);
    printf("counts  %10s         (kept of the judge's %d rows)\n", same ? "equal" : "DIFFER",
           JUDGE_ROWS);
    return tool_finish_output(same ? 0 : 1);
}

int tool_bench_oracle(const struct options *options) {
    struct tb_error error = TB_ERROR_INIT;
    struct oracle_figures figures = {0};
    const char *folder = getenv("TMPDIR");
    char path[512];
    snprintf(path, sizeof path, "%s/topp-bench-oracle-%ld.npy", folder && *folder ? folder : "/tmp",
             (long)getpid());
    enum tb_status status = measure_apart(options, path, &figures, &error);
    json_t *judge = status == TB_OK ? ask_judge(path, &error) : NULL;
    unlink(path);
    if (!judge)
        return tool_fail(&error);
    const int exit_code = print_figures(&figures, judge);
    json_decref(judge);
    return exit_code;
}
