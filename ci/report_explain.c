#include "ci/report.h"

#include <math.h>
#include <string.h>

static void explain_measure(const char *name, const struct estimate *estimate, double common,
                            bool significant, FILE *stream) {
    fprintf(stream,
            "%s: %zu samples in %zu blocks of %zu process%s against %zu in %zu of %zu.\n"
            "  Ratio of medians, draw by draw and block by block: %+.3f%%, standard error %.3f%% "
            "(95%%: %+.2f%% to %+.2f%%).\n",
            name, estimate->base.samples, estimate->base.blocks, estimate->base.processes,
            estimate->base.processes == 1 ? "" : "es", estimate->new_side.samples,
            estimate->new_side.blocks, estimate->new_side.processes, 100.0 * expm1(estimate->shift),
            100.0 * estimate->se, 100.0 * expm1(estimate->low), 100.0 * expm1(estimate->high));
    if (fabs(common) > 0.0)
        fprintf(stream, "  %+.2f%% of it is drift that all cells share, and is taken out.\n",
                100.0 * expm1(common));
    fprintf(stream,
            "  Chance of being so much slower by noise alone: %.2g (so much faster: %.2g); %s over "
            "all cells of this comparison.\n",
            estimate->p_worse, estimate->p_better,
            significant ? "beyond doubt" : "not beyond doubt, or within the margin,");
    fprintf(stream, "  Rank test beside it: slower %.2g, faster %.2g, from %zu and %zu values%s.\n",
            estimate->rank_worse, estimate->rank_better, estimate->rank_base, estimate->rank_new,
            estimate->rank_reliable ? "" : ": unreliable, fewer than 9 on a side, without a say");
    if (estimate->lone)
        fprintf(stream,
                "  A side has a single value, whose noise is unknown: %.0f%% was assumed.\n",
                100.0 * LONE_VALUE_SIGMA);
}

static void explain_rule(const struct report *report, const struct verdict *verdict, FILE *stream) {
    double margin = 100.0 * report->options->margin;
    switch (verdict->outcome) {
    case OUTCOME_REGRESSED:
        fprintf(stream,
                "So: slower beyond doubt (false discovery rate %.3g%%) and by more than the margin "
                "of %.3g%%.\n",
                100.0 * report->options->fdr, margin);
        break;
    case OUTCOME_IMPROVED:
        fprintf(stream, "So: faster beyond doubt and by more than the margin of %.3g%%.\n", margin);
        break;
    case OUTCOME_EQUIVALENT:
        fprintf(stream, "So: the whole interval lies within the margin of %.3g%%.\n", margin);
        break;
    case OUTCOME_UNDECIDED:
        fprintf(stream,
                "So: neither shown to be slower than the margin of %.3g%% nor shown to lie within "
                "it. More blocks, or more processes a side (ci/ab), narrow the interval.\n",
                margin);
        break;
    case OUTCOME_CLOCK:
        fprintf(stream, "So: a change of clock. Lock the clocks (nvidia-smi -lgc) and measure "
                        "both again.\n");
        break;
    case OUTCOME_CORRECTNESS:
        fprintf(stream, "So: the output changed. That comes before any timing.\n");
        break;
    default:
        break;
    }
}

bool report_explain(const struct report *report, const char *name, FILE *stream) {
    const struct comparison *comparison = report->comparison;
    const struct verdict *verdict = NULL;
    char sentence[512];
    for (size_t i = 0; i < comparison->count && !verdict; i++)
        if (!strcmp(comparison->verdicts[i].name, name))
            verdict = &comparison->verdicts[i];
    if (!verdict)
        return false;
    report_sentence(verdict, sentence, sizeof sentence);
    fprintf(stream, "%s: %s%s\n%s\n", verdict->name, outcome_name(verdict->outcome),
            verdict->excused ? " (excused by an option)" : "", sentence);
    if (verdict->time.valid) {
        explain_measure("Time", &verdict->time, comparison->common[MEASURE_TIME],
                        verdict->significant, stream);
        fprintf(stream, "  Two runs of one binary are taken to differ by %.2f%% (%s).\n",
                100.0 * verdict->process_sigma,
                report->options->calibration ? "calibrated"
                                             : "default: perfwatch selftest "
                                               "measures it");
    }
    if (verdict->cycles.valid)
        explain_measure("Cycles", &verdict->cycles, comparison->common[MEASURE_CYCLES],
                        verdict->significant_cycles, stream);
    explain_rule(report, verdict, stream);
    return true;
}
