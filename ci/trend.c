#include "ci/trend.h"

#include "ci/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The measured runs of a series as plain arrays. */
struct measured {
    double *values, *cycles; /* logs; cycles NAN where there are none */
    int *epochs;
    size_t *places; /* index into the series */
    size_t count;
};

static bool measure(const struct series *series, struct measured *measured) {
    size_t room = series->count + 1;
    measured->values = calloc(room, sizeof *measured->values);
    measured->cycles = calloc(room, sizeof *measured->cycles);
    measured->epochs = calloc(room, sizeof *measured->epochs);
    measured->places = calloc(room, sizeof *measured->places);
    measured->count = 0;
    if (!measured->values || !measured->cycles || !measured->epochs || !measured->places)
        return false;
    for (size_t i = 0; i < series->count; i++) {
        const struct point *point = &series->points[i];
        if (point->state != POINT_OK)
            continue;
        size_t at = measured->count++;
        measured->values[at] = (point->higher_is_better ? -1.0 : 1.0) * log(point->median);
        measured->cycles[at] = point->cycles > 0.0 ? log(point->cycles) : (double)NAN;
        measured->epochs[at] = point->number;
        measured->places[at] = i;
    }
    return true;
}

static void measured_free(struct measured *measured) {
    free(measured->values);
    free(measured->cycles);
    free(measured->epochs);
    free(measured->places);
}

/* Median of the logs from `from` to `to`; NAN when one is missing. */
static double level(const double *values, size_t from, size_t to, double *scratch) {
    for (size_t i = from; i < to; i++) {
        if (isnan(values[i]))
            return (double)NAN;
        scratch[i - from] = values[i];
    }
    return median_of(scratch, to - from);
}

/* True when time made the step and cycles less than half of it. */
static bool is_clock(const struct measured *measured, const struct changepoint *points,
                     size_t found, size_t i, double *scratch) {
    size_t at = points[i].index, from = i > 0 ? points[i - 1].index : 0;
    size_t to = i + 1 < found ? points[i + 1].index : measured->count;
    while (from < at && measured->epochs[from] != measured->epochs[at])
        from++;
    while (to > at && measured->epochs[to - 1] != measured->epochs[at])
        to--;
    double step = level(measured->cycles, at, to, scratch);
    step -= level(measured->cycles, from, at, scratch);
    return !isnan(step) && fabs(step) < 0.5 * fabs(points[i].step);
}

static bool known_before(const struct changepoint *before, int count, size_t at, double step) {
    for (int i = 0; i < count; i++) {
        size_t apart = before[i].index > at ? before[i].index - at : at - before[i].index;
        if (apart <= 3 && before[i].step * step > 0.0)
            return true;
    }
    return false;
}

static bool find(const struct measured *measured, double margin, const char *since,
                 struct trend *trend) {
    struct changepoint now[TREND_MOST], before[TREND_MOST];
    double *scratch = calloc(measured->count + 1, sizeof *scratch);
    int found = changepoint_find_epochs(measured->values, measured->epochs, measured->count,
                                        log1p(margin), now, TREND_MOST);
    int known = measured->count > 0 ? changepoint_find_epochs(measured->values, measured->epochs,
                                                              measured->count - 1, log1p(margin),
                                                              before, TREND_MOST)
                                    : 0;
    bool good = scratch && found >= 0 && known >= 0;
    for (int i = 0; good && i < found; i++) {
        size_t place = measured->places[now[i].index];
        trend->changes[trend->change_count++] = (struct trend_point){
            .at = place,
            .step = now[i].step,
            .t = now[i].t,
            .clock = is_clock(measured, now, (size_t)found, (size_t)i, scratch),
            .fresh = since ? strcmp(trend->series->points[place].date, since) >= 0
                           : !known_before(before, known, now[i].index, now[i].step)};
    }
    free(scratch);
    return good;
}

bool trend_find(const struct series *series, double margin, const char *since,
                struct trend *trend) {
    struct measured measured;
    memset(trend, 0, sizeof *trend);
    trend->series = series;
    bool good = measure(series, &measured) && find(&measured, margin, since, trend);
    trend->measured = measured.count;
    for (size_t i = 0; i < series->count; i++) {
        trend->higher_is_better = trend->higher_is_better || series->points[i].higher_is_better;
        trend->missing += series->points[i].state == POINT_MISSING;
        trend->refused += series->points[i].state == POINT_REFUSED;
    }
    measured_free(&measured);
    return good;
}

static const struct trend_point *change_at(const struct trend *trend, size_t at) {
    for (size_t i = 0; i < trend->change_count; i++)
        if (trend->changes[i].at == at)
            return &trend->changes[i];
    return NULL;
}

static const char *state_of(const struct point *point) {
    switch (point->state) {
    case POINT_OK:
        return "ok";
    case POINT_MISSING:
        return "missing";
    case POINT_UNTIMED:
        return "untimed";
    case POINT_REFUSED:
        break;
    }
    return point->verdict[0] ? point->verdict : "refused";
}

