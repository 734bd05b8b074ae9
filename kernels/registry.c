/* The one table of variants. */
#include "kernels/gumbel.h"
#include "kernels/topp.h"
#include "kernels/cpu/variants.h"
#ifdef TOPP_WITH_CUDA
#include "kernels/cuda/variants.h"
#endif

#include <string.h>

static const struct topp_variant *const topp_table[] = {
    &topp_cpu_stock,
    &topp_cpu_patched,
    &topp_cpu_patched_fine,
    &topp_cpu_sort,
    &topp_cpu_exact,
    &topp_cpu_floor,
#ifdef TOPP_WITH_CUDA
    &topp_cuda_stock,
    &topp_cuda_patched,
    &topp_cuda_patched_fine,
    &topp_cuda_sort,
    &topp_cuda_exact,
    &topp_cuda_exact_portable,
    &topp_cuda_floor,
#endif
    NULL,
};

static const struct gumbel_variant *const gumbel_table[] = {
    &gumbel_cpu_log,
    &gumbel_cpu_log1p,
    &gumbel_cpu_fp64,
    &gumbel_cpu_murmur,
#ifdef TOPP_WITH_CUDA
    &gumbel_cuda_log,
    &gumbel_cuda_log1p,
    &gumbel_cuda_fp64,
    &gumbel_cuda_murmur,
#endif
    NULL,
};

const struct topp_variant *const *topp_variants(size_t *count) {
    *count = sizeof topp_table / sizeof topp_table[0] - 1;
    return topp_table;
}

const struct gumbel_variant *const *gumbel_variants(size_t *count) {
    *count = sizeof gumbel_table / sizeof gumbel_table[0] - 1;
    return gumbel_table;
}

const struct topp_variant *topp_find(const char *name, enum kernel_device device) {
    for (size_t i = 0; topp_table[i]; i++)
        if (topp_table[i]->device == device && !strcmp(topp_table[i]->name, name))
            return topp_table[i];
    return NULL;
}

const struct gumbel_variant *gumbel_find(const char *name, enum kernel_device device) {
    for (size_t i = 0; gumbel_table[i]; i++)
        if (gumbel_table[i]->device == device && !strcmp(gumbel_table[i]->name, name))
            return gumbel_table[i];
    return NULL;
}
