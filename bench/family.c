#include "bench/inputs.h"
#include "bench/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TILE = 8192 };

static bool parse_id(const char *text, int64_t *value) {
    const size_t length = strlen(text);
    if (length == 0 || length > 10 || strspn(text, "0123456789") < length)
        return false;
    if (length > 1 && text[0] == '0')
        return false; /* one spelling a family */
    *value = strtoll(text, NULL, 10);
    return true;
}

/* VALUE or VALUE/VALUE: a logit, or one divided by a temperature. */
static bool parse_value(const char *text, size_t length, float *value) {
    const char *slash = memchr(text, '/', length);
    double number, divisor = 1;
    if (slash) {
        const size_t before = (size_t)(slash - text);
        if (!text_real(text, before, &number) ||
            !text_real(slash + 1, length - before - 1, &divisor) || divisor == 0)
            return false;
    } else if (!text_real(text, length, &number)) {
        return false;
    }
    *value = (float)(number / divisor);
    return isfinite(*value);
}

static bool parse_forced(const char *rest, struct family *family) {
    const char *at = strchr(rest, '@');
    if (!at || !parse_value(rest, (size_t)(at - rest), &family->value))
        return false;
    family->kind = FAMILY_FORCED;
    if (!strcmp(at + 1, "last"))
        family->token = FAMILY_TOKEN_LAST;
    else if (!strcmp(at + 1, "tail"))
        family->token = FAMILY_TOKEN_TAIL;
    else
        return parse_id(at + 1, &family->token);
    return true;
}

static bool parse_flat(const char *rest, struct family *family) {
    family->kind = FAMILY_FLAT;
    return parse_value(rest, strlen(rest), &family->value);
}

static bool parse_masked(const char *rest, struct family *family) {
    if (!strncmp(rest, "keep", 4)) {
        family->kind = FAMILY_MASKED_KEEP;
        return parse_id(rest + 4, &family->keep) && family->keep >= 1 &&
               family->keep <= FAMILY_KEEP_MOST;
    }
    family->kind = FAMILY_MASKED_SHARE;
    return text_real(rest, strlen(rest), &family->share) && family->share > 0 && family->share < 1;
}

static bool parse_captured(const char *rest, struct family *family) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-.";
    family->kind = FAMILY_CAPTURED;
    if (rest[0] == '\0' || rest[0] == '.' || strspn(rest, allowed) != strlen(rest))
        return false; /* a plain name: no path leads out of captured_dir */
    snprintf(family->file, sizeof family->file, "%s", rest);
    return true;
}

static const struct {
    const char *text;
    enum family_kind kind;
} plain_families[] = {
    {"normal", FAMILY_NORMAL},
    {"peaked", FAMILY_PEAKED},
    {"ties=step", FAMILY_TIES_STEP},
    {"ties=plateau", FAMILY_TIES_PLATEAU},
    {"adjacent", FAMILY_ADJACENT},
    {"mixed", FAMILY_MIXED},
    {"hazard=nan", FAMILY_HAZARD_NAN},
    {"hazard=inf", FAMILY_HAZARD_INF},
    {"hazard=empty", FAMILY_HAZARD_EMPTY},
    {"hazard=huge", FAMILY_HAZARD_HUGE},
    {"hazard=subnormal", FAMILY_HAZARD_SUBNORMAL},
};

static const struct {
    const char *prefix;
    bool (*parse)(const char *rest, struct family *family);
    const char *form;
} families_with_value[] = {
    {"forced=", parse_forced, "forced=VALUE@ID with ID a token id, `last` or `tail`"},
    {"flat=", parse_flat, "flat=VALUE"},
    {"masked=", parse_masked, "masked=SHARE with 0 < SHARE < 1, or masked=keepK with K 1 to 1024"},
    {"captured=", parse_captured, "captured=NAME with NAME.npy in the folder of captured logits"},
};

enum tb_status family_parse(const char *text, struct family *family, struct tb_error *error) {
    memset(family, 0, sizeof *family);
    if (strlen(text) >= sizeof family->text)
        return tb_fail(error, TB_USAGE, "family name of %zu bytes: at most %zu", strlen(text),
                       sizeof family->text - 1);
    snprintf(family->text, sizeof family->text, "%s", text);
    for (size_t i = 0; i < sizeof plain_families / sizeof plain_families[0]; i++)
        if (!strcmp(text, plain_families[i].text)) {
            family->kind = plain_families[i].kind;
            return TB_OK;
        }
    for (size_t i = 0; i < sizeof families_with_value / sizeof families_with_value[0]; i++) {
        const size_t length = strlen(families_with_value[i].prefix);
        if (strncmp(text, families_with_value[i].prefix, length) != 0)
            continue;
        if (families_with_value[i].parse(text + length, family))
            return TB_OK;
        return tb_fail(error, TB_USAGE, "family `%s` is not of the form %s", text,
                       families_with_value[i].form);
    }
    return tb_fail(error, TB_USAGE,
                   "unknown family `%s`: normal, peaked, forced=VALUE@ID, flat=VALUE, ties=step, "
                   "ties=plateau, adjacent, masked=SHARE, masked=keepK, mixed, captured=NAME, or "
                   "hazard=nan|inf|empty|huge|subnormal",
                   text);
}

bool family_is_hazard(const struct family *family) {
    switch (family->kind) {
    case FAMILY_HAZARD_NAN:
    case FAMILY_HAZARD_INF:
    case FAMILY_HAZARD_EMPTY:
    case FAMILY_HAZARD_HUGE:
    case FAMILY_HAZARD_SUBNORMAL:
        return true;
    default:
        return false;
    }
}

bool family_is_masked(const struct family *family) {
    return family->kind == FAMILY_MASKED_SHARE || family->kind == FAMILY_MASKED_KEEP;
}

int64_t family_forced_token(const struct family *family, int64_t vocab) {
    if (family->kind != FAMILY_FORCED)
        return -1;
    if (family->token == FAMILY_TOKEN_LAST)
        return vocab - 1;
    if (family->token == FAMILY_TOKEN_TAIL)
        return (vocab - 1) / TILE * TILE;
    return family->token;
}

float family_row_p(const struct family *family, float p, int64_t row) {
    return family->kind == FAMILY_MIXED && row % 2 == 1 ? 1.0f : p;
}
