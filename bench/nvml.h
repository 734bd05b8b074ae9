/* NVML, loaded at run time and declared here (its header is often absent): what the GPU was doing
 * while a case was timed. */
#ifndef TOPP_BENCH_NVML_H
#define TOPP_BENCH_NVML_H

#include <jansson.h>
#include <stdbool.h>

struct nvml; /* opaque */

/* NULL when the library or the device (UUID "GPU-...") is not there: figures are then null. */
struct nvml *nvml_open(const char *uuid);
void nvml_close(struct nvml *nvml);

/* {"sm_mhz", "memory_mhz", "power_w", "temperature_c", "throttle": [names]}; a new object; null
 * members for what the driver does not tell. nvml may be NULL. */
json_t *nvml_conditions(struct nvml *nvml);

/* The driver's version ("580.159.04") or NULL. Owned by nvml. */
const char *nvml_driver_version(const struct nvml *nvml);
/* Highest SM and memory clock in MHz, 0 when unknown. */
void nvml_max_clocks(struct nvml *nvml, unsigned *sm_mhz, unsigned *memory_mhz);

#endif
