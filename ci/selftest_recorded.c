/* Runs of recorded cells: pairs of processes of one binary, where every alarm is false. */
#include "ci/selftest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEWEST_SIGMA = 3, PRIOR_WEIGHT = 4 };
#define LEAST_SIGMA 0.0005

/* The recorded samples: cell-major, [cell * processes + process]. */
struct recording {
    const struct results_set *set;
    const struct compare_options *options;
    struct sample_set *samples; /* borrowed arrays, or halves of them */
    struct sample_set *halves;  /* owned arrays of the halves; NULL otherwise */
    const char **names;
    size_t cells, processes;
    struct verdict *located, *judged;
    struct random_state random;
};

void recorded_result_free(struct recorded_result *result) {
    free(result->cells);
    memset(result, 0, sizeof *result);
}

static void recording_free(struct recording *recording) {
    for (size_t i = 0; recording->halves && i < recording->cells * recording->processes; i++) {
        free(recording->halves[i].time);
        free(recording->halves[i].cycles);
        free(recording->halves[i].block);
        free(recording->halves[i].draw);
    }
    free(recording->halves);
    free(recording->samples);
    free(recording->names);
    free(recording->located);
    free(recording->judged);
}

/* Blocks of one parity, as a process of its own. */
static bool half_of(const struct sample_set *set, int parity, struct sample_set *half) {
    half->time = malloc((set->count + 1) * sizeof *half->time);
    half->cycles = set->cycles ? malloc((set->count + 1) * sizeof *half->cycles) : NULL;
    half->block = malloc((set->count + 1) * sizeof *half->block);
    half->draw = malloc((set->count + 1) * sizeof *half->draw);
    if (!half->time || (set->cycles && !half->cycles) || !half->block || !half->draw)
        return false;
    for (size_t i = 0; i < set->count; i++) {
        if (set->block[i] % 2 != parity)
            continue;
        half->time[half->count] = set->time[i];
        if (half->cycles)
            half->cycles[half->count] = set->cycles[i];
        half->block[half->count] = set->block[i];
        half->draw[half->count++] = set->draw[i];
    }
    return true;
}

/* Cells that every process measured. */
static enum tb_status collect(const struct results_set *set, struct recording *recording,
                              struct tb_error *error) {
    const struct results *first = &set->files[0];
    bool halve = set->count == 1;
    recording->processes = halve ? 2 : set->count;
    size_t most = first->count * recording->processes + 1;
    recording->samples = calloc(most, sizeof *recording->samples);
    recording->names = calloc(first->count + 1, sizeof *recording->names);
    recording->halves = halve ? calloc(most, sizeof *recording->halves) : NULL;
    bool good = recording->samples && recording->names && (!halve || recording->halves);
    for (size_t c = 0; good && c < first->count; c++) {
        struct sample_set *row = &recording->samples[recording->cells * recording->processes];
        bool all = true;
        for (size_t p = 0; good && all && p < recording->processes; p++) {
            const struct result_cell *cell =
                results_find(&set->files[halve ? 0 : p], first->cells[c].name);
            all = cell && cell->samples.count > 0;
            if (all && halve) {
                struct sample_set *half =
                    &recording->halves[recording->cells * recording->processes + p];
                good = half_of(&cell->samples, (int)p, half);
                row[p] = *half;
                all = half->count > 0;
            } else if (all) {
                row[p] = cell->samples;
            }
        }
        if (all)
            recording->names[recording->cells++] = first->cells[c].name;
    }
    recording->located = calloc(most, sizeof *recording->located);
    recording->judged = calloc(most, sizeof *recording->judged);
    if (!good || !recording->located || !recording->judged)
        return tb_fail(error, TB_NO_MEMORY, "no memory for the samples");
    if (recording->cells == 0)
        return tb_fail(error, TB_UNAVAILABLE,
                       "%s: no cell has samples in every file (%zu files): are they of one sweep?",
                       set->name, set->count);
    return TB_OK;
}

