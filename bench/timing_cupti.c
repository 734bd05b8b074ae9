#include "bench/timing_cupti.h"

#include "bench/cupti_library.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_BYTES = 1 << 20, BUFFER_ALIGNMENT = 8 };

struct name_entry {
    const char *cupti; /* CUPTI's pointer, the key */
    char *text;
};

struct cupti_collector {
    struct cupti_library library;
    CUpti_SubscriberHandle subscriber;
    pthread_mutex_t lock; /* the callbacks run on a thread of CUPTI's */
    struct cupti_record *records;
    size_t count, capacity;
    struct cupti_record *taken;
    size_t taken_capacity;
    struct name_entry *names;
    size_t name_count;
    size_t dropped;
    bool starve, failed; /* failed: a callback ran out of memory or could not read the counter */
    bool open, registered, running;
    char failure[128];
};

/* CUPTI's callbacks carry no pointer of ours and stay registered for the life of the process: so
 * does the one collector, which is opened and closed any number of times. */
static struct cupti_collector *the_collector;

static void note_failure(struct cupti_collector *collector, const char *text) {
    if (!collector->failed)
        snprintf(collector->failure, sizeof collector->failure, "%s", text);
    collector->failed = true;
}

static const char *intern(struct cupti_collector *collector, const char *name) {
    if (!name)
        return "(unnamed kernel)";
    for (size_t i = 0; i < collector->name_count; i++)
        if (collector->names[i].cupti == name && !strcmp(collector->names[i].text, name))
            return collector->names[i].text;
    struct name_entry *names =
        realloc(collector->names, (collector->name_count + 1) * sizeof *names);
    char *text = strdup(name);
    if (names)
        collector->names = names;
    if (!names || !text) {
        free(text);
        note_failure(collector, "no memory for a kernel's name");
        return "(no memory)";
    }
    names[collector->name_count++] = (struct name_entry){name, text};
    return text;
}

static struct cupti_record *new_record(struct cupti_collector *collector) {
    if (collector->count == collector->capacity) {
        size_t capacity = collector->capacity ? 2 * collector->capacity : 4096;
        struct cupti_record *records = realloc(collector->records, capacity * sizeof *records);
        if (!records) {
            note_failure(collector, "no memory for CUPTI's records");
            return NULL;
        }
        collector->records = records;
        collector->capacity = capacity;
    }
    struct cupti_record *record = &collector->records[collector->count++];
    memset(record, 0, sizeof *record);
    return record;
}

static void add_kernel(struct cupti_collector *collector, const CUpti_ActivityKernel10 *kernel) {
    struct cupti_record *record = new_record(collector);
    if (!record)
        return;
    *record = (struct cupti_record){
        .kind = CUPTI_RECORD_KERNEL,
        .start_ns = kernel->start,
        .end_ns = kernel->end,
        .stream = kernel->streamId,
        .correlation = kernel->correlationId,
        .graph_node = kernel->graphNodeId,
        .name = intern(collector, kernel->name),
        .grid = {(uint32_t)kernel->gridX, (uint32_t)kernel->gridY, (uint32_t)kernel->gridZ},
        .block = {(uint32_t)kernel->blockX, (uint32_t)kernel->blockY, (uint32_t)kernel->blockZ},
        .shared_bytes = (uint32_t)(kernel->staticSharedMemory + kernel->dynamicSharedMemory),
        .registers = kernel->registersPerThread,
    };
}

