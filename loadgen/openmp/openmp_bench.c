/*
 * What constructs of OpenMP cost beside the work that is in them, and the time
 * of a kernel that passes many barriers. JSON on stdout.
 *
 *     openmp_bench THREADS [SAMPLES] [US]
 *
 * The method is that of the EPCC micro-benchmarks (Bull, 1999): the time of
 * many constructs in a row, each around the same short delay, less the time of
 * as many delays in one thread. A sample takes about US microseconds to twice
 * that (less, if COUNT_MOST of a construct take less); a sample of each
 * construct follows the other, so that a drift of the machine counts for all.
 *
 * The kernel is one step of clustering as in Streamcluster: would a point be
 * a better centre? Each thread sums over its points what they would gain, all
 * meet, one decides, all meet, and the points move to the new centre. The
 * coordinates are integers, so each number of threads must give the same cost.
 */
#include <omp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS_MAX 64
#define SAMPLES_MAX 1000
#define DELAY       70 /* turns of a loop, about 0.1 us */
#define COUNT_FIRST 10
/* As many delays take 8 ms, four times the usual US: each construct gets its
 * time. */
#define COUNT_MOST  (COUNT_FIRST << 13)
/* Another process holds up one try now and then, three in a row hardly ever. */
#define TRIES       3
#define POINTS      512
#define DIMENSIONS  8
#define OPENING     4000 /* what one more centre costs */

static int threads = 2;
static _Thread_local uint32_t delayed = 1;
static uint64_t wrong;

/* Each turn needs the one before, and the last one is reported. */
static void delay(void)
{
    uint32_t x = delayed;
    for (int i = 0; i < DELAY; i++) {
        x = x * 1664525u + 1013904223u;
    }
    delayed = x;
}

/* ---- constructs, `count` of each ----------------------------------------- */

static void reference(int count)
{
    for (int i = 0; i < count; i++) {
        delay();
    }
}

static void parallel(int count)
{
    for (int i = 0; i < count; i++) {
#pragma omp parallel num_threads(threads)
        delay();
    }
}

static void loop(int count)
{
#pragma omp parallel num_threads(threads)
    for (int i = 0; i < count; i++) {
#pragma omp for schedule(static)
        for (int t = 0; t < threads; t++) {
            delay();
        }
    }
}

static void parallel_loop(int count)
{
    for (int i = 0; i < count; i++) {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int t = 0; t < threads; t++) {
            delay();
        }
    }
}

static void barrier(int count)
{
#pragma omp parallel num_threads(threads)
    for (int i = 0; i < count; i++) {
        delay();
#pragma omp barrier
    }
}

static void single(int count)
{
#pragma omp parallel num_threads(threads)
    for (int i = 0; i < count; i++) {
#pragma omp single
        delay();
    }
}

/* Each thread has its share of them. */
static void critical(int count)
{
#pragma omp parallel num_threads(threads)
    for (int i = omp_get_thread_num(); i < count; i += threads) {
#pragma omp critical
        delay();
    }
}

static void reduction(int count)
{
    int sum = 0;
    for (int i = 0; i < count; i++) {
#pragma omp parallel num_threads(threads) reduction(+ : sum)
        {
            delay();
            sum += 1;
        }
    }
    wrong += sum != count * threads;
}

/* ---- the kernel ---------------------------------------------------------- */

static int32_t point[POINTS][DIMENSIONS];

struct clustering {
    int centre[POINTS];           /* of each point: another point */
    int64_t distance[POINTS];     /* to it */
    int64_t gain[THREADS_MAX][8]; /* of each thread's points; own lines */
    bool open;
    int64_t cost;
};

static int64_t distance_of(int a, int b)
{
    int64_t sum = 0;
    for (int d = 0; d < DIMENSIONS; d++) {
        const int64_t x = point[a][d] - point[b][d];
        sum += x * x;
    }
    return sum;
}

static void begin_clustering(struct clustering *c)
{
    uint32_t seed = 1;
    c->cost = 0;
    for (int p = 0; p < POINTS; p++) {
        for (int d = 0; d < DIMENSIONS; d++) {
            seed = seed * 1664525u + 1013904223u;
            point[p][d] = (int32_t)(seed >> 24);
        }
        c->centre[p] = 0;
        c->distance[p] = distance_of(p, 0);
        c->cost += c->distance[p];
    }
}

