/* The split search: everything of stock, patched and patched_fine that is not a sweep over logits.
 *
 * A row is cut into S slices. `stats` leaves one split_stats per slice; each of up to 5 `step`
 * sweeps leaves one split_step per slice, the masses above 8 pivots. From these partials alone,
 * pure binary32 functions decide the next pivots and at last the cut; nothing else is kept between
 * sweeps, so every block of a GPU launch may recompute the chain and come to the same bits.
 * Method: the split top-k/top-p kernels of the library under test: release 0.32.0 (stock), its
 * merged fix (patched) and release 0.33.0 (patched_fine). Their faults are kept: they are what is
 * measured.
 *
 * Usable from C11 and from CUDA C++, on both sides. The includer may define SPLIT_EXPF,
 * SPLIT_LOGF and SPLIT_DIV before including; every exp, log and quotient goes through them. No
 * operation here is contracted into a fused multiply-add. */
#ifndef TOPP_KERNELS_SPLIT_SEARCH_H
#define TOPP_KERNELS_SPLIT_SEARCH_H

#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define SPLIT_FN static __host__ __device__ __forceinline__
#else
#define SPLIT_FN static inline
#endif
#ifndef SPLIT_EXPF
#define SPLIT_EXPF(x) expf(x)
#endif
#ifndef SPLIT_LOGF
#define SPLIT_LOGF(x) logf(x)
#endif
#ifndef SPLIT_DIV
#define SPLIT_DIV(a, b) ((a) / (b))
#endif
/* nvcc contracts a * b - c by default; the rounding of the product is part of the method. */
#ifdef SPLIT_MUL
#elif defined(__CUDA_ARCH__)
#define SPLIT_MUL(a, b) __fmul_rn((a), (b))
#else
#define SPLIT_MUL(a, b) ((a) * (b))
#endif

enum {
    SPLIT_PIVOTS = 8,        /* F: pivots of a round */
    SPLIT_ROUNDS = 5,        /* R: greatest number of step sweeps */
    SPLIT_MAX_SLICES = 32,   /* greatest S */
    SPLIT_MAX_BATCH = 64,    /* greatest batch that upstream gives to this path */
    SPLIT_STATS_TILE = 8192, /* elements that a block takes at once in each sweep */
    SPLIT_STEP_TILE = 2048,
    SPLIT_MASK_TILE = 8192,
    SPLIT_FINE_SLICE = 7168, /* patched_fine: slices are halved while they stay this long */
};
#define SPLIT_BAND 1e-9f /* probabilities strictly nearer than this count as tied */

/* ---- Slices ---- */

/* S: the largest power of two <= 32 with S * batch <= sm_count, at least 1; with fine also doubled
 * while slices stay at least SPLIT_FINE_SLICE long. */
SPLIT_FN int split_slices(int64_t batch, int64_t vocab, int sm_count, int fine) {
    int s = 1;
    while (2 * s <= SPLIT_MAX_SLICES && 2 * s * batch <= sm_count)
        s *= 2;
    while (fine && 2 * s <= SPLIT_MAX_SLICES && (int64_t)2 * s * SPLIT_FINE_SLICE <= vocab)
        s *= 2;
    return s;
}

/* First token of slice 0 .. S; slice i is [begin(i), begin(i + 1)), possibly empty. */
SPLIT_FN int64_t split_slice_begin(int64_t vocab, int slices, int slice) {
    const int64_t length = (vocab + slices - 1) / slices, begin = length * slice;
    return begin < vocab ? begin : vocab;
}

/* ---- Partials, one per slice ---- */

struct split_stats {
    float max;      /* greatest logit, -inf if none */
    float sum;      /* sum of exp(x - max) over x > -inf, 0 if none */
    float min;      /* smallest finite logit, +inf if none */
    int32_t finite; /* how many finite logits */
};

struct split_step {
    float mass[SPLIT_PIVOTS];    /* sum of the P above pivot f */
    float min[SPLIT_PIVOTS];     /* smallest such P, 1 if none */
    int32_t count[SPLIT_PIVOTS]; /* how many such P are within SPLIT_BAND of it, 0 if none */
};

/* Merges a tile's smallest P and its count into a slice's. A smaller minimum takes over even when
 * it lies within the band: the count before it is forgotten (the original's imprecision). */
