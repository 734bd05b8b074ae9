#include "ci/devices.h"

#include "ci/compare_parts.h"
#include "ci/statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One cell of one file, and the device it ran on. */
struct measured {
    const struct result_cell *cell;
    size_t device;
};

/* What is gathered before it is grouped by cell. */
struct gathering {
    struct devices *devices;
    struct measured *list; /* [count], owned */
    size_t count;
    double *scratch; /* [count + 1], owned */
    double margin;   /* log */
};

void devices_free(struct devices *devices) {
    free(devices->list);
    free(devices->cells);
    free(devices->all_medians);
    differences_free(&devices->differences);
    memset(devices, 0, sizeof *devices);
}

static const char *text_in(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* Of a merged run the cell's own; else the run's; a device without a UUID is its host. */
static void name_device(const struct results *results, const struct result_cell *cell,
                        char name[DEVICE_NAME_BYTES]) {
    const json_t *shards = json_object_get(results->run, "shards");
    const json_t *run = results->run;
    if (cell->shard > 0 && json_is_array(shards))
        run = json_array_get(shards, (size_t)cell->shard - 1);
    const char *uuid = cell->device_uuid;
    if (!uuid[0])
        uuid = text_in(json_object_get(run, "device"), "uuid");
    snprintf(name, DEVICE_NAME_BYTES, "%s",
             uuid[0] ? uuid : text_in(json_object_get(run, "host"), "name"));
}

/* Its index; SIZE_MAX without memory. */
static size_t find_device(struct devices *devices, const char *name) {
    for (size_t i = 0; i < devices->count; i++)
        if (!strcmp(devices->list[i].name, name))
            return i;
    struct device *grown = realloc(devices->list, (devices->count + 1) * sizeof *grown);
    if (!grown)
        return SIZE_MAX;
    devices->list = grown;
    grown[devices->count] = (struct device){.ratio = (double)NAN, .low = (double)NAN};
    grown[devices->count].high = (double)NAN;
    snprintf(grown[devices->count].name, DEVICE_NAME_BYTES, "%s", name);
    return devices->count++;
}

static bool gather_file(struct gathering *gathering, const struct results *results) {
    char last[DEVICE_NAME_BYTES] = "", name[DEVICE_NAME_BYTES];
    size_t device = SIZE_MAX;
    for (size_t i = 0; i < results->count; i++) {
        const struct result_cell *cell = &results->cells[i];
        name_device(results, cell, name);
        if (!name[0])
            continue;
        if (device == SIZE_MAX || strcmp(name, last) != 0) {
            device = find_device(gathering->devices, name);
            memcpy(last, name, sizeof last);
        }
        if (device == SIZE_MAX)
            return false;
        gathering->list[gathering->count++] = (struct measured){cell, device};
    }
    return true;
}

static int by_name(const void *left, const void *right) {
    const struct measured *a = left, *b = right;
    const int order = strcmp(a->cell->name, b->cell->name);
    return order ? order : (a->device > b->device) - (a->device < b->device);
}

/* Median over the processes of a device; NAN when none has a time. */
static double median_on(const struct measured *list, size_t count, size_t device, double *scratch) {
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        if (list[i].device == device && list[i].cell->median > 0.0)
            scratch[used++] = list[i].cell->median;
    return used ? median_of(scratch, used) : (double)NAN;
}

/* The cell of one name on all devices. */
static void take_cell(struct gathering *gathering, const struct measured *list, size_t count,
                      double *medians) {
    struct devices *devices = gathering->devices;
    struct device_cell *cell = &devices->cells[devices->cell_count];
    double least = (double)INFINITY, greatest = 0.0;
    *cell = (struct device_cell){.name = list[0].cell->name, .medians = medians, .apart = 1.0};
    for (size_t d = 0; d < devices->count; d++) {
        medians[d] = median_on(list, count, d, gathering->scratch);
        devices->list[d].cells += !isnan(medians[d]);
        least = fmin(least, medians[d]);
        greatest = fmax(greatest, medians[d]);
    }
    if (list[0].device == list[count - 1].device)
        return; /* on one device alone */
    if (greatest > least)
        cell->apart = greatest / least;
    for (size_t i = 1; i < count && !cell->gate[0]; i++) {
        settings_compare(list[0].cell, list[i].cell, NULL, 0, NULL, &devices->differences);
        compare_gate(list[0].cell, list[i].cell, true, cell->gate, sizeof cell->gate);
    }
    devices->gate_differs += cell->gate[0] != '\0';
    devices->cell_count++;
}

static int worst_first(const void *left, const void *right) {
    const struct device_cell *a = left, *b = right;
    if ((a->gate[0] != '\0') != (b->gate[0] != '\0'))
        return a->gate[0] ? -1 : 1;
    if (a->apart != b->apart)
        return a->apart < b->apart ? 1 : -1;
    return strcmp(a->name, b->name);
}

static bool take_cells(struct gathering *gathering) {
    struct devices *devices = gathering->devices;
    size_t distinct = 0, row = 0;
    qsort(gathering->list, gathering->count, sizeof *gathering->list, by_name);
    for (size_t i = 0; i < gathering->count; i++)
        distinct +=
            i == 0 || strcmp(gathering->list[i].cell->name, gathering->list[i - 1].cell->name) != 0;
    devices->cells = calloc(distinct + 1, sizeof *devices->cells);
    devices->all_medians = malloc((distinct * devices->count + 1) * sizeof *devices->all_medians);
    if (!devices->cells || !devices->all_medians)
        return false;
    for (size_t first = 0, end; first < gathering->count; first = end, row++) {
        end = first + 1;
        while (end < gathering->count &&
               !strcmp(gathering->list[first].cell->name, gathering->list[end].cell->name))
            end++;
        take_cell(gathering, gathering->list + first, end - first,
                  devices->all_medians + row * devices->count);
    }
    qsort(devices->cells, devices->cell_count, sizeof *devices->cells, worst_first);
    return true;
}

static double quantile_of(const double *sorted, size_t count, double q) {
    const double place = q * (double)(count - 1);
    const size_t below = (size_t)place, above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (place - (double)below) * (sorted[above] - sorted[below]);
}

/* Device d against the reference, which is the first. */
static void compare_device(struct gathering *gathering, size_t d) {
    struct devices *devices = gathering->devices;
    struct device *device = &devices->list[d];
    double *ratios = gathering->scratch;
    for (size_t i = 0; i < devices->cell_count; i++) {
        const double *medians = devices->cells[i].medians;
        if (isnan(medians[0]) || isnan(medians[d]))
            continue;
        const double ratio = medians[d] / medians[0];
        ratios[device->common++] = ratio;
        device->beyond += fabs(log(ratio)) > gathering->margin;
    }
    if (!device->common)
        return;
    device->ratio = median_of(ratios, device->common); /* sorts them */
    device->low = quantile_of(ratios, device->common, 0.05);
    device->high = quantile_of(ratios, device->common, 0.95);
}

/* The reference goes first: columns of medians change places with it. */
static enum tb_status put_reference_first(struct devices *devices, const char *reference,
                                          struct tb_error *error) {
    size_t best = 0;
    for (size_t d = 0; d < devices->count; d++) {
        const struct device *is = &devices->list[d], *now = &devices->list[best];
        if (reference ? !strcmp(is->name, reference)
                      : is->cells > now->cells ||
                            (is->cells == now->cells && strcmp(is->name, now->name) < 0))
            best = d;
    }
    if (reference && (!devices->count || strcmp(devices->list[best].name, reference) != 0))
        return tb_fail(error, TB_USAGE, "--reference %s: no cell was measured on it", reference);
    if (!devices->count)
        return TB_OK;
    const struct device first = devices->list[best];
    devices->list[best] = devices->list[0];
    devices->list[0] = first;
    for (size_t i = 0; i < devices->cell_count; i++) {
        double *medians = (double *)devices->cells[i].medians;
        const double swapped = medians[best];
        medians[best] = medians[0];
        medians[0] = swapped;
    }
    return TB_OK;
}

/* Not of one model, or nothing in common: said in devices->refused. */
static bool check_environment(const struct results_set *sets, size_t set_count,
                              struct devices *devices) {
    const struct results *first = &sets[0].files[0];
    bool good = true;
    for (size_t s = 0; s < set_count; s++)
        for (size_t f = 0; f < sets[s].count; f++)
            good = good && environment_compare(first, &sets[s].files[f], NULL, 0, NULL,
                                               &devices->differences);
    return good;
}

static void refuse(struct devices *devices) {
    size_t common = 0;
    for (size_t d = 1; d < devices->count; d++)
        common += devices->list[d].common;
    const struct difference *difference = devices->differences.list;
    while (devices->differences.refusing && difference->weight != DIFFERENCE_REFUSES)
        difference++;
    if (devices->differences.refusing)
        snprintf(devices->refused, sizeof devices->refused,
                 "these are not one sweep on devices of one model: %.60s is %.60s and %.60s",
                 difference->field, difference->base, difference->new_side);
    else if (devices->count < 2)
        snprintf(devices->refused, sizeof devices->refused,
                 "all cells were measured on one device (%.90s): name runs of the same sweep on "
                 "others too",
                 devices->count ? devices->list[0].name : "that its files do not name");
    else if (!common && !devices->gate_differs)
        snprintf(devices->refused, sizeof devices->refused,
                 "no cell was measured on the reference (%.90s) and on another device: the shards "
                 "of one merged run have no cell in common, two runs have",
                 devices->list[0].name);
}

enum tb_status devices_find(const struct results_set *sets, size_t set_count, const char *reference,
                            double margin, struct devices *devices, struct tb_error *error) {
    struct gathering gathering = {.devices = devices, .margin = log1p(margin)};
    size_t most = 0;
    memset(devices, 0, sizeof *devices);
    for (size_t s = 0; s < set_count; s++)
        most += compare_cells_in(&sets[s]);
    gathering.list = malloc((most + 1) * sizeof *gathering.list);
    gathering.scratch = malloc((most + 1) * sizeof *gathering.scratch);
    bool good = gathering.list && gathering.scratch && check_environment(sets, set_count, devices);
    for (size_t s = 0; s < set_count; s++)
        for (size_t f = 0; good && f < sets[s].count; f++)
            good = gather_file(&gathering, &sets[s].files[f]);
    good = good && take_cells(&gathering);
    enum tb_status status = good ? put_reference_first(devices, reference, error)
                                 : tb_fail(error, TB_NO_MEMORY, "no memory for %zu cells", most);
    for (size_t d = 1; status == TB_OK && d < devices->count; d++)
        compare_device(&gathering, d);
    if (status == TB_OK)
        refuse(devices);
    free(gathering.list);
    free(gathering.scratch);
    if (status != TB_OK)
        devices_free(devices);
    return status;
}
