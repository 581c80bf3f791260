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
 * A misbehaving process may have overwritten its own word: then the
 * kernel finds no word of its own there and marks nothing. NONE or ALIVE of a
 * incarnation that began proves nothing, therefore; DEAD of a node that did not
 * write wildly is final.
 *
 * The C library registers a list of its own for each thread. The thread that
 * calls qn_liveness_begin replaces it, hence must not lock robust pthread
 * mutexes (PTHREAD_MUTEX_ROBUST): they would not be released if it died. Other
 * threads and all other mutexes are not affected. A child of fork(2) has no
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
 * @return QN_OK; QN_EINVAL; QN_EBUSY: this thread already holds a word;
 *         QN_ENOSYS: the kernel has no robust futexes.
 */
int qn_liveness_begin(struct qn_commons *c, qn_node_t node, uint64_t inc);

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

#endif
