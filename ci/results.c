#include "ci/results.h"

#include "ci/results_formats.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void result_cell_free(struct result_cell *cell) {
    free(cell->name);
    free(cell->settings);
    free(cell->reason);
    free(cell->samples.time);
    free(cell->samples.cycles);
    free(cell->samples.block);
    free(cell->samples.draw);
    memset(cell, 0, sizeof *cell);
}

void results_free(struct results *results) {
    for (size_t i = 0; i < results->count; i++)
        result_cell_free(&results->cells[i]);
    free(results->cells);
    free(results->by_name);
    if (results->text)
        json_text_close(results->text);
    free(results->text);
    free(results->file);
    json_decref(results->environment);
    json_decref(results->run);
    memset(results, 0, sizeof *results);
}

struct result_cell *results_append(struct results *results) {
    size_t count = results->count;
    /* Capacity is the next power of two: grown whenever count is one. */
    if ((count & (count - 1)) == 0) {
        struct result_cell *grown =
            realloc(results->cells, (count ? 2 * count : 1) * sizeof *results->cells);
        if (!grown)
            return NULL;
        results->cells = grown;
    }
    struct result_cell *cell = &results->cells[results->count++];
    memset(cell, 0, sizeof *cell);
    cell->kept = cell->oracle = -1;
    cell->as_expected = true;
    cell->median = cell->median_cycles = cell->sm_mhz = (double)NAN;
    cell->p05 = cell->p95 = cell->ci_low = cell->ci_high = (double)NAN;
    return cell;
}

static int by_name(const void *left, const void *right, void *context) {
    const struct result_cell *cells = context;
    return strcmp(cells[*(const size_t *)left].name, cells[*(const size_t *)right].name);
}

enum tb_status results_index(struct results *results, struct tb_error *error) {
    results->by_name = malloc((results->count + 1) * sizeof *results->by_name);
    if (!results->by_name)
        return tb_fail(error, TB_NO_MEMORY, "no memory for %s", results->file);
    for (size_t i = 0; i < results->count; i++)
        results->by_name[i] = i;
    qsort_r(results->by_name, results->count, sizeof *results->by_name, by_name, results->cells);
    for (size_t i = 1; i < results->count; i++) {
        const char *name = results->cells[results->by_name[i]].name;
        if (!strcmp(name, results->cells[results->by_name[i - 1]].name))
            return tb_fail_at(error, TB_UNREADABLE, results->file, 0, -1,
                              "the cell '%s' is in it twice: two runs written into one file?",
                              name);
    }
    return TB_OK;
}

const struct result_cell *results_find(const struct results *results, const char *name) {
    size_t low = 0, high = results->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct result_cell *cell = &results->cells[results->by_name[middle]];
        int order = strcmp(name, cell->name);
        if (order == 0)
            return cell;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

void member_text(const json_t *object, const char *key, char *text, size_t text_bytes) {
    const char *value = json_string_value(json_object_get(object, key));
    snprintf(text, text_bytes, "%s", value ? value : "");
}

double member_number(const json_t *object, const char *key, double absent) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : absent;
}

/* The head of the file says which format it is; a whole parse is left to the formats. */
static bool starts_as_ours(const struct json_text *text) {
    size_t look = text->length < 256 ? text->length : 256;
    return memmem(text->bytes, look, "topp-bench.results/", 19) != NULL;
}

static enum tb_status read_other(const struct json_text *text, const struct read_options *options,
                                 struct results *results, struct tb_error *error) {
    json_t *root = json_text_parse(text, 0, text->length, error);
    if (!root)
        return TB_UNREADABLE;
    enum tb_status status;
    const char *schema = json_string_value(json_object_get(root, "schema"));
    if (json_is_array(json_object_get(root, "benchmarks")))
        status = read_gbench(text, root, options, results, error);
    else if (schema && !strncmp(schema, "topp-bench.results/", 19))
        status = read_topp_results(text, options, results, error);
    else if (schema)
        status = tb_fail_at(error, TB_UNREADABLE, text->file, 0, -1,
                            "is a %s: results.json (topp-bench.results/1) or Google Benchmark's "
                            "JSON is needed",
                            schema);
    else
        status = tb_fail_at(error, TB_UNREADABLE, text->file, 0, -1,
                            "is neither results.json of bench_topp (no schema) nor Google "
                            "Benchmark's JSON (no array benchmarks)");
    json_decref(root);
    return status;
}

static void find_receipt(struct results *results) {
    char path[4096];
    const char *slash = strrchr(results->file, '/');
    int folder = slash ? (int)(slash - results->file) + 1 : 0;
    if (snprintf(path, sizeof path, "%.*sreceipt.json", folder, results->file) >= (int)sizeof path)
        return;
    struct tb_error ignored = TB_ERROR_INIT;
    struct json_text text;
    if (json_text_open(path, &text, &ignored) != TB_OK)
        return;
    /* A receipt of another run, left in the folder, is not this one's. */
    if (results->id[0] && memmem(text.bytes, text.length, results->id, strlen(results->id)))
        memcpy(results->receipt_sha256, text.sha256, sizeof results->receipt_sha256);
    json_text_close(&text);
}

