#include "ci/environment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fields of results.json that must agree. Not among them: uuid (another GPU of the same model is a
 * note), and everything under build. and host. */
static const char *const binding[] = {
    "device_kind",         "slices",
    "device.kind",         "device.model",
    "device.processors",   "device.vector",
    "device.sm_count",     "device.compute_capability",
    "device.max_sm_mhz",   "device.max_memory_mhz",
    "device.memory_bytes", "device.l2_bytes",
    "device.driver",       "device.cuda_driver",
    "device.cuda_runtime", "device.timer",
};

/* What differs from run to run anyway and says nothing. */
static const char *const passing[] = {
    "device.l2_probe_warm_cycles",
    "device.l2_probe_cold_cycles",
    "context.date",
    "context.executable",
    "context.load_avg",
    "context.topp_bench_run",
    "context.json_schema_version",
};

/* Words in a custom context entry of Google Benchmark that name the machine. */
static const char *const device_words[] = {"device", "gpu",    "cuda", "driver", "sm_count",
                                           "model",  "clock",  "arch", "memory", "cpu_model",
                                           "l2",     "launch", "timer"};
/* ... unless it is only which of several alike. */
static const char *const index_words[] = {"index", "uuid", "serial", "bus", "pci", "id", "ptx"};

static bool among(const char *field, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!strcmp(field, list[i]))
            return true;
    return false;
}

/* A word of the field: bounded by anything that is no letter. */
static bool has_word(const char *field, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(words[i]);
        for (const char *at = field; (at = strcasestr(at, words[i])); at++) {
            char before = at == field ? '.' : at[-1], after = at[length];
            bool starts = !((before | 32) >= 'a' && (before | 32) <= 'z');
            bool ends = !((after | 32) >= 'a' && (after | 32) <= 'z');
            if (starts && ends)
                return true;
        }
    }
    return false;
}

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static bool binds(const char *field) {
    if (among(field, binding, COUNT(binding)))
        return true;
    if (strncmp(field, "context.", 8) != 0)
        return false;
    if (!strcmp(field, "context.num_cpus") || !strcmp(field, "context.library_build_type"))
        return true;
    return has_word(field + 8, device_words, COUNT(device_words)) &&
           !has_word(field + 8, index_words, COUNT(index_words));
}

static void scalar_text(const json_t *value, char *text, size_t text_bytes) {
    if (json_is_string(value))
        snprintf(text, text_bytes, "%s", json_string_value(value));
    else if (json_is_integer(value))
        snprintf(text, text_bytes, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        snprintf(text, text_bytes, "%.6g", json_real_value(value));
    else if (json_is_boolean(value))
        snprintf(text, text_bytes, "%s", json_is_true(value) ? "true" : "false");
    else
        snprintf(text, text_bytes, "(none)");
}

bool difference_add(struct differences *differences, enum difference_weight weight,
                    const char *field, const char *base, const char *new_side) {
    for (size_t i = 0; i < differences->count; i++)
        if (!strcmp(differences->list[i].field, field))
            return true;
    struct difference *grown = realloc(differences->list, (differences->count + 1) * sizeof *grown);
    if (!grown)
        return false;
    differences->list = grown;
    struct difference *difference = &grown[differences->count++];
    difference->weight = weight;
    snprintf(difference->field, sizeof difference->field, "%s", field);
    snprintf(difference->base, sizeof difference->base, "%s", base);
    snprintf(difference->new_side, sizeof difference->new_side, "%s", new_side);
    differences->refusing += weight == DIFFERENCE_REFUSES;
    return true;
}

void differences_free(struct differences *differences) {
    free(differences->list);
    memset(differences, 0, sizeof *differences);
}

static enum difference_weight weight_of(const char *field, bool refuses, const char *const *ignored,
                                        size_t ignored_count, bool *used) {
    enum difference_weight weight = refuses ? DIFFERENCE_REFUSES : DIFFERENCE_NOTE;
    for (size_t i = 0; i < ignored_count; i++) {
        if (strcmp(ignored[i], field) != 0 && strcmp(ignored[i], "all") != 0)
            continue;
        used[i] = true;
        if (refuses)
            weight = DIFFERENCE_IGNORED;
    }
    return weight;
}

/* The clock that Google Benchmark measures at start wobbles by itself. */
static bool same_clock(const char *field, const json_t *left, const json_t *right) {
    double a = json_number_value(left), b = json_number_value(right);
    return !strcmp(field, "context.mhz_per_cpu") && a > 0.0 && fabs(a - b) <= 0.05 * a;
}

bool environment_compare(const struct results *base, const struct results *new_side,
                         const char *const *ignored, size_t ignored_count, bool *used,
                         struct differences *differences) {
    json_t *fields = json_copy(base->environment);
    const char *field;
    json_t *unused;
    if (!fields || json_object_update_missing(fields, new_side->environment) != 0) {
        json_decref(fields);
        return false;
    }
    bool good = true;
    json_object_foreach(fields, field, unused) {
        const json_t *left = json_object_get(base->environment, field);
        const json_t *right = json_object_get(new_side->environment, field);
        char base_text[96], new_text[96];
        (void)unused;
        if (among(field, passing, COUNT(passing)) || same_clock(field, left, right))
            continue;
        scalar_text(left, base_text, sizeof base_text);
        scalar_text(right, new_text, sizeof new_text);
        if (strcmp(base_text, new_text) != 0)
            good =
                good && difference_add(differences,
                                       weight_of(field, binds(field), ignored, ignored_count, used),
                                       field, base_text, new_text);
    }
    json_decref(fields);
    return good;
}

/* The value of `field` among "field=value\n" lines, "(none)" without. */
static void setting_of(const char *settings, const char *field, size_t field_length, char *text,
                       size_t text_bytes) {
    snprintf(text, text_bytes, "(none)");
    for (const char *line = settings; *line;) {
        const char *end = strchr(line, '\n');
        size_t length = end ? (size_t)(end - line) : strlen(line);
        if (length > field_length && line[field_length] == '=' &&
            !memcmp(line, field, field_length)) {
            snprintf(text, text_bytes, "%.*s", (int)(length - field_length - 1),
                     line + field_length + 1);
            return;
        }
        line += length + (end != NULL);
    }
}

bool settings_compare(const struct result_cell *base, const struct result_cell *new_side,
                      const char *const *ignored, size_t ignored_count, bool *used,
                      struct differences *differences) {
    const char *sides[2] = {base->settings ? base->settings : "",
                            new_side->settings ? new_side->settings : ""};
    bool good = true;
    if (!strcmp(sides[0], sides[1]))
        return true;
    for (int side = 0; side < 2; side++)
        for (const char *line = sides[side]; *line;) {
            const char *end = strchr(line, '\n'), *equals = strchr(line, '=');
            size_t name = equals ? (size_t)(equals - line) : 0;
            char field[128], left[96], right[96];
            snprintf(field, sizeof field, "cell.%.*s", (int)(name < 100 ? name : 100), line);
            setting_of(sides[0], line, name, left, sizeof left);
            setting_of(sides[1], line, name, right, sizeof right);
            if (strcmp(left, right) != 0)
                good = good && difference_add(differences,
                                              weight_of(field, true, ignored, ignored_count, used),
                                              field, left, right);
            line = end ? end + 1 : line + strlen(line);
        }
    return good;
}
