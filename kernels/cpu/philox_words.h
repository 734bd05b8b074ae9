/* Philox words of consecutive tokens, in the widest vectors that the machine has. */
#ifndef TOPP_KERNELS_CPU_PHILOX_WORDS_H
#define TOPP_KERNELS_CPU_PHILOX_WORDS_H

#include <stdint.h>

/* w0[i] and w1[i] become words 0 and 1 of philox(counter = (first + i, 0, 0, 0), key = (key, 0)),
 * i < n; w1 may be NULL. The same words on every machine. */
void philox_words(uint32_t key, uint32_t first, int64_t n, uint32_t *w0, uint32_t *w1);

#endif
