/* The cells of both sides of a comparison, each once. */
#include "ci/compare_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Cells of one side's files, ascending by name, each once. */
static size_t names_of(const struct results_set *set, const char **names) {
    size_t count = 0;
    for (size_t f = 0; f < set->count; f++)
        for (size_t i = 0; i < set->files[f].count; i++) {
            const char *name = set->files[f].cells[set->files[f].by_name[i]].name;
            if (f == 0 || !results_find(&set->files[0], name))
                names[count++] = name;
        }
    return count;
}

static int by_text(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

size_t compare_cells_in(const struct results_set *set) {
    size_t count = 0;
    for (size_t f = 0; f < set->count; f++)
        count += set->files[f].count;
    return count;
}

/* A walk through a side's files, each ascending by name. */
struct walk {
    const struct results_set *set;
    size_t *at; /* [files] position in by_name; owned */
};

static const struct result_cell *walk_to(struct walk *walk, size_t file, const char *name) {
    const struct results *results = &walk->set->files[file];
    for (; walk->at[file] < results->count; walk->at[file]++) {
        const struct result_cell *cell = &results->cells[results->by_name[walk->at[file]]];
        const int order = strcmp(cell->name, name);
        if (order >= 0)
            return order == 0 ? cell : NULL;
    }
    return NULL;
}

/* The first cell of a side; reason: in what the side's processes disagree about the gate, "" if
 * they do not. Names ascend from call to call. */
static const struct result_cell *cell_of(struct walk *walk, const char *name, char *reason,
                                         size_t reason_bytes) {
    const struct result_cell *first = NULL;
    reason[0] = '\0';
    for (size_t i = 0; i < walk->set->count; i++) {
        const struct result_cell *cell = walk_to(walk, i, name);
        if (cell && !first)
            first = cell;
        else if (cell && !reason[0])
            compare_gate(first, cell, true, reason, reason_bytes);
    }
    return first;
}

static void add_verdict(struct comparison *comparison, const char *name, struct walk *base,
                        struct walk *new_side) {
    struct verdict *verdict = &comparison->verdicts[comparison->count++];
    char base_reason[200], new_reason[200];
    verdict->name = name;
    verdict->ratio = verdict->change = (double)NAN;
    verdict->base = cell_of(base, name, base_reason, sizeof base_reason);
    verdict->new_side = cell_of(new_side, name, new_reason, sizeof new_reason);
    if (!base_reason[0] && !new_reason[0])
        return;
    verdict->outcome = OUTCOME_CORRECTNESS;
    snprintf(verdict->reason, sizeof verdict->reason, "the processes of %s disagree: %.180s",
             new_reason[0] ? "NEW" : "BASE", new_reason[0] ? new_reason : base_reason);
}

bool compare_list(struct comparing *comparing) {
    struct comparison *comparison = comparing->comparison;
    const size_t most = compare_cells_in(comparing->base) + compare_cells_in(comparing->new_side);
    struct walk base = {comparing->base, calloc(comparing->base->count + 1, sizeof *base.at)};
    struct walk new_side = {comparing->new_side,
                            calloc(comparing->new_side->count + 1, sizeof *new_side.at)};
    const char **names = malloc((most + 1) * sizeof *names);
    size_t count = 0, distinct = 0;
    bool good = names && base.at && new_side.at;
    if (good) {
        count = names_of(comparing->base, names);
        count += names_of(comparing->new_side, names + count);
        qsort(names, count, sizeof *names, by_text);
        for (size_t i = 0; i < count; i++)
            if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
                names[distinct++] = names[i];
        comparison->verdicts = calloc(distinct + 1, sizeof *comparison->verdicts);
        good = comparison->verdicts != NULL;
    }
    for (size_t i = 0; good && i < distinct; i++)
        add_verdict(comparison, names[i], &base, &new_side);
    free(names);
    free(base.at);
    free(new_side.at);
    return good;
}
