/* What a reader of a comparison should know of its two sides: copies, other devices, processes that
 * lack a cell or are of other sources. */
#include "ci/compare_parts.h"

#include <stdio.h>
#include <string.h>

static bool same_run(const struct results *left, const struct results *right) {
    return left->id[0] && !strcmp(left->id, right->id);
}

void compare_copies(struct comparing *comparing) {
    static const char *const names[2] = {"BASE", "NEW"};
    const struct results_set *const sets[2] = {comparing->base, comparing->new_side};
    struct comparison *comparison = comparing->comparison;
    for (int side = 0; side < 2; side++)
        for (size_t f = 1; f < sets[side]->count; f++)
            for (size_t before = 0; before < f; before++)
                if (same_run(&sets[side]->files[before], &sets[side]->files[f]))
                    snprintf(comparison->refused, sizeof comparison->refused,
                             "%s has run %.12s twice, a copy is no second process: remove %.60s "
                             "or %.60s",
                             names[side], sets[side]->files[f].id, sets[side]->files[before].file,
                             sets[side]->files[f].file);
}

static bool note(struct comparing *comparing, const char *field, const char *base,
                 const char *new_side) {
    return difference_add(&comparing->comparison->differences, DIFFERENCE_NOTE, field, base,
                          new_side);
}

/* A run that stands against itself shows nothing, unless two of its kernels are compared. */
static bool note_same_run(struct comparing *comparing) {
    if (comparing->options->keep_common)
        return true;
    for (size_t b = 0; b < comparing->base->count; b++)
        for (size_t n = 0; n < comparing->new_side->count; n++)
            if (same_run(&comparing->base->files[b], &comparing->new_side->files[n]))
                return note(comparing, "run.id", comparing->base->files[b].id,
                            "the same run is on both sides: it shows no change");
    return true;
}

/* Cells that NEW measured on another device of the model than BASE: worth knowing, no refusal. */
static bool note_devices(struct comparing *comparing) {
    const struct comparison *comparison = comparing->comparison;
    size_t pairs = 0, other = 0;
    char text[96];
    for (size_t i = 0; i < comparison->count; i++) {
        const struct verdict *verdict = &comparison->verdicts[i];
        if (!verdict->base || !verdict->new_side || !verdict->base->device_uuid[0] ||
            !verdict->new_side->device_uuid[0])
            continue;
        pairs++;
        other += strcmp(verdict->base->device_uuid, verdict->new_side->device_uuid) != 0;
    }
    snprintf(text, sizeof text, "%zu of %zu cells", other, pairs);
    return other == 0 || note(comparing, "cell.device_uuid", text,
                              "on another device (perfwatch devices: how far apart)");
}

/* Whether this process should have timed the cell, as others of its side did, and has not. */
static bool lacks(const struct results *file, const struct result_cell *first) {
    const struct result_cell *cell = results_find(file, first->name);
    return cell ? cell->timed && !strcmp(cell->verdict, "accepted") && cell->samples.count == 0
                : !file->subset;
}

/* Cells that not every process of a side has timed: what is judged is what the others say. */
static bool note_processes(struct comparing *comparing, const struct results_set *set, bool base) {
    const struct comparison *comparison = comparing->comparison;
    const struct results *first = NULL;
    size_t cells = 0;
    char count[96], where[96];
    for (size_t i = 0; set->count > 1 && i < comparison->count; i++) {
        const struct verdict *verdict = &comparison->verdicts[i];
        const struct result_cell *cell = base ? verdict->base : verdict->new_side;
        bool lacking = false;
        for (size_t f = 0; cell && !lacking && f < set->count; f++) {
            lacking = lacks(&set->files[f], cell);
            if (lacking && !first)
                first = &set->files[f];
        }
        cells += lacking;
    }
    snprintf(count, sizeof count, "%zu cell%s without a time in some of %zu processes", cells,
             cells == 1 ? "" : "s", set->count);
    snprintf(where, sizeof where, "such as %.84s", first ? first->file : "");
    return cells == 0 || note(comparing, base ? "base.processes" : "new.processes", count, where);
}

/* The first process of a side whose sources are not those of its first one; NULL: none. */
static const struct results *other_sources(const struct results_set *set) {
    for (size_t f = 1; f < set->count; f++)
        if (strcmp(set->files[f].sources_sha256, set->files[0].sources_sha256) != 0)
            return &set->files[f];
    return NULL;
}

void compare_sources(struct comparing *comparing) {
    const struct results_set *const sets[2] = {comparing->base, comparing->new_side};
    struct comparison *comparison = comparing->comparison;
    comparison->sources_known = true;
    for (int side = 0; side < 2; side++)
        for (size_t f = 0; f < sets[side]->count; f++)
            comparison->sources_known =
                comparison->sources_known && sets[side]->files[f].sources_sha256[0];
    comparison->same_sources =
        comparison->sources_known && !other_sources(sets[0]) && !other_sources(sets[1]) &&
        !strcmp(sets[0]->files[0].sources_sha256, sets[1]->files[0].sources_sha256);
}

/* Processes of one side are taken for repetitions of each other: of other code they are none. */
static bool note_sources(struct comparing *comparing, const struct results_set *set, bool base) {
    const struct results *const other = other_sources(set);
    char which[96], where[96];
    if (!other)
        return true;
    snprintf(which, sizeof which, "not all of %zu processes are of the same sources", set->count);
    snprintf(where, sizeof where, "such as %.84s", other->file);
    return note(comparing, base ? "base.sources_sha256" : "new.sources_sha256", which, where);
}

bool compare_notes(struct comparing *comparing) {
    return note_same_run(comparing) && note_devices(comparing) &&
           note_processes(comparing, comparing->base, true) &&
           note_processes(comparing, comparing->new_side, false) &&
           note_sources(comparing, comparing->base, true) &&
           note_sources(comparing, comparing->new_side, false);
}
