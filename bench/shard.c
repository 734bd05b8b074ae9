#include "bench/shard.h"

#include "bench/plan_hash.h"
#include "oracle/gumbel_statistics.h"

#include <stdlib.h>
#include <string.h>

/* Nanoseconds of one core for one logit (input, oracle, gate), and of the device for one call.
 * Measured once, rounded; only their relations matter here (docs/scale.md). */
enum {
    INPUT_NS = 15,        /* generating and hashing */
    ORACLE_NS = 35,       /* sorting, weights, exact sum: once for all p */
    JUDGE_NS = 20,        /* one kernel's output brought back, judged and hashed */
    CPU_CALL_NS = 8,      /* one kernel on the CPU */
    CUDA_CALL_NS = 32000, /* one kernel on a GPU, and 1 ns for CUDA_CALL_LOGITS of its logits */
    CUDA_CALL_LOGITS = 36,
    CUDA_CALLS = 2,           /* of a block, for each of its least samples */
    CUDA_BLOCK_NS = 11000000, /* tracing on and off, records, the pass by events */
    CUDA_HOST = 3,            /* a GPU's host takes a third of the host's time above */
    STATISTIC_NS = 100000000, /* any statistic, apart from its noises */
};

/* Tokens whose noise a statistic makes; the two small ones make few. */
static int64_t statistic_noises(const char *name, const struct statistic_size *size) {
    if (!strcmp(name, "heavy_tail"))
        return size->heavy_draws * size->heavy_vocab;
    if (!strcmp(name, "whole_vocabulary"))
        return size->whole_draws * size->whole_vocab;
    return 0;
}

/* 1.5 ns for each of them on the CPU, 5 ps on a GPU. */
static int64_t statistic_ns(const char *name, bool cuda) {
    const int64_t noises = statistic_noises(name, cuda ? &statistic_full : &statistic_cpu);
    return STATISTIC_NS + (cuda ? noises / 200 : noises + noises / 2);
}

static int64_t elements_of(const struct cell *cell) {
    return cell->batch * cell->vocab * cell->draws;
}

static int64_t call_ns(const struct cell *cell, bool cuda) {
    const int64_t elements = cell->batch * cell->vocab;
    return cuda ? CUDA_CALL_NS + elements / CUDA_CALL_LOGITS : elements * CPU_CALL_NS;
}

/* Cells that differ in l2 and launch alone are gated once; they stand side by side. */
static bool gated_before(const struct plan *plan, size_t at) {
    const struct cell *cell = &plan->cells[at], *before = cell - 1;
    return at > 0 && cell->kind != CELL_GUMBEL_STATISTIC && cell->kind == before->kind &&
           cell->topp == before->topp && cell->gumbel == before->gumbel && cell->p == before->p &&
           cell->temperature == before->temperature && cell->draws == before->draws &&
           cell_same_input(cell, before);
}

static int64_t gate_ns(const struct plan *plan, size_t at, bool cuda) {
    const struct cell *cell = &plan->cells[at];
    if (cell->kind == CELL_GUMBEL_STATISTIC)
        return statistic_ns(cell->statistic, cuda);
    if (gated_before(plan, at))
        return 0;
    const bool twice = cell->kind == CELL_TOPP && !strcmp(cell->topp->contract, "conservative");
    return elements_of(cell) * JUDGE_NS / (cuda ? CUDA_HOST : 1) +
           cell->draws * (twice ? 2 : 1) * call_ns(cell, cuda);
}

/* A block ends at its time limit, or once it has max_samples; each draw is called at least once. On
 * a GPU most end by their precision at the least samples, and as many calls again warm up, are
 * counted, or are timed by events. */
static int64_t time_ns(const struct plan *plan, const struct cell *cell, bool cuda) {
    const struct timing_settings *timing = &plan->timing;
    if (!cell->timed)
        return 0;
    const int64_t call = call_ns(cell, cuda);
    const int64_t calls = cuda ? CUDA_CALLS * timing->min_samples : timing->max_samples;
    const int64_t least = call * cell->draws, most = call * calls;
    int64_t block = (int64_t)(timing->block_seconds * 1e9);
    if (block > most || block <= 0)
        block = most;
    if (block < least)
        block = least;
    return timing->blocks * (block + (cuda ? CUDA_BLOCK_NS : 0)) +
           (int64_t)(timing->warmup_seconds * 1e9);
}

