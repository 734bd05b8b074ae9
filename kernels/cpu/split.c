/* stock, patched and patched_fine: the pivot search over split rows, on one core.
 *
 * The sweeps of the GPU kernels in their order (stats, up to 5 x step, mask), slice by slice and
 * tile by tile; what is decided between them is kernels/split_search.h. A row whose search is done
 * skips the sweeps that the GPU would ignore. */
#include "kernels/split_search.h"
#include "kernels/cpu/variants.h"
#include "kernels/cpu/vector_exp.h"
#include "kernels/vector.h"

/* Partials of one row: rows follow each other and reuse them. */
struct split_workspace {
    struct split_stats stats[SPLIT_MAX_SLICES];
    struct split_step steps[SPLIT_ROUNDS][SPLIT_MAX_SLICES];
};

enum split_kind { SPLIT_STOCK, SPLIT_PATCHED, SPLIT_FINE };

static size_t split_workspace_size(const struct topp_problem *problem) {
    (void)problem;
    return sizeof(struct split_workspace);
}

/* 16 logits from x, those past n read as -inf (weight 0). */
VECTOR_FN f32x16 split_load(const float *x, int64_t n) {
    if (n >= 16)
        return f32x16_load(x);
    float part[16];
    for (int k = 0; k < 16; k++)
        part[k] = k < n ? x[k] : -INFINITY;
    return f32x16_load(part);
}

/* A tile is summed as a block of 256 threads does it: few terms a thread, then a tree. Longer
 * chains of binary32 sums would lose the tail beside a strong token and move the cut. */
enum { SPLIT_SUM_PARTS = 16, SPLIT_STEP_PART = SPLIT_STEP_TILE / SPLIT_SUM_PARTS };

VECTOR_FN float split_sum_parts(f32x16 *part) {
    for (int half = SPLIT_SUM_PARTS / 2; half; half /= 2)
        for (int i = 0; i < half; i++)
            part[i] += part[i + half];
    return f32x16_sum(part[0]);
}

/* Greatest and smallest finite logit of a tile and how many are finite. */
VECTOR_FN void split_extent(const float *x, int64_t n, struct split_stats *tile) {
    f32x16 max = f32x16_set(-INFINITY), min = f32x16_set(INFINITY);
    i32x16 finite = {0};
    for (int64_t i = 0; i < n; i += 16) {
        const f32x16 v = split_load(x + i, n - i);
        const f32x16 low = f32x16_select(v > f32x16_set(-INFINITY), v, f32x16_set(INFINITY));
        max = f32x16_select(v > max, v, max);
        min = f32x16_select(low < min, low, min);
        finite += i32x16_one_where(v > f32x16_set(-INFINITY));
    }
    tile->max = f32x16_max(max);
    tile->min = f32x16_min(min);
    for (int k = 0; k < 16; k++)
        tile->finite += finite[k];
}

/* Online softmax partials of one slice. */
VECTOR_CLONES
static struct split_stats split_stats_slice(const float *x, int64_t length) {
    struct split_stats slice = {-INFINITY, 0.0f, INFINITY, 0};
    for (int64_t start = 0; start < length; start += SPLIT_STATS_TILE) {
        const int64_t n = length - start < SPLIT_STATS_TILE ? length - start : SPLIT_STATS_TILE;
        struct split_stats tile = {-INFINITY, 0.0f, INFINITY, 0};
        split_extent(x + start, n, &tile);
        if (tile.finite == 0)
            continue;
        const float max = tile.max > slice.max ? tile.max : slice.max;
        f32x16 part[SPLIT_SUM_PARTS] = {{0}};
        for (int64_t i = 0; i < n; i += 16)
            part[i / 16 % SPLIT_SUM_PARTS] +=
                exp_f32x16(split_load(x + start + i, n - i) - f32x16_set(max));
        slice.sum = slice.sum * (slice.finite ? SPLIT_EXPF(slice.max - max) : 0.0f);
        slice.sum += split_sum_parts(part);
        slice.max = max;
        slice.min = tile.min < slice.min ? tile.min : slice.min;
        slice.finite += tile.finite;
    }
    return slice;
}

