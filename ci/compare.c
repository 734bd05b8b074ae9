#include "ci/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const outcome_names[OUTCOME_COUNT] = {
    [OUTCOME_CORRECTNESS] = "correctness",
    [OUTCOME_REGRESSED] = "regressed",
    [OUTCOME_INCOMPARABLE] = "incomparable",
    [OUTCOME_MISSING] = "missing",
    [OUTCOME_CLOCK] = "clock",
    [OUTCOME_UNDECIDED] = "undecided",
    [OUTCOME_IMPROVED] = "improved",
    [OUTCOME_NEW] = "new",
    [OUTCOME_EQUIVALENT] = "equivalent",
    [OUTCOME_GATED] = "gated",
};

const char *outcome_name(enum outcome outcome) {
    return outcome_names[outcome];
}

void compare_defaults(struct compare_options *options) {
    *options = (struct compare_options){.margin = 0.02, .fdr = 0.01};
}

void comparison_free(struct comparison *comparison) {
    free(comparison->verdicts);
    free(comparison->ignored_used);
    differences_free(&comparison->differences);
    memset(comparison, 0, sizeof *comparison);
}

/* What carries through a comparison. */
struct comparing {
    const struct results_set *base, *new_side;
    const struct compare_options *options;
    struct comparison *comparison;
    const struct sample_set **sets; /* [base files + new files] scratch */
    bool inputs_ignored;            /* the cells' inputs may differ: masks cannot be compared */
};

static bool ignores(const struct compare_options *options, const char *field) {
    for (size_t i = 0; i < options->ignored_count; i++)
        if (!strcmp(options->ignored[i], field) || !strcmp(options->ignored[i], "all"))
            return true;
    return false;
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
static bool gate_changed(const struct result_cell *left, const struct result_cell *right,
                         bool masks_too, char *reason, size_t reason_bytes) {
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

/* The first cell of a side, and whether the side's processes agree about the gate. */
static const struct result_cell *cell_of(const struct results_set *set, const char *name,
                                         bool *agree, char *reason, size_t reason_bytes) {
    const struct result_cell *first = NULL;
    for (size_t i = 0; i < set->count; i++) {
        const struct result_cell *cell = results_find(&set->files[i], name);
        if (cell && !first)
            first = cell;
        else if (cell && *agree)
            *agree = !gate_changed(first, cell, true, reason, reason_bytes);
    }
    return first;
}

static size_t gather(const struct results_set *set, const char *name,
                     const struct sample_set **sets, bool *cycles) {
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        const struct result_cell *cell = results_find(&set->files[i], name);
        if (!cell || cell->samples.count == 0)
            continue;
        sets[count++] = &cell->samples;
        *cycles = *cycles && cell->samples.cycles;
    }
    return count;
}

static void give(struct verdict *verdict, enum outcome outcome, const char *reason) {
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
        give(verdict, OUTCOME_EQUIVALENT, "0 on both sides: no change");
        return false;
    }
    if (base->zero) {
        give(verdict, OUTCOME_INCOMPARABLE, "no valid baseline: every value of BASE is 0");
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
    give(verdict, OUTCOME_INCOMPARABLE, reason);
    return false;
}

/* Time and cycles of an accepted pair; false without memory. */
static bool locate(struct comparing *comparing, struct verdict *verdict) {
    bool cycles = true, higher = verdict->base->higher_is_better;
    size_t left = gather(comparing->base, verdict->name, comparing->sets, &cycles);
    size_t right = gather(comparing->new_side, verdict->name, comparing->sets + left, &cycles);
    struct side base = {comparing->sets, left}, new_side = {comparing->sets + left, right};
    if (!estimate_locations(&base, &new_side, MEASURE_TIME, higher, &verdict->time))
        return false;
    if (!verdict->time.valid) {
        give(verdict, OUTCOME_INCOMPARABLE, "no draw of rows was measured on both sides");
        return true;
    }
    verdict->ratio = exp(higher ? -verdict->time.shift : verdict->time.shift);
    return !cycles ||
           estimate_locations(&base, &new_side, MEASURE_CYCLES, higher, &verdict->cycles);
}

static bool judge_pair(struct comparing *comparing, struct verdict *verdict) {
    const struct result_cell *base = verdict->base, *new_side = verdict->new_side;
    char reason[sizeof verdict->reason];
    if (!new_side) {
        verdict->excused = comparing->options->subset;
        give(verdict, OUTCOME_MISSING, "");
        return true;
    }
    if (!base) {
        give(verdict, OUTCOME_NEW, "");
        if (!new_side->as_expected) {
            snprintf(reason, sizeof reason, "new, and %s against expectation%s%s",
                     shown(new_side->verdict), new_side->rule[0] ? ": " : "", new_side->rule);
            give(verdict, OUTCOME_CORRECTNESS, reason);
        }
        return true;
    }
    if (gate_changed(base, new_side, !comparing->inputs_ignored, reason, sizeof reason)) {
        verdict->excused = comparing->options->accept_correctness;
        give(verdict, OUTCOME_CORRECTNESS, reason);
        return true;
    }
    if (!strcmp(base->verdict, "error") || !base->verdict[0]) {
        snprintf(reason, sizeof reason, "%s on both sides%s%.160s",
                 base->verdict[0] ? "failed" : "never gated", base->reason[0] ? ": " : "",
                 base->reason);
        give(verdict, OUTCOME_INCOMPARABLE, reason);
        return true;
    }
    if (!accepted(base) || (!base->timed && !new_side->timed)) {
        give(verdict, OUTCOME_GATED, accepted(base) ? "never timed" : base->rule);
        return true;
    }
    return !comparable(verdict) || locate(comparing, verdict);
}

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

static size_t cells_in(const struct results_set *set) {
    size_t count = 0;
    for (size_t f = 0; f < set->count; f++)
        count += set->files[f].count;
    return count;
}

static bool list_cells(struct comparing *comparing) {
    struct comparison *comparison = comparing->comparison;
    size_t most = cells_in(comparing->base) + cells_in(comparing->new_side);
    const char **names = malloc((most + 1) * sizeof *names);
    comparison->verdicts = calloc(most + 1, sizeof *comparison->verdicts);
    if (!names || !comparison->verdicts) {
        free(names);
        return false;
    }
    size_t count = names_of(comparing->base, names);
    count += names_of(comparing->new_side, names + count);
    qsort(names, count, sizeof *names, by_text);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && !strcmp(names[i], names[i - 1]))
            continue;
        struct verdict *verdict = &comparison->verdicts[comparison->count++];
        bool same_base = true, same_new = true;
        char reason[200] = "";
        verdict->name = names[i];
        verdict->ratio = verdict->change = (double)NAN;
        verdict->base = cell_of(comparing->base, names[i], &same_base, reason, sizeof reason);
        verdict->new_side =
            cell_of(comparing->new_side, names[i], &same_new, reason, sizeof reason);
        if (!same_base || !same_new) {
            verdict->outcome = OUTCOME_CORRECTNESS;
            snprintf(verdict->reason, sizeof verdict->reason,
                     "the processes of %s disagree: %.180s", same_new ? "BASE" : "NEW", reason);
        }
    }
    free(names);
    return true;
}

