#ifndef QN_LOADGEN_BCAST_DRILL_H
#define QN_LOADGEN_BCAST_DRILL_H

/**
 * One topology under measurement: broadcasts of core/group between threads that
 * are pinned to cores.
 *
 * First one operation at a time (latency), then as many as a window permits
 * (throughput).
 *
 *   plain  A leaf asks the root over its direct queuepair; the root broadcasts;
 *          the leaf takes the time from its request until it has delivered. So
 *          one clock is read. Leaves take turns; the latency is that of the
 *          leaf whose median is the greatest. The next request waits until all
 *          nodes have delivered. Window: the root goes on when the slowest node
 *          has delivered.
 *   acked  From the root's send until it knows that all have delivered, by the
 *          root's clock. Window: of unacknowledged ones.
 *
 * Each message says its number and each node counts: what comes twice, out of
 * order, torn or not at all is wrong.
 *
 * The calling thread waits for the nodes. Nodes that share a core sleep
 * whenever they find nothing; others spin.
 */

#include "core/base/atomic.h"
#include "core/base/histogram.h"
#include "core/qp.h"
#include "core/topo/tree.h"

#define QN_DRILL_SIZE_MIN   8u    /* bytes: the number */
#define QN_DRILL_SIZE_MAX   4096u /* bytes */
#define QN_DRILL_WINDOW_MAX 64u   /* operations: QN_ACKED_COUNT */
#define QN_DRILL_LANE_BYTES                                                    \
    16384u /* most of a window, so that 64 nodes fit into memory */

struct qn_drill_opts {
    const struct qn_transport *transport; /* kept for the call, as all here */
    const struct qn_tree *tree;           /* members 0 .. n-1, n > 1 */
    const uint32_t *core;                 /* [n] CPU of each node */
    bool acked;
    bool shared;     /* fewer cores than nodes */
    uint32_t size;   /* bytes of a message */
    uint32_t window; /* operations; window * (size + 8) at most
                        QN_DRILL_LANE_BYTES */
    double seconds;  /* in all; longer if nothing would be known otherwise */
    qn_a32 *stop;    /* not 0: end as soon as possible. NULL: no such */
};

/** What several drills of one topology have found. */
struct qn_drill {
    struct qn_histogram *latency; /* [histograms]: of each leaf in ascending
                                     order; acked: one; own */
    uint32_t histograms;
    uint64_t sent;   /* broadcasts */
    uint64_t wrong;  /* deliveries that were missing or not as they should */
    uint64_t stream; /* operations of the throughput part */
    double stream_s; /* that they took */
};

/** @return QN_OK or QN_ENOMEM. */
int qn_drill_init(struct qn_drill *d, const struct qn_tree *tree, bool acked);
void qn_drill_fini(struct qn_drill *d);

/** Run once and add to d. @return QN_OK; QN_EINVAL; QN_ENOMEM; QN_EIO: a node
 *  could not start, or nothing came for QN_DRILL_PATIENCE. */
int qn_drill_run(struct qn_drill *d, const struct qn_drill_opts *o);

#define QN_DRILL_PATIENCE (20 * QN_S)

/** Quantile q of the slowest leaf, ns; acked: of the operation. 0: nothing is
 *  known, or not of every leaf. */
uint64_t qn_drill_latency(const struct qn_drill *d, double q);

/** Operations per second; 0: nothing is known. */
double qn_drill_rate(const struct qn_drill *d);

#endif
