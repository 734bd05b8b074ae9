#include "oracle/nucleus.h"

#include "oracle/exact_sum.h"
#include "oracle/nucleus_sort.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BLOCK = 2048, /* tokens from checkpoint to checkpoint: their weights fit the L1 cache */
    ALIGNMENT = 64,
    THREADS_GREATEST = 1024,
};

/* Compensated (Neumaier) running sum of weights in canonical order. */
struct scan {
    double sum, lost;
};

/* Where scan and exact sum stand before a block, so that any p resumes there. */
struct checkpoint {
    struct scan scan;
    double greatest; /* greatest prefix weight that the scan sees inside the block */
    struct exact_sum exact;
};

/* What a row yields for every p. */
struct solved_row {
    const uint32_t *keys;
    int64_t finite;
    struct checkpoint *checkpoints;
    double max_logit, normalizer;
};

static size_t round_up(size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static int64_t blocks_of(int64_t tokens) {
    return (tokens + BLOCK - 1) / BLOCK;
}

/* Either buffer holds all keys or, once the other one has the sorted keys, all checkpoints. */
static size_t buffer_bytes(int64_t vocab) {
    const size_t keys = (size_t)vocab * sizeof(uint32_t);
    const size_t checkpoints = (size_t)blocks_of(vocab) * sizeof(struct checkpoint);
    return round_up(keys > checkpoints ? keys : checkpoints);
}

static size_t counts_bytes(void) {
    return round_up(sizeof(int64_t) * SORT_DIGITS * SORT_BUCKETS);
}

size_t nucleus_scratch_bytes(int64_t vocab) {
    return counts_bytes() + 2 * buffer_bytes(vocab);
}

const char *nucleus_status_name(enum nucleus_status status) {
    switch (status) {
    case NUCLEUS_OK:
        return "ok";
    case NUCLEUS_EMPTY_ROW:
        return "empty_row";
    case NUCLEUS_NONFINITE_INPUT:
        return "nonfinite_input";
    case NUCLEUS_AMBIGUOUS:
        return "oracle_boundary_ambiguous";
    }
    return "unknown";
}

/* exp() of the C library, the one that Python's math.exp calls. Equal logits share one call. */
static void make_weights(const uint32_t *keys, size_t count, double max_logit, double *weights) {
    uint32_t last_key = keys[0];
    double weight = exp((double)sort_key_logit(last_key) - max_logit);
    for (size_t i = 0; i < count; i++) {
        if (keys[i] != last_key) {
            last_key = keys[i];
            weight = exp((double)sort_key_logit(last_key) - max_logit);
        }
        weights[i] = weight;
    }
}

/* Weights descend and the first is 1, so the running sum is never smaller than what is added. */
static double scan_add(struct scan *scan, double weight) {
    const double sum = scan->sum + weight;
    scan->lost += (scan->sum - sum) + weight;
    scan->sum = sum;
    return sum + scan->lost;
}

static double scan_block(struct scan *scan, const double *weights, size_t count) {
    double greatest = 0.0;
    for (size_t i = 0; i < count; i++) {
        const double prefix = scan_add(scan, weights[i]);
        greatest = prefix > greatest ? prefix : greatest;
    }
    return greatest;
}

static size_t block_length(const struct solved_row *solved, int64_t block) {
    const int64_t left = solved->finite - block * BLOCK;
    return (size_t)(left < BLOCK ? left : BLOCK);
}

/* The scan and the exact sum over the whole row, with a checkpoint before each block. */
static void sum_row(struct solved_row *solved) {
    double weights[BLOCK];
    struct scan scan = {0.0, 0.0};
    struct exact_sum exact;
    exact_sum_clear(&exact);
    for (int64_t block = 0; block < blocks_of(solved->finite); block++) {
        const size_t length = block_length(solved, block);
        struct checkpoint *const checkpoint = &solved->checkpoints[block];
        make_weights(solved->keys + block * BLOCK, length, solved->max_logit, weights);
        checkpoint->scan = scan;
        checkpoint->exact = exact;
        checkpoint->greatest = scan_block(&scan, weights, length);
        exact_sum_add_many(&exact, weights, length);
    }
    solved->normalizer = exact_sum_value(&exact);
}

/* Smallest n whose scanned prefix reaches target, as block and place in it; false if none does. */
static bool find_candidate(const struct solved_row *solved, double target, double *weights,
                           int64_t *block, size_t *place) {
    const int64_t blocks = blocks_of(solved->finite);
    int64_t b = 0;
    while (b < blocks && !(solved->checkpoints[b].greatest >= target))
        b++;
    if (b == blocks)
        return false;
    const size_t length = block_length(solved, b);
    struct scan scan = solved->checkpoints[b].scan;
    size_t i = 0;
    make_weights(solved->keys + b * BLOCK, length, solved->max_logit, weights);
    while (i < length && !(scan_add(&scan, weights[i]) >= target))
        i++;
    *block = b;
    *place = i;
    return i < length;
}

/* Places the boundary after the first n tokens: the id of the last one is found in the row, as the
 * sort carries no ids. */
static void set_boundary(const float *row, int64_t vocab, const struct solved_row *solved,
                         int64_t n, struct nucleus *out) {
    const uint32_t key = solved->keys[n - 1];
    const float logit = sort_key_logit(key);
    int64_t low = 0, high = n - 1; /* first place that holds this key */
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (solved->keys[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    int64_t rank = n - low;
    int64_t t = -1;
    while (rank > 0 && ++t < vocab)
        rank -= row[t] == logit;
    out->kept = n;
    out->boundary_token = t;
    out->boundary_logit = row[t];
}

/* One p < 1: scan for the candidate, then certify it by exact sums. */
static void cut_row(const float *row, int64_t vocab, const struct solved_row *solved,
                    struct nucleus *out) {
    double weights[BLOCK];
    int64_t block;
    size_t place;
    if (!find_candidate(solved, out->target, weights, &block, &place)) {
        out->status = NUCLEUS_AMBIGUOUS;
        return;
    }
    const int64_t n = block * BLOCK + (int64_t)place + 1;
    struct exact_sum exact = solved->checkpoints[block].exact;
    exact_sum_add_many(&exact, weights, place);
    out->prefix_less = exact_sum_value(&exact);
    exact_sum_add(&exact, weights[place]);
    out->prefix = exact_sum_value(&exact);
    if (!(out->prefix >= out->target) || (n > 1 && !(out->prefix_less < out->target))) {
        out->status = NUCLEUS_AMBIGUOUS;
        out->kept = n;
        return;
    }
    set_boundary(row, vocab, solved, n, out);
}

/* p >= 1: every finite token stays. */
static void keep_row(const float *row, int64_t vocab, const struct solved_row *solved,
                     struct nucleus *out) {
    const int64_t block = blocks_of(solved->finite) - 1;
    const size_t length = block_length(solved, block);
    double weights[BLOCK];
    make_weights(solved->keys + block * BLOCK, length, solved->max_logit, weights);
    struct exact_sum exact = solved->checkpoints[block].exact;
    exact_sum_add_many(&exact, weights, length - 1);
    out->prefix_less = exact_sum_value(&exact);
    out->prefix = solved->normalizer;
    set_boundary(row, vocab, solved, solved->finite, out);
}

void nucleus_row(const float *row, int64_t vocab, const float *p, size_t count, struct nucleus *out,
                 void *scratch) {
    char *const bytes = scratch;
    uint32_t *const a = (uint32_t *)(void *)(bytes + counts_bytes());
    uint32_t *const b = (uint32_t *)(void *)(bytes + counts_bytes() + buffer_bytes(vocab));
    const struct sorted_row sorted = nucleus_sort(row, vocab, a, b, scratch);
    struct solved_row solved = {sorted.keys, sorted.finite, sorted.spare, 0.0, 0.0};
    if (sorted.status == NUCLEUS_OK) {
        solved.max_logit = (double)sort_key_logit(sorted.keys[0]);
        sum_row(&solved);
    }
    for (size_t i = 0; i < count; i++) {
        out[i] = (struct nucleus){.status = sorted.status, .boundary_token = -1};
        out[i].untouched = p[i] >= 1.0f;
        if (sorted.status != NUCLEUS_OK)
            continue;
        out[i].max_logit = sort_key_logit(sorted.keys[0]);
        out[i].normalizer = solved.normalizer;
        out[i].target = (double)p[i] * solved.normalizer;
        if (out[i].untouched)
            keep_row(row, vocab, &solved, &out[i]);
        else
            cut_row(row, vocab, &solved, &out[i]);
    }
}

/* Rows are handed out one by one: which thread solves a row changes nothing in it. */
struct job {
    const float *logits, *p;
    int64_t batch, vocab, stride;
    size_t count;
    struct nucleus *out;
    atomic_llong next;
};

struct worker {
    struct job *job;
    void *scratch;
    pthread_t thread;
};

static void *work(void *argument) {
    const struct worker *const worker = argument;
    struct job *const job = worker->job;
    for (;;) {
        const int64_t row = atomic_fetch_add(&job->next, 1);
        if (row >= job->batch)
            return NULL;
        nucleus_row(job->logits + row * job->stride, job->vocab, job->p + (size_t)row * job->count,
                    job->count, job->out + (size_t)row * job->count, worker->scratch);
    }
}

/* Scratch of all workers stays within twice the input, their counters aside. */
static int64_t worker_count(int64_t batch, int threads) {
    int64_t workers = threads > 0 ? threads : sysconf(_SC_NPROCESSORS_ONLN);
    if (workers > THREADS_GREATEST)
        workers = THREADS_GREATEST;
    if (workers > batch)
        workers = batch;
    return workers < 1 ? 1 : workers;
}

static enum tb_status check_request(const struct job *job, struct tb_error *error) {
    if (job->batch < 0 || job->vocab < 1 || job->stride < job->vocab)
        return tb_fail(error, TB_USAGE,
                       "rows of %lld logits at stride %lld, %lld of them: a row needs at least one "
                       "logit and a stride that holds it",
                       (long long)job->vocab, (long long)job->stride, (long long)job->batch);
    for (size_t i = 0; i < (size_t)job->batch * job->count; i++) {
        if (!(job->p[i] > 0.0f))
            return tb_fail(error, TB_USAGE, "row %zu: p is %g, give a p above 0", i / job->count,
                           (double)job->p[i]);
    }
    return TB_OK;
}

enum tb_status nucleus_rows(const float *logits, int64_t batch, int64_t vocab, int64_t stride,
                            const float *p, size_t count, int threads, struct nucleus *out,
                            struct tb_error *error) {
    struct job job = {.logits = logits,
                      .p = p,
                      .batch = batch,
                      .vocab = vocab,
                      .stride = stride,
                      .count = count,
                      .out = out};
    enum tb_status status = check_request(&job, error);
    if (status != TB_OK)
        return status;
    const int64_t wanted = worker_count(batch, threads);
    int64_t workers = 0, started = 0;
    struct worker *const worker = calloc((size_t)wanted, sizeof *worker);
    while (worker != NULL && workers < wanted) {
        worker[workers].job = &job;
        worker[workers].scratch = aligned_alloc(ALIGNMENT, nucleus_scratch_bytes(vocab));
        if (worker[workers].scratch == NULL)
            break;
        workers++;
    }
    if (workers == 0) {
        status = tb_fail(error, TB_NO_MEMORY,
                         "no %zu bytes of memory for the reference of one row of %lld logits",
                         nucleus_scratch_bytes(vocab), (long long)vocab);
        goto cleanup;
    }
    /* The caller's thread is worker 0; fewer threads than wanted only take longer. */
    while (started + 1 < workers &&
           pthread_create(&worker[started + 1].thread, NULL, work, &worker[started + 1]) == 0)
        started++;
    work(&worker[0]);
    for (int64_t i = 1; i <= started; i++)
        pthread_join(worker[i].thread, NULL);
cleanup:
    for (int64_t i = 0; i < workers; i++)
        free(worker[i].scratch);
    free(worker);
    return status;
}