void shard_costs(const struct plan *plan, int64_t *cost_ns) {
    const bool cuda = !strcmp(plan->device, "cuda");
    size_t first = 0;
    int64_t greatest = 0;
    for (size_t i = 0; i < plan->count; i++) {
        const struct cell *cell = &plan->cells[i];
        cost_ns[i] = gate_ns(plan, i, cuda) + time_ns(plan, cell, cuda);
        if (i == 0 || !cell_same_input(&plan->cells[first], cell)) {
            first = i;
            greatest = 0;
        }
        if (elements_of(cell) > greatest) { /* most draws of a cell of this input */
            cost_ns[first] +=
                (elements_of(cell) - greatest) * (INPUT_NS + ORACLE_NS) / (cuda ? CUDA_HOST : 1);
            greatest = elements_of(cell);
        }
    }
}

/* Cells of one input, which stand together; a statistic has none and goes alone. */
struct group {
    size_t first, end;
    int64_t cost_ns;
};

static size_t end_of_group(const struct plan *plan, size_t first) {
    size_t end = first + 1;
    while (end < plan->count && cell_same_input(&plan->cells[first], &plan->cells[end]))
        end++;
    return end;
}

size_t shard_inputs(const struct plan *plan) {
    size_t count = 0;
    for (size_t first = 0; first < plan->count; first = end_of_group(plan, first))
        count++;
    return count;
}

static int costlier_first(const void *left, const void *right) {
    const struct group *a = left, *b = right;
    if (a->cost_ns != b->cost_ns)
        return a->cost_ns < b->cost_ns ? 1 : -1;
    return a->first < b->first ? -1 : 1;
}

/* The costliest group goes to the shard that has least so far, the first of equals. */
static void deal(const struct group *groups, size_t group_count, int64_t *load, int32_t count,
                 int32_t *shard_of) {
    for (size_t g = 0; g < group_count; g++) {
        int32_t least = 0;
        for (int32_t s = 1; s < count; s++)
            if (load[s] < load[least])
                least = s;
        load[least] += groups[g].cost_ns;
        for (size_t i = groups[g].first; i < groups[g].end; i++)
            shard_of[i] = least + 1;
    }
}

enum tb_status shard_assign(const struct plan *plan, const int64_t *cost_ns, int32_t count,
                            int32_t *shard_of, struct tb_error *error) {
    const size_t group_count = shard_inputs(plan);
    if (count < 1 || (size_t)count > group_count)
        return tb_fail(error, TB_USAGE,
                       "%d shards of %zu cells that share %zu inputs: cells of one input stay "
                       "together, so take at most %zu shards",
                       count, plan->count, group_count, group_count);
    struct group *groups = calloc(group_count, sizeof *groups);
    int64_t *load = calloc((size_t)count, sizeof *load);
    enum tb_status status = TB_OK;
    if (groups && load) {
        size_t g = 0;
        for (size_t first = 0; first < plan->count; first = groups[g++].end) {
            groups[g] = (struct group){first, end_of_group(plan, first), 0};
            for (size_t i = first; i < groups[g].end; i++)
                groups[g].cost_ns += cost_ns[i] > 0 ? cost_ns[i] : 1;
        }
        qsort(groups, group_count, sizeof *groups, costlier_first);
        deal(groups, group_count, load, count, shard_of);
    } else {
        status = tb_fail(error, TB_NO_MEMORY, "no memory for %zu inputs", group_count);
    }
    free(groups);
    free(load);
    return status;
}

enum tb_status shard_select(struct plan *plan, int32_t index, int32_t count,
                            struct tb_error *error) {
    struct plan_shard shard = {.index = index, .count = count, .cells = plan->count};
    int64_t *cost_ns = calloc(plan->count + 1, sizeof *cost_ns);
    int32_t *shard_of = calloc(plan->count + 1, sizeof *shard_of);
    enum tb_status status = TB_OK;
    if (!cost_ns || !shard_of)
        status = tb_fail(error, TB_NO_MEMORY, "no memory to cut %zu cells", plan->count);
    if (status == TB_OK && (index < 1 || index > count))
        status = tb_fail(error, TB_USAGE, "there is no shard %d of %d", index, count);
    if (status == TB_OK)
        status = plan_hash_names(plan, shard.list_sha256, error);
    if (status == TB_OK) {
        shard_costs(plan, cost_ns);
        status = shard_assign(plan, cost_ns, count, shard_of, error);
    }
    if (status == TB_OK) {
        size_t kept = 0;
        for (size_t i = 0; i < plan->count; i++)
            if (shard_of[i] == index)
                plan->cells[kept++] = plan->cells[i];
        plan->count = kept;
        plan->shard = shard;
    }
    free(cost_ns);
    free(shard_of);
    return status;
}
