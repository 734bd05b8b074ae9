/* The plan that a receipt's request asks for, resolved again where the receipt is read. */
#ifndef TOPP_BENCH_PLAN_AGAIN_H
#define TOPP_BENCH_PLAN_AGAIN_H

#include "bench/sweep.h"

#include <jansson.h>

struct plan_again {
    const json_t *request;   /* the receipt's; borrowed */
    const char *receipt_dir; /* a user's file may have come along with the receipt */
    const char *profile_dir; /* folder of profiles here */
    const struct plan_extra
        *extras; /* programs that the run named by --external; outlive the plan */
    size_t extra_count;
    bool profile_dir_wins;   /* it was asked for: before the place where the run found its own */
    char profile[4200];      /* of plan_again_profile() */
    char captured_dir[4096]; /* of plan_again_input() */
};

/* Where the profile is: false when it is not here. */
bool plan_again_profile(struct plan_again *again);
/* Where captured rows are: false when a user's file (--input) is not here. */
bool plan_again_input(struct plan_again *again);
/* The whole list, whatever shard the run was. Both of the above have said true. */
enum tb_status plan_again_load(const struct plan_again *again, struct plan *plan,
                               struct tb_error *error);

#endif
