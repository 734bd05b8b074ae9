/* What the injected library saw in a program (bench/inject.h), and its judgement: every sample's
 * time, or the reason for a refusal. Nothing here runs anything. */
#ifndef TOPP_BENCH_EXTERNAL_RECORDS_H
#define TOPP_BENCH_EXTERNAL_RECORDS_H

#include "bench/device.h"
#include "bench/timing_cupti.h"

struct trace_range {
    uint64_t begin_ns, end_ns; /* end 0: never closed */
};

/* Owned; free with trace_free. A zeroed struct is a program that nothing was seen of. */
struct external_trace {
    struct trace_range *ranges;
    size_t range_count;
    struct cupti_record *records; /* names are the trace's */
    size_t record_count;
    size_t dropped;
    bool cupti;        /* the clock is CUPTI's: the program used CUDA and was traced */
    bool nested;       /* a range was opened while another was open */
    bool records_read; /* the records were asked for: the expected number of ranges came */
    char error[512];   /* why there are no records, as the library found it; "" if none */
};

/* A file that is not there gives an empty trace. TB_UNREADABLE: it is damaged. */
enum tb_status trace_read(const char *path, struct external_trace *trace, struct tb_error *error);
void trace_free(struct external_trace *trace);

struct trace_want {
    size_t repeats;
    bool cuda; /* device records must lie in the ranges; else the ranges are timed */
    enum cell_launch
        launch;   /* CUDA: stream: no record of a graph; graph: one launch of one graph */
    int32_t draw; /* written into the samples */
};

/* samples: [want->repeats]. *kernels: of the first range; owned by the caller: free(); *kernels not
 * NULL: of an earlier start, which this one must repeat. False with the reason in why. */
bool trace_judge(const struct external_trace *trace, const struct trace_want *want,
                 struct sample *samples, struct kernel_evidence **kernels, size_t *kernel_count,
                 char *why, size_t why_bytes);

#endif
