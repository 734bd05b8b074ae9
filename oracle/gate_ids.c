#include "oracle/gate_ids.h"
#include "oracle/gate_row.h"
#include "oracle/parallel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double limit_deviations = 6.0;

int64_t gate_ids_launches(int64_t batch, int64_t inputs) {
    const int64_t rows = batch * inputs;
    const int64_t launches = (GATE_IDS_DRAWS + rows - 1) / rows;
    return launches < GATE_IDS_LEAST_LAUNCHES ? GATE_IDS_LEAST_LAUNCHES : launches;
}

double gate_ids_limit(int64_t degrees) {
    const double ninth = 2.0 / (9.0 * (double)degrees);
    return degrees < 1 ? 0.0
                       : (double)degrees * pow(1.0 - ninth + limit_deviations * sqrt(ninth), 3.0);
}

/* A token of a nucleus with the draws that it should have had, and had. */
struct ranked {
    float logit;
    int64_t token, seen;
};

static int by_rank(const void *left, const void *right) {
    const struct ranked *a = left, *b = right;
    if (a->logit != b->logit)
        return a->logit > b->logit ? -1 : 1;
    return a->token < b->token ? -1 : a->token > b->token;
}

/* What one row comes to. */
struct row_result {
    enum gate_rule rule;
    int64_t token, launch, outside;
    double chi2;
    int64_t cells, pair_cells;
    bool no_memory;
};

struct judging {
    const struct gate_ids_case *the_case;
    struct row_result *rows;
    uint8_t *pair_cell; /* [batch, launches]: of each draw, where its row has pair_cells */
};

static int64_t id_of(const struct gate_ids_case *the_case, int64_t launch, int64_t row) {
    return the_case->ids[launch * the_case->batch + row];
}

/* Every id in range and, where there is a nucleus, in it. */
static void judge_places(const struct gate_ids_case *the_case, int64_t index,
                         struct row_result *row) {
    const float *const input = the_case->input + index * the_case->stride;
    const struct nucleus *const oracle = &the_case->oracle[index];
    for (int64_t launch = 0; launch < the_case->launches; launch++) {
        const int64_t id = id_of(the_case, launch, index);
        const bool in_range = id >= 0 && id < the_case->vocab;
        if (in_range && (oracle->status != NUCLEUS_OK || nucleus_keeps(oracle, input[id], id)))
            continue;
        row->outside++;
        if (row->rule == GATE_RULE_OUT_OF_RANGE ||
            (row->rule == GATE_RULE_OUTSIDE_NUCLEUS && in_range))
            continue; /* the worse of the two rules speaks, and of it the first draw */
        row->rule = in_range ? GATE_RULE_OUTSIDE_NUCLEUS : GATE_RULE_OUT_OF_RANGE;
        row->token = id;
        row->launch = launch;
    }
}

/* chi-square over pooled neighbours: a cell is closed when it and what is left expect enough. */
static void add_cells(const struct ranked *tokens, int64_t count, int64_t draws,
                      const struct nucleus *oracle, struct row_result *row) {
    const double share_of_draw = (double)draws / oracle->prefix;
    const double least = fmax(GATE_IDS_LEAST_EXPECTED, (double)draws / GATE_IDS_MOST_CELLS);
    double expected = 0.0, left = 0.0, chi2 = 0.0;
    int64_t seen = 0, cells = 0;
    for (int64_t i = 0; i < count; i++)
        left += exp((double)tokens[i].logit - (double)oracle->max_logit) * share_of_draw;
    for (int64_t i = 0; i < count; i++) {
        const double more =
            exp((double)tokens[i].logit - (double)oracle->max_logit) * share_of_draw;
        expected += more;
        left -= more;
        seen += tokens[i].seen;
        if (i + 1 < count && !(expected >= least && left >= least))
            continue;
        const double off = (double)seen - expected;
        chi2 += off * off / expected;
        cells++;
        expected = 0.0;
        seen = 0;
    }
    row->chi2 = chi2;
    row->cells = cells;
}

