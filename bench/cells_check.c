/* What must hold of all cells together. */
#include "bench/cells_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum tb_status cells_check_unique(struct builder *b) {
    struct plan *plan = b->plan;
    const char **names = malloc((plan->count + 1) * sizeof *names);
    enum tb_status status = TB_OK;
    if (!names)
        return cells_no_memory(b);
    for (size_t i = 0; i < plan->count; i++)
        names[i] = plan->cells[i].name;
    qsort(names, plan->count, sizeof *names, by_name);
    for (size_t i = 1; status == TB_OK && i < plan->count; i++)
        if (!strcmp(names[i - 1], names[i]))
            status = cells_fail(b, TB_UNREADABLE, "matrix", "stands twice for the cell ", names[i]);
    free(names);
    return status;
}

static bool is_extra(const struct plan_options *options, const struct cell *cell) {
    for (size_t i = 0; i < options->extra_count; i++)
        if ((cell->topp && cell->topp == options->extras[i].variant) ||
            (cell->gumbel && cell->gumbel == options->extras[i].gumbel))
            return true;
    return false;
}

void cells_drop_repeated(struct builder *b) {
    struct plan *plan = b->plan;
    size_t kept = 0;
    for (size_t i = 0; i < plan->count; i++) {
        size_t k = 0;
        if (b->options->family || is_extra(b->options, &plan->cells[i]))
            while (k < kept && strcmp(plan->cells[k].name, plan->cells[i].name) != 0)
                k++;
        else
            k = kept;
        if (k == kept)
            plan->cells[kept++] = plan->cells[i];
    }
    plan->count = kept;
}

enum tb_status cells_check_used(struct builder *b) {
    for (size_t i = 0; i < b->profile->expect_count; i++) {
        char path[32];
        snprintf(path, sizeof path, "expect[%zu]", i);
        if (!b->used[i])
            return cells_fail(b, TB_UNREADABLE, path,
                              "is met by no cell, or an earlier one takes them all", "");
    }
    return TB_OK;
}
