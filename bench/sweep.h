/* Profile (a JSON file, docs/profiles.md) -> ordered list of cells. Nothing here runs anything. */
#ifndef TOPP_BENCH_SWEEP_H
#define TOPP_BENCH_SWEEP_H

#include "bench/inputs.h"
#include "kernels/gumbel.h"
#include "kernels/topp.h"

enum { CELL_NAME_BYTES = 384 };

enum cell_kind { CELL_TOPP, CELL_GUMBEL, CELL_GUMBEL_STATISTIC };
enum cell_l2 { L2_NONE /* cpu */, L2_WARM, L2_COLD };
enum cell_launch { LAUNCH_NONE /* cpu */, LAUNCH_STREAM, LAUNCH_GRAPH };
enum expectation { EXPECT_ACCEPT, EXPECT_REJECT, EXPECT_EITHER };

struct timing_settings {
    int32_t blocks;        /* repetitions of Google Benchmark, each one block of samples */
    int32_t min_samples;   /* per block */
    int32_t max_samples;   /* per block */
    double precision;      /* target: relative half-width of the median's 95% interval */
    double block_seconds;  /* most time a block may take */
    double warmup_seconds; /* before the first block of a cell */
};

struct cell {
    char name
        [CELL_NAME_BYTES]; /* topp/<kernel>/<family>/vocab:V/batch:B/p:P/device:D[/l2:L/launch:M]
                            */
    enum cell_kind kind;
    const struct topp_variant *topp;     /* CELL_TOPP */
    const struct gumbel_variant *gumbel; /* the other two */
    struct family family;
    char statistic[32]; /* CELL_GUMBEL_STATISTIC: heavy_tail, whole_vocabulary, greedy, streams */
    int64_t vocab, batch, stride; /* resolved: stride = vocab + the entry's padding; statistics 0 */
    float p;                      /* CELL_TOPP */
    char p_text[32];              /* shortest decimal of p, or the profile's own text (1-2^-24) */
    float temperature;            /* CELL_GUMBEL */
    int64_t seed;
    int32_t draws; /* batches below 16: how many draws of rows are gated and timed, else 1 */
    enum cell_l2 l2;
    enum cell_launch launch;
    bool timed; /* false: gate only (hazard, statistics) */
    enum expectation expect;
    char expect_rule[32]; /* reject: a gate rule that some row must break, "" = any */
    double
        either_share; /* either: share of the rows of all draws that may be excused, rounded up */
    char expect_why[160]; /* the profile's own words, "" when nothing was declared */
};

struct profile_limits {
    int64_t max_vocab, max_batch;
    double case_seconds;    /* gate and each block: past it the verdict is timeout */
    int64_t artifact_bytes; /* most that one run may write */
};

/* Which part of a resolved list a plan holds; all zero: the whole of it (bench/shard.h). */
struct plan_shard {
    int32_t index, count; /* index from 1 */
    size_t cells;         /* of the whole list */
    char list_sha256[65]; /* of the whole list's names, in order, a line break between two */
};

/* A resolved plan. Owned; free with plan_free. */
struct plan {
    char profile_name[64], profile_path[512];
    char profile_sha256[65];
    int64_t seed;
    bool unfrozen;     /* --seed or another override changed what the profile says */
    char device[16];   /* "cpu" or "cuda" */
    bool listing_only; /* this build has no variant for the device: cells carry the CPU twins'
                          descriptors, can be listed, and must not be run */
    struct timing_settings timing;
    struct profile_limits limits;
    struct cell *cells;
    size_t count;
    struct plan_shard shard;
};

/* A variant that no registry lists, run on every input of its kind beside the kernels that the
 * profile names; a list of kernels with `plugin:NAME` in it means just these. */
struct plan_extra {
    const struct topp_variant *variant;  /* borrowed; cells point at it */
    const struct gumbel_variant *gumbel; /* the same, for the other kind; one of the two is NULL */
    enum cell_launch launch; /* CUDA: LAUNCH_NONE: in the profile's modes; else its cells are
                                l2:warm and this launch alone */
};

/* Timed cells of `kernel` alone that `beside` has too. filter and case_name may then name the cell
 * of either. */
struct plan_pair {
    const char *kernel, *beside;
};

struct plan_options {
    const char *profile; /* name in profile_dir, "default", or a path ending in .json */
    const char *profile_dir;
    const char *captured_dir; /* shapes of captured files are read from here */
    enum kernel_device device;
    bool any_device;    /* a profile for another device is listed for that one (plan.device tells);
                           false: such a profile is TB_USAGE */
    const char *family; /* replaces the families of every matrix entry and leaves statistics out
                           (a user's file: captured=NAME); marks the plan unfrozen; NULL = none */
    const struct plan_extra *extras; /* those of another device than the plan's are left out */
    size_t extra_count;
    bool have_seed;
    int64_t seed;
    const char *filter;    /* POSIX extended regex on names, NULL = all */
    const char *case_name; /* one cell alone, Google Benchmark's suffixes ignored, NULL = all */
    const struct plan_pair *pair; /* one side of --ab; NULL = none */
};

/* Cells that share an input (family, vocab, batch, stride) stand together, p outside kernel in
 * them; otherwise the order is the profile's. Names are unique. Unknown keys, wrong types, kernels
 * that do not exist, values past the limits, a filter or case that matches nothing: an error with
 * file, line and key. */
enum tb_status plan_load(const struct plan_options *options, struct plan *plan,
                         struct tb_error *error);
void plan_free(struct plan *plan);

/* The folder in which a profile's captured=NAME is looked up: `captured` beside a profile that is
 * given by its path (ending in .json), where there is one; else that of profile_dir. */
void plan_captured_dir(const char *profile, const char *profile_dir, char *dir, size_t bytes);

/* Do two cells read the same bytes? False for statistics, which make their own. */
bool cell_same_input(const struct cell *left, const struct cell *right);

const char *cell_l2_name(enum cell_l2 l2);             /* "warm", "cold", "" */
const char *cell_launch_name(enum cell_launch launch); /* "stream", "graph", "" */
const char *expectation_name(enum expectation expect);

#endif
