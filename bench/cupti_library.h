/* The CUPTI library, found and opened at run time, and the functions of it that are used. */
#ifndef TOPP_BENCH_CUPTI_LIBRARY_H
#define TOPP_BENCH_CUPTI_LIBRARY_H

#include "oracle/status.h"

#include <cupti.h>

struct cupti_library {
    void *handle;
    char version_text[384];
    CUptiResult (*get_version)(uint32_t *version);
    CUptiResult (*result_string)(CUptiResult result, const char **text);
    CUptiResult (*subscribe)(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
                             void *user);
    CUptiResult (*unsubscribe)(CUpti_SubscriberHandle subscriber);
    CUptiResult (*register_callbacks)(CUpti_BuffersCallbackRequestFunc requested,
                                      CUpti_BuffersCallbackCompleteFunc completed);
    CUptiResult (*enable)(CUpti_ActivityKind kind);
    CUptiResult (*disable)(CUpti_ActivityKind kind);
    CUptiResult (*flush_all)(uint32_t flag);
    CUptiResult (*next_record)(uint8_t *buffer, size_t valid_bytes, CUpti_Activity **record);
    CUptiResult (*dropped_records)(CUcontext context, uint32_t stream, size_t *dropped);
    CUptiResult (*timestamp)(uint64_t *nanoseconds);
};

/* Opens the first library of the header's major version among: the file that the environment
 * variable TOPP_BENCH_CUPTI names (that one alone), the loader's own search, the executable's
 * folder and its ../lib, CUDA_HOME, /usr/local/cuda*, and Python's CUDA packages. The handle is
 * kept for the life of the process. TB_UNAVAILABLE lists what was tried and why it did not do. */
enum tb_status cupti_library_load(struct cupti_library *library, struct tb_error *error);

#endif
