#ifndef QN_KVS_SUPERVISOR_VACANCY_H
#define QN_KVS_SUPERVISOR_VACANCY_H

/**
 * May a supervisor that has found no replica at a place start one there?
 *
 * Nobody who answers is not nobody who lives: the queue of a socket may be full
 * of supervisors that died in turn, or of a stranger's connections, and who
 * stands still takes nothing out of it. Two living processes of one node would
 * write one voting record. So a life is started only where the kernel says that
 * there is none: no process holds the node (core/place/hold.h), and none lives
 * according to its life word.
 *
 *     reached      at all  the group's memory known       not known
 *     MET                  HEAR                           HEAR
 *     BUSY                 START if it is vacant          WAIT
 *     NOBODY               START if it is vacant          START: a new group
 *
 * A new group finds out at its sockets whether the address is free
 * (kvs/listen/listen.h).
 *
 * Pure.
 */

#include <stdbool.h>

#include "core/place/liveness.h"

/** What asking for it has come to. */
enum qn_reach {
    QN_REACH_NOBODY, /* none listens there, or not one of ours */
    QN_REACH_BUSY,   /* one does, and its queue is full */
    QN_REACH_MET,
};

/** What a group's memory says of one of its nodes. */
struct qn_vacancy {
    bool known;            /* the rest is */
    bool held;             /* a process holds it */
    enum qn_liveness word; /* its present life */
    bool runs;             /* that life's process has not ended */
};

enum qn_vacancy_do {
    QN_VACANCY_HEAR,  /* it will say who it is */
    QN_VACANCY_WAIT,  /* it lives: ask again */
    QN_VACANCY_START, /* nobody lives there */
};

enum qn_vacancy_do qn_vacancy_step(enum qn_reach reach,
                                   const struct qn_vacancy *v);

#endif