/* The cell of each draw for the tables of pairs. place: [vocab], is overwritten. */
static void cut_pairs(const struct gate_ids_case *the_case, const struct ranked *tokens,
                      int64_t count, int64_t index, int64_t *place, uint8_t *pair_cell,
                      struct row_result *row) {
    const struct nucleus *const oracle = &the_case->oracle[index];
    const double least = gate_pairs_least_share(the_case->launches);
    double share = 0.0, left = 1.0;
    int64_t cells = 1;
    for (int64_t i = 0; i < count; i++) {
        const double more =
            exp((double)tokens[i].logit - (double)oracle->max_logit) / oracle->prefix;
        place[tokens[i].token] = cells - 1;
        share += more;
        left -= more;
        if (share >= least && left >= least && cells < GATE_PAIRS_MOST_CELLS) {
            cells++;
            share = 0.0;
        }
    }
    for (int64_t launch = 0; launch < the_case->launches; launch++)
        pair_cell[launch] = (uint8_t)place[id_of(the_case, launch, index)];
    row->pair_cells = cells;
}

static void judge_frequencies(const struct gate_ids_case *the_case, int64_t index,
                              uint8_t *pair_cell, struct row_result *row) {
    const float *const input = the_case->input + index * the_case->stride;
    const struct nucleus *const oracle = &the_case->oracle[index];
    struct ranked *const tokens = malloc((size_t)oracle->kept * sizeof *tokens);
    int64_t *const seen = calloc((size_t)the_case->vocab, sizeof *seen);
    row->no_memory = tokens == NULL || seen == NULL;
    for (int64_t launch = 0; !row->no_memory && launch < the_case->launches; launch++)
        seen[id_of(the_case, launch, index)]++;
    int64_t count = 0;
    for (int64_t t = 0; !row->no_memory && t < the_case->vocab && count < oracle->kept; t++)
        if (nucleus_keeps(oracle, input[t], t))
            tokens[count++] = (struct ranked){input[t], t, seen[t]};
    if (!row->no_memory) {
        qsort(tokens, (size_t)count, sizeof *tokens, by_rank);
        add_cells(tokens, count, the_case->launches, oracle, row);
        cut_pairs(the_case, tokens, count, index, seen, pair_cell, row);
    }
    free(tokens);
    free(seen);
}

static void judge_row(void *context, int64_t index) {
    const struct judging *const judging = context;
    const struct gate_ids_case *const the_case = judging->the_case;
    struct row_result *const row = &judging->rows[index];
    const enum nucleus_status status = the_case->oracle[index].status;
    *row = (struct row_result){.token = -1, .launch = -1};
    if (status == NUCLEUS_AMBIGUOUS) {
        row->rule = GATE_RULE_ORACLE_BOUNDARY;
    } else if (status != NUCLEUS_OK && !the_case->hazard) {
        row->rule = status == NUCLEUS_EMPTY_ROW ? GATE_RULE_INPUT_EMPTY : GATE_RULE_INPUT_NAN;
    } else {
        judge_places(the_case, index, row);
        if (row->rule == GATE_RULE_NONE && status == NUCLEUS_OK)
            judge_frequencies(the_case, index, judging->pair_cell + index * the_case->launches,
                              row);
    }
}

void gate_ids_begin(struct gate_ids_result *result) {
    *result = (struct gate_ids_result){.verdict = GATE_ACCEPTED,
                                       .input = -1,
                                       .row = -1,
                                       .token = -1,
                                       .launch = -1,
                                       .smallest_defect = NAN,
                                       .smallest_repeat = NAN};
}

/* Unreadable speaks before ambiguous, and that before rejected. */
static int weight_of_rule(enum gate_rule rule) {
    const enum gate_verdict verdict = gate_rule_verdict(rule);
    return verdict == GATE_UNREADABLE  ? 3
           : verdict == GATE_AMBIGUOUS ? 2
           : verdict == GATE_REJECTED  ? 1
                                       : 0;
}

