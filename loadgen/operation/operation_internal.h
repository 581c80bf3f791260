#ifndef QN_LOADGEN_OPERATION_OPERATION_INTERNAL_H
#define QN_LOADGEN_OPERATION_OPERATION_INTERNAL_H

/** What the nodes of a run share, what each has for itself, and how a node
 *  waits. For this folder only. */

#include "core/coll/coll.h"
#include "core/coll/sequenced_broadcast.h"
#include "core/group/group.h"
#include "loadgen/operation/operation.h"

/** A node's line among those that are shared. */
struct qn_operation_tally {
    alignas(QN_CACHELINE) qn_a64 delivered; /* written by its node only */
    uint64_t wrong;                         /* written when it ends */
    uint64_t order; /* sources: hash of what came, in order; likewise */
    /* What its program runs on; owned. */
    struct qn_coll *coll;
    struct qn_context *context;
    struct qn_wiring *wiring; /* of `sequenced` */
    struct qn_sequenced_broadcast *sequenced;
};

struct qn_operation {
    struct qn_operation_opts o;
    struct qn_operation_result
        *r; /* each histogram is written by its leaf or the root, stream by the
               root; the rest is added after all have ended */
    uint32_t leaves;
    qn_node_t *leaf;                  /* [leaves] ascending, owned */
    struct qn_operation_tally *tally; /* [n] owned */
    alignas(QN_CACHELINE) qn_a32 ready;
    qn_a32 finished;
    qn_a32 stuck; /* a node gave up */
};

/** One node. A context (broadcast), a sequenced broadcast (ack), or a
 * collective (all others). */
struct qn_operation_self {
    struct qn_operation *p;
    const struct qn_operation_end *end;
    struct qn_context *context;
    struct qn_sequenced_broadcast *sequenced;
    struct qn_coll *coll;
    uint64_t wrong;
    uint64_t idle;
    uint64_t moved; /* when a message was found last: ns, or naps; 0: now */
};

/** A node has given up, so all do. */
bool qn_operation_given_up(const struct qn_operation_self *n);
void qn_operation_give_up(struct qn_operation_self *n);

/** The user wants an end. */
bool qn_operation_interrupted(const struct qn_operation_self *n);

/** Nothing was found: pause, or sleep until a message comes. */
void qn_operation_idle(struct qn_operation_self *n);

/** Ends of the latency part: the time is over, and there were enough. */
bool qn_operation_over(const struct qn_operation_self *n, uint64_t done,
                       uint64_t least, qn_time_t deadline);

/** Barrier of all nodes; `count` must be 0 before. Takes turns until all have
 *  come. */
void qn_operation_meet(struct qn_operation_self *n, qn_a32 *count,
                       void (*turn)(void *ctx), void *ctx);

/** The window of a sequenced broadcast: a power of two. */
uint32_t qn_operation_window(const struct qn_operation_opts *o);

/** The programs. @return QN_OK; or why this node could not start. */
int qn_operation_broadcasts(struct qn_operation_self *self);
int qn_operation_sources(struct qn_operation_self *self);
int qn_operation_collectives(struct qn_operation_self *n);

#endif
