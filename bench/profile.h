/* A parsed profile: what docs/profiles.md describes, checked but not yet multiplied out. */
#ifndef TOPP_BENCH_PROFILE_H
#define TOPP_BENCH_PROFILE_H

#include "bench/json_source.h"
#include "bench/sweep.h"

enum {
    PROFILE_MOST_ENTRIES = 64,
    PROFILE_MOST_VALUES = 64, /* of one axis */
    PROFILE_MOST_EXPECT = 64,
    PROFILE_NAME_BYTES = 48,
    PROFILE_VOCAB_MOST = INT32_MAX,
    PROFILE_BATCH_MOST = 1 << 20,
};

struct profile_whole {
    int64_t at[PROFILE_MOST_VALUES];
    size_t count;
};

struct profile_real {
    float at[PROFILE_MOST_VALUES];
    char text[PROFILE_MOST_VALUES][32];
    size_t count;
};

struct profile_names {
    char at[PROFILE_MOST_VALUES][PROFILE_NAME_BYTES];
    size_t count;
    bool all; /* the word "all" in place of a list: every variant of the device */
};

struct profile_modes { /* CUDA alone */
    enum cell_l2 l2[2];
    size_t l2_count;
    enum cell_launch launch[2];
    size_t launch_count;
};

struct profile_entry {
    enum cell_kind kind;
    struct profile_names kernels; /* top-p kernels or Gumbel variants */
    struct family families[PROFILE_MOST_VALUES];
    size_t family_count;
    struct profile_whole vocab, batch;
    struct profile_real p;           /* CELL_TOPP */
    struct profile_real temperature; /* CELL_GUMBEL */
    struct profile_names statistics; /* CELL_GUMBEL_STATISTIC */
    int64_t padding;                 /* stride = vocab + padding */
    bool timed;
    struct profile_modes modes;
};

struct profile_expect {
    char kernel[PROFILE_NAME_BYTES], family[FAMILY_TEXT_BYTES]; /* fnmatch patterns */
    struct profile_whole vocab, batch;                          /* empty: any */
    struct profile_real p;                                      /* empty: any */
    enum expectation expect;
    char rule[32];
    double share;
    char why[160];
};

enum profile_device { PROFILE_ANY, PROFILE_CPU, PROFILE_CUDA };

/* Owns source, entries and expects; release with profile_free. */
struct profile {
    struct json_source source;
    char name[64], summary[200];
    enum profile_device device;
    int64_t seed;
    struct profile_limits limits;
    struct timing_settings timing;
    int32_t draws;
    struct profile_modes modes;
    struct profile_entry *entries;
    size_t entry_count;
    struct profile_expect *expects;
    size_t expect_count;
};

enum tb_status profile_load(const char *file, struct profile *profile, struct tb_error *error);
void profile_free(struct profile *profile);

/* Readers shared by the two files of the parser; each reports its place. */
enum tb_status profile_read_whole(const struct json_place *place, int64_t least, int64_t most,
                                  struct profile_whole *out);
enum tb_status profile_read_p(const struct json_place *place, struct profile_real *out);
enum tb_status profile_read_matrix(const struct json_place *root, struct profile *profile);
enum tb_status profile_read_modes(const struct json_place *object, const struct profile *profile,
                                  struct profile_modes *modes);

#endif
