/* results.json, results.tsv and the receipt's cells: each shard's lines in the whole list's order.
 */
#include "bench/merge_write.h"
#include "bench/receipt_make.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Where one shard's files are read, and what its cells get in addition. */
struct source {
    struct merge_input results, table;
    char *tail; /* `,"shard":3,"device_uuid":"GPU-..."}` */
    size_t tail_bytes;
};

static char *tail_of(const struct merge_shard *shard) {
    const json_t *device = json_object_get(shard->run, "device");
    json_t *uuid = json_object_get(device, "uuid");
    json_t *members = json_pack("{s:i, s:O?}", "shard", (int)shard->index, "device_uuid",
                                json_is_string(uuid) ? uuid : NULL);
    char *text = members ? json_dumps(members, JSON_COMPACT) : NULL;
    json_decref(members);
    if (text)
        text[0] = ','; /* instead of the brace: it continues a cell */
    return text;
}

static bool line_is(const struct merge_input *input, const char *line) {
    return input->length == strlen(line) && !memcmp(input->line, line, input->length);
}

/* The JSON value behind `"NAME":` on this line; NULL when the line is another. */
static json_t *line_value(const struct merge_input *input, const char *name) {
    const size_t length = strlen(name);
    if (input->length < length + 6 || input->line[0] != '"' ||
        memcmp(input->line + 1, name, length) != 0 ||
        memcmp(input->line + 1 + length, "\":", 2) != 0)
        return NULL;
    return json_loadb(input->line + length + 3, input->length - length - 5, JSON_REJECT_DUPLICATES,
                      NULL);
}

/* Up to the first cell. *summary: new. */
static enum tb_status read_head(struct merge_input *input, const struct merge_shard *shard,
                                json_t **summary, struct tb_error *error) {
    static const char other[] = "is not laid out as this version writes results.json: merge with "
                                "the version that made the shards";
    enum tb_status status = merge_input_open(input, shard->dir, merge_files[0], error);
    if (status == TB_OK)
        status = merge_input_next(input, error);
    if (status == TB_OK && !line_is(input, "{\"schema\":\"topp-bench.results/1\",\n"))
        status = merge_input_wrong(input, other, error);
    if (status == TB_OK)
        status = merge_input_next(input, error);
    json_t *run = status == TB_OK ? line_value(input, "run") : NULL;
    if (status == TB_OK && (!run || !json_equal(run, shard->run)))
        status = merge_input_wrong(input,
                                   run ? "is of another run than the receipt beside it: was the "
                                         "shard run again and interrupted? finish it with --resume"
                                       : other,
                                   error);
    json_decref(run);
    if (status == TB_OK)
        status = merge_input_next(input, error);
    *summary = status == TB_OK ? line_value(input, "summary") : NULL;
    if (status == TB_OK && !json_is_object(*summary))
        status = merge_input_wrong(input, other, error);
    if (status == TB_OK)
        status = merge_input_next(input, error);
    if (status == TB_OK && !line_is(input, "\"cells\":[\n"))
        status = merge_input_wrong(input, other, error);
    return status;
}

enum tb_status merge_heads(struct merging *merging, struct tb_error *error) {
    enum tb_status status = TB_OK;
    for (size_t i = 0; status == TB_OK && i < merging->count; i++) {
        struct merge_input input = {.file = -1};
        json_decref(merging->shards[i].summary);
        status = read_head(&input, &merging->shards[i], &merging->shards[i].summary, error);
        merge_input_close(&input);
    }
    return status;
}

/* The next of a shard's files; what a cell's text needs besides. */
struct cell_writer {
    struct merging *merging;
    struct merge_targets *targets;
    struct source *sources;
    struct tb_error *error;
    char *text; /* of one cell, with its tail */
    size_t room;
    char *entry; /* of one cell in the receipt */
    size_t entry_room;
};

static bool fits(char **text, size_t *room, size_t bytes) {
    if (bytes <= *room)
        return true;
    char *grown = realloc(*text, 2 * bytes);
    if (!grown)
        return false;
    *text = grown;
    *room = 2 * bytes;
    return true;
}

static enum tb_status no_memory(const struct cell_writer *writer) {
    return tb_fail(writer->error, TB_NO_MEMORY, "no memory to merge %zu cells",
                   writer->merging->plan.count);
}

static struct json_span value_of(const struct json_pair *pairs, size_t count, const char *key) {
    for (size_t i = 0; i < count; i++)
        if (json_span_is(pairs[i].key, key))
            return pairs[i].value;
    return (struct json_span){"null", 4};
}

