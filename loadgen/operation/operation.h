#ifndef QN_LOADGEN_OPERATION_OPERATION_H
#define QN_LOADGEN_OPERATION_OPERATION_H

/**
 * The programs that nodes run to measure an operation over a tree: broadcast,
 * acknowledged broadcast (also over a diamond ring), reduction, barrier,
 * all-reduction, commit. What is
 * sent, awaited, checked and timed is here; threads, cores and channels are the
 * caller's. So the same programs run on threads (loadgen/bcast) and on the
 * simulated machine.
 *
 * Each program has two parts: one operation at a time (latency), then as many
 * as are allowed to be outstanding (throughput).
 *
 *   broadcast  A leaf sends a request to the root over its direct queuepair;
 *              the root broadcasts; the leaf measures the time from its request
 *              until it has delivered, so only one clock is read. Leaves take
 *              turns; the result is that of the leaf with the greatest median.
 *              The next request waits until all nodes have delivered. Window:
 *              the root continues when the slowest node has delivered.
 *   ack        From the root's send until it knows that all have delivered, by
 *              the clock of the root. Window: of unacknowledged operations.
 *              With sources: from a source's call until it knows, by its own
 *              clock; the slowest source. Sources take turns. Window: of
 *              operations of all sources, and of each.
 *   reduce     From a common start until the root has the result. Throughput:
 *              nodes run ahead of their parents as far as the lanes allow.
 *   barrier    From a common start until the last node has left. Throughput:
 *              one barrier after the other. With a size: an all-reduction of
 *              a vector of that size.
 *   2pc        Commit: from a common start until the last node knows the
 *              decision. Throughput: as for barriers.
 *
 * A common start is an instant on which all nodes have agreed, by an
 * all-reduction of the time just before; clocks of all cores must agree. Where
 * nodes share cores it would be met by none: then the root's own start and its
 * own end are taken.
 *
 * Each message carries its number and each node counts: a message that is
 * duplicated, out of order, torn or missing is wrong, and so is a wrong result.
 *
 * Threads: create, sum and destroy by one thread, outside of the run; one
 * thread per node runs qn_operation_node. Nodes poll; with `shared` they sleep
 * on their doorbells.
 */

#include "core/base/atomic.h"
#include "core/base/histogram.h"
#include "core/coll/wiring.h"
#include "core/qp.h"
#include "core/topo/diamond_ring.h"
#include "core/topo/predict.h"
#include "core/topo/tree.h"

#define QN_OPERATION_SIZE_MIN   8u    /* bytes: the number */
#define QN_OPERATION_SIZE_MAX   4096u /* bytes; reduce: QN_COLL_WORDS words */
#define QN_OPERATION_WINDOW_MAX 64u   /* operations */
#define QN_OPERATION_LANE_BYTES                                                \
    16384u /* maximum of a window, so that 64 nodes fit into memory */
#define QN_OPERATION_PATIENCE (20 * QN_S)

/** Another barrier, to be measured instead of ours: returns when all nodes have
 *  called it. */
typedef void qn_operation_barrier(void *ctx);

struct qn_operation_opts {
    enum qn_collective op;
    const struct qn_tree *tree;         /* members 0 .. n-1, n > 1. Kept */
    const struct qn_diamond_ring *ring; /* ack: over it; the tree then only says
                                           the members and the root, and `core`
                                           is the member of each id. Kept. NULL:
                                           over the tree */
    bool shared;                        /* fewer cores than nodes: sleep */
    uint32_t size;    /* bytes of a message; reduce: of the vector, a
                         multiple of 8 and at most 8 * QN_COLL_WORDS;
                         barrier: 0, or as for reduce; 2pc: unused */
    uint32_t window;  /* operations (broadcast, ack); window * (size +
                         8) at most QN_OPERATION_LANE_BYTES */
    uint32_t sources; /* ack: nodes 0 .. sources-1 submit, each a window at
                         most; 0: the root alone */
    double seconds;   /* of both parts together; longer if there would
                         be no result otherwise */
    uint64_t least;   /* operations of each part, at least; sources: of
 the first part 4096 at most */
    qn_a32 *stop;     /* end early when it is not 0; NULL: none */
    qn_operation_barrier *other; /* barrier: measure this one; NULL: ours */
    void *other_ctx;
};

/** The wiring of a member of an acknowledged broadcast, over a tree, or over a
 *  ring if there is one. @return as qn_wiring_tree. */
int qn_operation_wiring(struct qn_wiring **out, const struct qn_tree *tree,
                        const struct qn_diamond_ring *ring, qn_node_t self);

/** The members and the root of a ring, as a tree. @return QN_OK, or QN_EINVAL:
 *  `core` is no map. */
int qn_operation_ring_members(struct qn_tree *out,
                              const struct qn_diamond_ring *ring);

/** What a node runs on. All arrays are by node, [tree->n]. */
struct qn_operation_end {
    qn_node_t self;
    struct qn_qp **tree_qp;       /* along the edges of the tree or ring */
    struct qn_qp **direct_qp;     /* broadcast: between the root and each leaf;
                                     sources: and each node; else unused */
    struct qn_doorbell *doorbell; /* shared: its own */
    struct qn_doorbell_handle *ringer; /* shared broadcast: of all others */
};

/** Result of one or several runs over one tree. */
struct qn_operation_result {
    struct qn_histogram *latency; /* [histograms]: broadcast: one per leaf,
                                     ascending; sources: one of each; else one;
                                     own */
    uint32_t histograms;
    uint64_t sent;   /* operations */
    uint64_t wrong;  /* messages or results that were missing or wrong */
    uint64_t stream; /* operations of the throughput part */
    double stream_s; /* seconds of the throughput part */
};

/** For runs with these options. @return QN_OK or QN_ENOMEM. */
int qn_operation_result_init(struct qn_operation_result *r,
                             const struct qn_tree *tree, enum qn_collective op,
                             uint32_t sources);
void qn_operation_result_fini(struct qn_operation_result *r);

/** Quantile q of the slowest leaf (broadcast) or of the operation, ns. 0:
 *  unknown, or not known for every leaf. */
uint64_t qn_operation_latency(const struct qn_operation_result *r, double q);

/** Operations per second; 0: unknown. */
double qn_operation_rate(const struct qn_operation_result *r);

/** Cells that a lane must have, so that no message is dropped. A power of two.
 */
uint32_t qn_operation_cells(const struct qn_operation_opts *o);

/** One run: what its nodes share. */
struct qn_operation;

/** @param o  Borrowed, what it points to is kept.
 *  @param r  Kept: the run adds to it.
 *  @return QN_OK; QN_EINVAL (opts), QN_ENOMEM. */
int qn_operation_create(struct qn_operation **out,
                        const struct qn_operation_opts *o,
                        struct qn_operation_result *r);
/** NULL is fine. The queuepairs may be closed already. */
void qn_operation_destroy(struct qn_operation *p);

/** A node's part, to the end. @return QN_OK; QN_ENOMEM; QN_ETIMEDOUT: some node
 *  found nothing to do for QN_OPERATION_PATIENCE, or could not start. */
int qn_operation_node(struct qn_operation *p,
                      const struct qn_operation_end *end);

/** After all nodes have returned QN_OK: add what each has counted to the
 *  result. */
void qn_operation_sum(struct qn_operation *p);

#endif
