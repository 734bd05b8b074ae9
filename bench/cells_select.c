#include "bench/cells.h"

#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What Google Benchmark may hang on a name, without its leading slash; `:` wants a number. */
static const char *const suffixes[] = {"iterations:", "repeats:",         "threads:",
                                       "min_time:",   "min_warmup_time:", "manual_time",
                                       "real_time",   "process_time",     NULL};
static const char *const aggregates[] = {"_mean", "_median", "_stddev", "_cv",
                                         "_min",  "_max",    NULL};

static void strip_aggregate(char *name) {
    const size_t length = strlen(name);
    for (size_t i = 0; aggregates[i]; i++) {
        const size_t end = strlen(aggregates[i]);
        if (length > end && !strcmp(name + length - end, aggregates[i])) {
            name[length - end] = '\0';
            return;
        }
    }
}

static bool is_suffix(const char *part) {
    for (size_t i = 0; suffixes[i]; i++) {
        const size_t length = strlen(suffixes[i]);
        if (suffixes[i][length - 1] != ':') {
            if (!strcmp(part, suffixes[i]))
                return true;
        } else if (!strncmp(part, suffixes[i], length) && isdigit((unsigned char)part[length]) &&
                   part[length + strspn(part + length, "0123456789.eE+-s")] == '\0') {
            return true;
        }
    }
    return false;
}

/* No cell's own name ends like an aggregate: its last part is a device or a launch mode. */
static void strip_suffixes(char *name) {
    strip_aggregate(name);
    for (;;) {
        char *slash = strrchr(name, '/');
        if (!slash || !is_suffix(slash + 1))
            return;
        *slash = '\0';
    }
}

/* Edit distance of two names, each below CELL_NAME_BYTES. */
static int distance(const char *a, const char *b) {
    int row[CELL_NAME_BYTES + 1];
    const int length = (int)strlen(b);
    for (int j = 0; j <= length; j++)
        row[j] = j;
    for (int i = 0; a[i]; i++) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int j = 0; j < length; j++) {
            const int changed = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            const int shorter = row[j] < row[j + 1] ? row[j] : row[j + 1];
            row[j + 1] = changed < shorter + 1 ? changed : shorter + 1;
        }
    }
    return row[length];
}

static const char *kernel_of(const struct cell *cell) {
    return cell->kind == CELL_TOPP ? cell->topp->name : cell->gumbel->name;
}

/* What the cell would be called if it were of another kernel; as it is called when that is NULL.
 * Names begin with kind/kernel/. */
static void twin_name(const struct cell *cell, const char *kernel, char name[CELL_NAME_BYTES]) {
    const char *kind_end = strchr(cell->name, '/');
    const char *rest = kind_end && kernel ? strchr(kind_end + 1, '/') : NULL;
    if (rest)
        snprintf(name, CELL_NAME_BYTES, "%.*s/%s%s", (int)(kind_end - cell->name), cell->name,
                 kernel, rest);
    else
        snprintf(name, CELL_NAME_BYTES, "%s", cell->name);
}

static bool has_cell(const struct plan *plan, const char *name) {
    for (size_t i = 0; i < plan->count; i++)
        if (!strcmp(plan->cells[i].name, name))
            return true;
    return false;
}

/* The plan's kernels, for a message. */
static void list_kernels(const struct plan *plan, char *text, size_t bytes) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < plan->count && used < bytes; i++) {
        size_t k = 0;
        while (k < i && strcmp(kernel_of(&plan->cells[k]), kernel_of(&plan->cells[i])) != 0)
            k++;
        if (k == i)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? ", " : "",
                                     kernel_of(&plan->cells[i]));
    }
}

