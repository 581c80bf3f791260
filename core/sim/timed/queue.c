/*
 * Queues of words that a machine has in hardware, under code that emulates them
 * in memory (core/words).
 *
 * Between BEGIN and END the accesses of a node act at once and have no price;
 * no other node runs. In their place the operation is charged: a send, a
 * receive, or a look that found nothing or no room. Memory is ahead of the
 * machine then: a message lies in its queue when it is sent, and has not
 * arrived. So each message on its way is kept with its position, and a look at
 * it answers no until its time has come.
 *
 * A node may be killed between the reservation and the message, as it may where
 * queues are emulated.
 */
#include <stdlib.h>

#include "core/sim/timed/timed_internal.h"

/* What has arrived is of no interest: no node looks at an earlier time. */
static void forget_arrived(struct qn_actor *to, qn_ps_t now)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < to->transits; i++) {
        if (to->transit[i].arrives > now) {
            to->transit[kept++] = to->transit[i];
        }
    }
    to->transits = kept;
}

static void launch(const struct qn_queue_op *op, qn_ps_t now, qn_ps_t arrives)
{
    struct qn_actor *to = &qn_timed.actor[op->node];
    if (to->transit == NULL) {
        to->transit = calloc(QN_TIMED_TRANSITS, sizeof *to->transit);
        QN_ASSERT(to->transit != NULL);
    }
    forget_arrived(to, now);
    QN_ASSERT(to->transits < QN_TIMED_TRANSITS);
    to->transit[to->transits++] = (struct qn_transit){
        .queue = op->queue, .position = op->position, .arrives = arrives};
    qn_timed_signal(op->node, arrives);
}

static void send(struct qn_actor *a, const struct qn_queue_op *op)
{
    qn_ps_t now = a->out->clock;
    struct qn_price p = qn_timed_device(&(struct qn_device_access){
        .kind = QN_DEVICE_SEND, .peer = op->node, .words = op->words});
    launch(op, now, p.visible);
    a->charged = true;
}

/* If it is on its way, the next pause ends when it is there. */
static bool arrived(const struct qn_actor *a, const struct qn_queue_op *op)
{
    for (uint32_t i = 0; i < a->transits; i++) {
        const struct qn_transit *f = &a->transit[i];
        if (f->queue == op->queue && f->position == op->position &&
            f->arrives > a->out->clock) {
            qn_timed_expect(f->arrives);
            return false;
        }
    }
    return true;
}

bool qn_timed_queue(const struct qn_queue_op *op)
{
    struct qn_actor *a = qn_timed_self();
    if (qn_timed.prices->queue_look == 0) {
        return true;
    }
    switch (op->step) {
    case QN_QUEUE_BEGIN:
        qn_timed_take_turn(a);
        qn_timed.stale = NULL;
        a->in_queue = true;
        a->charged = false;
        return true;
    case QN_QUEUE_SEND:
        send(a, op);
        return true;
    case QN_QUEUE_LOOK:
        return arrived(a, op);
    case QN_QUEUE_TAKE:
        (void)qn_timed_device(
            &(struct qn_device_access){.kind = QN_DEVICE_RECEIVE,
                                       .peer = qn_sim.self,
                                       .words = op->words});
        a->charged = true;
        return true;
    case QN_QUEUE_END:
        a->in_queue = false;
        if (!a->charged) {
            qn_timed_spend(qn_timed.prices->queue_look, &a->out->device);
        }
        return true;
    }
    return true;
}
