/* The binary64 reference for top-p: which tokens are the nucleus of a row.
 *
 * Deterministic, from the original binary32 logits and the binary32 p, both widened. A row's
 * nucleus is given by its last token in canonical order (logit descending, then id ascending;
 * +0 and -0 are one logit): token t is kept exactly when its logit is greater than
 * boundary_logit, or equal to it and t <= boundary_token. Definition: docs/gate.md. */
#ifndef TOPP_ORACLE_NUCLEUS_H
#define TOPP_ORACLE_NUCLEUS_H

#include "oracle/status.h"

#include <stdbool.h>
#include <stddef.h>

enum nucleus_status {
    NUCLEUS_OK = 0,
    NUCLEUS_EMPTY_ROW,       /* only -inf: no valid token */
    NUCLEUS_NONFINITE_INPUT, /* NaN or +inf */
    NUCLEUS_AMBIGUOUS,       /* scan and exact sums do not certify the same n */
};

struct nucleus {
    enum nucleus_status status;
    bool untouched;         /* p >= 1: the row must stay bit for bit as it is, -inf included */
    int64_t kept;           /* n; for p >= 1 the number of finite logits */
    int64_t boundary_token; /* last kept token; -1 unless status is OK */
    float boundary_logit;
    float max_logit;
    double normalizer;  /* correctly rounded sum of exp(logit - max) */
    double target;      /* p * normalizer */
    double prefix;      /* correctly rounded weight of the first n */
    double prefix_less; /* the same of the first n - 1; 0 for n = 1 */
};

/* Solves one row for p[0..count), each > 0 and not NaN. row: binary32 [vocab], host memory.
 * out: [count]. scratch: nucleus_scratch_bytes(vocab) bytes, 64-byte aligned, contents arbitrary.
 */
void nucleus_row(const float *row, int64_t vocab, const float *p, size_t count, struct nucleus *out,
                 void *scratch);
size_t nucleus_scratch_bytes(int64_t vocab);

/* Solves rows [batch, vocab] at stride for `count` values of p per row, in parallel.
 * p: [batch, count] packed; out: [batch, count] packed; both host memory, the caller's.
 * threads: worker threads, 0 = one per processor. TB_NO_MEMORY or TB_OK. */
enum tb_status nucleus_rows(const float *logits, int64_t batch, int64_t vocab, int64_t stride,
                            const float *p, size_t count, int threads, struct nucleus *out,
                            struct tb_error *error);

/* True when token with this logit belongs to the nucleus (status OK). */
static inline bool nucleus_keeps(const struct nucleus *nucleus, float logit, int64_t token) {
    return logit > nucleus->boundary_logit ||
           (logit == nucleus->boundary_logit && token <= nucleus->boundary_token);
}

/* "ok", "empty_row", "nonfinite_input", "oracle_boundary_ambiguous". */
const char *nucleus_status_name(enum nucleus_status status);

#endif
