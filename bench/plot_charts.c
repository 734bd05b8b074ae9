/* Which charts a run has. */
#include "bench/plot.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LEVELS = 64 };

/* Values of one member that occur in a group, with how many cells have each. */
struct levels {
    char value[MOST_LEVELS][32];
    size_t cells[MOST_LEVELS];
    size_t count;
};

struct group {
    const char *kind, *family, *l2, *launch;
    size_t cells;
};

static const char *text_of(const json_t *cell, const char *name, char *room, size_t bytes) {
    const json_t *value = json_object_get(cell, name);
    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_integer(value))
        snprintf(room, bytes, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value)) {
        const size_t length =
            json_dumpb(value, room, bytes - 1, JSON_ENCODE_ANY | JSON_REAL_PRECISION(10));
        room[length < bytes ? length : 0] = '\0';
    } else
        room[0] = '\0';
    return room;
}

static bool in_group(const json_t *cell, const struct group *group) {
    return !strcmp(plot_text(cell, "kind"), group->kind) &&
           !strcmp(plot_text(cell, "family"), group->family) &&
           !strcmp(plot_text(cell, "l2"), group->l2) &&
           !strcmp(plot_text(cell, "launch"), group->launch);
}

static bool is_drawable(const json_t *cell) {
    return strcmp(plot_text(cell, "kind"), "gumbel_statistic") != 0 &&
           json_is_true(json_object_get(cell, "timed"));
}

static void count_level(struct levels *levels, const char *value) {
    size_t i = 0;
    while (i < levels->count && strcmp(levels->value[i], value) != 0)
        i++;
    if (i == MOST_LEVELS)
        return;
    if (i == levels->count)
        snprintf(levels->value[levels->count++], sizeof levels->value[0], "%s", value);
    levels->cells[i]++;
}

static struct levels *levels_of(const struct plot_results *results, const struct group *group,
                                const char *member) {
    struct levels *levels = calloc(1, sizeof *levels);
    char room[64];
    for (size_t i = 0; levels && i < results->count; i++)
        if (is_drawable(results->cells[i].json) && in_group(results->cells[i].json, group))
            count_level(levels, text_of(results->cells[i].json, member, room, sizeof room));
    return levels;
}

/* The value most cells have; of equals the wished one, else the last (profiles list ascending). */
static const char *common_level(const struct levels *levels, const char *wished) {
    size_t best = 0;
    for (size_t i = 1; i < levels->count; i++) {
        const bool equal = levels->cells[i] == levels->cells[best];
        if (levels->cells[i] > levels->cells[best] ||
            (equal && strcmp(levels->value[best], wished) != 0))
            best = i;
    }
    return levels->count ? levels->value[best] : "";
}

static bool has_level(const struct levels *levels, const char *value) {
    for (size_t i = 0; i < levels->count; i++)
        if (!strcmp(levels->value[i], value))
            return true;
    return false;
}

/* Only what file systems and links bear everywhere. */
static void name_chart(struct chart *chart) {
    char raw[300];
    snprintf(raw, sizeof raw, "%s-%s-%s%s%s%s%s", chart->script, chart->kind, chart->family,
             *chart->l2 ? "-" : "", chart->l2, *chart->launch ? "-" : "", chart->launch);
    size_t length = strlen(raw);
    if (length >= sizeof chart->name)
        length = sizeof chart->name - 1;
    for (size_t i = 0; i < length; i++)
        chart->name[i] = isalnum((unsigned char)raw[i]) || raw[i] == '-' ? raw[i] : '_';
    chart->name[length] = '\0';
}

static struct chart *add_chart(struct chart_list *list, const char *script, const char *title,
                               const struct group *group) {
    if (list->count == PLOT_MOST_CHARTS)
        return NULL;
    struct chart *chart = &list->charts[list->count++];
    *chart = (struct chart){.script = script};
    snprintf(chart->kind, sizeof chart->kind, "%s", group->kind);
    snprintf(chart->family, sizeof chart->family, "%s", group->family);
    snprintf(chart->l2, sizeof chart->l2, "%s", group->l2);
    snprintf(chart->launch, sizeof chart->launch, "%s", group->launch);
    snprintf(chart->title, sizeof chart->title, "%s: %s, %s%s%s%s%s", title,
             !strcmp(group->kind, "topp") ? "top-p" : "Gumbel-max", group->family,
             *group->l2 ? ", L2 " : "", group->l2, *group->launch ? ", launch " : "",
             group->launch);
    name_chart(chart);
    /* Two families can come to one name: forced=1e9@0 and forced=1e9_0. */
    for (size_t i = 0; i + 1 < list->count; i++)
        if (!strcmp(list->charts[i].name, chart->name)) {
            const size_t length = strlen(chart->name);
            snprintf(chart->name + (length > 100 ? 100 : length), 24, "-%zu", list->count);
        }
    return chart;
}

/* Holds p (top-p) or the temperature (Gumbel) at the group's usual value. */
static void hold_level(struct chart *chart, const struct levels *levels) {
    if (!strcmp(chart->kind, "topp"))
        snprintf(chart->p, sizeof chart->p, "%s", common_level(levels, "0.9"));
    else
        snprintf(chart->temperature, sizeof chart->temperature, "%s", common_level(levels, "1.0"));
}

