#ifndef QN_PAXOS_MACHINE_ACCEPTOR_H
#define QN_PAXOS_MACHINE_ACCEPTOR_H

/**
 * The acceptor, behind two calls (PROTOCOL.md 6.1, 6.2, 5).
 *
 * To the rest of the machine an acceptor accepts slots in order for the one
 * epoch that it has promised, and its accept is the decision.
 *
 *     process   (acceptor_process.c) keeps what it accepted in its node's own
 *               log; only messages reach it, and it ends with its process
 *     memory    (acceptor_memory.c) keeps it in memory that outlives processes;
 *               each leader is its own acceptor, and all of them share one
 *               register
 *
 * What it has accepted is read where it lies: in the log, or in a ring.
 *
 * One thread; no IO; nothing is allocated.
 */

#include "paxos/log/log.h"
#include "paxos/machine/memory_acceptor.h"
#include "paxos/wire/msg.h"

enum qn_accept {
    QN_ACCEPT_DONE,    /* decided now */
    QN_ACCEPT_AGAIN,   /* was decided before, the same batch */
    QN_ACCEPT_REFUSED, /* not active, or another epoch is promised */
};

struct qn_acceptor;

struct qn_acceptor_ops {
    enum qn_accept (*accept)(struct qn_acceptor *a, qn_epoch_t epoch,
                             qn_slot_t slot, struct qn_refbuf *batch);
    bool (*promise)(struct qn_acceptor *a, qn_epoch_t epoch, qn_epoch_t tenure,
                    qn_slot_t *hi);
};

struct qn_acceptor {
    const struct qn_acceptor_ops *ops;
    bool active;         /* process backend */
    qn_epoch_t tenure;   /* my_tenure: index of the entry that appointed it */
    qn_epoch_t promised; /* never falls */
    qn_slot_t hi;        /* acc_hi: last accepted slot */
    struct qn_log *log;  /* process backend: accept = decide = learn */
    struct qn_memory_acceptor *memory; /* memory backend */
    struct qn_accept_register copied; /* memory backend: all that was decided as
                              of it lies in the own ring */
};

/** Prepare a process acceptor that is not active. `log` is kept. */
void qn_acceptor_process_init(struct qn_acceptor *a, struct qn_log *log);

/** Prepare the own access to the memory acceptor. `memory` is kept. */
void qn_acceptor_memory_init(struct qn_acceptor *a,
                             struct qn_memory_acceptor *memory);

/** Accept `batch` for `slot`: only in the promised epoch, and only slot hi +
 *  1 (asserted; channels are FIFO). The process backend takes a reference of
 *  its own if the result is DONE. If it is AGAIN, it asserts that the batch
 *  is the accepted one, as long as that is kept. The memory backend keeps a
 *  copy, for which the ring has room, and never answers AGAIN. */
static inline enum qn_accept qn_acceptor_accept(struct qn_acceptor *a,
                                                qn_epoch_t epoch,
                                                qn_slot_t slot,
                                                struct qn_refbuf *batch)
{
    return a->ops->accept(a, epoch, slot, batch);
}

/** Promise `epoch`, of the given tenure: from now on nothing of an earlier
 *  epoch is accepted. *hi is filled: all accepted slots are <= it. @return
 *  false: refused, nothing has changed. Memory backend: the register has
 *  another value than `copied`, or another incarnation owns the epoch. */
static inline bool qn_acceptor_promise(struct qn_acceptor *a, qn_epoch_t epoch,
                                       qn_epoch_t tenure, qn_slot_t *hi)
{
    return a->ops->promise(a, epoch, tenure, hi);
}

#endif
