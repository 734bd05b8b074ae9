#include "tests/kernels/gpu_golden.h"

#include "tests/kernels/gpu_matrix.h"
#include "tests/kernels/gpu_run.h"
#include "tests/kernels/gpu_split.h"

#include "oracle/gate_row.h"
#include "oracle/receipt.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 16 };

/* What was seen of one variant over all rows of a golden file. */
struct tally {
    int64_t rows, identical, twin_identical, equal, underkeep, envelope, most_surplus, no_prefix;
    int64_t cases, refused;
    int64_t first[SPLIT_VALUES], discrete[SPLIT_VALUES], near_ulps;
};

/* One case as its threads see it: rows of all variants are judged and hashed side by side. */
struct judging {
    const struct golden_case *golden;
    struct gate_case gate[GOLDEN_VARIANTS];
    struct gate_row rows[GOLDEN_VARIANTS][GOLDEN_MAX_BATCH];
    bool identical[GOLDEN_VARIANTS][GOLDEN_MAX_BATCH];
    int next;
};

static bool row_identical(const struct gate_case *gate, int64_t row,
                          const struct golden_mask *golden, uint8_t *bits) {
    char hex[SHA256_HEX_BYTES];
    gate_kept_bits(gate->input + row * gate->stride, gate->output + row * gate->stride, gate->vocab,
                   bits);
    sha256_memory(bits, (size_t)((gate->vocab + 7) / 8), hex);
    return !strncmp(hex, golden->sha8, 16);
}

static void *judge_rows(void *argument) {
    struct judging *const judging = argument;
    uint8_t *const bits = malloc((size_t)(judging->gate[0].vocab + 7) / 8);
    const int batch = (int)judging->golden->batch;
    matrix_require(bits, "bits", NULL);
    for (;;) {
        const int i = __atomic_fetch_add(&judging->next, 1, __ATOMIC_RELAXED);
        if (i >= batch * GOLDEN_VARIANTS)
            break;
        const int v = i % GOLDEN_VARIANTS, row = i / GOLDEN_VARIANTS;
        gate_judge_row(&judging->gate[v], row, &judging->rows[v][row]);
        judging->identical[v][row] =
            row_identical(&judging->gate[v], row, &judging->golden->rows[row].mask[v], bits);
    }
    free(bits);
    return NULL;
}

