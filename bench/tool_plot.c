/* --plot and --report: what a finished run looks like. */
#include "bench/plot.h"
#include "bench/tools.h"

#include <stdlib.h>
#include <string.h>

struct drawn {
    struct plot_results results;
    struct chart_list *list;
    char dir[600]; /* of the charts */
};

static void drawn_free(struct drawn *drawn) {
    plot_results_free(&drawn->results);
    free(drawn->list);
}

/* Reads, chooses, writes the data files. */
static enum tb_status prepare(const struct options *options, struct drawn *drawn,
                              struct tb_error *error) {
    enum tb_status status = plot_results_read(options->subject, &drawn->results, error);
    if (status != TB_OK)
        return status;
    drawn->list = calloc(1, sizeof *drawn->list);
    if (!drawn->list)
        return tb_fail(error, TB_NO_MEMORY, "no memory for the list of charts");
    if (options->mode == MODE_PLOT && options->out)
        snprintf(drawn->dir, sizeof drawn->dir, "%s", options->out);
    else
        snprintf(drawn->dir, sizeof drawn->dir, "%s/plots", drawn->results.dir);
    chart_list_make(&drawn->results, drawn->list);
    if (drawn->list->groups_left_out)
        fprintf(stderr, "note: %zu smaller groups of cells are not drawn (the %d greatest are)\n",
                drawn->list->groups_left_out, PLOT_MOST_GROUPS);
    return chart_data_write(&drawn->results, drawn->list, drawn->dir, error);
}

static enum tb_status draw(struct drawn *drawn, struct tb_error *error) {
    char scripts[512], footer[400];
    enum tb_status status = tool_plot_dir(scripts, sizeof scripts, error);
    if (status != TB_OK)
        return status;
    plot_footer(&drawn->results, footer, sizeof footer);
    return chart_draw(drawn->list, scripts, drawn->dir, footer, error);
}

int tool_plot(const struct options *options) {
    struct tb_error error = TB_ERROR_INIT;
    struct drawn drawn = {0};
    enum tb_status status = prepare(options, &drawn, &error);
    if (status == TB_OK)
        status = draw(&drawn, &error);
    if (status == TB_OK)
        for (size_t i = 0; i < drawn.list->count; i++)
            printf("%s/%s.svg\n", drawn.dir, drawn.list->charts[i].name);
    drawn_free(&drawn);
    return status == TB_OK ? tool_finish_output(0) : tool_fail(&error);
}

/* Without gnuplot the page is still written, with its tables, and the exit code says so. */
int tool_report(const struct options *options) {
    struct tb_error error = TB_ERROR_INIT;
    struct drawn drawn = {0};
    char page[640];
    enum tb_status status = prepare(options, &drawn, &error);
    if (options->out)
        snprintf(page, sizeof page, "%s", options->out);
    else
        snprintf(page, sizeof page, "%s/report.html", drawn.results.dir);
    if (status == TB_OK)
        status = tool_check_writable(page, &error);
    enum tb_status drawing = TB_OK;
    if (status == TB_OK) {
        drawing = draw(&drawn, &error);
        status = report_write(&drawn.results, drawn.list, drawn.dir, page, &error);
    }
    if (status == TB_OK)
        printf("%s\n", page);
    drawn_free(&drawn);
    if (status == TB_OK && drawing == TB_OK)
        return tool_finish_output(0);
    tool_finish_output(0);
    return tool_fail(&error);
}
