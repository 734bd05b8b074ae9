/* Values of options: from words to numbers and lists. */
#include "bench/options_values.h"

#include "bench/shard.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

error_t value_refuse(struct tb_error *error, const struct option_row *row, const char *value,
                     const char *want) {
    tb_fail(error, TB_USAGE, "--%s: '%s' is not %s", row->name, value, want);
    return EINVAL;
}

error_t value_integer(struct tb_error *error, const struct option_row *row, const char *text,
                      int64_t least, int64_t most, int64_t *value) {
    char *end, want[96];
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (end != text && !*end && !errno && number >= least && number <= most) {
        *value = number;
        return 0;
    }
    if (least == INT64_MIN)
        snprintf(want, sizeof want, "a whole number of 64 bits");
    else
        snprintf(want, sizeof want, "a whole number from %lld to %lld", (long long)least,
                 (long long)most);
    return value_refuse(error, row, text, want);
}

error_t value_small(struct tb_error *error, const struct option_row *row, const char *text,
                    int32_t least, int32_t most, int32_t *value) {
    int64_t wide = 0;
    error_t failed = value_integer(error, row, text, least, most, &wide);
    *value = (int32_t)wide;
    return failed;
}

error_t value_shard(struct tb_error *error, const struct option_row *row, const char *text,
                    struct options *options) {
    char *end = NULL;
    errno = 0;
    const long index = isdigit((unsigned char)*text) ? strtol(text, &end, 10) : 0;
    const char *after = end && *end == '/' ? end + 1 : "";
    const long count = isdigit((unsigned char)*after) ? strtol(after, &end, 10) : 0;
    if (index < 1 || count < index || count > SHARD_MOST || *end || errno)
        return value_refuse(error, row, text, "K/N with K from 1 to N, such as 2/4");
    options->shard_index = (int32_t)index;
    options->shard_count = (int32_t)count;
    return 0;
}

error_t value_devices(struct tb_error *error, const struct option_row *row, const char *text,
                      struct options *options) {
    static const char want[] = "all, or a list of different numbers, such as 0,1";
    options->device_count = 0;
    options->all_devices = !strcmp(text, "all");
    for (const char *at = text; !options->all_devices; at++) {
        char *end;
        errno = 0;
        const long device = isdigit((unsigned char)*at) ? strtol(at, &end, 10) : -1;
        if (device < 0 || device > 1023 || (*end && *end != ','))
            return value_refuse(error, row, text, want);
        for (int32_t i = 0; i < options->device_count; i++)
            if (options->devices[i] == device)
                return value_refuse(error, row, text, want);
        if (options->device_count == OPTION_MOST_DEVICES)
            return value_refuse(error, row, text, "a list of at most 64 numbers");
        options->devices[options->device_count++] = (int32_t)device;
        if (!*end)
            return 0;
        at = end;
    }
    return 0;
}

error_t value_p(struct tb_error *error, const struct option_row *row, const char *text,
                struct options *options) {
    options->p_count = 0;
    for (const char *at = text;; at++) {
        char *end;
        float p = strtof(at, &end);
        if (end == at || (*end && *end != ',') || !(p > 0.0f) || !isfinite(p))
            return value_refuse(error, row, text,
                                "a list of numbers above 0, such as 0.5,0.9,0.95");
        if (options->p_count == OPTION_MOST_P)
            return value_refuse(error, row, text, "a list of at most 64 numbers");
        options->p[options->p_count++] = p;
        if (!*end)
            return 0;
        at = end;
    }
}

int value_choice_of(const struct option_row *row, const char *text) {
    size_t length = strlen(text);
    int index = 0;
    for (const char *at = row->argument; at; index++) {
        const char *bar = strchr(at, '|');
        size_t word = bar ? (size_t)(bar - at) : strlen(at);
        if (word == length && !memcmp(at, text, length))
            return index;
        at = bar ? bar + 1 : NULL;
    }
    return -1;
}

error_t value_choice(struct tb_error *error, const struct option_row *row, const char *text,
                     int *choice) {
    *choice = value_choice_of(row, text);
    return *choice < 0 ? value_refuse(error, row, text, row->argument) : 0;
}
