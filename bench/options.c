#include "bench/options.h"

#include "bench/options_values.h"
#include "oracle/share.h"

#include <argp.h>
#include <errno.h>
#include <string.h>

#define IN(mode) (1u << (mode))

static const struct option_row *row_of_key(int key) {
    for (size_t i = 0; i < OPTION_ROWS; i++)
        if (options_rows[i].name && options_rows[i].key == key)
            return &options_rows[i];
    return NULL;
}

static const struct option_row *row_of_mode(enum tool_mode mode) {
    for (size_t i = 0; i < OPTION_ROWS; i++)
        if (options_rows[i].name && options_rows[i].opens == mode && mode != MODE_NONE)
            return &options_rows[i];
    return NULL;
}

/* What the parser carries along. */
struct parsing {
    struct options *options;
    struct tb_error *error;
    bool seen[OPTION_ROWS];
    const struct option_row *stray; /* an option of --external before any */
};

/* --help and its like win over whatever else was asked for. */
static bool only_tells(enum tool_mode mode) {
    return mode == MODE_HELP || mode == MODE_USAGE || mode == MODE_VERSION;
}

static error_t open_mode(struct parsing *parsing, const struct option_row *row, const char *value) {
    struct options *options = parsing->options;
    if (only_tells(options->mode))
        return 0;
    const struct option_row *other = row_of_mode(options->mode);
    if (only_tells(row->opens)) {
        options->mode = row->opens;
        return 0;
    }
    if (other && other != row) {
        tb_fail(parsing->error, TB_USAGE, "--%s and --%s ask for two things: give one of them",
                other->name, row->name);
        return EINVAL;
    }
    options->mode = row->opens;
    if (value)
        options->subject = value;
    return 0;
}

/* Only flags that change where and how its report appears; what is run is the profile's. Values
 * are checked here, as the library ends the whole program, with exit code 0, at one it dislikes. */
static error_t pass_on(struct parsing *parsing, const struct option_row *row,
                       const struct argp_state *state) {
    struct options *options = parsing->options;
    if (options->passed_count == OPTION_MOST_PASSED) {
        tb_fail(parsing->error, TB_USAGE, "more than %d flags of Google Benchmark",
                OPTION_MOST_PASSED);
        return EINVAL;
    }
    /* It wants --flag=value in one word. */
    char *word = state->argv[state->next - 1];
    if (strncmp(word, "--benchmark_", 12) != 0 || !strchr(word, '=')) {
        tb_fail(parsing->error, TB_USAGE,
                "flags of Google Benchmark are written --benchmark_NAME=VALUE in one word");
        return EINVAL;
    }
    const char *value = strchr(word, '=') + 1;
    if (row->argument && strchr(row->argument, '|') && value_choice_of(row, value) < 0)
        return value_refuse(parsing->error, row, value, row->argument);
    options->passed[options->passed_count++] = word;
    return 0;
}

static error_t add_plugin(struct parsing *parsing, const char *path) {
    struct options *options = parsing->options;
    if (options->plugin_count == OPTION_MOST_PLUGINS) {
        tb_fail(parsing->error, TB_USAGE, "more than %d --plugin", OPTION_MOST_PLUGINS);
        return EINVAL;
    }
    options->plugins[options->plugin_count++] = path;
    return 0;
}

static error_t add_external(struct parsing *parsing, const char *text) {
    struct options *options = parsing->options;
    if (options->external_count == OPTION_MOST_EXTERNAL) {
        tb_fail(parsing->error, TB_USAGE, "more than %d --external", OPTION_MOST_EXTERNAL);
        return EINVAL;
    }
    options->external[options->external_count++] = (struct option_external){.text = text};
    return 0;
}

/* The options of a program stand behind its --external. */
static error_t take_external(struct parsing *parsing, const struct option_row *row,
                             const char *value) {
    struct options *options = parsing->options;
    int choice = 0;
    error_t failed = 0;
    /* Without one, check_values() says so, once the mode is known to be right. */
    struct option_external none = {0}, *external = &none;
    if (options->external_count > 0)
        external = &options->external[options->external_count - 1];
    else if (!parsing->stray)
        parsing->stray = row;
    switch (row->key) {
    case KEY_EXTERNAL_OUTPUT:
        return value_choice(parsing->error, row, value, &external->output);
    case KEY_EXTERNAL_CONTRACT:
        external->contract = value;
        return value_choice(parsing->error, row, value, &choice);
    case KEY_EXTERNAL_LAUNCH:
        failed = value_choice(parsing->error, row, value, &choice);
        external->graph = choice == 1;
        return failed;
    default:
        return value_small(parsing->error, row, value, 1, 1 << 20, &external->repeats);
    }
}

