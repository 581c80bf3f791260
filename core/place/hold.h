#ifndef QN_PLACE_HOLD_H
#define QN_PLACE_HOLD_H

/**
 * Which process runs as a node, as the kernel knows it.
 *
 * A process that is about to live as a node holds byte `node` of a file that
 * all share, the commons' memfd or the place where they have met
 * (core/rendezvous): a record lock (fcntl(2), F_SETLK). It belongs to the
 * process and not to a descriptor: a child does not inherit it, it cannot be
 * given away, and the kernel takes it back when the process ends, however it
 * ends, after all its threads and its memory. So a lock that is free says what
 * a liveness word (core/place/liveness.h) cannot: the process is gone, or has
 * given the node back and has none of its memory mapped. It cannot be faked or
 * removed by a process without the file, and tells its owner even where ids of
 * processes are given to others again.
 *
 * A process may hold several nodes, each for a thread of its own. Several holds
 * of one process may also be of one node: a thread that was it has ended, and a
 * later one is it now. Each is of an incarnation, and a later hold is of a
 * later one. The last that is released gives the lock back.
 *
 * It has one trap: all are lost when their process closes any descriptor of the
 * file. A replica keeps the one that it was born with to its end.
 *
 * Threads: any. Nothing blocks for longer than a call of the kernel. A child of
 * fork(2) has no holds, and releases none of its parent's. If other threads
 * were in these calls at the fork, it must not call them before exec(2).
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/node.h"

/** One hold; fields private. Zeroed: none. */
struct qn_node_hold {
    struct qn_node_hold *next; /* of this process */
    dev_t device;              /* of the file */
    ino_t inode;
    int fd;
    qn_node_t node;
    uint64_t incarnation;
    pid_t process; /* 0: none */
};

/**
 * Hold `node`, until it is released or this process ends.
 *
 * @param h           Zeroed; kept until it is released.
 * @param hold_fd     Of the file. Kept likewise, and no copy of it is closed in
 *                    this process.
 * @param incarnation That will be the node; not 0.
 * @return QN_OK, also if this process holds the node as earlier incarnations;
 *         QN_EBUSY: another process does, or this one as that incarnation or a
 *         later one; QN_EIO. Then `h` is as it was.
 */
int qn_hold_take(struct qn_node_hold *h, int hold_fd, qn_node_t node,
                 uint64_t incarnation);

/** Is `h` a hold of this very process, and not of its parent? */
bool qn_hold_is_own(const struct qn_node_hold *h);

/** Nothing of this process is used as that node by `h`'s owner any more. Zeroed
 *  afterwards, and may have been. One of the parent is forgotten here, and
 *  stays the parent's. */
void qn_hold_release(struct qn_node_hold *h);

/** This process holds `node`, or the kernel does not say. */
bool qn_hold_here(int hold_fd, qn_node_t node);

/** Another process holds `node`. @param pid  Filled then: the process, 0: it
 *  cannot be seen from here (another pid namespace). */
bool qn_hold_look(int hold_fd, qn_node_t node, pid_t *pid);

/** Some process holds `node`, this one included, or the kernel does not say. So
 *  false is certain: the process that had it has ended, or has none of the
 *  node's memory mapped. */
bool qn_hold_taken(int hold_fd, qn_node_t node);

/** That process holds `node`: so it has not ended, and `pid` is not another's
 *  by now. */
bool qn_hold_by(int hold_fd, qn_node_t node, pid_t pid);

#endif
