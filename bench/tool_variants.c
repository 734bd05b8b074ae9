/* --variants and --version: what this program has in it. */
#include "bench/sources.h"
#include "bench/tools.h"

static const char *device_name(enum kernel_device device) {
    return device == KERNEL_DEVICE_CUDA ? "cuda" : "cpu";
}

static void print_topp(const struct topp_variant *variant) {
    char limit[32] = "any";
    if (variant->max_batch)
        snprintf(limit, sizeof limit, "<= %lld", (long long)variant->max_batch);
    printf("%-7s %-13s %-6s %-13s %-13s %-10s %s\n", "topp", variant->name,
           device_name(variant->device), gate_output_name((enum gate_output)variant->output),
           variant->contract, limit, variant->summary);
}

static void print_gumbel(const struct gumbel_variant *variant) {
    char limit[32] = "any";
    if (variant->max_batch)
        snprintf(limit, sizeof limit, "<= %lld", (long long)variant->max_batch);
    printf("%-7s %-13s %-6s %-13s %-13s %-10s %s\n", "gumbel", variant->name,
           device_name(variant->device), gate_output_name(GATE_IDS), "winner", limit,
           variant->summary);
}

int tool_variants(const struct options *options) {
    struct tb_error error = TB_ERROR_INIT;
    struct plugin_set plugins = {0};
    size_t count;
    if (plugin_set_load(options->plugins, (size_t)options->plugin_count, &plugins, &error) != TB_OK)
        return tool_fail(&error);
    const struct topp_variant *const *topp = topp_variants(&count);
    printf("%-7s %-13s %-6s %-13s %-13s %-10s %s\n", "kind", "kernel", "device", "output",
           "contract", "batch", "summary");
    for (size_t i = 0; i < count; i++)
        print_topp(topp[i]);
    const struct gumbel_variant *const *gumbel = gumbel_variants(&count);
    for (size_t i = 0; i < count; i++)
        print_gumbel(gumbel[i]);
    for (size_t i = 0; i < plugins.extra_count; i++) {
        if (plugins.extras[i].variant)
            print_topp(plugins.extras[i].variant);
        else
            print_gumbel(plugins.extras[i].gumbel);
    }
    const int exit_code = plugins.refused ? tb_exit_code(TB_UNREADABLE) : 0;
    plugin_set_free(&plugins);
    return tool_finish_output(exit_code);
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
