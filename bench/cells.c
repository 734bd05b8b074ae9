#include "bench/cells.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS_MOST = 200000, BATCH_OF_ONE_DRAW = 16 };

/* One input matrix that cells share. */
struct input_key {
    const struct family *family;
    int64_t vocab, batch, padding;
};

struct builder {
    const struct profile *profile;
    const struct plan_options *options;
    struct plan *plan;
    enum kernel_device device;
    struct family replacement; /* options->family, parsed */
    struct input_key *inputs;
    size_t input_count, input_capacity, cell_capacity;
    bool used[PROFILE_MOST_EXPECT]; /* which expectations some cell met */
    struct tb_error *error;
};

static enum tb_status no_memory(struct builder *b) {
    return tb_fail(b->error, TB_NO_MEMORY, "no memory for the plan");
}

static enum tb_status fail_at(const struct builder *b, enum tb_status code, const char *path,
                              const char *message, const char *detail) {
    struct json_place place = json_source_root(&b->profile->source);
    snprintf(place.path, sizeof place.path, "%s", path);
    struct json_source source = b->profile->source; /* for the caller's error struct */
    source.error = b->error;
    place.source = &source;
    return json_fail(&place, code, "%s%s", message, detail);
}

static size_t family_count(const struct builder *b, const struct profile_entry *entry) {
    return b->options->family ? 1 : entry->family_count;
}

static const struct family *family_at(const struct builder *b, const struct profile_entry *entry,
                                      size_t i) {
    return b->options->family ? &b->replacement : &entry->families[i];
}

/* The vocabularies of a family in an entry: a captured one has its file's alone. */
static enum tb_status vocabularies(struct builder *b, const struct profile_entry *entry,
                                   size_t entry_index, const struct family *family,
                                   struct profile_whole *out) {
    char path[1024], where[64];
    int64_t rows = 0;
    if (family->kind != FAMILY_CAPTURED) {
        *out = entry->vocab;
        return TB_OK;
    }
    struct tb_error defect = TB_ERROR_INIT;
    snprintf(where, sizeof where, "matrix[%zu].families", entry_index);
    if (!b->options->captured_dir)
        return fail_at(b, TB_USAGE, where, "no folder of captured logits is given for ",
                       family->text);
    snprintf(path, sizeof path, "%s/%s.npy", b->options->captured_dir, family->file);
    out->count = 1;
    const enum tb_status status = npy_shape(path, &rows, &out->at[0], &defect);
    if (status != TB_OK) {
        char text[1024];
        tb_error_text(&defect, text, sizeof text);
        return fail_at(b, status, where, "", text);
    }
    if (out->at[0] > b->profile->limits.max_vocab)
        return fail_at(b, TB_UNREADABLE, where,
                       "its vocabulary is past limits.max_vocab: ", family->text);
    return TB_OK;
}

static bool same_input(const struct input_key *a, const struct input_key *b) {
    return a->vocab == b->vocab && a->batch == b->batch && a->padding == b->padding &&
           !strcmp(a->family->text, b->family->text);
}

static enum tb_status add_input(struct builder *b, const struct input_key *key) {
    for (size_t i = b->input_count; i-- > 0;)
        if (same_input(&b->inputs[i], key))
            return TB_OK;
    if (b->input_count == b->input_capacity) {
        const size_t capacity = b->input_capacity ? 2 * b->input_capacity : 64;
        struct input_key *grown = realloc(b->inputs, capacity * sizeof *grown);
        if (!grown)
            return no_memory(b);
        b->inputs = grown;
        b->input_capacity = capacity;
    }
    b->inputs[b->input_count++] = *key;
    return TB_OK;
}

static enum tb_status collect_inputs(struct builder *b) {
    for (size_t e = 0; e < b->profile->entry_count; e++) {
        const struct profile_entry *entry = &b->profile->entries[e];
        if (entry->kind == CELL_GUMBEL_STATISTIC)
            continue;
        for (size_t f = 0; f < family_count(b, entry); f++) {
            const struct family *family = family_at(b, entry, f);
            struct profile_whole vocab = {.count = 0};
            enum tb_status status = vocabularies(b, entry, e, family, &vocab);
            for (size_t v = 0; status == TB_OK && v < vocab.count; v++)
                for (size_t r = 0; status == TB_OK && r < entry->batch.count; r++) {
                    const struct input_key key = {family, vocab.at[v], entry->batch.at[r],
                                                  entry->padding};
                    status = add_input(b, &key);
                }
            if (status != TB_OK)
                return status;
        }
    }
    return TB_OK;
}