/* P of n logits, padded with zeros to a multiple of 16 (a pivot is never below zero). */
VECTOR_FN void split_probabilities(const float *x, int64_t n, const struct split_row *row,
                                   float *prob) {
    for (int64_t i = 0; i < n; i += 16) {
        const f32x16 e = exp_f32x16(split_load(x + i, n - i) - f32x16_set(row->max));
        f32x16_store(prob + i, e / f32x16_set(row->z));
    }
}

/* Adds a tile's P above one pivot to the slice's partials. */
VECTOR_FN void split_step_pivot(const float *prob, int64_t n, float pivot, float *mass, float *min,
                                int32_t *count) {
    const f32x16 cut = f32x16_set(pivot), none = f32x16_set(1.0f);
    f32x16 part[SPLIT_SUM_PARTS] = {{0}}, low = none;
    for (int64_t i = 0, k = 0; i < n; k++) {
        f32x16 sum = f32x16_set(0.0f);
        const int64_t end = n - i < SPLIT_STEP_PART ? n : i + SPLIT_STEP_PART;
        for (; i < end; i += 16) {
            const f32x16 v = f32x16_load(prob + i);
            const f32x16 above = f32x16_select(v > cut, v, none);
            sum += f32x16_select(v > cut, v, f32x16_set(0.0f));
            low = f32x16_select(above < low, above, low);
        }
        part[k] = sum;
    }
    const float tile_mass = split_sum_parts(part), tile_min = f32x16_min(low);
    i32x16 near = {0};
    if (tile_mass > 0.0f)
        for (int64_t i = 0; i < n; i += 16) {
            const f32x16 v = f32x16_load(prob + i);
            const f32x16 away = f32x16_select(v > cut, v - f32x16_set(tile_min), none);
            near += i32x16_one_where(away < f32x16_set(SPLIT_BAND));
        }
    int32_t tile_count = 0;
    for (int k = 0; k < 16; k++)
        tile_count += near[k];
    *mass += tile_mass;
    split_merge_tile(min, count, tile_min, tile_count);
}

/* One step sweep over one slice. */
VECTOR_CLONES
static void split_step_slice(const float *x, int64_t length, const struct split_row *row,
                             const float *pivots, struct split_step *slice) {
    for (int f = 0; f < SPLIT_PIVOTS; f++) {
        slice->mass[f] = 0.0f;
        slice->min[f] = 1.0f;
        slice->count[f] = 0;
    }
    for (int64_t start = 0; start < length; start += SPLIT_STEP_TILE) {
        const int64_t n = length - start < SPLIT_STEP_TILE ? length - start : SPLIT_STEP_TILE;
        float prob[SPLIT_STEP_TILE];
        split_probabilities(x + start, n, row, prob);
        for (int f = 0; f < SPLIT_PIVOTS; f++)
            split_step_pivot(prob, (n + 15) & ~INT64_C(15), pivots[f], &slice->mass[f],
                             &slice->min[f], &slice->count[f]);
    }
}

/* Masks one slice. ties: how many tied tokens the lower slices hold. */
VECTOR_CLONES
static void split_mask_slice(float *x, int64_t length, const struct split_row *row,
                             const struct split_cut *cut, enum split_kind kind, int32_t ties,
                             float mask) {
    int32_t rank = ties;
    for (int64_t start = 0; start < length; start += SPLIT_MASK_TILE) {
        const int64_t n = length - start < SPLIT_MASK_TILE ? length - start : SPLIT_MASK_TILE;
        float *const tile = x + start;
        float prob[SPLIT_MASK_TILE];
        int32_t keep[SPLIT_MASK_TILE];
        split_probabilities(tile, n, row, prob);
        if (kind == SPLIT_STOCK)
            for (int64_t i = 0; i < n; i++)
                keep[i] = tile[i] > cut->threshold;
        else
            for (int64_t i = 0; i < n; i++)
                keep[i] = (prob[i] > cut->pivot) | (tile[i] == row->max);
        if (cut->numkeep < cut->n) {
            /* The numbering that restarts with every tile is the fault of stock and patched. */
            if (kind != SPLIT_FINE)
                rank = ties;
            for (int64_t i = 0; i < n; i++) {
                const int32_t tied = prob[i] == cut->gmin;
                rank += tied;
                keep[i] &= !(tied & (rank > cut->numkeep));
            }
        }
        for (int64_t i = 0; i < n; i++)
            tile[i] = keep[i] ? tile[i] : mask;
    }
}

