#include "bench/oracle_entry.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char schema[] = "topp-bench.oracle/1";

static void say(char *why, size_t bytes, const char *text) {
    snprintf(why, bytes, "%s", text);
}

/* Everything that decides the answer: a file that says the same is the answer. */
static json_t *describe(const struct oracle_entry *entry) {
    const struct logits *logits = entry->logits;
    char p_sha256[SHA256_HEX_BYTES];
    sha256_memory(entry->p, (size_t)logits->batch * sizeof *entry->p, p_sha256);
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:f, s:s}", "schema", schema, "oracle_sha256",
                     entry->identity->oracle_sha256, "exp_sha256", entry->identity->exp_sha256,
                     "input_sha256", logits->sha256, "batch", (json_int_t)logits->batch, "vocab",
                     (json_int_t)logits->vocab, "p", (double)entry->p[0], "p_sha256", p_sha256);
}

void oracle_entry_path(const char *dir, const struct oracle_entry *entry, char *path) {
    char key[SHA256_HEX_BYTES] = "";
    json_t *described = describe(entry);
    if (!described || json_sha256(described, key, NULL) != TB_OK)
        snprintf(key, sizeof key, "no-memory");
    json_decref(described);
    snprintf(path, ORACLE_PATH_BYTES, "%s/%.2s/%s.json", dir, key, key);
}

static json_t *row_to_json(const struct nucleus *row) {
    return json_pack("[s, I, I, f, f, f, f, f, f]", nucleus_status_name(row->status),
                     (json_int_t)row->kept, (json_int_t)row->boundary_token,
                     (double)row->boundary_logit, (double)row->max_logit, row->normalizer,
                     row->target, row->prefix, row->prefix_less);
}

static bool row_from_json(const json_t *json, float p, struct nucleus *row) {
    const char *name = NULL;
    json_int_t kept = 0, token = 0;
    double logit = 0.0, max = 0.0;
    int known = NUCLEUS_OK;
    if (json_unpack((json_t *)json, "[s, I, I, F, F, F, F, F, F!]", &name, &kept, &token, &logit,
                    &max, &row->normalizer, &row->target, &row->prefix, &row->prefix_less) != 0)
        return false;
    while (known <= NUCLEUS_AMBIGUOUS &&
           strcmp(nucleus_status_name((enum nucleus_status)known), name) != 0)
        known++;
    row->status = (enum nucleus_status)known;
    row->untouched = p >= 1.0f;
    row->kept = kept;
    row->boundary_token = token;
    row->boundary_logit = (float)logit;
    row->max_logit = (float)max;
    return known <= NUCLEUS_AMBIGUOUS && (double)row->boundary_logit == logit &&
           (double)row->max_logit == max;
}

/* What a linear pass sees of a row; counted without branches, so that compilers make it wide. */
struct row_view {
    uint32_t odd, finite;        /* NaN or +inf; greater than -inf */
    uint32_t above_max, at_max;  /* the greatest logit, as the answer has it */
    uint32_t above, at_boundary; /* greater than the boundary; equal to it, up to its token */
};

static struct row_view view_row(const float *row, uint32_t vocab, const struct nucleus *nucleus) {
    const float max = nucleus->max_logit, boundary = nucleus->boundary_logit;
    struct row_view view = {0};
    for (uint32_t t = 0; t < vocab; t++) {
        view.odd += !(row[t] < INFINITY);
        view.finite += row[t] > -INFINITY;
        view.above_max += row[t] > max;
        view.at_max += row[t] == max;
        view.above += row[t] > boundary;
    }
    for (uint32_t t = 0; t < vocab && (int64_t)t <= nucleus->boundary_token; t++)
        view.at_boundary += row[t] == boundary;
    return view;
}

static bool target_holds(const struct nucleus *nucleus, float p, uint32_t finite) {
    if (nucleus->target != (double)p * nucleus->normalizer)
        return false;
    if (nucleus->untouched)
        return nucleus->kept == finite;
    return nucleus->prefix >= nucleus->target &&
           (nucleus->kept == 1 || nucleus->prefix_less < nucleus->target);
}

/* Does this answer belong to this row? It cannot show that the sums are right, only that boundary,
 * count and order are those of these logits. */
static bool row_fits(const float *row, int64_t vocab, float p, const struct nucleus *nucleus) {
    const struct row_view view = view_row(row, (uint32_t)vocab, nucleus);
    switch (nucleus->status) {
    case NUCLEUS_NONFINITE_INPUT:
        return view.odd > 0;
    case NUCLEUS_EMPTY_ROW:
        return view.odd == 0 && view.finite == 0;
    case NUCLEUS_AMBIGUOUS:
        return view.odd == 0 && view.above_max == 0 && view.at_max > 0;
    case NUCLEUS_OK:
        break;
    }
    return view.odd == 0 && view.above_max == 0 && view.at_max > 0 && nucleus->kept > 0 &&
           nucleus->kept == (int64_t)view.above + view.at_boundary &&
           nucleus->boundary_token >= 0 && nucleus->boundary_token < vocab &&
           row[nucleus->boundary_token] == nucleus->boundary_logit &&
           target_holds(nucleus, p, view.finite);
}

