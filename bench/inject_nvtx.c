/* NVTX's functions for ranges, as a tool implements them: only those named `sample` count. */
#include "bench/inject.h"
#include "bench/nvtx_tool.h"

#ifdef TOPP_WITH_CUDA
#include <nvtx3/nvToolsExt.h>
#endif

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define EXPORT __attribute__((visibility("default")))

#ifdef TOPP_WITH_CUDA
_Static_assert(sizeof(struct nvtx_tool_event) == sizeof(nvtxEventAttributes_t) &&
                   offsetof(struct nvtx_tool_event, message_type) ==
                       offsetof(nvtxEventAttributes_t, messageType) &&
                   offsetof(struct nvtx_tool_event, message) ==
                       offsetof(nvtxEventAttributes_t, message),
               "NVTX's event attributes");
_Static_assert((int)NVTX_TOOL_ASCII == (int)NVTX_MESSAGE_TYPE_ASCII &&
                   (int)NVTX_TOOL_UNICODE == (int)NVTX_MESSAGE_TYPE_UNICODE &&
                   (int)NVTX_TOOL_REGISTERED == (int)NVTX_MESSAGE_TYPE_REGISTERED,
               "NVTX's message types");
#ifndef NVTX_NO_IMPL
_Static_assert((int)NVTX_TOOL_CALLBACKS == (int)NVTX_ETID_CALLBACKS &&
                   (int)NVTX_TOOL_CORE == (int)NVTX_CB_MODULE_CORE &&
                   (int)NVTX_TOOL_CORE2 == (int)NVTX_CB_MODULE_CORE2 &&
                   (int)NVTX_TOOL_RANGE_START_EX == (int)NVTX_CBID_CORE_RangeStartEx &&
                   (int)NVTX_TOOL_RANGE_POP == (int)NVTX_CBID_CORE_RangePop &&
                   (int)NVTX_TOOL_DOMAIN_RANGE_START_EX ==
                       (int)NVTX_CBID_CORE2_DomainRangeStartEx &&
                   (int)NVTX_TOOL_DOMAIN_CREATE_W == (int)NVTX_CBID_CORE2_DomainCreateW,
               "NVTX's numbers");
#endif
#endif

enum { MOST_DEPTH = 64, SAMPLE_ID_BIT = 1 };

/* What is open on a thread, the innermost last. Deeper than this is not looked at. */
struct open_range {
    const void *domain;
    bool sample;
};
static _Thread_local struct open_range open_ranges[MOST_DEPTH];
static _Thread_local int depth;

static atomic_uint_fast64_t next_id = 1;

/* A registered string is handed out as one of these two. */
static const char registered_sample, registered_other;
static const char some_domain;

static bool is_sample(const char *name) {
    return name && !strcmp(name, INJECT_RANGE);
}

static bool is_sample_wide(const wchar_t *name) {
    return name && !wcscmp(name, L"" INJECT_RANGE);
}

static bool names_sample(const struct nvtx_tool_event *event) {
    if (!event)
        return false;
    switch (event->message_type) {
    case NVTX_TOOL_ASCII:
        return is_sample(event->message);
    case NVTX_TOOL_UNICODE:
        return is_sample_wide(event->message);
    case NVTX_TOOL_REGISTERED:
        return event->message == &registered_sample;
    default:
        return false;
    }
}

static int push(const void *domain, bool sample) {
    const int level = depth++;
    if (level < MOST_DEPTH)
        open_ranges[level] = (struct open_range){domain, sample};
    if (sample && level < MOST_DEPTH)
        inject_begin();
    return level;
}

/* Each domain has a stack of its own: the innermost of this domain ends. */
static int pop(const void *domain) {
    if (depth > MOST_DEPTH) {
        depth--;
        return depth;
    }
    for (int i = depth; i-- > 0;) {
        if (open_ranges[i].domain != domain)
            continue;
        if (open_ranges[i].sample)
            inject_end();
        memmove(open_ranges + i, open_ranges + i + 1,
                (size_t)(depth - i - 1) * sizeof *open_ranges);
        depth--;
        return i;
    }
    return -1;
}

/* Ranges that may end on another thread carry a number, whose lowest bit marks a sample. */
static uint64_t start(bool sample) {
    const uint64_t id = atomic_fetch_add(&next_id, 1) << 1 | (sample ? SAMPLE_ID_BIT : 0);
    if (sample)
        inject_begin();
    return id;
}

static void end(uint64_t id) {
    if (id & SAMPLE_ID_BIT)
        inject_end();
}

