#include "bench/record.h"

#include "bench/summary.h"

#include <math.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

void run_result_free(struct run_result *result) {
    if (!result)
        return;
    for (size_t i = 0; result->cells && i < result->count; i++) {
        struct cell_record *record = &result->cells[i];
        json_decref(record->statistic);
        json_decref(record->conditions);
        free(record->draws);
        free(record->samples);
        free(record->kernels);
    }
    free(result->cells);
    json_decref(result->info.device);
    json_decref(result->info.host);
    json_decref(result->info.externals);
    json_decref(result->info.build);
    json_decref(result->info.plugins);
    json_decref(result->info.oracle_cache);
    memset(result, 0, sizeof *result);
}

void record_begin(struct cell_record *record, const struct cell *cell) {
    *record = (struct cell_record){.cell = cell,
                                   .draw = -1,
                                   .row = -1,
                                   .token = -1,
                                   .row_kept = -1,
                                   .row_oracle = -1,
                                   .events_ns = NAN};
    summary_of_samples(NULL, 0, &record->summary);
}

/* "-" or the 16 hex digits of the bit pattern, independent of locale and printing precision. */
static char *put_bits(char *text, double value) {
    static const char digits[] = "0123456789abcdef";
    *text++ = ' ';
    if (isnan(value)) {
        *text++ = '-';
        return text;
    }
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int shift = 60; shift >= 0; shift -= 4)
        *text++ = digits[bits >> shift & 15];
    return text;
}

void samples_hash(const struct sample *samples, size_t count, char sha256[65]) {
    unsigned char digest[EVP_MAX_MD_SIZE] = {0};
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    sha256[0] = '\0';
    if (!context || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(context);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        char line[128];
        int length = snprintf(line, 40, "%d %d", (int)samples[i].block, (int)samples[i].draw);
        char *end = put_bits(line + length, samples[i].time_ns);
        end = put_bits(end, samples[i].busy_ns);
        end = put_bits(end, samples[i].cycles);
        end = put_bits(end, samples[i].sm_mhz);
        *end++ = '\n';
        EVP_DigestUpdate(context, line, (size_t)(end - line));
    }
    if (EVP_DigestFinal_ex(context, digest, NULL) == 1)
        for (int i = 0; i < 32; i++)
            snprintf(sha256 + 2 * i, 3, "%02x", digest[i]);
    EVP_MD_CTX_free(context);
}

/* An expected refusal may have to name the rule that some row must break. */
static bool broke_rule(const struct cell_record *record, const char *name) {
    if (!name[0] || !strcmp(record->rule, name))
        return true;
    for (int rule = GATE_RULE_NONE + 1; rule < GATE_RULE_COUNT; rule++)
        if (record->rows_by_rule[rule] > 0 && !strcmp(gate_rule_name((enum gate_rule)rule), name))
            return true;
    return false;
}

static bool as_expected(const struct cell_record *record) {
    /* Past a variant's limits there is nothing to judge: shown, never an alarm. */
    if (record->verdict == GATE_UNSUPPORTED)
        return true;
    switch (record->cell->expect) {
    case EXPECT_ACCEPT:
        return record->verdict == GATE_ACCEPTED;
    case EXPECT_REJECT:
        return record->verdict == GATE_REJECTED && broke_rule(record, record->cell->expect_rule);
    case EXPECT_EITHER:
        return record->verdict == GATE_ACCEPTED ||
               (record->verdict == GATE_REJECTED && record->excused);
    }
    return false;
}

/* A program of --external that could not run here at all, against one that a shape is too much for.
 */
static bool is_absent(const struct cell_record *record) {
    return record->verdict == GATE_UNSUPPORTED && !strcmp(record->rule, "absent");
}

static double bytes_moved(const struct cell *cell) {
    double elements = (double)cell->batch * (double)cell->vocab;
    switch (cell->kind) {
    case CELL_TOPP:
        return cell->topp->output == TOPP_IDS ? 4.0 * elements + 8.0 * (double)cell->batch
                                              : 2.0 * 4.0 * elements;
    case CELL_GUMBEL:
        return 4.0 * elements + 8.0 * (double)cell->batch;
    case CELL_GUMBEL_STATISTIC:
        break;
    }
    return NAN;
}

void record_finish_cell(struct cell_record *record) {
    record->as_expected = record->gated && as_expected(record);
    record->bytes_moved = bytes_moved(record->cell);
    record->bytes_per_second = NAN;
    record->ratio_to_floor = NAN;
    record->samples_sha256[0] = '\0';
    if (!summary_of_samples(record->samples, record->sample_count, &record->summary))
        summary_of_samples(NULL, 0, &record->summary);
    if (record->summary.samples == 0)
        return;
    samples_hash(record->samples, record->sample_count, record->samples_sha256);
    record->bytes_per_second = record->bytes_moved / (record->summary.median_ns * 1e-9);
}

/* The same work with the boundary given, on one input. */
static bool is_floor_of(const struct cell *floor, const struct cell *cell) {
    return floor->p == cell->p && floor->l2 == cell->l2 && floor->launch == cell->launch;
}

/* Cells of one input stand together: [first, end). */
static void finish_ratios_of(struct cell_record *cells, size_t first, size_t end) {
    for (size_t i = first; i < end; i++) {
        const struct cell_record *floor = &cells[i];
        if (floor->cell->kind != CELL_TOPP || !floor->cell->topp->needs_boundary ||
            floor->summary.samples == 0)
            continue;
        for (size_t j = first; j < end; j++) {
            struct cell_record *record = &cells[j];
            if (record->cell->kind == CELL_TOPP && record->summary.samples > 0 &&
                is_floor_of(floor->cell, record->cell))
                record->ratio_to_floor = record->summary.median_ns / floor->summary.median_ns;
        }
    }
}

static void finish_ratios(struct run_result *result) {
    for (size_t first = 0, end; first < result->count; first = end) {
        end = first + 1;
        while (end < result->count &&
               cell_same_input(result->cells[first].cell, result->cells[end].cell))
            end++;
        finish_ratios_of(result->cells, first, end);
    }
}

void record_finish_run(struct run_result *result) {
    result->timed = result->unexpected = result->unmeasured = result->unfinished = 0;
    memset(result->by_verdict, 0, sizeof result->by_verdict);
    for (size_t i = 0; i < result->count; i++) {
        struct cell_record *record = &result->cells[i];
        record_finish_cell(record);
        if (!record->gated) {
            result->unfinished++;
            continue;
        }
        result->by_verdict[record->verdict]++;
        result->timed += record->summary.samples > 0;
        result->unexpected += !record->as_expected;
        result->unmeasured += record->unmeasured[0] != '\0' || is_absent(record);
    }
    finish_ratios(result);
}
