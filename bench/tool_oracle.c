/* --oracle: what the binary64 reference keeps of anyone's logits, one JSON line per row and p. */
#include "bench/text.h"
#include "bench/tools.h"
#include "oracle/nucleus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One line. "p" is the number as written, "p_binary32" the value that is used. Figures that a
 * row has none of are null. */
static void print_row(int64_t row, float p, const struct nucleus *nucleus) {
    char decimal[40];
    text_float(p, decimal, sizeof decimal);
    printf("{\"row\": %lld, \"p\": %s, \"p_binary32\": %.17g, \"p_hex\": \"%a\", "
           "\"status\": \"%s\", ",
           (long long)row, decimal, (double)p, (double)p, nucleus_status_name(nucleus->status));
    if (nucleus->status == NUCLEUS_OK)
        printf("\"kept\": %lld, \"boundary_token\": %lld, \"boundary_logit\": %.9g, "
               "\"boundary_logit_hex\": \"%a\", ",
               (long long)nucleus->kept, (long long)nucleus->boundary_token,
               (double)nucleus->boundary_logit, (double)nucleus->boundary_logit);
    else
        printf("\"kept\": null, \"boundary_token\": null, \"boundary_logit\": null, "
               "\"boundary_logit_hex\": null, ");
    /* An ambiguous row shows the sums that do not certify each other. */
    if (nucleus->status == NUCLEUS_OK || nucleus->status == NUCLEUS_AMBIGUOUS)
        printf("\"normalizer\": \"%a\", \"target\": \"%a\", \"prefix\": \"%a\", "
               "\"prefix_less\": \"%a\"}\n",
               nucleus->normalizer, nucleus->target, nucleus->prefix, nucleus->prefix_less);
    else
        printf("\"normalizer\": null, \"target\": null, \"prefix\": null, "
               "\"prefix_less\": null}\n");
}

/* Rows without a certified nucleus stay as they are. */
static void mask_rows(const struct logits *logits, const struct nucleus *rows) {
    for (int64_t r = 0; r < logits->batch; r++) {
        float *row = logits->data + r * logits->stride;
        if (rows[r].status != NUCLEUS_OK || rows[r].untouched)
            continue;
        for (int64_t t = 0; t < logits->vocab; t++)
            if (!nucleus_keeps(&rows[r], row[t], t))
                row[t] = -INFINITY;
    }
}

static enum tb_status solve(const struct options *options, const struct logits *logits,
                            struct nucleus **out, struct tb_error *error) {
    const size_t count = (size_t)options->p_count, rows = (size_t)logits->batch;
    float *p = calloc(rows * count, sizeof *p);
    *out = calloc(rows * count, sizeof **out);
    enum tb_status status = TB_OK;
    if (!p || !*out)
        status =
            tb_fail(error, TB_NO_MEMORY, "no memory for %zu rows at %zu values of p", rows, count);
    for (size_t r = 0; status == TB_OK && r < rows; r++)
        memcpy(p + r * count, options->p, count * sizeof *p);
    if (status == TB_OK)
        status = nucleus_rows(logits->data, logits->batch, logits->vocab, logits->stride, p, count,
                              options->threads, *out, error);
    free(p);
    return status;
}

int tool_oracle(const struct options *options) {
    struct tb_error error = TB_ERROR_INIT;
    struct logits logits = {0};
    struct nucleus *rows = NULL;
    enum tb_status status = TB_OK;
    if (options->mask_out)
        status = tool_check_writable(options->mask_out, &error);
    if (status == TB_OK)
        status = npy_read(options->subject, options->bfloat16, &logits, &error);
    if (status == TB_OK)
        status = solve(options, &logits, &rows, &error);
    for (int64_t r = 0; status == TB_OK && r < logits.batch && !ferror(stdout); r++)
        for (int32_t i = 0; i < options->p_count; i++)
            print_row(r, options->p[i], &rows[r * options->p_count + i]);
    if (status == TB_OK && options->mask_out) {
        mask_rows(&logits, rows);
        status = npy_write(options->mask_out, logits.data, logits.batch, logits.vocab,
                           logits.stride, &error);
    }
    free(rows);
    logits_free(&logits);
    return status == TB_OK ? tool_finish_output(0) : tool_fail(&error);
}