static void judge(struct judging *judging) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        matrix_require(pthread_create(&threads[i], NULL, judge_rows, judging) == 0, "thread", NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* Rows on which sort keeps as many tokens as the original's sort path did. */
static int64_t sort_check(const struct matrix *m, const struct golden_case *golden, float *out) {
    const struct topp_variant *const sort = topp_find("sort", KERNEL_DEVICE_CUDA);
    const struct topp_problem problem = matrix_problem(m, golden->batch, golden->p);
    const size_t bytes = (size_t)(golden->batch * m->vocab) * sizeof(float);
    const size_t size = sort->workspace_size(&problem);
    void *const workspace = device_memory(size);
    int64_t same = 0;
    gpu_require(cudaMemcpy(m->work, m->pristine, bytes, cudaMemcpyDeviceToDevice), "restore");
    gpu_require(sort->launch(&problem, workspace, size, NULL), sort->name);
    gpu_require(cudaMemcpy(out, m->work, bytes, cudaMemcpyDeviceToHost), "download");
    cudaFree(workspace);
    for (int row = 0; row < golden->batch; row++) {
        int64_t kept = 0;
        for (int64_t t = row * m->vocab; t < (row + 1) * m->vocab; t++)
            kept += gate_keeps(m->rows.data[t], out[t]);
        same += kept == golden->rows[row].sort;
    }
    return same;
}

/* The partials that the variant left for a row, beside those of its CPU twin. */
static void explain(const struct matrix *m, const struct judging *judging, int v, int row,
                    const uint8_t *workspace, int slices, struct tally *tally) {
    const struct golden_case *const golden = judging->golden;
    const struct topp_variant *const twin = topp_find(golden_variant[v], KERNEL_DEVICE_CPU);
    struct gate_case gate = judging->gate[v];
    float *const x = malloc((size_t)m->vocab * sizeof *x);
    uint8_t *const bits = malloc((size_t)(m->vocab + 7) / 8);
    gate.input += row * m->vocab;
    gate.output = x;
    memcpy(x, gate.input, (size_t)m->vocab * sizeof *x);
    const struct topp_problem problem = {
        .logits = x,
        .p = &golden->p,
        .batch = 1,
        .vocab = m->vocab,
        .stride = m->vocab,
        .mask_value = -INFINITY,
        .slices = slices,
    };
    struct {
        struct split_stats stats[SPLIT_MAX_SLICES];
        struct split_step steps[SPLIT_ROUNDS][SPLIT_MAX_SLICES];
    } left;
    struct split_step steps[SPLIT_ROUNDS * SPLIT_MAX_SLICES];
    gpu_require(twin->launch(&problem, &left, sizeof left, NULL), "twin");
    for (int r = 0; r < SPLIT_ROUNDS; r++)
        memcpy(steps + r * slices, left.steps[r], (size_t)slices * sizeof *steps);
    tally->twin_identical += row_identical(&gate, 0, &golden->rows[row].mask[v], bits);
    const struct split_stats *const stats = (const void *)workspace;
    const struct split_step *const of_gpu = (const void *)(stats + golden->batch * slices);
    const struct split_partials a = {stats + row * slices,
                                     of_gpu + (int64_t)row * SPLIT_ROUNDS * slices, slices};
    const struct split_partials b = {left.stats, steps, slices};
    const struct split_parting parting = split_compare(&a, &b, golden->p);
    tally->first[parting.first]++;
    tally->discrete[parting.first_discrete]++;
    tally->near_ulps += parting.nearest < 1e-6;
    free(x);
    free(bits);
}

static void count_case(const struct matrix *m, const struct judging *judging, int v,
                       const uint8_t *workspace, int slices, struct tally *tally) {
    bool refused = false;
    for (int row = 0; row < judging->golden->batch; row++) {
        const struct gate_row *const r = &judging->rows[v][row];
        const int64_t away = llabs((long long)(r->kept - r->oracle));
        tally->rows++;
        tally->equal += r->equal;
        tally->underkeep += r->missing > 0;
        tally->envelope += away > 3 && !((double)away / (double)r->oracle < 0.005);
        tally->most_surplus = r->surplus > tally->most_surplus ? r->surplus : tally->most_surplus;
        tally->no_prefix += r->rule == GATE_RULE_NOT_PREFIX || r->rule == GATE_RULE_TIE_ORDER;
        refused |= r->rule != GATE_RULE_NONE;
        if (judging->identical[v][row])
            tally->identical++;
        else
            explain(m, judging, v, row, workspace, slices, tally);
    }
    tally->cases++;
    tally->refused += refused;
}

static void golden_check(const struct matrix *m, const struct golden_case *golden,
                         float *const out[GOLDEN_VARIANTS], struct tally tallies[GOLDEN_VARIANTS]) {
    static const enum gate_contract contracts[] = {GATE_BOUNDED, GATE_CONSERVATIVE, GATE_BOUNDED};
    const struct topp_problem problem = matrix_problem(m, golden->batch, golden->p);
    const size_t bytes = (size_t)(golden->batch * m->vocab) * sizeof(float);
    float p[GOLDEN_MAX_BATCH];
    struct nucleus oracle[GOLDEN_MAX_BATCH];
    uint8_t *workspace[GOLDEN_VARIANTS];
    struct judging judging = {.golden = golden};
    size_t k = 0;
    while (m->p[k] != golden->p)
        k++;
    for (int i = 0; i < golden->batch; i++) {
        p[i] = golden->p;
        oracle[i] = m->nucleus[(size_t)i * m->p_count + k];
    }
    for (int v = 0; v < GOLDEN_VARIANTS; v++) {
        const struct topp_variant *const variant = topp_find(golden_variant[v], KERNEL_DEVICE_CUDA);
        const size_t size = variant->workspace_size(&problem);
        void *const on_device = device_memory(size);
        workspace[v] = malloc(size);
        gpu_require(cudaMemcpy(m->work, m->pristine, bytes, cudaMemcpyDeviceToDevice), "restore");
        gpu_require(variant->launch(&problem, on_device, size, NULL), variant->name);
        gpu_require(cudaMemcpy(out[v], m->work, bytes, cudaMemcpyDeviceToHost), "download");
        gpu_require(cudaMemcpy(workspace[v], on_device, size, cudaMemcpyDeviceToHost), "download");
        cudaFree(on_device);
        judging.gate[v] = (struct gate_case){
            .input = m->rows.data,
            .output = out[v],
            .batch = golden->batch,
            .vocab = m->vocab,
            .stride = m->vocab,
            .mask_value = -INFINITY,
            .p = p,
            .oracle = oracle,
            .contract = contracts[v],
            .stock_output = v ? out[0] : NULL,
            .forced_token = -1,
        };
    }
    judge(&judging);
    for (int v = 0; v < GOLDEN_VARIANTS; v++) {
        const int slices =
            v < 2 ? golden->slices : split_slices(golden->batch, golden->vocab, MATRIX_SM_COUNT, 1);
        matrix_require(split_slices(golden->batch, golden->vocab, MATRIX_SM_COUNT, 0) ==
                           golden->slices,
                       "slices differ from the original's", NULL);
        count_case(m, &judging, v, workspace[v], slices, &tallies[v]);
        free(workspace[v]);
    }
}

static bool golden_print(const char *title, const struct tally *tallies, const double *equal) {
    bool good = true;
    printf("\n%s\n%-13s %6s %10s %7s %6s %7s %7s %9s %8s %8s %8s\n", title, "", "rows", "identical",
           "share", "equal", "share", "golden", "underkeep", "envelope", "surplus", "noprefix");
    for (int v = 0; v < GOLDEN_VARIANTS; v++) {
        const struct tally *const t = &tallies[v];
        const double rows = (double)t->rows, same = 100.0 * (double)t->identical / rows;
        const double right = 100.0 * (double)t->equal / rows;
        good = good && same >= 98.0 && fabs(right - equal[v]) <= 1.0;
        printf("%-13s %6lld %10lld %6.2f%% %6lld %6.2f%% %6.2f%% %9lld %8lld %8lld %8lld   "
               "refused cells %lld of %lld\n",
               golden_variant[v], (long long)t->rows, (long long)t->identical, same,
               (long long)t->equal, right, equal[v], (long long)t->underkeep,
               (long long)t->envelope, (long long)t->most_surplus, (long long)t->no_prefix,
               (long long)t->refused, (long long)t->cases);
    }
    printf("rows that differ from golden: first value that differs from the CPU twin, in any bit / "
           "beyond rounding\n");
    for (int v = 0; v < GOLDEN_VARIANTS; v++) {
        const struct tally *const t = &tallies[v];
        printf("%-13s", golden_variant[v]);
        for (int i = 0; i < SPLIT_VALUES; i++)
            if (t->first[i] || t->discrete[i])
                printf(" | %s %lld/%lld", split_value_name[i], (long long)t->first[i],
                       (long long)t->discrete[i]);
        printf(" | a decision within 1e-6: %lld | twin equals golden: %lld\n",
               (long long)t->near_ulps, (long long)t->twin_identical);
    }
    fflush(stdout);
    return good;
}

static struct golden_case *golden_read(const char *directory, const char *name, size_t *count) {
    char path[1024];
    bool bad = false;
    struct golden_case *cases = NULL;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *const file = fopen(path, "r");
    matrix_require(file, path, NULL);
    for (*count = 0;; ++*count) {
        cases = realloc(cases, (*count + 1) * sizeof *cases);
        matrix_require(cases, path, NULL);
        if (!golden_next(file, &cases[*count], &bad))
            break;
    }
    fclose(file);
    matrix_require(!bad && *count, path, NULL);
    return cases;
}

bool golden_conformance(const char *directory, const char *name, const char *captured,
                        const double equal[GOLDEN_VARIANTS]) {
    struct tally tallies[GOLDEN_VARIANTS] = {0};
    struct matrix m = {0};
    float *out[GOLDEN_VARIANTS] = {NULL}; /* pinned host memory, [batch, vocab] */
    int64_t sort_rows = 0, sort_same = 0;
    size_t count;
    struct golden_case *const cases = golden_read(directory, name, &count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(m.family, cases[i].family) || m.vocab != cases[i].vocab) {
            matrix_make(&m, cases[i].family, cases[i].vocab, GOLDEN_MAX_BATCH, cases[i].seed,
                        captured);
            for (int v = 0; v < GOLDEN_VARIANTS; v++) {
                cudaFreeHost(out[v]);
                gpu_require(cudaMallocHost((void **)&out[v],
                                           (size_t)(GOLDEN_MAX_BATCH * m.vocab) * sizeof(float)),
                            "pinned memory");
            }
            for (size_t k = i; k < count; k++) {
                bool known = strcmp(m.family, cases[k].family) || m.vocab != cases[k].vocab;
                for (size_t j = 0; j < m.p_count; j++)
                    known |= m.p[j] == cases[k].p;
                if (!known && m.p_count < MATRIX_MAX_P)
                    m.p[m.p_count++] = cases[k].p;
            }
            matrix_solve(&m);
        }
        golden_check(&m, &cases[i], out, tallies);
        if (cases[i].rows[0].sort >= 0) {
            sort_rows += cases[i].batch;
            sort_same += sort_check(&m, &cases[i], out[0]);
        }
    }
    matrix_free(&m);
    for (int v = 0; v < GOLDEN_VARIANTS; v++)
        cudaFreeHost(out[v]);
    free(cases);
    const bool good = golden_print(name, tallies, equal);
    if (sort_rows)
        printf("sort keeps as many tokens as the original's on %lld of %lld rows\n",
               (long long)sort_same, (long long)sort_rows);
    return good;
}
