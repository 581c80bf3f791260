#ifndef QN_LOADGEN_SIMULATE_PIPELINE_TIMES_H
#define QN_LOADGEN_SIMULATE_PIPELINE_TIMES_H

/**
 * What the paper on diamond rings measures of acknowledged broadcasts: single
 * ones, and bursts of QN_PIPELINE_BURST; and what becomes of the times. Plain
 * data.
 */

#include "core/sim/timed/prices.h"

#define QN_PIPELINE_BURST  128u /* operations */
#define QN_PIPELINE_ALONE  24u  /* single operations, before the bursts */
#define QN_PIPELINE_BURSTS 5u
#define QN_PIPELINE_TOTAL                                                      \
    (QN_PIPELINE_ALONE + QN_PIPELINE_BURSTS * QN_PIPELINE_BURST)

struct qn_pipeline_times {
    qn_ps_t alone[QN_PIPELINE_ALONE], burst[QN_PIPELINE_BURSTS];
};

struct qn_pipeline_result {
    double latency_ns; /* of one, from its send until all have acknowledged;
                          median */
    double per_us;     /* of a burst; median of bursts */
    uint64_t wrong;    /* messages that were lost, repeated or damaged */
};

/** Run all, one after the other: `send` returns what `count` operations took.
 */
void qn_pipeline_times_run(struct qn_pipeline_times *b,
                           qn_ps_t (*send)(void *, uint32_t count), void *ctx);

/** The first of each kind are not counted: lanes and caches are cold. Sorts b.
 */
struct qn_pipeline_result qn_pipeline_times_result(struct qn_pipeline_times *b,
                                                   uint64_t wrong);

#endif
