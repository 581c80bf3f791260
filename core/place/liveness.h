#ifndef QN_CORE_PLACE_LIVENESS_H
#define QN_CORE_PLACE_LIVENESS_H

/**
 * Liveness: which incarnation of a node is alive, to be seen with a load.
 *
 * A process that runs as a node writes its incarnation and thread id into its
 * pages of the commons, and registers that word with the kernel as a robust
 * futex (set_robust_list(2)). When the thread ends, however it ends, the kernel
 * marks the word, before it frees the memory of the process: so a death is seen
 * at once, also that of a process with gigabytes, of which a pidfd tells only
 * when they are freed. The mark is made by the kernel with an atomic operation
 * after the last store of the thread: a reader of the mark sees all its stores.
 *
 * What it does not tell: that the *process* has ended. Other threads of it may
 * run on for a moment, sockets are closed a little later, and its memory is
 * still being freed. A supervisor that starts a successor waits for a pidfd (or
 * SIGCHLD). exec(2) counts as an end.
 *
 * A thread of a host that locks robust mutexes of its own cannot give its list
 * away. Its incarnation lives as long as its process holds the node
 * (qn_liveness_begin_held, core/place/hold.h): the kernel takes the lock back
 * when the process has ended, after its last thread and its memory. The process
 * that finds the lock free marks the word (qn_liveness_look), and all others
 * see that with a load as before. So such a death is as certain, and it is seen
 * later: after the memory was freed, and not before it is looked for. What
 * makes it certain:
 *
 *   1. The word names the incarnation only after its process had the lock.
 *   2. A look reads the word before the lock. So a lock that is free was had
 *      and is lost: the process has ended, or has called exec, or gave the node
 *      back, with nothing of it mapped. (Or it has closed a descriptor of the
 *      commons, which it must not: hold.h. Then it is taken for dead, finds its
 *      own word marked before its next vote, and must end.)
 *   3. The mark is a CAS of the word that was read: a successor that has begun
 *      meanwhile is not touched.
 *   4. The kernel gives the lock back under a lock of its own, after the last
 *      store of the process, and a look takes that: all stores are visible.
 *
 * Such a thread that ends before its process marks its word itself.
 *
 * A misbehaving process may have overwritten its own word: then the
 * kernel finds no word of its own there and marks nothing. NONE or ALIVE of a
 * incarnation that began proves nothing, therefore; DEAD of a node that did not
 * write wildly is final.
 *
 * The C library registers a list of its own for each thread. The thread that
 * calls qn_liveness_begin replaces it until it ends that incarnation, hence
 * must not lock robust pthread mutexes (PTHREAD_MUTEX_ROBUST) meanwhile: they
 * would not be released if it died. Other threads and all other mutexes are not
 * affected. A child of fork(2) has no
 * list but that of the C library, thus does not hold its parent's word.
 *
 * Threads: begin and end from the thread that holds the word; look from any.
 * Nothing blocks.
 */

#include <sys/types.h>

#include "core/place/commons.h"

enum qn_liveness {
    QN_LIVENESS_NONE, /* that incarnation has not begun yet */
    QN_LIVENESS_ALIVE,
    QN_LIVENESS_DEAD, /* it has ended, or a later one has begun */
};

/**
 * Begin the incarnation `inc` of `node`. From now on until the calling thread
 * ends it is ALIVE, and every earlier one of the node is DEAD.
 *
 * In the private form nothing tells the kernel: an incarnation of a thread ends
 * with qn_liveness_end. One thread may hold many there.
 *
 * @param c    Kept mapped until the thread ends. It owns `node`
 *             (qn_commons_own), asserted.
 * @param inc  Not 0, and larger than that of any earlier incarnation of the
 * node, all of which have ended. What stands there is overwritten, since a wild
 * predecessor may have left anything.
 * @return QN_OK; QN_EINVAL; QN_EBUSY: this thread already holds a word, or has
 *         locked a robust mutex; QN_ENOSYS: the kernel has no robust futexes.
 */
int qn_liveness_begin(struct qn_commons *c, qn_node_t node, uint64_t inc);

/**
 * Likewise, and the list of the thread stays as it is: the incarnation is ALIVE
 * until this process does not hold `node` any more. A thread may begin several.
 *
 * @return QN_OK; QN_EINVAL. The process holds `node` and keeps it (hold.h).
 */
int qn_liveness_begin_held(struct qn_commons *c, qn_node_t node, uint64_t inc);

/** End it, as the kernel would. The same thread; an incarnation that is not the
 * present one is left alone. */
void qn_liveness_end(struct qn_commons *c, qn_node_t node, uint64_t inc);

/** Likewise, and say that it was intended: no supervisor shall start another
 *  incarnation of this node by itself. */
void qn_liveness_leave(struct qn_commons *c, qn_node_t node, uint64_t inc);

/** The incarnation `inc` of `node` is its last so far, and it left
 * (qn_liveness_leave). */
bool qn_liveness_left(const struct qn_commons *c, qn_node_t node, uint64_t inc);

/** The last incarnation of `node` so far. @param inc  Filled; 0: it never had
 * one.
 *  @param tid  Filled: its thread, which is its process in a replica; 0 unless
 *              it is ALIVE. Private form: node + 1.
 *  @return how it is. As qn_liveness_check. */
enum qn_liveness qn_liveness_incarnation(const struct qn_commons *c,
                                         qn_node_t node, uint64_t *inc,
                                         pid_t *tid);

/** How the incarnation `inc` of `node` is: three loads of one line, any
 * process. acquire: what a DEAD one wrote is visible. */
enum qn_liveness qn_liveness_check(const struct qn_commons *c, qn_node_t node,
                                   uint64_t inc);

/** It is ALIVE, and lives as long as its process holds the node: only
 *  qn_liveness_look finds its end. As cheap. */
bool qn_liveness_is_held(const struct qn_commons *c, qn_node_t node,
                         uint64_t inc);

/** As qn_liveness_check; of one that is held the kernel is asked, and its end
 *  is marked for all. A few system calls; the thread of the handle.
 *  @param hold_fd  Where it is held (hold.h), borrowed. */
enum qn_liveness qn_liveness_look(struct qn_commons *c, int hold_fd,
                                  qn_node_t node, uint64_t inc);

#endif
