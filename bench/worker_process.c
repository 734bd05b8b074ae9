#include "bench/worker_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 100, GRACE_MS = 2000, CHUNK_BYTES = 1 << 16 };

const char worker_argument[] = "--plugin-worker";

/* Bytes that came in and are not taken yet. */
struct incoming {
    char *bytes;
    size_t count, capacity;
};

struct worker_process {
    pid_t process; /* and its group; 0: ended and waited for */
    int connection, how;
    char ended_for[80]; /* why this program ended it; "": it ended by itself */
    struct incoming incoming;
};

/* Appends what is there; 0 at the end of the connection, -1 after a failure. */
static ssize_t take_bytes(int connection, struct incoming *incoming) {
    if (incoming->capacity - incoming->count < CHUNK_BYTES) {
        const size_t capacity = 2 * incoming->capacity + 2 * (size_t)CHUNK_BYTES;
        char *grown = realloc(incoming->bytes, capacity);
        if (!grown)
            return -1;
        incoming->bytes = grown;
        incoming->capacity = capacity;
    }
    ssize_t got;
    do
        got = read(connection, incoming->bytes + incoming->count, CHUNK_BYTES);
    while (got < 0 && errno == EINTR);
    if (got > 0)
        incoming->count += (size_t)got;
    return got;
}

/* The first whole line as JSON, taken out; NULL when there is none. *bad: it is no JSON object. */
static json_t *take_line(struct incoming *incoming, bool *bad) {
    *bad = false;
    char *end = incoming->count ? memchr(incoming->bytes, '\n', incoming->count) : NULL;
    if (!end)
        return NULL;
    const size_t length = (size_t)(end - incoming->bytes);
    json_t *line = json_loadb(incoming->bytes, length, JSON_REJECT_DUPLICATES, NULL);
    memmove(incoming->bytes, end + 1, incoming->count - length - 1);
    incoming->count -= length + 1;
    *bad = !json_is_object(line);
    return line;
}

static bool send_line(int connection, json_t *line) {
    char *text = line ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(line);
    if (!text)
        return false;
    size_t length = strlen(text), sent = 0;
    text[length++] = '\n';
    while (sent < length) {
        const ssize_t put = send(connection, text + sent, length - sent, MSG_NOSIGNAL);
        if (put < 0 && errno != EINTR)
            break;
        sent += put > 0 ? (size_t)put : 0;
    }
    free(text);
    return sent == length;
}

