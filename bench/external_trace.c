/* Reads the file of the injected library. */
#include "bench/external_records.h"

#include "bench/external_process.h"
#include "bench/inject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t count_of(const json_t *json, const char *key) {
    const json_int_t value = json_integer_value(json_object_get(json, key));
    return value > 0 ? (uint64_t)value : 0;
}

static const char *text_of(const json_t *json, const char *key) {
    const char *text = json_string_value(json_object_get(json, key));
    return text ? text : "";
}

static bool add_range(struct external_trace *trace, const json_t *line) {
    struct trace_range *ranges =
        realloc(trace->ranges, (trace->range_count + 1) * sizeof *trace->ranges);
    if (!ranges)
        return false;
    trace->ranges = ranges;
    ranges[trace->range_count++] =
        (struct trace_range){count_of(line, "begin_ns"), count_of(line, "end_ns")};
    return true;
}

static void read_three(const json_t *array, uint32_t values[3]) {
    for (size_t i = 0; i < 3; i++)
        values[i] = (uint32_t)json_integer_value(json_array_get(array, i));
}

static bool add_record(struct external_trace *trace, const json_t *line) {
    struct cupti_record *records =
        realloc(trace->records, (trace->record_count + 1) * sizeof *trace->records);
    if (!records)
        return false;
    trace->records = records;
    const char *kind = text_of(line, "kind");
    struct cupti_record *record = &records[trace->record_count];
    *record = (struct cupti_record){
        .kind = !strcmp(kind, "kernel")   ? CUPTI_RECORD_KERNEL
                : !strcmp(kind, "memcpy") ? CUPTI_RECORD_MEMCPY
                                          : CUPTI_RECORD_MEMSET,
        .start_ns = count_of(line, "start_ns"),
        .end_ns = count_of(line, "end_ns"),
        .correlation = (uint32_t)count_of(line, "correlation"),
        .graph_node = json_is_true(json_object_get(line, "graph")),
        .name = strdup(text_of(line, "name")),
        .shared_bytes = (uint32_t)count_of(line, "shared_bytes"),
        .registers = (uint32_t)count_of(line, "registers"),
    };
    read_three(json_object_get(line, "grid"), record->grid);
    read_three(json_object_get(line, "block"), record->block);
    trace->record_count += record->name != NULL;
    return record->name != NULL;
}

static bool take_line(struct external_trace *trace, const json_t *line, bool *ended) {
    const char *kind = text_of(line, "line");
    if (!strcmp(kind, "range"))
        return add_range(trace, line);
    if (!strcmp(kind, "record"))
        return add_record(trace, line);
    if (!strcmp(kind, "head")) {
        trace->cupti = !strcmp(text_of(line, "clock"), "cupti");
        trace->nested = json_is_true(json_object_get(line, "nested"));
        snprintf(trace->error, sizeof trace->error, "%s", text_of(line, "error"));
        return !strcmp(text_of(line, "schema"), INJECT_SCHEMA) &&
               !json_is_true(json_object_get(line, "short_of_memory"));
    }
    if (!strcmp(kind, "cupti")) {
        trace->records_read = true;
        trace->dropped = (size_t)count_of(line, "dropped");
        if (text_of(line, "error")[0])
            snprintf(trace->error, sizeof trace->error, "%s", text_of(line, "error"));
        return true;
    }
    *ended = !strcmp(kind, "end");
    return *ended;
}

enum tb_status trace_read(const char *path, struct external_trace *trace, struct tb_error *error) {
    FILE *file = process_open_file(path);
    memset(trace, 0, sizeof *trace);
    if (!file)
        return TB_OK;
    char *text = NULL;
    size_t room = 0;
    int64_t number = 0;
    bool ended = false;
    enum tb_status status = TB_OK;
    while (status == TB_OK && getline(&text, &room, file) > 0) {
        json_t *line = json_loads(text, 0, NULL);
        number++;
        if (!line || ended || !take_line(trace, line, &ended))
            status = tb_fail_at(error, TB_UNREADABLE, path, number, -1,
                                "is no line of the injected library");
        json_decref(line);
    }
    if (status == TB_OK && !ended)
        status = tb_fail_at(error, TB_UNREADABLE, path, number, -1,
                            "the injected library's file breaks off");
    free(text);
    fclose(file);
    return status;
}

void trace_free(struct external_trace *trace) {
    for (size_t i = 0; i < trace->record_count; i++)
        free((char *)trace->records[i].name);
    free(trace->records);
    free(trace->ranges);
    memset(trace, 0, sizeof *trace);
}
