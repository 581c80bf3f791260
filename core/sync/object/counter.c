/* The counter: a line with its value, and behind it the delegate, if any. */
#include "core/sync/object/counter.h"

#include "core/base/atomic.h"
#include "core/base/err.h"
#include "core/sync/clients.h"
#include "core/sync/object/mutant.h"

struct counter_memory {
    alignas(QN_CACHELINE) uint32_t says; /* qn_sync_says, of its form */
    alignas(QN_CACHELINE) qn_a64 value;
};

enum { FETCH_ADD, DELEGATED }; /* forms */

static struct qn_delegate_opts delegate_of(const struct qn_counter_opts *o)
{
    struct qn_delegate_opts d = *o->delegate;
    d.clients = o->clients;
    return d;
}

size_t qn_counter_bytes(const struct qn_counter_opts *o)
{
    if (o->delegate == NULL) {
        return sizeof(struct counter_memory);
    }
    struct qn_delegate_opts d = delegate_of(o);
    size_t bytes = qn_delegate_bytes(&d);
    return bytes == 0 ? 0 : sizeof(struct counter_memory) + bytes;
}

int qn_counter_format(void *memory, const struct qn_counter_opts *o)
{
    struct counter_memory *m = memory;
    m->says = qn_sync_says(o->delegate == NULL ? FETCH_ADD : DELEGATED);
    if (o->delegate == NULL) {
        return QN_OK;
    }
    struct qn_delegate_opts d = delegate_of(o);
    return qn_delegate_format(m + 1, &d);
}

static uint64_t run(void *ctx, uint32_t op, uint64_t arg)
{
    qn_a64 *value = ctx;
    /* relaxed: the delegate orders its operations. */
    uint64_t before = qn_load(value, QN_RELAXED);
    (void)op;
    qn_store(value, (before + arg) & QN_DELEGATE_VALUE, QN_RELAXED);
    return before;
}

int qn_counter_open(struct qn_counter *n, void *memory)
{
    struct counter_memory *m = memory;
    if (m->says != qn_sync_says(FETCH_ADD) &&
        m->says != qn_sync_says(DELEGATED)) {
        return QN_EINVAL;
    }
    n->value = &m->value;
    n->delegates = m->says == qn_sync_says(DELEGATED);
    return n->delegates ? qn_delegate_open(&n->d, m + 1, run, &m->value)
                        : QN_OK;
}

const struct qn_delegate *qn_counter_delegate(const struct qn_counter *n)
{
    return n->delegates ? &n->d : NULL;
}

int qn_counter_join(const struct qn_counter *n, struct qn_counter_client *c,
                    const struct qn_delegate_join_opts *o)
{
    c->counter = n;
    return n->delegates ? qn_delegate_join(&n->d, &c->d, o) : QN_OK;
}

void qn_counter_leave(struct qn_counter_client *c)
{
    if (c->counter->delegates) {
        qn_delegate_leave(&c->counter->d, &c->d);
    }
}

struct qn_delegate_stats qn_counter_stats_of(const struct qn_counter_client *c)
{
    const struct qn_delegate_stats none = {0};
    return c->counter->delegates ? qn_delegate_stats_of(&c->counter->d, &c->d)
                                 : none;
}

/* seq_cst: as if all counters were one. */
static uint64_t add_once(qn_a64 *value, uint64_t add)
{
    if (QN_OBJECT_MUTANT(COUNTER_LOST)) {
        uint64_t before = qn_load(value, QN_SEQ_CST);
        qn_store(value, before + add, QN_SEQ_CST);
        return before;
    }
    if (QN_OBJECT_MUTANT(COUNTER_EARLY)) {
        uint64_t before = qn_load(value, QN_SEQ_CST);
        (void)qn_fetch_add(value, add, QN_SEQ_CST);
        return before;
    }
    if (QN_OBJECT_MUTANT(COUNTER_LATE)) {
        (void)qn_fetch_add(value, add, QN_SEQ_CST);
        return qn_load(value, QN_SEQ_CST) - add;
    }
    return qn_fetch_add(value, add, QN_SEQ_CST);
}

int qn_counter_add(struct qn_counter_client *c, uint64_t add, uint64_t *before)
{
    const struct qn_counter *n = c->counter;
    if (n->delegates) {
        return qn_delegate(&n->d, &c->d, 0, add, before);
    }
    *before = add_once(n->value, add) & QN_DELEGATE_VALUE;
    return QN_OK;
}
