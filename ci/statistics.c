#include "ci/statistics.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void random_seed(struct random_state *state, uint64_t seed) {
    /* splitmix64 spreads any seed over the state. */
    for (int i = 0; i < 4; i++) {
        uint64_t z = (seed += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        state->word[i] = z ^ (z >> 31);
    }
}

static uint64_t rotate(uint64_t value, int by) {
    return (value << by) | (value >> (64 - by));
}

uint64_t random_word(struct random_state *state) {
    uint64_t *s = state->word;
    const uint64_t result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

double random_uniform(struct random_state *state) {
    return (double)(random_word(state) >> 11) * 0x1p-53;
}

double random_normal(struct random_state *state) {
    /* Box and Muller; 1 - u is never 0. */
    double radius = sqrt(-2.0 * log(1.0 - random_uniform(state)));
    return radius * cos(2.0 * M_PI * random_uniform(state));
}

size_t random_below(struct random_state *state, size_t bound) {
    return (size_t)(random_uniform(state) * (double)bound);
}

static int ascending(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

void sort_ascending(double *values, size_t count) {
    if (count > 24) {
        qsort(values, count, sizeof *values, ascending);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        double value = values[i];
        size_t at = i;
        for (; at > 0 && values[at - 1] > value; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
}

double median_of(double *values, size_t count) {
    if (count == 0)
        return NAN;
    sort_ascending(values, count);
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

double robust_deviation(const double *values, size_t count, double *scratch) {
    memcpy(scratch, values, count * sizeof *values);
    double middle = median_of(scratch, count);
    for (size_t i = 0; i < count; i++)
        scratch[i] = fabs(values[i] - middle);
    return 1.4826 * median_of(scratch, count);
}

/* The weight of the value at `rank` of `count`: how much of (rank, rank + 1) lies in the middle
 * half of (0, count). */
static double middle_weight(size_t rank, size_t count) {
    double low = 0.25 * (double)count, high = 0.75 * (double)count;
    double from = fmax(low, (double)rank), to = fmin(high, (double)rank + 1.0);
    return to > from ? (to - from) / (high - low) : 0.0;
}

double midmean_sorted(const double *sorted, size_t count) {
    double sum = 0.0;
    if (count == 0)
        return NAN;
    for (size_t i = 0; i < count; i++)
        sum += middle_weight(i, count) * sorted[i];
    return sum;
}

/* The midmean of a resample is a weighted sum of the sorted originals, and the weights do not
 * depend on the values: the bootstrap's variance is x' W x with W their covariance over resamples.
 * W is found once per count by seeded resampling. */
enum { BOOTSTRAP_RESAMPLES = 4000, BOOTSTRAP_MOST = 64 };

static void resample_weights(struct random_state *random, size_t count, double *weights) {
    size_t times[BOOTSTRAP_MOST] = {0};
    for (size_t i = 0; i < count; i++)
        times[random_below(random, count)]++;
    size_t rank = 0;
    for (size_t i = 0; i < count; i++) {
        weights[i] = 0.0;
        for (size_t t = 0; t < times[i]; t++)
            weights[i] += middle_weight(rank++, count);
    }
}

static double *covariance_of_weights(size_t count) {
    double *covariance = calloc(count * count, sizeof *covariance);
    if (!covariance)
        return NULL;
    double weights[BOOTSTRAP_MOST], mean[BOOTSTRAP_MOST] = {0};
    struct random_state random;
    random_seed(&random, 0x70e5 + count);
    for (int r = 0; r < BOOTSTRAP_RESAMPLES; r++) {
        resample_weights(&random, count, weights);
        for (size_t i = 0; i < count; i++) {
            mean[i] += weights[i] / BOOTSTRAP_RESAMPLES;
            for (size_t j = 0; j < count; j++)
                covariance[i * count + j] += weights[i] * weights[j] / BOOTSTRAP_RESAMPLES;
        }
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            covariance[i * count + j] -= mean[i] * mean[j];
    return covariance;
}

static const double *kept_covariance(size_t count) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static double *kept[BOOTSTRAP_MOST + 1];
    pthread_mutex_lock(&lock);
    if (!kept[count])
        kept[count] = covariance_of_weights(count);
    const double *covariance = kept[count];
    pthread_mutex_unlock(&lock);
    return covariance;
}

/* Many blocks: the asymptotic variance of a trimmed mean, from the winsorised sample. */
static double winsorised_variance(const double *sorted, size_t count) {
    size_t cut = count / 4;
    double mean = 0.0, squares = 0.0;
    for (size_t i = 0; i < count; i++) {
        size_t at = i < cut ? cut : i >= count - cut ? count - cut - 1 : i;
        mean += sorted[at] / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        size_t at = i < cut ? cut : i >= count - cut ? count - cut - 1 : i;
        squares += (sorted[at] - mean) * (sorted[at] - mean);
    }
    return squares / ((double)count - 1.0) / (0.25 * (double)count);
}

double midmean_bootstrap_variance(const double *sorted, size_t count) {
    if (count < 2)
        return NAN;
    if (count > BOOTSTRAP_MOST)
        return winsorised_variance(sorted, count);
    const double *covariance = kept_covariance(count);
    if (!covariance)
        return NAN;
    double sum = 0.0, middle = midmean_sorted(sorted, count); /* centred: no cancellation */
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            sum += covariance[i * count + j] * (sorted[i] - middle) * (sorted[j] - middle);
    double n = (double)count;
    return fmax(0.0, sum) * n / (n - 1.0);
}

double normal_tail(double z) {
    return 0.5 * erfc(z * M_SQRT1_2);
}

double normal_quantile(double probability) {
    /* Newton on the tail from a logistic start; the tail keeps its relative precision. */
    double q = probability < 0.5 ? probability : 1.0 - probability;
    if (!(q > 0.0))
        return probability < 0.5 ? -INFINITY : INFINITY;
    double z = sqrt(-2.0 * log(q));
    z -= (2.30753 + 0.27061 * z) / (1.0 + z * (0.99229 + z * 0.04481));
    for (int i = 0; i < 4; i++)
        z += (normal_tail(z) - q) / (exp(-0.5 * z * z) / sqrt(2.0 * M_PI));
    return probability < 0.5 ? -z : z;
}

/* Continued fraction of the incomplete beta function (Lentz's method). */
static double beta_fraction(double a, double b, double x) {
    double c = 1.0, d = 1.0 - (a + b) * x / (a + 1.0), h;
    d = 1.0 / (fabs(d) < 1e-300 ? 1e-300 : d);
    h = d;
    for (int m = 1; m <= 300; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        for (int half = 0; half < 2; half++) {
            double term = half ? odd : even;
            d = 1.0 + term * d;
            c = 1.0 + term / c;
            d = 1.0 / (fabs(d) < 1e-300 ? 1e-300 : d);
            c = fabs(c) < 1e-300 ? 1e-300 : c;
            h *= d * c;
        }
        if (fabs(d * c - 1.0) < 1e-14)
            break;
    }
    return h;
}

static double incomplete_beta(double a, double b, double x) {
    if (x <= 0.0)
        return 0.0;
    if (x >= 1.0)
        return 1.0;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1.0) / (a + b + 2.0) ? front * beta_fraction(a, b, x) / a
                                         : 1.0 - front * beta_fraction(b, a, 1.0 - x) / b;
}

double student_tail(double t, double df) {
    if (!(df < 1e6))
        return normal_tail(t);
    double half = 0.5 * incomplete_beta(0.5 * df, 0.5, df / (df + t * t));
    return t >= 0.0 ? half : 1.0 - half;
}

double student_quantile(double probability, double df) {
    double z = normal_quantile(probability);
    if (!(df < 1e6))
        return z;
    /* Bracketed bisection from the normal's quantile: the tails of few degrees are far out. */
    double q = probability < 0.5 ? probability : 1.0 - probability, low = fabs(z), high = low;
    if (df > 60.0) { /* Cornish and Fisher: within 1e-5 there */
        double c = z * z, n = df;
        return z * (1.0 + (c + 1.0) / (4.0 * n) + ((5.0 * c + 16.0) * c + 3.0) / (96.0 * n * n));
    }
    while (student_tail(high, df) > q && high < 1e12)
        high = high * 2.0 + 1e-3;
    for (int i = 0; i < 40 && high - low > 1e-9 * high; i++) {
        double middle = 0.5 * (low + high);
        if (student_tail(middle, df) > q)
            low = middle;
        else
            high = middle;
    }
    double t = 0.5 * (low + high);
    return probability < 0.5 ? -t : t;
}

enum { EXACT_MOST = 16 }; /* values on both sides together */

/* Number of ways in which U reaches at least `least`, over all: counts by the usual recursion. */
static double exact_tail(size_t left, size_t right, double least) {
    double ways[EXACT_MOST + 1][EXACT_MOST * EXACT_MOST / 4 + 1]; /* [values of right taken][U] */
    const size_t width = left * right + 1;
    memset(ways, 0, sizeof ways);
    ways[0][0] = 1.0;
    /* Values in ascending order: each is left's or right's; a right one adds the lefts below it. */
    for (size_t total = 1; total <= left + right; total++)
        for (size_t taken = total < right ? total : right; taken > 0; taken--) {
            size_t below = total - taken;
            if (below > left)
                continue;
            for (size_t u = width; u-- > below;)
                ways[taken][u] += ways[taken - 1][u - below];
        }
    double all = 0.0, reached = 0.0;
    for (size_t u = 0; u < width; u++) {
        all += ways[right][u];
        if ((double)u >= least)
            reached += ways[right][u];
    }
    return reached / all;
}

double rank_test(const double *left, size_t left_count, const double *right, size_t right_count) {
    if (left_count == 0 || right_count == 0)
        return 1.0;
    double u = 0.0, n = (double)left_count, m = (double)right_count, ties = 0.0;
    for (size_t i = 0; i < left_count; i++)
        for (size_t j = 0; j < right_count; j++)
            u += right[j] > left[i] ? 1.0 : right[j] == left[i] ? 0.5 : 0.0;
    size_t total = left_count + right_count;
    double *all = malloc(total * sizeof *all);
    if (!all)
        return 1.0;
    memcpy(all, left, left_count * sizeof *all);
    memcpy(all + left_count, right, right_count * sizeof *all);
    sort_ascending(all, total);
    for (size_t i = 0, same; i < total; i += same) {
        for (same = 1; i + same < total && all[i + same] == all[i]; same++)
            ;
        ties += (double)same * ((double)same * (double)same - 1.0);
    }
    free(all);
    if (ties == 0.0 && total <= EXACT_MOST)
        return exact_tail(left_count, right_count, u);
    double t = n + m, variance = n * m / 12.0 * ((t + 1.0) - ties / (t * (t - 1.0)));
    return variance > 0.0 ? normal_tail((u - 0.5 - 0.5 * n * m) / sqrt(variance)) : 1.0;
}

double false_discovery_limit(const double *p, size_t count, double q, double *scratch) {
    double limit = -1.0;
    memcpy(scratch, p, count * sizeof *p);
    sort_ascending(scratch, count);
    for (size_t i = 0; i < count; i++)
        if (scratch[i] <= q * (double)(i + 1) / (double)count)
            limit = scratch[i];
    return limit;
}
