/*
 * The caller runs its operation itself, under a lock: the cheapest as long as
 * few ask at a time. Each hand-over moves the lock, the data and, with a queue
 * lock, a node.
 */
#include "core/sync/delegate/backend.h"
#include "core/sync/delegate/backends.h"

static struct qn_lock_opts lock_opts(const struct qn_delegate_opts *o)
{
    return (struct qn_lock_opts){.clients = o->clients,
                                 .own_cores = o->own_cores};
}

static size_t bytes(const struct qn_delegate_opts *o)
{
    const struct qn_lock_opts lock = lock_opts(o);
    return qn_lock_bytes(o->lock, &lock);
}

static int format(void *memory, const struct qn_delegate_opts *o)
{
    const struct qn_lock_opts lock = lock_opts(o);
    return qn_lock_format(o->lock, memory, &lock);
}

static int join(const struct qn_backend *b, struct qn_backend_client *c,
                const struct qn_delegate_join_opts *o)
{
    return qn_lock_join(b->o.lock, b->memory, o->port, &c->lock);
}

static void leave(const struct qn_backend *b, struct qn_backend_client *c)
{
    (void)b;
    qn_lock_leave(&c->lock);
}

static uint64_t call(const struct qn_backend *b, struct qn_backend_client *c,
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

const struct qn_delegate_type qn_delegate_under_lock = {
    .name = "lock",
    .lock = "tas",
    .bytes = bytes,
    .format = format,
    .join = join,
    .leave = leave,
    .call = call,
};
