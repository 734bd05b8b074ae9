/* Kernels of other programs: what --external names. A program is started once for each input; it
 * becomes a variant of the plan, is gated like any other and timed by what is injected into it
 * (bench/inject.h). docs/external.md is the protocol. */
#ifndef TOPP_BENCH_EXTERNAL_H
#define TOPP_BENCH_EXTERNAL_H

#include "bench/options.h"
#include "bench/sweep.h"

#include <jansson.h>

enum { EXTERNAL_NAME_BYTES = 48 };

/* Exit codes of a program that mean something else than a failure. */
enum { EXTERNAL_ABSENT = 3 /* a package or a device is not here */, EXTERNAL_PAST_LIMITS = 4 };

struct external {
    char name[EXTERNAL_NAME_BYTES];
    const char *command;         /* for /bin/sh; borrowed */
    struct topp_variant variant; /* cells point here; never launched in this process */
    enum cell_launch launch;     /* CUDA: what its records must show; LAUNCH_NONE on the CPU */
    int32_t repeats; /* timed repetitions of a start; 0: as the profile's least samples */
};

/* Must not move while a plan lives. */
struct external_list {
    struct external items[OPTION_MOST_EXTERNAL];
    struct plan_extra extras[OPTION_MOST_EXTERNAL];
    size_t count;
    char inject[4096]; /* libtopp_inject.so; "": not found, nothing can be timed */
};

/* TB_USAGE: a name that a kernel of the device or another program has, or no name at all. */
enum tb_status external_list_make(const struct option_external *options, size_t count,
                                  enum kernel_device device, struct external_list *list,
                                  struct tb_error *error);

/* Looks for the injected library: $TOPP_BENCH_INJECT, beside the program (folder program_dir), in
 * its ../lib. */
void external_find_inject(struct external_list *list, const char *program_dir);

/* The program behind a variant, NULL for kernels of this process. */
const struct external *external_of(const struct topp_variant *variant);

/* What a result file says of them: an array of {name, command, output, contract, launch, repeats,
 * files: [{path, sha256}]}; files: the words of the command that are files here. New object. */
json_t *external_list_to_json(const struct external_list *list);
/* The reverse, of an array that outlives the list. TB_UNREADABLE when it is none. */
enum tb_status external_list_from_json(const json_t *json, enum kernel_device device,
                                       struct external_list *list, struct tb_error *error);

/* Timed repetitions of one start for a cell of so many draws. */
int32_t external_repeats(const struct external *external, const struct timing_settings *timing,
                         int32_t draws);

#endif
