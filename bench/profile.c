#include "bench/profile.h"

#include "bench/text.h"
#include "oracle/gate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema_name[] = "topp-bench.profile/1";

/* Runs one reader after another and leaves at the first error. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        const enum tb_status try_status_ = (call);                                                 \
        if (try_status_ != TB_OK)                                                                  \
            return try_status_;                                                                    \
    } while (0)

enum tb_status profile_read_whole(const struct json_place *place, int64_t least, int64_t most,
                                  struct profile_whole *out) {
    TRY(json_list(place, PROFILE_MOST_VALUES, &out->count));
    for (size_t i = 0; i < out->count; i++) {
        const struct json_place element = json_element(place, i);
        TRY(json_whole(&element, least, most, &out->at[i]));
        for (size_t k = 0; k < i; k++)
            if (out->at[k] == out->at[i])
                return json_fail(&element, TB_UNREADABLE, "%lld stands twice in the list",
                                 (long long)out->at[i]);
    }
    return TB_OK;
}

/* "1-2^-K" names the p next to 1 that decimals cannot show; K up to 24 is exact in binary32. */
static bool near_one(const char *text, float *value) {
    int k = 0, length = 0;
    if (sscanf(text, "1-2^-%2d%n", &k, &length) != 1 || text[length] || k < 1 || k > 24 ||
        text[5] == '0')
        return false;
    *value = 1.0f - ldexpf(1.0f, -k);
    return true;
}

enum tb_status profile_read_p(const struct json_place *place, struct profile_real *out) {
    TRY(json_list(place, PROFILE_MOST_VALUES, &out->count));
    for (size_t i = 0; i < out->count; i++) {
        const struct json_place element = json_element(place, i);
        if (json_is_string(element.value)) {
            TRY(json_text(&element, out->text[i], sizeof out->text[i]));
            if (!near_one(out->text[i], &out->at[i]))
                return json_fail(&element, TB_UNREADABLE,
                                 "is `%s`: a number, or \"1-2^-K\" with K from 1 to 24",
                                 out->text[i]);
        } else {
            double value = 0;
            TRY(json_number_in(&element, -HUGE_VAL, HUGE_VAL, &value));
            out->at[i] = (float)value;
            if (!(out->at[i] > 0 && out->at[i] <= 1))
                return json_fail(&element, TB_UNREADABLE,
                                 "is %g: p is a binary32 value above 0 and at most 1", value);
            text_float(out->at[i], out->text[i], sizeof out->text[i]);
        }
        for (size_t k = 0; k < i; k++)
            if (out->at[k] == out->at[i])
                return json_fail(&element, TB_UNREADABLE, "is the same binary32 value as p %s",
                                 out->text[k]);
    }
    return TB_OK;
}

static enum tb_status read_choice(const struct json_place *place, const char *const *choices,
                                  int *choice) {
    char text[64], known[160] = "";
    TRY(json_text(place, text, sizeof text));
    for (int i = 0; choices[i]; i++) {
        if (!strcmp(choices[i], text)) {
            *choice = i;
            return TB_OK;
        }
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "",
                 choices[i]);
    }
    return json_fail(place, TB_UNREADABLE, "is `%s`: wanted one of %s", text, known);
}

static enum tb_status read_choices(const struct json_place *object, const char *key,
                                   const char *const *choices, int chosen[2], size_t *count) {
    struct json_place list;
    if (!json_member(object, key, &list))
        return TB_OK;
    TRY(json_list(&list, 2, count));
    for (size_t i = 0; i < *count; i++) {
        const struct json_place element = json_element(&list, i);
        TRY(read_choice(&element, choices, &chosen[i]));
        if (i && chosen[0] == chosen[1])
            return json_fail(&element, TB_UNREADABLE, "stands twice in the list");
    }
    return TB_OK;
}

enum tb_status profile_read_modes(const struct json_place *object, const struct profile *profile,
                                  struct profile_modes *modes) {
    static const char *const l2_names[] = {"warm", "cold", NULL};
    static const char *const launch_names[] = {"stream", "graph", NULL};
    int l2[2] = {0}, launch[2] = {0};
    size_t l2_count = 0, launch_count = 0;
    struct json_place place;
    if (profile->device == PROFILE_CPU &&
        (json_member(object, "l2", &place) || json_member(object, "launch", &place)))
        return json_fail(&place, TB_UNREADABLE, "belongs to CUDA: a profile for the CPU has none");
    TRY(read_choices(object, "l2", l2_names, l2, &l2_count));
    TRY(read_choices(object, "launch", launch_names, launch, &launch_count));
    for (size_t i = 0; i < l2_count; i++)
        modes->l2[i] = l2[i] ? L2_COLD : L2_WARM;
    for (size_t i = 0; i < launch_count; i++)
        modes->launch[i] = launch[i] ? LAUNCH_GRAPH : LAUNCH_STREAM;
    modes->l2_count = l2_count ? l2_count : modes->l2_count;
    modes->launch_count = launch_count ? launch_count : modes->launch_count;
    return TB_OK;
}

