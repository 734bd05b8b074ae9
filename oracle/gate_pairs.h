/* Are draws that stand beside each other independent? Pearson's chi-square of independence over
 * tables of pairs, added up. Internal to oracle/. */
#ifndef TOPP_ORACLE_GATE_PAIRS_H
#define TOPP_ORACLE_GATE_PAIRS_H

#include <stdint.h>

enum {
    GATE_PAIRS_LEAST_EXPECTED = 8, /* in the smallest cell of a table, by the oracle */
    GATE_PAIRS_MOST_CELLS = 8,     /* to either side of a table */
};

struct gate_pairs {
    double chi2;
    int64_t degrees, pairs;
    /* Sum over the ring tables of pairs x (cells - 1): what one draw's repeating the one before
     * adds to chi2, times the square of the share of draws that do. */
    double weight;
};

/* The least share of a row's mass that a cell may have, so that the smallest of a table expects
 * enough when each row has this many draws. */
double gate_pairs_least_share(int64_t draws);

/* Draw i of a row beside its next one; the last beside the first, which leaves the statistic
 * uncorrelated sums of products, as if no draw stood in two pairs. cell: [draws], each below cells.
 */
void gate_pairs_add_ring(const uint8_t *cell, int64_t cells, int64_t draws,
                         struct gate_pairs *pairs);

/* Draw i of one row beside draw i of another. */
void gate_pairs_add_rows(const uint8_t *cell, int64_t cells, const uint8_t *other,
                         int64_t other_cells, int64_t draws, struct gate_pairs *pairs);

#endif
