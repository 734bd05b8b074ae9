#include "ci/compare_parts.h"
#include "oracle/parallel.h"

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

static bool ignores(const struct compare_options *options, const char *field) {
    for (size_t i = 0; i < options->ignored_count; i++)
        if (!strcmp(options->ignored[i], field) || !strcmp(options->ignored[i], "all"))
            return true;
    return false;
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
    if (!comparison->refused[0])
        compare_copies(comparing);
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
    if (!compare_notes(comparing))
        return tb_fail(error, TB_NO_MEMORY, "no memory for the notes");
    char *refused = comparison->refused;
    if (refused[0])
        return TB_OK;
    if (common == 0)
        snprintf(refused, sizeof comparison->refused,
                 "no cell is in both (%zu in BASE, %zu in NEW): were they renamed, or is one of "
                 "them of another profile?",
                 compare_cells_in(comparing->base), compare_cells_in(comparing->new_side));
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
        verdict_give(verdict, verdict->base ? OUTCOME_MISSING : OUTCOME_NEW, "");
        comparison->verdicts[kept++] = *verdict;
    }
    comparison->count = kept;
}

/* Cells are judged in parallel, some at a time. */
struct judging {
    const struct comparing *comparing;
    bool *failed; /* [chunks] */
};
enum { CHUNK = 256, RELEASE_BYTES = 4 << 20 };

static void release(const struct results_set *const *sets) {
    for (int side = 0; side < 2; side++)
        for (size_t f = 0; f < sets[side]->count; f++)
            results_release_pages(&sets[side]->files[f]);
}

static void judge_chunk(void *context, int64_t chunk) {
    const struct judging *judging = context;
    const struct comparing *comparing = judging->comparing;
    const struct results_set *const sets[2] = {comparing->base, comparing->new_side};
    struct comparison *comparison = comparing->comparison;
    const size_t first = (size_t)chunk * CHUNK;
    struct pair_work work = {.sets = NULL};
    bool good = pair_work_make(&work, comparing);
    for (size_t i = first; good && i < first + CHUNK && i < comparison->count; i++) {
        if (!comparison->verdicts[i].reason[0]) /* else: its processes disagree */
            good = compare_pair(comparing, &work, &comparison->verdicts[i]);
        if (work.bytes > RELEASE_BYTES || i + 1 == first + CHUNK) {
            release(sets);
            work.bytes = 0;
        }
    }
    pair_work_free(&work);
    judging->failed[chunk] = !good;
}

static enum tb_status judge_all(struct comparing *comparing, struct tb_error *error) {
    struct comparison *comparison = comparing->comparison;
    const size_t chunks = (comparison->count + CHUNK - 1) / CHUNK;
    struct judging judging = {comparing, calloc(chunks + 1, sizeof(bool))};
    bool good = judging.failed != NULL;
    if (good)
        parallel_rows((int64_t)chunks, 0, judge_chunk, &judging);
    for (size_t i = 0; good && i < chunks; i++)
        good = !judging.failed[i];
    free(judging.failed);
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
    compare_sources(&comparing);
    for (size_t f = 0; f < new_side->count; f++)
        own.subset = own.subset || new_side->files[f].subset;
    comparison->ignored_used = calloc(options->ignored_count + 1, sizeof(bool));
    enum tb_status status = TB_OK;
    if (!comparison->ignored_used || !compare_list(&comparing))
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
    return status;
}
