/* The matrix of a profile: which kernels meet which inputs. */
#include "bench/profile.h"

#include "bench/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const enum tb_status try_status_ = (call);                                                 \
        if (try_status_ != TB_OK)                                                                  \
            return try_status_;                                                                    \
    } while (0)

static bool known_kernel(enum cell_kind kind, const char *name, enum profile_device device) {
    if (!strncmp(name, "plugin:", 7)) /* known when --plugin is: cells_extra.c */
        return name[7] != '\0';
    for (int d = KERNEL_DEVICE_CPU; d <= KERNEL_DEVICE_CUDA; d++) {
        const bool wanted = device == PROFILE_ANY || (device == PROFILE_CPU) == !d;
        /* Names of CUDA variants are those of their CPU twins: without CUDA in the build a
         * profile for it can still be read and listed. */
        if ((wanted || d == KERNEL_DEVICE_CPU) &&
            (kind == CELL_TOPP ? topp_find(name, (enum kernel_device)d) != NULL
                               : gumbel_find(name, (enum kernel_device)d) != NULL))
            return true;
    }
    return false;
}

static void list_kernels(enum cell_kind kind, char *text, size_t text_bytes) {
    size_t topp_count, gumbel_count;
    const struct topp_variant *const *topp = topp_variants(&topp_count);
    const struct gumbel_variant *const *gumbel = gumbel_variants(&gumbel_count);
    const size_t count = kind == CELL_TOPP ? topp_count : gumbel_count;
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const char *name = kind == CELL_TOPP ? topp[i]->name : gumbel[i]->name;
        const int device = kind == CELL_TOPP ? topp[i]->device : gumbel[i]->device;
        if (device == KERNEL_DEVICE_CPU)
            snprintf(text + strlen(text), text_bytes - strlen(text), "%s%s", i ? ", " : "", name);
    }
}

static enum tb_status read_names(const struct json_place *list, struct profile_names *names) {
    TRY(json_list(list, PROFILE_MOST_VALUES, &names->count));
    for (size_t i = 0; i < names->count; i++) {
        const struct json_place element = json_element(list, i);
        TRY(json_text(&element, names->at[i], sizeof names->at[i]));
        for (size_t k = 0; k < i; k++)
            if (!strcmp(names->at[k], names->at[i]))
                return json_fail(&element, TB_UNREADABLE, "`%s` stands twice in the list",
                                 names->at[i]);
    }
    return TB_OK;
}

static enum tb_status read_kernels(const struct json_place *object, const char *key,
                                   const struct profile *profile, struct profile_entry *entry) {
    struct json_place list;
    TRY(json_require(object, key, &list));
    if (json_is_string(list.value)) {
        entry->kernels.all = !strcmp(json_string_value(list.value), "all");
        return entry->kernels.all
                   ? TB_OK
                   : json_fail(&list, TB_UNREADABLE, "is a string: wanted \"all\" or a list");
    }
    TRY(read_names(&list, &entry->kernels));
    for (size_t i = 0; i < entry->kernels.count; i++) {
        const char *name = entry->kernels.at[i];
        char known[256];
        const struct json_place element = json_element(&list, i);
        if (known_kernel(entry->kind, name, profile->device))
            continue;
        list_kernels(entry->kind, known, sizeof known);
        return json_fail(&element, TB_UNREADABLE, "there is no %s `%s`; known: %s",
                         entry->kind == CELL_TOPP ? "top-p kernel" : "Gumbel variant", name, known);
    }
    return TB_OK;
}

static enum tb_status read_families(const struct json_place *object, struct profile_entry *entry) {
    struct json_place list;
    TRY(json_require(object, "families", &list));
    TRY(json_list(&list, PROFILE_MOST_VALUES, &entry->family_count));
    for (size_t i = 0; i < entry->family_count; i++) {
        const struct json_place element = json_element(&list, i);
        char text[FAMILY_TEXT_BYTES];
        TRY(json_text(&element, text, sizeof text));
        struct tb_error defect = TB_ERROR_INIT;
        if (family_parse(text, &entry->families[i], &defect) != TB_OK)
            return json_fail(&element, TB_UNREADABLE, "%s", defect.message);
        for (size_t k = 0; k < i; k++)
            if (!strcmp(entry->families[k].text, text))
                return json_fail(&element, TB_UNREADABLE, "`%s` stands twice in the list", text);
    }
    return TB_OK;
}

/* A forced token must exist in every vocabulary of its entry. */
static enum tb_status check_forced(const struct json_place *vocab,
                                   const struct profile_entry *entry) {
    for (size_t f = 0; f < entry->family_count; f++)
        for (size_t v = 0; v < entry->vocab.count; v++)
            if (family_forced_token(&entry->families[f], entry->vocab.at[v]) >=
                entry->vocab.at[v]) {
                const struct json_place element = json_element(vocab, v);
                return json_fail(&element, TB_UNREADABLE,
                                 "a vocabulary of %lld has no token %lld (family %s)",
                                 (long long)entry->vocab.at[v], (long long)entry->families[f].token,
                                 entry->families[f].text);
            }
    return TB_OK;
}

