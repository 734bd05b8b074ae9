/* Charts of a run: which there are, the data file of each, and gnuplot over all of them. */
#ifndef TOPP_BENCH_PLOT_H
#define TOPP_BENCH_PLOT_H

#include "bench/plot_source.h"

enum { PLOT_MOST_GROUPS = 24, PLOT_MOST_CHARTS = 8 * PLOT_MOST_GROUPS };

/* What a chart shows. A cell belongs to it when each member that is not empty is the cell's. */
struct chart {
    char name[128];     /* of its files: name.tsv, name.svg, name.png */
    const char *script; /* plots/SCRIPT.gp */
    char title[256];
    char kind[24], family[128], l2[8], launch[8];
    char p[24], temperature[32], vocab[24];
    char base[64], fresh[64]; /* speedup: the two kernels */
    bool drawn;               /* its pictures are there */
};

struct chart_list {
    struct chart charts[PLOT_MOST_CHARTS];
    size_t count;
    size_t groups_left_out; /* groups of cells past PLOT_MOST_GROUPS, the smallest */
};

/* Chooses the charts of a run: for each (kind, family, l2, launch) what its cells can show. */
void chart_list_make(const struct plot_results *results, struct chart_list *list);

/* Writes dir/NAME.tsv of every chart. dir is made if it is not there. */
enum tb_status chart_data_write(const struct plot_results *results, const struct chart_list *list,
                                const char *dir, struct tb_error *error);

/* The tail of each Gumbel variant's noise: variant, noise, tail, greatest (columns of noise.tsv),
 * exact over all words that the variant can draw. */
bool chart_write_noise(FILE *stream);

/* Runs plots/SCRIPT.gp (in script_dir) over the data files in dir: NAME.svg and NAME.png, several
 * at once. gnuplot absent: TB_UNAVAILABLE. A script that fails or warns: TB_INTERNAL with what
 * gnuplot said. */
enum tb_status chart_draw(struct chart_list *list, const char *script_dir, const char *dir,
                          const char *footer, struct tb_error *error);

/* The page: one self-contained HTML file. charts_dir holds the drawn SVGs; receipt may be absent
 * from the results' folder. */
enum tb_status report_write(const struct plot_results *results, const struct chart_list *list,
                            const char *charts_dir, const char *path, struct tb_error *error);

#endif