/* One thread's part of a step. */
static void step(struct clustering *c, int candidate)
{
    const int self = omp_get_thread_num(), size = omp_get_num_threads();
    const int from = POINTS * self / size, to = POINTS * (self + 1) / size;
    int64_t gain = 0;
    for (int p = from; p < to; p++) {
        const int64_t there = distance_of(p, candidate);
        gain += there < c->distance[p] ? c->distance[p] - there : 0;
    }
    c->gain[self][0] = gain;
#pragma omp barrier
    if (self == 0) {
        gain = -OPENING;
        for (int t = 0; t < size; t++) {
            gain += c->gain[t][0];
        }
        c->open = gain > 0;
        c->cost -= c->open ? gain : 0;
    }
#pragma omp barrier
    for (int p = from; c->open && p < to; p++) {
        const int64_t there = distance_of(p, candidate);
        if (there < c->distance[p]) {
            c->distance[p] = there;
            c->centre[p] = candidate;
        }
    }
}

/* @return the cost. */
static int64_t cluster(int size, int steps)
{
    static struct clustering c;
    begin_clustering(&c);
#pragma omp parallel num_threads(size)
    for (int i = 0; i < steps; i++) {
        step(&c, i * 37 % POINTS);
    }
    return c.cost;
}

static void kernel(int steps)
{
    static int64_t alone[COUNT_MOST + 1]; /* by steps; 0: not known yet */
    if (alone[steps] == 0) {
        alone[steps] = cluster(1, steps);
    }
    wrong += cluster(threads, steps) != alone[steps];
}

/* ---- samples ------------------------------------------------------------- */

static const struct construct {
    const char *name;
    void (*run)(int count);
    bool whole; /* its time is shown as it is, not less the delays */
} constructs[] = {
    {"reference", reference, true}, {"parallel", parallel, false},
    {"for", loop, false},           {"parallel_for", parallel_loop, false},
    {"barrier", barrier, false},    {"single", single, false},
    {"critical", critical, false},  {"reduction", reduction, false},
    {"kernel", kernel, true},
};

enum { CONSTRUCTS = sizeof constructs / sizeof constructs[0] };

static double sample[CONSTRUCTS][SAMPLES_MAX]; /* us of one */

static double us_of_one(const struct construct *c, int count)
{
    const double from = omp_get_wtime();
    c->run(count);
    return (omp_get_wtime() - from) * 1e6 / count;
}

/* One try that another process holds up would be long, too. */
static bool is_long(const struct construct *c, int count, double us)
{
    int tries = 0;
    while (tries < TRIES && us_of_one(c, count) * count >= us) {
        tries++;
    }
    return tries == TRIES;
}

/* Doubled until a sample is long, as in EPCC's: the region around a few
 * barriers takes longer than they do. */
static int count_of(const struct construct *c, double us)
{
    int count = COUNT_FIRST;
    while (count < COUNT_MOST && !is_long(c, count, us)) {
        count *= 2;
    }
    return count;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(int samples, double us)
{
    int count[CONSTRUCTS];
    for (int c = 0; c < CONSTRUCTS; c++) {
        count[c] = count_of(&constructs[c], us);
    }
    for (int s = 0; s < samples; s++) {
        for (int c = 0; c < CONSTRUCTS; c++) {
            sample[c][s] = us_of_one(&constructs[c], count[c]);
        }
    }
}

static void report(int samples)
{
    double delay_us = 0;
    printf("{\"threads\": %d, \"samples\": %d, \"wrong\": %llu, \"us\": {",
           threads, samples, (unsigned long long)wrong);
    for (int c = 0; c < CONSTRUCTS; c++) {
        qsort(sample[c], (size_t)samples, sizeof sample[c][0], by_value);
        const double middle = sample[c][(samples - 1) / 2];
        delay_us = c == 0 ? middle : delay_us;
        printf("%s\"%s\": %.4f", c > 0 ? ", " : "", constructs[c].name,
               constructs[c].whole ? middle : middle - delay_us);
    }
    printf("}, \"checksum\": %u}\n", delayed);
}

int main(int argc, char **argv)
{
    const int samples = argc > 2 ? atoi(argv[2]) : 20;
    const double us = argc > 3 ? atof(argv[3]) : 2000;
    threads = argc > 1 ? atoi(argv[1]) : 0;
    if (threads < 1 || threads > THREADS_MAX || samples < 1 ||
        samples > SAMPLES_MAX || !(us > 0) || argc > 4) {
        fprintf(stderr,
                "usage: openmp_bench THREADS [SAMPLES] [US]: 1 to %d "
                "threads, 1 to %d samples\n",
                THREADS_MAX, SAMPLES_MAX);
        return 2;
    }
    measure(samples, us);
    report(samples);
    return wrong == 0 ? 0 : 1;
}
