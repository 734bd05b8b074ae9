/* Kernels that misbehave, each in one known way, and an honest one between them. */
#include "honest.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static volatile int never_zero = 1;

#define LAUNCH(NAME)                                                                               \
    static int NAME(const struct topp_problem *problem, void *workspace, size_t workspace_bytes,   \
                    void *stream)
#define USE_ALL (void)problem, (void)workspace, (void)workspace_bytes, (void)stream

LAUNCH(crashes) {
    USE_ALL;
    volatile int *nowhere = NULL;
    return *nowhere;
}

LAUNCH(aborts) {
    USE_ALL;
    abort();
}

LAUNCH(exits) {
    USE_ALL;
    _exit(3);
}

LAUNCH(loops) {
    USE_ALL;
    while (never_zero)
        ;
    return KERNEL_OK;
}

/* Where no thread can be cancelled. */
LAUNCH(loops_locked) {
    int old;
    USE_ALL;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    while (never_zero)
        ;
    return KERNEL_OK;
}

static size_t loops_in_workspace(const struct topp_problem *problem) {
    while (never_zero)
        ;
    return honest_workspace(problem);
}

LAUNCH(writes_behind) {
    honest_launch(problem, workspace, workspace_bytes, stream);
    problem->logits[problem->batch * problem->stride + 5] = 0.0f;
    return KERNEL_OK;
}

LAUNCH(writes_before) {
    honest_launch(problem, workspace, workspace_bytes, stream);
    problem->logits[-3] = 0.0f;
    return KERNEL_OK;
}

LAUNCH(writes_past_workspace) {
    ((char *)workspace)[workspace_bytes + 8] = 1;
    return honest_launch(problem, workspace, workspace_bytes, stream);
}

/* Far beyond all guards: whatever lies there. */
LAUNCH(writes_far) {
    USE_ALL;
    memset(problem->logits, 0, (size_t)1 << 30);
    return KERNEL_OK;
}

LAUNCH(writes_padding) {
    honest_launch(problem, workspace, workspace_bytes, stream);
    if (problem->stride > problem->vocab)
        problem->logits[problem->vocab] = problem->mask_value;
    return KERNEL_OK;
}

LAUNCH(ignores_stride) {
    USE_ALL;
    return honest_mask(problem, workspace, problem->vocab);
}

LAUNCH(changes_p) {
    honest_launch(problem, workspace, workspace_bytes, stream);
    ((float *)(void *)(size_t)problem->p)[0] = 0.5f;
    return KERNEL_OK;
}

LAUNCH(changes_problem) {
    honest_launch(problem, workspace, workspace_bytes, stream);
    ((struct topp_problem *)(void *)(size_t)problem)->stride = problem->vocab;
    return KERNEL_OK;
}

LAUNCH(claims_too_much) {
    const int status = honest_launch(problem, workspace, workspace_bytes, stream);
    const struct honest_token *tokens = workspace; /* of the last row: its lowest kept token goes */
    float *row = problem->logits + (problem->batch - 1) * problem->stride;
    int64_t n = 0;
    while (n < problem->vocab && row[tokens[n].id] != problem->mask_value)
        n++;
    if (n > 1)
        row[tokens[n - 1].id] = problem->mask_value;
    return status;
}

/* Right as long as the gate looks: a gate calls once a draw, warm-up and samples come later. */
LAUNCH(crashes_later) {
    static int calls;
    if (++calls > 6)
        return crashes(problem, workspace, workspace_bytes, stream);
    return honest_launch(problem, workspace, workspace_bytes, stream);
}

LAUNCH(drifts_later) {
    static int calls;
    if (++calls > 6)
        return KERNEL_OK; /* masks nothing any more */
    return honest_launch(problem, workspace, workspace_bytes, stream);
}

/* The same of its conduct: it writes outside, and to p, once the gate has looked. */
LAUNCH(writes_behind_later) {
    static int calls;
    const int status = honest_launch(problem, workspace, workspace_bytes, stream);
    if (++calls > 2)
        problem->logits[problem->batch * problem->stride + 3] = 0.0f;
    return status;
}

LAUNCH(changes_p_later) {
    static int calls;
    static float right;
    if (++calls == 1)
        right = problem->p[0];
    ((float *)(void *)(size_t)problem->p)[0] = right;
    const int status = honest_launch(problem, workspace, workspace_bytes, stream);
    if (calls > 2)
        ((float *)(void *)(size_t)problem->p)[0] = 0.5f;
    return status;
}

/* What is left of it, or what it becomes, holds the connection open. */
LAUNCH(forks_and_aborts) {
    USE_ALL;
    if (fork() == 0)
        for (;;)
            pause();
    abort();
}

LAUNCH(becomes_another) {
    USE_ALL;
    execl("/bin/sleep", "sleep", "86", (char *)NULL);
    return -1;
}

