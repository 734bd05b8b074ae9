/* A finished comparison, told to people and machines. Every writer takes an open stream; numbers
 * do not depend on the locale. */
#ifndef TOPP_CI_REPORT_H
#define TOPP_CI_REPORT_H

#include "ci/compare.h"

#include <stdio.h>

struct report {
    const struct comparison *comparison;
    const struct compare_options *options;
    const char *base, *new_side;                  /* as named on the command line */
    const struct results_set *base_set, *new_set; /* what was compared */
};

/* Aligned, worst first. all: equivalent and gated cells too. */
void report_table(const struct report *report, FILE *stream, bool all, bool color);
/* For a step summary: GitHub Markdown, at most MARKDOWN_ROWS rows. */
void report_markdown(const struct report *report, FILE *stream);
/* Workflow commands; GitHub shows at most ten of each level in a step. */
void report_github(const struct report *report, FILE *stream);
void report_junit(const struct report *report, FILE *stream);
/* "topp-bench.verdict/1". false without memory. */
bool report_json(const struct report *report, FILE *stream);
/* One self-contained page: worst cells first, before and after (bench/report_page.h). */
void report_html(const struct report *report, FILE *stream);
/* In words, why one cell came out as it did. false when there is no such cell. */
bool report_explain(const struct report *report, const char *name, FILE *stream);

enum { MARKDOWN_ROWS = 200, GITHUB_MOST = 10 };

/* Pieces that the writers share. */

/* "regressed: 1 of 24 cells ..." without a line feed. */
void report_headline(const struct report *report, char *text, size_t text_bytes);
/* "12.3 us", "4.56 GB/s"; "-" for NAN. */
void report_value(const struct result_cell *cell, char *text, size_t text_bytes);
/* "+3.1%" of the cell's own unit; "-" without. */
void report_change(const struct verdict *verdict, char *text, size_t text_bytes);
void report_interval(const struct verdict *verdict, char *text, size_t text_bytes);
void report_cycles(const struct verdict *verdict, char *text, size_t text_bytes);
/* One sentence about the cell, the outcome's name not included. */
void report_sentence(const struct verdict *verdict, char *text, size_t text_bytes);
/* What the kernel's sources say about the cause: one line, "" when nothing is known. */
const char *report_cause(const struct comparison *comparison);

#endif