static enum tb_status read_limits(const struct json_place *root, struct profile_limits *limits) {
    static const char *const keys[] = {"max_vocab", "max_batch", "case_seconds", "artifact_bytes",
                                       NULL};
    struct json_place object, member;
    TRY(json_require(root, "limits", &object));
    TRY(json_object_keys(&object, keys));
    TRY(json_require(&object, "max_vocab", &member));
    TRY(json_whole(&member, 1, PROFILE_VOCAB_MOST, &limits->max_vocab));
    TRY(json_require(&object, "max_batch", &member));
    TRY(json_whole(&member, 1, PROFILE_BATCH_MOST, &limits->max_batch));
    TRY(json_require(&object, "case_seconds", &member));
    TRY(json_number_in(&member, 0.001, 86400, &limits->case_seconds));
    TRY(json_require(&object, "artifact_bytes", &member));
    return json_whole(&member, 1 << 20, (int64_t)1 << 50, &limits->artifact_bytes);
}

static enum tb_status read_whole32(const struct json_place *object, const char *key, int64_t least,
                                   int64_t most, int32_t *value) {
    struct json_place member;
    int64_t wide = 0;
    TRY(json_require(object, key, &member));
    TRY(json_whole(&member, least, most, &wide));
    *value = (int32_t)wide;
    return TB_OK;
}

static enum tb_status read_timing(const struct json_place *root, struct profile *profile) {
    static const char *const keys[] = {
        "blocks",        "min_samples",    "max_samples", "precision",
        "block_seconds", "warmup_seconds", "draws",       NULL};
    struct timing_settings *timing = &profile->timing;
    struct json_place object, member;
    TRY(json_require(root, "timing", &object));
    TRY(json_object_keys(&object, keys));
    TRY(read_whole32(&object, "blocks", 1, 1000, &timing->blocks));
    TRY(read_whole32(&object, "min_samples", 1, 1000000, &timing->min_samples));
    TRY(read_whole32(&object, "max_samples", 1, 1000000, &timing->max_samples));
    TRY(json_require(&object, "max_samples", &member));
    if (timing->max_samples < timing->min_samples)
        return json_fail(&member, TB_UNREADABLE, "is %d, less than min_samples %d",
                         timing->max_samples, timing->min_samples);
    TRY(json_require(&object, "precision", &member));
    TRY(json_number_in(&member, 1e-6, 1, &timing->precision));
    TRY(json_require(&object, "block_seconds", &member));
    TRY(json_number_in(&member, 1e-4, 3600, &timing->block_seconds));
    TRY(json_require(&object, "warmup_seconds", &member));
    TRY(json_number_in(&member, 0, 3600, &timing->warmup_seconds));
    return read_whole32(&object, "draws", 1, 64, &profile->draws);
}

static bool known_rule(const char *name) {
    for (int rule = GATE_RULE_NONE + 1; rule < GATE_RULE_COUNT; rule++)
        if (!strcmp(gate_rule_name((enum gate_rule)rule), name))
            return true;
    return false;
}

static enum tb_status read_matchers(const struct json_place *object, const struct profile *profile,
                                    struct profile_expect *expect) {
    struct json_place member;
    TRY(json_require(object, "kernel", &member));
    TRY(json_text(&member, expect->kernel, sizeof expect->kernel));
    TRY(json_require(object, "family", &member));
    TRY(json_text(&member, expect->family, sizeof expect->family));
    if (json_member(object, "vocab", &member))
        TRY(profile_read_whole(&member, 1, profile->limits.max_vocab, &expect->vocab));
    if (json_member(object, "batch", &member))
        TRY(profile_read_whole(&member, 1, profile->limits.max_batch, &expect->batch));
    if (json_member(object, "p", &member))
        TRY(profile_read_p(&member, &expect->p));
    return TB_OK;
}

