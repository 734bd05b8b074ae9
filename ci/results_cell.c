#include "ci/results_cell.h"

#include "ci/json_text.h"
#include "oracle/json_canonical.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Members that are read, in the order in which they are written. */
enum field {
    NAME,
    KIND,
    KERNEL,
    CONTRACT,
    FAMILY,
    STATISTIC,
    VOCAB,
    BATCH,
    STRIDE,
    P,
    TEMPERATURE,
    SEED,
    DRAWS,
    DEVICE,
    L2,
    LAUNCH,
    TIMED,
    VERDICT,
    RULE,
    REASON,
    AS_EXPECTED,
    ROWS_FAILED,
    KEPT,
    ORACLE,
    INPUTS,
    BLOCKS,
    MEDIAN,
    CI_LOW,
    CI_HIGH,
    P05,
    P95,
    CYCLES,
    SM_MHZ,
    UNMEASURED,
    SAMPLES,
    SHARD,
    DEVICE_UUID,
    FIELDS
};
static const char *const names[FIELDS] = {
    [NAME] = "name",
    [KIND] = "kind",
    [KERNEL] = "kernel",
    [CONTRACT] = "contract",
    [FAMILY] = "family",
    [STATISTIC] = "statistic",
    [VOCAB] = "vocab",
    [BATCH] = "batch",
    [STRIDE] = "stride",
    [P] = "p",
    [TEMPERATURE] = "temperature",
    [SEED] = "seed",
    [DRAWS] = "draws",
    [DEVICE] = "device",
    [L2] = "l2",
    [LAUNCH] = "launch",
    [TIMED] = "timed",
    [VERDICT] = "verdict",
    [RULE] = "rule",
    [REASON] = "reason",
    [AS_EXPECTED] = "as_expected",
    [ROWS_FAILED] = "rows_failed",
    [KEPT] = "kept",
    [ORACLE] = "oracle",
    [INPUTS] = "inputs",
    [BLOCKS] = "blocks",
    [MEDIAN] = "median_ns",
    [CI_LOW] = "ci_low_ns",
    [CI_HIGH] = "ci_high_ns",
    [P05] = "p05_ns",
    [P95] = "p95_ns",
    [CYCLES] = "cycles",
    [SM_MHZ] = "sm_mhz",
    [UNMEASURED] = "unmeasured",
    [SAMPLES] = "samples",
    [SHARD] = "shard",
    [DEVICE_UUID] = "device_uuid",
};
/* All of them that must agree between two cells of one name. */
enum { FIRST_SETTING = KIND, LAST_SETTING = LAUNCH };

struct fields {
    struct json_span at[FIELDS]; /* as written; length 0: not there */
};

/* Which field a key is, FIELDS when it is none. next: where the search begins, since members come
 * in this order. */
static int field_of(struct json_span key, int next) {
    for (int i = 0; i < FIELDS; i++) {
        const int field = next + i < FIELDS ? next + i : next + i - FIELDS;
        if (key.at[0] == names[field][0] && json_span_is(key, names[field]))
            return field;
    }
    return FIELDS;
}

static bool is_string(struct json_span text) {
    return text.length >= 2 && text.at[0] == '"';
}

static bool is_number(struct json_span text) {
    return text.length > 0 && (text.at[0] == '-' || (text.at[0] >= '0' && text.at[0] <= '9'));
}

static bool is_word(struct json_span text, const char *word) {
    return json_span_is(text, word);
}

static void text_of(struct json_span text, char *copy, size_t bytes) {
    copy[0] = '\0';
    if (is_string(text))
        json_span_text((struct json_span){text.at + 1, text.length - 2}, copy, bytes);
}

/* Owned; "" when it is no string. */
static char *long_text(struct json_span text) {
    char *copy = malloc(text.length + 1);
    if (copy)
        text_of(text, copy, text.length + 1);
    return copy;
}

static double number_of(struct json_span text, double otherwise) {
    struct json_scan scan = json_scan_of(text.at, text.length);
    double value;
    return is_number(text) && json_scan_number(&scan, &value) ? value : otherwise;
}

