#include "tests/kernels/variant_run.h"

#include "kernels/philox.h"
#include "oracle/nucleus.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

int run_variant(struct run *run) {
    enum { GUARD = 256, POISON = 0xA5 };
    const struct topp_variant *const variant = topp_find(run->variant, KERNEL_DEVICE_CPU);
    assert_non_null(variant);
    const struct topp_problem problem = {.logits = run->logits,
                                         .p = run->p,
                                         .batch = run->batch,
                                         .vocab = run->vocab,
                                         .stride = run->stride,
                                         .mask_value = -INFINITY,
                                         .sm_count = 132,
                                         .slices = run->slices,
                                         .boundary = run->boundary};
    const size_t bytes = variant->workspace_size(&problem);
    unsigned char *const workspace = aligned_alloc(256, (bytes + GUARD + 255) & ~(size_t)255);
    assert_non_null(workspace);
    memset(workspace, POISON, bytes + GUARD);
    const int status = variant->launch(&problem, workspace, bytes, NULL);
    for (size_t i = 0; i < GUARD; i++)
        assert_int_equal(workspace[bytes + i], POISON);
    if (!strcmp(run->variant, "exact"))
        memcpy(&run->escalated, workspace, sizeof run->escalated);
    free(workspace);
    return status;
}

float random_normal(uint32_t seed, uint32_t row, uint32_t token) {
    int64_t sum = 0;
    for (uint32_t half = 0; half < 2; half++) {
        const struct philox_words w = philox4x32(token, row, 77, half, seed, 0);
        sum += (int64_t)(w.w0 >> 8) + (w.w1 >> 8) + (w.w2 >> 8) + (w.w3 >> 8);
    }
    return (float)(sum - 4 * 16777215) * 0x1p-24f * 1.2247449f;
}

uint32_t random_word(uint32_t seed, uint32_t row, uint32_t token) {
    return philox4x32(token, row, 78, 0, seed, 0).w0;
}

float *rows_copy(const float *rows, int64_t count) {
    float *const copy = malloc((size_t)count * sizeof *copy);
    assert_non_null(copy);
    memcpy(copy, rows, (size_t)count * sizeof *copy);
    return copy;
}

int rows_differ(const float *a, const float *b, int64_t count) {
    return memcmp(a, b, (size_t)count * sizeof *a);
}

static void assert_row(const float *in, const float *out, int64_t vocab,
                       const struct nucleus *nucleus, float p, const char *name, int64_t row) {
    for (int64_t i = 0; i < vocab; i++) {
        float want = -INFINITY;
        if (nucleus->untouched || nucleus->status == NUCLEUS_EMPTY_ROW ||
            nucleus_keeps(nucleus, in[i], i))
            want = in[i];
        if (memcmp(&want, &out[i], sizeof want))
            fail_msg("%s: row %lld of vocab %lld, p %.9g, token %lld: %a became %a, not %a", name,
                     (long long)row, (long long)vocab, (double)p, (long long)i, (double)in[i],
                     (double)out[i], (double)want);
    }
}

void assert_oracle_mask(const float *in, const float *out, int64_t batch, int64_t vocab,
                        int64_t stride, const float *p, const char *name) {
    struct tb_error error = TB_ERROR_INIT;
    struct nucleus *const nuclei = malloc((size_t)batch * sizeof *nuclei);
    assert_non_null(nuclei);
    assert_int_equal(nucleus_rows(in, batch, vocab, stride, p, 1, 1, nuclei, &error), TB_OK);
    for (int64_t r = 0; r < batch; r++) {
        if (nuclei[r].status == NUCLEUS_OK || nuclei[r].status == NUCLEUS_EMPTY_ROW)
            assert_row(in + r * stride, out + r * stride, vocab, &nuclei[r], p[r], name, r);
        /* The tail of a row is nobody's. */
        const int64_t end = r + 1 < batch ? stride : vocab;
        assert_false(rows_differ(in + r * stride + vocab, out + r * stride + vocab, end - vocab));
    }
    free(nuclei);
}
