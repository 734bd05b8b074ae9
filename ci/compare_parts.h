/* Inside of compare_sets(): which cells there are, and what one of them says. */
#ifndef TOPP_CI_COMPARE_PARTS_H
#define TOPP_CI_COMPARE_PARTS_H

#include "ci/compare.h"

/* What carries through a comparison. */
struct comparing {
    const struct results_set *base, *new_side;
    const struct compare_options *options;
    struct comparison *comparison;
    bool inputs_ignored; /* the cells' inputs may differ: masks cannot be compared */
};

/* Scratch of judging pairs, one a thread. */
struct pair_work {
    const struct sample_set **sets; /* [base files + new files] */
    struct sample_buffer *buffers;  /* the same, for samples that stay in their files */
    size_t count;
    size_t bytes; /* of the files' samples that were read */
};
bool pair_work_make(struct pair_work *work, const struct comparing *comparing);
void pair_work_free(struct pair_work *work);

/* Fills comparison->verdicts with the cells of both sides, ascending by name, and a reason where
 * the processes of a side disagree about the gate. false without memory. */
bool compare_list(struct comparing *comparing);
size_t compare_cells_in(const struct results_set *set);

/* Refuses a side that has one run twice. */
void compare_copies(struct comparing *comparing);
/* Adds what a reader should know of the sides to comparison->differences. false without memory. */
bool compare_notes(struct comparing *comparing);
/* Whether all processes of both sides are of the same sources, where all of them say. */
void compare_sources(struct comparing *comparing);

/* The gate's outcome in two cells, as a sentence in reason; false when it is the same. */
bool compare_gate(const struct result_cell *left, const struct result_cell *right, bool masks_too,
                  char *reason, size_t reason_bytes);
/* Outcome of a pair as far as it can be told without the other cells; else located estimates.
 * false without memory. */
bool compare_pair(const struct comparing *comparing, struct pair_work *work,
                  struct verdict *verdict);
void verdict_give(struct verdict *verdict, enum outcome outcome, const char *reason);

#endif
