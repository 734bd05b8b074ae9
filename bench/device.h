/* Where kernels run: memory, launches and the timer of one device. device_cpu.c is always built,
 * device_cuda.c when nvcc was found. */
#ifndef TOPP_BENCH_DEVICE_H
#define TOPP_BENCH_DEVICE_H

#include "bench/sweep.h"

#include <jansson.h>
#include <signal.h>

struct device; /* opaque to all but its own file; begins with a struct device_ops pointer */

enum timer_kind { TIMER_DEFAULT, TIMER_CLOCK /* cpu */, TIMER_CUPTI, TIMER_EVENTS };

struct device_options {
    int32_t index;         /* which GPU, 0 for the first visible */
    enum timer_kind timer; /* TIMER_DEFAULT: clock on the CPU, CUPTI on CUDA; never a silent
                              fallback: without CUPTI opening fails with TB_UNAVAILABLE */
    bool gate_only;        /* no timer needed (sanitizers: CUPTI must not be loaded) */
    int32_t sm_count;      /* 0: the device's own; 132 on the CPU */
};

/* One call as it is timed. Both functions enqueue on stream and return a kernel_status or CUDA
 * error. prepare (restore the input) is outside the timed span of each sample. */
struct timed_call {
    void *context;
    int (*prepare)(void *context, void *stream);
    int (*run)(void *context, void *stream);
    const char *name; /* NVTX range */
    enum cell_l2 l2;
    enum cell_launch launch;
};

/* One timed run of the call. Unknown figures are NAN in memory, null in JSON. */
struct sample {
    double time_ns; /* the headline: CPU wall time; CUDA span, first start to last end */
    double busy_ns; /* CUDA: sum of kernel durations */
    double cycles;  /* CUDA: SM clock cycles between two on-device stamps */
    double sm_mhz;  /* CUDA: cycles over the stamps' time */
    int32_t block;  /* which block (repetition) it belongs to */
    int32_t draw;   /* which draw of the rows */
};

/* Kernel-path evidence: what really ran in one call. */
struct kernel_evidence {
    char name[128];
    uint32_t grid[3], block[3];
    uint32_t shared_bytes, registers;
};

struct block_request {
    const struct timed_call *calls; /* one per draw */
    int32_t draws;
    int32_t block; /* number of this block, written into samples */
    const struct timing_settings *settings;
    double warmup_seconds;             /* 0 for all but a cell's first block */
    double limit_seconds;              /* 0 = none; past it the block ends with timed_out set */
    const volatile sig_atomic_t *stop; /* NULL, or: once set, end after the current sample */
};

struct block_result {
    struct sample *samples; /* owned by the caller once returned: free() */
    size_t count;
    struct kernel_evidence *kernels; /* of one call; owned by the caller: free() */
    size_t kernel_count;
    double events_ns; /* CUDA: per call by events, in a pass with tracing off; else NAN */
    bool timed_out;   /* ran past limit_seconds: samples are not to be used */
    char
        refused[256]; /* not empty: no valid samples, and why (dropped records, foreign kernel..) */
    json_t *conditions; /* CUDA: clocks, power, temperature, throttle reasons; else NULL; owned */
};

struct device_ops {
    const char *kind; /* "cpu", "cuda" */
    void (*close)(struct device *device);
    enum tb_status (*alloc)(struct device *device, size_t bytes, void **memory,
                            struct tb_error *error); /* 256-byte aligned */
    void (*free)(struct device *device, void *memory);
    /* Synchronous copies between host and device memory. */
    enum tb_status (*upload)(struct device *device, void *to, const void *from_host, size_t bytes,
                             struct tb_error *error);
    enum tb_status (*download)(struct device *device, void *to_host, const void *from, size_t bytes,
                               struct tb_error *error);
    /* Enqueues a device-to-device copy on the stream (NULL: the device's own, on which uploads and
     * downloads are ordered after it); returns 0 or a CUDA error code. */
    int (*copy_async)(struct device *device, void *to, const void *from, size_t bytes,
                      void *stream);
    /* Runs call once (prepare, run) on the device's stream and waits; seconds: time limit after
     * which TB_OK comes back with *timed_out set (a CUDA device is then unusable). */
    enum tb_status (*run_once)(struct device *device, const struct timed_call *call, double seconds,
                               bool *timed_out, struct tb_error *error);
    enum tb_status (*time_block)(struct device *device, const struct block_request *request,
                                 struct block_result *result, struct tb_error *error);
    /* Model, UUID, SM count, clocks, driver, CUDA and CUPTI versions, L2 size, timer. New object.
     */
    json_t *(*describe)(struct device *device);
    const char *(*error_text)(struct device *device, int code);
};

struct device {
    const struct device_ops *ops;
    enum kernel_device kind;
    int32_t sm_count;
    int32_t visible; /* CUDA: how many devices this process sees; CPU: 0 */
};

enum tb_status device_cpu_open(const struct device_options *options, struct device **device,
                               struct tb_error *error);
/* Without CUDA in the build: TB_UNAVAILABLE, naming what is missing. */
enum tb_status device_cuda_open(const struct device_options *options, struct device **device,
                                struct tb_error *error);
/* True when a CUDA device can be used here; why (may be NULL) receives what is missing. */
bool device_cuda_usable(char *why, size_t why_bytes);
/* Visible CUDA devices. */
int32_t device_cuda_count(void);

#endif
