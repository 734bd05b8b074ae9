#include "bench/external_process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TAIL_BYTES = 4096, POLL_NS = 2000000, LOG_MOST = 64 << 20, SWEEPS_MOST = 100 };

static size_t count_of(const char *const *words) {
    size_t count = 0;
    while (words && words[count])
        count++;
    return count;
}

static bool is_set_anew(const char *variable, const char *const *added) {
    const size_t name = strcspn(variable, "=");
    for (size_t i = 0; added && added[i]; i++)
        if (strcspn(added[i], "=") == name && !strncmp(added[i], variable, name))
            return true;
    return false;
}

/* Made before the fork: between fork and exec nothing may allocate. Owned: free() the array. */
static const char **make_environment(const char *const *added) {
    const size_t inherited = count_of((const char *const *)environ), more = count_of(added);
    const char **all = calloc(inherited + more + 1, sizeof *all);
    size_t used = 0;
    for (size_t i = 0; all && i < inherited; i++)
        if (!is_set_anew(environ[i], added))
            all[used++] = environ[i];
    for (size_t i = 0; all && i < more; i++)
        all[used++] = added[i];
    return all;
}

/* sh -c 'COMMAND "$@"' sh ARGUMENT...; *script is to be freed too. */
static const char **make_words(const struct process_request *request, char **script) {
    const size_t count = count_of(request->arguments);
    const char **words = calloc(count + 5, sizeof *words);
    if (!words || asprintf(script, "%s \"$@\"", request->command) < 0) {
        free(words);
        *script = NULL;
        return NULL;
    }
    words[0] = "sh";
    words[1] = "-c";
    words[2] = *script;
    words[3] = "sh";
    for (size_t i = 0; i < count; i++)
        words[4 + i] = request->arguments[i];
    return words;
}

static void become(const struct process_request *request, const char **words,
                   const char **environment) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a killed run cannot; its children stay */
    const int in = open("/dev/null", O_RDONLY);
    const int out = open(request->log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
    if (in < 0 || out < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(out, STDERR_FILENO) < 0)
        _exit(126);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    execve("/bin/sh", (char *const *)words, (char *const *)environment);
    _exit(126);
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A program that never stops talking must not fill the disk; it appends, so it goes on from there.
 */
static void keep_short(const char *log) {
    struct stat facts;
    if (stat(log, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > LOG_MOST)
        (void)!truncate(log, 0);
}

/* Does a process carry the mark in its environment? */
static bool is_marked(const char *number, const char *mark) {
    char path[300], *text = NULL;
    size_t room = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%s/environ", number);
    FILE *file = fopen(path, "re");
    while (file && !found && getdelim(&text, &room, '\0', file) > 0)
        found = !strcmp(text, mark);
    free(text);
    if (file)
        fclose(file);
    return found;
}

/* Ends what left the process group (a daemon does). False: none was there. */
static bool end_marked(const char *mark) {
    DIR *folder = opendir("/proc");
    bool any = false;
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (isdigit((unsigned char)entry->d_name[0]) && is_marked(entry->d_name, mark))
            any = kill((pid_t)strtol(entry->d_name, NULL, 10), SIGKILL) == 0 || any;
    if (folder)
        closedir(folder);
    return any;
}

static void wait_for(pid_t child, const struct process_request *request,
                     struct process_result *result) {
    const double start = seconds_now();
    int how = 0;
    for (;;) {
        const pid_t ended = waitpid(child, &how, WNOHANG);
        if (ended == child || (ended < 0 && errno != EINTR))
            break;
        result->stopped = request->stop && *request->stop;
        result->timed_out =
            request->limit_seconds > 0.0 && seconds_now() - start > request->limit_seconds;
        if (result->stopped || result->timed_out) {
            kill(-child, SIGKILL);
            while (waitpid(child, &how, 0) < 0 && errno == EINTR)
                ;
            break;
        }
        keep_short(request->log);
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    }
    kill(-child, SIGKILL); /* whatever it left behind */
    for (int i = 0; request->mark && i < SWEEPS_MOST && end_marked(request->mark); i++)
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    result->exit_code = WIFEXITED(how) ? WEXITSTATUS(how) : -1;
    result->signal = WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    /* A shell that waited for the program reports its signal as 128 + number. */
    if (result->exit_code > 128 && result->exit_code <= 128 + SIGRTMAX) {
        result->signal = result->exit_code - 128;
        result->exit_code = -1;
    }
}

enum tb_status process_run(const struct process_request *request, struct process_result *result,
                           struct tb_error *error) {
    char *script = NULL;
    const char **words = make_words(request, &script);
    const char **environment = make_environment(request->environment);
    enum tb_status status = TB_OK;
    *result = (struct process_result){0};
    if (!words || !environment)
        status = tb_fail(error, TB_NO_MEMORY, "no memory for a command line");
    const pid_t child = status == TB_OK ? fork() : -1;
    if (child == 0)
        become(request, words, environment);
    if (status == TB_OK && child < 0)
        status = tb_fail(error, TB_UNAVAILABLE, "no process could be started: %s", strerror(errno));
    if (child > 0) {
        setpgid(child, child); /* whoever comes first */
        wait_for(child, request, result);
    }
    free(words);
    free(script);
    free(environment);
    return status;
}

FILE *process_open_file(const char *path) {
    struct stat facts;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file >= 0 && fstat(file, &facts) == 0 && S_ISREG(facts.st_mode))
        return fdopen(file, "r");
    if (file >= 0)
        close(file);
    return NULL;
}

void process_last_line(const char *log, char *line, size_t bytes) {
    char tail[TAIL_BYTES + 1];
    FILE *file = process_open_file(log);
    line[0] = '\0';
    if (!file)
        return;
    if (fseek(file, -TAIL_BYTES, SEEK_END) != 0)
        rewind(file);
    size_t length = fread(tail, 1, TAIL_BYTES, file);
    fclose(file);
    while (length > 0 && isspace((unsigned char)tail[length - 1]))
        length--;
    size_t start = length;
    while (start > 0 && tail[start - 1] != '\n' && tail[start - 1] != '\r')
        start--;
    for (size_t i = start; i < length; i++)
        if (!isprint((unsigned char)tail[i]))
            tail[i] = '?';
    snprintf(line, bytes, "%.*s", (int)(length - start), tail + start);
}
