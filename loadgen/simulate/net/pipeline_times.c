#include "loadgen/simulate/net/pipeline_times.h"

#include <stdlib.h>

#define COLD 8u /* of the single ones; of the bursts: one */

void qn_pipeline_times_run(struct qn_pipeline_times *b,
                           qn_ps_t (*send)(void *, uint32_t count), void *ctx)
{
    for (uint32_t i = 0; i < QN_PIPELINE_ALONE; i++) {
        b->alone[i] = send(ctx, 1);
    }
    for (uint32_t i = 0; i < QN_PIPELINE_BURSTS; i++) {
        b->burst[i] = send(ctx, QN_PIPELINE_BURST);
    }
}

static int by_value(const void *a, const void *b)
{
    const qn_ps_t x = *(const qn_ps_t *)a, y = *(const qn_ps_t *)b;
    return x < y ? -1 : x > y;
}

/* The upper one of v [n]; sorts v. */
static double median(qn_ps_t *v, uint32_t n)
{
    qsort(v, n, sizeof v[0], by_value);
    const uint32_t middle = n / 2;
    return (double)v[middle];
}

struct qn_pipeline_result qn_pipeline_times_result(struct qn_pipeline_times *b,
                                                   uint64_t wrong)
{
    const double burst_ps = median(b->burst + 1, QN_PIPELINE_BURSTS - 1);
    return (struct qn_pipeline_result){
        .latency_ns = median(b->alone + COLD, QN_PIPELINE_ALONE - COLD) / 1000,
        .per_us = QN_PIPELINE_BURST / (burst_ps / 1e6),
        .wrong = wrong};
}
