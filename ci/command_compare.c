/* perfwatch compare BASE NEW. */
#include "ci/command.h"
#include "ci/pairing.h"
#include "ci/report.h"
#include "oracle/parallel.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    KEY_MARGIN = 0x100,
    KEY_FDR,
    KEY_SUBSET,
    KEY_STRICT,
    KEY_UNFROZEN,
    KEY_ACCEPT,
    KEY_IGNORE,
    KEY_CALIBRATION,
    KEY_METRIC,
    KEY_KERNELS,
    KEY_ALL,
    KEY_MARKDOWN,
    KEY_GITHUB,
    KEY_JUNIT,
    KEY_JSON,
    KEY_REPORT,
    KEY_EXPLAIN,
    MOST_WORDS = 64
};

static const struct argp_option rows[] = {
    {0, 0, 0, 0, "What counts", 1},
    {"margin", KEY_MARGIN, "SHARE", 0,
     "Practical margin, default 2%: a smaller change is neither a regression nor an improvement. "
     "5% and 0.05 both mean a ratio of 1.05; 200% means three times the time (twice as much on "
     "top). A bare 5 is refused",
     1},
    {"fdr", KEY_FDR, "SHARE", 0,
     "Share of false alarms among the alarms, over all cells together (default 1%)", 1},
    {"calibration", KEY_CALIBRATION, "FILE", 0,
     "Noise between processes, as perfwatch selftest --out found it (default: 0.3%)", 1},
    {"metric", KEY_METRIC, "NAME", 0,
     "Google Benchmark's files: judge this alone: real_time, cpu_time, items_per_second, "
     "bytes_per_second or a counter. Default: real_time, and both rates where they are there",
     1},
    {"kernels", KEY_KERNELS, "A,B", 0,
     "Hold kernel A of BASE against kernel B of NEW (which may be the same results), cell by cell; "
     "contract, counts and masks may differ. bench_topp --ab measures such a pair",
     1},
    {"strict", KEY_STRICT, 0, 0, "An undecided cell fails (exit code 1)", 1},
    {0, 0, 0, 0, "What may differ", 2},
    {"subset", KEY_SUBSET, 0, 0,
     "Cells that NEW lacks are listed, and do not fail. So they are when NEW itself says that "
     "--case or --filter chose its cells",
     2},
    {"allow-unfrozen", KEY_UNFROZEN, 0, 0, "Compare results that --seed or --input made unfrozen",
     2},
    {"ignore-environment", KEY_IGNORE, "FIELD", 0,
     "Compare although this field differs (as named in the refusal; repeatable; all: every one)",
     2},
    {"accept-correctness", KEY_ACCEPT, 0, 0,
     "A changed verdict, count or mask is intended: show it, do not fail on it", 2},
    {0, 0, 0, 0, "Output", 3},
    {"all", KEY_ALL, 0, 0, "Equivalent cells too in the table", 3},
    {"explain", KEY_EXPLAIN, "CELL", 0, "Say in words why this cell came out as it did", 3},
    {"markdown", KEY_MARKDOWN, "FILE", 0,
     "Markdown for a step summary ($GITHUB_STEP_SUMMARY is appended to)", 3},
    {"github", KEY_GITHUB, 0, 0,
     "Workflow annotations instead of the table on standard output, which no document may go to as "
     "well",
     3},
    {"junit", KEY_JUNIT, "FILE", 0, "JUnit XML", 3},
    {"report", KEY_REPORT, "FILE.html", 0,
     "One page for people: worst cells first, before and after; - is standard output", 3},
    {"json", KEY_JSON, "FILE", 0, "The verdict (topp-bench.verdict/1); - is standard output", 3},
    {0}};

struct arguments {
    const char *words[2];
    int word_count;
    struct compare_options options;
    const char *ignored[MOST_WORDS];
    const char *calibration, *metric, *explain;
    const char *markdown, *junit, *json, *page;
    struct kernel_pair kernels; /* "" without --kernels */
    bool all, github;
    struct tb_error error;
};

