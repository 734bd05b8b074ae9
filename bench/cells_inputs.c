/* The inputs of a profile: family x vocabulary x batch x padding. */
#include "bench/cells_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t family_count(const struct builder *b, const struct profile_entry *entry) {
    return b->options->family ? 1 : entry->family_count;
}

static const struct family *family_at(const struct builder *b, const struct profile_entry *entry,
                                      size_t i) {
    return b->options->family ? &b->replacement : &entry->families[i];
}

/* The vocabularies of a family in an entry: a captured one has its file's alone. */
static enum tb_status vocabularies(struct builder *b, const struct profile_entry *entry,
                                   size_t entry_index, const struct family *family,
                                   struct profile_whole *out) {
    char path[1024], where[64];
    int64_t rows = 0;
    if (family->kind != FAMILY_CAPTURED) {
        *out = entry->vocab;
        return TB_OK;
    }
    struct tb_error defect = TB_ERROR_INIT;
    snprintf(where, sizeof where, "matrix[%zu].families", entry_index);
    if (!b->options->captured_dir)
        return cells_fail(b, TB_USAGE, where, "no folder of captured logits is given for ",
                          family->text);
    snprintf(path, sizeof path, "%s/%s.npy", b->options->captured_dir, family->file);
    out->count = 1;
    const enum tb_status status = npy_shape(path, &rows, &out->at[0], &defect);
    if (status != TB_OK) {
        char text[1024];
        tb_error_text(&defect, text, sizeof text);
        return cells_fail(b, status, where, "", text);
    }
    if (out->at[0] > b->profile->limits.max_vocab)
        return cells_fail(b, TB_UNREADABLE, where,
                          "its vocabulary is past limits.max_vocab: ", family->text);
    return TB_OK;
}

static bool same_input(const struct input_key *a, const struct input_key *b) {
    return a->vocab == b->vocab && a->batch == b->batch && a->padding == b->padding &&
           !strcmp(a->family->text, b->family->text);
}

static enum tb_status add_input(struct builder *b, const struct input_key *key) {
    for (size_t i = b->input_count; i-- > 0;)
        if (same_input(&b->inputs[i], key))
            return TB_OK;
    if (b->input_count == b->input_capacity) {
        const size_t capacity = b->input_capacity ? 2 * b->input_capacity : 64;
        struct input_key *grown = realloc(b->inputs, capacity * sizeof *grown);
        if (!grown)
            return cells_no_memory(b);
        b->inputs = grown;
        b->input_capacity = capacity;
    }
    b->inputs[b->input_count++] = *key;
    return TB_OK;
}

enum tb_status cells_collect_inputs(struct builder *b) {
    for (size_t e = 0; e < b->profile->entry_count; e++) {
        const struct profile_entry *entry = &b->profile->entries[e];
        if (entry->kind == CELL_GUMBEL_STATISTIC)
            continue;
        for (size_t f = 0; f < family_count(b, entry); f++) {
            const struct family *family = family_at(b, entry, f);
            struct profile_whole vocab = {.count = 0};
            enum tb_status status = vocabularies(b, entry, e, family, &vocab);
            for (size_t v = 0; status == TB_OK && v < vocab.count; v++)
                for (size_t r = 0; status == TB_OK && r < entry->batch.count; r++) {
                    const struct input_key key = {family, vocab.at[v], entry->batch.at[r],
                                                  entry->padding};
                    status = add_input(b, &key);
                }
            if (status != TB_OK)
                return status;
        }
    }
    return TB_OK;
}

bool cells_entry_has(const struct builder *b, const struct profile_entry *entry,
                     const struct input_key *key) {
    if (entry->kind == CELL_GUMBEL_STATISTIC || entry->padding != key->padding ||
        !profile_has_whole(&entry->batch, key->batch))
        return false;
    for (size_t f = 0; f < family_count(b, entry); f++) {
        const struct family *family = family_at(b, entry, f);
        if (!strcmp(family->text, key->family->text))
            return family->kind == FAMILY_CAPTURED || profile_has_whole(&entry->vocab, key->vocab);
    }
    return false;
}