static enum tb_status read_expect(const struct json_place *object, const struct profile *profile,
                                  struct profile_expect *expect) {
    static const char *const keys[] = {"kernel", "family", "vocab", "batch", "p",
                                       "expect", "rule",   "share", "why",   NULL};
    static const char *const verdicts[] = {"accept", "reject", "either", NULL};
    struct json_place member;
    int verdict = 0;
    memset(expect, 0, sizeof *expect);
    TRY(json_object_keys(object, keys));
    TRY(read_matchers(object, profile, expect));
    TRY(json_require(object, "expect", &member));
    TRY(read_choice(&member, verdicts, &verdict));
    expect->expect = (enum expectation)verdict;
    if (json_member(object, "rule", &member)) {
        if (expect->expect != EXPECT_REJECT)
            return json_fail(&member, TB_UNREADABLE, "goes with `reject` alone");
        TRY(json_text(&member, expect->rule, sizeof expect->rule));
        if (!known_rule(expect->rule))
            return json_fail(&member, TB_UNREADABLE, "`%s` is no rule of the gate (docs/gate.md)",
                             expect->rule);
    }
    expect->share = expect->expect == EXPECT_EITHER ? 0.02 : 0;
    if (json_member(object, "share", &member)) {
        if (expect->expect != EXPECT_EITHER)
            return json_fail(&member, TB_UNREADABLE, "goes with `either` alone");
        TRY(json_number_in(&member, 0, 1, &expect->share));
    }
    TRY(json_require(object, "why", &member));
    return json_text(&member, expect->why, sizeof expect->why);
}

static enum tb_status read_expects(const struct json_place *root, struct profile *profile) {
    struct json_place list;
    size_t count = 0;
    if (!json_member(root, "expect", &list))
        return TB_OK;
    TRY(json_list(&list, PROFILE_MOST_EXPECT, &count));
    profile->expects = calloc(count, sizeof *profile->expects);
    if (!profile->expects)
        return json_fail(&list, TB_NO_MEMORY, "no memory for it");
    for (; profile->expect_count < count; profile->expect_count++) {
        const struct json_place object = json_element(&list, profile->expect_count);
        TRY(read_expect(&object, profile, &profile->expects[profile->expect_count]));
    }
    return TB_OK;
}

static enum tb_status read_head(const struct json_place *root, struct profile *profile) {
    static const char *const keys[] = {"schema", "name", "summary", "device", "seed",   "limits",
                                       "timing", "l2",   "launch",  "matrix", "expect", NULL};
    static const char *const devices[] = {"any", "cpu", "cuda", NULL};
    struct json_place member;
    char schema[64];
    int device = 0;
    TRY(json_object_keys(root, keys));
    TRY(json_require(root, "schema", &member));
    TRY(json_text(&member, schema, sizeof schema));
    if (strcmp(schema, schema_name) != 0)
        return json_fail(&member, TB_UNREADABLE, "is `%s`: this program reads %s", schema,
                         schema_name);
    TRY(json_require(root, "name", &member));
    TRY(json_text(&member, profile->name, sizeof profile->name));
    if (json_member(root, "summary", &member))
        TRY(json_text(&member, profile->summary, sizeof profile->summary));
    TRY(json_require(root, "device", &member));
    TRY(read_choice(&member, devices, &device));
    profile->device = (enum profile_device)device;
    TRY(json_require(root, "seed", &member));
    return json_whole(&member, INT64_MIN, INT64_MAX, &profile->seed);
}

enum tb_status profile_load(const char *file, struct profile *profile, struct tb_error *error) {
    memset(profile, 0, sizeof *profile);
    enum tb_status status = json_source_load(file, &profile->source, error);
    if (status != TB_OK)
        return status;
    const struct json_place root = json_source_root(&profile->source);
    profile->modes.l2[0] = L2_WARM;
    profile->modes.launch[0] = LAUNCH_GRAPH;
    profile->modes.l2_count = profile->modes.launch_count = 1;
    status = read_head(&root, profile);
    if (status == TB_OK)
        status = read_limits(&root, &profile->limits);
    if (status == TB_OK)
        status = read_timing(&root, profile);
    if (status == TB_OK)
        status = profile_read_modes(&root, profile, &profile->modes);
    if (status == TB_OK)
        status = profile_read_matrix(&root, profile);
    if (status == TB_OK)
        status = read_expects(&root, profile);
    if (status != TB_OK)
        profile_free(profile);
    return status;
}

void profile_free(struct profile *profile) {
    if (!profile)
        return;
    json_source_free(&profile->source);
    free(profile->entries);
    free(profile->expects);
    memset(profile, 0, sizeof *profile);
}
