/* The process acceptor (PROTOCOL.md 6.1): an accepted slot is a learned slot
 * of its own node's log. Equality with `promised`, not order, decides which
 * node may propose: an epoch has one leader, so no other proposal number is
 * needed. The store below decides a slot, and nothing else does; LEARN only
 * announces it. */
#include "paxos/machine/acceptor.h"

#include "paxos/machine/onepaxos_internal.h"
#include "paxos/mutant.h"

static enum qn_accept process_accept(struct qn_acceptor *a, qn_epoch_t epoch,
                                     qn_slot_t slot, struct qn_refbuf *batch)
{
    if (!a->active || epoch != a->promised) {
        return QN_ACCEPT_REFUSED;
    }
    const struct qn_slice bytes = {batch->bytes, batch->len};
    bool kept = slot >= a->log->lo;
    struct qn_log_entry *e = kept ? qn_log_at(a->log, slot) : NULL;
    if (slot <= a->hi) {
        /* No accepted slot is overwritten by another batch. */
        QN_ASSERT(!kept || qn_entry_is(e, bytes));
        return QN_ACCEPT_AGAIN;
    }
    QN_ASSERT(slot == a->hi + 1);
    QN_ASSERT(kept);
    if (e->state == QN_SLOT_LEARNED) {
        QN_ASSERT(
            qn_entry_is(e, bytes)); /* a replaced acceptor, a late ACCEPT */
    } else {
        qn_log_put(a->log, slot, qn_refbuf_ref(batch), QN_SLOT_LEARNED);
    }
    a->hi = slot;
    return QN_ACCEPT_DONE;
}

static bool process_promise(struct qn_acceptor *a, qn_epoch_t epoch,
                            qn_epoch_t tenure, qn_slot_t *hi)
{
    if (!a->active || epoch < a->promised || tenure != a->tenure) {
        return false;
    }
    QN_ASSERT(a->tenure <= epoch); /* an epoch belongs to its tenure */
    a->promised = epoch;
    *hi = a->hi;
    return true;
}

static const struct qn_acceptor_ops process_ops = {
    .accept = process_accept,
    .promise = process_promise,
};

void qn_acceptor_process_init(struct qn_acceptor *a, struct qn_log *log)
{
    *a = (struct qn_acceptor){.ops = &process_ops, .log = log};
}

/* ------------------------------------------------------------- messages -- */

/** An ACCEPT that arrives again: answer the leader only. */
static void accept_again(struct qn_onepaxos *p, struct qn_step *t,
                         const struct qn_msg *m, struct qn_refbuf *batch)
{
    enum qn_accept done =
        qn_acceptor_accept(&p->acceptor, m->epoch, m->slot, batch);
    QN_ASSERT(done == QN_ACCEPT_AGAIN);
    qn_learner_accepted(p, t, m->slot);
}

/** @param slot  Of the ACCEPT that is refused; 0: a PREPARE is. */
void qn_acceptor_nack(struct qn_onepaxos *p, struct qn_step *t, qn_node_t to,
                      qn_slot_t slot)
{
    struct qn_msg *m = qn_step_send(t, to, QN_MSG_NACK);
    m->slot = slot;
    m->epoch = p->acceptor.promised;
    m->nack.leader = p->cfg.leader;
    m->nack.leader_inc = p->cfg.leader_inc;
}

/** Acceptor: refuse every epoch but the promised one; accept in slot order. */
int qn_acceptor_on_accept(struct qn_onepaxos *p, struct qn_step *t,
                          qn_node_t from, const struct qn_msg *m)
{
    struct qn_acceptor *a = &p->acceptor;
    if (!a->active || m->epoch != a->promised) {
        qn_acceptor_nack(p, t, from, m->slot);
        return QN_OK;
    }
    if (m->slot > a->hi + 1 || qn_epoch_led_by_other(p, m->epoch, from)) {
        return QN_ECORRUPT; /* an epoch has one leader, a channel is FIFO */
    }
    if (m->slot < p->log.lo) {
        /* Decided and applied by all nodes long ago, perhaps by a later
         * acceptor. */
        a->hi = QN_MAX(a->hi, m->slot);
        return QN_OK;
    }
    bool room = qn_learner_make_room(p, m->slot);
    QN_ASSERT(room); /* an acceptor has learned all slots below */
    struct qn_refbuf *b = qn_learner_body(p, m);
    if (b == NULL && QN_MUTANT(ACK_EARLY)) {
        qn_learner_accepted(p, t, m->slot);
        return QN_OK;
    }
    if (b == NULL) {
        return QN_ENOMEM;
    }
    if (m->slot <= a->hi) {
        accept_again(p, t, m, b);
    } else {
        qn_learner_accept(p, t, m->epoch, m->slot, b);
    }
    qn_refbuf_unref(b);
    return QN_OK;
}
