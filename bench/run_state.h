/* What the files of the runner share; nobody else includes this. */
#ifndef TOPP_BENCH_RUN_STATE_H
#define TOPP_BENCH_RUN_STATE_H

#include "bench/journal.h"
#include "bench/plugin_pool.h"
#include "bench/oracle_cache.h"
#include "bench/progress.h"
#include "bench/runner.h"

enum { MOST_DRAWS = 64 };

/* Device memory that is kept and grown, so that a sweep does not allocate per cell. */
struct slot {
    void *memory;
    size_t bytes;
};

/* One input of the sweep: host bytes, and the same on the device once it was timed. */
struct input_entry {
    const struct cell *cell; /* a cell that runs on it: family, shape, seed */
    int32_t draw;
    struct logits logits;
    void *device_copy; /* NULL, or the packed-with-stride bytes in device memory */
    uint64_t last_use;
};

struct run_state {
    const struct sweep_run *run;
    const struct plan *plan;
    struct device *device;
    struct journal *journal;
    struct run_result *result;
    struct progress progress;
    struct tb_error *error;

    struct input_entry *inputs;
    size_t input_count, input_capacity;
    int64_t input_bytes, input_budget;
    uint64_t clock;

    struct slot work[MOST_DRAWS], p[MOST_DRAWS], boundary[MOST_DRAWS];
    struct slot seeds[MOST_DRAWS], positions[MOST_DRAWS], temperatures[MOST_DRAWS],
        tokens[MOST_DRAWS];
    struct slot workspace, noise, rows;
    struct external_runs *external; /* run_external.c's; NULL until a program of --external runs */

    /* The outputs that the gate saw, by hash: [cell][draw] as in the draw records. */
    char (*output_sha256)[MOST_DRAWS][65];
    /* [cell]: NULL, or [draws, batch] boundaries of a kernel that is given them; owned. */
    struct topp_boundary **boundaries;
    struct plugin_pool *pool; /* NULL until a plug-in's cell comes up */
};

/* run_input.c: the bytes of a cell's draw; borrowed for the next 2 * MOST_DRAWS calls. */
enum tb_status run_input(struct run_state *state, const struct cell *cell, int32_t draw,
                         const struct logits **logits, void **device_copy);
void run_inputs_free(struct run_state *state);
/* Are the bytes that run_input last gave out still what they were? */
enum tb_status run_input_intact(struct run_state *state, const struct cell *cell, int32_t draw,
                                bool *intact);
/* Makes a slot at least this large. */
enum tb_status slot_reserve(struct run_state *state, struct slot *slot, size_t bytes);
enum tb_status slot_upload(struct run_state *state, struct slot *slot, const void *bytes,
                           size_t count);
void run_slots_free(struct run_state *state);
/* Inputs and device memory of `from` become those of `to`, which must have none. Both runs are on
 * one device; from's plan must outlive them. */
void run_memory_move(struct run_state *to, struct run_state *from);
size_t row_bytes(const struct cell *cell); /* batch * stride * 4 */

/* run_calls.c: kernels as timed calls. */
struct topp_call {
    struct device *device;
    const struct topp_variant *variant;
    struct topp_problem problem, given; /* given: as the kernel got it, to see it unchanged */
    const void *pristine;
    size_t bytes;
    void *workspace;
    size_t workspace_bytes;
    int status; /* of the last launch */
};
struct gumbel_call {
    struct device *device;
    const struct gumbel_variant *variant;
    struct gumbel_problem problem, given;
    void *workspace;
    size_t workspace_bytes;
    int status; /* of the last launch */
};
/* How a call ended that no error of the run stands behind: a kernel that hangs or refuses to be
 * launched (a negative kernel_status) concerns its own cell alone. */
