/* CUPTI records -> samples: every record is accounted for, or nothing is believed. */
#include "bench/device_cuda.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct walk {
    const struct cupti_record *records;
    size_t count, at;
    uint64_t not_before_ns;
    char *why;
    size_t why_bytes;
};

static bool refuse(struct walk *walk, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool refuse(struct walk *walk, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(walk->why, walk->why_bytes, format, arguments);
    va_end(arguments);
    return false;
}

static bool is_stamp(const struct cupti_record *record) {
    return record->kind == CUPTI_RECORD_KERNEL && strstr(record->name, CUDA_STAMP_KERNEL);
}

size_t cuda_find_stamp(const struct cupti_record *records, size_t count, size_t nth) {
    for (size_t i = 0; i < count; i++)
        if (is_stamp(&records[i]) && nth-- == 0)
            return i;
    return count;
}

static bool check_times(struct walk *walk, const struct cupti_record *record) {
    if (record->start_ns == 0 || record->end_ns == 0)
        return refuse(walk, "CUPTI gave %s no timestamps", record->name);
    if (record->end_ns < record->start_ns)
        return refuse(walk, "CUPTI's timestamps of %s are reversed", record->name);
    if (record->start_ns < walk->not_before_ns)
        return refuse(walk, "a record of %s is %" PRIu64 " ns older than its launch (left over)",
                      record->name, walk->not_before_ns - record->start_ns);
    return true;
}

static bool check_batch(struct walk *walk, size_t dropped, size_t samples) {
    if (dropped)
        return refuse(walk, "CUPTI dropped %zu records", dropped);
    size_t stamps = 0;
    for (size_t i = 0; i < walk->count; i++) {
        if (!check_times(walk, &walk->records[i]))
            return false;
        stamps += is_stamp(&walk->records[i]);
    }
    if (stamps != STAMPS_PER_SAMPLE * samples)
        return refuse(walk, "CUPTI saw %zu of the %zu clock stamps launched (%zu records in all)",
                      stamps, STAMPS_PER_SAMPLE * samples, walk->count);
    return true;
}

/* Steps to the sample's last stamp. [*first, *last) are the records of the call itself. */
static bool next_sample(struct walk *walk, size_t sample, size_t *first, size_t *last) {
    if (walk->at >= walk->count || !is_stamp(&walk->records[walk->at]))
        return refuse(walk,
                      "%s ran between samples %zu and %zu: another program or thread uses "
                      "this device through this process",
                      walk->at < walk->count ? walk->records[walk->at].name : "nothing", sample,
                      sample + 1);
    for (walk->at++; !is_stamp(&walk->records[walk->at]); walk->at++)
        ; /* the input restored, L2 flushed */
    *first = ++walk->at;
    while (!is_stamp(&walk->records[walk->at]))
        walk->at++;
    *last = walk->at++;
    return true;
}

static bool same_kernel(const struct cupti_record *record, const struct kernel_evidence *kernel) {
    return !strncmp(record->name, kernel->name, sizeof kernel->name - 1) &&
           !memcmp(record->grid, kernel->grid, sizeof record->grid) &&
           !memcmp(record->block, kernel->block, sizeof record->block);
}

static bool check_path(struct walk *walk, const struct chunk_judge *judge, size_t sample,
                       size_t first, size_t last) {
    const struct cupti_record *records = walk->records;
    size_t seen = last - first;
    for (size_t i = 0; i < seen; i++) {
        const struct cupti_record *record = &records[first + i];
        if (i >= judge->expected_count || !same_kernel(record, &judge->expected[i]))
            return refuse(walk, "sample %zu ran %s as its kernel %zu where the counted run had %s",
                          sample, record->name, i + 1,
                          i < judge->expected_count ? judge->expected[i].name : "none");
        for (size_t j = 0; j < i; j++)
            if (!judge->graph && records[first + j].correlation == record->correlation)
                return refuse(walk, "two launches of sample %zu carry one correlation id", sample);
        if (judge->graph && record->correlation != records[first].correlation)
            return refuse(walk, "the kernels of sample %zu's graph carry several correlation ids",
                          sample);
    }
    if (seen != judge->expected_count)
        return refuse(walk, "sample %zu ran %zu kernels where the counted run had %zu", sample,
                      seen, judge->expected_count);
    return true;
}

bool cuda_judge_chunk(const struct chunk_judge *judge, const struct cupti_record *records,
                      size_t record_count, size_t dropped, struct sample *samples, size_t count,
                      char *why, size_t why_bytes) {
    struct walk walk = {records, record_count, 0, judge->not_before_ns, why, why_bytes};
    if (!check_batch(&walk, dropped, count))
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t first, last;
        if (!next_sample(&walk, i, &first, &last) || !check_path(&walk, judge, i, first, last))
            return false;
        uint64_t end = 0;
        samples[i].busy_ns = 0.0;
        for (size_t j = first; j < last; j++) {
            samples[i].busy_ns += (double)(records[j].end_ns - records[j].start_ns);
            if (records[j].end_ns > end)
                end = records[j].end_ns;
        }
        samples[i].time_ns = (double)(end - records[first].start_ns);
    }
    if (walk.at != walk.count)
        return refuse(&walk, "%s ran after the last sample", records[walk.at].name);
    return true;
}

bool cuda_evidence_of(const struct cupti_record *records, size_t record_count, size_t dropped,
                      struct kernel_evidence **evidence, size_t *count, char *why,
                      size_t why_bytes) {
    struct walk walk = {records, record_count, 0, 0, why, why_bytes};
    size_t first = 0, last = 0;
    *evidence = NULL;
    *count = 0;
    if (record_count == 0)
        return refuse(&walk, "CUPTI returned no device records at all: is it blocked here? say "
                             "--timer events to time without it");
    if (!check_batch(&walk, dropped, 1) || !next_sample(&walk, 0, &first, &last))
        return false;
    if (first == last)
        return refuse(&walk, "the call launched nothing that CUPTI saw (%zu records)",
                      record_count);
    *evidence = calloc(last - first, sizeof **evidence);
    if (!*evidence)
        return refuse(&walk, "no memory for the kernel evidence");
    for (size_t i = first; i < last; i++) {
        struct kernel_evidence *kernel = &(*evidence)[(*count)++];
        snprintf(kernel->name, sizeof kernel->name, "%s", records[i].name);
        memcpy(kernel->grid, records[i].grid, sizeof kernel->grid);
        memcpy(kernel->block, records[i].block, sizeof kernel->block);
        kernel->shared_bytes = records[i].shared_bytes;
        kernel->registers = records[i].registers;
    }
    return true;
}
