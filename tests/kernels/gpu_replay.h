/* Time of one call of a CUDA variant: graphs of 10 calls, the input restored before each and the
 * time of restoring subtracted, median of 30 replays, by events. */
#ifndef TOPP_TESTS_KERNELS_GPU_REPLAY_H
#define TOPP_TESTS_KERNELS_GPU_REPLAY_H

#include "kernels/topp.h"

enum { REPLAY_CALLS = 10, REPLAY_COUNT = 30 };

/* pristine: device copy of the input, packed as problem->logits is. Returns microseconds; exits
 * with a message on a CUDA error. restore_us: what replay_restore returned for this problem. */
double replay_restore(const struct topp_problem *problem, const float *pristine);
double replay_time(const struct topp_variant *variant, const struct topp_problem *problem,
                   const float *pristine, double restore_us);

#endif
