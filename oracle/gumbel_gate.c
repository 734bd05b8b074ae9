#include "oracle/gumbel_gate.h"

#include <math.h>

enum { CHUNK = 1024 };

/* One row being judged. */
struct judge {
    enum noise_kind noise;
    const float *logits;
    int64_t vocab, seed, position;
    float temperature;
    double division_error; /* relative error of the kernel's quotient */
};

/* A score with its parts. */
struct score {
    int64_t token; /* -1: none */
    double quotient, noise, sum;
};

static double quotient_of(const struct judge *judge, float logit) {
    const double q = (double)logit / (double)judge->temperature;
    return isinf((float)q) ? (double)(float)q : q;
}

static struct score score_of(const struct judge *judge, int64_t token, struct noise_word word) {
    const double q = quotient_of(judge, judge->logits[token]);
    const double g = noise_value(judge->noise, word);
    return (struct score){token, q, g, q + g};
}

static struct score score_at(const struct judge *judge, int64_t token) {
    struct noise_word word;
    noise_words(judge->noise, judge->seed, judge->position, token, 1, &word);
    return score_of(judge, token, word);
}

/* Greatest |kernel's score - ours|. The kernel forms fl(fl(logit / T) + g'):
 *   quotient: half a place of binary32, none if T is a power of two (fp64 divides likewise; one
 *             that divides in binary64 is nearer still), and 2^-150 where it is subnormal;
 *   noise:    noise_bound;
 *   sum:      half a place of the sum, binary32 or for fp64 binary64, with 2^-20 of all for
 *             products of errors. */
static double score_bound(const struct judge *judge, const struct score *s) {
    const double half_place = judge->noise == NOISE_FP64 ? 0x1p-53 : 0x1p-24;
    const double quotient =
        judge->division_error * fabs(s->quotient) + (judge->division_error > 0 ? 0x1p-150 : 0);
    return (quotient + noise_bound(judge->noise, s->noise) + half_place * fabs(s->sum)) *
           (1 + 0x1p-20);
}

/* Greatest quotient and noise order of a chunk; -inf if nothing in it can be drawn. */
static double chunk_ceiling(const struct judge *judge, int64_t first, int64_t n,
                            const struct noise_word *words) {
    float logit = -INFINITY;
    uint64_t order = 0;
    int64_t extreme = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t o = noise_order(judge->noise, words[i]);
        if (o > order) {
            order = o;
            extreme = i;
        }
        if (judge->logits[first + i] > logit)
            logit = judge->logits[first + i];
    }
    return quotient_of(judge, logit) + noise_value(judge->noise, words[extreme]);
}

/* The oracle's winner, and the lowest id that ties with the drawn token exactly (or drawn->token).
 * A chunk is skipped when its ceiling is far below the best: further than any bound. */
static struct score find_winner(const struct judge *judge, const struct score *drawn,
                                int64_t *first_tie) {
    struct noise_word words[CHUNK];
    struct score best = {-1, 0, 0, -INFINITY};
    for (int64_t first = 0; first < judge->vocab; first += CHUNK) {
        const int64_t n = judge->vocab - first < CHUNK ? judge->vocab - first : CHUNK;
        noise_words(judge->noise, judge->seed, judge->position, first, n, words);
        const double ceiling = chunk_ceiling(judge, first, n, words);
        if (ceiling + 0x1p-10 * (1 + fabs(best.sum)) < best.sum)
            continue;
        for (int64_t i = 0; i < n; i++) {
            const struct score s = score_of(judge, first + i, words[i]);
            if (s.sum > best.sum)
                best = s;
            if (s.token < *first_tie && s.noise == drawn->noise &&
                judge->logits[s.token] == judge->logits[drawn->token])
                *first_tie = s.token;
        }
    }
    return best;
}

static int64_t first_argmax(const float *logits, int64_t vocab) {
    int64_t best = -1;
    for (int64_t i = 0; i < vocab; i++)
        if (logits[i] > (best < 0 ? -INFINITY : logits[best]))
            best = i;
    return best;
}

static bool in_range(const struct judge *judge, int64_t token) {
    return token >= 0 && token < judge->vocab;
}

/* The rules that look at the drawn token alone, once it is known that something can be drawn. */
static enum gumbel_rule forbidden(const struct judge *judge, int64_t token) {
    if (isnan(judge->logits[token]))
        return GUMBEL_RULE_NAN_DRAWN;
    if (judge->logits[token] == -INFINITY)
        return GUMBEL_RULE_MASKED_DRAWN;
    return GUMBEL_RULE_NONE;
}

static void judge_greedy(const struct judge *judge, int64_t token, struct gumbel_row *row) {
    const int64_t winner = first_argmax(judge->logits, judge->vocab);
    row->winner = winner < 0 ? 0 : winner;
    if (winner < 0) {
        row->rule = token == 0 ? GUMBEL_RULE_NONE : GUMBEL_RULE_EMPTY_ROW;
        return;
    }
    row->rule = forbidden(judge, token);
    if (row->rule == GUMBEL_RULE_NONE && token != winner) {
        row->rule = GUMBEL_RULE_NOT_ARGMAX;
        row->gap = (double)judge->logits[winner] - (double)judge->logits[token];
    }
}