SPLIT_FN void split_merge_tile(float *min, int32_t *count, float tile_min, int32_t tile_count) {
    if (tile_min < *min) {
        *min = tile_min;
        *count = tile_count;
    } else if (tile_min - *min < SPLIT_BAND) {
        *count += tile_count;
    }
}

/* ---- Row combine ---- */

struct split_row {
    float max;     /* M */
    float z;       /* Z = sum of exp(x - M) */
    float lo, hi;  /* smallest and greatest probability: the first bracket */
    int32_t whole; /* 1: no search, the row stays as it is */
};

/* The row's bracket from its greatest and smallest logit, normalizer and count. */
SPLIT_FN struct split_row split_row_of(float max, float min, float z, int64_t finite) {
    struct split_row row;
    row.max = max;
    row.z = z;
    row.lo = row.hi = 0.0f;
    row.whole = z <= 0.0f || finite < 1;
    if (row.whole)
        return row;
    row.hi = SPLIT_DIV(1.0f, z);
    row.lo = SPLIT_DIV(SPLIT_EXPF(min - max), z);
    row.lo = row.lo > 1e-30f ? row.lo : 1e-30f;
    row.whole = row.hi <= SPLIT_MUL(row.lo, 1.000001f);
    return row;
}

/* Combines a row's slices; whole when nothing is valid or all are (nearly) equal. */
SPLIT_FN struct split_row split_combine_row(const struct split_stats *stats, int slices) {
    float max = -INFINITY, min = INFINITY, z = 0.0f;
    int64_t finite = 0;
    for (int s = 0; s < slices; s++) {
        max = stats[s].max > max ? stats[s].max : max;
        min = stats[s].min < min ? stats[s].min : min;
        finite += stats[s].finite;
    }
    for (int s = 0; s < slices; s++)
        if (stats[s].sum != 0.0f) /* an empty slice has max -inf: exp(-inf + inf) is no number */
            z += SPLIT_MUL(stats[s].sum, SPLIT_EXPF(stats[s].max - max));
    return split_row_of(max, min, z, finite);
}

/* The probability of a logit: the P of the sweeps. */
SPLIT_FN float split_probability(float x, float max, float z) {
    return SPLIT_DIV(SPLIT_EXPF(x - max), z);
}

/* ---- Search ---- */

/* What is known of one pivot of one round, merged over the slices. */
struct split_pivot {
    float pivot;
    float mass;           /* mass above pivot */
    float gmin;           /* smallest P above pivot */
    int32_t n;            /* how many P are tied with gmin */
    int32_t round, index; /* where its partials lie */
};

struct split_search {
    float lo, hi;            /* bracket of the pivots to come */
    int32_t done;            /* 1: later partials are ignored */
    int32_t has_best;        /* 1: best is set */
    struct split_pivot best; /* done: the chosen pivot; before: the largest with mass >= p */
};

SPLIT_FN struct split_search split_search_begin(const struct split_row *row) {
    struct split_search search;
    search.lo = row->lo;
    search.hi = row->hi;
    search.done = row->whole;
    search.has_best = 0;
    search.best.pivot = search.best.mass = search.best.gmin = 0.0f;
    search.best.n = search.best.round = search.best.index = 0;
    return search;
}

/* Ladder: pivot f of 0 .. SPLIT_PIVOTS - 1, geometric between lo and hi, both excluded. */
SPLIT_FN float split_ladder(float lo, float hi, int f) {
    const float width = SPLIT_MUL(SPLIT_LOGF(SPLIT_DIV(hi, lo)), (float)(f + 1));
    const float step = SPLIT_DIV(width, (float)(SPLIT_PIVOTS + 1));
    return SPLIT_MUL(lo, SPLIT_EXPF(step));
}

/* Merges pivot f of one round over its slices: partials[0 .. slices). */
SPLIT_FN struct split_pivot split_merge_slices(const struct split_step *partials, int slices,
                                               int round, int f, float pivot) {
    struct split_pivot merged;
    merged.pivot = pivot;
    merged.mass = 0.0f;
    merged.gmin = 1.0f;
    merged.n = 0;
    merged.round = round;
    merged.index = f;
    for (int s = 0; s < slices; s++) {
        merged.mass += partials[s].mass[f];
        merged.gmin = partials[s].min[f] < merged.gmin ? partials[s].min[f] : merged.gmin;
    }
    for (int s = 0; s < slices; s++)
        if (partials[s].min[f] - merged.gmin < SPLIT_BAND)
            merged.n += partials[s].count[f];
    return merged;
}