static int range_push_ex(const struct nvtx_tool_event *event) {
    return push(NULL, names_sample(event));
}
static int range_push_a(const char *name) {
    return push(NULL, is_sample(name));
}
static int range_push_w(const wchar_t *name) {
    return push(NULL, is_sample_wide(name));
}
static int range_pop(void) {
    return pop(NULL);
}
static uint64_t range_start_ex(const struct nvtx_tool_event *event) {
    return start(names_sample(event));
}
static uint64_t range_start_a(const char *name) {
    return start(is_sample(name));
}
static uint64_t range_start_w(const wchar_t *name) {
    return start(is_sample_wide(name));
}
static int domain_range_push_ex(const void *domain, const struct nvtx_tool_event *event) {
    return push(domain, names_sample(event));
}
static int domain_range_pop(const void *domain) {
    return pop(domain);
}
static uint64_t domain_range_start_ex(const void *domain, const struct nvtx_tool_event *event) {
    (void)domain;
    return start(names_sample(event));
}
static void domain_range_end(const void *domain, uint64_t id) {
    (void)domain;
    end(id);
}
static const void *register_string_a(const void *domain, const char *name) {
    (void)domain;
    return is_sample(name) ? &registered_sample : &registered_other;
}
static const void *register_string_w(const void *domain, const wchar_t *name) {
    (void)domain;
    return is_sample_wide(name) ? &registered_sample : &registered_other;
}
static const void *domain_create_a(const char *name) {
    void *domain = name ? malloc(1) : NULL; /* lives as long as the program */
    return domain ? domain : &some_domain;
}
static const void *domain_create_w(const wchar_t *name) {
    return domain_create_a(name ? "" : NULL);
}

struct slot {
    unsigned number;
    nvtx_tool_function function;
};
#define SLOT(number, function)                                                                     \
    { (unsigned)(number), (nvtx_tool_function)(function) }

static const struct slot core[] = {
    SLOT(NVTX_TOOL_RANGE_START_EX, range_start_ex), SLOT(NVTX_TOOL_RANGE_START_A, range_start_a),
    SLOT(NVTX_TOOL_RANGE_START_W, range_start_w),   SLOT(NVTX_TOOL_RANGE_END, end),
    SLOT(NVTX_TOOL_RANGE_PUSH_EX, range_push_ex),   SLOT(NVTX_TOOL_RANGE_PUSH_A, range_push_a),
    SLOT(NVTX_TOOL_RANGE_PUSH_W, range_push_w),     SLOT(NVTX_TOOL_RANGE_POP, range_pop),
};
static const struct slot core2[] = {
    SLOT(NVTX_TOOL_DOMAIN_RANGE_START_EX, domain_range_start_ex),
    SLOT(NVTX_TOOL_DOMAIN_RANGE_END, domain_range_end),
    SLOT(NVTX_TOOL_DOMAIN_RANGE_PUSH_EX, domain_range_push_ex),
    SLOT(NVTX_TOOL_DOMAIN_RANGE_POP, domain_range_pop),
    SLOT(NVTX_TOOL_DOMAIN_REGISTER_STRING_A, register_string_a),
    SLOT(NVTX_TOOL_DOMAIN_REGISTER_STRING_W, register_string_w),
    SLOT(NVTX_TOOL_DOMAIN_CREATE_A, domain_create_a),
    SLOT(NVTX_TOOL_DOMAIN_CREATE_W, domain_create_w),
};

static bool fill(const struct nvtx_tool_callbacks *callbacks, enum nvtx_tool_module module,
                 const struct slot *functions, size_t count) {
    nvtx_tool_slots slots = NULL;
    unsigned int room = 0;
    if (!callbacks->get_slots((int32_t)module, &slots, &room) || !slots)
        return false;
    for (size_t i = 0; i < count; i++)
        if (functions[i].number < room && slots[functions[i].number])
            *slots[functions[i].number] = functions[i].function;
    return true;
}

/* Called once by every copy of NVTX in the program, before its first range. */
EXPORT int InitializeInjectionNvtx2(nvtx_tool_get_table *get_table);
EXPORT int InitializeInjectionNvtx2(nvtx_tool_get_table *get_table) {
    const struct nvtx_tool_callbacks *callbacks = get_table(NVTX_TOOL_CALLBACKS);
    if (!callbacks || callbacks->struct_size < sizeof *callbacks)
        return 0;
    const bool ranges = fill(callbacks, NVTX_TOOL_CORE, core, sizeof core / sizeof core[0]);
    /* Older copies know no domains. */
    fill(callbacks, NVTX_TOOL_CORE2, core2, sizeof core2 / sizeof core2[0]);
    return ranges ? 1 : 0;
}
