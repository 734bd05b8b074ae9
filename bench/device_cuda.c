/* The CUDA device: memory, single launches, and what it says of itself. Timing: timing_cuda.c. */
#include "bench/device_cuda.h"

#include "bench/timing_clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum tb_status cuda_check(struct device_cuda *device, cudaError_t code, const char *what,
                          struct tb_error *error) {
    if (code == cudaSuccess)
        return TB_OK;
    cudaGetLastError(); /* clears what can be cleared */
    if (code == cudaErrorMemoryAllocation)
        return tb_fail(error, TB_NO_MEMORY, "%s: the GPU's memory does not suffice", what);
    device->lost = true;
    return tb_fail(error, TB_INTERNAL, "%s: %s (CUDA error %d)", what, cudaGetErrorString(code),
                   (int)code);
}

static void cuda_close(struct device *base) {
    struct device_cuda *device = (struct device_cuda *)base;
    if (!device)
        return;
    if (device->cupti)
        cupti_close(device->cupti);
    cuda_timing_close(device);
    if (device->stream && !device->lost)
        cudaStreamDestroy(device->stream);
    nvml_close(device->nvml);
    free(device);
}

static enum tb_status cuda_alloc(struct device *base, size_t bytes, void **memory,
                                 struct tb_error *error) {
    return cuda_check((struct device_cuda *)base, cudaMalloc(memory, bytes ? bytes : 256),
                      "taking GPU memory", error);
}

static void cuda_free(struct device *base, void *memory) {
    if (!((struct device_cuda *)base)->lost)
        cudaFree(memory);
}

/* A copy from pageable memory may return while its last part is still on the way, and the stream
 * does not wait for the default one: everything goes through the stream, and is waited for. */
static enum tb_status copy_and_wait(struct device_cuda *device, void *to, const void *from,
                                    size_t bytes, enum cudaMemcpyKind kind, const char *what,
                                    struct tb_error *error) {
    cudaError_t code = cudaMemcpyAsync(to, from, bytes, kind, device->stream);
    if (code == cudaSuccess)
        code = cudaStreamSynchronize(device->stream);
    return cuda_check(device, code, what, error);
}

static enum tb_status cuda_upload(struct device *base, void *to, const void *from_host,
                                  size_t bytes, struct tb_error *error) {
    return copy_and_wait((struct device_cuda *)base, to, from_host, bytes, cudaMemcpyHostToDevice,
                         "copying to the GPU", error);
}

static enum tb_status cuda_download(struct device *base, void *to_host, const void *from,
                                    size_t bytes, struct tb_error *error) {
    return copy_and_wait((struct device_cuda *)base, to_host, from, bytes, cudaMemcpyDeviceToHost,
                         "copying from the GPU", error);
}

static int cuda_copy_async(struct device *base, void *to, const void *from, size_t bytes,
                           void *stream) {
    cudaStream_t own = ((struct device_cuda *)base)->stream;
    return (int)cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                                stream ? (cudaStream_t)stream : own);
}

static const char *cuda_error_text(struct device *base, int code) {
    (void)base;
    switch (code) {
    case KERNEL_UNSUPPORTED:
        return "shape past the variant's limits";
    case KERNEL_WORKSPACE:
        return "workspace too small";
    }
    return cudaGetErrorString((cudaError_t)code);
}

static enum tb_status cuda_run_once(struct device *base, const struct timed_call *call,
                                    double seconds, bool *timed_out, struct tb_error *error) {
    struct device_cuda *device = (struct device_cuda *)base;
    *timed_out = false;
    int status = call->prepare ? call->prepare(call->context, device->stream) : 0;
    if (status == 0)
        status = call->run(call->context, device->stream);
    if (status != 0)
        return tb_fail(error, TB_INTERNAL, "%s returned %d: %s", call->name, status,
                       cuda_error_text(base, status));
    int64_t end = timing_clock_now_ns() + (int64_t)(1e9 * seconds);
    cudaError_t code;
    for (unsigned pause_us = 0; (code = cudaStreamQuery(device->stream)) == cudaErrorNotReady;) {
        if (seconds > 0.0 && timing_clock_now_ns() > end) {
            /* A running kernel cannot be taken back: this process is done with the device. */
            device->lost = *timed_out = true;
            return TB_OK;
        }
        if (pause_us)
            usleep(pause_us);
        pause_us = pause_us < 200 ? pause_us + 5 : 200;
    }
    return cuda_check(device, code, call->name, error);
}

static json_t *text_or_null(const char *text) {
    return text ? json_string(text) : json_null();
}

