/* The option table and the texts of --help. */
#include "bench/options.h"

#include <argp.h>
#include <stdio.h>

#define IN(mode) (1u << (mode))
#define SWEEP IN(MODE_SWEEP)
#define PLAN (IN(MODE_SWEEP) | IN(MODE_LIST))
#define AB IN(MODE_AB)
#define ANY (~0u)

const struct option_row options_rows[OPTION_ROWS] = {
    {NULL, 0, NULL, 0, MODE_NONE, "What to do (one of these):"},
    {"sweep", KEY_SWEEP, NULL, SWEEP, MODE_SWEEP,
     "Gate every cell of a profile, time what passed, write table, JSON, TSV and receipt"},
    {"ab", KEY_AB, "A B", AB, MODE_AB,
     "Two kernels against each other: gated, timed in blocks A B B A on one device, and decided by "
     "perfwatch, whose exit code it is"},
    {"list", KEY_LIST, NULL, IN(MODE_LIST), MODE_LIST,
     "Print the names of a profile's cells, in the order they would run"},
    {"oracle", KEY_ORACLE, "FILE.npy", IN(MODE_ORACLE), MODE_ORACLE,
     "Print one JSON line per row and p: what the binary64 reference keeps"},
    {"apply", KEY_APPLY, "KERNEL", IN(MODE_APPLY), MODE_APPLY,
     "Run one top-p kernel on --input and write the masked logits to --out"},
    {"bench-oracle", KEY_BENCH_ORACLE, NULL, IN(MODE_BENCH_ORACLE), MODE_BENCH_ORACLE,
     "Measure the oracle against the plain Python judge of the tests"},
    {"merge", KEY_MERGE, NULL, IN(MODE_MERGE), MODE_MERGE,
     "Make one run of the shards in the folders that are named, in any order: --merge DIR... "
     "--out DIR"},
    {"verify", KEY_VERIFY, "RECEIPT", IN(MODE_VERIFY), MODE_VERIFY,
     "Recompute what a receipt binds: verified, changed or not recomputable here"},
    {"plot", KEY_PLOT, "RESULTS", IN(MODE_PLOT), MODE_PLOT,
     "Draw the charts of a run's results (folder or results.json) as SVG and PNG, with their data"},
    {"report", KEY_REPORT, "RESULTS", IN(MODE_REPORT), MODE_REPORT,
     "Write one HTML page of a run: verdicts, charts, cells, environment, receipt"},
    {"variants", KEY_VARIANTS, NULL, IN(MODE_VARIANTS), MODE_VARIANTS,
     "List the kernels with device, contract, limits and summary"},
    {"help", KEY_HELP, NULL, ANY, MODE_HELP, "Print this text"},
    {"usage", KEY_USAGE, NULL, ANY, MODE_USAGE, "Print the options alone"},
    {"version", KEY_VERSION, NULL, ANY, MODE_VERSION, "Print version, compiler and commit"},

    {NULL, 0, NULL, 0, MODE_NONE, "What to run:"},
    {"profile", KEY_PROFILE, "NAME|FILE", PLAN | AB, MODE_NONE,
     "Profile to run: a name, or a path ending in .json (default: the device's default)"},
    {"profile-dir", KEY_PROFILE_DIR, "DIR", PLAN | AB | IN(MODE_VERIFY) | IN(MODE_MERGE), MODE_NONE,
     "Where profiles and captured rows are (default: $TOPP_BENCH_PROFILES, else beside the "
     "program)"},
    {"case", KEY_CASE, "NAME", PLAN | AB, MODE_NONE,
     "Run this cell alone; a printed name pasted back works (means --sweep)"},
    {"filter", KEY_FILTER, "REGEX", PLAN | AB, MODE_NONE,
     "Run the cells whose name matches this POSIX extended regular expression"},
    {"device", KEY_DEVICE, "cpu|cuda|auto", PLAN | AB | IN(MODE_APPLY) | IN(MODE_VERIFY), MODE_NONE,
     "Where kernels run (default auto: cuda if usable, else cpu, said first)"},
    {"devices", KEY_DEVICES, "all|LIST", SWEEP, MODE_NONE,
     "GPUs to use, such as 0,1: one worker process each, results merged; one alone is used as it "
     "is. With --device cpu workers on the host's processors"},
    {"seed", KEY_SEED, "N", PLAN | AB, MODE_NONE,
     "Seed of the inputs instead of the profile's; marks the results unfrozen"},
    {"shard", KEY_SHARD, "K/N", PLAN, MODE_NONE,
     "Run part K of N of the cells: balanced, the same on every machine, cells of one input "
     "together"},
    {"cost", KEY_COST, NULL, IN(MODE_LIST), MODE_NONE,
     "Print the estimated seconds of each cell, and with --shard of each shard"},
    {"slices", KEY_SLICES, "N", SWEEP | AB | IN(MODE_APPLY), MODE_NONE,
     "Slices per row of the split kernels, 1 to 32; marks the results unfrozen (default: as "
     "upstream for the device's multiprocessors, 132 on the CPU)"},
    {"threads", KEY_THREADS, "N", SWEEP | AB | IN(MODE_ORACLE) | IN(MODE_BENCH_ORACLE), MODE_NONE,
     "Threads of the oracle (default: one for each processor)"},
    {"timer", KEY_TIMER, "cupti|events", SWEEP | AB, MODE_NONE,
     "CUDA timer (default cupti; events is named in every row)"},
    {"gate-only", KEY_GATE_ONLY, NULL, SWEEP, MODE_NONE, "Judge every cell, time none"},
    {"dry-run", KEY_DRY_RUN, NULL, SWEEP, MODE_NONE,
     "Find out what would run, or why it would be refused, say how many cells, and stop; works for "
     "a GPU that is not here (exit 3: a plug-in cannot be looked at here)"},
    {"blocks", KEY_BLOCKS, "N", AB, MODE_NONE,
     "Blocks of each kernel in a cell, an even number (default: the profile's, at least 10)"},
    {"margin", KEY_MARGIN, "SHARE", AB, MODE_NONE,
     "Practical margin, as of perfwatch compare: 5% and 0.05 mean the same (default 2%)"},

    {NULL, 0, NULL, 0, MODE_NONE, "Kernels from elsewhere:"},
    {"plugin", KEY_PLUGIN, "LIBRARY", PLAN | AB | IN(MODE_VARIANTS) | IN(MODE_VERIFY), MODE_NONE,
     "Gate and time the kernels of this shared library too, in a process of its own "
     "(docs/plugins.md); may be given several times"},
    {"external", KEY_EXTERNAL, "NAME=COMMAND", PLAN, MODE_NONE,
     "Gate and time another program's kernel beside those of the profile (docs/external.md); may "
     "be "
     "given several times, the options below belong to the one before them"},
    {"external-output", KEY_EXTERNAL_OUTPUT, "masked_logits|probabilities|ids", PLAN, MODE_NONE,
     "What it writes (default: masked_logits)"},
    {"external-contract", KEY_EXTERNAL_CONTRACT, "exact|bounded|conservative|envelope", PLAN,
     MODE_NONE, "What the gate holds it to (default: exact)"},
    {"external-launch", KEY_EXTERNAL_LAUNCH, "stream|graph", PLAN, MODE_NONE,
     "CUDA: how it launches its kernels; its records must show it (default: stream)"},
    {"external-repeats", KEY_EXTERNAL_REPEATS, "N", SWEEP, MODE_NONE,
     "Timed repetitions of one start (default: the profile's least samples)"},

    {NULL, 0, NULL, 0, MODE_NONE, "Input and output:"},
    {"input", KEY_INPUT, "FILE.npy", PLAN | AB | IN(MODE_APPLY), MODE_NONE,
     "Your own logits, 2-D <f4 or <f2; a sweep runs them instead of the profile's families and "
     "marks the results unfrozen"},
    {"bfloat16", KEY_BFLOAT16, NULL, SWEEP | AB | IN(MODE_APPLY) | IN(MODE_ORACLE), MODE_NONE,
     "The file's <u2 elements are bfloat16"},
    {"p", KEY_P, "LIST", IN(MODE_ORACLE) | IN(MODE_APPLY), MODE_NONE,
     "The p to use, each above 0; --oracle takes a list with commas"},
    {"out", KEY_OUT, "DIR|FILE",
     SWEEP | AB | IN(MODE_MERGE) | IN(MODE_APPLY) | IN(MODE_PLOT) | IN(MODE_REPORT), MODE_NONE,
     "Folder of a sweep's results (default: sweep-out), of --ab's two (ab-out) or of charts "
     "(default: RESULTS/plots), "
     "--apply's .npy file, or the page (default: RESULTS/report.html)"},
    {"oracle-cache", KEY_ORACLE_CACHE, "DIR", SWEEP, MODE_NONE,
     "Keep what the oracle says of each input here, for later runs and for others at the same "
     "time"},
    {"mask-out", KEY_MASK_OUT, "FILE.npy", IN(MODE_ORACLE), MODE_NONE,
     "Write the logits with dropped tokens at -inf; one p alone"},
    {"resume", KEY_RESUME, NULL, SWEEP | AB, MODE_NONE,
     "Go on with the interrupted run in --out: finished blocks are kept"},
    {"force", KEY_FORCE, NULL, SWEEP | AB | IN(MODE_MERGE), MODE_NONE,
     "Replace an interrupted run, or the results of another plan, in --out"},
    {"separate-devices", KEY_SEPARATE, NULL, IN(MODE_MERGE), MODE_NONE,
     "Shards of several device models: a run for each model, in --out DIR/MODEL"},
    {"strict", KEY_STRICT, NULL, AB | IN(MODE_VERIFY), MODE_NONE,
     "--verify: exit 3 also when something could not be recomputed here; --ab: exit 1 when a cell "
     "is undecided"},

    {NULL, 0, NULL, 0, MODE_NONE, "Output of Google Benchmark:"},
    {"benchmark_out", KEY_PASS, "FILE", SWEEP, MODE_NONE, "Write its report to this file too"},
    {"benchmark_out_format", KEY_PASS + 1, "json|console|csv", SWEEP, MODE_NONE,
     "Format of --benchmark_out (default: json)"},
    {"benchmark_format", KEY_PASS + 2, "console|json|csv", SWEEP, MODE_NONE,
     "Format of its report on standard output; json and csv take the place of the table"},
    {"benchmark_color", KEY_PASS + 3, "auto|true|false", SWEEP, MODE_NONE, "Colour of its report"},
    {"benchmark_counters_tabular", KEY_PASS + 4, "true|false", SWEEP, MODE_NONE,
     "Its counters as columns"},
    {"benchmark_time_unit", KEY_PASS + 5, "ns|us|ms|s", SWEEP, MODE_NONE, "Unit of its report"},
};

