#ifndef QN_LOADGEN_CLIENT_STATS_H
#define QN_LOADGEN_CLIENT_STATS_H

/**
 * Counts and latencies of a load. One thread each; threads merge their own.
 */

#include "core/base/histogram.h"
#include "loadgen/workload/mix.h"

#include <stdio.h>

#define QN_STATS_TEXT_MAX 200

struct qn_op_stats {
    uint64_t ops;    /* answered correctly */
    uint64_t misses; /* of these, null replies */
    uint64_t errors; /* error replies */
    uint64_t wrong;  /* replies of the wrong type, size or content */
    struct qn_histogram latency; /* of ops: response time, from the intended
                                    time of the request */
    struct qn_histogram
        service; /* of ops: service time, from the write of the request; empty
                    in a closed loop, where both are equal */
};

/** Several megabytes: do not put it on the stack. All zero is empty. */
struct qn_stats {
    struct qn_op_stats op[QN_OP_COUNT];
    uint64_t disconnects; /* connections lost */
    uint64_t unanswered;  /* outstanding requests of lost connections: outcome
                             unknown */
    uint64_t unsent; /* open loop: requests due before the end and never sent */
    uint64_t
        spent; /* clients that stopped early because the history has no room */
    uint64_t
        waiting; /* outstanding or due requests at the hand-in; 0 in a total */
    FILE *raw;   /* each counted reply is written here, too, as "get 1234 1000"
                    and a newline: response and service time in ns. NULL: off.
                    Neither merged nor cleared */
    char first_error[QN_STATS_TEXT_MAX]; /* "" if none */
    char first_wrong[QN_STATS_TEXT_MAX];
};

void qn_stats_merge(struct qn_stats *to, const struct qn_stats *from);

/** Clear; cheaper than overwriting all of it. */
void qn_stats_clear(struct qn_stats *s);

/** Add the counts of all operations to `sum`. */
void qn_stats_sum(const struct qn_stats *s, struct qn_op_stats *sum);

void qn_op_stats_clear(struct qn_op_stats *o);

#endif
