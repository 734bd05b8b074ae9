/* Blocks of samples on the CUDA device: stamps around every call, records or events between. */
#include "bench/device_cuda.h"

#include "bench/summary.h"
#include "bench/timing_clock.h"

#include <math.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The SM clock of a sample is averaged over at least this long: the global timer is coarse. */
static const double CLOCK_BASELINE_NS = 1e6;

/* A look at the records costs about as much as several short samples. */
enum { LEAST_CHUNK = 16 };

struct block {
    struct device_cuda *device;
    const struct block_request *request;
    struct block_result *result;
    cudaGraphExec_t *graphs; /* one per draw in launch mode graph */
    size_t capacity;
    struct tb_error *error;
};

int cuda_prepare(struct device_cuda *device, const struct timed_call *call) {
    int status = call->prepare ? call->prepare(call->context, device->stream) : 0;
    if (status == 0 && call->l2 == L2_COLD)
        status = (int)cudaMemsetAsync(device->flush, 0x5a, device->flush_bytes, device->stream);
    return status;
}

static enum tb_status call_check(struct device_cuda *device, int status,
                                 const struct timed_call *call, struct tb_error *error) {
    if (status == 0)
        return TB_OK;
    return tb_fail(error, TB_INTERNAL, "%s returned %d: %s", call->name ? call->name : "a kernel",
                   status, device->base.ops->error_text(&device->base, status));
}

enum tb_status cuda_capture(struct device_cuda *device, const struct timed_call *call, int copies,
                            bool with_prepare, bool with_run, cudaGraphExec_t *exec,
                            struct tb_error *error) {
    cudaGraph_t graph = NULL;
    *exec = NULL;
    enum tb_status status =
        cuda_check(device, cudaStreamBeginCapture(device->stream, cudaStreamCaptureModeThreadLocal),
                   "starting a graph capture", error);
    if (status != TB_OK)
        return status;
    int failed = 0;
    for (int i = 0; i < copies && failed == 0; i++) {
        if (with_prepare)
            failed = cuda_prepare(device, call);
        if (failed == 0 && with_run)
            failed = call->run(call->context, device->stream);
    }
    cudaError_t ended = cudaStreamEndCapture(device->stream, &graph);
    status = call_check(device, failed, call, error);
    if (status == TB_OK)
        status = cuda_check(device, ended, "capturing the call in a graph", error);
    if (status == TB_OK)
        status = cuda_check(device, cudaGraphInstantiate(exec, graph, 0), "instantiating the graph",
                            error);
    if (graph)
        cudaGraphDestroy(graph);
    return status;
}

static enum tb_status launch(struct block *block, int32_t draw) {
    const struct timed_call *call = &block->request->calls[draw];
    if (block->graphs)
        return cuda_check(block->device,
                          cudaGraphLaunch(block->graphs[draw], block->device->stream),
                          "launching a graph", block->error);
    return call_check(block->device, call->run(call->context, block->device->stream), call,
                      block->error);
}

static enum tb_status stamp(struct block *block, size_t slot) {
    return cuda_check(block->device,
                      cuda_stamp_launch(block->device->stamps + slot, block->device->stream),
                      "launching a clock stamp", block->error);
}

static enum tb_status synchronize(struct block *block) {
    return cuda_check(block->device, cudaStreamSynchronize(block->device->stream), "the timed call",
                      block->error);
}

/* Enqueues one sample; by events, waits for it and notes its time. */
static enum tb_status enqueue_sample(struct block *block, int32_t draw, size_t slot, bool eager,
                                     struct sample *sample) {
    struct device_cuda *device = block->device;
    const struct timed_call *call = &block->request->calls[draw];
    bool by_events = device->timer == TIMER_EVENTS;
    enum tb_status status = stamp(block, slot);
    if (status == TB_OK)
        status = call_check(device, cuda_prepare(device, call), call, block->error);
    if (status == TB_OK)
        status = stamp(block, slot + 1);
    if (status == TB_OK && by_events)
        status = cuda_check(device, cudaEventRecord(device->events[0], device->stream),
                            "recording an event", block->error);
    if (status == TB_OK)
        status =
            eager ? call_check(device, call->run(call->context, device->stream), call, block->error)
                  : launch(block, draw);
    if (status == TB_OK && by_events)
        status = cuda_check(device, cudaEventRecord(device->events[1], device->stream),
                            "recording an event", block->error);
    if (status == TB_OK)
        status = stamp(block, slot + 2);
    if (status != TB_OK || !by_events)
        return status;
    status = synchronize(block);
    float milliseconds = 0.0f;
    if (status == TB_OK)
        status = cuda_check(
            device, cudaEventElapsedTime(&milliseconds, device->events[0], device->events[1]),
            "reading an event", block->error);
    if (sample)
        sample->time_ns = 1e6 * (double)milliseconds;
    return status;
}

