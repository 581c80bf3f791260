#ifndef QN_KVS_SERVER_MACHINE_DRAIN_H
#define QN_KVS_SERVER_MACHINE_DRAIN_H

/**
 * How a replica leaves: it drains, then it stops.
 *
 *     serving --begin--> draining --all answered, or given up--> drained
 *                                                                   |
 *                              STOP of the supervisor, or no supervisor
 *                                                                   v
 *                                                                stopping
 *
 * While it drains, a replica accepts nothing more and answers what was asked.
 * That may never end: writes wait for a leader, an acceptor or a quorum that is
 * gone, reads for an index that is never applied, replies for a client that
 * does not read. So after `shutdown-timeout` the replica gives up and counts
 * the replies that it owes. A drained replica goes on making turns until it is
 * told to stop, because the others may need it as leader or acceptor. Without a
 * supervisor, which nothing can be told, it stops at once and logs the number
 * itself.
 *
 * The shell (kvs/server/server_drain.c) does what the actions say, in the order
 * of their bits, and answers GIVE_UP with qn_drain_gave_up and TELL with
 * qn_drain_told.
 *
 * Threads: one. Pure: no clock, no allocation, no IO.
 */

#include <stdbool.h>

#include "core/base/clock.h"

/** What to do: a mask. */
enum qn_drain_action {
    QN_DRAIN_CLOSE = 1,      /* accept nothing more */
    QN_DRAIN_GIVE_UP = 2,    /* drop what is not answered, and count it */
    QN_DRAIN_TELL = 4,       /* tell the supervisor, with `unanswered` */
    QN_DRAIN_LOG = 8,        /* log `unanswered` */
    QN_DRAIN_LEAVE_LOOP = 16 /* stop */
};

/** Private, except what others read: the three phases, `unanswered`. */
struct qn_drain {
    bool draining, drained, stopping;
    bool shutdown_requested; /* by an operator: do not start it again */
    qn_time_t give_up_at;    /* ns; while draining */
    uint64_t unanswered;     /* replies that were owed when it gave up */
};

/** An operator ends this process (SIGTERM). If it drains already, the
 *  supervisor was first and the process is started again as planned. */
void qn_drain_request_shutdown(struct qn_drain *d);

/** Begin, for `limit` ns at most. Once more does no harm: one that has drained
 *  says it again, as a supervisor that asks has not heard it. @return actions.
 */
unsigned qn_drain_begin(struct qn_drain *d, qn_time_t limit, qn_time_t now);

/** It drains and has not finished: call qn_drain_turn once a turn. */
static inline bool qn_drain_active(const struct qn_drain *d)
{
    return d->draining && !d->drained;
}

/** A turn while active. @param answered  Nothing of its own is left.
 *  @return actions; 0: again at `give_up_at` at the latest. */
unsigned qn_drain_turn(struct qn_drain *d, bool answered, qn_time_t now);

/** GIVE_UP was done. @return actions. */
unsigned qn_drain_gave_up(struct qn_drain *d, uint64_t unanswered);

/** TELL was done. @param told  There was a supervisor. @return actions. */
unsigned qn_drain_told(struct qn_drain *d, bool told);

/** The supervisor has ended. @return actions. */
unsigned qn_drain_supervisor_lost(struct qn_drain *d);

/** The supervisor says stop, drained or not. @return actions. */
unsigned qn_drain_stop(struct qn_drain *d);

#endif