struct outcome {
    bool timed_out;
    int status;         /* 0, or what the kernel returned: negative */
    bool outside;       /* ran, and wrote where nothing of it lies */
    bool input_changed; /* ran, and wrote to what it was only to read */
};
int topp_call_prepare(void *context, void *stream);
int topp_call_run(void *context, void *stream);
int gumbel_call_run(void *context, void *stream);
/* What a kernel that is given the boundary gets for a row: the whole row where nothing is cut. */
static inline struct topp_boundary boundary_of(const struct nucleus *nucleus) {
    if (nucleus->untouched || nucleus->status != NUCLEUS_OK)
        return (struct topp_boundary){-__builtin_inff(), INT32_MAX};
    return (struct topp_boundary){nucleus->boundary_logit, (int32_t)nucleus->boundary_token};
}
/* It ran and came back. */
static inline bool outcome_good(const struct outcome *outcome) {
    return !outcome->timed_out && outcome->status == 0;
}
/* It did nothing that no rule of a row stands for: nothing excuses that. */
static inline bool outcome_harmless(const struct outcome *outcome) {
    return outcome_good(outcome) && !outcome->outside && !outcome->input_changed;
}
/* Once, under the profile's limit. launched: where the call keeps the status of its launch. */
enum tb_status run_call_once(struct run_state *state, const struct timed_call *call,
                             const int *launched, struct outcome *outcome);
/* After an error of the device: was it a kernel that refused to be launched? Then the error is
 * taken back. */
bool run_forgive(struct run_state *state, int launched);
/* Fills a call for one draw; uploads p and, where wanted, the boundary ([batch], NULL = none).
 * poison: the workspace is filled with a pattern first. */
enum tb_status topp_call_make(struct run_state *state, const struct cell *cell,
                              const struct topp_variant *variant, int32_t draw,
                              const struct topp_boundary *boundary, bool poison,
                              struct topp_call *call);
/* After a call ran: is what lies around its buffers as it was, and what it was given to read? Sets
 * outside and input_changed. p, seed, position, temperature: what
 * was uploaded, [batch] each; seed and position NULL where the kernel has none. */
enum tb_status topp_call_conduct(struct run_state *state, const struct topp_call *call,
                                 int32_t draw, const float *p, const int64_t *seed,
                                 const int64_t *position, struct outcome *outcome);
enum tb_status gumbel_call_conduct(struct run_state *state, const struct gumbel_call *call,
                                   const int64_t *seed, const int64_t *position,
                                   const float *temperature, struct outcome *outcome);
enum tb_status gumbel_call_make(struct run_state *state, const struct cell *cell, int32_t draw,
                                bool poison, struct gumbel_call *call);
/* Host copies of what a Gumbel draw is made from; [batch] each. */
void gumbel_row_inputs(const struct cell *cell, int32_t draw, int64_t *seed, int64_t *position,
                       float *temperature);
/* The same of a sampler (TOPP_IDS) in one of its launches, of which the first is the timed one. */
void sampler_row_inputs(const struct cell *cell, int32_t draw, int64_t launch, int64_t *seed,
                        int64_t *position);

/* run_group.c: cells of one input, and what the oracle says of each of its draws and values of p.
 */
struct gate_group {
    size_t first, end; /* in plan order */
    float *p;          /* [p_count]: different values among the cells */
    size_t p_count;
    struct nucleus *nuclei[MOST_DRAWS]; /* [batch, p_count], NULL until asked for */
};
/* The group that begins with the cell `first`; free it with gate_group_free (a zeroed one too). */
enum tb_status gate_group_make(struct run_state *state, size_t first, struct gate_group *group);
void gate_group_free(struct gate_group *group);
/* Everything one draw of one cell is judged with; host memory. */
struct gate_scene {
    float *output, *stock; /* [batch, stride]; stock NULL until it ran */
    float *p;              /* [batch] */
    struct nucleus *oracle;
    struct topp_boundary *boundary;
};
enum tb_status gate_scene_make(struct run_state *state, struct gate_group *group,
                               const struct cell *cell, int32_t draw, struct gate_scene *scene);
void gate_scene_free(struct gate_scene *scene);

/* run_whole.c: resumed, and the earlier run ended and left what its receipt binds. */
bool run_is_whole(const struct run_state *state);

/* run_gate.c, run_gate_ids.c, run_gate_gumbel.c: verdicts. */
enum tb_status run_gate_all(struct run_state *state);
/* Gates one cell; group: of an earlier cell, or zeroed; free it at the end. */
enum tb_status run_gate_cell(struct run_state *state, struct gate_group *group, size_t cell);
enum tb_status gate_ids_cell(struct run_state *state, struct gate_group *group,
                             struct cell_record *record);
