/* --merge: shards -> one run. */
#include "bench/merge.h"
#include "bench/tools.h"

void tool_say_merged(const struct merge_result *result, const char *out) {
    printf("%zu shards, %zu cells", result->shards, result->cells);
    if (result->runs > 1)
        printf(", %zu devices", result->runs);
    if (!result->unexpected && !result->unmeasured)
        printf(". Everything as expected.\n");
    else
        printf(": %zu against the expectation, %zu without valid samples.\n", result->unexpected,
               result->unmeasured);
    fflush(stdout);
    fprintf(stderr,
            "results: %s%s/results.json, results.tsv, benchmark.json\n"
            "receipt: receipt.json beside them (bench_topp --verify follows it into the shards)\n",
            out, result->runs > 1 ? "/*" : "");
}

int tool_merge(const struct options *options) {
    struct tb_error error = TB_ERROR_INIT;
    struct merge_result result;
    char profile_dir[512];
    enum tb_status status = tool_profile_dir(options, profile_dir, sizeof profile_dir, &error);
    const struct merge_request request = {.dirs = options->dirs,
                                          .dir_count = options->dir_count,
                                          .out_dir = options->out,
                                          .profile_dir = profile_dir,
                                          .profile_dir_wins = options->profile_dir != NULL,
                                          .separate_devices = options->separate_devices,
                                          .force = options->force};
    if (status == TB_OK)
        status = merge_runs(&request, &result, &error);
    if (status != TB_OK)
        return tool_fail(&error);
    tool_say_merged(&result, options->out);
    return tool_finish_output(merge_exit_code(&result));
}
