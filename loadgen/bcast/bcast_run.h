#ifndef QN_LOADGEN_BCAST_BCAST_RUN_H
#define QN_LOADGEN_BCAST_BCAST_RUN_H

/**
 * Measures one topology: broadcasts of core/group between threads that are
 * pinned to cores.
 *
 * First one operation at a time (latency), then as many as a window permits
 * (throughput).
 *
 *   plain  A leaf sends a request to the root over its direct queuepair; the
 * root broadcasts; the leaf measures the time from its request until it has
 *          delivered, so only one clock is read. Leaves take turns; the result
 * is that of the leaf with the greatest median. The next request waits until
 *          all nodes have delivered. Window: the root continues when the
 * slowest node has delivered. acked  From the root's send until it knows that
 * all have delivered, by the clock of the root. Window: of unacknowledged
 * operations.
 *
 * Each message carries its number and each node counts: a message that is
 * duplicated, out of order, torn or missing is wrong.
 *
 * The calling thread waits for the nodes. Nodes that share a core sleep when
 * there is nothing to do; others spin.
 */

#include "core/base/atomic.h"
#include "core/base/histogram.h"
#include "core/qp.h"
#include "core/topo/tree.h"

#define QN_BCAST_RUN_SIZE_MIN   8u    /* bytes: the number */
#define QN_BCAST_RUN_SIZE_MAX   4096u /* bytes */
#define QN_BCAST_RUN_WINDOW_MAX 64u   /* operations: QN_ACKED_COUNT */
#define QN_BCAST_RUN_LANE_BYTES                                                \
    16384u /* maximum of a window, so that 64 nodes fit into memory */

struct qn_bcast_run_opts {
    const struct qn_transport
        *transport;             /* kept for the call, like all pointers here */
    const struct qn_tree *tree; /* members 0 .. n-1, n > 1 */
    const uint32_t *core;       /* [n] CPU of each node */
    bool acked;
    bool shared;     /* fewer cores than nodes */
    uint32_t size;   /* bytes of a message */
    uint32_t window; /* operations; window * (size + 8) at most
                        QN_BCAST_RUN_LANE_BYTES */
    double seconds; /* in total; longer if there would be no result otherwise */
    qn_a32 *stop;   /* end early when it is not 0; NULL: none */
};

/** Result of one or several measurements of a topology. */
struct qn_bcast_run {
    struct qn_histogram
        *latency; /* [histograms]: one per leaf, ascending; acked: one; own */
    uint32_t histograms;
    uint64_t sent;   /* broadcasts */
    uint64_t wrong;  /* deliveries that were missing or wrong */
    uint64_t stream; /* operations of the throughput part */
    double stream_s; /* seconds of the throughput part */
};

/** @return QN_OK or QN_ENOMEM. */
int qn_bcast_run_init(struct qn_bcast_run *d, const struct qn_tree *tree,
                      bool acked);
void qn_bcast_run_fini(struct qn_bcast_run *d);

/** Measure once and add to d. @return QN_OK; QN_EINVAL; QN_ENOMEM; QN_EIO: a
 *  node could not start, or no message came for QN_BCAST_RUN_PATIENCE. */
int qn_bcast_run_measure(struct qn_bcast_run *d,
                         const struct qn_bcast_run_opts *o);

#define QN_BCAST_RUN_PATIENCE (20 * QN_S)

/** Quantile q of the slowest leaf, ns; acked: of the operation. 0: unknown, or
 *  not known for every leaf. */
uint64_t qn_bcast_run_latency(const struct qn_bcast_run *d, double q);

/** Operations per second; 0: unknown. */
double qn_bcast_run_rate(const struct qn_bcast_run *d);

#endif