static bool entry_has(const struct builder *b, const struct profile_entry *entry,
                      const struct input_key *key) {
    if (entry->kind == CELL_GUMBEL_STATISTIC || entry->padding != key->padding ||
        !profile_has_whole(&entry->batch, key->batch))
        return false;
    for (size_t f = 0; f < family_count(b, entry); f++) {
        const struct family *family = family_at(b, entry, f);
        if (!strcmp(family->text, key->family->text))
            return family->kind == FAMILY_CAPTURED || profile_has_whole(&entry->vocab, key->vocab);
    }
    return false;
}

/* Adds a copy of the cell, named and with its expectation. */
static enum tb_status add_cell(struct builder *b, const struct cell *cell) {
    struct plan *plan = b->plan;
    if (plan->count == CELLS_MOST)
        return fail_at(b, TB_UNREADABLE, "matrix", "stands for more than 200000 cells", "");
    if (plan->count == b->cell_capacity) {
        const size_t capacity = b->cell_capacity ? 2 * b->cell_capacity : 128;
        struct cell *grown = realloc(plan->cells, capacity * sizeof *grown);
        if (!grown)
            return no_memory(b);
        plan->cells = grown;
        b->cell_capacity = capacity;
    }
    struct cell *added = &plan->cells[plan->count++];
    *added = *cell;
    cell_set_expectation(b->profile, added, b->used);
    if (!cell_set_name(added, plan))
        return fail_at(b, TB_UNREADABLE, "matrix", "a cell's name is too long: ", added->name);
    if (added->kind != CELL_TOPP)
        added->p_text[0] = '\0'; /* it held the temperature's text until here */
    return TB_OK;
}