static void add_record(struct cupti_collector *collector, const CUpti_Activity *activity) {
    struct cupti_record *record;
    switch (activity->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        add_kernel(collector, (const CUpti_ActivityKernel10 *)activity);
        return;
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const CUpti_ActivityMemcpy6 *copy = (const CUpti_ActivityMemcpy6 *)activity;
        if ((record = new_record(collector)))
            *record = (struct cupti_record){.kind = CUPTI_RECORD_MEMCPY,
                                            .start_ns = copy->start,
                                            .end_ns = copy->end,
                                            .stream = copy->streamId,
                                            .correlation = copy->correlationId,
                                            .graph_node = copy->graphNodeId,
                                            .name = "memcpy"};
        return;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
        const CUpti_ActivityMemset4 *set = (const CUpti_ActivityMemset4 *)activity;
        if ((record = new_record(collector)))
            *record = (struct cupti_record){.kind = CUPTI_RECORD_MEMSET,
                                            .start_ns = set->start,
                                            .end_ns = set->end,
                                            .stream = set->streamId,
                                            .correlation = set->correlationId,
                                            .graph_node = set->graphNodeId,
                                            .name = "memset"};
        return;
    }
    default:
        return;
    }
}

static void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *size, size_t *most_records) {
    *most_records = 0;
    pthread_mutex_lock(&the_collector->lock);
    bool starve = the_collector->starve;
    pthread_mutex_unlock(&the_collector->lock);
    /* Each request gets a buffer of its own: CUPTI may hold several, one per launching thread. */
    *buffer = starve ? NULL : aligned_alloc(BUFFER_ALIGNMENT, BUFFER_BYTES);
    *size = *buffer ? BUFFER_BYTES : 0;
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer,
                                      size_t size, size_t valid) {
    (void)size;
    struct cupti_collector *collector = the_collector;
    pthread_mutex_lock(&collector->lock);
    CUpti_Activity *activity = NULL;
    CUptiResult result = CUPTI_SUCCESS;
    while (buffer && valid > 0 &&
           (result = collector->library.next_record(buffer, valid, &activity)) == CUPTI_SUCCESS)
        add_record(collector, activity);
    if (buffer && valid > 0 && result != CUPTI_ERROR_MAX_LIMIT_REACHED)
        note_failure(collector, "CUPTI returned a buffer that cannot be read to its end");
    size_t dropped = 0;
    if (collector->library.dropped_records(context, stream, &dropped) != CUPTI_SUCCESS)
        note_failure(collector, "CUPTI's counter of dropped records cannot be read");
    collector->dropped += dropped;
    pthread_mutex_unlock(&collector->lock);
    free(buffer);
}

static void CUPTIAPI no_callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                 const void *data) {
    (void)user, (void)domain, (void)id, (void)data;
}

static enum tb_status check(struct cupti_collector *collector, CUptiResult result, const char *what,
                            struct tb_error *error) {
    if (result == CUPTI_SUCCESS)
        return TB_OK;
    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
        return tb_fail(error, TB_UNAVAILABLE,
                       "another profiler holds CUPTI (Nsight, compute-sanitizer or an injected "
                       "library): run without it, or say --timer events, or --gate-only");
    const char *text = NULL;
    collector->library.result_string(result, &text);
    return tb_fail(error, TB_UNAVAILABLE, "CUPTI: %s failed: %s (%d)", what, text ? text : "?",
                   (int)result);
}

static const CUpti_ActivityKind traced_kinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

enum tb_status cupti_start(struct cupti_collector *collector, struct tb_error *error) {
    for (size_t i = 0; i < sizeof traced_kinds / sizeof traced_kinds[0]; i++) {
        CUptiResult result = collector->library.enable(traced_kinds[i]);
        if (result != CUPTI_SUCCESS)
            return check(collector, result, "enabling an activity kind", error);
    }
    collector->running = true;
    return TB_OK;
}

enum tb_status cupti_stop(struct cupti_collector *collector, struct tb_error *error) {
    enum tb_status status = TB_OK;
    for (size_t i = 0; i < sizeof traced_kinds / sizeof traced_kinds[0]; i++) {
        CUptiResult result = collector->library.disable(traced_kinds[i]);
        if (result != CUPTI_SUCCESS && status == TB_OK)
            status = check(collector, result, "disabling an activity kind", error);
    }
    collector->running = false;
    return status;
}

