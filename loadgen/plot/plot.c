#include "loadgen/plot/plot.h"

#include "core/base/assert.h"
#include "core/base/bits.h"

#include <math.h>
#include <string.h>

/*
 * Scales, ticks and labels; svg.c does the drawing.
 *
 * Round numbers are 1, 2 and 5 times a power of ten. Ticks are computed as
 * integer * step, not by adding up, so that they are the same doubles from
 * which the labels are made. EDGE tolerates rounding of a tick at the end of an
 * axis.
 */

#define EDGE 1e-9

double qn_scale_at(const struct qn_scale *s, double value)
{
    QN_ASSERT(s->hi > s->lo);
    double v = QN_MAX(s->lo, QN_MIN(s->hi, value));
    double share = s->log ? log(v / s->lo) / log(s->hi / s->lo)
                          : (v - s->lo) / (s->hi - s->lo);
    return s->from + share * (s->to - s->from);
}

/* The i-th of ..., 0.5, 1, 2, 5, 10, ...; the 0th is 1. */
static double round_number(int i)
{
    int decade = i >= 0 ? i / 3 : -((2 - i) / 3);
    int which = i - 3 * decade;
    double digit = which == 0 ? 1 : which == 1 ? 2 : 5;
    return digit * pow(10, decade);
}

/* Index of the smallest round number that is not below value > 0. */
static int round_up(double value)
{
    int i = 3 * (int)floor(log10(value));
    while (round_number(i) < value * (1 - EDGE)) {
        i++;
    }
    return i;
}

static int round_down(double value)
{
    int i = round_up(value);
    return round_number(i) > value * (1 + EDGE) ? i - 1 : i;
}

static void add(struct qn_ticks *t, double at)
{
    QN_ASSERT(t->count < QN_TICKS_MAX);
    t->at[t->count++] = at;
}

void qn_ticks_linear(struct qn_ticks *t, double lo, double hi, uint32_t most)
{
    QN_ASSERT(hi > lo && most >= 2 && most <= QN_TICKS_MAX);
    t->count = 0;
    double slack = (hi - lo) * EDGE;
    int i = round_up((hi - lo) / most);
    double first;
    double last;
    double step;
    do {
        step = round_number(i++);
        first = ceil((lo - slack) / step);
        last = floor((hi + slack) / step);
    } while (last - first + 1 > most);
    uint32_t count = (uint32_t)(last - first + 1);
    for (uint32_t n = 0; n < count; n++) {
        add(t, (first + n) * step + 0.0); /* -0 becomes 0 */
    }
}

/* Take the round numbers in lo..hi: all of them if every is 0, else each
 * `every`-th of those with digit 1. @return false if there are more than
 * `most`. */
static bool try_log(struct qn_ticks *t, double lo, double hi, int every,
                    uint32_t most)
{
    t->count = 0;
    int last = round_down(hi);
    for (int i = round_up(lo); i <= last; i++) {
        bool shown = every == 0 || (i % 3 == 0 && i / 3 % every == 0);
        if (shown && t->count == most) {
            return false;
        }
        if (shown) {
            add(t, round_number(i));
        }
    }
    return true;
}

void qn_ticks_log(struct qn_ticks *t, double lo, double hi, uint32_t most)
{
    QN_ASSERT(lo > 0 && hi > lo && most >= 2 && most <= QN_TICKS_MAX);
    for (int every = 0; !try_log(t, lo, hi, every, most); every++) {
    }
}

double qn_axis_end(double value)
{
    if (value <= 0) {
        return 1;
    }
    /* The end is a tick of an axis with about five ticks. */
    double step = round_number(round_up(value / 5));
    return ceil(value / step * (1 - EDGE)) * step;
}

void qn_axis_log(double *lo, double *hi)
{
    QN_ASSERT(*lo > 0 && *hi >= *lo);
    int first = round_down(*lo);
    int last = QN_MAX(round_up(*hi), first + 1);
    *lo = round_number(first);
    *hi = round_number(last);
}

/* ---- labels ---- */

struct unit {
    double of; /* smallest value for this unit */
    const char *name;
};

/* Three digits with the largest unit that leaves at least 1. */
static void label(char text[QN_LABEL_MAX], double value,
                  const struct unit *unit, uint32_t units)
{
    uint32_t u = 0;
    /* 999.6 of one unit is written as 1 of the next. */
    while (u + 1 < units && value >= unit[u + 1].of * 0.9995) {
        u++;
    }
    double scaled = value / unit[u].of;
    int before = scaled < 9.995 ? 1 : scaled < 99.95 ? 2 : 3;
    char number[QN_LABEL_MAX];
    snprintf(number, sizeof number, "%.*f", 3 - before, scaled);
    if (strchr(number, '.') != NULL) {
        size_t end = strlen(number);
        while (number[end - 1] == '0') {
            end--;
        }
        end -= number[end - 1] == '.';
        number[end] = '\0';
    }
    snprintf(text, QN_LABEL_MAX, "%.15s%s", number, unit[u].name);
}

void qn_label_count(char text[QN_LABEL_MAX], double value)
{
    static const struct unit units[] = {
        {1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}};
    label(text, value, units, QN_ARRAY_COUNT(units));
}

void qn_label_time(char text[QN_LABEL_MAX], double ns)
{
    static const struct unit units[] = {
        {1, " ns"}, {1e3, " \302\265s"}, {1e6, " ms"}, {1e9, " s"}};
    label(text, ns, units, QN_ARRAY_COUNT(units));
}

/* Indices of y in ascending order, by insertion since n is small. */
static void sort_indices(const double *y, uint32_t *order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i;
        while (at > 0 && y[order[at - 1]] > y[i]) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
}

void qn_labels_spread(double *y, uint32_t n, double gap, double lo, double hi)
{
    enum { MOST = 64 };
    uint32_t order[MOST];
    QN_ASSERT(n <= MOST);
    sort_indices(y, order, n);
    /* Some rounds of pushing neighbours apart by half of the missing distance
     * converge; the two sweeps after them make the distances exact. */
    for (int round = 0; round < 20; round++) {
        for (uint32_t i = 1; i < n; i++) {
            double *a = &y[order[i - 1]];
            double *b = &y[order[i]];
            double missing = gap - (*b - *a);
            if (missing > 0) {
                *a -= missing / 2;
                *b += missing / 2;
            }
        }
    }
    double floor_at = lo;
    for (uint32_t i = 0; i < n; i++) {
        y[order[i]] = QN_MAX(y[order[i]], floor_at);
        floor_at = y[order[i]] + gap;
    }
    double ceiling = hi;
    for (uint32_t i = n; i-- > 0;) {
        y[order[i]] = QN_MIN(y[order[i]], ceiling);
        ceiling = y[order[i]] - gap;
    }
}
