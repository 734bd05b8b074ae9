/* benchmark.json of a merged run: the shards' entries one behind the other, numbered as cells of
 * the whole list. Google Benchmark's order is that in which cells were finished: chance anyway. */
#include "bench/merge_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct entries {
    const struct merging *merging;
    const struct merge_shard *shard;
    struct merge_input input;
    struct merge_output *output;
    struct tb_error *error;
    size_t place; /* in the whole list, of the entry that is read */
    bool comma;   /* an entry was written: the next one is separated from it */
};

static bool starts(const struct entries *entries, const char *with) {
    return !strncmp(entries->input.line, with, strlen(with));
}

static enum tb_status next(struct entries *entries) {
    enum tb_status status = merge_input_next(&entries->input, entries->error);
    if (status == TB_OK && entries->input.length == 0)
        status = merge_input_wrong(&entries->input, "ends early", entries->error);
    return status;
}

/* The context, up to the line that opens the array; the first shard's goes into the output. */
static enum tb_status read_context(struct entries *entries, bool copied) {
    static const char array[] = "  \"benchmarks\": [", run[] = "    \"topp_bench_run\": \"";
    const char *id = json_string_value(json_object_get(entries->merging->run, "id"));
    enum tb_status status = next(entries);
    for (; status == TB_OK && !starts(entries, array); status = next(entries)) {
        const char *line = entries->input.line;
        if (copied && starts(entries, run)) {
            const char *behind = strchr(line + sizeof run - 1, '"');
            merge_put_text(entries->output, run);
            merge_put_text(entries->output, id);
            merge_put_text(entries->output, behind ? behind : "\"\n");
        } else if (copied) {
            merge_put(entries->output, line, entries->input.length);
        }
    }
    if (status == TB_OK && copied)
        merge_put_text(entries->output, array);
    return status;
}

/* The number of a shard's cell becomes that of the whole list's. */
static enum tb_status put_number(struct entries *entries, const char *before) {
    char *end;
    const char *digits = entries->input.line + strlen(before);
    const uintmax_t number = strtoumax(digits, &end, 10);
    char text[32];
    if (end == digits || number >= entries->shard->cells)
        return merge_input_wrong(&entries->input, "is the number of no cell of this shard",
                                 entries->error);
    entries->place = entries->shard->places[number];
    snprintf(text, sizeof text, "%zu", entries->place);
    merge_put_text(entries->output, before);
    merge_put_text(entries->output, text);
    merge_put_text(entries->output, end);
    return TB_OK;
}

/* The library numbers cells as they are registered: that must be the list's order. */
static enum tb_status check_name(struct entries *entries, const char *before) {
    const char *name = entries->merging->plan.cells[entries->place].name;
    char text[2 * CELL_NAME_BYTES + 128] = "";
    const char *begin = entries->input.line + strlen(before);
    const char *end = strrchr(begin, '"');
    if (end)
        json_span_text((struct json_span){begin, (size_t)(end - begin)}, text, sizeof text);
    if (strncmp(text, name, strlen(name)) != 0 || text[strlen(name)] != '/')
        return merge_input_wrong(&entries->input, "is not the cell that its number says",
                                 entries->error);
    return TB_OK;
}

static enum tb_status put_entry(struct entries *entries) {
    static const char family[] = "      \"family_index\": ", name[] = "      \"run_name\": \"";
    enum tb_status status = TB_OK;
    merge_put_text(entries->output, entries->comma ? ",\n    {\n" : "\n    {\n");
    entries->comma = true;
    for (status = next(entries); status == TB_OK && !starts(entries, "    }");
         status = status == TB_OK ? next(entries) : status) {
        if (starts(entries, family)) {
            status = put_number(entries, family);
            continue;
        }
        if (starts(entries, name))
            status = check_name(entries, name);
        merge_put(entries->output, entries->input.line, entries->input.length);
    }
    merge_put_text(entries->output, "    }");
    return status;
}

static enum tb_status put_shard(struct entries *entries, bool first) {
    enum tb_status status =
        merge_input_open(&entries->input, entries->shard->dir, merge_files[2], entries->error);
    if (status == TB_OK)
        status = read_context(entries, first);
    const bool empty = status == TB_OK && starts(entries, "  \"benchmarks\": []");
    if (status == TB_OK && !empty)
        status = next(entries);
    while (status == TB_OK && !empty && starts(entries, "    {")) {
        status = put_entry(entries);
        if (status == TB_OK)
            status = next(entries);
    }
    if (status == TB_OK && !empty && !starts(entries, "  ]"))
        status = merge_input_wrong(&entries->input, "is no entry of Google Benchmark's report",
                                   entries->error);
    if (status == TB_OK)
        status = merge_input_finish(&entries->input, entries->shard->bound[2], entries->error);
    merge_input_close(&entries->input);
    return status;
}

enum tb_status merge_benchmark(const struct merging *merging, struct merge_output *output,
                               struct tb_error *error) {
    struct entries entries = {.merging = merging, .output = output, .error = error};
    enum tb_status status = TB_OK;
    for (size_t i = 0; status == TB_OK && i < merging->count; i++) {
        entries.shard = &merging->shards[i];
        status = put_shard(&entries, i == 0);
    }
    merge_put_text(output, entries.comma ? "\n  ]\n}\n" : "]\n}\n");
    return status;
}