/* The canonical form of a cell's entry: the repeated members and the record's hash. */
static bool seal_entry(struct cell_writer *writer, const struct json_pair *pairs, size_t count,
                       const char *record) {
    struct json_pair entry[JSON_MOST_PAIRS];
    char quoted[SHA256_HEX_BYTES + 2];
    size_t used = 0;
    for (; receipt_repeated[used]; used++)
        entry[used] = (struct json_pair){{receipt_repeated[used], strlen(receipt_repeated[used])},
                                         value_of(pairs, count, receipt_repeated[used])};
    snprintf(quoted, sizeof quoted, "\"%s\"", record);
    entry[used++] = (struct json_pair){{"record_sha256", 13}, {quoted, strlen(quoted)}};
    return json_canonical_pairs(entry, used, NULL, &writer->targets->seal);
}

/* As receipt_cell() makes it from the parsed cell, from its text. */
static enum tb_status put_receipt_cell(struct cell_writer *writer, struct json_pair *pairs,
                                       size_t count, bool last) {
    struct merge_targets *targets = writer->targets;
    struct sha256_stream record;
    char hex[SHA256_HEX_BYTES];
    size_t used = 1, bytes = 128;
    for (size_t i = 0; receipt_repeated[i]; i++)
        bytes +=
            strlen(receipt_repeated[i]) + 8 + value_of(pairs, count, receipt_repeated[i]).length;
    if (!fits(&writer->entry, &writer->entry_room, bytes))
        return no_memory(writer);
    char *entry = writer->entry;
    entry[0] = '{';
    for (size_t i = 0; receipt_repeated[i]; i++) {
        const struct json_span value = value_of(pairs, count, receipt_repeated[i]);
        used += (size_t)sprintf(entry + used, "\"%s\":", receipt_repeated[i]);
        memcpy(entry + used, value.at, value.length);
        used += value.length;
        entry[used++] = ',';
    }
    sha256_begin(&record);
    const bool good = json_canonical_pairs(pairs, count, "samples", &record);
    sha256_end(&record, hex);
    used += (size_t)sprintf(entry + used, "\"record_sha256\":\"%s\"}", hex);
    if (!good || !hex[0] || !seal_entry(writer, pairs, count, hex))
        return no_memory(writer);
    sha256_put(&targets->seal, ",", !last);
    fwrite(entry, 1, used, targets->receipt);
    fputs(last ? "\n" : ",\n", targets->receipt);
    return TB_OK;
}

static enum tb_status put_row(struct cell_writer *writer, struct source *source, const char *name) {
    const size_t length = strlen(name);
    enum tb_status status = merge_input_next(&source->table, writer->error);
    if (status != TB_OK)
        return status;
    if (source->table.length <= length || memcmp(source->table.line, name, length) != 0 ||
        source->table.line[length] != '\t')
        return merge_input_wrong(&source->table, "is not the row of the cell of results.json here",
                                 writer->error);
    merge_put(&writer->targets->table, source->table.line, source->table.length);
    return TB_OK;
}

static enum tb_status put_cell(struct cell_writer *writer, size_t place) {
    const struct cell *cell = &writer->merging->plan.cells[place];
    struct source *source = &writer->sources[writer->merging->owner[place]];
    const bool last = place + 1 == writer->merging->plan.count;
    struct json_pair pairs[JSON_MOST_PAIRS];
    char name[CELL_NAME_BYTES] = "";
    size_t count = 0;
    enum tb_status status = merge_input_next(&source->results, writer->error);
    if (status != TB_OK)
        return status;
    size_t length = source->results.length;
    while (length > 0 && strchr(",\n", source->results.line[length - 1]))
        length--;
    if (length < 2 || source->results.line[length - 1] != '}')
        return merge_input_wrong(&source->results, "is no cell on a line of its own",
                                 writer->error);
    length--;
    const size_t bytes = length + source->tail_bytes;
    if (!fits(&writer->text, &writer->room, bytes))
        return no_memory(writer);
    memcpy(writer->text, source->results.line, length);
    memcpy(writer->text + length, source->tail, source->tail_bytes);
    if (!json_pairs((struct json_span){writer->text, bytes}, pairs, JSON_MOST_PAIRS, &count))
        return merge_input_wrong(&source->results, "is no JSON", writer->error);
    const struct json_span quoted = value_of(pairs, count, "name");
    if (quoted.length > 2)
        json_span_text((struct json_span){quoted.at + 1, quoted.length - 2}, name, sizeof name);
    if (strcmp(name, cell->name) != 0)
        return merge_input_wrong(&source->results, "is another cell than the receipt has here",
                                 writer->error);
    merge_put(&writer->targets->results, writer->text, bytes);
    merge_put_text(&writer->targets->results, last ? "\n" : ",\n");
    status = put_receipt_cell(writer, pairs, count, last);
    return status == TB_OK ? put_row(writer, source, name) : status;
}

