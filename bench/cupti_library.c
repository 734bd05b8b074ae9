#include "bench/cupti_library.h"

#include <dlfcn.h>
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADER_MAJOR = CUPTI_API_VERSION / 10000, PATTERN_BYTES = PATH_MAX + 96 };

/* Why the candidates so far would not do, for the error's text. */
struct search {
    char found[320];
    int candidates;
};

static void note(struct search *search, const char *path, const char *why) {
    size_t length = strlen(search->found);
    snprintf(search->found + length, sizeof search->found - length, "%s%s: %s", length ? "; " : "",
             path, why);
    search->candidates++;
}

static int bind_functions(struct cupti_library *library) {
    const struct {
        void *slot;
        const char *symbol;
    } table[] = {
        {&library->get_version, "cuptiGetVersion"},
        {&library->result_string, "cuptiGetResultString"},
        {&library->subscribe, "cuptiSubscribe"},
        {&library->unsubscribe, "cuptiUnsubscribe"},
        {&library->register_callbacks, "cuptiActivityRegisterCallbacks"},
        {&library->enable, "cuptiActivityEnable"},
        {&library->disable, "cuptiActivityDisable"},
        {&library->flush_all, "cuptiActivityFlushAll"},
        {&library->next_record, "cuptiActivityGetNextRecord"},
        {&library->dropped_records, "cuptiActivityGetNumDroppedRecords"},
        {&library->timestamp, "cuptiGetTimestamp"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        void *symbol = dlsym(library->handle, table[i].symbol);
        if (!symbol)
            return 0;
        memcpy(table[i].slot, &symbol, sizeof symbol);
    }
    return 1;
}

static int try_library(struct cupti_library *library, const char *path, struct search *search) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return 0;
    library->handle = handle;
    uint32_t version = 0;
    char why[96];
    if (!bind_functions(library)) {
        note(search, path, "not a complete CUPTI");
    } else if (library->get_version(&version) != CUPTI_SUCCESS || version / 10000 != HEADER_MAJOR) {
        snprintf(why, sizeof why, "version %u, this was built for major %d", version,
                 (int)HEADER_MAJOR);
        note(search, path, why);
    } else {
        Dl_info info = {0};
        void *symbol = dlsym(handle, "cuptiGetVersion");
        const char *file = dladdr(symbol, &info) && info.dli_fname ? info.dli_fname : path;
        snprintf(library->version_text, sizeof library->version_text, "%u (%s)", version, file);
        return 1;
    }
    dlclose(handle);
    memset(library, 0, sizeof *library);
    return 0;
}

static int try_pattern(struct cupti_library *library, const char *pattern, struct search *search) {
    glob_t found;
    int opened = 0;
    if (glob(pattern, 0, NULL, &found) != 0)
        return 0;
    for (size_t i = found.gl_pathc; i-- > 0 && !opened;)
        opened = try_library(library, found.gl_pathv[i], search);
    globfree(&found);
    return opened;
}

/* Folders in which toolkits, Python wheels and a relocatable install keep the library. */
static int try_folders(struct cupti_library *library, struct search *search) {
    static const char *const below_cuda[] = {"extras/CUPTI/lib64", "lib64", "lib",
                                             "targets/x86_64-linux/lib"};
    char pattern[PATTERN_BYTES], program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0) {
        program[length] = '\0';
        const char *folder = dirname(program);
        static const char *const beside[] = {"", "/../lib"};
        for (size_t i = 0; i < 2; i++) {
            snprintf(pattern, sizeof pattern, "%s%s/libcupti.so.%d*", folder, beside[i],
                     (int)HEADER_MAJOR);
            if (try_pattern(library, pattern, search))
                return 1;
        }
    }
    const char *homes[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda",
                           "/usr/local/cuda-*", "/opt/cuda"};
    for (size_t i = 0; i < sizeof homes / sizeof homes[0]; i++)
        for (size_t j = 0; homes[i] && j < sizeof below_cuda / sizeof below_cuda[0]; j++) {
            snprintf(pattern, sizeof pattern, "%s/%s/libcupti.so.%d*", homes[i], below_cuda[j],
                     (int)HEADER_MAJOR);
            if (try_pattern(library, pattern, search))
                return 1;
        }
    static const char *const wheels[] = {
        "/usr/lib/python3*/*-packages/nvidia/cu*/lib/libcupti.so.*",
        "/usr/local/lib/python3*/*-packages/nvidia/cu*/lib/libcupti.so.*",
        "/opt/*/.venv/lib/python3*/site-packages/nvidia/cu*/lib/libcupti.so.*",
    };
    for (size_t i = 0; i < sizeof wheels / sizeof wheels[0]; i++)
        if (try_pattern(library, wheels[i], search))
            return 1;
    return 0;
}

enum tb_status cupti_library_load(struct cupti_library *library, struct tb_error *error) {
    struct search search = {"", 0};
    char name[32];
    memset(library, 0, sizeof *library);
    const char *named = getenv("TOPP_BENCH_CUPTI");
    if (named && *named) {
        if (try_library(library, named, &search))
            return TB_OK;
        return tb_fail_at(error, TB_UNAVAILABLE, named, 0, -1,
                          "TOPP_BENCH_CUPTI names no usable CUPTI (%s)",
                          search.candidates ? search.found : "it cannot be opened");
    }
    snprintf(name, sizeof name, "libcupti.so.%d", (int)HEADER_MAJOR);
    if (try_library(library, name, &search) || try_library(library, "libcupti.so", &search) ||
        try_folders(library, &search))
        return TB_OK;
    return tb_fail(error, TB_UNAVAILABLE,
                   "CUPTI %d is not installed here%s%s%s: install the CUDA toolkit's CUPTI, name "
                   "its file in TOPP_BENCH_CUPTI, or say --timer events",
                   (int)HEADER_MAJOR, search.candidates ? " (found " : "", search.found,
                   search.candidates ? ")" : "");
}