/* Keeps the text for results_samples(). */
static bool keep_text(struct results *results, struct json_text *text) {
    results->text = malloc(sizeof *results->text);
    if (results->text)
        *results->text = *text;
    return results->text != NULL;
}

enum tb_status results_load(const char *file, const struct read_options *options,
                            struct results *results, struct tb_error *error) {
    static const struct read_options none = {.metric = NULL};
    struct json_text text;
    const struct read_options *read = options ? options : &none;
    memset(results, 0, sizeof *results);
    results->file = strdup(file);
    if (!results->file)
        return tb_fail(error, TB_NO_MEMORY, "no memory for %s", file);
    enum tb_status status = json_text_open(results->file, &text, error);
    if (status != TB_OK) {
        results_free(results);
        return status;
    }
    memcpy(results->sha256, text.sha256, sizeof results->sha256);
    status = starts_as_ours(&text) ? read_topp_results(&text, read, results, error)
                                   : read_other(&text, read, results, error);
    if (status == TB_OK && read->samples_later && results->format == FORMAT_TOPP) {
        if (!keep_text(results, &text))
            status = tb_fail(error, TB_NO_MEMORY, "no memory for %s", file);
    }
    if (!results->text)
        json_text_close(&text);
    if (status == TB_OK)
        status = results_index(results, error);
    if (status == TB_OK && results->format == FORMAT_TOPP)
        find_receipt(results);
    if (status != TB_OK)
        results_free(results);
    return status;
}

/* Result files in a folder, sorted by name: its own results.json alone, else one a sub-folder,
 * else every .json in it. */
struct file_list {
    char **paths;
    size_t count;
};

static bool add_path(struct file_list *list, const char *path) {
    char **grown = realloc(list->paths, (list->count + 1) * sizeof *grown);
    if (!grown)
        return false;
    list->paths = grown;
    list->paths[list->count] = strdup(path);
    return list->paths[list->count++] != NULL;
}

static bool is_file(const char *path) {
    struct stat stat_of;
    return stat(path, &stat_of) == 0 && S_ISREG(stat_of.st_mode);
}

static bool list_folder(const char *path, bool folders, struct file_list *list) {
    struct dirent **entries = NULL;
    bool good = true;
    int count = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char file[4096];
        const char *name = entries[i]->d_name, *ending = strrchr(name, '.');
        int length =
            snprintf(file, sizeof file, "%s/%s%s", path, name, folders ? "/results.json" : "");
        if (good && name[0] != '.' && length < (int)sizeof file && is_file(file) &&
            (folders || (ending && !strcmp(ending, ".json"))))
            good = add_path(list, file);
        free(entries[i]);
    }
    free(entries);
    return good;
}

static enum tb_status list_files(const char *path, struct file_list *list, struct tb_error *error) {
    struct stat stat_of;
    char file[4096];
    bool good;
    if (stat(path, &stat_of) != 0 || !S_ISDIR(stat_of.st_mode)) {
        good = add_path(list, path);
    } else if (snprintf(file, sizeof file, "%s/results.json", path) < (int)sizeof file &&
               is_file(file)) {
        good = add_path(list, file);
    } else {
        good = list_folder(path, true, list);
        if (good && list->count == 0)
            good = list_folder(path, false, list);
        if (good && list->count == 0)
            return tb_fail_at(error, TB_UNREADABLE, path, 0, -1,
                              "is a folder without results.json, folders with one, or .json files");
    }
    return good ? TB_OK : tb_fail(error, TB_NO_MEMORY, "no memory for the files of %s", path);
}

enum tb_status results_set_load(const char *path, const struct read_options *options,
                                struct results_set *set, struct tb_error *error) {
    struct file_list list = {NULL, 0};
    *set = (struct results_set){.name = strdup(path)};
    enum tb_status status = list_files(path, &list, error);
    if (status == TB_OK) {
        set->files = calloc(list.count, sizeof *set->files);
        if (!set->files || !set->name)
            status = tb_fail(error, TB_NO_MEMORY, "no memory for the files of %s", path);
    }
    for (size_t i = 0; status == TB_OK && i < list.count; i++) {
        status = results_load(list.paths[i], options, &set->files[i], error);
        if (status == TB_OK)
            set->count++;
    }
    for (size_t i = 0; i < list.count; i++)
        free(list.paths[i]);
    free(list.paths);
    if (status != TB_OK)
        results_set_free(set);
    return status;
}

void results_set_free(struct results_set *set) {
    for (size_t i = 0; i < set->count; i++)
        results_free(&set->files[i]);
    free(set->files);
    free(set->name);
    memset(set, 0, sizeof *set);
}
