#include "loadgen/workload/sizes.h"

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/options.h"
#include "loadgen/base/random.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/*
 * Both distributions of the paper are inverted: the hash is a fraction u, and
 * the size the u-quantile. Values draw once: the table of small sizes takes u
 * up to its sum, the rest of the unit interval is stretched over the Pareto
 * part. That is two logarithms and an exponential, about 20 ns; fixed sizes and
 * ranges cost nothing.
 */

/* Table 5: probability of a value of 0, 1, ... 14 bytes. */
static const double small_values[] = {
    0.00536, 0.00047, 0.17820, 0.09239, 0.00018, 0.02740, 0.00065, 0.00606,
    0.00023, 0.00837, 0.00837, 0.08989, 0.00092, 0.00326, 0.01980};

struct qn_sizes qn_sizes_fixed(uint64_t size)
{
    return (struct qn_sizes){QN_SIZES_FIXED, size, size};
}

struct qn_sizes qn_sizes_etc(enum qn_sizes_kind kind)
{
    return (struct qn_sizes){kind, kind == QN_SIZES_ETC_KEY,
                             kind == QN_SIZES_ETC_KEY ? QN_SIZES_ETC_KEY_MAX
                                                      : QN_SIZES_ETC_VALUE_MAX};
}

struct qn_sizes qn_sizes_mixed_within(uint64_t count, uint64_t bytes)
{
    double mean = (double)bytes / (double)count;
    double high = mean * mean / QN_SIZES_MIXED_MIN; /* mean = sqrt(L H) */
    high = fmin(fmax(high, QN_SIZES_MIXED_MIN), (double)QN_SIZES_MIXED_MAX);
    return (struct qn_sizes){QN_SIZES_MIXED, QN_SIZES_MIXED_MIN,
                             (uint64_t)high};
}

/* Parse one size from `len` bytes of text. */
static int parse_size(const char *text, size_t len, uint64_t max, uint64_t *out)
{
    char word[32];
    if (len >= sizeof word) {
        return QN_EINVAL;
    }
    memcpy(word, text, len);
    word[len] = '\0';
    uint64_t size;
    if (qn_parse_count(word, &size) != QN_OK || size > max) {
        return QN_EINVAL;
    }
    *out = size;
    return QN_OK;
}

static int too_large(const char *text, uint64_t max, char *error,
                     size_t error_size)
{
    snprintf(error, error_size,
             "'%.40s' is not a size up to %" PRIu64
             "; for example: 100, 16..4096, etc, mixed",
             text, max);
    return QN_EINVAL;
}

int qn_sizes_parse(struct qn_sizes *s, enum qn_sizes_kind etc, const char *text,
                   uint64_t max, char *error, size_t error_size)
{
    if (strcmp(text, "etc") == 0) {
        *s = qn_sizes_etc(etc);
        return QN_OK;
    }
    if (strcmp(text, "mixed") == 0) {
        *s = (struct qn_sizes){QN_SIZES_MIXED, QN_SIZES_MIXED_MIN,
                               QN_SIZES_MIXED_MAX};
        return s->max <= max ? QN_OK : too_large(text, max, error, error_size);
    }
    bool mixed = strncmp(text, "mixed:", 6) == 0 && strstr(text, "..") != NULL;
    text += mixed ? 6 : 0;
    const char *dots = strstr(text, "..");
    size_t len = dots != NULL ? (size_t)(dots - text) : strlen(text);
    const char *last = dots != NULL ? dots + 2 : text;
    uint64_t from;
    uint64_t to;
    if (parse_size(text, len, max, &from) != QN_OK ||
        parse_size(last, strlen(last), max, &to) != QN_OK) {
        return too_large(text, max, error, error_size);
    }
    if (mixed && from == 0) {
        snprintf(error, error_size,
                 "the lower bound of mixed must be at least 1");
        return QN_EINVAL;
    }
    if (from > to) {
        snprintf(error, error_size,
                 "'%s' is an empty range; did you mean %s..%.*s?", text, last,
                 (int)len, text);
        return QN_EINVAL;
    }
    *s = (struct qn_sizes){mixed        ? QN_SIZES_MIXED
                           : from == to ? QN_SIZES_FIXED
                                        : QN_SIZES_RANGE,
                           from, to};
    return QN_OK;
}

