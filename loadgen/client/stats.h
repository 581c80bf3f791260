#ifndef QN_LOADGEN_CLIENT_STATS_H
#define QN_LOADGEN_CLIENT_STATS_H

/**
 * What a load has seen. One thread each; threads merge theirs.
 */

#include "core/base/histogram.h"
#include "loadgen/workload/mix.h"

#include <stdio.h>

#define QN_STATS_TEXT_MAX 200

struct qn_op_stats {
    uint64_t ops;    /* answered, and the answer was right */
    uint64_t misses; /* of these: null */
    uint64_t errors; /* error replies */
    uint64_t wrong;  /* replies of the wrong type, size or content */
    struct qn_histogram latency; /* of ops only: response time, from when the
                                    request was meant to be sent */
    struct qn_histogram service; /* of ops only: from when it was written; empty
                                    in a closed loop, where both are one */
};

/** Megabytes: not for the stack. All zero is empty. */
struct qn_stats {
    struct qn_op_stats op[QN_OP_COUNT];
    uint64_t disconnects; /* connections lost */
    uint64_t unanswered;  /* requests lost with them: outcome unknown */
    uint64_t unsent;      /* open loop: due before the end, never sent */
    uint64_t spent;       /* clients that stopped early: all that can be
                             recorded was used up */
    uint64_t waiting;     /* asked and not answered, or due and not sent, when
                             this was handed in; 0 in a total */
    FILE *raw; /* each answer that counts is written there too, as "get 1234
                  1000" and a newline: response and service time in ns. NULL:
                  not. Neither merged nor cleared */
    char first_error[QN_STATS_TEXT_MAX]; /* "" if none */
    char first_wrong[QN_STATS_TEXT_MAX];
};

void qn_stats_merge(struct qn_stats *to, const struct qn_stats *from);

/** Empty it; cheaper than writing over all of it. */
void qn_stats_clear(struct qn_stats *s);

/** Add all operations, as if they were one, to `sum`. */
void qn_stats_sum(const struct qn_stats *s, struct qn_op_stats *sum);

void qn_op_stats_clear(struct qn_op_stats *o);

#endif
