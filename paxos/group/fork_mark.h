#ifndef QN_PAXOS_GROUP_FORK_MARK_H
#define QN_PAXOS_GROUP_FORK_MARK_H

/**
 * Is this the process that made the mark, or a child that it has forked? A page
 * that the kernel gives to children as zeros (MADV_WIPEONFORK) says so by one
 * load; getpid is a system call.
 *
 * Threads: any.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/atomic.h"

/** Fields are private. */
struct qn_fork_mark {
    qn_a64 *page; /* 1 in the process that made it */
};

/** @return QN_OK; QN_ENOMEM; QN_ENOSYS: the kernel cannot do it (it is older
 *  than 4.14). */
int qn_fork_mark_make(struct qn_fork_mark *m);

/** A child that shares its parent's memory (vfork) is taken for the parent. */
static inline bool qn_fork_mark_is_own(const struct qn_fork_mark *m)
{
    /* relaxed: written once, before there was a child. */
    return qn_load(m->page, QN_RELAXED) != 0;
}

/** One that was not made is fine, if it is all zero. */
void qn_fork_mark_drop(struct qn_fork_mark *m);

#endif
