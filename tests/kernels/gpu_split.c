#include "tests/kernels/gpu_split.h"

#include <stdbool.h>
#include <string.h>

const char *const split_value_name[SPLIT_VALUES] = {
    "extent", "Z", "pivot", "mass", "gmin", "count within 1e-9", "chosen pivot", "numkeep", "none",
};

static bool same(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

static void note(struct split_parting *parting, enum split_value value, bool differs,
                 bool discrete) {
    if (differs && parting->first == SPLIT_VALUE_NONE)
        parting->first = value;
    if (differs && discrete && parting->first_discrete == SPLIT_VALUE_NONE)
        parting->first_discrete = value;
}

static void nearer(struct split_parting *parting, double left, double right) {
    const double away = fabs(left - right) / (fabs(right) > 0.0 ? fabs(right) : 1.0);
    if (away < parting->nearest)
        parting->nearest = away;
}

/* Merges the pivots of one round of both searches and compares them. */
static void compare_round(const struct split_partials *const sides[2], int round, float p,
                          struct split_search search[2], struct split_parting *parting) {
    struct split_pivot merged[2][SPLIT_PIVOTS];
    for (int k = 0; k < 2; k++)
        for (int f = 0; f < SPLIT_PIVOTS; f++)
            merged[k][f] = split_merge_slices(sides[k]->steps + (long)round * sides[k]->slices,
                                              sides[k]->slices, round, f,
                                              split_ladder(search[k].lo, search[k].hi, f));
    for (int f = 0; f < SPLIT_PIVOTS; f++) {
        const struct split_pivot *const a = &merged[0][f], *const b = &merged[1][f];
        note(parting, SPLIT_VALUE_PIVOT, !same(a->pivot, b->pivot), false);
        note(parting, SPLIT_VALUE_MASS, !same(a->mass, b->mass), false);
        note(parting, SPLIT_VALUE_GMIN, !same(a->gmin, b->gmin), false);
        note(parting, SPLIT_VALUE_COUNT, a->n != b->n, true);
        nearer(parting, a->mass, p);
        nearer(parting, (double)a->mass - (double)a->gmin * a->n, p);
    }
    for (int k = 0; k < 2; k++)
        split_search_round(&search[k], merged[k], p);
    note(parting, SPLIT_VALUE_CHOICE,
         search[0].done != search[1].done || search[0].has_best != search[1].has_best ||
             search[0].best.index != search[1].best.index ||
             search[0].best.round != search[1].best.round,
         true);
}

struct split_parting split_compare(const struct split_partials *a, const struct split_partials *b,
                                   float p) {
    const struct split_partials *const sides[2] = {a, b};
    struct split_parting parting = {SPLIT_VALUE_NONE, SPLIT_VALUE_NONE, INFINITY};
    for (int s = 0; s < a->slices; s++)
        note(&parting, SPLIT_VALUE_EXTENT,
             !same(a->stats[s].max, b->stats[s].max) || !same(a->stats[s].min, b->stats[s].min) ||
                 a->stats[s].finite != b->stats[s].finite,
             true);
    struct split_row row[2];
    struct split_search search[2];
    for (int k = 0; k < 2; k++) {
        row[k] = split_combine_row(sides[k]->stats, sides[k]->slices);
        search[k] = split_search_begin(&row[k]);
    }
    note(&parting, SPLIT_VALUE_Z, !same(row[0].z, row[1].z), false);
    for (int round = 0; round < SPLIT_ROUNDS && !search[0].done && !search[1].done; round++)
        compare_round(sides, round, p, search, &parting);
    const struct split_cut cut[2] = {split_finish(&row[0], &search[0], p),
                                     split_finish(&row[1], &search[1], p)};
    note(&parting, SPLIT_VALUE_NUMKEEP,
         cut[0].whole != cut[1].whole || cut[0].numkeep != cut[1].numkeep, true);
    if (!cut[0].whole) {
        /* numkeep steps where the mass over p is a multiple of gmin. */
        const double over = (double)search[0].best.mass - p, unit = cut[0].gmin;
        nearer(&parting, p + over, p + nearbyint(over / unit) * unit);
    }
    return parting;
}
