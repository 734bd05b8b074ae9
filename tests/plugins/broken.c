/* Libraries that are no plug-in, each for one reason: BROKEN says which. */
#include "honest.h"

#define NO_TABLE 1
#define OTHER_ABI 2
#define OTHER_SIZES 3
#define NULL_TABLE 4
#define EMPTY_TABLE 5
#define CRASHES_ON_LOAD 6
#define LOOPS_ON_LOAD 7
#define UNKNOWN_CONTRACT 8
#define BUILT_IN_NAME 9
#define BAD_NAME 10
#define NO_LAUNCH 11
#define TWICE 12
#define ENDLESS_LIST 13
#define UNDEFINED_SYMBOL 14
#define UNKNOWN_NOISE 15
#define WANTS_BOUNDARY 16
#define UNKNOWN_DEVICE 17
#define UNKNOWN_OUTPUT 18

static const struct topp_variant variant = {
    .name = BROKEN == BUILT_IN_NAME ? "exact"
            : BROKEN == BAD_NAME    ? "a/b"
                                    : "broken",
    .summary = "of the tests",
    .device = BROKEN == UNKNOWN_DEVICE ? (enum kernel_device)7 : KERNEL_DEVICE_CPU,
    .output = BROKEN == UNKNOWN_OUTPUT ? (enum topp_output)9 : TOPP_MASKED_LOGITS,
    .contract = BROKEN == UNKNOWN_CONTRACT ? "perfect" : "exact",
    .needs_boundary = BROKEN == WANTS_BOUNDARY,
    .workspace_size = honest_workspace,
    .launch = BROKEN == NO_LAUNCH ? NULL : honest_launch};

#if BROKEN == ENDLESS_LIST
#define FOUR(X) X, X, X, X
#define LIST FOUR(FOUR(FOUR(FOUR(&variant))))
#elif BROKEN == TWICE
#define LIST &variant, &variant
#else
#define LIST &variant
#endif
static const struct topp_variant *const list[] = {LIST, NULL};
static const struct topp_variant *const empty[] = {NULL};

static size_t no_workspace(const struct gumbel_problem *problem) {
    (void)problem;
    return 0;
}
static int no_draw(const struct gumbel_problem *problem, void *workspace, size_t workspace_bytes,
                   void *stream) {
    (void)problem, (void)workspace, (void)workspace_bytes, (void)stream;
    return KERNEL_UNSUPPORTED;
}
static const struct gumbel_variant noisy = {.name = "noisy",
                                            .noise_name = "white",
                                            .device = KERNEL_DEVICE_CPU,
                                            .workspace_size = no_workspace,
                                            .launch = no_draw};
static const struct gumbel_variant *const noises[] = {&noisy, NULL};

#if BROKEN == CRASHES_ON_LOAD
__attribute__((constructor)) static void crash(void) {
    abort();
}
#elif BROKEN == LOOPS_ON_LOAD
static volatile int never_zero = 1;
__attribute__((constructor)) static void loop(void) {
    while (never_zero)
        ;
}
#elif BROKEN == UNDEFINED_SYMBOL
int topp_is_nowhere_defined(void);
__attribute__((constructor)) static void call(void) {
    topp_is_nowhere_defined();
}
#endif

#if BROKEN != NO_TABLE
TOPP_PLUGIN_EXPORT const struct topp_plugin *topp_plugin_table(void);
TOPP_PLUGIN_EXPORT
#else
const struct topp_plugin *some_other_table(void);
#define topp_plugin_table some_other_table
#endif
const struct topp_plugin *topp_plugin_table(void) {
    static struct topp_plugin table;
    table =
        (struct topp_plugin){.abi = TOPP_PLUGIN_ABI + (BROKEN == OTHER_ABI),
                             .struct_bytes = topp_plugin_struct_bytes() + (BROKEN == OTHER_SIZES),
                             .name = "broken",
                             .topp = BROKEN == EMPTY_TABLE ? empty : list,
                             .gumbel = BROKEN == UNKNOWN_NOISE ? noises : NULL};
    return BROKEN == NULL_TABLE ? NULL : &table;
}
