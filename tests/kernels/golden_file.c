#include "tests/kernels/golden_file.h"

#include <stdlib.h>
#include <string.h>

const char *const golden_variant[GOLDEN_VARIANTS] = {"stock", "patched", "patched_fine"};

static bool parse_row(char *line, struct golden_row *row) {
    char reference[24], sort[24], kept[24], patched[48], fine[48];
    if (sscanf(line, "%23s %23s %23s %16s %47s %47s", reference, sort, kept, row->mask[0].sha8,
               patched, fine) != 6)
        return false;
    row->reference = atoll(reference);
    row->sort = sort[0] == '-' ? -1 : atoll(sort);
    row->mask[0].kept = atoll(kept);
    const char *const cells[2] = {patched, fine};
    for (int v = 1; v < GOLDEN_VARIANTS; v++) {
        long long n;
        if (!strcmp(cells[v - 1], "="))
            row->mask[v] = row->mask[0];
        else if (sscanf(cells[v - 1], "%lld:%16s", &n, row->mask[v].sha8) == 2)
            row->mask[v].kept = n;
        else
            return false;
    }
    return true;
}

bool golden_next(FILE *file, struct golden_case *out, bool *error) {
    char line[512], fine[16];
    do {
        if (!fgets(line, sizeof line, file))
            return false;
    } while (line[0] == '#');
    *error = true;
    if (sscanf(line, "case %95s %lld %lld %lld %f %d %15s %64s", out->family, &out->seed,
               &out->vocab, &out->batch, &out->p, &out->slices, fine, out->sha256) != 8 ||
        out->batch < 1 || out->batch > GOLDEN_MAX_BATCH)
        return false;
    out->slices_fine = atoi(fine);
    for (long long i = 0; i < out->batch; i++)
        if (!fgets(line, sizeof line, file) || !parse_row(line, &out->rows[i]))
            return false;
    *error = false;
    return true;
}
