/* What the files of the CUDA device share; nobody else includes this. */
#ifndef TOPP_BENCH_DEVICE_CUDA_H
#define TOPP_BENCH_DEVICE_CUDA_H

#include "bench/cuda_probe.h"
#include "bench/device.h"
#include "bench/nvml.h"
#include "bench/timing_cupti.h"

#include <cuda_runtime_api.h>

enum {
    STAMPS_PER_SAMPLE = 3, /* before the input is restored, before the call, after it */
    CHUNK_SAMPLES = 64,    /* most calls, the counted one included, between two looks at records */
};

struct device_cuda {
    struct device base;
    struct cudaDeviceProp properties;
    char uuid[64];
    enum timer_kind timer;
    bool lost; /* a kernel hung or faulted: the context cannot be used any more */
    cudaStream_t stream;
    cudaEvent_t events[2];
    struct nvml *nvml;
    struct cupti_collector *cupti;
    bool tracing;      /* CUPTI's records are on */
    bool drops_proven; /* a starved buffer was seen to raise CUPTI's counter of dropped records */
    void *flush;       /* written to push everything out of L2 */
    size_t flush_bytes;
    double warm_cycles, cold_cycles; /* of the probe: mean cycles a load with L2 warm and flushed */
    struct cuda_stamp *stamps;       /* device, [STAMPS_PER_SAMPLE * CHUNK_SAMPLES] */
    struct cuda_stamp *host_stamps;  /* the same on the host, pinned */
};

/* Turns a CUDA error into an error; TB_OK for cudaSuccess. */
enum tb_status cuda_check(struct device_cuda *device, cudaError_t code, const char *what,
                          struct tb_error *error);

/* device_ops.time_block. */
enum tb_status cuda_time_block(struct device *device, const struct block_request *request,
                               struct block_result *result, struct tb_error *error);

/* Restores the input and, for cold rows, flushes L2: all that comes before the timed span. */
int cuda_prepare(struct device_cuda *device, const struct timed_call *call);

/* Captures run() (and before it prepare() when with_prepare; neither when copies is 0) `copies`
 * times into a graph that can be launched. */
enum tb_status cuda_capture(struct device_cuda *device, const struct timed_call *call, int copies,
                            bool with_prepare, bool with_run, cudaGraphExec_t *graph,
                            struct tb_error *error);

/* Nanoseconds a call by events alone: graphs of several calls with and without run(), subtracted.
 */
enum tb_status cuda_events_per_call(struct device_cuda *device, const struct timed_call *call,
                                    double *per_call_ns, struct tb_error *error);

/* Takes the flush buffer and the stamps, proves the flush by a pointer chase and, with CUPTI, that
 * dropped records are counted. */
enum tb_status cuda_timing_open(struct device_cuda *device, struct tb_error *error);
void cuda_timing_close(struct device_cuda *device);

/* The records of a chunk of samples judged: every sample's span, or the reason for a refusal. */
struct chunk_judge {
    const struct kernel_evidence *expected; /* of the counted run */
    size_t expected_count;
    bool graph;             /* all records of a call must share one correlation id */
    uint64_t not_before_ns; /* CUPTI's clock when the chunk was enqueued */
};
/* samples: [count], time_ns and busy_ns are filled. False with the reason in why. */
bool cuda_judge_chunk(const struct chunk_judge *judge, const struct cupti_record *records,
                      size_t record_count, size_t dropped, struct sample *samples, size_t count,
                      char *why, size_t why_bytes);
/* Index of the nth clock stamp (from 0) among records; count when there are not so many. */
size_t cuda_find_stamp(const struct cupti_record *records, size_t count, size_t nth);
/* The kernels between the second and third stamp of a single sample, or a refusal. Owned by the
 * caller: free(). */
bool cuda_evidence_of(const struct cupti_record *records, size_t record_count, size_t dropped,
                      struct kernel_evidence **evidence, size_t *count, char *why,
                      size_t why_bytes);

#endif