/* 1 when the cut lies among the tokens tied with this pivot's gmin. */
SPLIT_FN int split_pivot_ok(const struct split_pivot *m, float p) {
    return m->mass >= p && m->mass - SPLIT_MUL(m->gmin, (float)m->n) < p;
}

/* One round's decision from its SPLIT_PIVOTS merged pivots (ascending in f). */
SPLIT_FN void split_search_round(struct split_search *search, const struct split_pivot *merged,
                                 float p) {
    if (search->done)
        return;
    for (int f = SPLIT_PIVOTS - 1; f >= 0; f--)
        if (split_pivot_ok(&merged[f], p)) {
            search->best = merged[f];
            search->has_best = search->done = 1;
            return;
        }
    for (int f = 0; f < SPLIT_PIVOTS; f++) {
        const float pivot = merged[f].pivot;
        if (merged[f].mass >= p) {
            if (!search->has_best || pivot > search->best.pivot) {
                search->best = merged[f];
                search->has_best = 1;
            }
            search->lo = pivot > search->lo ? pivot : search->lo;
        } else {
            search->hi = pivot < search->hi ? pivot : search->hi;
        }
    }
    /* Written so that a NaN ends the search. */
    if (!(search->hi > SPLIT_MUL(search->lo, 1.0000001f)))
        search->done = 1;
}

/* The chain over the first `rounds` rounds in one thread: steps holds the partials of round r,
 * slice s at [r * slices + s]. Rounds after the end of the search are not read. */
SPLIT_FN struct split_search split_search_chain(const struct split_row *row,
                                                const struct split_step *steps, int slices,
                                                int rounds, float p) {
    struct split_search search = split_search_begin(row);
    for (int r = 0; r < rounds && !search.done; r++) {
        struct split_pivot merged[SPLIT_PIVOTS];
        for (int f = 0; f < SPLIT_PIVOTS; f++)
            merged[f] = split_merge_slices(steps + (int64_t)r * slices, slices, r, f,
                                           split_ladder(search.lo, search.hi, f));
        split_search_round(&search, merged, p);
    }
    return search;
}

/* ---- Finish ---- */

struct split_cut {
    int32_t whole;        /* 1: the row stays as it is */
    float pivot;          /* keep P > pivot (patched) */
    float threshold;      /* keep x > threshold (stock): log(pivot) + log(Z) + M, rounded to M where
                             |M| is huge, so that every token falls */
    float gmin;           /* tokens with P bitwise equal to it are the tied ones */
    int32_t n;            /* how many are tied */
    int32_t numkeep;      /* how many of them stay, in 1 .. n; numkeep == n: no tie to cut */
    int32_t round, index; /* partials that number the tied tokens of the lower slices */
};

/* The cut after the last round, or after a search that is done. */
SPLIT_FN struct split_cut split_finish(const struct split_row *row,
                                       const struct split_search *search, float p) {
    const struct split_pivot *best = &search->best;
    struct split_cut cut;
    cut.pivot = best->pivot;
    cut.threshold = -INFINITY;
    cut.gmin = best->gmin;
    cut.n = cut.numkeep = best->n;
    cut.round = best->round;
    cut.index = best->index;
    cut.whole =
        row->whole || !search->has_best || SPLIT_MUL(best->pivot, row->z) >= 1.0f || p >= 1.0f;
    if (cut.whole)
        return cut;
    cut.threshold = SPLIT_LOGF(best->pivot) + SPLIT_LOGF(row->z) + row->max;
    const float over = best->mass - p > 0.0f ? best->mass - p : 0.0f;
    const float drop = SPLIT_DIV(over, best->gmin);
    /* Clamped before the conversion: the quotient can pass 2^31. */
    if (drop >= (float)best->n)
        cut.numkeep = 1;
    else
        cut.numkeep = best->n - (int32_t)drop;
    if (cut.numkeep < 1)
        cut.numkeep = 1;
    return cut;
}

/* Number of tied tokens in the slices below `slice`: where that slice's own numbering starts.
 * partials: those of the cut's round, [0 .. slices). */
SPLIT_FN int32_t split_ties_before(const struct split_cut *cut, const struct split_step *partials,
                                   int slice) {
    int32_t before = 0;
    for (int s = 0; s < slice; s++) {
        const float away = partials[s].min[cut->index] - cut->gmin;
        if (away < SPLIT_BAND && away > -SPLIT_BAND)
            before += partials[s].count[cut->index];
    }
    return before;
}

#endif
