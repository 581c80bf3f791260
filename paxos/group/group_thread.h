#ifndef QN_PAXOS_GROUP_GROUP_THREAD_H
#define QN_PAXOS_GROUP_GROUP_THREAD_H

/**
 * A group in a thread of its own, for a program that has no loop: it turns
 * there, with all signals blocked, and all callbacks run there. Any thread may
 * propose, ask for barriers, for changes of the voters and for the status.
 *
 * What is asked waits in a queue, of bounded number and bytes, until the group
 * takes it; it is taken in order. Where qn_group_propose would say QN_EAGAIN it
 * waits here, up to its timeout.
 *
 * A callback may lock robust mutexes, unless the group's `robust_list` says
 * that none does. It may ask for all of it, but from
 * `apply` and from those of snapshots; it must not stop the thread.
 *
 * Threads: any, for all calls; stop once, and last. Start and stop block, the
 * others for as long as a queue is locked. In a forked child calls return
 * QN_EPERM, and stop does nothing.
 */

#include "paxos/group/group.h"

struct qn_group_thread; /* opaque */

struct qn_group_thread_opts {
    const struct qn_group_opts *group; /* as of qn_group_join; alloc and log are
                                          called in the thread, and in start */
    /* What waits for the group; 0 is the default: */
    uint32_t requests;      /* at once; 1024 */
    uint64_t request_bytes; /* of their commands together, one may be longer;
                               8 MiB. From malloc */
};

/**
 * Join, and start the thread, whose turns do the work.
 *
 * @return QN_OK: stop it; as qn_group_join; QN_ENOMEM: no thread can be made.
 */
int qn_group_thread_start(struct qn_group_thread **out,
                          const struct qn_group_thread_opts *o);

/** Leave, and wait for the end of the thread. What was not taken ends with
 *  QN_EABORTED. Not from a callback. NULL is fine. */
void qn_group_thread_stop(struct qn_group_thread *t);

/**
 * Propose a command.
 *
 * @param bytes    [len >= 1] copied.
 * @param timeout  ns, from now on, or QN_GROUP_FOREVER.
 * @param done     Its end, told in the thread: as of qn_group_propose. It has
 *                 not begun: QN_ETIMEDOUT, QN_EABORTED, and what
 *                 qn_group_propose may return.
 * @return QN_OK; else `done` is not called: QN_EAGAIN: the queue is full;
 *         QN_EMSGSIZE: above QN_GROUP_COMMAND_MAX; QN_EINVAL (no bytes);
 *         QN_ENOMEM; QN_EPERM.
 */
int qn_group_thread_propose(struct qn_group_thread *t, const void *bytes,
                            size_t len, uint64_t timeout, qn_group_done *done,
                            void *ctx);

/** A barrier, as qn_group_barrier; else as qn_group_thread_propose. */
int qn_group_thread_barrier(struct qn_group_thread *t, uint64_t timeout,
                            qn_group_done *done, void *ctx);

/** A change of the voters, as qn_group_change; else as qn_group_thread_propose.
 *  It ends with QN_EBUSY while another one of this member is under way. */
int qn_group_thread_change(struct qn_group_thread *t,
                           const struct qn_group_change *c, uint64_t timeout,
                           qn_group_done *done, void *ctx);

/** As of the last time that the thread slept, or some turns ago.
 *  @param why  [QN_GROUP_WHY_MAX] filled, of QN_GROUP_ENDED; NULL: not wanted.
 *  @return QN_OK; QN_EPERM. */
int qn_group_thread_status(struct qn_group_thread *t,
                           struct qn_group_status *out, char *why);

#endif
