/* Google Benchmark writes blocks down as they come. A cell that loses its verdict later (drift, a
 * time limit, a refused block) keeps no time: not there either. */
#include "bench/run_state.h"

#include <errno.h>
#include <string.h>

/* The refused cell that an entry is of, NULL if there is none. run_name: cell name, then suffixes.
 */
static const struct cell_record *refused_cell(const struct run_result *result,
                                              const char *run_name) {
    for (size_t i = 0; i < result->count; i++) {
        const struct cell_record *record = &result->cells[i];
        const size_t length = strlen(record->cell->name);
        if ((record->verdict != GATE_ACCEPTED || record->unmeasured[0]) &&
            !strncmp(run_name, record->cell->name, length) && run_name[length] == '/' &&
            !strncmp(run_name + length, "/iterations:", 12))
            return record;
    }
    return NULL;
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

enum tb_status benchmark_json_strip(const struct run_result *result, const char *path,
                                    struct tb_error *error) {
    json_error_t why;
    json_t *file = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    json_t *entries = json_object_get(file, "benchmarks");
    if (!json_is_array(entries)) {
        json_decref(file);
        return tb_fail_at(error, TB_IO, path, 0, -1, "Google Benchmark's file cannot be read back");
    }
    for (size_t i = json_array_size(entries); i-- > 0;) {
        const json_t *entry = json_array_get(entries, i);
        const char *run_name = json_string_value(json_object_get(entry, "run_name"));
        const char *type = json_string_value(json_object_get(entry, "run_type"));
        const struct cell_record *record = refused_cell(result, run_name ? run_name : "");
        if (!record)
            continue;
        if (type && !strcmp(type, "aggregate"))
            json_array_remove(entries, i);
        else
            json_array_set_new(entries, i, skipped_entry(entry, record));
    }
    errno = 0;
    const int failed = json_dump_file(file, path, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    json_decref(file);
    return failed ? tb_fail_at(error, TB_IO, path, 0, -1, "cannot write: %s",
                               errno ? strerror(errno) : "no memory")
                  : TB_OK;
}