static error_t take(struct parsing *parsing, const struct option_row *row, char *value,
                    const struct argp_state *state) {
    struct options *options = parsing->options;
    int choice = 0;
    error_t failed = 0;
    switch (row->key) {
    case KEY_PROFILE:
        options->profile = value;
        return 0;
    case KEY_PROFILE_DIR:
        options->profile_dir = value;
        return 0;
    case KEY_CASE:
        options->case_name = value;
        return 0;
    case KEY_FILTER:
        options->filter = value;
        return 0;
    case KEY_OUT:
        options->out = value;
        return 0;
    case KEY_MASK_OUT:
        options->mask_out = value;
        return 0;
    case KEY_ORACLE_CACHE:
        options->oracle_cache = value;
        return 0;
    case KEY_INPUT:
        if (options->input) {
            tb_fail(parsing->error, TB_USAGE,
                    "--input stands twice: several files go into one profile "
                    "(docs/captured-logits.md)");
            return EINVAL;
        }
        options->input = value;
        return 0;
    case KEY_RESUME:
        options->resume = true;
        return 0;
    case KEY_FORCE:
        options->force = true;
        return 0;
    case KEY_BLOCKS:
        return value_small(parsing->error, row, value, 1, 10000, &options->blocks);
    case KEY_MARGIN:
        options->margin = value;
        return 0;
    case KEY_GATE_ONLY:
        options->gate_only = true;
        return 0;
    case KEY_DRY_RUN:
        options->dry_run = true;
        return 0;
    case KEY_SEPARATE:
        options->separate_devices = true;
        return 0;
    case KEY_STRICT:
        options->strict = true;
        return 0;
    case KEY_BFLOAT16:
        options->bfloat16 = true;
        return 0;
    case KEY_SEED:
        options->have_seed = true;
        return value_integer(parsing->error, row, value, INT64_MIN, INT64_MAX, &options->seed);
    case KEY_DEVICES:
        return value_devices(parsing->error, row, value, options);
    case KEY_SHARD:
        return value_shard(parsing->error, row, value, options);
    case KEY_COST:
        options->cost = true;
        return 0;
    case KEY_SLICES:
        return value_small(parsing->error, row, value, 1, 32, &options->slices);
    case KEY_THREADS:
        return value_small(parsing->error, row, value, 1, 1024, &options->threads);
    case KEY_P:
        return value_p(parsing->error, row, value, options);
    case KEY_DEVICE:
        failed = value_choice(parsing->error, row, value, &choice);
        options->device = choice == 0 ? CHOOSE_CPU : choice == 1 ? CHOOSE_CUDA : CHOOSE_AUTO;
        return failed;
    case KEY_PLUGIN:
        return add_plugin(parsing, value);
    case KEY_EXTERNAL:
        return add_external(parsing, value);
    case KEY_EXTERNAL_OUTPUT:
    case KEY_EXTERNAL_CONTRACT:
    case KEY_EXTERNAL_LAUNCH:
    case KEY_EXTERNAL_REPEATS:
        return take_external(parsing, row, value);
    case KEY_TIMER:
        failed = value_choice(parsing->error, row, value, &choice);
        options->timer = choice == 0 ? TIMER_CUPTI : TIMER_EVENTS;
        return failed;
    default:
        return row->key >= KEY_PASS ? pass_on(parsing, row, state) : open_mode(parsing, row, value);
    }
}

/* An option that belongs to other modes is refused: silently ignored options mislead. */
static error_t check_modes(struct parsing *parsing) {
    struct options *options = parsing->options;
    if (options->mode == MODE_NONE && options->case_name)
        options->mode = MODE_SWEEP;
    if (options->mode == MODE_NONE) {
        tb_fail(parsing->error, TB_USAGE,
                "nothing to do: give --sweep, --list, --oracle, --apply or --verify (--help says "
                "what each does)");
        return EINVAL;
    }
    if (only_tells(options->mode))
        return 0;
    for (size_t i = 0; i < OPTION_ROWS; i++) {
        if (!parsing->seen[i] || (options_rows[i].modes & IN(options->mode)))
            continue;
        tb_fail(parsing->error, TB_USAGE, "--%s does not go with --%s: leave one of them out",
                options_rows[i].name, row_of_mode(options->mode)->name);
        return EINVAL;
    }
    return 0;
}

