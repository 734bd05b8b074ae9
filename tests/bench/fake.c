#include "fake.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

enum { LATER = 6, WORKSPACE_BYTES = 64 };

static long calls_of[FAKE_KINDS], calls_of_all, stop_call;
static volatile sig_atomic_t *stop_flag;

long fake_calls(void) {
    return calls_of_all;
}

static int exact(const struct topp_problem *problem) {
    static _Alignas(256) unsigned char memory[1 << 20];
    const struct topp_variant *variant = topp_find("exact", KERNEL_DEVICE_CPU);
    const size_t bytes = variant->workspace_size(problem);
    if (bytes > sizeof memory)
        return KERNEL_WORKSPACE;
    return variant->launch(problem, memory, bytes, NULL);
}

static void drop_one(const struct topp_problem *problem) {
    int64_t token = 0;
    while (token < problem->vocab - 1 && problem->logits[token] == problem->mask_value)
        token++;
    problem->logits[token] = problem->mask_value;
}

static void work_for_nothing(const struct topp_problem *problem) {
    static float rows[FAKE_BATCH * (FAKE_VOCAB + 3)];
    struct topp_problem copy = *problem;
    copy.logits = rows;
    for (int i = 1; i < FAKE_SLOWNESS; i++) {
        memcpy(rows, problem->logits, sizeof rows);
        exact(&copy);
    }
}

static void hang(void) {
    for (volatile int turn = 0;; turn = !turn)
        ;
}

static int launch(enum fake_kind kind, const struct topp_problem *problem,
                  unsigned char *workspace) {
    const long call = ++calls_of[kind];
    if (kind == FAKE_SLOW)
        work_for_nothing(problem);
    const int status = exact(problem);
    if (++calls_of_all == stop_call)
        *stop_flag = 1;
    switch (kind) {
    case FAKE_WRONG:
        drop_one(problem);
        break;
    case FAKE_LATER_DRAW:
        if (call == 2)
            drop_one(problem);
        break;
    case FAKE_PADDING:
        problem->logits[problem->vocab] = 1.0f;
        break;
    case FAKE_HANGS:
        hang();
        break;
    case FAKE_HANGS_LATER:
        if (call >= LATER)
            hang();
        break;
    case FAKE_WORKSPACE:
        return KERNEL_WORKSPACE;
    case FAKE_UNSUPPORTED:
        return KERNEL_UNSUPPORTED;
    case FAKE_DRIFTS:
        if (call >= LATER)
            drop_one(problem);
        break;
    case FAKE_LAUNCH_LATER:
        if (call >= LATER)
            return KERNEL_WORKSPACE;
        break;
    case FAKE_TRUSTS_MEMORY:
        if (workspace[0] != 0 || workspace[WORKSPACE_BYTES - 1] != 0)
            drop_one(problem);
        break;
    case FAKE_FLOOR:
        if (!problem->boundary || !(problem->boundary[0].token >= 0))
            drop_one(problem);
        break;
    case FAKE_PAST_ROWS:
        problem->logits[problem->batch * problem->stride] = 1.0f;
        break;
    case FAKE_PAST_WORKSPACE:
        workspace[WORKSPACE_BYTES] = 0;
        break;
    default:
        break;
    }
    return status;
}

static size_t workspace_size(const struct topp_problem *problem) {
    (void)problem;
    return WORKSPACE_BYTES;
}

#define LAUNCH(kind)                                                                               \
    static int launch_##kind(const struct topp_problem *problem, void *workspace, size_t bytes,    \
                             void *stream) {                                                       \
        (void)bytes;                                                                               \
        (void)stream;                                                                              \
        return launch(kind, problem, workspace);                                                   \
    }
LAUNCH(FAKE_GOOD)
LAUNCH(FAKE_WRONG)
LAUNCH(FAKE_LATER_DRAW)
LAUNCH(FAKE_PADDING)
LAUNCH(FAKE_HANGS)
LAUNCH(FAKE_HANGS_LATER)
LAUNCH(FAKE_WORKSPACE)
LAUNCH(FAKE_UNSUPPORTED)
LAUNCH(FAKE_MOST_BATCH)
LAUNCH(FAKE_DRIFTS)
LAUNCH(FAKE_LAUNCH_LATER)
LAUNCH(FAKE_TRUSTS_MEMORY)
LAUNCH(FAKE_REFUSED_BLOCK)
LAUNCH(FAKE_FLOOR)
LAUNCH(FAKE_PAST_ROWS)
LAUNCH(FAKE_PAST_WORKSPACE)
LAUNCH(FAKE_SLOW)

