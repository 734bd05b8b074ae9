/* The frozen generator (version 1): rows of synthetic logits, one family each.
 *
 * Word t of row r in a stream is word 0 of Philox4x32-10 with counter (t, r, stream, 0) and key
 * (low, high half of the seed). All results are integers or single binary32 operations in the
 * order written, so the bytes are the same on every machine; compile with -ffp-contract=off. */
#ifndef TOPP_BENCH_GENERATOR_H
#define TOPP_BENCH_GENERATOR_H

#include "bench/inputs.h"

/* normal(seed, stream): tokens [0, vocab) of row, about standard normal, within [-4.9, 4.9]. */
void generator_normal(float *out, int64_t vocab, int64_t row, uint32_t stream, int64_t seed);

/* The words of tokens [0, vocab) of row in a stream. */
void generator_words(uint32_t *out, int64_t vocab, int64_t row, uint32_t stream, int64_t seed);

/* Row `row` of a family (any but captured). scratch: [vocab] words, contents arbitrary. */
void generator_row(const struct family *family, float *out, int64_t vocab, int64_t row,
                   int64_t seed, uint32_t *scratch);

#endif