/* Which lines of two epochs differ: "driver 580.1 -> 590.2; settings changed". */
static void epoch_change(const char *old, const char *own, char *text, size_t text_bytes) {
    size_t used = 0;
    text[0] = '\0';
    while (*old && *own && used < text_bytes) {
        size_t old_length = strcspn(old, "\n"), own_length = strcspn(own, "\n");
        size_t word = strcspn(own, " \n");
        const char *between = used ? "; " : "";
        bool same = old_length == own_length && !memcmp(old, own, own_length);
        if (!same && !strncmp(own, "settings", 8)) /* a hash: tells nothing to a person */
            used += (size_t)snprintf(text + used, text_bytes - used, "%ssettings changed", between);
        else if (!same)
            used += (size_t)snprintf(text + used, text_bytes - used, "%s%.*s ->%.*s", between,
                                     (int)(old_length < 60 ? old_length : 60), old,
                                     (int)(own_length - word < 60 ? own_length - word : 60),
                                     own + word);
        old += old_length + (old[old_length] != '\0');
        own += own_length + (own[own_length] != '\0');
    }
}

static size_t first_shown(const struct series *series, const char *since, size_t last) {
    size_t first = 0;
    while (since && first < series->count && strcmp(series->points[first].date, since) < 0)
        first++;
    return last && series->count - first > last ? series->count - last : first;
}

static void sparkline(const struct trend *trend, size_t first, FILE *stream) {
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const struct series *series = trend->series;
    double low = INFINITY, high = -INFINITY;
    for (size_t i = first; i < series->count; i++)
        if (series->points[i].state == POINT_OK) {
            low = fmin(low, series->points[i].median);
            high = fmax(high, series->points[i].median);
        }
    /* Under 2% of range the bars would draw noise. */
    double range = fmax(high - low, 0.02 * low);
    for (size_t i = first; i < series->count; i++) {
        const struct point *point = &series->points[i];
        if (i > first && point->number != series->points[i - 1].number)
            fputs("|", stream);
        if (change_at(trend, i))
            fputs("^", stream);
        if (point->state == POINT_OK)
            fputs(bars[(int)fmin(7.0, 8.0 * (point->median - low) / range)], stream);
        else
            fputs(point->state == POINT_MISSING ? "." : "x", stream);
    }
    fputs("\n", stream);
}