/* Fraction in the middle of one of 2^53 steps, so never 0 or 1. */
static double fraction(uint64_t hash)
{
    return qn_random_fraction(hash) + 0x1p-54;
}

static double etc_key(double u)
{
    const double mu = 30.7984;
    const double sigma = 8.20449;
    const double k = 0.078688;
    return mu + sigma / k * (exp(-k * log(-log(u))) - 1);
}

static double etc_value(double u)
{
    const double sigma = 214.476;
    const double k = 0.348238;
    double sum = 0;
    for (unsigned i = 0; i < QN_ARRAY_COUNT(small_values); i++) {
        sum += small_values[i];
        if (u < sum) {
            return i;
        }
    }
    double above = (1 - u) / (1 - sum); /* in (0, 1] */
    return 15 + sigma / k * (exp(-k * log(above)) - 1);
}

/* The u-quantile: P(size > s) is proportional to sqrt(L / s) - sqrt(L / H). */
static double mixed_size(const struct qn_sizes *s, double u)
{
    double root = sqrt((double)s->min / (double)s->max);
    double above = 1 - u * (1 - root);
    return (double)s->min / (above * above);
}

static uint64_t bound(const struct qn_sizes *s, double size)
{
    double most = fmin(fmax(size, (double)s->min), (double)s->max);
    return (uint64_t)most;
}

void qn_sizes_print(const struct qn_sizes *s, char text[QN_SIZES_TEXT_MAX])
{
    if (s->kind == QN_SIZES_ETC_KEY || s->kind == QN_SIZES_ETC_VALUE) {
        snprintf(text, QN_SIZES_TEXT_MAX, "etc");
    } else if (s->kind == QN_SIZES_MIXED) {
        snprintf(text, QN_SIZES_TEXT_MAX, "mixed:%" PRIu64 "..%" PRIu64, s->min,
                 s->max);
    } else if (s->min == s->max) {
        snprintf(text, QN_SIZES_TEXT_MAX, "%" PRIu64, s->min);
    } else {
        snprintf(text, QN_SIZES_TEXT_MAX, "%" PRIu64 "..%" PRIu64, s->min,
                 s->max);
    }
}

uint64_t qn_sizes_at(const struct qn_sizes *s, uint64_t hash)
{
    switch (s->kind) {
    case QN_SIZES_RANGE:
        return s->min + qn_random_scale(hash, s->max - s->min + 1);
    case QN_SIZES_MIXED:
        return bound(s, mixed_size(s, fraction(hash)));
    case QN_SIZES_ETC_KEY:
        return bound(s, etc_key(fraction(hash)));
    case QN_SIZES_ETC_VALUE:
        return bound(s, etc_value(fraction(hash)));
    case QN_SIZES_FIXED:
        break;
    }
    return s->min;
}

uint64_t qn_sizes_mean(const struct qn_sizes *s)
{
    switch (s->kind) {
    case QN_SIZES_MIXED:
        return (uint64_t)ceil(sqrt((double)s->min * (double)s->max));
    case QN_SIZES_ETC_KEY:
        return 37; /* mu + sigma / k * (gamma(1 - k) - 1) = 36.2 */
    case QN_SIZES_ETC_VALUE:
        return 195; /* 0.558 * (15 + sigma / (1 - k)) + the table's 2.4 */
    case QN_SIZES_FIXED:
    case QN_SIZES_RANGE:
        break;
    }
    return (s->min + s->max + 1) / 2;
}