/* All that forbids a comparison before any cell is looked at. */
static enum tb_status check_environment(struct comparing *comparing, struct tb_error *error) {
    struct comparison *comparison = comparing->comparison;
    const struct compare_options *options = comparing->options;
    const struct results *first = &comparing->base->files[0];
    const struct results_set *sets[2] = {comparing->base, comparing->new_side};
    const struct results *unfrozen = NULL;
    for (int s = 0; s < 2; s++)
        for (size_t f = 0; f < sets[s]->count; f++) {
            const struct results *file = &sets[s]->files[f];
            if (file->unfrozen && !unfrozen)
                unfrozen = file;
            if (file->format != first->format)
                snprintf(comparison->refused, sizeof comparison->refused,
                         "results.json on one side, Google Benchmark's JSON on the other");
            else if (file != first &&
                     !environment_compare(first, file, options->ignored, options->ignored_count,
                                          comparison->ignored_used, &comparison->differences))
                return tb_fail(error, TB_NO_MEMORY, "no memory for the environments");
        }
    if (unfrozen && !options->allow_unfrozen && !comparison->refused[0])
        snprintf(comparison->refused, sizeof comparison->refused,
                 "%.120s is unfrozen (--seed, --slices or --input changed what its profile says): "
                 "--allow-unfrozen compares it all the same",
                 unfrozen->file);
    return TB_OK;
}

static enum tb_status check_settings(struct comparing *comparing, struct tb_error *error) {
    struct comparison *comparison = comparing->comparison;
    size_t common = 0;
    for (size_t i = 0; i < comparison->count; i++) {
        const struct verdict *verdict = &comparison->verdicts[i];
        if (!verdict->base || !verdict->new_side)
            continue;
        common++;
        if (!settings_compare(verdict->base, verdict->new_side, comparing->options->ignored,
                              comparing->options->ignored_count, comparison->ignored_used,
                              &comparison->differences))
            return tb_fail(error, TB_NO_MEMORY, "no memory for the settings");
    }
    char *refused = comparison->refused;
    if (refused[0])
        return TB_OK;
    if (common == 0)
        snprintf(refused, sizeof comparison->refused,
                 "no cell is in both (%zu in BASE, %zu in NEW): were they renamed, or is one of "
                 "them of another profile?",
                 cells_in(comparing->base), cells_in(comparing->new_side));
    else if (comparison->differences.refusing > 0)
        snprintf(refused, sizeof comparison->refused,
                 "the two were not measured under the same conditions (%zu field%s; "
                 "--ignore-environment FIELD compares all the same)",
                 comparison->differences.refusing,
                 comparison->differences.refusing == 1 ? " differs" : "s differ");
    return TB_OK;
}

