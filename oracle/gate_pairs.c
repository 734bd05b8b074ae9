#include "oracle/gate_pairs.h"

#include <math.h>

double gate_pairs_least_share(int64_t draws) {
    return fmax(sqrt((double)GATE_PAIRS_LEAST_EXPECTED / (double)draws),
                1.0 / GATE_PAIRS_MOST_CELLS);
}

/* Pairs (first[i], second[(i + shift) % draws]). */
static void add_table(const uint8_t *first, int64_t first_cells, const uint8_t *second,
                      int64_t second_cells, int64_t shift, int64_t draws,
                      struct gate_pairs *pairs) {
    double seen[GATE_PAIRS_MOST_CELLS][GATE_PAIRS_MOST_CELLS] = {{0.0}};
    double row[GATE_PAIRS_MOST_CELLS] = {0.0}, column[GATE_PAIRS_MOST_CELLS] = {0.0};
    for (int64_t i = 0; i < draws; i++) {
        const uint8_t a = first[i], b = second[(i + shift) % draws];
        seen[a][b] += 1.0;
        row[a] += 1.0;
        column[b] += 1.0;
    }
    double chi2 = 0.0;
    for (int64_t a = 0; a < first_cells; a++)
        for (int64_t b = 0; b < second_cells; b++) {
            const double expected = row[a] * column[b] / (double)draws;
            const double off = seen[a][b] - expected;
            if (expected > 0.0) /* a cell that was never drawn is the frequencies' matter */
                chi2 += off * off / expected;
        }
    /* Under independence the sum expects draws / (draws - 1) times its degrees of freedom. */
    pairs->chi2 += chi2 * (double)(draws - 1) / (double)draws;
    pairs->degrees += (first_cells - 1) * (second_cells - 1);
    pairs->pairs += draws;
}

void gate_pairs_add_ring(const uint8_t *cell, int64_t cells, int64_t draws,
                         struct gate_pairs *pairs) {
    if (cells < 2)
        return;
    add_table(cell, cells, cell, cells, 1, draws, pairs);
    pairs->weight += (double)draws * (double)(cells - 1);
}

void gate_pairs_add_rows(const uint8_t *cell, int64_t cells, const uint8_t *other,
                         int64_t other_cells, int64_t draws, struct gate_pairs *pairs) {
    if (cells >= 2 && other_cells >= 2)
        add_table(cell, cells, other, other_cells, 0, draws, pairs);
}
