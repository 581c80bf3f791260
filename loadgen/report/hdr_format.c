#include "loadgen/report/hdr_format.h"

#include "core/base/bits.h"

#include <inttypes.h>
#include <math.h>

/*
 * The steps are those of HdrHistogram's PercentileIterator, so that files of
 * two tools have lines at the same percentiles. The percentile of a line is its
 * step, its value the first bucket that reaches the step, its count the number
 * of values up to there. The bucket of the largest value gets at most one step,
 * then the line of 100 %, which has no fourth column: 1/0.
 *
 * Mean and deviation take each value as the middle of its bucket, as
 * HdrHistogram does; the error is below 0.05 %.
 */

#define STEPS_PER_HALF 5

/* Next step after `level` (%): five steps per halving of the remaining
 * distance. */
static double next_level(double level)
{
    double halvings = floor(log2(100 / (100 - level))) + 1;
    return level + 100 / (STEPS_PER_HALF * exp2(halvings));
}

static uint64_t value_of(const struct qn_histogram *h, uint32_t index)
{
    return index == QN_HISTOGRAM_BUCKETS - 1
               ? h->max
               : QN_MIN(qn_histogram_upper(index), h->max);
}

static double middle_of(const struct qn_histogram *h, uint32_t index)
{
    uint64_t below = index == 0 ? 0 : qn_histogram_upper(index - 1) + 1;
    return ((double)below + (double)value_of(h, index)) / 2;
}

static void write_step(FILE *to, double ns, double level, uint64_t count)
{
    fprintf(to, "%12.6f %2.12f %10" PRIu64, ns / 1e6, level / 100, count);
    if (level < 100) {
        fprintf(to, " %14.2f", 1 / (1 - level / 100));
    }
    fputc('\n', to);
}

static void write_steps(FILE *to, const struct qn_histogram *h)
{
    double level = 0;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < QN_HISTOGRAM_BUCKETS && seen < h->count; i++) {
        if (h->bucket[i] == 0) {
            continue;
        }
        seen += h->bucket[i];
        double reached = 100 * (double)seen / (double)h->count;
        while (level <= reached && level < 100) {
            write_step(to, (double)value_of(h, i), level, seen);
            level = next_level(level);
            if (seen == h->count) {
                break;
            }
        }
    }
    if (h->count > 0) {
        write_step(to, (double)h->max, 100, h->count);
    }
}

static double mean_of(const struct qn_histogram *h)
{
    double sum = 0;
    for (uint32_t i = 0; i < QN_HISTOGRAM_BUCKETS; i++) {
        sum += (double)h->bucket[i] * middle_of(h, i);
    }
    return h->count > 0 ? sum / (double)h->count : 0;
}

static double deviation_of(const struct qn_histogram *h, double mean)
{
    double sum = 0;
    for (uint32_t i = 0; i < QN_HISTOGRAM_BUCKETS; i++) {
        double off = middle_of(h, i) - mean;
        sum += (double)h->bucket[i] * off * off;
    }
    return h->count > 0 ? sqrt(sum / (double)h->count) : 0;
}

void qn_hdr_format_write(FILE *to, const struct qn_histogram *h,
                         const char *about)
{
    fprintf(to, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
            "1/(1-Percentile)");
    write_steps(to, h);
    double mean = mean_of(h);
    fprintf(to, "#[Mean    = %12.6f, StdDeviation   = %12.6f]\n", mean / 1e6,
            deviation_of(h, mean) / 1e6);
    fprintf(to, "#[Max     = %12.6f, Total count    = %12" PRIu64 "]\n",
            (double)h->max / 1e6, h->count);
    fprintf(to, "#[Buckets = %12d, SubBuckets     = %12d]\n",
            QN_HISTOGRAM_MAX_BITS - QN_HISTOGRAM_STEP_BITS,
            2 * QN_HISTOGRAM_STEPS);
    fprintf(to, "#[Values in ms; %s]\n", about);
}
