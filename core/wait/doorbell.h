#ifndef QN_CORE_WAIT_DOORBELL_H
#define QN_CORE_WAIT_DOORBELL_H

/**
 * Doorbells: how a sleeping node is woken, and only a sleeping one.
 *
 * A node that finds nothing to do declares that it sleeps, looks at all its
 * channels once more, and then blocks. A peer that has just published something
 * for it looks at that declaration and rings only if it is set:
 *
 *     sleeper                          ringer
 *     line->epoch = odd                publish message        (release)
 *     fence                (seq_cst)   fence                  (seq_cst)
 *     poll every channel               epoch odd? ring
 *     nothing: block
 *
 * Without the two fences both could miss the other (each load passes its own
 * store): the sleeper blocks with a message waiting. The declaration is a
 * counter, odd while asleep, in the sleeper's own outbox; design note in
 * doorbell.c.
 *
 * Two kinds of end:
 *   - eventfd: the line is written by the sleeper only, ringers map it
 *     read-only; the ring itself waits in the descriptor. Event loops poll it.
 *     A ringer remembers the last epoch it rang, so it makes at most one
 *     system call per sleep.
 *   - futex on the line (fd -1): for nodes that may write each other's line,
 *     threads above all. A futex forgets a wake that comes before the wait, so
 *     here the ringer turns the epoch even itself; all ringers together make
 *     at most one system call per sleep.
 *
 * Spinning before sleep is the caller's decision: core/wait/spin.h.
 *
 * Threads: the sleeper's calls belong to one thread; each ringer owns its
 * struct qn_doorbell_handle. arm, disarm and ring are wait-free.
 */

#include <stdalign.h>
#include <stdbool.h>

#include "core/base/atomic.h"
#include "core/base/clock.h"

/** The shared line; lies in the sleeper's outbox. */
struct qn_doorbell_line {
    alignas(QN_CACHELINE) qn_a32 epoch; /* odd: asleep; writers: see above */
};

/** The sleeper's end. Fields are private. */
struct qn_doorbell {
    struct qn_doorbell_line *line; /* shared, kept */
    int fd;                        /* eventfd, or -1: futex on the line */
};

/** A ringer's end. Fields are private. */
struct qn_doorbell_handle {
    struct qn_doorbell_line
        *line;     /* shared, kept; eventfd: read-only will do */
    int fd;        /* eventfd, or -1: futex */
    uint32_t rung; /* eventfd: last epoch this ringer rang */
};

/** Prepare the sleeper's end. `fd` is an eventfd (non-blocking) or -1. */
void qn_doorbell_init(struct qn_doorbell *b, struct qn_doorbell_line *line,
                      int fd);

/** Declare sleep. The caller then polls all its channels once more and either
 *  calls qn_doorbell_disarm at once (something was there) or blocks. */
void qn_doorbell_arm(struct qn_doorbell *b);

/** Declare that this node is awake, and take the ring out of the eventfd if
 *  one is there (a late one may still come: one wake-up for nothing).
 *  Harmless when not armed. */
void qn_doorbell_disarm(struct qn_doorbell *b);

/** The two halves of disarm, for event loops that poll the eventfd: `wake`
 *  declares that this node is awake and makes no system call; a ring that is
 *  there stays in the eventfd, makes it readable, and is taken out by `drain`
 *  when the loop reports it. So a turn without a ring costs nothing. */
void qn_doorbell_wake(struct qn_doorbell *b);
void qn_doorbell_drain(struct qn_doorbell *b);

/** Block until rung or until `deadline` (ns, monotonic; QN_TIME_NEVER). Only
 *  between arm and disarm. A ring since arm is never missed, also one that
 *  came before this call. @return QN_OK rung (or spurious), QN_ETIMEDOUT. */
int qn_doorbell_wait(struct qn_doorbell *b, qn_time_t deadline);

/** Prepare a ringer's end for a sleeper's line and fd (-1: futex; then `line`
 *  must be writable). The sleeper's end must be of the same kind. */
void qn_doorbell_handle_init(struct qn_doorbell_handle *r,
                             struct qn_doorbell_line *line, int fd);

/** Ring if the sleeper sleeps and was not rung in this sleep by this ringer.
 *  Contains the fence; call once per flush, after publishing.
 *  @return true if a system call was made. */
bool qn_doorbell_ring(struct qn_doorbell_handle *r);

#endif
