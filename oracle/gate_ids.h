/* The gate of a sampler that leaves ids: tokens drawn from the softmax over the nucleus.
 *
 * Two rules. Every id lies in the oracle's nucleus, whatever the contract. And the frequencies are
 * the oracle's: a chi-square test over a declared number of draws, whose seeds, size and limit are
 * frozen. A row's tokens stand in canonical order and are pooled, neighbour by neighbour, until a
 * cell expects GATE_IDS_LEAST_EXPECTED draws and a GATE_IDS_MOST_CELLS-th of the row's; the
 * statistics of all rows are added up, their degrees of freedom too, and judged once a case.
 *
 * Limit: the chi-square quantile at 6 standard deviations (Wilson and Hilferty's cube), which a
 * right sampler passes in fewer than 1 of 1,000,000 cases (cells of 16 expected draws are that
 * near to normal). Power: a defect that moves a share d of the mass from the likelier half of a
 * row's nucleus to the less likely one, evenly, adds 4 d^2 a draw; smallest_defect is the d that is
 * refused in half of all cases. */
#ifndef TOPP_ORACLE_GATE_IDS_H
#define TOPP_ORACLE_GATE_IDS_H

#include "oracle/gate.h"

enum {
    GATE_IDS_DRAWS = 16384,       /* of a whole case, at least */
    GATE_IDS_LEAST_LAUNCHES = 64, /* of one input: draws of each row */
    GATE_IDS_LEAST_EXPECTED = 16,
    GATE_IDS_MOST_CELLS = 32, /* of a row; many small cells would see a slow drift less well */
};

/* Launches for each of `inputs` inputs of `batch` rows: each draws every row once. */
int64_t gate_ids_launches(int64_t batch, int64_t inputs);

/* One input and all its draws. All pointers host memory, the caller's. */
struct gate_ids_case {
    const float *input; /* binary32 [batch, stride] */
    int64_t batch, vocab, stride;
    const struct nucleus *oracle; /* [batch] */
    const int64_t *ids;           /* [launches, batch] */
    int64_t launches;
    bool hazard; /* rows without a nucleus: any id of [0, vocab) will do */
};

struct gate_ids_result {
    enum gate_verdict verdict;
    enum gate_rule rule;        /* of the first offending row; CHI_SQUARE: of the case */
    int64_t input;              /* which call of gate_ids_add it was in, 0 the first; -1 if none */
    int64_t row, token, launch; /* where; -1 if none */
    int64_t inputs, rows, rows_failed, draws;
    int64_t rows_equal; /* rows all of whose ids lie in the nucleus */
    int64_t rows_by_rule[GATE_RULE_COUNT];
    int64_t outside;         /* draws outside the nucleus */
    int64_t oracle;          /* sum of the nuclei's counts */
    int64_t tested;          /* draws in rows with two cells or more: those that chi-square sees */
    double chi2, chi2_limit; /* limit 0: no row has two cells, nothing was tested */
    int64_t degrees;         /* of freedom */
    double smallest_defect;  /* NAN when nothing was tested */
};

/* A case of one or several inputs: begin, add each, finish. add: TB_OK unless memory is short. */
void gate_ids_begin(struct gate_ids_result *result);
enum tb_status gate_ids_add(const struct gate_ids_case *the_case, struct gate_ids_result *result,
                            struct tb_error *error);
void gate_ids_finish(struct gate_ids_result *result);

/* The limit for this many degrees of freedom. */
double gate_ids_limit(int64_t degrees);

#endif