static enum tb_status subscribe(struct cupti_collector *collector, struct tb_error *error) {
    enum tb_status status = TB_OK;
    if (!collector->library.handle)
        status = cupti_library_load(&collector->library, error);
    if (status == TB_OK)
        status = check(collector,
                       collector->library.subscribe(&collector->subscriber, no_callback, NULL),
                       "subscribing", error);
    if (status == TB_OK && !collector->registered)
        status = check(collector,
                       collector->library.register_callbacks(buffer_requested, buffer_completed),
                       "registering the buffer callbacks", error);
    collector->registered = collector->registered || status == TB_OK;
    return status;
}

enum tb_status cupti_open(struct cupti_collector **out, struct tb_error *error) {
    *out = NULL;
    if (the_collector && the_collector->open)
        return tb_fail(error, TB_INTERNAL, "CUPTI is already open in this process");
    if (!the_collector) {
        the_collector = calloc(1, sizeof *the_collector);
        if (!the_collector)
            return tb_fail(error, TB_NO_MEMORY, "no memory for the CUPTI collector");
        pthread_mutex_init(&the_collector->lock, NULL);
    }
    the_collector->open = true;
    const enum tb_status status = subscribe(the_collector, error);
    if (status != TB_OK) {
        cupti_close(the_collector);
        return status;
    }
    *out = the_collector;
    return TB_OK;
}

void cupti_close(struct cupti_collector *collector) {
    if (!collector)
        return;
    struct tb_error ignored = TB_ERROR_INIT;
    if (collector->running)
        cupti_stop(collector, &ignored);
    if (collector->registered)
        collector->library.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    if (collector->subscriber)
        collector->library.unsubscribe(collector->subscriber);
    collector->subscriber = NULL;
    free(collector->taken);
    collector->taken = NULL;
    pthread_mutex_lock(&collector->lock);
    collector->taken_capacity = collector->count = collector->dropped = 0;
    collector->failed = false;
    pthread_mutex_unlock(&collector->lock);
    collector->open = false;
}

static int by_start(const void *left, const void *right) {
    const struct cupti_record *a = left, *b = right;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

enum tb_status cupti_take(struct cupti_collector *collector, const struct cupti_record **records,
                          size_t *count, size_t *dropped, struct tb_error *error) {
    *records = NULL;
    *count = *dropped = 0;
    enum tb_status status =
        check(collector, collector->library.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED),
              "flushing the records", error);
    if (status != TB_OK)
        return status;
    /* Drops are counted with or without a buffer that came back: one refused outright has none. */
    size_t late = 0;
    status = check(collector, collector->library.dropped_records(NULL, 0, &late),
                   "reading the counter of dropped records", error);
    if (status != TB_OK)
        return status;
    pthread_mutex_lock(&collector->lock);
    collector->dropped += late;
    struct cupti_record *swap = collector->taken;
    size_t swap_capacity = collector->taken_capacity;
    collector->taken = collector->records;
    collector->taken_capacity = collector->capacity;
    *count = collector->count;
    *dropped = collector->dropped;
    collector->records = swap;
    collector->capacity = swap_capacity;
    collector->count = collector->dropped = 0;
    if (collector->failed)
        status = tb_fail(error, TB_INTERNAL, "%s", collector->failure);
    pthread_mutex_unlock(&collector->lock);
    if (*count)
        qsort(collector->taken, *count, sizeof *collector->taken, by_start);
    *records = collector->taken;
    return status;
}

enum tb_status cupti_discard(struct cupti_collector *collector, struct tb_error *error) {
    const struct cupti_record *records;
    size_t count, dropped;
    return cupti_take(collector, &records, &count, &dropped, error);
}

uint64_t cupti_now_ns(struct cupti_collector *collector) {
    uint64_t now = 0;
    collector->library.timestamp(&now);
    return now;
}

const char *cupti_version_text(const struct cupti_collector *collector) {
    return collector->library.version_text;
}

void cupti_starve(struct cupti_collector *collector, bool starve) {
    pthread_mutex_lock(&collector->lock);
    collector->starve = starve;
    pthread_mutex_unlock(&collector->lock);
}
