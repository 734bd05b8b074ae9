/* The state of the injected library, its clock and its file. Nothing here may disturb the program:
 * defects are written into the file, never printed. */
#include "bench/inject.h"

#include "oracle/status.h"
#ifdef TOPP_WITH_CUDA
#include "bench/cupti_library.h"
#include "bench/timing_cupti.h"

#include <dlfcn.h>
#endif

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

struct range {
    uint64_t begin_ns, end_ns; /* end 0: still open */
};

static struct {
    pthread_mutex_t lock;
    struct range *ranges;
    size_t count, room, written; /* written: ranges in the file that was written last */
    bool nested, short_of_memory, at_exit;
    char error[512]; /* CUDA is used, but cannot be traced: why */
#ifdef TOPP_WITH_CUDA
    struct cupti_collector *cupti;
#endif
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t now_ns(void) {
#ifdef TOPP_WITH_CUDA
    if (state.cupti)
        return cupti_now_ns(state.cupti);
#endif
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A name inside JSON's quotes. */
static void put_text(FILE *file, const char *text) {
    fputc('"', file);
    for (; *text; text++) {
        const unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\')
            fprintf(file, "\\%c", byte);
        else if (byte < ' ' || byte > '~')
            fprintf(file, "\\u%04x", byte);
        else
            fputc(byte, file);
    }
    fputc('"', file);
}

#ifdef TOPP_WITH_CUDA
static bool near_a_range(const struct cupti_record *record) {
    for (size_t i = 0; i < state.count; i++)
        if (record->end_ns + INJECT_EDGE_NS >= state.ranges[i].begin_ns &&
            record->start_ns <= state.ranges[i].end_ns + INJECT_EDGE_NS)
            return true;
    return false;
}

static void put_record(FILE *file, const struct cupti_record *record) {
    static const char *const kinds[] = {"kernel", "memcpy", "memset"};
    fprintf(file, "{\"line\":\"record\",\"kind\":\"%s\",\"name\":", kinds[record->kind]);
    put_text(file, record->name);
    fprintf(file,
            ",\"start_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64 ",\"correlation\":%u,\"graph\":%s"
            ",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"shared_bytes\":%u,\"registers\":%u}\n",
            record->start_ns, record->end_ns, record->correlation,
            record->graph_node ? "true" : "false", record->grid[0], record->grid[1],
            record->grid[2], record->block[0], record->block[1], record->block[2],
            record->shared_bytes, record->registers);
}

static void put_records(FILE *file) {
    const struct cupti_record *records;
    size_t count, dropped;
    struct tb_error error = TB_ERROR_INIT;
    char text[600] = "";
    if (cupti_take(state.cupti, &records, &count, &dropped, &error) != TB_OK)
        tb_error_text(&error, text, sizeof text);
    fprintf(file, "{\"line\":\"cupti\",\"version\":");
    put_text(file, cupti_version_text(state.cupti));
    fprintf(file, ",\"records\":%zu,\"dropped\":%zu,\"error\":", count, dropped);
    put_text(file, text);
    fputs("}\n", file);
    for (size_t i = 0; i < count; i++)
        if (near_a_range(&records[i]))
            put_record(file, &records[i]);
}
#endif

static void put_all(FILE *file, bool with_records) {
    const char *clock = "monotonic";
    (void)with_records;
#ifdef TOPP_WITH_CUDA
    if (state.cupti)
        clock = "cupti";
#endif
    fprintf(file,
            "{\"line\":\"head\",\"schema\":\"" INJECT_SCHEMA "\",\"clock\":\"%s\",\"nested\":%s,"
            "\"short_of_memory\":%s,\"error\":",
            clock, state.nested ? "true" : "false", state.short_of_memory ? "true" : "false");
    put_text(file, state.error);
    fputs("}\n", file);
    for (size_t i = 0; i < state.count; i++)
        fprintf(file, "{\"line\":\"range\",\"begin_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64 "}\n",
                state.ranges[i].begin_ns, state.ranges[i].end_ns);
#ifdef TOPP_WITH_CUDA
    if (state.cupti && with_records)
        put_records(file);
#endif
    fputs("{\"line\":\"end\"}\n", file);
}

/* Through a temporary name: a reader sees a whole file or none. */
static void write_file(bool with_records) {
    const char *path = getenv(INJECT_OUT);
    char temporary[4200];
    if (!path || !*path ||
        (size_t)snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid()) >=
            sizeof temporary)
        return;
    FILE *file = fopen(temporary, "we");
    if (!file)
        return;
    put_all(file, with_records);
    const bool good = !ferror(file);
    if (fclose(file) == 0 && good)
        rename(temporary, path);
    else
        unlink(temporary);
    state.written = state.count;
}

