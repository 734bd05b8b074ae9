/* What a cell's series says: epochs, change points, and which of them are new. */
#ifndef TOPP_CI_TREND_H
#define TOPP_CI_TREND_H

#include "ci/changepoint.h"
#include "ci/history.h"

enum { TREND_MOST = 64 };

struct trend_point {
    size_t at;   /* index into the series' points: first run of the new level */
    double step; /* log; positive = worse */
    double t;
    bool clock; /* cycles show no such step: the clock changed */
    bool fresh; /* since --since; without it: not seen before the last run came */
};

struct trend {
    const struct series *series;
    struct trend_point changes[TREND_MOST];
    size_t change_count;
    size_t measured, missing, refused;
    bool higher_is_better;
};

/* margin: least step, as a share. since: UTC date or NULL. false without memory. */
bool trend_find(const struct series *series, double margin, const char *since, struct trend *trend);

void trend_table(const struct trend *trend, const char *since, size_t last, FILE *stream);
void trend_tsv(const struct trend *trend, const char *since, FILE *stream); /* plots/history.gp */
json_t *trend_json(const struct trend *trend, const char *since);

#endif
