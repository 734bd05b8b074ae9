/* Are the CUDA split and Gumbel kernels representative of the original's, and how fast are sort and
 * floor? Masks and drawn ids against the golden ones row by row, against the oracle, where each
 * differing mask parts from its CPU twin; times against the original's. Arguments: tests/data, the
 * folder of captured logits, then any of shapes, golden, gumbel, time (all by default) or small (a
 * few tiny shapes, for compute-sanitizer). Exit code 77 without a GPU, 1 when a target is missed.
 */
#include "tests/kernels/gpu_golden.h"
#include "tests/kernels/gpu_gumbel.h"
#include "tests/kernels/gpu_matrix.h"
#include "tests/kernels/gpu_replay.h"
#include "tests/kernels/gpu_run.h"
#include "tests/kernels/gpu_shapes.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 5, SPLIT_COLUMNS = 3, SPLIT_ROWS_NEEDED = 10 };
static const char *const column_name[COLUMNS] = {"stock", "patched", "patched_fine", "sort",
                                                 "floor"};

/* Shares of rows, in percent, on which the original's masks equal the reference. */
static const double equal_generated[GOLDEN_VARIANTS] = {57.75, 57.92, 57.32};
static const double equal_captured[GOLDEN_VARIANTS] = {92.55, 92.55, 92.55};

static void upload_boundaries(const struct matrix *m) {
    struct topp_boundary boundary[MATRIX_MAX_BATCH];
    for (int64_t i = 0; i < m->rows.batch; i++)
        boundary[i] = (struct topp_boundary){m->nucleus[i].boundary_logit,
                                             (int32_t)m->nucleus[i].boundary_token};
    gpu_require(cudaMemcpy(m->boundary, boundary, (size_t)m->rows.batch * sizeof *boundary,
                           cudaMemcpyHostToDevice),
                "upload boundaries");
}

/* One line of the table; within[c] counts the rows of column c that are representative. */
static void time_row(int64_t vocab, int64_t batch, const double original[COLUMNS],
                     int within[COLUMNS]) {
    struct matrix m = {0};
    matrix_make(&m, "peaked", vocab, batch, 42, NULL);
    m.p[m.p_count++] = 0.95f;
    matrix_solve(&m);
    upload_boundaries(&m);
    const struct topp_problem problem = matrix_problem(&m, batch, m.p[0]);
    const double restore = replay_restore(&problem, m.pristine);
    printf("%7lld %5lld", (long long)vocab, (long long)batch);
    for (int c = 0; c < COLUMNS; c++) {
        const struct topp_variant *const variant = topp_find(column_name[c], KERNEL_DEVICE_CUDA);
        if (variant->max_batch && batch > variant->max_batch) {
            printf("  %22s", "unsupported");
            continue;
        }
        const double us = replay_time(variant, &problem, m.pristine, restore);
        const double ratio = us / original[c];
        if (isnan(original[c]))
            printf("  %8.2f %8s %4s", us, "-", "-");
        else
            printf("  %8.2f %8.2f %4.2f", us, original[c], ratio);
        within[c] += ratio >= 0.85 && ratio <= 1.15;
    }
    printf("\n");
    fflush(stdout);
    matrix_free(&m);
}

static bool time_table(const char *directory) {
    char path[1024], line[256];
    int within[COLUMNS] = {0};
    snprintf(path, sizeof path, "%s/upstream_times_h200.tsv", directory);
    FILE *const file = fopen(path, "r");
    matrix_require(file, path, NULL);
    printf("\nmicroseconds per call: ours, the original's, ratio\n  vocab batch");
    for (int c = 0; c < COLUMNS; c++)
        printf("  %22s", column_name[c]);
    printf("\n");
    while (fgets(line, sizeof line, file)) {
        char words[2 + COLUMNS][24];
        double original[COLUMNS];
        if (line[0] == '#' || line[0] == 'v')
            continue;
        matrix_require(sscanf(line, "%23s %23s %23s %23s %23s %23s %23s", words[0], words[1],
                              words[2], words[3], words[4], words[5], words[6]) == 2 + COLUMNS,
                       path, NULL);
        for (int c = 0; c < COLUMNS; c++)
            original[c] = words[2 + c][0] == '-' ? NAN : strtod(words[2 + c], NULL);
        time_row(strtoll(words[0], NULL, 10), strtoll(words[1], NULL, 10), original, within);
    }
    fclose(file);
    bool good = true;
    printf("within 0.85 to 1.15:");
    for (int c = 0; c < SPLIT_COLUMNS; c++) {
        printf(" %s %d of 12", column_name[c], within[c]);
        good = good && within[c] >= SPLIT_ROWS_NEEDED;
    }
    printf("\n");
    return good;
}

static bool wanted(int argc, char **argv, const char *part) {
    for (int i = 3; i < argc; i++)
        if (!strcmp(argv[i], part))
            return true;
    return argc <= 3;
}

int main(int argc, char **argv) {
    bool good = true;
    if (argc < 3) {
        fprintf(stderr, "usage: gpu_conformance DATA_DIR CAPTURED_DIR [shapes|small] [golden] "
                        "[gumbel] [time]\n");
        return 2;
    }
    for (int i = 3; i < argc; i++) {
        static const char *const parts[] = {"shapes", "small", "golden", "gumbel", "time"};
        bool known = false;
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
            known |= !strcmp(argv[i], parts[k]);
        if (!known) { /* it would check nothing, and every target would be met */
            fprintf(stderr, "gpu_conformance: no part is named %s\n", argv[i]);
            return 2;
        }
    }
    if (!gpu_present()) {
        printf("no CUDA device: skipped\n");
        return 77;
    }
    if (argc > 3 && !strcmp(argv[3], "small"))
        good &= shapes_check(true) & gumbel_shapes(true);
    if (wanted(argc, argv, "shapes"))
        good &= shapes_check(false) & gumbel_shapes(false);
    if (wanted(argc, argv, "golden")) {
        good &= golden_conformance(argv[1], "golden_topp.tsv", argv[2], equal_generated);
        good &= golden_conformance(argv[1], "golden_captured.tsv", argv[2], equal_captured);
    }
    if (wanted(argc, argv, "gumbel"))
        good &= gumbel_conformance(argv[1]);
    if (wanted(argc, argv, "time"))
        good &= time_table(argv[1]);
    printf("%s\n", good ? "conformance: every target is met" : "conformance: TARGET MISSED");
    return good ? 0 : 1;
}
