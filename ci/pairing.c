#include "ci/pairing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum tb_status kernel_pair_parse(const char *text, struct kernel_pair *pair,
                                 struct tb_error *error) {
    const char *comma = strchr(text, ',');
    const size_t first = comma ? (size_t)(comma - text) : 0, second = comma ? strlen(comma + 1) : 0;
    if (first == 0 || second == 0 || strchr(comma + 1, ',') || first >= KERNEL_NAME_BYTES ||
        second >= KERNEL_NAME_BYTES)
        return tb_fail(error, TB_USAGE,
                       "--kernels: '%.100s' is not A,B: the kernel of BASE and that of NEW", text);
    snprintf(pair->base, sizeof pair->base, "%.*s", (int)first, text);
    snprintf(pair->new_side, sizeof pair->new_side, "%s", comma + 1);
    return TB_OK;
}

/* The line "key=..." of a cell's settings, its line feed included; length 0 without. */
static const char *setting(const struct result_cell *cell, const char *key, size_t *length) {
    const size_t key_length = strlen(key);
    *length = 0;
    for (const char *line = cell->settings; line && *line; line += strcspn(line, "\n") + 1)
        if (!strncmp(line, key, key_length) && line[key_length] == '=') {
            *length = strcspn(line, "\n") + 1;
            return line;
        }
    return "";
}

static bool is_kernel(const struct result_cell *cell, const char *kernel) {
    size_t length;
    const char *line = setting(cell, "kernel", &length);
    return length > 0 && !strncmp(line + 7, kernel, strlen(kernel)) &&
           line[7 + strlen(kernel)] == '\n';
}

static void drop_setting(struct result_cell *cell, const char *key) {
    size_t length;
    char *line = cell->settings + (setting(cell, key, &length) - cell->settings);
    if (length > 0)
        memmove(line, line + length, strlen(line + length) + 1);
}

/* kind/kernel/rest -> kind/label/rest. */
static bool rename_cell(struct result_cell *cell, const char *kernel, const char *label) {
    const size_t bytes = strlen(cell->name) + strlen(label) + 1;
    char *name = malloc(bytes), part[KERNEL_NAME_BYTES + 2];
    snprintf(part, sizeof part, "/%s/", kernel);
    const char *at = strstr(cell->name, part);
    if (!name)
        return false;
    if (at)
        snprintf(name, bytes, "%.*s/%s/%s", (int)(at - cell->name), cell->name, label,
                 at + strlen(part));
    else
        snprintf(name, bytes, "%s", cell->name);
    free(cell->name);
    cell->name = name;
    return true;
}

static bool forget_kernel(struct result_cell *cell, const char *kernel, const char *label) {
    drop_setting(cell, "kernel");
    drop_setting(cell, "contract");
    cell->masks[0] = '\0';
    cell->kept = cell->oracle = -1;
    return !strcmp(kernel, label) || rename_cell(cell, kernel, label);
}

static enum tb_status keep_kernel(struct results *results, const char *kernel, const char *label,
                                  struct tb_error *error) {
    size_t kept = 0;
    bool good = true;
    for (size_t i = 0; i < results->count; i++) {
        if (!is_kernel(&results->cells[i], kernel)) {
            result_cell_free(&results->cells[i]);
            continue;
        }
        results->cells[kept] = results->cells[i];
        good = forget_kernel(&results->cells[kept++], kernel, label) && good;
    }
    results->count = kept;
    results->sources_sha256[0] = '\0'; /* that two kernels differ is code, not environment */
    free(results->by_name);
    results->by_name = NULL;
    if (!good)
        return tb_fail(error, TB_NO_MEMORY, "no memory for the cells of %s", results->file);
    return results_index(results, error);
}

static enum tb_status keep_side(struct results_set *set, const char *kernel, const char *label,
                                const char *side, struct tb_error *error) {
    size_t cells = 0;
    for (size_t i = 0; i < set->count; i++) {
        const enum tb_status status = keep_kernel(&set->files[i], kernel, label, error);
        if (status != TB_OK)
            return status;
        cells += set->files[i].count;
    }
    if (cells == 0)
        return tb_fail_at(error, TB_USAGE, set->name, 0, -1,
                          "--kernels: %s has no cell of kernel '%s'", side, kernel);
    return TB_OK;
}

enum tb_status kernel_pair_apply(const struct kernel_pair *pair, struct results_set *base,
                                 struct results_set *new_side, struct tb_error *error) {
    char label[2 * KERNEL_NAME_BYTES];
    const bool same = !strcmp(pair->base, pair->new_side);
    snprintf(label, sizeof label, "%s%s%s", pair->base, same ? "" : "~",
             same ? "" : pair->new_side);
    enum tb_status status = keep_side(base, pair->base, label, "BASE", error);
    return status == TB_OK ? keep_side(new_side, pair->new_side, label, "NEW", error) : status;
}