static int64_t whole_of(struct json_span text, int64_t otherwise) {
    struct json_scan scan = json_scan_of(text.at, text.length);
    int64_t value;
    if (!is_number(text))
        return otherwise;
    if (json_scan_integer(&scan, &value))
        return value;
    const double real = number_of(text, (double)otherwise);
    return fabs(real) < 9e18 ? (int64_t)real : otherwise;
}

/* A count that fits. */
static int32_t small_of(struct json_span text) {
    const int64_t whole = whole_of(text, 0);
    return whole >= 0 && whole <= INT32_MAX ? (int32_t)whole : 0;
}

/* Lines "field=value"; a value that is no scalar is left out. */
struct lines {
    char text[2048];
    size_t used;
};

/* What does not fit any more is left out on both sides alike. */
static void put_line(struct lines *lines, const char *name, const char *value, size_t bytes) {
    const size_t length = strlen(name);
    if (lines->used + length + bytes + 3 > sizeof lines->text)
        return;
    char *at = stpcpy(lines->text + lines->used, name);
    *at++ = '=';
    at = mempcpy(at, value, bytes);
    *at++ = '\n';
    *at = '\0';
    lines->used += length + bytes + 2;
}

static void put_setting(struct lines *lines, const char *name, struct json_span text) {
    char value[512];
    int64_t whole;
    struct json_scan scan = json_scan_of(text.at, text.length);
    if (is_string(text)) {
        text_of(text, value, sizeof value);
    } else if (is_number(text) && (!json_scan_integer(&scan, &whole) || !json_scan_done(&scan))) {
        /* The number, however it is spelled. */
        snprintf(value, sizeof value, "%.17g", number_of(text, (double)NAN));
    } else if (is_number(text) || is_word(text, "true") || is_word(text, "false")) {
        put_line(lines, name, text.at, text.length);
        return;
    } else {
        return;
    }
    put_line(lines, name, value, strlen(value));
}

/* One hash over the inputs' bytes, one over the masks, of all draws; "" when none has it. */
static bool hash_draws(struct json_span draws, char inputs[65], char masks[65]) {
    struct json_scan scan = json_scan_of(draws.at, draws.length);
    struct sha256_stream streams[2];
    bool any[2] = {false, false};
    struct json_span key, value;
    inputs[0] = masks[0] = '\0';
    if (json_scan_peek(&scan) != JSON_SCAN_ARRAY)
        return true;
    sha256_begin(&streams[0]);
    sha256_begin(&streams[1]);
    for (json_scan_array(&scan); json_scan_item(&scan);) {
        struct json_span found[2] = {{"-", 1}, {"-", 1}};
        if (json_scan_peek(&scan) != JSON_SCAN_OBJECT && json_scan_skip(&scan, NULL))
            continue;
        for (json_scan_object(&scan); json_scan_key(&scan, &key) && json_scan_skip(&scan, &value);)
            for (int which = 0; which < 2; which++)
                if (is_string(value) && json_span_is(key, which ? "mask_sha256" : "input_sha256")) {
                    found[which] = (struct json_span){value.at + 1, value.length - 2};
                    any[which] = true;
                }
        for (int which = 0; which < 2; which++) {
            sha256_put(&streams[which], found[which].at, found[which].length);
            sha256_put(&streams[which], "\n", 1);
        }
    }
    sha256_end(&streams[0], inputs);
    sha256_end(&streams[1], masks);
    const bool good = inputs[0] && masks[0];
    if (!any[0])
        inputs[0] = '\0';
    if (!any[1])
        masks[0] = '\0';
    return good;
}

static bool read_settings(const struct fields *fields, struct result_cell *cell) {
    struct lines lines = {.used = 0};
    char inputs[65];
    lines.text[0] = '\0';
    for (int field = FIRST_SETTING; field <= LAST_SETTING; field++)
        put_setting(&lines, names[field], fields->at[field]);
    if (!hash_draws(fields->at[INPUTS], inputs, cell->masks))
        return false;
    if (inputs[0])
        put_line(&lines, "input_sha256", inputs, strlen(inputs));
    cell->settings = strdup(lines.text);
    return cell->settings != NULL;
}