static const struct sample_set *samples_at(const struct recording *recording, size_t cell,
                                           size_t process) {
    return &recording->samples[cell * recording->processes + process];
}

/* Variance between processes beyond what their blocks explain; NAN when too few. */
static double between_of(const struct recording *recording, size_t cell, enum measure measure,
                         double *within) {
    double mean = 0.0, squares = 0.0, blocks = 0.0, n = 0.0;
    for (size_t p = 0; p < recording->processes; p++) {
        struct side_estimate side;
        if (measure == MEASURE_CYCLES &&
            !(samples_at(recording, cell, p)->cycles && samples_at(recording, cell, 0)->cycles))
            return (double)NAN;
        if (!estimate_process(samples_at(recording, cell, p), samples_at(recording, cell, 0),
                              measure, &side))
            continue;
        double from_mean = side.location - mean;
        n += 1.0;
        mean += from_mean / n;
        squares += from_mean * (side.location - mean);
        blocks += isnan(side.variance) ? 0.0 : side.variance;
    }
    *within = sqrt(blocks / n);
    return n >= FEWEST_SIGMA ? fmax(0.0, squares / (n - 1.0) - blocks / n) : (double)NAN;
}

static bool find_noise(const struct recording *recording, struct recorded_result *result) {
    double *scratch = malloc((recording->cells + 1) * sizeof *scratch), within;
    size_t used = 0;
    if (!scratch)
        return false;
    for (size_t c = 0; c < recording->cells; c++) {
        struct recorded_cell *cell = &result->cells[c];
        cell->name = recording->names[c];
        cell->between_cycles = sqrt(between_of(recording, c, MEASURE_CYCLES, &within));
        cell->between = sqrt(between_of(recording, c, MEASURE_TIME, &cell->within));
        if (!isnan(cell->between) && !result->halves)
            scratch[used++] = cell->between;
    }
    double typical = used ? fmax(LEAST_SIGMA, median_of(scratch, used)) : PROCESS_SIGMA;
    double n = (double)recording->processes - 1.0;
    for (size_t c = 0; c < recording->cells; c++) {
        struct recorded_cell *cell = &result->cells[c];
        double own = fmax(cell->between, isnan(cell->between_cycles) ? 0.0 : cell->between_cycles);
        cell->sigma =
            used && !isnan(own)
                ? sqrt((PRIOR_WEIGHT * typical * typical + n * own * own) / (PRIOR_WEIGHT + n))
                : typical;
        cell->sigma = fmax(LEAST_SIGMA, cell->sigma);
    }
    result->sigma = typical;
    free(scratch);
    return true;
}

static bool locate(const struct sample_set *base, const struct sample_set *new_side,
                   const char *name, struct verdict *verdict) {
    const struct sample_set *left[1] = {base}, *right[1] = {new_side};
    struct side sides[2] = {{left, 1}, {right, 1}};
    memset(verdict, 0, sizeof *verdict);
    verdict->name = name;
    return estimate_locations(&sides[0], &sides[1], MEASURE_TIME, false, &verdict->time) &&
           (!base->cycles || !new_side->cycles ||
            estimate_locations(&sides[0], &sides[1], MEASURE_CYCLES, false, &verdict->cycles));
}

static bool judge(struct recording *recording, const struct verdict *located, size_t count,
                  const struct compare_options *options) {
    struct comparison comparison = {0};
    memcpy(recording->judged, located, count * sizeof *located);
    return compare_judge(recording->judged, count, options, &comparison);
}

static bool any_alarm(const struct recording *recording, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (recording->judged[i].outcome == OUTCOME_REGRESSED)
            return true;
    return false;
}

static bool locate_pair(struct recording *recording, size_t base, size_t new_side) {
    for (size_t c = 0; c < recording->cells; c++)
        if (!locate(samples_at(recording, c, base), samples_at(recording, c, new_side),
                    recording->names[c], &recording->located[c]))
            return false;
    return true;
}