LAUNCH(stops) {
    raise(SIGSTOP);
    return honest_launch(problem, workspace, workspace_bytes, stream);
}

/* What it forks would answer beside it. */
static size_t forks_in_workspace(const struct topp_problem *problem) {
    (void)!fork();
    return honest_workspace(problem);
}

static size_t wants_too_much(const struct topp_problem *problem) {
    (void)problem;
    return (size_t)1 << 60;
}

static size_t wants_no_size(const struct topp_problem *problem) {
    (void)problem;
    return SIZE_MAX;
}

/* JSON, but no answer. */
LAUNCH(answers_itself) {
    static const char line[] = "{\"line\":\"verdict\",\"cell\":\"another\"}\n";
    for (int file = 3; file < 16; file++)
        (void)!write(file, line, sizeof line - 1);
    return honest_launch(problem, workspace, workspace_bytes, stream);
}

LAUNCH(refuses) {
    USE_ALL;
    return -7;
}

LAUNCH(fails) {
    USE_ALL;
    return 700;
}

/* Talks on standard output, and takes the worker's connection away. */
LAUNCH(closes_everything) {
    USE_ALL;
    puts("{\"line\":\"verdict\"}");
    fflush(stdout);
    for (int file = 3; file < 64; file++)
        close(file);
    return honest_launch(problem, workspace, workspace_bytes, stream);
}

LAUNCH(shouts) {
    puts("{\"line\":\"verdict\"}");
    fflush(stdout);
    return honest_launch(problem, workspace, workspace_bytes, stream);
}

#define VARIANT_OF(NAME, WORKSPACE, LAUNCHED)                                                      \
    static const struct topp_variant variant_##NAME = {.name = #NAME,                              \
                                                       .summary = "of the tests",                  \
                                                       .device = KERNEL_DEVICE_CPU,                \
                                                       .contract = "exact",                        \
                                                       .workspace_size = WORKSPACE,                \
                                                       .launch = LAUNCHED}
#define VARIANT(NAME) VARIANT_OF(NAME, honest_workspace, NAME)
VARIANT(crashes);
VARIANT(aborts);
VARIANT(exits);
VARIANT(loops);
VARIANT(loops_locked);
VARIANT(writes_behind);
VARIANT(writes_before);
VARIANT(writes_past_workspace);
VARIANT(writes_far);
VARIANT(writes_padding);
VARIANT(ignores_stride);
VARIANT(changes_p);
VARIANT(changes_problem);
VARIANT(claims_too_much);
VARIANT(crashes_later);
VARIANT(drifts_later);
VARIANT(writes_behind_later);
VARIANT(changes_p_later);
VARIANT(forks_and_aborts);
VARIANT(becomes_another);
VARIANT(stops);
VARIANT(answers_itself);
VARIANT(refuses);
VARIANT(fails);
VARIANT(closes_everything);
VARIANT(shouts);
VARIANT_OF(loops_in_workspace, loops_in_workspace, honest_launch);
VARIANT_OF(forks_in_workspace, forks_in_workspace, honest_launch);
VARIANT_OF(wants_too_much, wants_too_much, honest_launch);
VARIANT_OF(wants_no_size, wants_no_size, honest_launch);
VARIANT_OF(honest, honest_workspace, honest_launch);
static const struct topp_variant variant_small = {.name = "small",
                                                  .summary = "takes small shapes",
                                                  .device = KERNEL_DEVICE_CPU,
                                                  .contract = "exact",
                                                  .max_vocab = 100,
                                                  .workspace_size = honest_workspace,
                                                  .launch = honest_launch};

static const struct topp_variant *const list[] = {&variant_crashes,
                                                  &variant_aborts,
                                                  &variant_exits,
                                                  &variant_loops,
                                                  &variant_loops_locked,
                                                  &variant_loops_in_workspace,
                                                  &variant_writes_behind,
                                                  &variant_writes_before,
                                                  &variant_writes_past_workspace,
                                                  &variant_writes_far,
                                                  &variant_writes_padding,
                                                  &variant_ignores_stride,
                                                  &variant_changes_p,
                                                  &variant_changes_problem,
                                                  &variant_claims_too_much,
                                                  &variant_crashes_later,
                                                  &variant_drifts_later,
                                                  &variant_writes_behind_later,
                                                  &variant_changes_p_later,
                                                  &variant_forks_and_aborts,
                                                  &variant_becomes_another,
                                                  &variant_stops,
                                                  &variant_answers_itself,
                                                  &variant_forks_in_workspace,
                                                  &variant_wants_too_much,
                                                  &variant_wants_no_size,
                                                  &variant_refuses,
                                                  &variant_fails,
                                                  &variant_closes_everything,
                                                  &variant_shouts,
                                                  &variant_small,
                                                  &variant_honest,
                                                  NULL};
TOPP_PLUGIN_TABLE("hostile", list, NULL)
