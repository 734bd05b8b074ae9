/* One cell of BASE against the same cell of NEW. */
#include "ci/compare_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool pair_work_make(struct pair_work *work, const struct comparing *comparing) {
    work->count = comparing->base->count + comparing->new_side->count;
    work->sets = calloc(work->count + 1, sizeof *work->sets);
    work->buffers = calloc(work->count + 1, sizeof *work->buffers);
    return work->sets && work->buffers;
}

void pair_work_free(struct pair_work *work) {
    for (size_t i = 0; work->buffers && i < work->count; i++)
        sample_buffer_free(&work->buffers[i]);
    free(work->buffers);
    free(work->sets);
    *work = (struct pair_work){.sets = NULL};
}

static bool accepted(const struct result_cell *cell) {
    return !strcmp(cell->verdict, "accepted") || !strcmp(cell->verdict, "ok");
}

static const char *shown(const char *text) {
    return text[0] ? text : "none";
}

/* Why a cell was refused: the rule, else the reason in words. */
static const char *cause(const struct result_cell *cell) {
    return cell->rule[0] ? cell->rule : accepted(cell) ? "" : cell->reason;
}

/* The gate's outcome in two cells; an empty reason when it is the same. */
bool compare_gate(const struct result_cell *left, const struct result_cell *right, bool masks_too,
                  char *reason, size_t reason_bytes) {
    reason[0] = '\0';
    if (strcmp(left->verdict, right->verdict) != 0)
        snprintf(reason, reason_bytes, "verdict %s%s%.100s -> %s%s%s", shown(left->verdict),
                 cause(left)[0] ? ", " : "", cause(left), shown(right->verdict),
                 cause(right)[0] ? ", " : "", cause(right));
    else if (strcmp(left->rule, right->rule) != 0)
        snprintf(reason, reason_bytes, "%s by another rule: %s -> %s", left->verdict,
                 shown(left->rule), shown(right->rule));
    else if (masks_too && left->kept != right->kept)
        snprintf(reason, reason_bytes, "kept %lld -> %lld tokens (oracle %lld)",
                 (long long)left->kept, (long long)right->kept, (long long)right->oracle);
    else if (masks_too && strcmp(left->masks, right->masks) != 0)
        snprintf(reason, reason_bytes, "same counts, but other tokens (mask hash changed)");
    return reason[0] != '\0';
}

void verdict_give(struct verdict *verdict, enum outcome outcome, const char *reason) {
    verdict->outcome = outcome;
    snprintf(verdict->reason, sizeof verdict->reason, "%s", reason);
}

static bool spoiled(const struct result_cell *cell) {
    return 10 * cell->invalid > cell->samples.count + cell->invalid;
}

/* Why an accepted pair cannot be timed against each other; true when it can. */
static bool comparable(struct verdict *verdict) {
    const struct result_cell *base = verdict->base, *new_side = verdict->new_side;
    const struct result_cell *empty = new_side->samples.count == 0 ? new_side
                                      : base->samples.count == 0   ? base
                                                                   : NULL;
    char reason[sizeof verdict->reason];
    if (base->zero && new_side->zero) {
        verdict_give(verdict, OUTCOME_EQUIVALENT, "0 on both sides: no change");
        return false;
    }
    if (base->zero) {
        verdict_give(verdict, OUTCOME_INCOMPARABLE, "no valid baseline: every value of BASE is 0");
        return false;
    }
    if (!empty && !spoiled(base) && !spoiled(new_side))
        return true;
    if (empty)
        snprintf(reason, sizeof reason, "no valid samples in %s%s%.160s",
                 empty == base ? "BASE" : "NEW", empty->reason[0] ? ": " : "", empty->reason);
    else
        snprintf(reason, sizeof reason, "more than a tenth of %s's samples are not above 0",
                 spoiled(base) ? "BASE" : "NEW");
    verdict_give(verdict, OUTCOME_INCOMPARABLE, reason);
    return false;
}

/* The samples of a side's processes, from set number `at` of the scratch on; how many. */
static bool gather(const struct results_set *set, const struct result_cell *first,
                   struct pair_work *work, size_t at, size_t *count, bool *cycles) {
    *count = 0;
    for (size_t i = 0; i < set->count; i++) {
        const struct result_cell *cell =
            set->count == 1 ? first : results_find(&set->files[i], first->name);
        if (!cell || cell->samples.count == 0)
            continue;
        const size_t place = at + (*count)++;
        work->bytes += cell->samples_bytes;
        work->sets[place] = results_samples(&set->files[i], cell, &work->buffers[place]);
        if (!work->sets[place])
            return false;
        *cycles = *cycles && work->sets[place]->cycles;
    }
    return true;
}

/* Time and cycles of an accepted pair; false without memory. */
static bool locate(const struct comparing *comparing, struct pair_work *work,
                   struct verdict *verdict) {
    bool cycles = true, higher = verdict->base->higher_is_better;
    size_t left, right;
    if (!gather(comparing->base, verdict->base, work, 0, &left, &cycles) ||
        !gather(comparing->new_side, verdict->new_side, work, left, &right, &cycles))
        return false;
    struct side base = {work->sets, left}, new_side = {work->sets + left, right};
    if (!estimate_locations(&base, &new_side, MEASURE_TIME, higher, &verdict->time))
        return false;
    if (!verdict->time.valid) {
        verdict_give(verdict, OUTCOME_INCOMPARABLE, "no draw of rows was measured on both sides");
        return true;
    }
    verdict->ratio = exp(higher ? -verdict->time.shift : verdict->time.shift);
    return !cycles ||
           estimate_locations(&base, &new_side, MEASURE_CYCLES, higher, &verdict->cycles);
}

bool compare_pair(const struct comparing *comparing, struct pair_work *work,
                  struct verdict *verdict) {
    const struct result_cell *base = verdict->base, *new_side = verdict->new_side;
    char reason[sizeof verdict->reason];
    if (!new_side) {
        verdict->excused = comparing->options->subset;
        verdict_give(verdict, OUTCOME_MISSING, "");
        return true;
    }
    if (!base) {
        verdict_give(verdict, OUTCOME_NEW, "");
        if (!new_side->as_expected) {
            snprintf(reason, sizeof reason, "new, and %s against expectation%s%s",
                     shown(new_side->verdict), new_side->rule[0] ? ": " : "", new_side->rule);
            verdict_give(verdict, OUTCOME_CORRECTNESS, reason);
        }
        return true;
    }
    if (compare_gate(base, new_side, !comparing->inputs_ignored, reason, sizeof reason)) {
        verdict->excused = comparing->options->accept_correctness;
        verdict_give(verdict, OUTCOME_CORRECTNESS, reason);
        return true;
    }
    if (!strcmp(base->verdict, "error") || !base->verdict[0]) {
        snprintf(reason, sizeof reason, "%s on both sides%s%.160s",
                 base->verdict[0] ? "failed" : "never gated", base->reason[0] ? ": " : "",
                 base->reason);
        verdict_give(verdict, OUTCOME_INCOMPARABLE, reason);
        return true;
    }
    if (!accepted(base) || (!base->timed && !new_side->timed)) {
        verdict_give(verdict, OUTCOME_GATED, accepted(base) ? "never timed" : base->rule);
        return true;
    }
    return !comparable(verdict) || locate(comparing, work, verdict);
}
