/* The command line of bench_topp: one table makes the parser, --help and docs/cli.md agree. */
#ifndef TOPP_BENCH_OPTIONS_H
#define TOPP_BENCH_OPTIONS_H

#include "bench/device.h"

#include <stdio.h>

enum {
    OPTION_MOST_P = 64,
    OPTION_MOST_PASSED = 16,
    OPTION_MOST_EXTERNAL = 16,
    OPTION_MOST_PLUGINS = 16,
    OPTION_MOST_DEVICES = 64
};

enum tool_mode {
    MODE_NONE,
    MODE_SWEEP,
    MODE_AB,
    MODE_MERGE,
    MODE_LIST,
    MODE_ORACLE,
    MODE_APPLY,
    MODE_BENCH_ORACLE,
    MODE_VERIFY,
    MODE_PLOT,
    MODE_REPORT,
    MODE_VARIANTS,
    MODE_HELP,
    MODE_USAGE,
    MODE_VERSION,
};

enum device_choice { CHOOSE_AUTO, CHOOSE_CPU, CHOOSE_CUDA };

/* A program of --external; the options behind it are its own. */
struct option_external {
    const char *text;     /* NAME=COMMAND, or COMMAND alone */
    int output;           /* enum topp_output */
    const char *contract; /* NULL: exact */
    bool graph;           /* it launches by CUDA graphs */
    int32_t repeats;      /* 0: as the profile's least samples */
};

/* What was asked for. All strings point into argv or are constants: nothing to free. */
struct options {
    enum tool_mode mode;
    const char *profile;     /* NULL: "default" */
    const char *profile_dir; /* NULL: beside the executable, or the source tree's */
    const char *case_name, *filter;
    enum device_choice device;
    const char
        *out; /* --sweep, --merge, --plot: folder, --apply, --report: file; NULL if not given */
    const char *mask_out; /* --oracle */
    const char *input;    /* --sweep, --apply */
    const char *subject;  /* --oracle FILE, --apply KERNEL, --verify RECEIPT, --plot and --report
                             RESULTS, --ab A */
    const char *against;  /* --ab: B */
    const char *margin;   /* --ab: as written, checked; NULL: perfwatch's default */
    int32_t blocks;       /* --ab: 0: as many as the profile has, at least 10 */
    bool resume, force, gate_only, strict, bfloat16;
    bool dry_run;            /* --sweep */
    bool cost;               /* --list */
    bool all_devices;        /* --devices all */
    bool separate_devices;   /* --merge */
    bool have_seed;          /* --seed */
    const char *const *dirs; /* --merge: [dir_count], in argv */
    size_t dir_count;
    int64_t seed;
    int32_t slices;                                     /* 0: as upstream */
    int32_t shard_index, shard_count;                   /* --shard K/N; 0/0: the whole plan */
    int32_t devices[OPTION_MOST_DEVICES], device_count; /* --devices LIST; 0: not given */
    int32_t threads;                                    /* 0: one per processor */
    int word_count;
    char *const *words;       /* the command line itself, for worker processes */
    const char *oracle_cache; /* folder, NULL: none */
    enum timer_kind timer;
    float p[OPTION_MOST_P];
    int32_t p_count;
    char *passed[OPTION_MOST_PASSED]; /* flags of Google Benchmark, as given */
    int32_t passed_count;
    const char *plugins[OPTION_MOST_PLUGINS]; /* paths of libraries */
    int32_t plugin_count;
    struct option_external external[OPTION_MOST_EXTERNAL];
    int32_t external_count;
};

enum option_key {
    KEY_SWEEP = 0x100,
    KEY_AB,
    KEY_MERGE,
    KEY_SEPARATE,
    KEY_LIST,
    KEY_CASE,
    KEY_ORACLE,
    KEY_APPLY,
    KEY_BENCH_ORACLE,
    KEY_VERIFY,
    KEY_PLOT,
    KEY_REPORT,
    KEY_VARIANTS,
    KEY_HELP,
    KEY_USAGE,
    KEY_VERSION,
    KEY_PROFILE,
    KEY_PROFILE_DIR,
    KEY_FILTER,
    KEY_DEVICE,
    KEY_OUT,
    KEY_RESUME,
    KEY_SEED,
    KEY_SLICES,
    KEY_SHARD,
    KEY_COST,
    KEY_ORACLE_CACHE,
    KEY_DEVICES,
    KEY_THREADS,
    KEY_TIMER,
    KEY_GATE_ONLY,
    KEY_DRY_RUN,
    KEY_BLOCKS,
    KEY_MARGIN,
    KEY_PLUGIN,
    KEY_INPUT,
    KEY_BFLOAT16,
    KEY_P,
    KEY_MASK_OUT,
    KEY_STRICT,
    KEY_FORCE,
    KEY_EXTERNAL,
    KEY_EXTERNAL_OUTPUT,
    KEY_EXTERNAL_CONTRACT,
    KEY_EXTERNAL_LAUNCH,
    KEY_EXTERNAL_REPEATS,
    KEY_PASS, /* and above: flags of Google Benchmark that are passed on */
};

/* One row of the table. Rows without a name open a group of the help text. */
struct option_row {
    const char *name;
    int key;
    const char *argument; /* NULL: a switch */
    uint32_t modes;       /* bit 1 << enum tool_mode for each mode it goes with */
    enum tool_mode opens; /* the mode that this option asks for, or MODE_NONE */
    const char *help;
};

enum { OPTION_ROWS = 57 };
extern const struct option_row options_rows[OPTION_ROWS];

/* Fills *options, from which alone the tools work. TB_USAGE: a message naming the option and the
 * mend stands in *error, or was printed to standard error by argp (then error->code is TB_OK).
 * argv is left as it is. */
enum tb_status options_parse(int argc, char **argv, struct options *options,
                             struct tb_error *error);

/* Builds argp's own form of the table (and of --help's texts) into rows[OPTION_ROWS + 1]. */
struct argp;
struct argp_option;
void options_make_argp(struct argp_option *rows, struct argp *argp);

/* The whole of --help, or the short form of --usage. */
void options_print_help(FILE *stream, const char *program, bool whole);

#endif
