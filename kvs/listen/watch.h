#ifndef QN_KVS_LISTEN_WATCH_H
#define QN_KVS_LISTEN_WATCH_H

/**
 * Who should be helped at his door: a pure machine that is told what waits
 * before the others and how many turns they have made, and says whose
 * connections to take now.
 *
 *     gone     it has ended, or does not serve yet or any more: at once
 *     still    something has waited for QN_WATCH_STILL without a turn of it:
 *              now, and at once from then on until it turns again
 *     busy     it turns: never
 *
 * All others watch, so that any of them may stand still too; the next one in
 * the order of ids is first, each one behind it QN_WATCH_STEP later (three
 * steps at most: who comes too late finds nothing). Taking what another takes
 * too does no harm, so nobody has to agree with anybody. The worst case from
 * the arrival of a connection, with any number of others standing still, is
 *
 *     QN_WATCH_LOOK + QN_WATCH_STILL rounded up to looks + 3 QN_WATCH_STEP
 *     = 75 ms
 *
 * Threads: one. Pure: no clock, no allocation, no IO.
 */

#include <stdbool.h>

#include "core/base/clock.h"
#include "core/node.h"

#define QN_WATCH_LOOK  (15 * QN_MS) /* between two looks */
#define QN_WATCH_STILL (30 * QN_MS)
#define QN_WATCH_STEP  (10 * QN_MS)

/** What is seen of a node. */
struct qn_watch_seen {
    bool serves;    /* it lives, and accepts its connections itself */
    uint64_t turns; /* its turn counter */
};

struct qn_watch {
    qn_node_t self;
    uint32_t nodes;
    uint64_t waiting; /* mask: something waited there at the last look */
    uint64_t still;   /* mask: it stood still, and has not turned since */
    uint64_t turns[QN_NODES_MAX];
    qn_time_t moved[QN_NODES_MAX]; /* ns; the first look that saw `turns` */
    qn_time_t since[QN_NODES_MAX]; /* ns; it is waited for since */
};

void qn_watch_init(struct qn_watch *w, qn_node_t self, uint32_t nodes);

/**
 * A look.
 *
 * @param seen     [nodes] what there is; [self] is not looked at.
 * @param waiting  Mask of nodes before whose doors somebody waits.
 * @return mask of nodes whose connections are to be taken now.
 */
uint64_t qn_watch_look(struct qn_watch *w, const struct qn_watch_seen *seen,
                       uint64_t waiting, qn_time_t now);

/** Mask of nodes that new connections should go to, as this one sees it: who
 *  serves and is not still. `self` is among them. */
uint64_t qn_watch_open(const struct qn_watch *w,
                       const struct qn_watch_seen *seen);

#endif