static bool put_member(FILE *stream, const char *before, const json_t *value, const char *after) {
    return fputs(before, stream) >= 0 &&
           json_dumpf(value, stream, JSON_COMPACT | JSON_REAL_PRECISION(17)) == 0 &&
           fputs(after, stream) >= 0;
}

static bool put_results_head(struct merging *merging, struct merge_output *results) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    bool good = stream && fputs("{\"schema\":\"topp-bench.results/1\",\n", stream) >= 0;
    good = good && put_member(stream, "\"run\":", merging->run, ",\n");
    good = good && put_member(stream, "\"summary\":", merging->summary, ",\n\"cells\":[\n");
    good = stream && fclose(stream) == 0 && good;
    if (good)
        merge_put(results, text, bytes);
    free(text);
    return good;
}

/* Opens a shard's files up to its first cell; the tables' header lines must be one. */
static enum tb_status open_source(struct cell_writer *writer, size_t which) {
    struct source *source = &writer->sources[which], *first = &writer->sources[0];
    const struct merge_shard *shard = &writer->merging->shards[which];
    json_t *summary = NULL;
    source->tail = tail_of(shard);
    if (!source->tail)
        return no_memory(writer);
    source->tail_bytes = strlen(source->tail);
    enum tb_status status = read_head(&source->results, shard, &summary, writer->error);
    json_decref(summary);
    if (status == TB_OK)
        status = merge_input_open(&source->table, shard->dir, merge_files[1], writer->error);
    if (status == TB_OK)
        status = merge_input_next(&source->table, writer->error);
    if (status == TB_OK && !line_is(&source->table, first->table.line))
        status = merge_input_wrong(&source->table, "has other columns than the first shard's",
                                   writer->error);
    return status;
}

static enum tb_status finish_source(struct cell_writer *writer, size_t which) {
    struct source *source = &writer->sources[which];
    const struct merge_shard *shard = &writer->merging->shards[which];
    enum tb_status status = merge_input_next(&source->results, writer->error);
    if (status == TB_OK && !line_is(&source->results, "]}\n"))
        status =
            merge_input_wrong(&source->results, "more cells than the receipt has", writer->error);
    if (status == TB_OK)
        status = merge_input_finish(&source->results, shard->bound[0], writer->error);
    if (status == TB_OK)
        status = merge_input_finish(&source->table, shard->bound[1], writer->error);
    return status;
}

/* run, request, sources and shards; then the cells follow. */
static bool put_receipt_head(struct merging *merging, FILE *stream) {
    const struct merge_shard *first = &merging->shards[0];
    json_t *shards = merge_receipt_shards(merging);
    const bool good = shards && put_member(stream, "{\n\"run\":", merging->run, ",\n") &&
                      put_member(stream, "\"request\":", first->request, ",\n") &&
                      put_member(stream, "\"sources\":", first->sources, ",\n") &&
                      put_member(stream, "\"shards\":", shards, ",\n\"cells\":[\n");
    json_decref(shards);
    return good;
}

static enum tb_status put_all(struct cell_writer *writer) {
    struct merging *merging = writer->merging;
    struct merge_targets *targets = writer->targets;
    enum tb_status status = TB_OK;
    for (size_t i = 0; status == TB_OK && i < merging->count; i++)
        status = open_source(writer, i);
    if (status != TB_OK)
        return status;
    errno = 0;
    if (!put_results_head(merging, &targets->results) ||
        !put_receipt_head(merging, targets->receipt))
        return errno && ferror(targets->receipt)
                   ? tb_fail_at(writer->error, TB_IO, merging->out_dir, 0, -1,
                                "cannot write into it: %s", strerror(errno))
                   : no_memory(writer);
    merge_put_text(&targets->table, writer->sources[0].table.line);
    sha256_begin(&targets->seal);
    sha256_put(&targets->seal, "{\"cells\":[", 10);
    for (size_t i = 0; status == TB_OK && i < merging->plan.count; i++)
        status = put_cell(writer, i);
    merge_put_text(&targets->results, "]}\n");
    sha256_put(&targets->seal, "],", 2);
    for (size_t i = 0; status == TB_OK && i < merging->count; i++)
        status = finish_source(writer, i);
    return status;
}

enum tb_status merge_cells(struct merging *merging, struct merge_targets *targets,
                           struct tb_error *error) {
    struct cell_writer writer = {.merging = merging, .targets = targets, .error = error};
    writer.sources = calloc(merging->count, sizeof *writer.sources);
    enum tb_status status = writer.sources ? put_all(&writer) : no_memory(&writer);
    for (size_t i = 0; writer.sources && i < merging->count; i++) {
        merge_input_close(&writer.sources[i].results);
        merge_input_close(&writer.sources[i].table);
        free(writer.sources[i].tail);
    }
    free(writer.sources);
    free(writer.text);
    free(writer.entry);
    return status;
}