#define VARIANT(kind, text)                                                                        \
    [kind] = {.name = text,                                                                        \
              .summary = "fake",                                                                   \
              .device = KERNEL_DEVICE_CPU,                                                         \
              .contract = "exact",                                                                 \
              .max_batch = (kind) == FAKE_MOST_BATCH,                                              \
              .needs_boundary = (kind) == FAKE_FLOOR,                                              \
              .workspace_size = workspace_size,                                                    \
              .launch = launch_##kind}
static const struct topp_variant variants[FAKE_KINDS] = {
    VARIANT(FAKE_GOOD, "good"),
    VARIANT(FAKE_WRONG, "wrong"),
    VARIANT(FAKE_LATER_DRAW, "later_draw"),
    VARIANT(FAKE_PADDING, "padding"),
    VARIANT(FAKE_HANGS, "hangs"),
    VARIANT(FAKE_HANGS_LATER, "hangs_later"),
    VARIANT(FAKE_WORKSPACE, "workspace"),
    VARIANT(FAKE_UNSUPPORTED, "unsupported"),
    VARIANT(FAKE_MOST_BATCH, "most_batch"),
    VARIANT(FAKE_DRIFTS, "drifts"),
    VARIANT(FAKE_LAUNCH_LATER, "launch_later"),
    VARIANT(FAKE_TRUSTS_MEMORY, "trusts_memory"),
    VARIANT(FAKE_REFUSED_BLOCK, "refused_block"),
    VARIANT(FAKE_FLOOR, "floor"),
    VARIANT(FAKE_PAST_ROWS, "past_rows"),
    VARIANT(FAKE_PAST_WORKSPACE, "past_workspace"),
    VARIANT(FAKE_SLOW, "slow"),
};

const char *fake_name(enum fake_kind kind) {
    return variants[kind].name;
}

static struct device *cpu_device;
static char blocks[FAKE_MOST_BLOCKS + 1];

const char *fake_blocks(void) {
    static char told[sizeof blocks];
    memcpy(told, blocks, sizeof told);
    blocks[0] = '\0';
    return told;
}

static enum tb_status time_block(struct device *device, const struct block_request *request,
                                 struct block_result *result, struct tb_error *error) {
    (void)device;
    const size_t known = strlen(blocks);
    if (known < FAKE_MOST_BLOCKS) {
        blocks[known] = request->calls->name[strlen("topp/")];
        blocks[known + 1] = '\0';
    }
    if (request->block == 1 && strstr(request->calls->name, "/refused_block/")) {
        memset(result, 0, sizeof *result);
        result->events_ns = NAN;
        snprintf(result->refused, sizeof result->refused, "3 of 4 records were dropped");
        return TB_OK;
    }
    return cpu_device->ops->time_block(cpu_device, request, result, error);
}

static void describe_cell(struct cell *cell, enum fake_kind kind) {
    struct tb_error error = TB_ERROR_INIT;
    *cell = (struct cell){.kind = CELL_TOPP,
                          .topp = &variants[kind],
                          .vocab = FAKE_VOCAB,
                          .batch = FAKE_BATCH,
                          .stride = FAKE_VOCAB + 3,
                          .p = 0.9f,
                          .p_text = "0.9",
                          .seed = 42,
                          .draws = FAKE_DRAWS,
                          .timed = true,
                          .expect = EXPECT_ACCEPT};
    assert_int_equal(family_parse("normal", &cell->family, &error), TB_OK);
    snprintf(cell->name, sizeof cell->name, "topp/%s/normal/vocab:%d/batch:%d/p:0.9/device:cpu",
             variants[kind].name, FAKE_VOCAB, FAKE_BATCH);
}

void fake_open(struct fake *fake, const char *out, const enum fake_kind *kinds, size_t count) {
    const struct device_options options = {.index = 0};
    memset(fake, 0, sizeof *fake);
    assert_int_equal(device_cpu_open(&options, &fake->cpu, &fake->error), TB_OK);
    cpu_device = fake->cpu;
    fake->ops = *fake->cpu->ops;
    fake->ops.time_block = time_block;
    fake->device = (struct device){.ops = &fake->ops, .kind = KERNEL_DEVICE_CPU, .sm_count = 132};
    fake->plan = (struct plan){
        .profile_name = "fake",
        .profile_sha256 = "00",
        .seed = 42,
        .device = "cpu",
        .timing = {.blocks = FAKE_BLOCKS,
                   .min_samples = 4,
                   .max_samples = 4,
                   .precision = 0.01,
                   .block_seconds = 60.0},
        .limits = {.max_vocab = 1 << 20,
                   .max_batch = 1 << 10,
                   .case_seconds = 0.5,
                   .artifact_bytes = 1 << 26},
        .cells = fake->cells,
        .count = count,
    };
    for (size_t i = 0; i < count; i++)
        describe_cell(&fake->cells[i], kinds[i]);
    fake->run = (struct sweep_run){.plan = &fake->plan,
                                   .device = &fake->device,
                                   .out_dir = out,
                                   .threads = 1,
                                   .stop = &fake->stop};
}

void fake_stop_at(long call, volatile sig_atomic_t *stop) {
    memset(calls_of, 0, sizeof calls_of);
    calls_of_all = 0;
    stop_call = call;
    stop_flag = stop;
}

enum tb_status fake_run(struct fake *fake, long stop_at) {
    if (!fake->run.resume)
        memset(calls_of, 0, sizeof calls_of);
    calls_of_all = 0;
    stop_call = stop_at;
    stop_flag = &fake->stop;
    fake->stop = 0;
    run_result_free(&fake->result);
    fake->error = (struct tb_error)TB_ERROR_INIT;
    return sweep_execute(&fake->run, &fake->result, &fake->error);
}

void fake_close(struct fake *fake) {
    run_result_free(&fake->result);
    fake->cpu->ops->close(fake->cpu);
}
