/* Two kernels held against each other: cells that differ in their kernel alone get one name. */
#ifndef TOPP_CI_PAIRING_H
#define TOPP_CI_PAIRING_H

#include "ci/results.h"

/* "A,B" -> two names, each below KERNEL_NAME_BYTES. */
enum { KERNEL_NAME_BYTES = 64 };
struct kernel_pair {
    char base[KERNEL_NAME_BYTES], new_side[KERNEL_NAME_BYTES];
};
enum tb_status kernel_pair_parse(const char *text, struct kernel_pair *pair,
                                 struct tb_error *error);

/* Leaves in BASE the cells of pair->base and in NEW those of pair->new_side (the two may hold the
 * same files), under names in which the kernel is "A~B", or A alone when both are the same. What
 * follows from the kernel is forgotten: contract, kept counts, masks and the sources' hash. The
 * gate's verdicts stay. TB_USAGE: a side has no cell of its kernel. */
enum tb_status kernel_pair_apply(const struct kernel_pair *pair, struct results_set *base,
                                 struct results_set *new_side, struct tb_error *error);

#endif