static void median_text(const struct point *point, char *text, size_t text_bytes) {
    struct {
        double above, divide;
        const char *unit;
    } const units[] = {{1e9, 1e9, "s"}, {1e6, 1e6, "ms"}, {1e3, 1e3, "us"}, {0.0, 1.0, "ns"}};
    if (point->state != POINT_OK) {
        snprintf(text, text_bytes, "%s", state_of(point));
        return;
    }
    if (point->higher_is_better) {
        snprintf(text, text_bytes, "%.4g/s", point->median);
        return;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (point->median >= units[i].above) {
            snprintf(text, text_bytes, "%.4g %s", point->median / units[i].divide, units[i].unit);
            return;
        }
}

void trend_table(const struct trend *trend, const char *since, size_t last, FILE *stream) {
    const struct series *series = trend->series;
    size_t first = first_shown(series, since, last);
    fprintf(stream, "%s\n%-20s  %-10s  %10s  %8s  notes\n", series->name, "date (UTC)", "commit",
            "median", "change");
    double before = (double)NAN;
    const struct point *seen = NULL;
    for (size_t i = 0; i < series->count; i++) {
        const struct point *point = &series->points[i];
        const struct trend_point *change = change_at(trend, i);
        char median[32], difference[24] = "", epoch[600] = "";
        median_text(point, median, sizeof median);
        if (point->state == POINT_OK && before > 0.0)
            snprintf(difference, sizeof difference, "%+.1f%%",
                     100.0 * (point->median / before - 1.0));
        if (seen && point->number != seen->number)
            epoch_change(seen->epoch, point->epoch, epoch, sizeof epoch);
        if (i >= first) {
            fprintf(stream, "%-20s  %-10.10s  %10s  %8s", point->date,
                    point->commit[0] ? point->commit : "-", median, difference);
            if (change)
                fprintf(stream, "  %s %+.1f%%%s", change->clock ? "CLOCK" : "CHANGE",
                        100.0 * expm1(change->step), change->fresh ? " (new)" : "");
            if (epoch[0])
                fprintf(stream, "  epoch: %s", epoch);
            if (point->state == POINT_REFUSED && point->rule[0])
                fprintf(stream, "  %s", point->rule);
            fputs("\n", stream);
        }
        if (point->state == POINT_OK)
            before = point->median;
        if (point->state != POINT_MISSING)
            seen = point;
    }
    sparkline(trend, first, stream);
    fprintf(stream, "%zu runs: %zu measured, %zu refused, %zu missing; %zu change point%s\n",
            series->count, trend->measured, trend->refused, trend->missing, trend->change_count,
            trend->change_count == 1 ? "" : "s");
}

/* "e1:driver+toolchain": the epoch's number and what changed, in one word. */
static void epoch_word(const struct point *before, const struct point *point, char *text,
                       size_t text_bytes) {
    const char *old = before ? before->epoch : "", *own = point->epoch;
    size_t used = (size_t)snprintf(text, text_bytes, "e%d", point->number);
    const char *between = ":";
    while (*old && *own && used < text_bytes) {
        size_t old_length = strcspn(old, "\n"), own_length = strcspn(own, "\n");
        if (old_length != own_length || memcmp(old, own, own_length) != 0) {
            used += (size_t)snprintf(text + used, text_bytes - used, "%s%.*s", between,
                                     (int)strcspn(own, " \n"), own);
            between = "+";
        }
        old += old_length + (old[old_length] != '\0');
        own += own_length + (own[own_length] != '\0');
    }
}

/* "device NVIDIA H200, sm_count 132..." -> "NVIDIA H200"; no tab comes through. */
static void put_device(const struct point *point, FILE *stream) {
    const char *at = point->epoch + strlen("device ");
    if (strncmp(point->epoch, "device ", strlen("device ")) != 0)
        at = "-";
    for (; *at && *at != '\n' && strncmp(at, ", ", 2) != 0; at++)
        fputc((unsigned char)*at < ' ' ? ' ' : *at, stream);
}

static void tsv_row(const struct trend *trend, const struct point *point, const char *epoch,
                    FILE *stream) {
    const struct trend_point *change = change_at(trend, (size_t)(point - trend->series->points));
    const double values[3] = {point->median, point->ci_low, point->ci_high};
    fputs(point->date, stream);
    for (int v = 0; v < 3; v++)
        fprintf(stream, point->state == POINT_OK && isfinite(values[v]) ? "\t%.10g" : "\tNA",
                values[v]);
    fprintf(stream, "\t%s\t%d\t%s", epoch, change != NULL, state_of(point));
    fprintf(stream, change ? "\t%.6g\t%s\t" : "\tNA\tNA\t",
            change ? 100.0 * expm1(change->step) : 0.0,
            change && change->clock ? "clock" : "change");
    put_device(point, stream);
    fputs(trend->higher_is_better ? "\t/s\n" : "\tns\n", stream);
}

void trend_tsv(const struct trend *trend, const char *since, FILE *stream) {
    const struct series *series = trend->series;
    const struct point *seen = NULL;
    char epoch[128] = "";
    fputs(
        "date\tmedian_ns\tci_low_ns\tci_high_ns\tepoch\tchange\tstate\tstep\tkind\tdevice\tunit\n",
        stream);
    for (size_t i = 0; i < series->count; i++) {
        const struct point *point = &series->points[i];
        if (!epoch[0] || (seen && point->number != seen->number))
            epoch_word(seen, point, epoch, sizeof epoch);
        if (i >= first_shown(series, since, 0))
            tsv_row(trend, point, epoch, stream);
        if (point->state != POINT_MISSING)
            seen = point;
    }
}

static json_t *number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *trend_json(const struct trend *trend, const char *since) {
    const struct series *series = trend->series;
    json_t *json = json_object(), *runs = json_array(), *changes = json_array();
    json_object_set_new(json, "cell", json_string(series->name));
    for (size_t i = first_shown(series, since, 0); i < series->count; i++) {
        const struct point *point = &series->points[i];
        json_t *run = json_object();
        json_object_set_new(run, "id", json_string(point->id));
        json_object_set_new(run, "date", json_string(point->date));
        json_object_set_new(run, "commit",
                            point->commit[0] ? json_string(point->commit) : json_null());
        json_object_set_new(run, "state", json_string(state_of(point)));
        json_object_set_new(run, "epoch", json_integer(point->number));
        json_object_set_new(run, "median", number(point->median));
        json_object_set_new(run, "ci_low", number(point->ci_low));
        json_object_set_new(run, "ci_high", number(point->ci_high));
        json_object_set_new(run, "cycles", number(point->cycles));
        json_array_append_new(runs, run);
    }
    for (size_t i = 0; i < trend->change_count; i++) {
        const struct trend_point *change = &trend->changes[i];
        const struct point *point = &series->points[change->at];
        json_t *one = json_object();
        json_object_set_new(one, "id", json_string(point->id));
        json_object_set_new(one, "date", json_string(point->date));
        json_object_set_new(one, "change", number(expm1(change->step)));
        json_object_set_new(one, "t", number(change->t));
        json_object_set_new(one, "clock", json_boolean(change->clock));
        json_object_set_new(one, "new", json_boolean(change->fresh));
        json_array_append_new(changes, one);
    }
    json_object_set_new(json, "runs", runs);
    json_object_set_new(json, "change_points", changes);
    json_object_set_new(json, "missing", json_integer((json_int_t)trend->missing));
    return json;
}