static void judge_noisy(const struct judge *judge, int64_t token, struct gumbel_row *row) {
    const struct score drawn = score_at(judge, token);
    int64_t first_tie = token;
    const struct score best = find_winner(judge, &drawn, &first_tie);
    row->winner = best.token < 0 ? 0 : best.token;
    if (best.token < 0) {
        row->rule = token == 0 ? GUMBEL_RULE_NONE : GUMBEL_RULE_EMPTY_ROW;
        return;
    }
    row->rule = forbidden(judge, token);
    if (row->rule != GUMBEL_RULE_NONE || token == best.token)
        return;
    if (isinf(best.sum)) { /* +inf: equal to every other +inf, and the lowest id wins */
        row->gap = drawn.sum == best.sum ? 0 : INFINITY;
        row->rule = row->gap > 0 ? GUMBEL_RULE_WRONG_WINNER : GUMBEL_RULE_TIE_ORDER;
        return;
    }
    row->gap = best.sum - drawn.sum;
    row->bound = score_bound(judge, &best) + score_bound(judge, &drawn);
    if (!(row->gap <= row->bound))
        row->rule = GUMBEL_RULE_WRONG_WINNER;
    else if (first_tie < token)
        row->rule = GUMBEL_RULE_TIE_ORDER;
}

static void judge_row(const struct gumbel_case *c, int64_t i, struct gumbel_row *row) {
    int exponent;
    const struct judge judge = {
        .noise = c->noise,
        .logits = c->logits + i * c->stride,
        .vocab = c->vocab,
        .seed = c->seed[i],
        .position = c->position[i],
        .temperature = c->temperature[i],
        .division_error = frexpf(c->temperature[i], &exponent) == 0.5f ? 0 : 0x1p-24,
    };
    *row = (struct gumbel_row){GUMBEL_RULE_NONE, c->token[i], -1, 0, 0};
    if (!in_range(&judge, row->token))
        row->rule = GUMBEL_RULE_OUT_OF_RANGE;
    else if (judge.temperature == 0)
        judge_greedy(&judge, row->token, row);
    else
        judge_noisy(&judge, row->token, row);
}

static void count_row(const struct gumbel_row *row, int64_t i, struct gumbel_result *result) {
    result->rows_by_rule[row->rule]++;
    if (row->rule == GUMBEL_RULE_NONE) {
        result->rows_near += row->token != row->winner;
        if (result->verdict == GATE_ACCEPTED && row->gap > result->gap) {
            result->gap = row->gap;
            result->bound = row->bound;
        }
        return;
    }
    if (result->rows_failed++)
        return;
    result->verdict = GATE_REJECTED;
    result->rule = row->rule;
    result->row = i;
    result->token = row->token;
    result->winner = row->winner;
    result->gap = row->gap;
    result->bound = row->bound;
}

static enum tb_status check_contract(const struct gumbel_case *c, struct tb_error *error) {
    if (c->batch < 1 || c->vocab < 1 || (c->stride != 0 && c->stride < c->vocab))
        return tb_fail(error, TB_USAGE,
                       "Gumbel gate: batch %lld, vocab %lld, stride %lld is no shape; batch and "
                       "vocab are at least 1, stride is 0 or at least vocab",
                       (long long)c->batch, (long long)c->vocab, (long long)c->stride);
    for (int64_t i = 0; i < c->batch; i++)
        if (!(c->temperature[i] >= 0))
            return tb_fail(error, TB_USAGE,
                           "Gumbel gate: temperature %g of row %lld; it must be 0 or greater",
                           (double)c->temperature[i], (long long)i);
    return TB_OK;
}

enum tb_status gumbel_gate_check(const struct gumbel_case *the_case, struct gumbel_row *rows,
                                 struct gumbel_result *result, struct tb_error *error) {
    *result =
        (struct gumbel_result){.verdict = GATE_ACCEPTED, .row = -1, .token = -1, .winner = -1};
    const enum tb_status status = check_contract(the_case, error);
    if (status != TB_OK)
        return status;
    for (int64_t i = 0; i < the_case->batch; i++) {
        struct gumbel_row row;
        judge_row(the_case, i, &row);
        count_row(&row, i, result);
        if (rows)
            rows[i] = row;
    }
    return TB_OK;
}

static const struct {
    const char *name, *text;
} rule_texts[GUMBEL_RULE_COUNT] = {
    [GUMBEL_RULE_NONE] = {"none", "The draw is right."},
    [GUMBEL_RULE_OUT_OF_RANGE] = {"out_of_range", "The id is outside the vocabulary."},
    [GUMBEL_RULE_MASKED_DRAWN] = {"masked_drawn", "A token of logit -inf was drawn."},
    [GUMBEL_RULE_NAN_DRAWN] = {"nan_drawn", "A token of logit NaN was drawn."},
    [GUMBEL_RULE_EMPTY_ROW] = {"empty_row", "Nothing can be drawn; the id must then be 0."},
    [GUMBEL_RULE_NOT_ARGMAX] = {"not_argmax",
                                "At temperature 0 the first of the greatest logits is drawn."},
    [GUMBEL_RULE_WRONG_WINNER] = {"wrong_winner",
                                  "Another token's score is greater by more than the variant's "
                                  "rounding can explain."},
    [GUMBEL_RULE_TIE_ORDER] = {"tie_order",
                               "A token of lower id has the same logit and the same noise."},
};

const char *gumbel_rule_name(enum gumbel_rule rule) {
    return rule_texts[rule].name;
}
const char *gumbel_rule_text(enum gumbel_rule rule) {
    return rule_texts[rule].text;
}
