#ifndef QN_KVS_SUPERVISION_VACANCY_H
#define QN_KVS_SUPERVISION_VACANCY_H

/**
 * May a supervisor that has found no replica at a place start one there?
 *
 * A replica that does not answer may live: the queue of its socket may be full
 * of supervisors that died in turn, or of other processes' connections, and a
 * stalled replica takes nothing out of it. Two living processes of one node
 * would write one voting record. So a process is started only where the kernel
 * says that there is none: no process holds the node (core/place/hold.h), and
 * none lives by its liveness word.
 *
 *     reached      at all  the group's memory known       not known
 *     MET                  HEAR                           HEAR
 *     BUSY                 START if it is vacant          WAIT
 *     ABSENT               START if it is vacant          START: a new group
 *
 * A new group finds out at its sockets whether the address is free
 * (kvs/listen/listen.h).
 *
 * Pure, any thread.
 */

#include <stdbool.h>

#include "core/place/liveness.h"

/** What asking for it has come to. */
enum qn_reach {
    QN_REACH_ABSENT, /* none listens there, or not one of ours */
    QN_REACH_BUSY,   /* one does, and its queue is full */
    QN_REACH_MET,
};

/** What a group's memory says of one of its nodes. */
struct qn_vacancy {
    bool known;            /* the rest is */
    bool held;             /* a process holds it */
    enum qn_liveness word; /* of its present incarnation */
    bool runs;             /* that one's process has not ended */
};

enum qn_vacancy_do {
    QN_VACANCY_HEAR,  /* it will say which one it is */
    QN_VACANCY_WAIT,  /* it lives: ask again */
    QN_VACANCY_START, /* no process lives there */
};

enum qn_vacancy_do qn_vacancy_step(enum qn_reach reach,
                                   const struct qn_vacancy *v);

#endif