static bool rows_from_json(const json_t *rows, const struct oracle_entry *entry,
                           struct nucleus *nuclei, char *why, size_t why_bytes) {
    const struct logits *logits = entry->logits;
    if (!json_is_array(rows) || json_array_size(rows) != (size_t)logits->batch) {
        say(why, why_bytes, "it has not one row for each of the input");
        return false;
    }
    for (int64_t i = 0; i < logits->batch; i++)
        if (!row_from_json(json_array_get(rows, (size_t)i), entry->p[i], &nuclei[i]) ||
            !row_fits(logits->data + i * logits->stride, logits->vocab, entry->p[i], &nuclei[i])) {
            snprintf(why, why_bytes, "row %lld does not fit the input", (long long)i);
            return false;
        }
    return true;
}

static bool seal_holds(json_t *file) {
    char hex[SHA256_HEX_BYTES];
    json_t *seal = json_incref(json_object_get(file, "sha256"));
    json_object_del(file, "sha256");
    const bool holds = json_is_string(seal) && json_sha256(file, hex, NULL) == TB_OK &&
                       !strcmp(hex, json_string_value(seal));
    json_decref(seal);
    return holds;
}

static bool asked_for(const json_t *file, const struct oracle_entry *entry) {
    json_t *described = describe(entry), *value;
    const char *key;
    bool same = described != NULL;
    json_object_foreach(described, key, value) {
        same = same && json_equal(value, json_object_get(file, key));
    }
    json_decref(described);
    return same;
}

enum oracle_found oracle_entry_read(const char *path, const struct oracle_entry *entry,
                                    struct nucleus *nuclei, char *why, size_t why_bytes) {
    json_error_t fault;
    why[0] = '\0';
    FILE *stream = fopen(path, "re");
    if (!stream && (errno == ENOENT || errno == ENOTDIR))
        return ORACLE_ABSENT;
    if (!stream) {
        say(why, why_bytes, strerror(errno));
        return ORACLE_DAMAGED;
    }
    json_t *file = json_loadf(stream, JSON_REJECT_DUPLICATES, &fault);
    fclose(stream);
    if (!file)
        snprintf(why, why_bytes, "line %d: %s", fault.line, fault.text);
    else if (!seal_holds(file))
        say(why, why_bytes, "its hash is not that of its content");
    else if (!asked_for(file, entry))
        say(why, why_bytes, "it answers another question than its name says");
    else
        rows_from_json(json_object_get(file, "rows"), entry, nuclei, why, why_bytes);
    json_decref(file);
    return why[0] ? ORACLE_DAMAGED : ORACLE_FOUND;
}

static json_t *entry_to_json(const struct oracle_entry *entry, const struct nucleus *nuclei) {
    char hex[SHA256_HEX_BYTES];
    json_t *file = describe(entry), *rows = json_array();
    bool good = file && rows;
    for (int64_t i = 0; good && i < entry->logits->batch; i++)
        good = json_array_append_new(rows, row_to_json(&nuclei[i])) == 0;
    good = good && json_object_set(file, "rows", rows) == 0 &&
           json_sha256(file, hex, NULL) == TB_OK &&
           json_object_set_new(file, "sha256", json_string(hex)) == 0;
    json_decref(rows);
    if (good)
        return file;
    json_decref(file);
    return NULL;
}

bool oracle_entry_write(const char *path, const struct oracle_entry *entry,
                        const struct nucleus *nuclei, char *why, size_t why_bytes) {
    char trial[ORACLE_PATH_BYTES + 16], folder[ORACLE_PATH_BYTES];
    json_t *file = entry_to_json(entry, nuclei);
    if (!file) {
        say(why, why_bytes, "no memory, or a figure that is not finite");
        return false;
    }
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    const int refused = mkdir(folder, 0777) != 0 && errno != EEXIST ? errno : 0;
    snprintf(trial, sizeof trial, "%s.XXXXXX", path);
    errno = 0;
    const int descriptor = mkstemp(trial);
    FILE *stream = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    bool good = stream && fchmod(descriptor, 0644) == 0 &&
                json_dumpf(file, stream, JSON_COMPACT | JSON_REAL_PRECISION(17)) == 0 &&
                fputc('\n', stream) != EOF;
    json_decref(file);
    if (stream)
        good = fclose(stream) == 0 && good;
    else if (descriptor >= 0)
        close(descriptor);
    good = good && rename(trial, path) == 0;
    if (!good) {
        if (refused && errno == ENOENT)
            errno = refused;
        say(why, why_bytes, errno ? strerror(errno) : "it could not be written");
        if (descriptor >= 0)
            unlink(trial);
    }
    return good;
}