/* The cell once in each CUDA mode; a cell that is not timed has no use for more than one. */
static enum tb_status add_modes(struct builder *b, const struct profile_entry *entry,
                                const struct cell *cell) {
    if (b->device == KERNEL_DEVICE_CPU)
        return add_cell(b, cell);
    const size_t l2_count = cell->timed ? entry->modes.l2_count : 1;
    const size_t launch_count = cell->timed ? entry->modes.launch_count : 1;
    enum tb_status status = TB_OK;
    for (size_t i = 0; status == TB_OK && i < l2_count; i++)
        for (size_t k = 0; status == TB_OK && k < launch_count; k++) {
            struct cell one = *cell;
            one.l2 = entry->modes.l2[i];
            one.launch = entry->modes.launch[k];
            status = add_cell(b, &one);
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

/* Calls for each kernel of the entry, in its order ("all": the registry's), then for the extras
 * unless the entry names its own. */
static enum tb_status each_kernel(struct builder *b, const struct profile_entry *entry,
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
                return fail_at(b, TB_UNREADABLE, "matrix",
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
            return fail_at(b, TB_UNREADABLE, "matrix",
                           "names a variant that this build does not "
                           "have for the device: ",
                           name);
    }
    if (status == TB_OK && !any)
        return fail_at(b, TB_UNREADABLE, "matrix", "this build has no variant for device ",
                       b->plan->device);
    if (status == TB_OK && !entry_names_extras(entry))
        status = each_extra(b, entry, NULL, cell, &any);
    return status;
}

static void cell_of_input(const struct builder *b, const struct profile_entry *entry,
                          const struct input_key *key, struct cell *cell) {
    memset(cell, 0, sizeof *cell);
    cell->kind = entry->kind;
    cell->family = *key->family;
    cell->vocab = key->vocab;
    cell->batch = key->batch;
    cell->stride = key->vocab + key->padding;
    cell->seed = b->plan->seed;
    cell->timed = entry->timed && !family_is_hazard(key->family);
    /* Rows of a flat input are all alike: more draws would say nothing. */
    const bool several =
        cell->timed && cell->batch < BATCH_OF_ONE_DRAW && cell->family.kind != FAMILY_FLAT;
    cell->draws = several ? b->profile->draws : 1;
}

static enum tb_status add_entry(struct builder *b, const struct profile_entry *entry,
                                const struct input_key *key) {
    const struct profile_real *axis = entry->kind == CELL_TOPP ? &entry->p : &entry->temperature;
    enum tb_status status = TB_OK;
    for (size_t i = 0; status == TB_OK && i < axis->count; i++) {
        struct cell cell;
        cell_of_input(b, entry, key, &cell);
        if (entry->kind == CELL_TOPP)
            cell.p = axis->at[i];
        else
            cell.temperature = axis->at[i];
        snprintf(cell.p_text, sizeof cell.p_text, "%s", axis->text[i]);
        status = each_kernel(b, entry, &cell);
    }
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

static enum tb_status add_statistics(struct builder *b, const struct profile_entry *entry) {
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
                status = add_cell(b, &one);
        }
        for (size_t k = 0; status == TB_OK && k < b->options->extra_count; k++) {
            struct cell one = cell;
            one.gumbel = b->options->extras[k].gumbel;
            if (extra_wanted(b, entry, &b->options->extras[k]))
                status = add_cell(b, &one);
        }
    }
    return status;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Two cells of one name could not be told apart in any result. Where a user's family stands in
 * place of several, or entries of different kernels get the same extras, equal cells are one cell.
 */
static enum tb_status check_unique(struct builder *b) {
    struct plan *plan = b->plan;
    const char **names = malloc((plan->count + 1) * sizeof *names);
    enum tb_status status = TB_OK;
    if (!names)
        return no_memory(b);
    for (size_t i = 0; i < plan->count; i++)
        names[i] = plan->cells[i].name;
    qsort(names, plan->count, sizeof *names, by_name);
    for (size_t i = 1; status == TB_OK && i < plan->count; i++)
        if (!strcmp(names[i - 1], names[i]))
            status = fail_at(b, TB_UNREADABLE, "matrix", "stands twice for the cell ", names[i]);
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

static void drop_repeated(struct builder *b) {
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

static enum tb_status check_used(struct builder *b) {
    for (size_t i = 0; i < b->profile->expect_count; i++) {
        char path[32];
        snprintf(path, sizeof path, "expect[%zu]", i);
        if (!b->used[i])
            return fail_at(b, TB_UNREADABLE, path,
                           "is met by no cell, or an earlier one takes them all", "");
    }
    return TB_OK;
}

static enum tb_status build(struct builder *b) {
    const bool replaced = b->options->family != NULL;
    enum tb_status status = collect_inputs(b);
    for (size_t i = 0; status == TB_OK && i < b->input_count; i++)
        for (int kind = CELL_TOPP; status == TB_OK && kind <= CELL_GUMBEL; kind++)
            for (size_t e = 0; status == TB_OK && e < b->profile->entry_count; e++) {
                const struct profile_entry *entry = &b->profile->entries[e];
                if ((int)entry->kind == kind && entry_has(b, entry, &b->inputs[i]))
                    status = add_entry(b, entry, &b->inputs[i]);
            }
    for (size_t e = 0; status == TB_OK && !replaced && e < b->profile->entry_count; e++)
        if (b->profile->entries[e].kind == CELL_GUMBEL_STATISTIC)
            status = add_statistics(b, &b->profile->entries[e]);
    if (status == TB_OK && (replaced || b->options->extra_count))
        drop_repeated(b);
    if (status == TB_OK)
        status = check_unique(b);
    if (status == TB_OK && !replaced)
        status = check_used(b);
    if (status == TB_OK && b->plan->count == 0)
        status = fail_at(b, TB_USAGE, "matrix", "has no cell for ",
                         replaced ? b->options->family : b->plan->device);
    return status;
}

enum tb_status cells_build(const struct profile *profile, const struct plan_options *options,
                           struct plan *plan, struct tb_error *error) {
    struct builder b = {.profile = profile, .options = options, .plan = plan, .error = error};
    enum tb_status status = TB_OK;
    b.device = strcmp(plan->device, "cuda") ? KERNEL_DEVICE_CPU : KERNEL_DEVICE_CUDA;
    if (options->family) {
        status = family_parse(options->family, &b.replacement, error);
        if (status == TB_OK && b.replacement.kind != FAMILY_CAPTURED)
            status = tb_fail(error, TB_USAGE,
                             "family `%s` in place of a profile's: captured=NAME "
                             "alone brings its own vocabulary",
                             options->family);
    }
    if (status == TB_OK)
        status = build(&b);
    free(b.inputs);
    return status;
}