static int spawn(struct worker_process *worker, int theirs) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    char *const words[] = {(char *)"bench_topp", (char *)worker_argument, NULL};
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGXFSZ);
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed)
        return failed;
    failed = posix_spawnattr_init(&attributes);
    if (failed) {
        posix_spawn_file_actions_destroy(&actions);
        return failed;
    }
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    /* A group of its own: what it forks ends with it, and a terminal's keys reach this program. */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    failed = posix_spawn_file_actions_adddup2(&actions, theirs, WORKER_FD);
    if (!failed)
        failed = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!failed)
        failed = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    if (!failed)
        failed =
            posix_spawn(&worker->process, "/proc/self/exe", &actions, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

enum tb_status worker_start(struct worker_process **worker, struct tb_error *error) {
    int ends[2];
    *worker = calloc(1, sizeof **worker);
    if (!*worker)
        return tb_fail(error, TB_NO_MEMORY, "no memory for a worker");
    (*worker)->connection = -1;
    int failed = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0 ? 0 : errno;
    if (!failed) {
        /* A descriptor that is dup2'ed onto itself would keep its close-on-exec flag. */
        if (ends[1] == WORKER_FD) {
            const int kept = ends[0];
            ends[0] = ends[1];
            ends[1] = kept;
        }
        (*worker)->connection = ends[0];
        failed = spawn(*worker, ends[1]);
        close(ends[1]);
    }
    if (!failed)
        return TB_OK;
    (*worker)->process = 0;
    worker_close(*worker);
    *worker = NULL;
    return tb_fail(error, TB_UNAVAILABLE, "a process for plug-ins cannot be started: %s",
                   strerror(failed));
}

static bool is_stopped(const volatile sig_atomic_t *stop) {
    return stop && *stop;
}

/* What became of it, without waiting and without forgetting it: 0 while it runs, else CLD_... */
static int look_at(const struct worker_process *worker, int *status) {
    siginfo_t facts = {0};
    const int events = WEXITED | WSTOPPED | WNOHANG | WNOWAIT;
    if (waitid(P_PID, (id_t)worker->process, &facts, events) != 0 || facts.si_pid == 0)
        return 0;
    *status = facts.si_status;
    return facts.si_code;
}

/* Ends it, if it still runs, and whatever it forked. The group's number is its own until it is
 * waited for. */
static void finish(struct worker_process *worker) {
    if (worker->process <= 0)
        return;
    kill(-worker->process, SIGKILL);
    while (waitpid(worker->process, &worker->how, 0) < 0 && errno == EINTR)
        ;
    worker->process = 0;
}

/* It closed its connection: it has ended, or is about to, or it runs something else. */
static void reap(struct worker_process *worker) {
    const struct timespec pause = {0, 1000000};
    int status = 0, waited = 0;
    if (worker->process <= 0)
        return;
    while (look_at(worker, &status) == 0 && waited++ < GRACE_MS)
        nanosleep(&pause, NULL);
    if (waited > GRACE_MS)
        snprintf(worker->ended_for, sizeof worker->ended_for,
                 "closed its connection to this program and ran on");
    finish(worker);
}

/* Nothing came for a while: can anything come at all? What it forked may hold the connection open
 * when it has ended, and a stopped process never answers. */
static bool is_gone(struct worker_process *worker) {
    int status = 0;
    const int code = worker->process > 0 ? look_at(worker, &status) : CLD_EXITED;
    if (code == CLD_STOPPED)
        snprintf(worker->ended_for, sizeof worker->ended_for, "was stopped by signal %d", status);
    if (code != 0)
        finish(worker);
    return code != 0;
}

json_t *worker_ask(struct worker_process *worker, json_t *request,
                   const volatile sig_atomic_t *stop) {
    bool bad = false, open = send_line(worker->connection, request);
    json_t *line = NULL;
    while (open && !line && !bad && !is_stopped(stop)) {
        struct pollfd ready = {.fd = worker->connection, .events = POLLIN};
        const int count = poll(&ready, 1, POLL_MS);
        if (count > 0)
            open = take_bytes(worker->connection, &worker->incoming) > 0;
        else if (count == 0)
            open = !is_gone(worker);
        line = take_line(&worker->incoming, &bad);
    }
    if (line && !bad)
        return line;
    json_decref(line);
    if (bad)
        snprintf(worker->ended_for, sizeof worker->ended_for,
                 "wrote something else than answers into its connection");
    if (bad || is_stopped(stop))
        finish(worker);
    reap(worker);
    return NULL;
}

bool worker_was_late(const struct worker_process *worker) {
    return !worker->ended_for[0] && WIFEXITED(worker->how) &&
           WEXITSTATUS(worker->how) == WORKER_EXIT_LATE;
}

void worker_how(const struct worker_process *worker, char *text, size_t bytes) {
    if (worker->ended_for[0])
        snprintf(text, bytes, "%s: it was ended", worker->ended_for);
    else if (WIFSIGNALED(worker->how))
        snprintf(text, bytes, "was ended by signal %d (%s)", WTERMSIG(worker->how),
                 strsignal(WTERMSIG(worker->how)));
    else if (worker_was_late(worker))
        snprintf(text, bytes, "did not come back in time");
    else if (WEXITSTATUS(worker->how) == 0)
        snprintf(text, bytes, "closed its connection to this program, or ended with exit code 0");
    else
        snprintf(text, bytes, "ended with exit code %d", WEXITSTATUS(worker->how));
}

void worker_close(struct worker_process *worker) {
    if (!worker)
        return;
    finish(worker);
    if (worker->connection >= 0)
        close(worker->connection);
    free(worker->incoming.bytes);
    free(worker);
}

/* The process that serves: one that a foreign library forked off shall never answer beside it. */
static pid_t serving;

bool worker_serve(void) {
    serving = getpid();
    /* The connection ends with this program, also where a library runs another in its place. */
    return fcntl(WORKER_FD, F_SETFD, FD_CLOEXEC) == 0;
}

json_t *worker_next(void) {
    static struct incoming incoming;
    bool bad = false;
    json_t *line;
    if (getpid() != serving)
        _exit(0);
    while (!(line = take_line(&incoming, &bad)) && !bad)
        if (take_bytes(WORKER_FD, &incoming) <= 0)
            return NULL;
    if (!bad)
        return line;
    json_decref(line);
    return NULL;
}

bool worker_answer(json_t *line) {
    if (getpid() != serving)
        _exit(0);
    return send_line(WORKER_FD, line);
}