static json_t *cuda_describe(struct device *base) {
    struct device_cuda *device = (struct device_cuda *)base;
    const struct cudaDeviceProp *properties = &device->properties;
    int driver = 0, runtime = 0;
    unsigned sm_mhz = 0, memory_mhz = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    nvml_max_clocks(device->nvml, &sm_mhz, &memory_mhz);
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:i, s:s, s:i, s:i, s:I, s:I, s:i, s:i}", "kind", "cuda", "model",
        properties->name, "uuid", device->uuid, "sm_count", properties->multiProcessorCount,
        "compute_capability", "", "max_sm_mhz", (int)sm_mhz, "max_memory_mhz", (int)memory_mhz,
        "memory_bytes", (json_int_t)properties->totalGlobalMem, "l2_bytes",
        (json_int_t)properties->l2CacheSize, "cuda_driver", driver, "cuda_runtime", runtime);
    char capability[16];
    snprintf(capability, sizeof capability, "%d.%d", properties->major, properties->minor);
    json_object_set_new(object, "compute_capability", json_string(capability));
    json_object_set_new(object, "driver", text_or_null(nvml_driver_version(device->nvml)));
    json_object_set_new(object, "timer",
                        text_or_null(device->timer == TIMER_CUPTI    ? "cupti"
                                     : device->timer == TIMER_EVENTS ? "events"
                                                                     : NULL));
    json_object_set_new(object, "cupti",
                        text_or_null(device->cupti ? cupti_version_text(device->cupti) : NULL));
    json_object_set_new(object, "cupti_drop_counter_proven",
                        device->cupti ? json_boolean(device->drops_proven) : json_null());
    json_object_set_new(object, "l2_probe_warm_cycles",
                        device->flush ? json_real(device->warm_cycles) : json_null());
    json_object_set_new(object, "l2_probe_cold_cycles",
                        device->flush ? json_real(device->cold_cycles) : json_null());
    json_object_set_new(object, "l2_flush_bytes",
                        device->flush ? json_integer((json_int_t)device->flush_bytes)
                                      : json_null());
    return object;
}

static const struct device_ops cuda_ops = {
    .kind = "cuda",
    .close = cuda_close,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .upload = cuda_upload,
    .download = cuda_download,
    .copy_async = cuda_copy_async,
    .run_once = cuda_run_once,
    .time_block = cuda_time_block,
    .describe = cuda_describe,
    .error_text = cuda_error_text,
};

static void format_uuid(const cudaUUID_t *uuid, char *text, size_t text_bytes) {
    const unsigned char *b = (const unsigned char *)uuid->bytes;
    snprintf(text, text_bytes,
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
}

bool device_cuda_usable(char *why, size_t why_bytes) {
    int count = 0, driver = 0;
    cudaError_t code = cudaGetDeviceCount(&count);
    if (code == cudaSuccess && count > 0)
        return true;
    cudaGetLastError();
    if (why) {
        if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
            snprintf(why, why_bytes, "no CUDA driver is installed here");
        else
            snprintf(why, why_bytes, "no CUDA device: %s",
                     code == cudaSuccess ? "none is visible" : cudaGetErrorString(code));
    }
    return false;
}

int32_t device_cuda_count(void) {
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess)
        return count;
    cudaGetLastError();
    return 0;
}

static enum tb_status open_device(struct device_cuda *device, const struct device_options *options,
                                  struct tb_error *error) {
    enum tb_status status =
        cuda_check(device, cudaSetDevice(options->index), "selecting the GPU", error);
    if (status == TB_OK)
        status = cuda_check(device, cudaGetDeviceProperties(&device->properties, options->index),
                            "reading the GPU's properties", error);
    if (status != TB_OK)
        return status;
    format_uuid(&device->properties.uuid, device->uuid, sizeof device->uuid);
    device->base.sm_count =
        options->sm_count > 0 ? options->sm_count : device->properties.multiProcessorCount;
    device->nvml = nvml_open(device->uuid);
    if (!options->gate_only) {
        device->timer = options->timer == TIMER_DEFAULT ? TIMER_CUPTI : options->timer;
        if (device->timer == TIMER_CUPTI)
            status = cupti_open(&device->cupti, error);
    }
    if (status == TB_OK)
        status =
            cuda_check(device, cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking),
                       "creating a stream", error);
    if (status == TB_OK && !options->gate_only)
        status = cuda_timing_open(device, error);
    return status;
}

enum tb_status device_cuda_open(const struct device_options *options, struct device **out,
                                struct tb_error *error) {
    char why[128];
    int count = 0;
    *out = NULL;
    if (!device_cuda_usable(why, sizeof why))
        return tb_fail(error, TB_UNAVAILABLE, "%s: use --device cpu, or run on a machine with one",
                       why);
    cudaGetDeviceCount(&count);
    if (options->index < 0 || options->index >= count)
        return tb_fail(error, TB_UNAVAILABLE, "there is no GPU %d here: 0 to %d are visible",
                       options->index, count - 1);
    if (options->timer == TIMER_CLOCK)
        return tb_fail(error, TB_USAGE, "the steady clock times the CPU device alone");
    struct device_cuda *device = calloc(1, sizeof *device);
    if (!device)
        return tb_fail(error, TB_NO_MEMORY, "no memory for the device");
    device->base.ops = &cuda_ops;
    device->base.kind = KERNEL_DEVICE_CUDA;
    device->base.visible = count;
    enum tb_status status = open_device(device, options, error);
    if (status != TB_OK) {
        cuda_close(&device->base);
        return status;
    }
    *out = &device->base;
    return TB_OK;
}
