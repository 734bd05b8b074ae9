/* How the CUDA split variants compare with the original's golden masks and with their CPU twin. */
#ifndef TOPP_TESTS_KERNELS_GPU_SPLIT_H
#define TOPP_TESTS_KERNELS_GPU_SPLIT_H

#include "kernels/split_search.h"
#include "kernels/topp.h"

/* The intermediate values of a row, in the order in which they come about. */
enum split_value {
    SPLIT_VALUE_EXTENT, /* a slice's max, min or count of finite logits */
    SPLIT_VALUE_Z,      /* normalizer: sums of exp */
    SPLIT_VALUE_PIVOT,  /* bracket and ladder: exp, log */
    SPLIT_VALUE_MASS,   /* mass above a pivot */
    SPLIT_VALUE_GMIN,   /* smallest P above a pivot */
    SPLIT_VALUE_COUNT,  /* how many lie within 1e-9 of it */
    SPLIT_VALUE_CHOICE, /* the round or pivot that ends the search */
    SPLIT_VALUE_NUMKEEP,
    SPLIT_VALUE_NONE,
    SPLIT_VALUES
};
extern const char *const split_value_name[SPLIT_VALUES];

/* One row's partials: stats [slices], steps [SPLIT_ROUNDS][slices]. */
struct split_partials {
    const struct split_stats *stats;
    const struct split_step *steps;
    int slices;
};

/* Where two computations of one row part: the first value that differs in any bit, and the first
 * that differs in more than rounding (extents, counts, choices: integers). */
struct split_parting {
    enum split_value first, first_discrete;
    double nearest; /* smallest relative distance of a decision's two sides, in a */
};

struct split_parting split_compare(const struct split_partials *a, const struct split_partials *b,
                                   float p);

#endif
