/* The program gpu_exact: what its files share. */
#ifndef TOPP_TESTS_KERNELS_GPU_EXACT_H
#define TOPP_TESTS_KERNELS_GPU_EXACT_H

#include "tests/kernels/gpu_run.h"

extern const struct topp_variant *variant; /* what is checked */
extern int64_t random_rows;                /* for check_random */
extern int failures;

double seconds(void);
/* Prints a check's counts, and counts it as failed when a certified row is not equal. */
void report(const char *what, const struct gpu_count *count, double since);

/* Of gpu_exact_made.c. */
void check_random(void);
void check_planted(void);
void check_near(void);
void check_wide(void);
void check_padded(void);
void check_unsure(void);
void check_crowded(void);

#endif