enum tb_status gate_gumbel_cell(struct run_state *state, struct cell_record *record);
enum tb_status gate_statistic_cell(struct run_state *state, struct cell_record *record);
void record_refuse(struct cell_record *record, enum gate_verdict verdict, const char *rule,
                   int32_t draw, int64_t row, int64_t token, const char *format, ...)
    __attribute__((format(printf, 7, 8)));
/* The verdict of a cell whose kernel hung or would not be launched. */
void record_refuse_outcome(const struct run_state *state, struct cell_record *record, int32_t draw,
                           const struct outcome *outcome);
/* The verdict of a cell whose kernel ran and was not harmless; nothing to say otherwise. */
void record_refuse_conduct(struct cell_record *record, int32_t draw, const struct outcome *outcome);
/* Is the shape past the variant's limits (0: none)? Then that is the verdict. */
bool record_refuse_shape(struct cell_record *record, const char *name, int64_t max_batch,
                         int64_t max_vocab);
void bytes_sha256(const void *bytes, size_t count, char sha256[65]);
/* The hash of the rows' hashes, rows in parallel: large buffers are compared by it. */
void rows_sha256(const void *bytes, int64_t rows, size_t row_bytes, int threads, char sha256[65]);

/* run_time.c: blocks through Google Benchmark. */
enum tb_status run_time_all(struct run_state *state);
/* The next block of a cell, unless it lost its verdict, has no valid samples, or the run is stopped
 * (an unfinished block is no block). warm: warm up before it. */
enum tb_status run_block(struct run_state *state, size_t cell, int32_t block, bool warm);
/* Takes the block and, after the last one, looks at the buffers again: result, or a record that is
 * not accepted any more. Nothing is recorded. */
enum tb_status run_take_block(struct run_state *state, size_t cell, int32_t block, bool warm,
                              struct block_result *result);

/* runner.c: what stands before and behind gate and blocks. run_open: records and journal; a resumed
 * run's are filled. run_close also after a run_open that failed. */
enum tb_status run_open(struct run_state *state);
/* The records alone: for a run that leaves no files. */
enum tb_status run_open_records(struct run_state *state);
enum tb_status run_write_files(struct run_state *state);
void run_close(struct run_state *state);

/* run_journal.c: verdicts and blocks as journal lines, and back. */
json_t *verdict_line(const struct run_state *state, size_t cell); /* new */
json_t *block_line(const struct run_state *state, size_t cell, int32_t block,
                   const struct block_result *result); /* new */
/* False when the line is not of that kind. verdict_lost: of a cell that had been accepted; counts
 * and hashes of the gate stay. A block's memory is the caller's: block_result_free(). */
bool verdict_from_line(struct run_state *state, const json_t *line, size_t cell);
bool verdict_lost_from_line(struct run_state *state, const json_t *line, size_t cell);
bool block_from_line(const json_t *line, struct block_result *result);
enum tb_status journal_verdict(struct run_state *state, size_t cell);
enum tb_status journal_block(struct run_state *state, size_t cell, int32_t block,
                             const struct block_result *result);
/* Takes verdicts and blocks of an earlier run from the journal. */
enum tb_status journal_replay(struct run_state *state);
/* Adds a block's samples and evidence to a record; takes ownership of what result owns. A refused
 * block leaves the cell without samples. */
enum tb_status record_add_block(struct cell_record *record, struct block_result *result,
                                struct tb_error *error);
void block_result_free(struct block_result *result);
/* Forgets all that was timed: the cell lost its verdict. */
void record_drop_timing(struct cell_record *record);

/* run_benchmark.c: takes the times of cells that lost their verdict after blocks had been reported
 * out of Google Benchmark's file. */
enum tb_status benchmark_json_strip(const struct run_result *result, const char *path,
                                    struct tb_error *error);

static inline bool run_stopped(const struct run_state *state) {
    return state->run->stop && *state->run->stop;
}

#endif
