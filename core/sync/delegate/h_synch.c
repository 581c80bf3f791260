/*
 * H-Synch (Fatourou and Kallimanis, 2012): a combining list for each domain,
 * usually a NUMA node, and one lock that the combiners of all domains take. So
 * requests travel within their domain, and the data change the domain once per
 * batch.
 *
 * A combiner passes its list's turn on before it releases the lock: the next
 * combiner of the domain then queues behind those of other domains, and is
 * there when they have had their batch. The other way round the lock would be
 * free while the turn is on its way.
 */
#include "core/sync/delegate/backends.h"
#include "core/sync/delegate/combining.h"

static size_t lists_bytes(const struct qn_delegate_opts *o)
{
    return qn_combining_bytes(o->clients, o->domains);
}

static struct qn_lock_opts lock_opts(const struct qn_delegate_opts *o)
{
    return (struct qn_lock_opts){.clients = o->clients,
                                 .own_cores = o->own_cores};
}

static void *lock_of(void *memory, const struct qn_delegate_opts *o)
{
    return (char *)memory + lists_bytes(o);
}

static size_t bytes(const struct qn_delegate_opts *o)
{
    const struct qn_lock_opts lock = lock_opts(o);
    const size_t n = qn_lock_bytes(o->lock, &lock);
    return n != 0 ? lists_bytes(o) + n : 0;
}

static int format(void *memory, const struct qn_delegate_opts *o)
{
    const struct qn_lock_opts lock = lock_opts(o);
    qn_combining_format(memory, o->clients, o->domains);
    return qn_lock_format(o->lock, lock_of(memory, o), &lock);
}

static int join(const struct qn_backend *b, struct qn_backend_client *c,
                const struct qn_delegate_join_opts *o)
{
    int r = qn_combining_join(b, c);
    if (r != QN_OK) {
        return r;
    }
    c->domain = o->domain;
    r = qn_lock_join(b->o.lock, lock_of(b->memory, &b->o), o->port, &c->lock);
    if (r != QN_OK) {
        qn_combining_leave(b, c);
    }
    return r;
}

static void leave(const struct qn_backend *b, struct qn_backend_client *c)
{
    qn_lock_leave(&c->lock);
    qn_combining_leave(b, c);
}

static uint64_t call(const struct qn_backend *b, struct qn_backend_client *c,
                     uint32_t op, uint64_t arg)
{
    struct qn_combining_call r = {.op = op, .arg = arg};
    if (!qn_combining_enter(b, c, &r)) {
        qn_lock_acquire(&c->lock);
        qn_combining_run(b, c, &r);
        qn_lock_release(&c->lock);
    }
    return r.result;
}

const struct qn_delegate_type qn_delegate_h_synch = {
    .name = "h_synch",
    .lock = "clh",
    .domains = true,
    .bytes = bytes,
    .format = format,
    .join = join,
    .leave = leave,
    .call = call,
};
