/* Timing by events, tracing off: the cross-check of CUPTI's figures; and what the device needs
 * before anything is timed: the flush of L2, its proof, and the stamps. */
#include "bench/device_cuda.h"

#include "bench/summary.h"

#include <math.h>

enum { MOST_CALLS = 10, LEAST_CALLS = 2, REPLAYS = 3, PROBE_LINES = 4096 };
static const double REPLAY_NS = 1e6; /* a replay is kept about this short */

static enum tb_status replay_ns(struct device_cuda *device, cudaGraphExec_t graph, double *ns,
                                struct tb_error *error) {
    double times[REPLAYS];
    for (int i = -1; i < REPLAYS; i++) { /* the first replay uploads the graph */
        float milliseconds = 0.0f;
        cudaError_t code = cudaEventRecord(device->events[0], device->stream);
        if (code == cudaSuccess)
            code = cudaGraphLaunch(graph, device->stream);
        if (code == cudaSuccess)
            code = cudaEventRecord(device->events[1], device->stream);
        if (code == cudaSuccess)
            code = cudaEventSynchronize(device->events[1]);
        if (code == cudaSuccess)
            code = cudaEventElapsedTime(&milliseconds, device->events[0], device->events[1]);
        if (code != cudaSuccess)
            return cuda_check(device, code, "timing a graph by events", error);
        if (i >= 0)
            times[i] = 1e6 * (double)milliseconds;
    }
    summary_sort(times, REPLAYS);
    *ns = times[REPLAYS / 2];
    return TB_OK;
}

static enum tb_status graph_ns(struct device_cuda *device, const struct timed_call *call,
                               int copies, bool with_run, double *ns, struct tb_error *error) {
    cudaGraphExec_t graph = NULL;
    enum tb_status status = cuda_capture(device, call, copies, true, with_run, &graph, error);
    if (status == TB_OK)
        status = replay_ns(device, graph, ns, error);
    if (graph)
        cudaGraphExecDestroy(graph);
    return status;
}

enum tb_status cuda_events_per_call(struct device_cuda *device, const struct timed_call *call,
                                    double *per_call_ns, struct tb_error *error) {
    double once = 0.0, with = 0.0, without = 0.0;
    enum tb_status status = graph_ns(device, call, 1, true, &once, error);
    if (status != TB_OK)
        return status;
    int copies = (int)(REPLAY_NS / once);
    copies = copies < LEAST_CALLS ? LEAST_CALLS : copies > MOST_CALLS ? MOST_CALLS : copies;
    status = graph_ns(device, call, copies, true, &with, error);
    if (status == TB_OK)
        status = graph_ns(device, call, copies, false, &without, error);
    if (status == TB_OK)
        *per_call_ns = (with - without) / copies;
    return status;
}

static enum tb_status chase(struct device_cuda *device, const uint32_t *memory, float *cycles,
                            bool flush, double *mean, struct tb_error *error) {
    cudaError_t code = cudaSuccess;
    float host = 0.0f;
    if (flush)
        code = cudaMemsetAsync(device->flush, 0xa5, device->flush_bytes, device->stream);
    if (code == cudaSuccess)
        code = cuda_chase_launch(memory, PROBE_LINES, cycles, device->stream);
    if (code == cudaSuccess)
        code = cudaStreamSynchronize(device->stream);
    if (code == cudaSuccess)
        code = cudaMemcpy(&host, cycles, sizeof host, cudaMemcpyDeviceToHost);
    *mean = (double)host;
    return cuda_check(device, code, "probing L2", error);
}

/* A load that misses L2 takes far longer than one that hits: that is the proof of the flush. */
static enum tb_status probe_l2(struct device_cuda *device, struct tb_error *error) {
    uint32_t *memory = NULL;
    float *cycles = NULL;
    enum tb_status status = cuda_check(device, cudaMalloc((void **)&memory, PROBE_LINES * 128),
                                       "taking memory for the L2 probe", error);
    if (status == TB_OK)
        status = cuda_check(device, cudaMalloc((void **)&cycles, sizeof *cycles),
                            "taking memory for the L2 probe", error);
    if (status == TB_OK)
        status = cuda_check(device, cuda_chase_setup(memory, PROBE_LINES, device->stream),
                            "probing L2", error);
    for (int i = 0; i < 2 && status == TB_OK; i++)
        status = chase(device, memory, cycles, false, &device->warm_cycles, error);
    if (status == TB_OK)
        status = chase(device, memory, cycles, true, &device->cold_cycles, error);
    cudaFree(memory);
    cudaFree(cycles);
    return status;
}

static enum tb_status prove_drops(struct device_cuda *device, struct tb_error *error) {
    const struct cupti_record *records;
    size_t count, dropped = 0;
    cupti_starve(device->cupti, true);
    enum tb_status status = cupti_start(device->cupti, error);
    for (int i = 0; i < 4 && status == TB_OK; i++)
        status = cuda_check(device, cuda_stamp_launch(device->stamps, device->stream),
                            "launching a clock stamp", error);
    if (status == TB_OK)
        status = cuda_check(device, cudaStreamSynchronize(device->stream), "a clock stamp", error);
    if (status == TB_OK)
        status = cupti_take(device->cupti, &records, &count, &dropped, error);
    device->drops_proven = dropped > 0;
    cupti_starve(device->cupti, false);
    enum tb_status stopped = cupti_stop(device->cupti, error);
    return status != TB_OK ? status : stopped;
}

enum tb_status cuda_timing_open(struct device_cuda *device, struct tb_error *error) {
    size_t stamp_bytes = sizeof *device->stamps * STAMPS_PER_SAMPLE * CHUNK_SAMPLES;
    device->flush_bytes = (size_t)device->properties.l2CacheSize * 5 / 2;
    enum tb_status status = TB_OK;
    for (int i = 0; i < 2 && status == TB_OK; i++)
        status =
            cuda_check(device, cudaEventCreate(&device->events[i]), "creating an event", error);
    if (status == TB_OK)
        status = cuda_check(device, cudaMalloc(&device->flush, device->flush_bytes),
                            "taking memory to flush L2 with", error);
    if (status == TB_OK)
        status = cuda_check(device, cudaMalloc((void **)&device->stamps, stamp_bytes),
                            "taking memory for the clock stamps", error);
    if (status == TB_OK)
        status = cuda_check(device, cudaMallocHost((void **)&device->host_stamps, stamp_bytes),
                            "taking memory for the clock stamps", error);
    if (status == TB_OK)
        status = probe_l2(device, error);
    if (status == TB_OK && device->timer == TIMER_CUPTI)
        status = prove_drops(device, error);
    return status;
}

void cuda_timing_close(struct device_cuda *device) {
    if (device->lost)
        return;
    for (int i = 0; i < 2; i++)
        if (device->events[i])
            cudaEventDestroy(device->events[i]);
    cudaFree(device->flush);
    cudaFree(device->stamps);
    cudaFreeHost(device->host_stamps);
}