static enum tb_status read_shapes(const struct json_place *object, const struct profile *profile,
                                  struct profile_entry *entry) {
    struct json_place member;
    TRY(read_families(object, entry));
    bool generated = false;
    for (size_t i = 0; i < entry->family_count; i++)
        generated = generated || entry->families[i].kind != FAMILY_CAPTURED;
    if (json_member(object, "vocab", &member)) {
        if (!generated)
            return json_fail(&member, TB_UNREADABLE,
                             "captured rows bring their own vocabulary: leave it out");
        TRY(profile_read_whole(&member, 1, profile->limits.max_vocab, &entry->vocab));
        TRY(check_forced(&member, entry));
    } else if (generated) {
        return json_fail(object, TB_UNREADABLE, "key `vocab` is missing");
    }
    TRY(json_require(object, "batch", &member));
    TRY(profile_read_whole(&member, 1, profile->limits.max_batch, &entry->batch));
    if (json_member(object, "padding", &member))
        TRY(json_whole(&member, 0, 1 << 20, &entry->padding));
    if (json_member(object, "timed", &member))
        TRY(json_flag(&member, &entry->timed));
    entry->modes = profile->modes;
    return profile_read_modes(object, profile, &entry->modes);
}

static enum tb_status read_temperatures(const struct json_place *place, struct profile_real *out) {
    TRY(json_list(place, PROFILE_MOST_VALUES, &out->count));
    for (size_t i = 0; i < out->count; i++) {
        const struct json_place element = json_element(place, i);
        double value = 0;
        TRY(json_number_in(&element, 0, 1000, &value));
        out->at[i] = (float)value;
        text_float(out->at[i], out->text[i], sizeof out->text[i]);
        for (size_t k = 0; k < i; k++)
            if (out->at[k] == out->at[i])
                return json_fail(&element, TB_UNREADABLE, "%s stands twice in the list",
                                 out->text[i]);
    }
    return TB_OK;
}

static enum tb_status read_topp(const struct json_place *object, const struct profile *profile,
                                struct profile_entry *entry) {
    static const char *const keys[] = {"kind",    "kernels", "families", "vocab",  "batch", "p",
                                       "padding", "timed",   "l2",       "launch", NULL};
    struct json_place member;
    TRY(json_object_keys(object, keys));
    TRY(read_kernels(object, "kernels", profile, entry));
    TRY(read_shapes(object, profile, entry));
    TRY(json_require(object, "p", &member));
    return profile_read_p(&member, &entry->p);
}

static enum tb_status read_gumbel(const struct json_place *object, const struct profile *profile,
                                  struct profile_entry *entry) {
    static const char *const keys[] = {"kind",  "variants",    "families", "vocab",
                                       "batch", "temperature", "padding",  "timed",
                                       "l2",    "launch",      NULL};
    struct json_place member;
    TRY(json_object_keys(object, keys));
    TRY(read_kernels(object, "variants", profile, entry));
    TRY(read_shapes(object, profile, entry));
    TRY(json_require(object, "temperature", &member));
    return read_temperatures(&member, &entry->temperature);
}

static enum tb_status read_statistics(const struct json_place *object,
                                      const struct profile *profile, struct profile_entry *entry) {
    static const char *const keys[] = {"kind", "variants", "statistics", NULL};
    static const char *const known[] = {"heavy_tail", "whole_vocabulary", "greedy", "streams"};
    struct json_place list;
    TRY(json_object_keys(object, keys));
    TRY(read_kernels(object, "variants", profile, entry));
    TRY(json_require(object, "statistics", &list));
    TRY(read_names(&list, &entry->statistics));
    for (size_t i = 0; i < entry->statistics.count; i++) {
        size_t k = 0;
        while (k < 4 && strcmp(known[k], entry->statistics.at[i]) != 0)
            k++;
        const struct json_place element = json_element(&list, i);
        if (k == 4)
            return json_fail(&element, TB_UNREADABLE,
                             "there is no statistic `%s`; known: heavy_tail, whole_vocabulary, "
                             "greedy, streams",
                             entry->statistics.at[i]);
    }
    return TB_OK;
}

static enum tb_status read_entry(const struct json_place *object, const struct profile *profile,
                                 struct profile_entry *entry) {
    struct json_place member;
    char kind[32];
    memset(entry, 0, sizeof *entry);
    entry->timed = true;
    if (!json_is_object(object->value))
        return json_fail(object, TB_UNREADABLE, "is no object");
    TRY(json_require(object, "kind", &member));
    TRY(json_text(&member, kind, sizeof kind));
    if (!strcmp(kind, "topp")) {
        entry->kind = CELL_TOPP;
        return read_topp(object, profile, entry);
    }
    if (!strcmp(kind, "gumbel")) {
        entry->kind = CELL_GUMBEL;
        return read_gumbel(object, profile, entry);
    }
    if (!strcmp(kind, "gumbel_statistic")) {
        entry->kind = CELL_GUMBEL_STATISTIC;
        return read_statistics(object, profile, entry);
    }
    return json_fail(&member, TB_UNREADABLE,
                     "is `%s`: wanted one of topp, gumbel, gumbel_statistic", kind);
}

enum tb_status profile_read_matrix(const struct json_place *root, struct profile *profile) {
    struct json_place list;
    size_t count = 0;
    TRY(json_require(root, "matrix", &list));
    TRY(json_list(&list, PROFILE_MOST_ENTRIES, &count));
    profile->entries = calloc(count, sizeof *profile->entries);
    if (!profile->entries)
        return json_fail(&list, TB_NO_MEMORY, "no memory for it");
    for (; profile->entry_count < count; profile->entry_count++) {
        const struct json_place object = json_element(&list, profile->entry_count);
        TRY(read_entry(&object, profile, &profile->entries[profile->entry_count]));
    }
    return TB_OK;
}
