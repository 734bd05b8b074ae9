#include "bench/external_records.h"

#include "bench/inject.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static bool refuse(char *why, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool refuse(char *why, size_t bytes, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, bytes, format, arguments);
    va_end(arguments);
    return false;
}

static bool check_ranges(const struct external_trace *trace, const struct trace_want *want,
                         char *why, size_t bytes) {
    if (trace->error[0])
        return refuse(why, bytes, "CUPTI could not trace the program: %s", trace->error);
    if (trace->range_count == 0)
        return refuse(why, bytes,
                      "no NVTX range named `" INJECT_RANGE "` was seen: each repetition must stand "
                      "in one (docs/external.md)");
    if (trace->nested)
        return refuse(why, bytes,
                      "a range named `" INJECT_RANGE "` was opened inside another: close each "
                      "before the next");
    if (trace->range_count != want->repeats)
        return refuse(why, bytes,
                      "%zu NVTX ranges named `" INJECT_RANGE "` were seen, --repeats asked for %zu",
                      trace->range_count, want->repeats);
    for (size_t i = 0; i < trace->range_count; i++)
        if (trace->ranges[i].end_ns <= trace->ranges[i].begin_ns)
            return refuse(why, bytes, "range %zu was never closed", i + 1);
    return true;
}

static bool check_records(const struct external_trace *trace, char *why, size_t bytes) {
    if (!trace->cupti)
        return refuse(why, bytes,
                      "the program used no CUDA device, or not through the driver that "
                      "CUDA_INJECTION64_PATH reaches");
    if (!trace->records_read)
        return refuse(why, bytes, "the program's records were never read");
    if (trace->dropped)
        return refuse(why, bytes, "CUPTI dropped %zu records", trace->dropped);
    for (size_t i = 0; i < trace->record_count; i++) {
        const struct cupti_record *record = &trace->records[i];
        if (record->start_ns == 0 || record->end_ns == 0)
            return refuse(why, bytes, "CUPTI gave %s no timestamps", record->name);
        if (record->end_ns < record->start_ns)
            return refuse(why, bytes, "CUPTI's timestamps of %s are reversed", record->name);
    }
    return true;
}

/* Is the record the range's own? By its middle, as host and device clocks are brought together
 * within a few microseconds alone. */
static bool inside(const struct cupti_record *record, const struct trace_range *range) {
    const uint64_t middle = record->start_ns + (record->end_ns - record->start_ns) / 2;
    return middle >= range->begin_ns && middle <= range->end_ns;
}

/* Work that began before the range or went on after it: what was timed is not what was done. */
static bool across(const struct cupti_record *record, const struct trace_range *range) {
    const bool touches = record->start_ns < range->end_ns && record->end_ns > range->begin_ns;
    return touches && (record->start_ns + INJECT_EDGE_NS < range->begin_ns ||
                       record->end_ns > range->end_ns + INJECT_EDGE_NS);
}

static void describe(const struct cupti_record *record, struct kernel_evidence *kernel) {
    *kernel = (struct kernel_evidence){.shared_bytes = record->shared_bytes,
                                       .registers = record->registers};
    snprintf(kernel->name, sizeof kernel->name, "%s", record->name);
    memcpy(kernel->grid, record->grid, sizeof kernel->grid);
    memcpy(kernel->block, record->block, sizeof kernel->block);
}

static bool same_kernel(const struct cupti_record *record, const struct kernel_evidence *kernel) {
    return !strncmp(record->name, kernel->name, sizeof kernel->name - 1) &&
           !memcmp(record->grid, kernel->grid, sizeof record->grid) &&
           !memcmp(record->block, kernel->block, sizeof record->block);
}

struct judgement {
    const struct external_trace *trace;
    const struct trace_want *want;
    struct kernel_evidence *kernels;
    size_t kernel_count;
    const struct cupti_record **own; /* [trace->record_count] of one range, by start */
    char *why;
    size_t bytes;
};

