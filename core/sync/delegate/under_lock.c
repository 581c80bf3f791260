/*
 * The caller runs its operation itself, under a lock: the cheapest as long as
 * few ask at a time. Each hand-over moves the lock, the data and, with a queue
 * lock, a node.
 */
#include "core/sync/delegate/backend.h"
#include "core/sync/delegate/backends.h"

static struct qn_lock_opts lock_opts(const struct qn_delegate_opts *o)
{
    return (struct qn_lock_opts){.clients = o->clients};
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

/* @return did it wait? Only `auto` wants to know. */
static bool acquire(const struct qn_backend *b, struct qn_backend_client *c)
{
    if (b->chooser != NULL && qn_lock_try_acquire(&c->lock)) {
        return false;
    }
    qn_lock_acquire(&c->lock);
    return true;
}

static uint64_t call(const struct qn_backend *b, struct qn_backend_client *c,
                     uint32_t op, uint64_t arg)
{
    const bool waited = acquire(b, c);
    const bool begun = qn_backend_begin(b, c);
    const uint64_t result = qn_backend_execute(b, begun, op, arg);
    qn_backend_end(b, c, begun, 1, waited);
    qn_lock_release(&c->lock);
    return result;
}

const struct qn_delegate_type qn_delegate_under_lock = {
    .name = "lock",
    .lock = "ttas",
    .bytes = bytes,
    .format = format,
    .join = join,
    .leave = leave,
    .call = call,
};