/* The k-th ordered pair of different processes, in an order that mixes them. */
static void pair_at(size_t processes, size_t k, size_t *base, size_t *new_side) {
    size_t round = 1 + (k / processes) % (processes - 1);
    *base = k % processes;
    *new_side = (*base + round) % processes;
}

static bool run_pairs(struct recording *recording, const struct recorded_plan *plan,
                      struct recorded_result *result) {
    size_t all = recording->processes * (recording->processes - 1);
    size_t pairs = plan->pairs && plan->pairs < all ? plan->pairs : all;
    struct compare_options uncalibrated = *recording->options;
    uncalibrated.calibration = NULL;
    for (size_t k = 0; k < pairs; k++) {
        size_t base, new_side;
        pair_at(recording->processes, k * all / pairs, &base, &new_side);
        if (!locate_pair(recording, base, new_side) ||
            !judge(recording, recording->located, recording->cells, recording->options))
            return false;
        result->alarms.hits += any_alarm(recording, recording->cells);
        result->alarms.trials++;
        if (!judge(recording, recording->located, recording->cells, &uncalibrated))
            return false;
        result->alarms_default.hits += any_alarm(recording, recording->cells);
        result->alarms_default.trials++;
    }
    return true;
}

static void random_pair(struct recording *recording, size_t *base, size_t *new_side) {
    *base = random_below(&recording->random, recording->processes);
    *new_side = random_below(&recording->random, recording->processes - 1);
    *new_side += *new_side >= *base;
}

static bool run_wide(struct recording *recording, const struct recorded_plan *plan,
                     struct recorded_result *result) {
    struct verdict *located = calloc(plan->wide_cells + 1, sizeof *located);
    struct verdict *judged = calloc(plan->wide_cells + 1, sizeof *judged), *own = recording->judged;
    bool good = located && judged;
    recording->judged = judged;
    for (size_t r = 0; good && r < plan->wide_runs; r++) {
        for (size_t i = 0; good && i < plan->wide_cells; i++) {
            size_t cell = random_below(&recording->random, recording->cells), base, new_side;
            random_pair(recording, &base, &new_side);
            good = locate(samples_at(recording, cell, base), samples_at(recording, cell, new_side),
                          recording->names[cell], &located[i]);
        }
        good = good && judge(recording, located, plan->wide_cells, recording->options);
        result->alarms_wide.hits += good && any_alarm(recording, plan->wide_cells);
        result->alarms_wide.trials += good;
    }
    recording->judged = own;
    free(located);
    free(judged);
    return good;
}

static bool slowed(const struct sample_set *set, double by, struct sample_set *slow) {
    *slow = *set;
    slow->time = malloc((set->count + 1) * sizeof *slow->time);
    slow->cycles = set->cycles ? malloc((set->count + 1) * sizeof *slow->cycles) : NULL;
    if (!slow->time || (set->cycles && !slow->cycles)) {
        free(slow->time);
        free(slow->cycles);
        return false;
    }
    for (size_t i = 0; i < set->count; i++) {
        slow->time[i] = set->time[i] * by;
        if (slow->cycles)
            slow->cycles[i] = set->cycles[i] * by;
    }
    return true;
}

static bool plant(struct recording *recording, size_t cell, size_t base, size_t new_side,
                  int effect, struct recorded_result *result) {
    struct sample_set slow;
    struct verdict kept = recording->located[cell];
    if (!slowed(samples_at(recording, cell, new_side), 1.0 + selftest_effects[effect], &slow))
        return false;
    bool good = locate(samples_at(recording, cell, base), &slow, recording->names[cell],
                       &recording->located[cell]) &&
                judge(recording, recording->located, recording->cells, recording->options);
    free(slow.time);
    free(slow.cycles);
    struct rate *rate = &result->cells[cell].caught[effect];
    rate->hits += good && recording->judged[cell].outcome == OUTCOME_REGRESSED;
    rate->trials += good;
    recording->located[cell] = kept;
    return good;
}

