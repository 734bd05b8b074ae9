/* A libcupti for tests without a GPU. FAKE_CUPTI=busy: another subscriber holds it; FAKE_CUPTI=old:
 * of another major version. A flush gives one record of a kernel that took 1 us, and counts one
 * dropped record where no buffer was to be had. */
#include <cupti.h>
#include <stdlib.h>
#include <string.h>

static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static size_t dropped;
static int enabled, subscribed, given;

static int is(const char *mode) {
    const char *set = getenv("FAKE_CUPTI");
    return set && !strcmp(set, mode);
}

CUptiResult cuptiGetVersion(uint32_t *version) {
    *version = is("old") ? 90001 : CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **text) {
    *text = result == CUPTI_SUCCESS ? "success" : "a failure of the fake";
    return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
                           void *user) {
    (void)callback, (void)user;
    if (is("busy") || subscribed)
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    subscribed = 1;
    *subscriber = (CUpti_SubscriberHandle)&subscribed;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
    (void)subscriber;
    subscribed = 0;
    return CUPTI_SUCCESS;
}

/* Once a process, as CUPTI demands. */
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed) {
    if (request)
        return CUPTI_ERROR_INVALID_OPERATION;
    request = requested;
    complete = completed;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
    (void)kind;
    enabled++;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
    (void)kind;
    enabled--;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag) {
    (void)flag;
    uint8_t *buffer = NULL;
    size_t size = 0, most = 0;
    if (!enabled || !request)
        return CUPTI_SUCCESS;
    request(&buffer, &size, &most);
    if (!buffer) {
        dropped++;
        return CUPTI_SUCCESS;
    }
    CUpti_ActivityKernel10 *kernel = (CUpti_ActivityKernel10 *)(void *)buffer;
    memset(kernel, 0, sizeof *kernel);
    kernel->kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    kernel->start = 1000;
    kernel->end = 2000;
    kernel->name = "fake";
    given = 0;
    complete(NULL, 0, buffer, size, sizeof *kernel);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record) {
    (void)valid;
    if (given++)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(void *)buffer;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *count) {
    (void)context, (void)stream;
    *count = dropped;
    dropped = 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *nanoseconds) {
    *nanoseconds = 1;
    return CUPTI_SUCCESS;
}
