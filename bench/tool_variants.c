/* --variants and --version: what this program has in it. */
#include "bench/sources.h"
#include "bench/tools.h"

static const char *device_name(enum kernel_device device) {
    return device == KERNEL_DEVICE_CUDA ? "cuda" : "cpu";
}

int tool_variants(const struct options *options) {
    (void)options;
    size_t count;
    const struct topp_variant *const *topp = topp_variants(&count);
    printf("%-7s %-13s %-6s %-13s %-10s %s\n", "kind", "kernel", "device", "contract", "batch",
           "summary");
    for (size_t i = 0; i < count; i++) {
        char limit[32] = "any";
        if (topp[i]->max_batch)
            snprintf(limit, sizeof limit, "<= %lld", (long long)topp[i]->max_batch);
        printf("%-7s %-13s %-6s %-13s %-10s %s\n", "topp", topp[i]->name,
               device_name(topp[i]->device), topp[i]->contract, limit, topp[i]->summary);
    }
    const struct gumbel_variant *const *gumbel = gumbel_variants(&count);
    for (size_t i = 0; i < count; i++)
        printf("%-7s %-13s %-6s %-13s %-10s %s\n", "gumbel", gumbel[i]->name,
               device_name(gumbel[i]->device), "winner", "any", gumbel[i]->summary);
    return tool_finish_output(0);
}

int tool_version(const struct options *options) {
    (void)options;
    const struct build_info *build = &topp_build;
    printf("bench_topp %s\n", build->version);
    printf("commit: %s\n", *build->commit ? build->commit : "unknown (built outside git)");
    printf("built: %s, %s, %s\n", build->build_type, build->c_compiler, build->c_flags);
    printf("cuda: %s%s%s\n", *build->cuda_compiler ? build->cuda_compiler : "not built in",
           *build->cuda_flags ? ", " : "", build->cuda_flags);
    return tool_finish_output(0);
}
