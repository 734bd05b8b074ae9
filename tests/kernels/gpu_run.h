/* Runs CUDA top-p variants on host rows and compares with the oracle; used by the GPU programs. */
#ifndef TOPP_TESTS_KERNELS_GPU_RUN_H
#define TOPP_TESTS_KERNELS_GPU_RUN_H

#include "kernels/topp.h"
#include "oracle/nucleus.h"

#include <stdbool.h>
#include <stdint.h>

/* Rows on the host, packed or strided. */
struct gpu_case {
    const char *name;
    const float *rows; /* [batch, stride] */
    const float *p;    /* [batch] */
    int64_t batch, vocab, stride;
    float mask_value;
    int32_t misaligned;                   /* elements by which the device copy is shifted */
    const struct topp_boundary *boundary; /* [batch], host, for `floor`; NULL for the others */
};

struct gpu_count {
    int64_t rows, certified, equal, escalated, cases;
};

enum gpu_launch { GPU_STREAM, GPU_GRAPH };

/* Runs the variant once on a fresh copy; out [batch, stride] and escalated [batch] (may be NULL)
 * are host memory. Exits with a message on a CUDA error. */
void gpu_run(const struct topp_variant *variant, const struct gpu_case *the_case,
             enum gpu_launch launch, float *out, uint32_t *escalated);

/* Compares out with the oracle's rows, bit for bit, padding included; prints the first difference.
 * Adds to count. True when every certified row is equal. */
bool gpu_compare(const struct gpu_case *the_case, const struct nucleus *nucleus, const float *out,
                 struct gpu_count *count);

/* Oracle, run, compare. */
bool gpu_check(const struct topp_variant *variant, const struct gpu_case *the_case,
               enum gpu_launch launch, struct gpu_count *count);

void gpu_require(int code, const char *what);
bool gpu_present(void);

#endif