static bool check_launch(const struct judgement *j, size_t range, size_t count) {
    const bool graph = j->want->launch == LAUNCH_GRAPH;
    for (size_t i = 0; i < count; i++) {
        const struct cupti_record *record = j->own[i];
        if ((record->graph_node != 0) != graph)
            return refuse(j->why, j->bytes,
                          graph ? "range %zu launched %s outside of a graph: TOPP_LAUNCH is graph"
                                : "range %zu launched %s in a graph: say --external-launch graph",
                          range, record->name);
        if (graph && record->correlation != j->own[0]->correlation)
            return refuse(j->why, j->bytes, "range %zu launched more than one graph", range);
        for (size_t k = 0; !graph && k < i; k++)
            if (j->own[k]->correlation == record->correlation)
                return refuse(j->why, j->bytes,
                              "two launches of range %zu carry one correlation id", range);
    }
    return true;
}

static bool check_path(const struct judgement *j, size_t range, size_t count) {
    for (size_t i = 0; j->kernels && i < count && i < j->kernel_count; i++)
        if (!same_kernel(j->own[i], &j->kernels[i]))
            return refuse(j->why, j->bytes, "range %zu ran %s as its kernel %zu, the first had %s",
                          range, j->own[i]->name, i + 1, j->kernels[i].name);
    if (count != j->kernel_count)
        return refuse(j->why, j->bytes, "range %zu ran %zu kernels, the first had %zu", range,
                      count, j->kernel_count);
    return check_launch(j, range, count);
}

static bool keep_kernels(struct judgement *j, size_t count) {
    j->kernels = calloc(count + 1, sizeof *j->kernels);
    if (!j->kernels)
        return refuse(j->why, j->bytes, "no memory for the kernel evidence");
    for (size_t i = 0; i < count; i++)
        describe(j->own[i], &j->kernels[i]);
    j->kernel_count = count;
    return true;
}

static bool judge_range(struct judgement *j, size_t index, struct sample *sample) {
    const struct trace_range *range = &j->trace->ranges[index];
    size_t count = 0;
    uint64_t end = 0;
    for (size_t i = 0; i < j->trace->record_count; i++) {
        const struct cupti_record *record = &j->trace->records[i];
        if (across(record, range))
            return refuse(j->why, j->bytes,
                          "%s runs across the edge of range %zu: synchronise before it is opened "
                          "and before it is closed",
                          record->name, index + 1);
        if (inside(record, range))
            j->own[count++] = record;
    }
    if (count == 0)
        return refuse(j->why, j->bytes,
                      "range %zu holds no work of the device: synchronise before it is closed",
                      index + 1);
    if (!j->kernels && !keep_kernels(j, count))
        return false;
    if (!check_path(j, index + 1, count))
        return false;
    sample->busy_ns = 0.0;
    for (size_t i = 0; i < count; i++) {
        sample->busy_ns += (double)(j->own[i]->end_ns - j->own[i]->start_ns);
        if (j->own[i]->end_ns > end)
            end = j->own[i]->end_ns;
    }
    sample->time_ns = (double)(end - j->own[0]->start_ns);
    return true;
}

static bool judge_cuda(struct judgement *j, struct sample *samples) {
    if (!check_records(j->trace, j->why, j->bytes))
        return false;
    j->own = calloc(j->trace->record_count + 1, sizeof *j->own);
    if (!j->own)
        return refuse(j->why, j->bytes, "no memory for the records of a range");
    bool good = true;
    for (size_t i = 0; i < j->want->repeats && good; i++)
        good = judge_range(j, i, &samples[i]);
    free(j->own);
    return good;
}

bool trace_judge(const struct external_trace *trace, const struct trace_want *want,
                 struct sample *samples, struct kernel_evidence **kernels, size_t *kernel_count,
                 char *why, size_t why_bytes) {
    struct judgement j = {trace, want, *kernels, *kernel_count, NULL, why, why_bytes};
    if (!check_ranges(trace, want, why, why_bytes))
        return false;
    for (size_t i = 0; i < want->repeats; i++)
        samples[i] = (struct sample){
            .time_ns = (double)(trace->ranges[i].end_ns - trace->ranges[i].begin_ns),
            .busy_ns = NAN,
            .cycles = NAN,
            .sm_mhz = NAN,
            .draw = want->draw};
    const bool good = !want->cuda || judge_cuda(&j, samples);
    *kernels = j.kernels;
    *kernel_count = j.kernel_count;
    return good;
}
