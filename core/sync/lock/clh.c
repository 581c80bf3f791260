/*
 * The queue lock of Craig, and of Landin and Hagersten. A client waits on the
 * node of its predecessor, and owns that one from its release on; its own node
 * then belongs to its successor. One node more than clients: the first of them
 * finds that one, where the lock is free.
 *
 *     acquire   prepare the node; exchange the tail for it; wait for go of the
 *               predecessor's node
 *     release   go on the own node; own the predecessor's
 *
 * The lock is free if the node at the tail has gone. `try` looks at that, and
 * exchanges the tail if it is still the same. In between the node may have
 * been used again, by its next owner, and be at the tail again with the lock
 * taken. So the tail carries a version, which differs in each use of a node:
 *
 *     tail = version << NODE_BITS | node
 *
 * With 53 bits a version does not come again.
 */
#include "core/sync/lock/lock_internal.h"
#include "core/sync/lock/lock_mutant.h"

#define NODE_BITS 11u
#define NODE_MASK ((UINT64_C(1) << NODE_BITS) - 1)

_Static_assert(QN_SYNC_CLIENTS_MAX < NODE_MASK, "a node fits");

static void clh_format(struct qn_lock_memory *m, struct qn_lock_node *nodes,
                       uint32_t clients)
{
    /* relaxed twice: no other thread has the lock yet. */
    qn_store(&nodes[clients].go.word, QN_BATON_GO, QN_RELAXED);
    qn_store(&m->tail, clients, QN_RELAXED);
}

/* Prepare the client's node. @return the tail that names this use of it. */
static uint64_t prepare(struct qn_lock_client *c)
{
    struct qn_lock_node *n = &c->nodes[c->node];
    /* relaxed twice: only the owner of a node uses its version; the next one
     * owns it behind the go that it waited for, or behind a join. */
    const uint64_t version = qn_load(&n->version, QN_RELAXED) + 1;
    qn_store(&n->version, version, QN_RELAXED);
    qn_baton_init(&n->go);
    return (QN_LOCK_MUTANT(CLH_NO_VERSION) ? 0 : version << NODE_BITS) |
           c->node;
}

static void clh_acquire(struct qn_lock_client *c)
{
    /* acq_rel with itself: the node is prepared before its successor, which
     * finds it at the tail, looks at it. */
    const uint64_t tail = qn_exchange(&c->memory->tail, prepare(c), QN_ACQ_REL);
    c->before = (uint32_t)(tail & NODE_MASK);
    (void)qn_baton_await(&c->nodes[c->before].go, c->own_cores,
                         &c->stats.waits);
}

static bool clh_try(struct qn_lock_client *c)
{
    /* acquire -> the exchange of clh_acquire: the node is prepared, so a go
     * that is found there is not that of an earlier use. */
    uint64_t tail = qn_load(&c->memory->tail, QN_ACQUIRE);
    const uint32_t before = (uint32_t)(tail & NODE_MASK);
    uint32_t go;
    if (!qn_baton_is_go(&c->nodes[before].go, &go)) {
        return false;
    }
    c->stats.cas++;
    /* release: as the exchange of clh_acquire. The look at `go` acquires. */
    if (!qn_cas(&c->memory->tail, &tail, prepare(c), QN_RELEASE)) {
        c->stats.cas_failed++;
        return false;
    }
    c->before = before;
    return true;
}

static void clh_release(struct qn_lock_client *c)
{
    struct qn_lock_node *n = &c->nodes[c->node];
    c->node = QN_LOCK_MUTANT(CLH_OWN_NODE) ? c->node : c->before;
    qn_baton_pass(&n->go, QN_BATON_GO,
                  c->own_cores || QN_LOCK_MUTANT(CLH_NO_WAKE), &c->stats.waits);
}

const struct qn_lock_type qn_lock_clh = {.name = "clh",
                                         .fifo = true,
                                         .spare = 1,
                                         .format = clh_format,
                                         .acquire = clh_acquire,
                                         .release = clh_release,
                                         .try_acquire = clh_try,
                                         .acquire_until = qn_lock_untimed};