/* A change that is caught in 95% of runs: what must be exceeded, and 1.645 errors more. */
static double smallest_of(const struct estimate *estimate, size_t cells,
                          const struct compare_options *options) {
    double needed = student_quantile(1.0 - options->fdr / (double)cells, estimate->df);
    double threshold = fmax(log1p(options->margin), needed * estimate->se);
    return expm1(threshold + 1.645 * estimate->se);
}

/* Every trial judges the whole run anew, so many cells at full trials would take hours: then each
 * trial plants in every stride-th cell alone, another time in others. */
static size_t plant_stride(const struct recording *recording, const struct recorded_plan *plan) {
    const double judged =
        (double)plan->plants * EFFECTS * (double)recording->cells * (double)recording->cells;
    return plan->most_judged ? (size_t)fmax(1.0, ceil(judged / (double)plan->most_judged)) : 1;
}

static bool run_plants(struct recording *recording, const struct recorded_plan *plan,
                       struct recorded_result *result) {
    const size_t stride = plant_stride(recording, plan);
    for (size_t t = 0; t < plan->plants; t++) {
        size_t base, new_side;
        random_pair(recording, &base, &new_side);
        if (!locate_pair(recording, base, new_side) ||
            !judge(recording, recording->located, recording->cells, recording->options))
            return false;
        for (size_t c = 0; c < recording->cells; c++) {
            double smallest =
                smallest_of(&recording->judged[c].time, recording->cells, recording->options);
            result->cells[c].smallest += smallest / (double)plan->plants;
        }
        for (size_t c = t % stride; c < recording->cells; c += stride)
            for (int e = 0; e < EFFECTS; e++)
                if (!plant(recording, c, base, new_side, e, result))
                    return false;
    }
    return true;
}

static int by_name(const void *left, const void *right) {
    return strcmp(((const struct calibration_cell *)left)->name,
                  ((const struct calibration_cell *)right)->name);
}

/* The calibration that was just found is what is tested. */
static bool calibrate(const struct recorded_result *result, struct calibration *calibration) {
    *calibration = (struct calibration){.sigma = result->sigma};
    calibration->cells = calloc(result->count + 1, sizeof *calibration->cells);
    if (!calibration->cells)
        return false;
    for (size_t c = 0; c < result->count; c++)
        calibration->cells[c] =
            (struct calibration_cell){(char *)result->cells[c].name, result->cells[c].sigma};
    calibration->count = result->count;
    qsort(calibration->cells, calibration->count, sizeof *calibration->cells, by_name);
    return true;
}

enum tb_status selftest_recorded(const struct results_set *set, const struct recorded_plan *plan,
                                 const struct compare_options *options,
                                 struct recorded_result *result, struct tb_error *error) {
    struct compare_options own = *options;
    struct recording recording = {.set = set, .options = &own};
    struct calibration calibration = {0};
    memset(result, 0, sizeof *result);
    random_seed(&recording.random, plan->seed);
    enum tb_status status = collect(set, &recording, error);
    if (status == TB_OK) {
        result->processes = set->count;
        result->halves = set->count == 1;
        result->count = recording.cells;
        result->wide_cells = plan->wide_cells;
        result->cells = calloc(recording.cells + 1, sizeof *result->cells);
        bool good =
            result->cells && find_noise(&recording, result) && calibrate(result, &calibration);
        if (!own.calibration)
            own.calibration = &calibration;
        if (!good || !run_pairs(&recording, plan, result) || !run_wide(&recording, plan, result) ||
            !run_plants(&recording, plan, result))
            status = tb_fail(error, TB_NO_MEMORY, "no memory for %zu cells", recording.cells);
    }
    free(calibration.cells);
    recording_free(&recording);
    if (status != TB_OK)
        recorded_result_free(result);
    return status;
}
