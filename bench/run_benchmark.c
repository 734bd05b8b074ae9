/* Google Benchmark writes blocks down as they come. A cell that loses its verdict later (drift, a
 * time limit, a refused block) keeps no time: not there either. */
#include "bench/run_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The refused cells, sorted by name. */
struct refused {
    const struct cell_record **list; /* owned */
    size_t count;
};

static const char *name_of(const void *item) {
    return (*(const struct cell_record *const *)item)->cell->name;
}

static int by_name(const void *left, const void *right) {
    return strcmp(name_of(left), name_of(right));
}

static bool collect_refused(const struct run_result *result, struct refused *refused) {
    refused->list = malloc((result->count + 1) * sizeof(const struct cell_record *));
    refused->count = 0;
    if (!refused->list)
        return false;
    for (size_t i = 0; i < result->count; i++) {
        const struct cell_record *record = &result->cells[i];
        if (record->verdict != GATE_ACCEPTED || record->unmeasured[0])
            refused->list[refused->count++] = record;
    }
    qsort(refused->list, refused->count, sizeof(const struct cell_record *), by_name);
    return true;
}

struct name {
    const char *text;
    size_t length;
};

static int to_cell(const void *key, const void *item) {
    const struct name *name = key;
    const char *const other = name_of(item);
    const int order = strncmp(name->text, other, name->length);
    return order != 0 || other[name->length] == '\0' ? order : -1;
}

/* The refused cell that an entry is of, NULL if there is none. run_name: the cell's, and then
 * "/iterations:" and more. */
static const struct cell_record *refused_cell(const struct refused *refused, const json_t *entry) {
    struct name name = {json_string_value(json_object_get(entry, "run_name")), 0};
    const char *end = name.text;
    while (end && (end = strstr(end, "/iterations:")) != NULL)
        name.length = (size_t)(end++ - name.text);
    const struct cell_record *const *found =
        name.length ? bsearch(&name, refused->list, refused->count,
                              sizeof(const struct cell_record *), to_cell)
                    : NULL;
    return found ? *found : NULL;
}

/* What the library itself writes for a skipped repetition. */
static json_t *skipped_entry(const json_t *entry, const struct cell_record *record) {
    static const char *const kept[] = {
        "name",     "family_index", "per_family_instance_index", "run_name",
        "run_type", "repetitions",  "repetition_index",          "threads",
    };
    json_t *made = json_object();
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        json_object_set(made, kept[i], json_object_get(entry, kept[i]));
    json_object_set_new(made, "error_occurred", json_true());
    json_object_set_new(made, "error_message",
                        json_string(record->unmeasured[0] ? record->unmeasured : record->reason));
    json_object_set_new(made, "iterations", json_integer(0));
    json_object_set_new(made, "real_time", json_real(0.0));
    json_object_set_new(made, "cpu_time", json_real(0.0));
    json_object_set(made, "time_unit", json_object_get(entry, "time_unit"));
    return made;
}

/* The entries that stay, in their order; NULL: no memory. */
static json_t *strip(json_t *entries, const struct run_result *result) {
    struct refused refused;
    json_t *kept = collect_refused(result, &refused) ? json_array() : NULL;
    bool good = kept != NULL;
    for (size_t i = 0; good && i < json_array_size(entries); i++) {
        json_t *entry = json_array_get(entries, i);
        const char *type = json_string_value(json_object_get(entry, "run_type"));
        const struct cell_record *record = refused_cell(&refused, entry);
        if (!record)
            good = json_array_append(kept, entry) == 0;
        else if (!type || strcmp(type, "aggregate") != 0)
            good = json_array_append_new(kept, skipped_entry(entry, record)) == 0;
    }
    free(refused.list);
    if (!good) {
        json_decref(kept);
        return NULL;
    }
    return kept;
}

enum tb_status benchmark_json_strip(const struct run_result *result, const char *path,
                                    struct tb_error *error) {
    json_error_t why;
    json_t *file = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    json_t *entries = json_object_get(file, "benchmarks");
    if (!json_is_array(entries)) {
        json_decref(file);
        return tb_fail_at(error, TB_IO, path, 0, -1, "Google Benchmark's file cannot be read back");
    }
    errno = 0;
    json_t *kept = strip(entries, result);
    const bool good = kept && json_object_set_new(file, "benchmarks", kept) == 0 &&
                      json_dump_file(file, path, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) == 0;
    json_decref(file);
    return good ? TB_OK
                : tb_fail_at(error, TB_IO, path, 0, -1, "cannot write: %s",
                             errno ? strerror(errno) : "no memory");
}