/* The pair people ask about first, else the first two kernels. */
static bool pick_pair(const struct levels *kernels, bool topp, struct chart *chart) {
    const char *base = topp ? "stock" : "log", *fresh = topp ? "exact" : "murmur";
    if (!has_level(kernels, base) || !has_level(kernels, fresh)) {
        const char *found[2] = {0};
        for (size_t i = 0, n = 0; i < kernels->count && n < 2; i++)
            if (strcmp(kernels->value[i], "floor") != 0)
                found[n++] = kernels->value[i];
        if (!found[1])
            return false;
        base = found[0];
        fresh = found[1];
    }
    snprintf(chart->base, sizeof chart->base, "%s", base);
    snprintf(chart->fresh, sizeof chart->fresh, "%s", fresh);
    return true;
}

static void add_group(const struct plot_results *results, const struct group *group,
                      struct chart_list *list) {
    const bool topp = !strcmp(group->kind, "topp");
    struct levels *vocabs = levels_of(results, group, "vocab");
    struct levels *batches = levels_of(results, group, "batch");
    struct levels *levels = levels_of(results, group, topp ? "p_text" : "temperature");
    struct levels *kernels = levels_of(results, group, "kernel");
    struct chart *chart, pair = {0};
    if (!vocabs || !batches || !levels || !kernels)
        goto cleanup;
    if (vocabs->count > 1 &&
        (chart = add_chart(list, "latency", "Latency against vocabulary", group)))
        hold_level(chart, levels);
    if (batches->count > 1 && (chart = add_chart(list, "batch", "Latency against batch", group)))
        hold_level(chart, levels);
    if (topp && levels->count > 1 && (chart = add_chart(list, "p", "Latency against p", group)))
        snprintf(chart->vocab, sizeof chart->vocab, "%s", common_level(vocabs, ""));
    if (topp && has_level(kernels, "floor") && kernels->count > 1)
        add_chart(list, "floor", "Distance from the memory floor", group);
    if (vocabs->count * batches->count > 1 && pick_pair(kernels, topp, &pair) &&
        (chart = add_chart(list, "speedup", "Speed-up", group))) {
        hold_level(chart, levels);
        memcpy(chart->base, pair.base, sizeof pair.base);
        memcpy(chart->fresh, pair.fresh, sizeof pair.fresh);
    }
    if ((chart = add_chart(list, "samples", "Distribution of samples", group)))
        hold_level(chart, levels);
cleanup:
    free(vocabs);
    free(batches);
    free(levels);
    free(kernels);
}

/* Groups in the file's order; past the limit the smallest go. */
static size_t find_groups(const struct plot_results *results, struct group **groups) {
    size_t count = 0;
    *groups = calloc(results->count + 1, sizeof **groups);
    for (size_t i = 0; *groups && i < results->count; i++) {
        const json_t *cell = results->cells[i].json;
        if (!is_drawable(cell))
            continue;
        size_t g = 0;
        while (g < count && !in_group(cell, &(*groups)[g]))
            g++;
        if (g == count)
            (*groups)[count++] =
                (struct group){plot_text(cell, "kind"), plot_text(cell, "family"),
                               plot_text(cell, "l2"), plot_text(cell, "launch"), 0};
        (*groups)[g].cells++;
    }
    return count;
}

static bool any_cell(const struct plot_results *results, const char *kind) {
    for (size_t i = 0; i < results->count; i++)
        if (!strncmp(plot_text(results->cells[i].json, "kind"), kind, strlen(kind)))
            return true;
    return false;
}

void chart_list_make(const struct plot_results *results, struct chart_list *list) {
    list->count = list->groups_left_out = 0;
    struct group *groups = NULL;
    size_t count = find_groups(results, &groups);
    while (groups && count > PLOT_MOST_GROUPS) {
        size_t least = 0;
        for (size_t i = 1; i < count; i++)
            if (groups[i].cells <= groups[least].cells)
                least = i;
        memmove(&groups[least], &groups[least + 1], (count - least - 1) * sizeof *groups);
        count--;
        list->groups_left_out++;
    }
    const struct group every = {"", "", "", "", 0};
    struct chart *chart;
    if (any_cell(results, "topp") && (chart = add_chart(list, "surplus", "", &every))) {
        snprintf(chart->name, sizeof chart->name, "surplus");
        snprintf(chart->title, sizeof chart->title,
                 "Tokens kept beyond the oracle, and tokens lost");
        snprintf(chart->kind, sizeof chart->kind, "topp");
    }
    for (size_t i = 0; groups && i < count; i++)
        add_group(results, &groups[i], list);
    if (any_cell(results, "gumbel") && (chart = add_chart(list, "noise_tail", "", &every))) {
        snprintf(chart->name, sizeof chart->name, "noise_tail");
        snprintf(chart->title, sizeof chart->title, "Tail of the Gumbel noise");
    }
    free(groups);
}
