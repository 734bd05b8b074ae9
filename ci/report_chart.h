/* Pictures of a comparison as inline SVG: drawn by hand, as no gnuplot may be where perfwatch
 * runs. Dark ink on white; the page's style turns them for a dark screen. */
#ifndef TOPP_CI_REPORT_CHART_H
#define TOPP_CI_REPORT_CHART_H

#include "ci/report.h"

enum { CHART_ROWS = 30 };

/* The worst CHART_ROWS cells that were compared in time: change and its 95% interval, the margin
 * as a band, cycles as a diamond. false: there is none, and nothing was written. */
bool chart_changes(const struct report *report, FILE *stream);

/* Blocks of one cell, before and after, process by process. false: no samples. */
bool chart_blocks(const struct report *report, const struct verdict *verdict, FILE *stream);

#endif