static error_t parse(int key, char *value, struct argp_state *state) {
    struct arguments *arguments = state->input;
    struct compare_options *options = &arguments->options;
    switch (key) {
    case KEY_MARGIN:
        share_parse("--margin", value, 1e-4, 100.0, &options->margin, &arguments->error);
        break;
    case KEY_FDR:
        share_parse("--fdr", value, 1e-9, 0.5, &options->fdr, &arguments->error);
        break;
    case KEY_SUBSET:
        options->subset = true;
        break;
    case KEY_STRICT:
        options->strict = true;
        break;
    case KEY_UNFROZEN:
        options->allow_unfrozen = true;
        break;
    case KEY_ACCEPT:
        options->accept_correctness = true;
        break;
    case KEY_IGNORE:
        if (options->ignored_count == MOST_WORDS)
            tb_fail(&arguments->error, TB_USAGE, "more than %d --ignore-environment: use all",
                    MOST_WORDS);
        else
            arguments->ignored[options->ignored_count++] = value;
        break;
    case KEY_CALIBRATION:
        arguments->calibration = value;
        break;
    case KEY_METRIC:
        arguments->metric = value;
        break;
    case KEY_KERNELS:
        kernel_pair_parse(value, &arguments->kernels, &arguments->error);
        options->keep_common = true;
        break;
    case KEY_ALL:
        arguments->all = true;
        break;
    case KEY_EXPLAIN:
        arguments->explain = value;
        break;
    case KEY_MARKDOWN:
        arguments->markdown = value;
        break;
    case KEY_GITHUB:
        arguments->github = true;
        break;
    case KEY_JUNIT:
        arguments->junit = value;
        break;
    case KEY_JSON:
        arguments->json = value;
        break;
    case KEY_REPORT:
        arguments->page = value;
        break;
    case ARGP_KEY_ARG:
        if (arguments->word_count == 2)
            argp_error(state, "two of them are compared: BASE and NEW ('%s' is a third)", value);
        arguments->words[arguments->word_count++] = value;
        break;
    case ARGP_KEY_END:
        if (arguments->word_count < 2)
            argp_error(state, "needs BASE and NEW: files, or folders of results");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

struct outputs {
    struct output markdown, junit, json, page;
};

static enum tb_status open_outputs(const struct arguments *arguments, struct outputs *outputs,
                                   struct tb_error *error) {
    /* Annotations and explanations have no file: they are standard output's. */
    const char *const paths[] = {arguments->markdown,
                                 arguments->junit,
                                 arguments->json,
                                 arguments->page,
                                 arguments->github ? "-" : NULL,
                                 arguments->explain ? "-" : NULL};
    memset(outputs, 0, sizeof *outputs);
    enum tb_status status =
        outputs_apart(paths, sizeof paths / sizeof paths[0], arguments->words, 2, error);
    if (status == TB_OK)
        status = output_open(arguments->markdown, &outputs->markdown, error);
    if (status == TB_OK)
        status = output_open(arguments->junit, &outputs->junit, error);
    if (status == TB_OK)
        status = output_open(arguments->json, &outputs->json, error);
    if (status == TB_OK)
        status = output_open(arguments->page, &outputs->page, error);
    return status;
}

static enum tb_status close_outputs(struct outputs *outputs, bool good, struct tb_error *error) {
    struct output *all[] = {&outputs->markdown, &outputs->junit, &outputs->json, &outputs->page};
    enum tb_status status = TB_OK;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        enum tb_status own = output_close(all[i], good, error);
        status = status == TB_OK ? own : status;
    }
    return status;
}

static void warn_ignored(const struct arguments *arguments, const struct comparison *comparison) {
    for (size_t i = 0; i < comparison->differences.count; i++) {
        const struct difference *difference = &comparison->differences.list[i];
        if (difference->weight == DIFFERENCE_IGNORED)
            fprintf(stderr,
                    "perfwatch: warning: compared although %s differs (%s, %s): a change may come "
                    "from it alone\n",
                    difference->field, difference->base, difference->new_side);
    }
    for (size_t i = 0; i < arguments->options.ignored_count; i++)
        if (!comparison->ignored_used[i] && strcmp(arguments->ignored[i], "all") != 0)
            fprintf(stderr, "perfwatch: warning: --ignore-environment %s: no such field differs\n",
                    arguments->ignored[i]);
}

/* A document goes to standard output: the table would spoil it. */
static bool takes_stdout(const struct arguments *arguments) {
    return output_is_standard(arguments->json) || output_is_standard(arguments->page) ||
           output_is_standard(arguments->junit) || output_is_standard(arguments->markdown);
}

static enum tb_status tell(const struct arguments *arguments, const struct report *report,
                           struct outputs *outputs, struct tb_error *error) {
    warn_ignored(arguments, report->comparison);
    if (arguments->explain) {
        if (!report_explain(report, arguments->explain, stdout))
            return tb_fail(error, TB_USAGE,
                           "--explain %s: no such cell in this comparison%s%s; names stand in the "
                           "table (--all)",
                           arguments->explain, report->comparison->refused[0] ? ": " : "",
                           report->comparison->refused);
    } else if (arguments->github) {
        report_github(report, stdout);
    } else if (!takes_stdout(arguments)) {
        report_table(report, stdout, arguments->all, isatty(STDOUT_FILENO) && !getenv("NO_COLOR"));
    }
    if (outputs->markdown.stream)
        report_markdown(report, outputs->markdown.stream);
    if (outputs->junit.stream)
        report_junit(report, outputs->junit.stream);
    if (outputs->json.stream && !report_json(report, outputs->json.stream))
        return tb_fail(error, TB_IO, "cannot write %s", arguments->json);
    if (outputs->page.stream)
        report_html(report, outputs->page.stream);
    if (fflush(stdout) != 0)
        return tb_fail(error, TB_IO, "cannot write to standard output");
    return TB_OK;
}

/* Two kernels are compared for their times alone: none is no pass. */
static void refuse_untimed(struct comparison *comparison) {
    if (comparison->judged > 0 || comparison->exit_code != 0)
        return;
    snprintf(comparison->refused, sizeof comparison->refused,
             "no cell of both kernels was timed: the gate refused them, or they are not to be "
             "timed");
    comparison->exit_code = 3;
}

/* Both sides at once. */
struct loading {
    const struct arguments *arguments;
    struct results_set *sides;
    enum tb_status status[2];
    struct tb_error errors[2];
};

static void load_side(void *context, int64_t side) {
    struct loading *loading = context;
    const struct read_options read = {.metric = loading->arguments->metric, .samples_later = true};
    loading->status[side] = results_set_load(loading->arguments->words[side], &read,
                                             &loading->sides[side], &loading->errors[side]);
}

static enum tb_status load_sides(const struct arguments *arguments, struct results_set *sides,
                                 struct tb_error *error) {
    struct loading loading = {
        .arguments = arguments, .sides = sides, .errors = {TB_ERROR_INIT, TB_ERROR_INIT}};
    parallel_rows(2, 0, load_side, &loading);
    for (int side = 0; side < 2; side++)
        if (loading.status[side] != TB_OK) {
            *error = loading.errors[side];
            return loading.status[side];
        }
    return TB_OK;
}

static enum tb_status run(struct arguments *arguments, int *exit_code, struct tb_error *error) {
    struct results_set sides[2] = {{0}, {0}};
    struct calibration calibration = {0};
    struct comparison comparison = {0};
    struct outputs outputs;
    arguments->options.ignored = arguments->ignored;
    enum tb_status status = open_outputs(arguments, &outputs, error);
    if (status == TB_OK && arguments->calibration) {
        status = calibration_load(arguments->calibration, &calibration, error);
        arguments->options.calibration = &calibration;
    }
    if (status == TB_OK)
        status = load_sides(arguments, sides, error);
    if (status == TB_OK && arguments->kernels.base[0])
        status = kernel_pair_apply(&arguments->kernels, &sides[0], &sides[1], error);
    if (status == TB_OK)
        status = compare_sets(&sides[0], &sides[1], &arguments->options, &comparison, error);
    if (status == TB_OK) {
        struct report report = {&comparison,         &arguments->options, arguments->words[0],
                                arguments->words[1], &sides[0],           &sides[1]};
        if (arguments->kernels.base[0])
            refuse_untimed(&comparison);
        *exit_code = comparison.exit_code;
        status = tell(arguments, &report, &outputs, error);
    }
    enum tb_status closed = close_outputs(&outputs, status == TB_OK, error);
    comparison_free(&comparison);
    results_set_free(&sides[0]);
    results_set_free(&sides[1]);
    calibration_free(&calibration);
    return status == TB_OK ? closed : status;
}

int command_compare(int argc, char **argv) {
    static const char doc[] =
        "Compares two results cell by cell: correctness first, then time, confirmed in clock "
        "cycles where they were measured. BASE and NEW are results.json of bench_topp, JSON of "
        "Google Benchmark, or folders: one with results.json, or one whose sub-folders are several "
        "processes of the same sweep.";
    struct arguments arguments = {.error = TB_ERROR_INIT};
    struct argp argp = {.options = rows, .parser = parse, .args_doc = "BASE NEW"};
    char *text = malloc(sizeof doc + strlen(command_exit_codes));
    int exit_code = 3;
    if (!text)
        return exit_code;
    snprintf(text, sizeof doc + strlen(command_exit_codes), "%s%s", doc, command_exit_codes);
    argp.doc = text;
    compare_defaults(&arguments.options);
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    struct tb_error *error = &arguments.error;
    if (error->code != TB_OK || run(&arguments, &exit_code, error) != TB_OK)
        exit_code = command_fail(error);
    free(text);
    return exit_code;
}
