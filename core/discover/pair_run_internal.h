#ifndef QN_CORE_DISCOVER_PAIR_RUN_INTERNAL_H
#define QN_CORE_DISCOVER_PAIR_RUN_INTERNAL_H

/**
 * One pair_run of a pair: what both threads do, in step with each other.
 */

#include "core/base/atomic.h"
#include "core/discover/measure.h"
#include "core/qp.h"

/** What a core reads and its partner writes, on the core's own memory node:
 *  this, then the lane from the partner. Between pair_runs its owner clears it.
 */
struct qn_lane_memory {
    alignas(QN_CACHELINE) qn_a64 met;   /* meetings of the pair_run */
    alignas(QN_CACHELINE) qn_a64 batch; /* batches that were sent whole */
    alignas(QN_CACHELINE) qn_a64 probe; /* the bare line: a sequence */
    uint8_t probe_bytes[56];
    alignas(QN_CACHELINE) struct qn_round said; /* announced by met */
    uint32_t disturbed;
    uint32_t go_on; /* a to b: another round; announced by met */
};

/** One side of a pair in a pair_run. */
struct qn_pair_run {
    struct qn_lane_memory *tx;       /* the partner's seat */
    const struct qn_lane_memory *rx; /* the own one */
    struct qn_qp *qp;
    const qn_a32 *stop; /* not 0: leave */
    bool first;         /* this is core a, which decides and notes */
    uint64_t meetings, batches, probes;
    uint32_t overhead; /* of reading the counter, cycles */
};

/** Wait until the partner is here, too. @return QN_OK, QN_EAGAIN: stop. */
int qn_pair_run_meet(struct qn_pair_run *v);

/** One round. Core a fills *r; *disturbed: a thread lost its core meanwhile, so
 *  the round should not count. @return QN_OK, QN_EAGAIN, or what the queuepair
 *  said. */
int qn_pair_run_round(struct qn_pair_run *v, struct qn_round *r,
                      bool *disturbed);

/** What reading the counter takes, cycles. */
uint32_t qn_pair_run_overhead(void);

#endif
