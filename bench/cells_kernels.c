/* A cell for each kernel: of the registry, and from elsewhere. */
#include "bench/cells_build.h"

#include <stdio.h>
#include <string.h>

/* The cell once in each CUDA mode; a cell that is not timed has no use for more than one. */
static enum tb_status add_modes(struct builder *b, const struct profile_entry *entry,
                                const struct cell *cell) {
    if (b->device == KERNEL_DEVICE_CPU)
        return cells_add(b, cell);
    const size_t l2_count = cell->timed ? entry->modes.l2_count : 1;
    const size_t launch_count = cell->timed ? entry->modes.launch_count : 1;
    enum tb_status status = TB_OK;
    for (size_t i = 0; status == TB_OK && i < l2_count; i++)
        for (size_t k = 0; status == TB_OK && k < launch_count; k++) {
            struct cell one = *cell;
            one.l2 = entry->modes.l2[i];
            one.launch = entry->modes.launch[k];
            status = cells_add(b, &one);
        }
    return status;
}

static size_t variant_count(enum cell_kind kind) {
    size_t count = 0;
    if (kind == CELL_TOPP)
        topp_variants(&count);
    else
        gumbel_variants(&count);
    return count;
}

/* Sets the variant if it is number i of the registry's and the device's; a plan that can only be
 * listed carries the CPU twins. */
static bool set_variant(const struct builder *b, enum cell_kind kind, size_t i, struct cell *cell) {
    const enum kernel_device device = b->plan->listing_only ? KERNEL_DEVICE_CPU : b->device;
    size_t count;
    if (kind == CELL_TOPP)
        cell->topp = topp_variants(&count)[i];
    else
        cell->gumbel = gumbel_variants(&count)[i];
    return (kind == CELL_TOPP ? cell->topp->device : cell->gumbel->device) == device;
}

/* Calls for all extras, or the one of that name; *found: there was one. */
static enum tb_status each_extra(struct builder *b, const struct profile_entry *entry,
                                 const char *name, struct cell *cell, bool *found) {
    enum tb_status status = TB_OK;
    for (size_t i = 0; status == TB_OK && i < b->options->extra_count; i++) {
        const struct plan_extra *extra = &b->options->extras[i];
        struct profile_entry own = *entry;
        if (!extra_fits(extra, entry->kind, b->device, name))
            continue;
        *found = true;
        cell->topp = extra->variant;
        cell->gumbel = extra->gumbel;
        if (extra->launch != LAUNCH_NONE)
            own.modes = (struct profile_modes){
                .l2 = {L2_WARM}, .l2_count = 1, .launch = {extra->launch}, .launch_count = 1};
        status = add_modes(b, &own, cell);
    }
    return status;
}

enum tb_status cells_each_kernel(struct builder *b, const struct profile_entry *entry,
                                 struct cell *cell) {
    enum tb_status status = TB_OK;
    const size_t registered = variant_count(entry->kind);
    const size_t wanted = entry->kernels.all ? 1 : entry->kernels.count;
    bool any = false;
    for (size_t k = 0; status == TB_OK && k < wanted; k++) {
        const char *name = entry->kernels.all ? NULL : entry->kernels.at[k];
        bool found = false;
        if (extra_name(name)) {
            status = each_extra(b, entry, extra_name(name), cell, &found);
            if (status == TB_OK && !found)
                return cells_fail(b, TB_UNREADABLE, "matrix",
                                  "no library of --plugin has, for the device, a variant ", name);
            any = true;
            continue;
        }
        cell->topp = NULL;
        cell->gumbel = NULL;
        for (size_t i = 0; status == TB_OK && i < registered; i++) {
            if (!set_variant(b, entry->kind, i, cell))
                continue;
            const char *known = entry->kind == CELL_TOPP ? cell->topp->name : cell->gumbel->name;
            if (name && strcmp(name, known) != 0)
                continue;
            found = any = true;
            status = add_modes(b, entry, cell);
        }
        if (status == TB_OK && name && !found)
            return cells_fail(b, TB_UNREADABLE, "matrix",
                              "names a variant that this build does not "
                              "have for the device: ",
                              name);
    }
    if (status == TB_OK && !any)
        return cells_fail(b, TB_UNREADABLE, "matrix", "this build has no variant for device ",
                          b->plan->device);
    if (status == TB_OK && !entry_names_extras(entry))
        status = each_extra(b, entry, NULL, cell, &any);
    return status;
}

/* Of the extras: all, or those that the entry names. */
static bool extra_wanted(const struct builder *b, const struct profile_entry *entry,
                         const struct plan_extra *extra) {
    bool wanted = !entry_names_extras(entry);
    for (size_t i = 0; !wanted && i < entry->kernels.count; i++)
        wanted = extra_name(entry->kernels.at[i]) && extra->gumbel &&
                 !strcmp(extra_name(entry->kernels.at[i]), extra->gumbel->name);
    return wanted && extra_fits(extra, CELL_GUMBEL, b->device, NULL);
}

enum tb_status cells_add_statistics(struct builder *b, const struct profile_entry *entry) {
    enum tb_status status = TB_OK;
    for (size_t i = 0; status == TB_OK && i < entry->statistics.count; i++) {
        struct cell cell = {.kind = CELL_GUMBEL_STATISTIC, .seed = b->plan->seed, .draws = 1};
        snprintf(cell.statistic, sizeof cell.statistic, "%.31s", entry->statistics.at[i]);
        for (size_t k = 0; status == TB_OK && k < variant_count(entry->kind); k++) {
            struct cell one = cell;
            if (!set_variant(b, entry->kind, k, &one))
                continue;
            bool wanted = entry->kernels.all;
            for (size_t n = 0; n < entry->kernels.count; n++)
                wanted = wanted || !strcmp(entry->kernels.at[n], one.gumbel->name);
            if (wanted)
                status = cells_add(b, &one);
        }
        for (size_t k = 0; status == TB_OK && k < b->options->extra_count; k++) {
            struct cell one = cell;
            one.gumbel = b->options->extras[k].gumbel;
            if (extra_wanted(b, entry, &b->options->extras[k]))
                status = cells_add(b, &one);
        }
    }
    return status;
}