static double badness(const struct verdict *verdict) {
    return isnan(verdict->change) ? -(double)INFINITY : verdict->change;
}

static int worst_first(const void *left, const void *right) {
    const struct verdict *a = left, *b = right;
    if (a->excused != b->excused)
        return a->excused - b->excused;
    if (a->outcome != b->outcome)
        return (int)a->outcome - (int)b->outcome;
    if (badness(a) != badness(b))
        return badness(a) < badness(b) ? 1 : -1;
    return strcmp(a->name, b->name);
}

static int exit_code(const struct comparison *comparison, bool strict) {
    size_t counted[OUTCOME_COUNT] = {0};
    for (size_t i = 0; i < comparison->count; i++)
        counted[comparison->verdicts[i].outcome] += !comparison->verdicts[i].excused;
    if (counted[OUTCOME_CORRECTNESS] || counted[OUTCOME_REGRESSED])
        return 1;
    if (comparison->refused[0] || counted[OUTCOME_INCOMPARABLE])
        return 3;
    if (counted[OUTCOME_MISSING] || (strict && counted[OUTCOME_UNDECIDED]))
        return 1;
    return 0;
}

static void finish(struct comparing *comparing) {
    struct comparison *comparison = comparing->comparison;
    for (size_t i = 0; i < comparison->count; i++) {
        comparison->by_outcome[comparison->verdicts[i].outcome]++;
        comparison->judged += comparison->verdicts[i].time.valid;
    }
    qsort(comparison->verdicts, comparison->count, sizeof *comparison->verdicts, worst_first);
    comparison->exit_code = exit_code(comparison, comparing->options->strict);
}

/* A refused pair has no cell verdicts, but what is in one file alone can still be told. */
static void keep_unpaired(struct comparison *comparison) {
    size_t kept = 0;
    for (size_t i = 0; i < comparison->count; i++) {
        struct verdict *verdict = &comparison->verdicts[i];
        if (verdict->base && verdict->new_side)
            continue;
        give(verdict, verdict->base ? OUTCOME_MISSING : OUTCOME_NEW, "");
        comparison->verdicts[kept++] = *verdict;
    }
    comparison->count = kept;
}

static enum tb_status judge_all(struct comparing *comparing, struct tb_error *error) {
    struct comparison *comparison = comparing->comparison;
    bool good = true;
    for (size_t i = 0; good && i < comparison->count; i++)
        if (!comparison->verdicts[i].reason[0]) /* else: its processes disagree */
            good = judge_pair(comparing, &comparison->verdicts[i]);
    if (!good ||
        !compare_judge(comparison->verdicts, comparison->count, comparing->options, comparison))
        return tb_fail(error, TB_NO_MEMORY, "no memory for %zu cells", comparison->count);
    return TB_OK;
}

enum tb_status compare_sets(const struct results_set *base, const struct results_set *new_side,
                            const struct compare_options *options, struct comparison *comparison,
                            struct tb_error *error) {
    struct compare_options own = *options;
    struct comparing comparing = {.base = base,
                                  .new_side = new_side,
                                  .options = &own,
                                  .comparison = comparison,
                                  .inputs_ignored = ignores(options, "cell.input_sha256") ||
                                                    ignores(options, "cell.seed")};
    memset(comparison, 0, sizeof *comparison);
    const char *left = base->files[0].sources_sha256, *right = new_side->files[0].sources_sha256;
    comparison->sources_known = left[0] && right[0];
    comparison->same_sources = comparison->sources_known && !strcmp(left, right);
    for (size_t f = 0; f < new_side->count; f++)
        own.subset = own.subset || new_side->files[f].subset;
    comparing.sets = calloc(base->count + new_side->count + 1, sizeof *comparing.sets);
    comparison->ignored_used = calloc(options->ignored_count + 1, sizeof(bool));
    enum tb_status status = TB_OK;
    if (!comparing.sets || !comparison->ignored_used || !list_cells(&comparing))
        status = tb_fail(error, TB_NO_MEMORY, "no memory for the cells");
    if (status == TB_OK)
        status = check_environment(&comparing, error);
    if (status == TB_OK)
        status = check_settings(&comparing, error);
    if (status == TB_OK && comparison->refused[0])
        keep_unpaired(comparison);
    else if (status == TB_OK)
        status = judge_all(&comparing, error);
    if (status == TB_OK)
        finish(&comparing);
    else
        comparison_free(comparison);
    free(comparing.sets);
    return status;
}
