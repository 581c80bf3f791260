#include "loadgen/report/hdr_format.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

static struct qn_histogram h;

/* The whole output for `h`; the caller frees it. */
static char *written(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    qn_hdr_format_write(f, &h, "what was run");
    fclose(f);
    return text;
}

static void expect(const char *golden)
{
    char *text = written();
    cr_assert(strcmp(text, golden) == 0, "expected:\n%s\ngot:\n%s", golden,
              text);
    free(text);
}

Test(hgrm, an_empty_histogram_has_no_steps)
{
    memset(&h, 0, sizeof h);
    expect("       Value     Percentile TotalCount 1/(1-Percentile)\n"
           "\n"
           "#[Mean    =     0.000000, StdDeviation   =     0.000000]\n"
           "#[Max     =     0.000000, Total count    =            0]\n"
           "#[Buckets =           31, SubBuckets     =         2048]\n"
           "#[Values in ms; what was run]\n");
}

/* 1, 2, 3, 4 us: below 2048 ns each value has its own bucket, above it the
 * buckets span 2 ns, and their middle counts for mean and deviation. */
Test(hgrm, steps_halve_what_remains_and_end_at_the_largest)
{
    memset(&h, 0, sizeof h);
    for (uint64_t us = 1; us <= 4; us++) {
        qn_histogram_record(&h, us * 1000);
    }
    expect("       Value     Percentile TotalCount 1/(1-Percentile)\n"
           "\n"
           "    0.001000 0.000000000000          1           1.00\n"
           "    0.001000 0.100000000000          1           1.11\n"
           "    0.001000 0.200000000000          1           1.25\n"
           "    0.002000 0.300000000000          2           1.43\n"
           "    0.002000 0.400000000000          2           1.67\n"
           "    0.002000 0.500000000000          2           2.00\n"
           "    0.003001 0.550000000000          3           2.22\n"
           "    0.003001 0.600000000000          3           2.50\n"
           "    0.003001 0.650000000000          3           2.86\n"
           "    0.003001 0.700000000000          3           3.33\n"
           "    0.003001 0.750000000000          3           4.00\n"
           "    0.004000 0.775000000000          4           4.44\n"
           "    0.004000 1.000000000000          4\n"
           "#[Mean    =     0.002500, StdDeviation   =     0.001118]\n"
           "#[Max     =     0.004000, Total count    =            4]\n"
           "#[Buckets =           31, SubBuckets     =         2048]\n"
           "#[Values in ms; what was run]\n");
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Times over six decades, like those of a server with rare long stalls. */
static uint64_t next_time(uint64_t *state)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return 1000 + ((*state >> 33) << ((*state >> 20) % 8)) % 4000000007U;
}

/* Each line states how many values are <= its value. The test counts in the
 * sorted samples; the value itself is the sample of that rank to 1/1024. */
Test(hgrm, every_line_agrees_with_the_sorted_samples)
{
    enum { N = 200000 };
    uint64_t *sample = malloc(N * sizeof *sample);
    uint64_t state = 7;
    memset(&h, 0, sizeof h);
    for (int i = 0; i < N; i++) {
        sample[i] = next_time(&state);
        qn_histogram_record(&h, sample[i]);
    }
    qsort(sample, N, sizeof *sample, compare);
    char *text = written();
    int lines = 0;
    for (char *line = strtok(text, "\n"); line != NULL;
         line = strtok(NULL, "\n")) {
        double ms;
        double level;
        long count;
        if (sscanf(line, "%lf %lf %ld", &ms, &level, &count) != 3) {
            continue;
        }
        lines++;
        cr_assert(count >= 1 && count <= N, "%s", line);
        double exact = (double)sample[count - 1] / 1e6;
        cr_assert(ms >= exact - 1e-9 && ms <= exact * (1 + 1.0 / 1024),
                  "%s, the sample is %f", line, exact);
        cr_assert((double)count >= level * N - 1e-3, "%s", line);
        size_t rank = level == 0 ? 1 : (size_t)(level * N + 0.999999);
        exact = (double)sample[rank - 1] / 1e6;
        cr_assert(ms >= exact - 1e-9 && ms <= exact * (1 + 1.0 / 1024),
                  "%s, the percentile is %f", line, exact);
    }
    cr_assert(lines > 60, "%d lines", lines);
    free(text);
    free(sample);
}
