/* Stands in for the CUDA device where this was built without nvcc. */
#include "bench/device.h"

#include <stdio.h>

static const char missing[] = "built without CUDA (no nvcc was found)";

bool device_cuda_usable(char *why, size_t why_bytes) {
    if (why)
        snprintf(why, why_bytes, "%s", missing);
    return false;
}

int32_t device_cuda_count(void) {
    return 0;
}

enum tb_status device_cuda_open(const struct device_options *options, struct device **device,
                                struct tb_error *error) {
    (void)options;
    *device = NULL;
    return tb_fail(error, TB_UNAVAILABLE, "%s: use --device cpu, or build again with nvcc on PATH",
                   missing);
}
