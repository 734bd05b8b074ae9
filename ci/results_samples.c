/* The samples of a cell: read from the file's text, at once or when they are asked for. */
#include "ci/results_cell.h"
#include "ci/json_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DRAW = 4095, MOST_BLOCK = 1000000 }; /* far past what a run takes */
static const size_t absent = SIZE_MAX;

static bool grow(struct sample_buffer *buffer) {
    struct sample_set *set = &buffer->set;
    const size_t room = buffer->room ? 2 * buffer->room : 256;
    double *time = realloc(set->time, room * sizeof *time);
    set->time = time ? time : set->time;
    double *cycles = realloc(buffer->cycles, room * sizeof *cycles);
    buffer->cycles = cycles ? cycles : buffer->cycles;
    int32_t *block = realloc(set->block, room * sizeof *block);
    set->block = block ? block : set->block;
    int32_t *draw = realloc(set->draw, room * sizeof *draw);
    set->draw = draw ? draw : set->draw;
    if (!time || !cycles || !block || !draw)
        return false;
    buffer->room = room;
    return true;
}

void sample_buffer_free(struct sample_buffer *buffer) {
    free(buffer->set.time);
    free(buffer->set.block);
    free(buffer->set.draw);
    free(buffer->cycles);
    memset(buffer, 0, sizeof *buffer);
}

static bool no_memory(struct cell_defect *defect) {
    defect->memory = true;
    return false;
}

static bool complain(struct cell_defect *defect, const char *what) {
    defect->what = what;
    return false;
}

/* A column of numbers; what is none is NAN. *count: `absent` unless it is an array. */
static bool read_reals(struct json_scan *scan, struct sample_buffer *buffer, bool cycles,
                       size_t *count, struct cell_defect *defect) {
    if (json_scan_peek(scan) != JSON_SCAN_ARRAY)
        return json_scan_skip(scan, NULL);
    json_scan_array(scan);
    for (*count = 0;;) {
        if (*count == buffer->room && !grow(buffer))
            return no_memory(defect);
        double *values = (cycles ? buffer->cycles : buffer->set.time) + *count;
        *count += json_scan_numbers(scan, values, buffer->room - *count);
        if (*count == buffer->room && !scan->bad)
            continue;
        if (!json_scan_item(scan))
            return !scan->bad;
        (cycles ? buffer->cycles : buffer->set.time)[(*count)++] = (double)NAN;
        if (!json_scan_skip(scan, NULL))
            return false;
    }
}

static bool read_counts(struct json_scan *scan, struct sample_buffer *buffer, bool draws,
                        size_t *count, struct cell_defect *defect) {
    static const char wrong[] = "a block or draw of its samples is no number from 0 on";
    if (json_scan_peek(scan) != JSON_SCAN_ARRAY)
        return json_scan_skip(scan, NULL);
    json_scan_array(scan);
    for (*count = 0;;) {
        if (*count == buffer->room && !grow(buffer))
            return no_memory(defect);
        int32_t *values = (draws ? buffer->set.draw : buffer->set.block) + *count;
        *count +=
            json_scan_counts(scan, values, buffer->room - *count, draws ? MOST_DRAW : MOST_BLOCK);
        if (scan->bad)
            return complain(defect, wrong);
        if (*count == buffer->room)
            continue;
        if (!json_scan_item(scan))
            return !scan->bad;
        return json_scan_peek(scan) == JSON_SCAN_NONE ? json_scan_skip(scan, NULL)
                                                      : complain(defect, wrong);
    }
}

/* Values above 0 only; the others are counted. */
static void keep_valid(struct sample_buffer *buffer, size_t count, bool cycles,
                       struct samples_facts *facts) {
    struct sample_set *set = &buffer->set;
    size_t zeros = 0;
    set->count = 0;
    for (size_t i = 0; i < count; i++) {
        const double time = set->time[i];
        if (!(time > 0.0) || !isfinite(time)) {
            zeros += time == 0.0;
            facts->invalid++;
            continue;
        }
        cycles = cycles && buffer->cycles[i] > 0.0 && isfinite(buffer->cycles[i]);
        set->time[set->count] = time;
        buffer->cycles[set->count] = buffer->cycles[i];
        set->block[set->count] = set->block[i];
        set->draw[set->count] = set->draw[i];
        set->count++;
    }
    facts->zero = set->count == 0 && zeros > 0 && zeros == count;
    facts->cycles = cycles;
    set->cycles = cycles ? buffer->cycles : NULL;
}

bool samples_read(struct json_scan *scan, struct sample_buffer *buffer, struct samples_facts *facts,
                  struct cell_defect *defect) {
    size_t times = absent, cycles = absent, blocks = absent, draws = absent;
    struct json_span key;
    *facts = (struct samples_facts){0};
    buffer->set.count = 0;
    buffer->set.cycles = NULL;
    if (json_scan_peek(scan) != JSON_SCAN_OBJECT)
        return json_scan_peek(scan) == JSON_SCAN_NULL ? json_scan_skip(scan, NULL)
                                                      : complain(defect, "samples is no object");
    for (json_scan_object(scan); json_scan_key(scan, &key);) {
        bool good;
        if (json_span_is(key, "time_ns"))
            good = read_reals(scan, buffer, false, &times, defect);
        else if (json_span_is(key, "cycles"))
            good = read_reals(scan, buffer, true, &cycles, defect);
        else if (json_span_is(key, "block"))
            good = read_counts(scan, buffer, false, &blocks, defect);
        else if (json_span_is(key, "draw"))
            good = read_counts(scan, buffer, true, &draws, defect);
        else
            good = json_scan_skip(scan, NULL);
        if (!good)
            return false;
    }
    if (scan->bad)
        return false;
    if (times == absent || blocks != times || draws != times)
        return complain(defect, "its arrays of samples differ in length or are missing");
    keep_valid(buffer, times, cycles == times, facts);
    return true;
}

const struct sample_set *results_samples(const struct results *results,
                                         const struct result_cell *cell,
                                         struct sample_buffer *buffer) {
    struct samples_facts facts;
    struct cell_defect defect = {.what = NULL};
    if (cell->samples.time || !cell->samples.count || !results->text)
        return &cell->samples;
    struct json_scan scan =
        json_scan_of(results->text->bytes + cell->samples_at, cell->samples_bytes);
    return samples_read(&scan, buffer, &facts, &defect) ? &buffer->set : NULL;
}

void results_release_pages(const struct results *results) {
    if (results->text)
        json_text_forget(results->text, 0, results->text->length);
}
