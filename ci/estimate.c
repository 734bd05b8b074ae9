#include "ci/estimate.h"

#include "ci/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK = 8, /* samples whose median is one value of the rank test, or one makeshift block */
    FEWEST_BLOCKS = 3 /* below, blocks are cut into chunks where they are long enough */
};

static const double *values_of(const struct sample_set *set, enum measure measure) {
    return measure == MEASURE_CYCLES ? set->cycles : set->time;
}

/* Memory of one estimate, carved from one allocation. */
struct work {
    double *centre; /* [draws] median log of the base's samples, NAN where it has none */
    int32_t draws;
    double *logs;   /* [samples] of one process */
    double *part;   /* [samples] */
    double *blocks; /* [samples] locations of blocks */
    double *rank[2];
    size_t rank_count[2];
};

static int32_t draws_of(const struct side *side) {
    int32_t draws = 0;
    for (size_t s = 0; s < side->count; s++)
        for (size_t i = 0; i < side->sets[s]->count; i++)
            if (side->sets[s]->draw[i] >= draws)
                draws = side->sets[s]->draw[i] + 1;
    return draws;
}

static size_t samples_of(const struct side *side) {
    size_t count = 0;
    for (size_t s = 0; s < side->count; s++)
        count += side->sets[s]->count;
    return count;
}

static bool work_make(struct work *work, const struct side *base, const struct side *new_side) {
    size_t left = samples_of(base), right = samples_of(new_side),
           most = left > right ? left : right;
    work->draws = draws_of(base);
    double *memory = malloc(((size_t)work->draws + 3 * most + left + right + 5) * sizeof *memory);
    if (!memory)
        return false;
    work->centre = memory;
    work->logs = work->centre + work->draws;
    work->part = work->logs + most;
    work->blocks = work->part + most;
    work->rank[0] = work->blocks + most;
    work->rank[1] = work->rank[0] + left;
    work->rank_count[0] = work->rank_count[1] = 0;
    return true;
}

static void find_centres(struct work *work, const struct side *base, enum measure measure) {
    for (int32_t draw = 0; draw < work->draws; draw++) {
        size_t used = 0;
        for (size_t s = 0; s < base->count; s++)
            for (size_t i = 0; i < base->sets[s]->count; i++)
                if (base->sets[s]->draw[i] == draw)
                    work->part[used++] = values_of(base->sets[s], measure)[i];
        work->centre[draw] = used ? log(median_of(work->part, used)) : (double)NAN;
    }
}

static double location_of(double *values, size_t count) {
    sort_ascending(values, count);
    return midmean_sorted(values, count);
}

/* Puts logs of a process's samples from `from` on that belong to one block into work->part;
 * returns where the next block begins. */
static size_t block_at(const struct work *work, const struct sample_set *set, size_t from,
                       size_t *used) {
    size_t at = from;
    for (*used = 0; at < set->count && set->block[at] == set->block[from]; at++)
        if (!isnan(work->logs[at]))
            work->part[(*used)++] = work->logs[at];
    return at;
}

static size_t locate_blocks(struct work *work, const struct sample_set *set, size_t longest) {
    size_t blocks = 0, used;
    for (size_t at = 0; at < set->count;) {
        at = block_at(work, set, at, &used);
        for (size_t from = 0; from < used; from += longest) {
            size_t length = used - from < longest ? used - from : longest;
            /* A last scrap would be a noisier value than the others. */
            if (from == 0 || 2 * length >= longest)
                work->blocks[blocks++] = location_of(work->part + from, length);
        }
    }
    return blocks;
}

static void add_ranks(struct work *work, const struct sample_set *set, int side) {
    size_t used;
    for (size_t at = 0; at < set->count;) {
        at = block_at(work, set, at, &used);
        for (size_t from = 0; from < used; from += CHUNK) {
            size_t length = used - from < CHUNK ? used - from : CHUNK;
            if (from == 0 || 2 * length >= CHUNK)
                work->rank[side][work->rank_count[side]++] = median_of(work->part + from, length);
        }
    }
}

/* Location of one process; false when none of its samples has a draw in common with the base. */
static bool locate_process(struct work *work, const struct sample_set *set, enum measure measure,
                           struct side_estimate *process) {
    const double *values = values_of(set, measure);
    for (size_t i = 0; i < set->count; i++)
        work->logs[i] = set->draw[i] >= 0 && set->draw[i] < work->draws
                            ? log(values[i]) - work->centre[set->draw[i]]
                            : (double)NAN;
    size_t blocks = locate_blocks(work, set, set->count);
    if (blocks > 0 && blocks < FEWEST_BLOCKS && set->count >= 3 * CHUNK)
        blocks = locate_blocks(work, set, CHUNK);
    if (blocks == 0)
        return false;
    process->location = location_of(work->blocks, blocks);
    process->variance = midmean_bootstrap_variance(work->blocks, blocks);
    process->df = blocks > 1 ? (double)(blocks - 1) : (double)NAN;
    process->blocks = blocks;
    process->samples = set->count;
    process->processes = 1;
    process->spread = (double)NAN;
    return true;
}