static void split_row_launch(const struct topp_problem *problem, int64_t index, int slices,
                             enum split_kind kind, struct split_workspace *ws) {
    float *const x = problem->logits + index * problem->stride;
    const float p = problem->p[index];
    int64_t begin[SPLIT_MAX_SLICES + 1];
    for (int s = 0; s <= slices; s++)
        begin[s] = split_slice_begin(problem->vocab, slices, s);
    for (int s = 0; s < slices; s++)
        ws->stats[s] = split_stats_slice(x + begin[s], begin[s + 1] - begin[s]);
    const struct split_row row = split_combine_row(ws->stats, slices);

    struct split_search search = split_search_begin(&row);
    for (int r = 0; r < SPLIT_ROUNDS && !search.done; r++) {
        float pivots[SPLIT_PIVOTS];
        struct split_pivot merged[SPLIT_PIVOTS];
        for (int f = 0; f < SPLIT_PIVOTS; f++)
            pivots[f] = split_ladder(search.lo, search.hi, f);
        for (int s = 0; s < slices; s++)
            split_step_slice(x + begin[s], begin[s + 1] - begin[s], &row, pivots, &ws->steps[r][s]);
        for (int f = 0; f < SPLIT_PIVOTS; f++)
            merged[f] = split_merge_slices(ws->steps[r], slices, r, f, pivots[f]);
        split_search_round(&search, merged, p);
    }

    const struct split_cut cut = split_finish(&row, &search, p);
    for (int s = 0; s < slices && !cut.whole; s++)
        split_mask_slice(x + begin[s], begin[s + 1] - begin[s], &row, &cut, kind,
                         split_ties_before(&cut, ws->steps[cut.round], s), problem->mask_value);
}

static int split_launch(const struct topp_problem *problem, void *workspace, size_t workspace_bytes,
                        enum split_kind kind) {
    if (problem->batch > SPLIT_MAX_BATCH || problem->slices < 0 ||
        problem->slices > SPLIT_MAX_SLICES)
        return KERNEL_UNSUPPORTED;
    if (workspace_bytes < sizeof(struct split_workspace))
        return KERNEL_WORKSPACE;
    const int slices = problem->slices ? problem->slices
                                       : split_slices(problem->batch, problem->vocab,
                                                      problem->sm_count, kind == SPLIT_FINE);
    for (int64_t i = 0; i < problem->batch; i++)
        if (!(problem->p[i] >= 1.0f))
            split_row_launch(problem, i, slices, kind, workspace);
    return KERNEL_OK;
}

static int stock_launch(const struct topp_problem *problem, void *workspace, size_t workspace_bytes,
                        void *stream) {
    (void)stream;
    return split_launch(problem, workspace, workspace_bytes, SPLIT_STOCK);
}

static int patched_launch(const struct topp_problem *problem, void *workspace,
                          size_t workspace_bytes, void *stream) {
    (void)stream;
    return split_launch(problem, workspace, workspace_bytes, SPLIT_PATCHED);
}

static int fine_launch(const struct topp_problem *problem, void *workspace, size_t workspace_bytes,
                       void *stream) {
    (void)stream;
    return split_launch(problem, workspace, workspace_bytes, SPLIT_FINE);
}

const struct topp_variant topp_cpu_stock = {
    .name = "stock",
    .summary = "split pivot search of release 0.32.0: threshold in logit space, masks huge logits",
    .device = KERNEL_DEVICE_CPU,
    .contract = "bounded",
    .max_batch = SPLIT_MAX_BATCH,
    .workspace_size = split_workspace_size,
    .launch = stock_launch,
};

const struct topp_variant topp_cpu_patched = {
    .name = "patched",
    .summary = "stock with the merged fix: keeps by probability, and the argmax always",
    .device = KERNEL_DEVICE_CPU,
    .contract = "conservative",
    .max_batch = SPLIT_MAX_BATCH,
    .workspace_size = split_workspace_size,
    .launch = patched_launch,
};

const struct topp_variant topp_cpu_patched_fine = {
    .name = "patched_fine",
    .summary = "release 0.33.0: finer slices, ties numbered through the whole slice",
    .device = KERNEL_DEVICE_CPU,
    .contract = "bounded",
    .max_batch = SPLIT_MAX_BATCH,
    .workspace_size = split_workspace_size,
    .launch = fine_launch,
};