static enum tb_status warm_up(struct block *block) {
    const struct block_request *request = block->request;
    const int64_t end = timing_clock_now_ns() + (int64_t)(1e9 * request->warmup_seconds);
    const int calls = request->warmup_seconds > 0.0 ? 8 : 2;
    enum tb_status status = TB_OK;
    int32_t draw = 0;
    do {
        for (int i = 0; i < calls && status == TB_OK; i++) {
            status = call_check(block->device, cuda_prepare(block->device, &request->calls[draw]),
                                &request->calls[draw], block->error);
            if (status == TB_OK)
                status = launch(block, draw);
            draw = (draw + 1) % request->draws;
        }
        if (status == TB_OK)
            status = synchronize(block);
    } while (status == TB_OK && timing_clock_now_ns() < end && !(request->stop && *request->stop));
    return status;
}

/* SM clocks from the stamps: mean over the samples of the last CLOCK_BASELINE_NS on one SM. */
static void add_clocks(const struct cuda_stamp *stamps, struct sample *samples, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct cuda_stamp *end = &stamps[STAMPS_PER_SAMPLE * i + 2];
        const struct cuda_stamp *start = NULL;
        for (size_t back = i + 1; back-- > 0;) {
            const struct cuda_stamp *candidate = &stamps[STAMPS_PER_SAMPLE * back];
            if (candidate->sm != end->sm || !candidate->written || !end->written)
                continue;
            start = candidate;
            if ((double)(end->time_ns - candidate->time_ns) >= CLOCK_BASELINE_NS)
                break;
        }
        double elapsed_ns = start ? (double)(end->time_ns - start->time_ns) : 0.0;
        if (elapsed_ns <= 0.0)
            continue;
        /* No more digits than the stamps resolve: result files are mostly samples. */
        samples[i].sm_mhz = round(1e4 * (double)(end->clock - start->clock) / elapsed_ns) / 10.0;
        samples[i].cycles = round(samples[i].time_ns * samples[i].sm_mhz * 1e-3);
    }
}

/* Reads the records of a chunk: first the counted run, where there is one, then the samples. */
static enum tb_status judge_records(struct block *block, struct sample *samples, size_t count,
                                    bool counted, uint64_t not_before_ns) {
    struct block_result *result = block->result;
    const struct cupti_record *records;
    size_t record_count, dropped;
    const enum tb_status status =
        cupti_take(block->device->cupti, &records, &record_count, &dropped, block->error);
    if (status != TB_OK)
        return status;
    /* What ran before the first stamp is the warm-up and the clearing of the stamps. */
    size_t start = cuda_find_stamp(records, record_count, 0);
    if (counted) {
        const size_t end = cuda_find_stamp(records, record_count, STAMPS_PER_SAMPLE);
        if (!cuda_evidence_of(records + start, end - start, dropped, &result->kernels,
                              &result->kernel_count, result->refused, sizeof result->refused))
            return TB_OK;
        start = end;
    }
    const struct chunk_judge judge = {result->kernels, result->kernel_count, block->graphs != NULL,
                                      not_before_ns};
    cuda_judge_chunk(&judge, records + start, record_count - start, dropped, samples, count,
                     result->refused, sizeof result->refused);
    return TB_OK;
}

/* Takes `count` samples behind those there are. Asking CUPTI for its records is what a block spends
 * most time on, so a chunk asks once: its first one also brings the counted run, an eager call
 * whose kernels every sample must repeat. */
static enum tb_status take_chunk(struct block *block, size_t count) {
    struct device_cuda *device = block->device;
    struct block_result *result = block->result;
    struct sample *samples = result->samples + result->count;
    const bool traced = device->timer == TIMER_CUPTI;
    const bool counted = traced && !result->kernels;
    const uint64_t not_before_ns = traced ? cupti_now_ns(device->cupti) : 0;
    const size_t skipped = counted ? 1 : 0;
    const size_t stamp_bytes = STAMPS_PER_SAMPLE * (count + skipped) * sizeof *device->stamps;
    enum tb_status status =
        cuda_check(device, cudaMemsetAsync(device->stamps, 0, stamp_bytes, device->stream),
                   "clearing the stamps", block->error);
    if (status == TB_OK && counted)
        status = enqueue_sample(block, 0, 0, true, NULL);
    for (size_t i = 0; i < count && status == TB_OK; i++) {
        const int32_t draw = (int32_t)((result->count + i) % (size_t)block->request->draws);
        samples[i] = (struct sample){NAN, NAN, NAN, NAN, block->request->block, draw};
        status = enqueue_sample(block, draw, STAMPS_PER_SAMPLE * (i + skipped), false, &samples[i]);
    }
    if (status == TB_OK)
        status = synchronize(block);
    if (status == TB_OK && traced)
        status = judge_records(block, samples, count, counted, not_before_ns);
    if (status != TB_OK || result->refused[0])
        return status;
    status = cuda_check(
        device,
        cudaMemcpy(device->host_stamps, device->stamps, stamp_bytes, cudaMemcpyDeviceToHost),
        "reading the stamps", block->error);
    if (status == TB_OK) {
        add_clocks(device->host_stamps + STAMPS_PER_SAMPLE * skipped, samples, count);
        result->count += count;
    }
    return status;
}

