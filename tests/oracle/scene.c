#include "tests/oracle/scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

static struct scene only;
struct scene *const scene = &only;

void scene_begin(int64_t batch, int64_t vocab) {
    memset(scene, 0, sizeof *scene);
    assert_true(batch <= SCENE_BATCH && vocab <= SCENE_VOCAB);
    scene->batch = batch;
    scene->vocab = vocab;
    scene->stride = vocab + SCENE_PADDING;
    for (int64_t i = 0; i < batch * scene->stride; i++)
        scene->input[i] = 3e38f;
}

/* The rule itself, by insertion: nothing of the sort under test is used. */
static void order_row(int64_t row) {
    const float *const logits = scene_row(scene->input, row);
    int64_t *const order = scene->order[row];
    for (int64_t t = 0; t < scene->vocab; t++) {
        int64_t place = t;
        while (place > 0 && logits[order[place - 1]] < logits[t]) {
            order[place] = order[place - 1];
            place--;
        }
        order[place] = t;
    }
}

void scene_solve(void) {
    assert_int_equal(nucleus_rows(scene->input, scene->batch, scene->vocab, scene->stride, scene->p,
                                  1, 1, scene->oracle, NULL),
                     TB_OK);
    memcpy(scene->output, scene->input, sizeof scene->input);
    memcpy(scene->stock, scene->input, sizeof scene->input);
    scene->the_case = (struct gate_case){
        .input = scene->input,
        .output = scene->output,
        .batch = scene->batch,
        .vocab = scene->vocab,
        .stride = scene->stride,
        .mask_value = -INFINITY,
        .p = scene->p,
        .oracle = scene->oracle,
        .contract = GATE_EXACT,
        .stock_output = scene->stock,
        .forced_token = -1,
        .either_share = 0.02,
    };
    for (int64_t row = 0; row < scene->batch; row++) {
        const struct nucleus *const oracle = &scene->oracle[row];
        if (oracle->status != NUCLEUS_OK)
            continue;
        order_row(row);
        if (!oracle->untouched) {
            scene_keep(scene->output, row, oracle->kept);
            scene_keep(scene->stock, row, oracle->kept);
        }
    }
}

void scene_draw(int64_t batch, int64_t vocab, enum row_kind kind, float p, uint64_t *words) {
    scene_begin(batch, vocab);
    for (int64_t row = 0; row < batch; row++) {
        scene->p[row] = p;
        rows_fill(kind, words, scene_row(scene->input, row), vocab);
    }
    scene_solve();
}

float *scene_row(float *rows, int64_t row) {
    return rows + row * scene->stride;
}

void scene_set(float *mask, int64_t row, int64_t rank, bool keep) {
    const int64_t at = row * scene->stride + scene->order[row][rank];
    mask[at] = keep ? scene->input[at] : scene->the_case.mask_value;
}

void scene_keep(float *mask, int64_t row, int64_t n) {
    for (int64_t rank = 0; rank < scene->vocab; rank++)
        scene_set(mask, row, rank, rank < n);
}

struct gate_result scene_judge(struct gate_row *rows) {
    struct gate_result result;
    struct tb_error error = TB_ERROR_INIT;
    assert_int_equal(gate_check(&scene->the_case, rows, &result, &error), TB_OK);
    return result;
}