static void add_row(const struct gate_ids_case *the_case, int64_t index,
                    const struct row_result *row, struct gate_ids_result *result) {
    result->rows_by_rule[row->rule]++;
    result->rows_failed += row->rule != GATE_RULE_NONE;
    result->rows_equal +=
        row->rule == GATE_RULE_NONE && the_case->oracle[index].status == NUCLEUS_OK;
    result->outside += row->outside;
    result->oracle += the_case->oracle[index].kept;
    if (row->cells > 1) {
        result->chi2 += row->chi2;
        result->degrees += row->cells - 1;
        result->tested += the_case->launches;
    }
    if (weight_of_rule(row->rule) <= weight_of_rule(result->rule))
        return;
    result->rule = row->rule;
    result->input = result->inputs;
    result->row = index;
    result->token = row->token;
    result->launch = row->launch;
}

static void add_pairs(const struct judging *judging, struct gate_ids_result *result) {
    const struct gate_ids_case *const the_case = judging->the_case;
    const int64_t draws = the_case->launches;
    for (int64_t i = 0; i < the_case->batch; i++) {
        const uint8_t *const cell = judging->pair_cell + i * draws;
        const int64_t cells = judging->rows[i].pair_cells;
        gate_pairs_add_ring(cell, cells, draws, &result->pairs);
        if (the_case->rows_apart && i + 1 < the_case->batch)
            gate_pairs_add_rows(cell, cells, cell + draws, judging->rows[i + 1].pair_cells, draws,
                                &result->pairs);
    }
}

enum tb_status gate_ids_add(const struct gate_ids_case *the_case, struct gate_ids_result *result,
                            struct tb_error *error) {
    const size_t batch = (size_t)the_case->batch;
    struct judging judging = {the_case, calloc(batch, sizeof *judging.rows),
                              malloc(batch * (size_t)the_case->launches)};
    enum tb_status status = TB_OK;
    if (judging.rows == NULL || judging.pair_cell == NULL) {
        free(judging.rows);
        free(judging.pair_cell);
        return tb_fail(error, TB_NO_MEMORY, "no memory for the verdicts of %lld rows",
                       (long long)the_case->batch);
    }
    parallel_rows(the_case->batch, 0, judge_row, &judging);
    for (int64_t i = 0; i < the_case->batch && status == TB_OK; i++) {
        if (judging.rows[i].no_memory)
            status = tb_fail(error, TB_NO_MEMORY, "no memory to count the draws of a row");
        else
            add_row(the_case, i, &judging.rows[i], result);
    }
    if (status == TB_OK)
        add_pairs(&judging, result);
    result->rows += the_case->batch;
    result->draws += the_case->batch * the_case->launches;
    result->inputs++;
    free(judging.rows);
    free(judging.pair_cell);
    return status;
}

/* Of rules that no single draw breaks. Rows that failed were not counted: their frequencies are
 * nobody's. Repeated draws shift frequencies too, so that dependence speaks first. */
static enum gate_rule rule_of_case(const struct gate_ids_result *result) {
    for (int half = 0; half < 2; half++)
        if (result->seed_bits[half] >= GATE_IDS_SEED_BITS && !result->seed_differs[half])
            return GATE_RULE_SEED_IGNORED;
    if (!(result->pairs.chi2 <= result->pairs_limit))
        return GATE_RULE_DEPENDENT;
    return result->chi2 <= result->chi2_limit ? GATE_RULE_NONE : GATE_RULE_CHI_SQUARE;
}

void gate_ids_finish(struct gate_ids_result *result) {
    const struct gate_pairs *const pairs = &result->pairs;
    result->chi2_limit = gate_ids_limit(result->degrees);
    if (result->degrees > 0)
        result->smallest_defect =
            sqrt((result->chi2_limit - (double)result->degrees) / (4.0 * (double)result->tested));
    result->pairs_limit = gate_ids_limit(pairs->degrees);
    if (pairs->weight > 0.0)
        result->smallest_repeat =
            sqrt((result->pairs_limit - (double)pairs->degrees) / pairs->weight);
    if (result->rule == GATE_RULE_NONE) {
        result->rule = rule_of_case(result);
        if (result->rule != GATE_RULE_NONE)
            result->rows_by_rule[result->rule]++;
    }
    result->verdict = gate_rule_verdict(result->rule);
}