static const char before_options[] =
    "Is a sampling kernel right, and how fast is it? Gates every cell with a binary64 oracle "
    "first, then times what passed.";
static const char after_options[] =
    "Exit codes:\n"
    "  0  everything as expected\n"
    "  1  a verdict against the profile's expectation, a changed item in a receipt;\n"
    "     --ab: B is slower, or one of the two alone passes the gate\n"
    "  2  usage, or unreadable input, named with file and position\n"
    "  3  it could not be measured here (no device, driver or CUPTI)\n"
    "  4  interrupted; finished blocks are saved, --resume goes on\n"
    "\n"
    "Results go to standard output or files, progress and diagnostics to standard error.\n"
    "\n"
    "Examples:\n"
    "  bench_topp --sweep --out results\n"
    "  bench_topp --ab stock exact --filter peaked\n"
    "  bench_topp --oracle logits.npy --p 0.9,0.95\n"
    "  bench_topp --apply exact --input logits.npy --p 0.9 --out masked.npy\n"
    "  bench_topp --verify results/receipt.json";

/* argp wants its own struct; built from the table so that the two cannot differ. */
void options_make_argp(struct argp_option *rows, struct argp *argp) {
    for (size_t i = 0; i < OPTION_ROWS; i++)
        rows[i] = (struct argp_option){.name = options_rows[i].name,
                                       .key = options_rows[i].key,
                                       .arg = options_rows[i].argument,
                                       .doc = options_rows[i].help,
                                       .group = 0};
    rows[OPTION_ROWS] = (struct argp_option){0};
    static char doc[sizeof before_options + sizeof after_options + 1];
    snprintf(doc, sizeof doc, "%s\v%s", before_options, after_options);
    *argp = (struct argp){.options = rows, .doc = doc};
}

void options_print_help(FILE *stream, const char *program, bool whole) {
    struct argp_option rows[OPTION_ROWS + 1];
    struct argp argp;
    options_make_argp(rows, &argp);
    argp_help(&argp, stream,
              whole ? ARGP_HELP_SHORT_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC : ARGP_HELP_USAGE,
              (char *)program);
}