static enum tb_status take_samples(struct block *block) {
    const struct block_request *request = block->request;
    const struct timing_settings *settings = request->settings;
    struct block_result *result = block->result;
    int64_t start = timing_clock_now_ns();
    enum tb_status status = TB_OK;
    while (status == TB_OK && !result->refused[0] && result->count < block->capacity &&
           !(request->stop && *request->stop)) {
        size_t chunk = summary_next_check(settings, result->count, request->draws);
        chunk = chunk < LEAST_CHUNK      ? LEAST_CHUNK
                : chunk >= CHUNK_SAMPLES ? CHUNK_SAMPLES - 1
                                         : chunk;
        if (chunk > block->capacity - result->count)
            chunk = block->capacity - result->count;
        status = take_chunk(block, chunk);
        double seconds = 1e-9 * (double)(timing_clock_now_ns() - start);
        if (request->limit_seconds > 0.0 && seconds > request->limit_seconds)
            result->timed_out = true;
        if (result->timed_out ||
            (settings->block_seconds > 0.0 && seconds >= settings->block_seconds &&
             result->count >= (size_t)request->draws) ||
            summary_block_done(settings, result->samples, result->count, request->draws))
            break;
    }
    return status;
}

static enum tb_status open_graphs(struct block *block) {
    const struct block_request *request = block->request;
    if (request->calls[0].launch != LAUNCH_GRAPH)
        return TB_OK;
    block->graphs = calloc((size_t)request->draws, sizeof(cudaGraphExec_t));
    if (!block->graphs)
        return tb_fail(block->error, TB_NO_MEMORY, "no memory for %d graphs", request->draws);
    enum tb_status status = TB_OK;
    for (int32_t i = 0; i < request->draws && status == TB_OK; i++)
        status = cuda_capture(block->device, &request->calls[i], 1, false, true, &block->graphs[i],
                              block->error);
    return status;
}

/* Turning the records on and off costs more than a short block takes: only where it must be. */
static enum tb_status set_tracing(struct block *block, bool on) {
    struct device_cuda *device = block->device;
    if (device->timer != TIMER_CUPTI || device->tracing == on)
        return TB_OK;
    device->tracing = on;
    return on ? cupti_start(device->cupti, block->error) : cupti_stop(device->cupti, block->error);
}

static enum tb_status run_block(struct block *block) {
    struct block_result *result = block->result;
    const bool first = block->request->warmup_seconds > 0.0;
    enum tb_status status = TB_OK;
    if (first) { /* the cross-check sees no tracing */
        status = set_tracing(block, false);
        if (status == TB_OK)
            status = cuda_events_per_call(block->device, &block->request->calls[0],
                                          &result->events_ns, block->error);
    }
    if (status == TB_OK)
        status = set_tracing(block, true); /* graphs made from here on are traced */
    if (status == TB_OK)
        status = open_graphs(block);
    if (status == TB_OK)
        status = warm_up(block);
    if (status == TB_OK)
        status = take_samples(block);
    for (int32_t i = 0; block->graphs && i < block->request->draws; i++)
        if (block->graphs[i])
            cudaGraphExecDestroy(block->graphs[i]);
    free(block->graphs);
    return status;
}

enum tb_status cuda_time_block(struct device *base, const struct block_request *request,
                               struct block_result *result, struct tb_error *error) {
    struct device_cuda *device = (struct device_cuda *)base;
    memset(result, 0, sizeof *result);
    result->events_ns = NAN;
    if (device->timer == TIMER_DEFAULT)
        return tb_fail(error, TB_INTERNAL, "the device was opened for the gate alone");
    if (request->calls[0].l2 == L2_COLD && device->cold_cycles < 1.5 * device->warm_cycles) {
        snprintf(
            result->refused, sizeof result->refused,
            "l2=cold is not proven here: the probe's loads took %.0f cycles warm, %.0f flushed",
            device->warm_cycles, device->cold_cycles);
        return TB_OK;
    }
    struct block block = {device, request, result, NULL, timing_clock_capacity(request), error};
    result->samples = calloc(block.capacity, sizeof *result->samples);
    if (!result->samples)
        return tb_fail(error, TB_NO_MEMORY, "no memory for %zu samples", block.capacity);
    nvtxRangePushA(request->calls[0].name ? request->calls[0].name : "block");
    enum tb_status status = run_block(&block);
    nvtxRangePop();
    if (status == TB_OK)
        result->conditions = nvml_conditions(device->nvml);
    if (status != TB_OK) {
        free(result->samples);
        free(result->kernels);
        memset(result, 0, sizeof *result);
    } else if (result->refused[0]) {
        result->count = 0;
    }
    return status;
}