static bool locate_side(struct work *work, const struct side *side, enum measure measure, int which,
                        struct side_estimate *sum) {
    double mean = 0.0, squares = 0.0, variance = 0.0, df = 0.0;
    *sum =
        (struct side_estimate){.variance = (double)NAN, .df = (double)NAN, .spread = (double)NAN};
    for (size_t s = 0; s < side->count; s++) {
        struct side_estimate process;
        if (!values_of(side->sets[s], measure) ||
            !locate_process(work, side->sets[s], measure, &process))
            continue;
        add_ranks(work, side->sets[s], which);
        sum->processes++;
        sum->blocks += process.blocks;
        sum->samples += process.samples;
        double from_mean = process.location - mean;
        mean += from_mean / (double)sum->processes;
        squares += from_mean * (process.location - mean);
        variance += process.variance;
        df += process.df;
    }
    if (sum->processes == 0)
        return false;
    double n = (double)sum->processes;
    sum->location = mean;
    sum->variance = variance / (n * n);
    sum->df = df;
    if (sum->processes >= 3)
        sum->spread = squares / (n - 1.0);
    return true;
}

bool estimate_locations(const struct side *base, const struct side *new_side, enum measure measure,
                        bool higher_is_better, struct estimate *estimate) {
    struct work work;
    memset(estimate, 0, sizeof *estimate);
    if (!work_make(&work, base, new_side))
        return false;
    find_centres(&work, base, measure);
    estimate->valid = locate_side(&work, base, measure, 0, &estimate->base) &&
                      locate_side(&work, new_side, measure, 1, &estimate->new_side);
    double sign = higher_is_better ? -1.0 : 1.0;
    if (estimate->valid) {
        estimate->shift = sign * (estimate->new_side.location - estimate->base.location);
        const double *left = work.rank[0], *right = work.rank[1];
        size_t left_count = work.rank_count[0], right_count = work.rank_count[1];
        double greater = rank_test(left, left_count, right, right_count);
        double smaller = rank_test(right, right_count, left, left_count);
        estimate->rank_base = left_count;
        estimate->rank_new = right_count;
        estimate->rank_reliable = left_count >= RANK_LEAST && right_count >= RANK_LEAST;
        estimate->rank_worse = higher_is_better ? smaller : greater;
        estimate->rank_better = higher_is_better ? greater : smaller;
    }
    free(work.centre);
    return true;
}

/* Variance of a side: all of it, and the part that was estimated from its own values with df
 * degrees of freedom (the rest is known beforehand). */
struct side_noise {
    double all, estimated, df;
};

static struct side_noise noise_of(const struct side_estimate *side, double typical, double sigma,
                                  bool *lone) {
    double n = (double)side->processes, blocks = side->variance;
    struct side_noise noise = {.df = side->df};
    if (isnan(blocks)) {
        *lone = true;
        noise.all = (LONE_VALUE_SIGMA * LONE_VALUE_SIGMA + sigma * sigma) / n;
        return noise;
    }
    noise.all = fmax(blocks, typical / n) + sigma * sigma / n;
    noise.estimated = blocks;
    /* Several processes show their own noise; never believed to be less than the calibrated. */
    if (side->spread / n > noise.all)
        noise = (struct side_noise){side->spread / n, side->spread / n, n - 1.0};
    return noise;
}

void estimate_finish(struct estimate *estimate, double typical_variance, double process_sigma,
                     double common) {
    if (!estimate->valid)
        return;
    const struct side_estimate *sides[2] = {&estimate->base, &estimate->new_side};
    double total = 0.0, over_df = 0.0;
    for (int i = 0; i < 2; i++) {
        struct side_noise noise =
            noise_of(sides[i], typical_variance, process_sigma, &estimate->lone);
        total += noise.all;
        if (noise.df > 0.0)
            over_df += noise.estimated * noise.estimated / noise.df;
    }
    estimate->se = sqrt(total);
    /* Welch and Satterthwaite. */
    estimate->df = over_df > 0.0 ? total * total / over_df : (double)INFINITY;
    double shift = estimate->shift - common;
    double t = shift == 0.0 ? 0.0 : shift / estimate->se; /* se 0: infinite */
    estimate->p_worse = student_tail(t, estimate->df);
    estimate->p_better = student_tail(-t, estimate->df);
    double half = student_quantile(0.975, estimate->df) * estimate->se;
    estimate->low = estimate->shift - half;
    estimate->high = estimate->shift + half;
}

bool estimate_process(const struct sample_set *set, const struct sample_set *reference,
                      enum measure measure, struct side_estimate *side) {
    struct work work;
    const struct sample_set *sets[1] = {set}, *references[1] = {reference ? reference : set};
    struct side own = {sets, 1}, base = {references, 1};
    if (!work_make(&work, &base, &own))
        return false;
    find_centres(&work, &base, measure);
    bool good = values_of(set, measure) && locate_process(&work, set, measure, side);
    free(work.centre);
    return good;
}
