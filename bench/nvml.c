#include "bench/nvml.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Constants of NVML's public interface. */
enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, TEMPERATURE_GPU = 0, VERSION_BYTES = 80 };

struct nvml {
    void *library, *device;
    char driver[VERSION_BYTES];
    int (*shutdown)(void);
    int (*clock)(void *device, int type, unsigned *mhz);
    int (*max_clock)(void *device, int type, unsigned *mhz);
    int (*power)(void *device, unsigned *milliwatts);
    int (*temperature)(void *device, int sensor, unsigned *celsius);
    int (*reasons)(void *device, unsigned long long *mask);
};

static const struct {
    unsigned long long bit;
    const char *name;
} reason_names[] = {
    {0x1, "gpu_idle"},    {0x2, "applications_clocks"}, {0x4, "sw_power_cap"},
    {0x8, "hw_slowdown"}, {0x10, "sync_boost"},         {0x20, "sw_thermal"},
    {0x40, "hw_thermal"}, {0x80, "hw_power_brake"},     {0x100, "display_clocks"},
};

static void bind_symbol(void *library, const char *name, void *slot) {
    void *symbol = dlsym(library, name);
    memcpy(slot, &symbol, sizeof symbol);
}

struct nvml *nvml_open(const char *uuid) {
    struct nvml *nvml = calloc(1, sizeof *nvml);
    if (!nvml)
        return NULL;
    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*init)(void) = NULL;
    int (*by_uuid)(const char *, void **) = NULL;
    int (*driver)(char *, unsigned) = NULL;
    if (nvml->library) {
        bind_symbol(nvml->library, "nvmlInit_v2", &init);
        bind_symbol(nvml->library, "nvmlShutdown", &nvml->shutdown);
        bind_symbol(nvml->library, "nvmlDeviceGetHandleByUUID", &by_uuid);
        bind_symbol(nvml->library, "nvmlSystemGetDriverVersion", &driver);
        bind_symbol(nvml->library, "nvmlDeviceGetClockInfo", &nvml->clock);
        bind_symbol(nvml->library, "nvmlDeviceGetMaxClockInfo", &nvml->max_clock);
        bind_symbol(nvml->library, "nvmlDeviceGetPowerUsage", &nvml->power);
        bind_symbol(nvml->library, "nvmlDeviceGetTemperature", &nvml->temperature);
        bind_symbol(nvml->library, "nvmlDeviceGetCurrentClocksEventReasons", &nvml->reasons);
        if (!nvml->reasons)
            bind_symbol(nvml->library, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml->reasons);
    }
    if (!init || !by_uuid || init() != 0) {
        if (nvml->library)
            dlclose(nvml->library);
        free(nvml);
        return NULL;
    }
    if (by_uuid(uuid, &nvml->device) != 0) {
        nvml_close(nvml);
        return NULL;
    }
    if (!driver || driver(nvml->driver, VERSION_BYTES) != 0)
        nvml->driver[0] = '\0';
    return nvml;
}

void nvml_close(struct nvml *nvml) {
    if (!nvml)
        return;
    if (nvml->shutdown)
        nvml->shutdown();
    dlclose(nvml->library);
    free(nvml);
}

static json_t *figure(int status, unsigned value, double scale) {
    if (status != 0)
        return json_null();
    return scale == 1.0 ? json_integer((json_int_t)value) : json_real((double)value * scale);
}

json_t *nvml_conditions(struct nvml *nvml) {
    json_t *object = json_object();
    unsigned value = 0;
    int status;
    status = nvml && nvml->clock ? nvml->clock(nvml->device, CLOCK_SM, &value) : 1;
    json_object_set_new(object, "sm_mhz", figure(status, value, 1.0));
    status = nvml && nvml->clock ? nvml->clock(nvml->device, CLOCK_MEMORY, &value) : 1;
    json_object_set_new(object, "memory_mhz", figure(status, value, 1.0));
    status = nvml && nvml->power ? nvml->power(nvml->device, &value) : 1;
    json_object_set_new(object, "power_w", figure(status, value, 1e-3));
    status =
        nvml && nvml->temperature ? nvml->temperature(nvml->device, TEMPERATURE_GPU, &value) : 1;
    json_object_set_new(object, "temperature_c", figure(status, value, 1.0));
    unsigned long long mask = 0;
    if (!nvml || !nvml->reasons || nvml->reasons(nvml->device, &mask) != 0) {
        json_object_set_new(object, "throttle", json_null());
        return object;
    }
    json_t *reasons = json_array();
    for (size_t i = 0; i < sizeof reason_names / sizeof reason_names[0]; i++)
        if (mask & reason_names[i].bit)
            json_array_append_new(reasons, json_string(reason_names[i].name));
    json_object_set_new(object, "throttle", reasons);
    return object;
}

const char *nvml_driver_version(const struct nvml *nvml) {
    return nvml && nvml->driver[0] ? nvml->driver : NULL;
}

void nvml_max_clocks(struct nvml *nvml, unsigned *sm_mhz, unsigned *memory_mhz) {
    *sm_mhz = *memory_mhz = 0;
    if (!nvml || !nvml->max_clock)
        return;
    if (nvml->max_clock(nvml->device, CLOCK_SM, sm_mhz) != 0)
        *sm_mhz = 0;
    if (nvml->max_clock(nvml->device, CLOCK_MEMORY, memory_mhz) != 0)
        *memory_mhz = 0;
}
