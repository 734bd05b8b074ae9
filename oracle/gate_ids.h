/* The gate of a sampler that leaves ids: tokens drawn from the softmax over the nucleus.
 *
 * What is drawn. Every id lies in the oracle's nucleus, whatever the contract. And the frequencies
 * are the oracle's: a chi-square test over a declared number of draws, whose seeds, size and limit
 * are frozen. A row's tokens stand in canonical order and are pooled, neighbour by neighbour, until
 * a cell expects GATE_IDS_LEAST_EXPECTED draws and a GATE_IDS_MOST_CELLS-th of the row's; the
 * statistics of all rows are added up, their degrees of freedom too, and judged once a case.
 *
 * Limit: the chi-square quantile at 6 standard deviations (Wilson and Hilferty's cube), which a
 * right sampler passes in fewer than 1 of 1,000,000 cases (cells of 16 expected draws are that
 * near to normal). Power: a defect that moves a share d of the mass from the likelier half of a
 * row's nucleus to the less likely one, evenly, adds 4 d^2 a draw; smallest_defect is the d that is
 * refused in half of all cases.
 *
 * What a draw depends on. Draws that stand beside each other are independent: those of one row in
 * consecutive launches, and of neighbouring rows in one launch where rows have positions of their
 * own. A row's tokens are pooled into GATE_PAIRS_MOST_CELLS cells at most (oracle/gate_pairs.h),
 * Pearson's chi-square of independence is added up over all rows, and judged once a case by the
 * same 6 deviations. smallest_repeat is the share of draws that may repeat the one before and be
 * refused in half of all cases.
 *
 * Seeds. The first launches are made again, with another seed in half of the rows, then in the
 * other half: a row that kept its seed must draw the same ids, and those with another seed must
 * not all draw what they drew. They are looked at once their ids would be alike by chance in fewer
 * than 2^-GATE_IDS_SEED_BITS of all cases, by the oracle's probability of a coincidence. */
#ifndef TOPP_ORACLE_GATE_IDS_H
#define TOPP_ORACLE_GATE_IDS_H

#include "oracle/gate.h"
#include "oracle/gate_pairs.h"

enum {
    GATE_IDS_DRAWS = 16384,       /* of a whole case, at least */
    GATE_IDS_LEAST_LAUNCHES = 64, /* of one input: draws of each row */
    GATE_IDS_LEAST_EXPECTED = 16,
    GATE_IDS_MOST_CELLS = 32, /* of a row; many small cells would see a slow drift less well */
    GATE_IDS_SEED_BITS = 60,
    GATE_IDS_MOST_AGAIN = 64, /* launches that are made again, for each half */
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
    bool hazard;     /* rows without a nucleus: any id of [0, vocab) will do */
    bool rows_apart; /* the rows' draws are independent of each other */
};

/* The first launches made again. Rows whose number has the parity `half` had another seed. */
struct gate_ids_again {
    int half;           /* 0 or 1 */
    const int64_t *ids; /* [launches, batch] */
    int64_t launches;
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
    struct gate_pairs pairs; /* of draws beside each other */
    double pairs_limit;      /* 0: nothing was tested */
    double smallest_repeat;  /* NAN when nothing was tested */
    int64_t repeated;        /* draws made again with the same seed */
    int64_t reseeded;        /* and with another one */
    double seed_bits[2];     /* of each half: -log2 of the chance that all of these are alike */
    bool seed_differs[2];    /* one was another id */
};

/* A case of one or several inputs: begin, add each, finish. add: TB_OK unless memory is short. */
void gate_ids_begin(struct gate_ids_result *result);
enum tb_status gate_ids_add(const struct gate_ids_case *the_case, struct gate_ids_result *result,
                            struct tb_error *error);
/* Behind gate_ids_add of the same case, if at all. */
enum tb_status gate_ids_add_again(const struct gate_ids_case *the_case,
                                  const struct gate_ids_again *again,
                                  struct gate_ids_result *result, struct tb_error *error);
void gate_ids_finish(struct gate_ids_result *result);

/* How many launches to make again: enough for GATE_IDS_SEED_BITS in each half of the rows. ids are
 * not looked at. */
enum tb_status gate_ids_again_launches(const struct gate_ids_case *the_case, int64_t *launches,
                                       struct tb_error *error);
/* The seeds for it: another one for the rows of this parity. */
void gate_ids_reseed(int64_t *seed, int64_t batch, int half);

/* The limit for this many degrees of freedom. */
double gate_ids_limit(int64_t degrees);

#endif
