/* Google Benchmark's JSON, people's own too: repetitions of one name are pooled as a set,
 * aggregates are never mixed with them, units are brought to nanoseconds. */
#include "ci/results_formats.h"
#include "ci/statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *unit;
    double in_ns;
} units[] = {{"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

static enum tb_status refuse(const struct json_text *text, struct tb_error *error, const char *name,
                             const char *what, const char *value) {
    return tb_fail_at(error, TB_UNREADABLE, text->file, 0, -1, "%s: %s%s%s", name, what,
                      value ? " " : "", value ? value : "");
}

/* Rows of versions before run_type: an aggregate is known by its name's ending. */
static bool is_aggregate(const json_t *row, const char *name) {
    static const char *const endings[] = {"_mean", "_median", "_stddev", "_cv",
                                          "_BigO", "_RMS",    "_min",    "_max"};
    const char *type = json_string_value(json_object_get(row, "run_type"));
    if (type)
        return strcmp(type, "iteration") != 0;
    if (json_object_get(row, "aggregate_name"))
        return true;
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && !strcmp(name + length - ending, endings[i]))
            return true;
    }
    return false;
}

static enum tb_status unit_of(const struct json_text *text, const json_t *row, const char *name,
                              double *in_ns, struct tb_error *error) {
    const json_t *value = json_object_get(row, "time_unit");
    const char *unit = json_string_value(value);
    if (!value) {
        *in_ns = 1.0; /* the library's default */
        return TB_OK;
    }
    for (size_t i = 0; unit && i < sizeof units / sizeof units[0]; i++)
        if (!strcmp(unit, units[i].unit)) {
            *in_ns = units[i].in_ns;
            return TB_OK;
        }
    return refuse(text, error, name,
                  "its time_unit is none of ns, us, ms, s:", unit ? unit : "(no text)");
}

static bool push(struct sample_set *set, double value) {
    size_t count = set->count;
    if ((count & (count - 1)) == 0) {
        size_t capacity = count ? 2 * count : 1;
        double *time = realloc(set->time, capacity * sizeof *time);
        if (time)
            set->time = time;
        int32_t *block = time ? realloc(set->block, capacity * sizeof *block) : NULL;
        if (block)
            set->block = block;
        int32_t *draw = block ? realloc(set->draw, capacity * sizeof *draw) : NULL;
        if (!draw)
            return false;
        set->draw = draw;
    }
    set->time[count] = value;
    set->block[count] = (int32_t)count; /* each repetition is a block of one sample */
    set->draw[count] = 0;
    set->count++;
    return true;
}

/* Cells while reading: names are found through a hash table, since rows of one name may be
 * shuffled among thousands. */
struct table {
    struct results *results;
    size_t *slots; /* index + 1, 0 = free */
    size_t size;   /* power of two */
};

static size_t hash_of(const char *text) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return (size_t)(hash ^ (hash >> 32));
}

static struct result_cell *cell_named(struct table *table, const char *name) {
    size_t slot = hash_of(name) & (table->size - 1);
    for (; table->slots[slot]; slot = (slot + 1) & (table->size - 1)) {
        struct result_cell *cell = &table->results->cells[table->slots[slot] - 1];
        if (!strcmp(cell->name, name))
            return cell;
    }
    struct result_cell *cell = results_append(table->results);
    if (!cell)
        return NULL;
    table->slots[slot] = table->results->count;
    cell->name = strdup(name);
    cell->reason = strdup("");
    cell->timed = true;
    snprintf(cell->verdict, sizeof cell->verdict, "ok");
    return cell->name && cell->reason ? cell : NULL;
}

struct reading {
    const struct json_text *text;
    struct table table;
    const char *metric; /* NULL: the default */
    bool own;           /* written by bench_topp */
    struct tb_error *error;
};

static enum tb_status no_memory(struct reading *reading) {
    return tb_fail(reading->error, TB_NO_MEMORY, "no memory for %s", reading->text->file);
}

static enum tb_status take(struct reading *reading, const char *name, double value, bool higher) {
    struct result_cell *cell = cell_named(&reading->table, name);
    if (!cell)
        return no_memory(reading);
    cell->higher_is_better = higher;
    if (value > 0.0 && isfinite(value))
        return push(&cell->samples, value) ? TB_OK : no_memory(reading);
    cell->invalid++;
    cell->zero = value == 0.0;
    return TB_OK;
}

static enum tb_status take_failure(struct reading *reading, const char *name, const json_t *row) {
    struct result_cell *cell = cell_named(&reading->table, name);
    const char *message = json_string_value(json_object_get(row, "error_message"));
    if (!message)
        message = json_string_value(json_object_get(row, "skip_message"));
    if (!cell)
        return no_memory(reading);
    free(cell->reason);
    cell->reason = strdup(message && message[0] ? message : "marked failed, without a message");
    /* In bench_topp's own file a refused cell is a row marked failed: that is a verdict. */
    bool refused = reading->own && cell->reason && !strncmp(cell->reason, "rejected", 8);
    snprintf(cell->verdict, sizeof cell->verdict, refused ? "rejected" : "error");
    cell->as_expected = refused;
    return cell->reason ? TB_OK : no_memory(reading);
}