static bool read_gate(const struct fields *fields, struct result_cell *cell) {
    const struct json_span *at = fields->at;
    text_of(at[VERDICT], cell->verdict, sizeof cell->verdict);
    text_of(at[RULE], cell->rule, sizeof cell->rule);
    text_of(at[DEVICE_UUID], cell->device_uuid, sizeof cell->device_uuid);
    cell->reason = long_text(is_string(at[REASON]) ? at[REASON] : at[UNMEASURED]);
    cell->kept = whole_of(at[KEPT], -1);
    cell->oracle = whole_of(at[ORACLE], -1);
    cell->rows_failed = whole_of(at[ROWS_FAILED], 0);
    cell->as_expected = !is_word(at[AS_EXPECTED], "false");
    cell->timed = is_word(at[TIMED], "true");
    cell->blocks = small_of(at[BLOCKS]);
    cell->shard = small_of(at[SHARD]);
    cell->median = number_of(at[MEDIAN], (double)NAN);
    cell->median_cycles = number_of(at[CYCLES], (double)NAN);
    cell->sm_mhz = number_of(at[SM_MHZ], (double)NAN);
    cell->p05 = number_of(at[P05], (double)NAN);
    cell->p95 = number_of(at[P95], (double)NAN);
    cell->ci_low = number_of(at[CI_LOW], (double)NAN);
    cell->ci_high = number_of(at[CI_HIGH], (double)NAN);
    return cell->reason != NULL;
}

static bool copy_samples(const struct sample_set *from, struct sample_set *to) {
    const size_t count = from->count;
    to->time = malloc((count + 1) * sizeof *to->time);
    to->cycles = from->cycles ? malloc((count + 1) * sizeof *to->cycles) : NULL;
    to->block = malloc((count + 1) * sizeof *to->block);
    to->draw = malloc((count + 1) * sizeof *to->draw);
    if (!to->time || !to->block || !to->draw || (from->cycles && !to->cycles))
        return false;
    memcpy(to->time, from->time, count * sizeof *to->time);
    memcpy(to->block, from->block, count * sizeof *to->block);
    memcpy(to->draw, from->draw, count * sizeof *to->draw);
    if (to->cycles)
        memcpy(to->cycles, from->cycles, count * sizeof *to->cycles);
    return true;
}

static bool take_samples(struct json_scan *scan, const char *text, bool later,
                         struct sample_buffer *buffer, struct result_cell *cell,
                         struct cell_defect *defect) {
    struct samples_facts facts;
    json_scan_peek(scan);
    cell->samples_at = (size_t)(scan->at - text);
    if (!samples_read(scan, buffer, &facts, defect))
        return false;
    cell->samples_bytes = (size_t)(scan->at - text) - cell->samples_at;
    cell->invalid = facts.invalid;
    cell->zero = facts.zero;
    cell->samples.count = buffer->set.count;
    defect->memory = !later && buffer->set.count && !copy_samples(&buffer->set, &cell->samples);
    return !defect->memory;
}

bool cell_read(struct json_scan *scan, const char *text, bool samples_later,
               struct sample_buffer *buffer, struct result_cell *cell, struct cell_defect *defect) {
    struct fields fields = {.at = {{NULL, 0}}};
    struct json_span key;
    int next = NAME;
    for (json_scan_object(scan); json_scan_key(scan, &key);) {
        const int field = field_of(key, next);
        if (field == FIELDS) {
            json_scan_skip(scan, NULL);
            continue;
        }
        if (fields.at[field].length) {
            defect->what = "a member of it stands twice";
            return false;
        }
        if (field != SAMPLES)
            json_scan_skip(scan, &fields.at[field]);
        else if (take_samples(scan, text, samples_later, buffer, cell, defect))
            fields.at[field].length = 1;
        else
            return false;
        if (field == NAME)
            text_of(fields.at[NAME], defect->name, sizeof defect->name);
        next = field + 1;
    }
    if (scan->bad)
        return false;
    if (!defect->name[0])
        defect->what = "a cell without a name";
    else if (!is_string(fields.at[VERDICT]) && !is_word(fields.at[VERDICT], "null"))
        defect->what = "no verdict: every cell of results.json has one";
    if (defect->what)
        return false;
    cell->name = long_text(fields.at[NAME]);
    defect->memory = !cell->name || !read_settings(&fields, cell) || !read_gate(&fields, cell);
    return !defect->memory;
}