/* Ranges that the last write did not see: too few or too many, so nobody asks for the records,
 * which could not be had at exit anyway. */
static void at_exit(void) {
    pthread_mutex_lock(&state.lock);
    if (state.count != state.written || (state.error[0] && !state.count))
        write_file(false);
    pthread_mutex_unlock(&state.lock);
}

static void register_exit(void) {
    if (!state.at_exit)
        atexit(at_exit);
    state.at_exit = true;
}

static size_t expected_ranges(void) {
    const char *text = getenv(INJECT_REPEATS);
    return text ? (size_t)strtoull(text, NULL, 10) : 0;
}

void inject_begin(void) {
    pthread_mutex_lock(&state.lock);
    register_exit();
    if (state.count && !state.ranges[state.count - 1].end_ns) {
        state.nested = true;
    } else if (state.count == state.room) {
        const size_t room = state.room ? 2 * state.room : 1024;
        struct range *ranges = realloc(state.ranges, room * sizeof *ranges);
        if (ranges) {
            state.ranges = ranges;
            state.room = room;
        }
    }
    const bool was_all = state.written && state.written == expected_ranges();
    if (!state.nested && state.count < state.room)
        state.ranges[state.count++] = (struct range){.begin_ns = now_ns()};
    else
        state.short_of_memory = state.short_of_memory || !state.nested;
    /* One too many: said at once, as not every program comes to its exit handlers. */
    if (was_all)
        write_file(false);
    pthread_mutex_unlock(&state.lock);
}

void inject_end(void) {
    const uint64_t now = now_ns();
    pthread_mutex_lock(&state.lock);
    if (state.count && !state.ranges[state.count - 1].end_ns) {
        state.ranges[state.count - 1].end_ns = now;
        if (state.count == expected_ranges())
            write_file(true);
    }
    pthread_mutex_unlock(&state.lock);
}

#ifdef TOPP_WITH_CUDA
/* A program that has loaded CUPTI itself (PyTorch does) shall have one copy of it; any other gets
 * the one that bench_topp found. TOPP_BENCH_CUPTI, if set, stands. */
static void pick_cupti(void) {
    char name[32];
    const char *found = getenv(INJECT_CUPTI);
    snprintf(name, sizeof name, "libcupti.so.%d", CUPTI_API_VERSION / 10000);
    if (found && *found && !dlopen(name, RTLD_LAZY | RTLD_NOLOAD))
        setenv("TOPP_BENCH_CUPTI", found, 0);
}
#endif

/* CUDA's driver calls this when the program first uses it. */
EXPORT int InitializeInjection(void);
EXPORT int InitializeInjection(void) {
    pthread_mutex_lock(&state.lock);
    register_exit();
#ifdef TOPP_WITH_CUDA
    struct tb_error error = TB_ERROR_INIT;
    if (!state.cupti && !state.error[0])
        pick_cupti();
    if (!state.cupti && !state.error[0] &&
        (cupti_open(&state.cupti, &error) != TB_OK || cupti_start(state.cupti, &error) != TB_OK))
        tb_error_text(&error, state.error, sizeof state.error);
#else
    snprintf(state.error, sizeof state.error,
             "this libtopp_inject.so was built without CUDA: build with nvcc on PATH");
#endif
    pthread_mutex_unlock(&state.lock);
    return 1;
}
