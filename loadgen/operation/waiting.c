/*
 * Waiting is polling: parking a node would add the time of waking it to what
 * the model predicts. Nodes that share a core park: a polling node would keep
 * the core from those it waits for.
 */
#include "core/base/bits.h"
#include "loadgen/operation/operation_internal.h"

#define NAP   (200 * QN_US)
#define LOOKS 1024u /* idle polls between two readings of the clock */

bool qn_operation_given_up(const struct qn_operation_self *n)
{
    /* relaxed: a hint to stop; no other data depends on it. */
    return qn_load(&n->p->stuck, QN_RELAXED) != 0;
}

void qn_operation_give_up(struct qn_operation_self *n)
{
    qn_store(&n->p->stuck, 1, QN_RELAXED); /* as in given_up */
}

bool qn_operation_interrupted(const struct qn_operation_self *n)
{
    qn_a32 *stop = n->p->o.stop;
    /* relaxed: as above. */
    return stop != NULL && qn_load(stop, QN_RELAXED) != 0;
}

bool qn_operation_over(const struct qn_operation_self *n, uint64_t done,
                       uint64_t least, qn_time_t deadline)
{
    uint64_t enough = QN_MAX(least, n->p->o.least);
    return qn_operation_interrupted(n) ||
           (done >= enough && qn_clock_now() >= deadline);
}

static bool pending(struct qn_operation_self *n)
{
    if (n->coll != NULL) {
        (void)qn_coll_flush(n->coll);
        return qn_coll_pending(n->coll);
    }
    if (n->sequenced != NULL) {
        (void)qn_sequenced_broadcast_flush(n->sequenced);
        return qn_sequenced_broadcast_pending(n->sequenced);
    }
    (void)qn_context_flush(n->context);
    return qn_context_pending(n->context);
}

/* Sleep until a message arrives or another node reports progress; an event just
 * before the sleep costs at most a NAP. */
static void park(struct qn_operation_self *n)
{
    struct qn_doorbell *doorbell = n->end->doorbell;
    qn_doorbell_arm(doorbell);
    if (!pending(n)) {
        (void)qn_doorbell_wait(doorbell, qn_clock_now() + NAP);
    }
    qn_doorbell_disarm(doorbell);
}

static void patience_ends(struct qn_operation_self *n, qn_time_t waited)
{
    if (waited > QN_OPERATION_PATIENCE) {
        qn_operation_give_up(n);
    }
}

void qn_operation_idle(struct qn_operation_self *n)
{
    if (n->p->o.shared) {
        park(n);
    } else {
        qn_pause();
    }
    /* On shared cores naps are counted instead of time: another process may
     * have had the core for a long time, which is not an error. */
    n->idle++;
    if (n->p->o.shared) {
        n->moved = n->moved == 0 ? n->idle : n->moved;
        patience_ends(n, (n->idle - n->moved) * NAP);
    } else if (n->idle % LOOKS == 0) {
        qn_time_t now = qn_clock_now();
        n->moved = n->moved == 0 ? now : n->moved;
        patience_ends(n, now - n->moved);
    }
}

void qn_operation_meet(struct qn_operation_self *n, qn_a32 *count,
                       void (*turn)(void *ctx), void *ctx)
{
    /* Sequentially consistent: everything done before the barrier is visible
     * after it. */
    qn_fetch_add(count, 1, QN_SEQ_CST);
    while (qn_load(count, QN_SEQ_CST) < n->p->o.tree->n &&
           !qn_operation_given_up(n)) {
        turn(ctx);
    }
}
