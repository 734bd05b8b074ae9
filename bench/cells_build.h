/* Inside of cells_build: what its files share. */
#ifndef TOPP_BENCH_CELLS_BUILD_H
#define TOPP_BENCH_CELLS_BUILD_H

#include "bench/cells.h"

/* One input matrix that cells share. */
struct input_key {
    const struct family *family;
    int64_t vocab, batch, padding;
};

struct builder {
    const struct profile *profile;
    const struct plan_options *options;
    struct plan *plan;
    enum kernel_device device;
    struct family replacement; /* options->family, parsed */
    struct input_key *inputs;
    size_t input_count, input_capacity, cell_capacity;
    bool used[PROFILE_MOST_EXPECT]; /* which expectations some cell met */
    struct tb_error *error;
};

enum tb_status cells_no_memory(struct builder *b);
/* Fails at a place of the profile, such as "matrix"; detail stands behind the message. */
enum tb_status cells_fail(const struct builder *b, enum tb_status code, const char *path,
                          const char *message, const char *detail);
/* Adds a copy of the cell, named and with its expectation. */
enum tb_status cells_add(struct builder *b, const struct cell *cell);

/* cells_inputs.c: every input of the profile once, in its order. */
enum tb_status cells_collect_inputs(struct builder *b);
bool cells_entry_has(const struct builder *b, const struct profile_entry *entry,
                     const struct input_key *key);

/* cells_kernels.c: the cell for each kernel of the entry, in its order ("all": the registry's),
 * then for the extras unless the entry names its own. */
enum tb_status cells_each_kernel(struct builder *b, const struct profile_entry *entry,
                                 struct cell *cell);
enum tb_status cells_add_statistics(struct builder *b, const struct profile_entry *entry);

/* cells_check.c. Two cells of one name could not be told apart in any result. Where a user's family
 * stands in place of several, or entries of different kernels get the same extras, equal cells are
 * one cell. */
enum tb_status cells_check_unique(struct builder *b);
void cells_drop_repeated(struct builder *b);
/* Each expectation must be met by some cell. */
enum tb_status cells_check_used(struct builder *b);

#endif
