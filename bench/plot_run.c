/* gnuplot over the charts: several processes at once, nothing but files between us and them. */
#include "bench/plot.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>

enum { MOST_RUNNING = 8, PATH_BYTES = 1200 };

struct drawing {
    pid_t process; /* 0: free */
    struct chart *chart;
    char out[PATH_BYTES];
    int said; /* unlinked temporary file that holds its standard error */
};

/* What gnuplot said, in one line; what fontconfig says of its own configuration is left out. */
static void read_said(const struct drawing *drawing, char *text, size_t bytes) {
    char said[2048], *rest = said;
    const ssize_t length = pread(drawing->said, said, sizeof said - 1, 0);
    said[length > 0 ? length : 0] = '\0';
    size_t used = 0;
    text[0] = '\0';
    for (char *line; (line = strsep(&rest, "\n"));)
        if (*line && strncmp(line, "Fontconfig ", 11) != 0 && used < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? " " : "", line);
}

/* Waits for it; frees its place. */
static enum tb_status finish(struct drawing *drawing, struct tb_error *error) {
    int how = 0;
    pid_t process = 0;
    if (!drawing->process)
        return TB_OK;
    do
        process = waitpid(drawing->process, &how, 0);
    while (process < 0 && errno == EINTR);
    char said[400];
    read_said(drawing, said, sizeof said);
    const bool failed = process < 0 || !WIFEXITED(how) || WEXITSTATUS(how) != 0;
    enum tb_status status = TB_OK;
    if (failed || *said)
        status = tb_fail_at(error, TB_INTERNAL, drawing->out, 0, -1, "gnuplot %s: %s",
                            failed ? "failed" : "warned", said);
    if (failed)
        unlink(drawing->out);
    else
        drawing->chart->drawn = true;
    close(drawing->said);
    drawing->process = 0;
    return status;
}

static void select_text(const struct chart *chart, char *text, size_t bytes) {
    const struct {
        const char *key, *value;
    } words[] = {{"kind", chart->kind},     {"family", chart->family}, {"l2", chart->l2},
                 {"launch", chart->launch}, {"p", chart->p},           {"vocab", chart->vocab},
                 {"base", chart->base},     {"new", chart->fresh}};
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (*words[i].value && length < bytes)
            length += (size_t)snprintf(text + length, bytes - length, "%s=%s ", words[i].key,
                                       words[i].value);
}

static enum tb_status start(struct drawing *drawing, const char *script_dir, const char *dir,
                            const char *footer, struct tb_error *error) {
    char script[PATH_BYTES], data[PATH_BYTES], chosen[512];
    const struct chart *chart = drawing->chart;
    snprintf(script, sizeof script, "%s/%s.gp", script_dir, chart->script);
    snprintf(data, sizeof data, "%s/%s.tsv", dir, chart->name);
    select_text(chart, chosen, sizeof chosen);
    char *const arguments[] = {"gnuplot",    "-c",   script,         data,
                               drawing->out, chosen, (char *)footer, NULL};
    char said[] = "/tmp/topp-plot-XXXXXX";
    drawing->said = mkstemp(said);
    if (drawing->said < 0)
        return tb_fail_at(error, TB_IO, said, 0, -1, "cannot be made: %s", strerror(errno));
    unlink(said);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, drawing->said, STDERR_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    const int failed =
        posix_spawnp(&drawing->process, "gnuplot", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (!failed)
        return TB_OK;
    drawing->process = 0;
    close(drawing->said);
    return tb_fail(error, TB_UNAVAILABLE,
                   "gnuplot cannot be run (%s): install it (Debian: gnuplot-nox) for pictures; the "
                   "data files are in %s",
                   strerror(failed), dir);
}

static void keep_first(enum tb_status *status, enum tb_status last) {
    if (*status == TB_OK)
        *status = last;
}

enum tb_status chart_draw(struct chart_list *list, const char *script_dir, const char *dir,
                          const char *footer, struct tb_error *error) {
    struct drawing *running = calloc(MOST_RUNNING, sizeof *running);
    if (!running)
        return tb_fail(error, TB_NO_MEMORY, "no memory to draw");
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const int most = processors < 1              ? 1
                     : processors > MOST_RUNNING ? MOST_RUNNING
                                                 : (int)processors;
    enum tb_status status = TB_OK;
    int next = 0; /* places are taken in turn, so the one to wait for is the oldest */
    /* One chart that fails does not cost the others; the first error is reported. */
    for (size_t i = 0; status != TB_UNAVAILABLE && i < 2 * list->count; i++) {
        struct drawing *drawing = &running[next];
        next = (next + 1) % most;
        keep_first(&status, finish(drawing, error));
        drawing->chart = &list->charts[i / 2];
        snprintf(drawing->out, sizeof drawing->out, "%s/%s.%s", dir, drawing->chart->name,
                 i % 2 ? "png" : "svg");
        keep_first(&status, start(drawing, script_dir, dir, footer, error));
    }
    for (int i = 0; i < most; i++)
        keep_first(&status, finish(&running[i], error));
    free(running);
    return status;
}
