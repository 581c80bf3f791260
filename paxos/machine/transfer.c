/*
 * Long answers: PREPARED, SEALED and STAGE, one slot per step and peer with
 * room, so that a step's output has a fixed size (PROTOCOL.md 3.2).
 *
 * There is at most one to a peer: a newer question makes an older answer void,
 * but the same question asked again does not begin the answer again.
 * What is sent is looked up when it is sent, so an answer may find that a slot
 * has been dropped meanwhile; it then ends early and says where the log begins
 * (log_lo), and who gets it sees that it needs a snapshot. FILL has its own
 * (fetch.c), served when none of these waits.
 */
#include "paxos/machine/onepaxos_internal.h"

void qn_transfer_begin(struct qn_onepaxos *p, qn_node_t to,
                       const struct qn_long_answer *a)
{
    struct qn_long_answer *old = &p->change.answer[to];
    bool same = old->kind == a->kind && old->epoch == a->epoch &&
                old->target == a->target && old->base == a->base;
    if ((p->change.answers & QN_BIT(to)) == 0 || !same) {
        p->change.answers |= QN_BIT(to);
        *old = *a;
    }
}

void qn_transfer_end(struct qn_onepaxos *p, qn_node_t to)
{
    p->change.answers &= ~QN_BIT(to);
}

/* P slots are forgotten: what was to be sent of them is void. Their leader's
 * epoch is past, so whoever asked for them leads no more either. */
void qn_transfer_void(struct qn_onepaxos *p)
{
    for (uint64_t left = p->change.answers; left != 0; left &= left - 1) {
        qn_node_t to = (qn_node_t)__builtin_ctzll(left);
        if (p->change.answer[to].kind != QN_MSG_PREPARED) {
            qn_transfer_end(p, to);
        }
    }
}

/* What every message of this answer says. */
static struct qn_msg head(const struct qn_onepaxos *p,
                          const struct qn_long_answer *a)
{
    struct qn_msg m = {.kind = a->kind, .epoch = a->epoch, .flags = a->flags};
    switch (a->kind) {
    case QN_MSG_PREPARED:
        m.prepared.log_lo = p->log.lo;
        m.prepared.hi = a->hi;
        break;
    case QN_MSG_SEALED:
        m.sealed.log_lo = p->log.lo;
        m.sealed.hi = a->hi;
        m.sealed.target = a->target;
        break;
    default:
        QN_ASSERT(a->kind == QN_MSG_STAGE);
        m.stage.base = a->base;
        m.stage.hi = a->hi;
    }
    return m;
}

/* STAGE begins with the utility log. @return false: no memory, later. */
static bool send_ul(struct qn_onepaxos *p, struct qn_step *t, qn_node_t to,
                    struct qn_long_answer *a)
{
    struct qn_blob *b = qn_utility_suffix(&p->ul, p->cfg.tenure);
    if (b == NULL) {
        return false;
    }
    struct qn_out *o = qn_step_emit(t, QN_OUT_SEND);
    o->to = to;
    o->msg = head(p, a);
    o->msg.flags |= QN_MSG_UL;
    qn_msg_refer(&o->msg, b);
    qn_blob_unref(b);
    a->ul_first = false;
    return true;
}

static void send_next(struct qn_onepaxos *p, struct qn_step *t, qn_node_t to)
{
    struct qn_long_answer *a = &p->change.answer[to];
    if (a->ul_first) {
        (void)send_ul(p, t, to, a);
        return;
    }
    struct qn_out *o = qn_step_emit(t, QN_OUT_SEND);
    o->to = to;
    o->msg = head(p, a);
    bool more = a->next <= a->hi && a->next >= p->log.lo;
    if (more) {
        const struct qn_log_entry *e = qn_log_at(&p->log, a->next);
        QN_ASSERT(e->state != QN_SLOT_EMPTY); /* complete: no holes */
        o->msg.slot = a->next++;
        qn_msg_refer(&o->msg, e->batch);
    }
    if (!more || a->next > a->hi) {
        o->msg.flags |= QN_MSG_LAST;
        qn_transfer_end(p, to);
    }
}

void qn_transfer_on_room(struct qn_onepaxos *p, struct qn_step *t,
                         uint64_t peers)
{
    for (uint64_t left = peers & p->change.answers; left != 0;
         left &= left - 1) {
        send_next(p, t, (qn_node_t)__builtin_ctzll(left));
    }
}
