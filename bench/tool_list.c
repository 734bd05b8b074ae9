/* --list: the cells of a plan, and what they are estimated to take. */
#include "bench/shard.h"
#include "bench/tools.h"

#include <stdlib.h>

static double seconds(int64_t ns) {
    return (double)ns * 1e-9;
}

/* One line a shard, then how even they are. */
static void print_shards(const struct plan *plan, const int64_t *cost_ns, const int32_t *shard_of,
                         int32_t count) {
    int64_t greatest = 0, all = 0;
    for (int32_t shard = 1; shard <= count; shard++) {
        int64_t sum = 0;
        size_t cells = 0;
        for (size_t i = 0; i < plan->count; i++)
            if (shard_of[i] == shard) {
                sum += cost_ns[i];
                cells++;
            }
        printf("# shard %d/%d: %zu cells, %.3f s\n", shard, count, cells, seconds(sum));
        greatest = sum > greatest ? sum : greatest;
        all += sum;
    }
    printf("# all: %zu cells, %.3f s; the longest shard is %.3f times the mean\n", plan->count,
           seconds(all), all ? (double)greatest * count / (double)all : 1.0);
}

static enum tb_status print_plan(const struct options *options, const struct plan *plan,
                                 struct tb_error *error) {
    const int32_t count = options->shard_count ? options->shard_count : 1;
    int64_t *cost_ns = calloc(plan->count + 1, sizeof *cost_ns);
    int32_t *shard_of = calloc(plan->count + 1, sizeof *shard_of);
    enum tb_status status = TB_OK;
    if (!cost_ns || !shard_of)
        status = tb_fail(error, TB_NO_MEMORY, "no memory for %zu cells", plan->count);
    if (status == TB_OK) {
        shard_costs(plan, cost_ns);
        status = shard_assign(plan, cost_ns, count, shard_of, error);
    }
    for (size_t i = 0; status == TB_OK && i < plan->count; i++) {
        if (options->shard_count && shard_of[i] != options->shard_index)
            continue;
        if (options->cost)
            printf("%.3f\t%s\n", seconds(cost_ns[i]), plan->cells[i].name);
        else
            puts(plan->cells[i].name);
    }
    if (status == TB_OK && options->cost)
        print_shards(plan, cost_ns, shard_of, count);
    free(cost_ns);
    free(shard_of);
    return status;
}

int tool_list(const struct options *options) {
    struct tb_error error = TB_ERROR_INIT;
    struct tool_plan resolved = {0};
    const enum kernel_device device = tool_pick_device(options);
    const bool any_device = options->device == CHOOSE_AUTO;
    enum tb_status status = tool_resolve_whole(options, device, any_device, &resolved, &error);
    if (status == TB_OK)
        status = print_plan(options, &resolved.plan, &error);
    const int exit_code = resolved.plugins.refused ? tb_exit_code(TB_UNREADABLE) : 0;
    tool_plan_free(&resolved);
    return status == TB_OK ? tool_finish_output(exit_code) : tool_fail(&error);
}