/* What a mode cannot do without, and values that exclude each other. */
static error_t check_values(struct parsing *parsing) {
    struct options *options = parsing->options;
    const char *missing = NULL, *clash = NULL;
    if (options->mode == MODE_ORACLE && !options->p_count)
        missing = "--oracle needs --p, such as --p 0.9,0.95";
    if (options->mode == MODE_APPLY && !options->input)
        missing = "--apply needs --input FILE.npy";
    else if (options->mode == MODE_APPLY && !options->p_count)
        missing = "--apply needs --p, such as --p 0.9";
    else if (options->mode == MODE_APPLY && !options->out)
        missing = "--apply needs --out FILE.npy";
    if (options->mode == MODE_APPLY && options->p_count > 1)
        clash = "--apply takes one --p; run it once for each";
    if (options->mode == MODE_AB && !options->against)
        missing = "--ab needs two kernels, such as --ab stock exact (--variants lists them)";
    if (options->mode == MODE_MERGE && !options->dir_count)
        missing = "--merge needs the folders of the shards, such as --merge shards/* --out merged";
    else if (options->mode == MODE_MERGE && !options->out)
        missing = "--merge needs --out DIR";
    if (options->blocks % 2)
        clash = "--blocks: an even number, so that each kernel is first as often as second";
    if (options->mask_out && options->p_count > 1)
        clash = "--mask-out takes one --p; run it once for each";
    if (options->resume && options->force)
        clash = "--resume keeps what --force replaces: give one of them";
    if (options->case_name && options->filter)
        clash = "--case and --filter both choose cells: give one of them";
    if (options->gate_only && options->timer != TIMER_DEFAULT)
        clash = "--gate-only times nothing: leave --timer out";
    if (options->timer != TIMER_DEFAULT && options->device == CHOOSE_CPU)
        clash = "--timer chooses between timers of CUDA: leave it out with --device cpu";
    if (options->shard_count && (options->all_devices || options->device_count > 1))
        clash = "--devices cuts the sweep into shards of its own: with --shard give it one device";
    if (options->passed_count && (options->all_devices || options->device_count > 1))
        clash = "flags of Google Benchmark do not go with several --devices: benchmark.json in "
                "--out holds all";
    if (options->bfloat16 && !options->input && options->mode != MODE_ORACLE)
        clash = "--bfloat16 says how to read --input FILE.npy: give that too";
    double margin;
    if (options->margin &&
        share_parse("--margin", options->margin, 1e-4, 100.0, &margin, parsing->error) != TB_OK)
        return EINVAL;
    if (parsing->stray) {
        tb_fail(parsing->error, TB_USAGE, "--%s belongs to the --external before it: there is none",
                parsing->stray->name);
        return EINVAL;
    }
    if (!missing && !clash)
        return 0;
    tb_fail(parsing->error, TB_USAGE, "%s", missing ? missing : clash);
    return EINVAL;
}

/* Folders of --merge stand in argv one behind the other. */
static bool take_folder(struct options *options, const struct argp_state *state) {
    const char *const *word = (const char *const *)&state->argv[state->next - 1];
    if (options->mode != MODE_MERGE ||
        (options->dir_count && word != options->dirs + options->dir_count))
        return false;
    if (!options->dir_count)
        options->dirs = word;
    options->dir_count++;
    return true;
}

/* Other programs mean standard input or output by it. */
static bool is_dash(const struct option_row *row, const char *value) {
    return row->argument && (strstr(row->argument, "FILE") || strstr(row->argument, "DIR")) &&
           !strcmp(value, "-");
}

static error_t parse_key(int key, char *value, struct argp_state *state) {
    struct parsing *parsing = state->input;
    if (key == ARGP_KEY_ARG && parsing->options->mode == MODE_AB && !parsing->options->against) {
        parsing->options->against = value;
        return 0;
    }
    if (key == ARGP_KEY_ARG && take_folder(parsing->options, state))
        return 0;
    if (key == ARGP_KEY_ARG) {
        tb_fail(parsing->error, TB_USAGE, "'%s' belongs to no option: --help lists them", value);
        return EINVAL;
    }
    if (key == ARGP_KEY_END) {
        error_t failed = check_modes(parsing);
        if (!failed && !only_tells(parsing->options->mode))
            failed = check_values(parsing);
        return failed;
    }
    const struct option_row *row = row_of_key(key);
    if (!row)
        return ARGP_ERR_UNKNOWN;
    if (row->argument && !*value) {
        tb_fail(parsing->error, TB_USAGE, "--%s: its value (%s) is empty", row->name,
                row->argument);
        return EINVAL;
    }
    if (is_dash(row, value)) {
        tb_fail(parsing->error, TB_USAGE,
                "--%s: no standard input or output here: name a %s (./- if it is called -)",
                row->name, row->argument);
        return EINVAL;
    }
    parsing->seen[row - options_rows] = true;
    return take(parsing, row, value, state);
}

enum tb_status options_parse(int argc, char **argv, struct options *options,
                             struct tb_error *error) {
    struct argp_option rows[OPTION_ROWS + 1];
    struct argp argp;
    options_make_argp(rows, &argp);
    argp.parser = parse_key;
    *options = (struct options){.words = argv, .word_count = argc};
    struct parsing parsing = {.options = options, .error = error};
    error_t failed =
        argp_parse(&argp, argc, argv, ARGP_NO_EXIT | ARGP_NO_HELP | ARGP_IN_ORDER, NULL, &parsing);
    return failed ? TB_USAGE : TB_OK;
}
