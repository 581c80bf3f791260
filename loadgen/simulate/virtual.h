#ifndef QN_LOADGEN_SIMULATE_VIRTUAL_H
#define QN_LOADGEN_SIMULATE_VIRTUAL_H

/**
 * Collectives on the timed machine, one at a time: how long does each take?
 *
 * The nodes run the shipping code: contexts of core/group and collectives of
 * core/coll over a transport.
 * Between two operations all nodes are idle for so long that an operation finds
 * no trace of the one before it, but in the caches. Times are those of the
 * prediction (core/topo/predict.h):
 *
 *   broadcast  from the root's call until the last node has delivered
 *   ack        from the root's call until it knows that all have delivered
 *   reduce     all begin; until the root has the sum
 *   barrier    all begin; until the last one has left it
 *   allreduce  all begin; until the last one has the sum
 *   2pc        all begin; until the last one knows the decision
 *   channel    two nodes: from the root's send until the answer is there
 *
 * One thread, one call at a time; allocates.
 */

#include "core/qp.h"
#include "core/sim/timed/timed.h"
#include "core/topo/diamond_ring.h"
#include "core/topo/tree.h"
#include "loadgen/simulate/timeline/trace.h"

enum qn_virtual {
    QN_VIRTUAL_BROADCAST,
    QN_VIRTUAL_ACK,
    QN_VIRTUAL_REDUCE,
    QN_VIRTUAL_BARRIER,
    QN_VIRTUAL_CHANNEL,
    QN_VIRTUAL_ALLREDUCE,
    QN_VIRTUAL_2PC,
    QN_VIRTUALS
};

/** "broadcast", "ack", "reduce", "barrier", "channel", "allreduce", "2pc"; NULL
 *  past the last. */
const char *qn_virtual_name(uint32_t op);

#define QN_VIRTUAL_SIZE_MIN 8u /* bytes: the number */
#define QN_VIRTUAL_SIZE_MAX 4096u

struct qn_virtual_opts {
    enum qn_virtual op;
    const struct qn_transport *transport;
    const struct qn_tree *tree;         /* over the nodes 0 .. n-1, n > 1 */
    const struct qn_diamond_ring *ring; /* ack: as in operation.h */
    struct qn_prices *prices;           /* for n nodes */
    bool
        exchange; /* barrier, allreduce: not over the tree (core/coll/coll.h) */
    uint32_t size;   /* bytes of a message */
    uint32_t warm;   /* operations before the first that counts; 0: two uses of
                        each cell that is in use */
    uint32_t count;  /* operations that count, at least 1 */
    uint64_t gap_ns; /* from one start to the next: more than one takes */
    uint64_t seed;
    double jitter;
    const struct qn_sim_fault *fault; /* [faults] */
    uint32_t faults;
    struct qn_trace *trace; /* filled with the last operation; NULL */
};

struct qn_virtual_result {
    uint64_t *took; /* [count] ps, ascending; own */
    uint32_t count;
    uint64_t wrong;  /* messages that were damaged, lost or repeated */
    bool incomplete; /* nodes were killed or the time was over: `took` has only
                        what was complete */
    struct qn_timed_result run;
};

/** @return QN_OK; QN_EINVAL, QN_ENOMEM. */
int qn_virtual_run(struct qn_virtual_result *r,
                   const struct qn_virtual_opts *o);

void qn_virtual_result_free(struct qn_virtual_result *r);

#endif
