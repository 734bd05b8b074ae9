/* What a cell is called, and what the profile expects of it. */
#include "bench/cells.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

bool profile_has_whole(const struct profile_whole *list, int64_t value) {
    for (size_t i = 0; i < list->count; i++)
        if (list->at[i] == value)
            return true;
    return false;
}

static bool expect_meets(const struct profile_expect *expect, const struct cell *cell,
                         const char *kernel, const char *family) {
    if (fnmatch(expect->kernel, kernel, 0) || fnmatch(expect->family, family, 0))
        return false;
    if (expect->vocab.count && !profile_has_whole(&expect->vocab, cell->vocab))
        return false;
    if (expect->batch.count && !profile_has_whole(&expect->batch, cell->batch))
        return false;
    if (expect->p.count == 0)
        return true;
    for (size_t i = 0; cell->kind == CELL_TOPP && i < expect->p.count; i++)
        if (expect->p.at[i] == cell->p)
            return true;
    return false;
}

void cell_set_expectation(const struct profile *profile, struct cell *cell, bool *used) {
    const char *kernel = cell->kind == CELL_TOPP ? cell->topp->name : cell->gumbel->name;
    char family[FAMILY_TEXT_BYTES];
    if (cell->kind == CELL_GUMBEL_STATISTIC)
        snprintf(family, sizeof family, "statistic=%s", cell->statistic);
    else
        snprintf(family, sizeof family, "%s", cell->family.text);
    cell->expect = EXPECT_ACCEPT;
    for (size_t i = 0; i < profile->expect_count; i++) {
        const struct profile_expect *expect = &profile->expects[i];
        if (!expect_meets(expect, cell, kernel, family))
            continue;
        used[i] = true;
        cell->expect = expect->expect;
        cell->either_share = expect->share;
        snprintf(cell->expect_rule, sizeof cell->expect_rule, "%s", expect->rule);
        snprintf(cell->expect_why, sizeof cell->expect_why, "%s", expect->why);
        return;
    }
}

bool cell_set_name(struct cell *cell, const struct plan *plan) {
    char stride[32] = "", modes[40] = "";
    int length;
    if (cell->stride != cell->vocab)
        snprintf(stride, sizeof stride, "/stride:%lld", (long long)cell->stride);
    if (cell->l2 != L2_NONE)
        snprintf(modes, sizeof modes, "/l2:%s/launch:%s", cell_l2_name(cell->l2),
                 cell_launch_name(cell->launch));
    if (cell->kind == CELL_TOPP)
        length = snprintf(cell->name, sizeof cell->name,
                          "topp/%s/%s/vocab:%lld/batch:%lld%s/p:%s/device:%s%s", cell->topp->name,
                          cell->family.text, (long long)cell->vocab, (long long)cell->batch, stride,
                          cell->p_text, plan->device, modes);
    else if (cell->kind == CELL_GUMBEL)
        length = snprintf(cell->name, sizeof cell->name,
                          "gumbel/%s/%s/vocab:%lld/batch:%lld%s/temperature:%s/device:%s%s",
                          cell->gumbel->name, cell->family.text, (long long)cell->vocab,
                          (long long)cell->batch, stride, cell->p_text, plan->device, modes);
    else
        length = snprintf(cell->name, sizeof cell->name, "gumbel/%s/statistic=%s/device:%s",
                          cell->gumbel->name, cell->statistic, plan->device);
    return length > 0 && (size_t)length < sizeof cell->name;
}
