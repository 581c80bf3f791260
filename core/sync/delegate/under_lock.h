#ifndef QN_SYNC_DELEGATE_UNDER_LOCK_H
#define QN_SYNC_DELEGATE_UNDER_LOCK_H

/**
 * The call of the backend "lock", for `auto` too, where a call more would be
 * seen: it is what few clients use. Inside of the folder only.
 */

#include "core/sync/delegate/backend.h"

static inline uint64_t qn_under_lock_call(const struct qn_backend *b,
                                          struct qn_backend_client *c,
                                          uint32_t op, uint64_t arg)
{
    qn_lock_acquire(&c->lock);
    if (!qn_backend_begin(b, c)) {
        qn_lock_release(&c->lock);
        return QN_DELEGATE_ELSEWHERE;
    }
    const uint64_t result = qn_backend_execute(b, true, op, arg);
    qn_backend_end(b, c, true, 1);
    qn_lock_release(&c->lock);
    return result;
}

#endif
