#include "bench/sweep_select.h"

#include <regex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool sweep_same_input(const struct cell *left, const struct cell *right) {
    return left->vocab == right->vocab && left->batch == right->batch &&
           left->stride == right->stride && left->seed == right->seed &&
           !strcmp(left->family.text, right->family.text);
}

static int by_name(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static enum tb_status check_unique(const struct plan *plan, struct tb_error *error) {
    const char **names = malloc((plan->count + 1) * sizeof *names);
    if (!names)
        return tb_fail(error, TB_NO_MEMORY, "no memory for the names of %zu cells", plan->count);
    for (size_t i = 0; i < plan->count; i++)
        names[i] = plan->cells[i].name;
    qsort(names, plan->count, sizeof *names, by_name);
    enum tb_status status = TB_OK;
    for (size_t i = 1; i < plan->count && status == TB_OK; i++)
        if (!strcmp(names[i - 1], names[i]))
            status = tb_fail_at(error, TB_UNREADABLE, plan->profile_path, 0, -1,
                                "the cell %s comes out of two matrix entries", names[i]);
    free(names);
    return status;
}

enum tb_status sweep_group(struct plan *plan, struct tb_error *error) {
    struct cell *ordered = malloc((plan->count + 1) * sizeof *ordered);
    bool *placed = calloc(plan->count + 1, sizeof *placed);
    size_t count = 0;
    if (!ordered || !placed) {
        free(ordered);
        free(placed);
        return tb_fail(error, TB_NO_MEMORY, "no memory for %zu cells", plan->count);
    }
    for (size_t first = 0; first < plan->count; first++) {
        if (placed[first])
            continue;
        for (size_t i = first; i < plan->count; i++)
            if (!placed[i] && sweep_same_input(&plan->cells[first], &plan->cells[i])) {
                placed[i] = true;
                ordered[count++] = plan->cells[i];
            }
    }
    free(placed);
    free(plan->cells);
    plan->cells = ordered;
    return check_unique(plan, error);
}

/* What Google Benchmark adds to a name begins with one of these. */
static size_t length_without_suffix(const char *name) {
    static const char *const suffixes[] = {
        "/iterations:", "/repeats:",  "/min_time:",    "/min_warmup_time:",
        "/manual_time", "/real_time", "/process_time", "/threads:",
    };
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        const char *at = strstr(name, suffixes[i]);
        if (at && (size_t)(at - name) < length)
            length = (size_t)(at - name);
    }
    return length;
}

/* Edit distance (Levenshtein) between two names. */
static size_t distance(const char *left, size_t left_length, const char *right) {
    size_t row[CELL_NAME_BYTES + 1];
    const size_t right_length = strlen(right);
    for (size_t j = 0; j <= right_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= left_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= right_length; j++) {
            size_t best = diagonal + (left[i - 1] != right[j - 1]);
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[right_length];
}

static enum tb_status no_such_case(const struct plan *plan, const char *name, size_t length,
                                   struct tb_error *error) {
    size_t nearest = 0, least = SIZE_MAX;
    for (size_t i = 0; i < plan->count; i++) {
        const size_t apart = distance(name, length, plan->cells[i].name);
        if (apart < least) {
            least = apart;
            nearest = i;
        }
    }
    return tb_fail_at(error, TB_USAGE, "--case", 0, -1,
                      "profile %s has no cell %.*s; the nearest is %s (--list shows all)",
                      plan->profile_name, (int)length, name, plan->cells[nearest].name);
}

static enum tb_status select_case(const char *name, struct plan *plan, struct tb_error *error) {
    const size_t length = length_without_suffix(name);
    for (size_t i = 0; i < plan->count; i++)
        if (strlen(plan->cells[i].name) == length && !strncmp(plan->cells[i].name, name, length)) {
            plan->cells[0] = plan->cells[i];
            plan->count = 1;
            return TB_OK;
        }
    return no_such_case(plan, name, length, error);
}

static enum tb_status select_filter(const char *filter, struct plan *plan, struct tb_error *error) {
    regex_t regex;
    const int failed = regcomp(&regex, filter, REG_EXTENDED | REG_NOSUB);
    if (failed) {
        char text[200];
        regerror(failed, &regex, text, sizeof text);
        return tb_fail_at(error, TB_USAGE, "--filter", 0, -1, "`%s` is no regular expression: %s",
                          filter, text);
    }
    size_t kept = 0;
    for (size_t i = 0; i < plan->count; i++)
        if (regexec(&regex, plan->cells[i].name, 0, NULL, 0) == 0)
            plan->cells[kept++] = plan->cells[i];
    regfree(&regex);
    const size_t all = plan->count;
    plan->count = kept;
    if (kept)
        return TB_OK;
    return tb_fail_at(error, TB_USAGE, "--filter", 0, -1,
                      "`%s` matches none of the %zu cells of profile %s (--list shows them)",
                      filter, all, plan->profile_name);
}

enum tb_status sweep_select(const struct plan_options *options, struct plan *plan,
                            struct tb_error *error) {
    if (plan->count == 0)
        return tb_fail_at(error, TB_USAGE, plan->profile_path, 0, -1,
                          "profile %s has no cells for this request", plan->profile_name);
    enum tb_status status = TB_OK;
    if (options->case_name)
        status = select_case(options->case_name, plan, error);
    if (status == TB_OK && options->filter)
        status = select_filter(options->filter, plan, error);
    return status;
}