static enum tb_status select_pairs(const struct plan_pair *pair, struct plan *plan,
                                   struct tb_error *error) {
    char name[CELL_NAME_BYTES], kernels[400];
    bool *chosen = calloc(plan->count + 1, sizeof *chosen);
    if (!chosen)
        return tb_fail(error, TB_NO_MEMORY, "no memory for %zu cells", plan->count);
    size_t kept = 0;
    for (size_t i = 0; i < plan->count; i++) {
        twin_name(&plan->cells[i], pair->beside, name);
        chosen[i] = plan->cells[i].timed && plan->cells[i].kind != CELL_GUMBEL_STATISTIC &&
                    !strcmp(kernel_of(&plan->cells[i]), pair->kernel) && has_cell(plan, name);
    }
    list_kernels(plan, kernels, sizeof kernels);
    for (size_t i = 0; i < plan->count; i++)
        if (chosen[i])
            plan->cells[kept++] = plan->cells[i];
    free(chosen);
    if (kept == 0)
        return tb_fail_at(error, TB_USAGE, "--ab", 0, -1,
                          "profile %s times `%.64s` and `%.64s` on no common cell; its kernels "
                          "here: %s",
                          plan->profile_name, pair->kernel, pair->beside, kernels);
    plan->count = kept;
    return TB_OK;
}

static enum tb_status select_case(const char *wanted, const char *beside, struct plan *plan,
                                  struct tb_error *error) {
    char name[CELL_NAME_BYTES + 128], twin[CELL_NAME_BYTES];
    if (snprintf(name, sizeof name, "%s", wanted) >= (int)sizeof name)
        return tb_fail_at(error, TB_USAGE, "--case", 0, -1, "longer than any cell's name");
    strip_suffixes(name);
    size_t best = 0;
    int least = -1;
    for (size_t i = 0; i < plan->count; i++) {
        twin_name(&plan->cells[i], beside, twin);
        if (!strcmp(plan->cells[i].name, name) || !strcmp(twin, name)) {
            const struct cell only = plan->cells[i];
            plan->cells[0] = only;
            plan->count = 1;
            return TB_OK;
        }
        const int now = distance(name, plan->cells[i].name);
        if (least < 0 || now < least) {
            least = now;
            best = i;
        }
    }
    return tb_fail_at(error, TB_USAGE, "--case", 0, -1,
                      "profile %s has no cell `%.260s`; nearest: `%s` (--list shows all)",
                      plan->profile_name, name, plan->cells[best].name);
}

static enum tb_status select_filter(const char *pattern, const char *beside, struct plan *plan,
                                    struct tb_error *error) {
    char twin[CELL_NAME_BYTES];
    regex_t regex;
    const int defect = regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB);
    if (defect) {
        char text[160];
        regerror(defect, &regex, text, sizeof text);
        return tb_fail_at(error, TB_USAGE, "--filter", 0, -1,
                          "`%.200s` is no POSIX extended regular expression: %s", pattern, text);
    }
    size_t kept = 0;
    for (size_t i = 0; i < plan->count; i++) {
        twin_name(&plan->cells[i], beside, twin);
        if (regexec(&regex, plan->cells[i].name, 0, NULL, 0) == 0 ||
            regexec(&regex, twin, 0, NULL, 0) == 0)
            plan->cells[kept++] = plan->cells[i];
    }
    regfree(&regex);
    if (kept == 0)
        return tb_fail_at(error, TB_USAGE, "--filter", 0, -1,
                          "`%.200s` matches none of the %zu cells of profile %s (--list shows "
                          "them)",
                          pattern, plan->count, plan->profile_name);
    plan->count = kept;
    return TB_OK;
}

enum tb_status cells_select(const struct plan_options *options, struct plan *plan,
                            struct tb_error *error) {
    enum tb_status status = TB_OK;
    const char *beside = options->pair ? options->pair->beside : NULL;
    if (options->pair)
        status = select_pairs(options->pair, plan, error);
    if (status == TB_OK && options->case_name)
        status = select_case(options->case_name, beside, plan, error);
    if (status == TB_OK && options->filter)
        status = select_filter(options->filter, beside, plan, error);
    return status;
}