static enum tb_status take_time(struct reading *reading, const char *name, const json_t *row,
                                const char *key) {
    const json_t *value = json_object_get(row, key);
    double in_ns = 1.0;
    enum tb_status status = unit_of(reading->text, row, name, &in_ns, reading->error);
    if (status != TB_OK)
        return status;
    if (!json_is_number(value))
        return refuse(reading->text, reading->error, name, "no number", key);
    return take(reading, name, json_number_value(value) * in_ns, false);
}

/* Bytes and items per second: more is better, a row of their own. */
static enum tb_status take_rate(struct reading *reading, const char *name, const json_t *row,
                                const char *key, bool required) {
    const json_t *value = json_object_get(row, key);
    char label[1024];
    if (!json_is_number(value))
        return required ? refuse(reading->text, reading->error, name, "no number", key) : TB_OK;
    snprintf(label, sizeof label, "%s [%s]", name, key);
    return take(reading, label, json_number_value(value),
                strstr(key, "per_second") != NULL || !strcmp(key, "items") ||
                    !strcmp(key, "bytes"));
}

static enum tb_status read_row(struct reading *reading, const json_t *row, size_t index) {
    const char *name = json_string_value(json_object_get(row, "run_name"));
    const char *full = json_string_value(json_object_get(row, "name"));
    char place[40];
    snprintf(place, sizeof place, "benchmarks[%zu]", index);
    if (!full || !full[0])
        return refuse(reading->text, reading->error, place, "no name", NULL);
    if (is_aggregate(row, full))
        return TB_OK;
    if (!name || !name[0])
        name = full;
    if (json_is_true(json_object_get(row, "error_occurred")) ||
        json_is_true(json_object_get(row, "skipped")) ||
        json_is_string(json_object_get(row, "skip_message")))
        return take_failure(reading, name, row);
    const char *metric = reading->metric;
    enum tb_status status = TB_OK;
    if (!metric || !strcmp(metric, "real_time") || !strcmp(metric, "cpu_time"))
        status = take_time(reading, name, row, metric ? metric : "real_time");
    else
        return take_rate(reading, name, row, metric, true);
    if (!metric && status == TB_OK)
        status = take_rate(reading, name, row, "items_per_second", false);
    if (!metric && status == TB_OK)
        status = take_rate(reading, name, row, "bytes_per_second", false);
    return status;
}

/* Context as a flat object: what stands for the machine and what a person added. */
static void read_context(json_t *context, struct results *results) {
    const char *key;
    json_t *value;
    results->environment = json_object();
    results->run = json_incref(context);
    json_object_foreach(context, key, value) {
        char path[160];
        snprintf(path, sizeof path, "context.%s", key);
        if (!json_is_object(value) && !json_is_array(value))
            json_object_set(results->environment, path, value);
    }
    member_text(context, "date", results->date, sizeof results->date);
    member_text(context, "topp_bench_profile", results->profile, sizeof results->profile);
    member_text(context, "commit", results->commit, sizeof results->commit);
    if (!results->commit[0])
        member_text(context, "git_commit", results->commit, sizeof results->commit);
}

static enum tb_status finish_cells(struct reading *reading, bool aggregates) {
    struct results *results = reading->table.results;
    for (size_t i = 0; i < results->count; i++) {
        struct result_cell *cell = &results->cells[i];
        size_t count = cell->samples.count;
        cell->zero = cell->zero && count == 0;
        cell->blocks = (int32_t)count;
        if (count == 0)
            continue;
        double *scratch = malloc(count * sizeof *scratch);
        if (!scratch)
            return no_memory(reading);
        memcpy(scratch, cell->samples.time, count * sizeof *scratch);
        cell->median = median_of(scratch, count);
        cell->p05 = scratch[count / 20];
        cell->p95 = scratch[count - 1 - count / 20];
        free(scratch);
    }
    if (results->count == 0 && aggregates)
        return tb_fail_at(reading->error, TB_UNREADABLE, reading->text->file, 0, -1,
                          "holds aggregates alone: run it without "
                          "--benchmark_report_aggregates_only, single repetitions are needed");
    return TB_OK;
}

enum tb_status read_gbench(const struct json_text *text, json_t *root,
                           const struct read_options *options, struct results *results,
                           struct tb_error *error) {
    json_t *rows = json_object_get(root, "benchmarks");
    size_t index, size = 16;
    json_t *row;
    results->format = FORMAT_GBENCH;
    /* Up to three cells a row; kept at most half full. */
    while (size < 6 * json_array_size(rows) + 1)
        size *= 2;
    struct reading reading = {
        .text = text,
        .table = {.results = results, .slots = calloc(size, sizeof(size_t)), .size = size},
        .metric = options->metric,
        .error = error};
    if (!reading.table.slots)
        return no_memory(&reading);
    memcpy(results->id, text->sha256, sizeof results->id);
    reading.own = json_object_get(json_object_get(root, "context"), "topp_bench_run") != NULL;
    read_context(json_object_get(root, "context"), results);
    enum tb_status status = TB_OK;
    json_array_foreach(rows, index, row) {
        if (status == TB_OK)
            status = read_row(&reading, row, index);
    }
    if (status == TB_OK)
        status = finish_cells(&reading, json_array_size(rows) > 0);
    free(reading.table.slots);
    return status;
}
