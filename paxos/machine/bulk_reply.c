/*
 * Bulk replies: PREPARED, SEALED and STAGE. One slot per step leaves for each
 * peer with room, so that a step's output has a fixed size (PROTOCOL.md 3.2).
 *
 * There is at most one to a peer. A newer question makes an older reply void,
 * but the same question asked again does not restart the reply. What is sent is
 * looked up when it is sent, so a slot may have been dropped meanwhile. The
 * reply then ends early and says where the log begins (log_lo), and its
 * receiver sees that it needs a snapshot. FILL has a bulk reply of its own
 * (catch_up.c), served when none of these waits.
 */
#include "paxos/machine/onepaxos_internal.h"

void qn_bulk_reply_begin(struct qn_onepaxos *p, qn_node_t to,
                         const struct qn_bulk_reply *a)
{
    QN_ASSERT(to < p->nodes);
    QN_ASSERT(to != p->self);
    struct qn_bulk_reply *old = &p->change.answer[to];
    bool same = old->kind == a->kind && old->epoch == a->epoch &&
                old->target == a->target && old->base == a->base;
    if ((p->change.answers & QN_BIT(to)) == 0 || !same) {
        p->change.answers |= QN_BIT(to);
        *old = *a;
    }
}

void qn_bulk_reply_end(struct qn_onepaxos *p, qn_node_t to)
{
    p->change.answers &= ~QN_BIT(to);
}

/* P slots are forgotten, so replies that were to send them are void. The
 * epoch of their leader is past, so the node that asked for them does not
 * lead any more either. */
void qn_bulk_reply_void(struct qn_onepaxos *p)
{
    for (uint64_t left = p->change.answers; left != 0; left &= left - 1) {
        qn_node_t to = (qn_node_t)__builtin_ctzll(left);
        if (p->change.answer[to].kind != QN_MSG_PREPARED) {
            qn_bulk_reply_end(p, to);
        }
    }
}

/* What every message of this answer says. */
static struct qn_msg head(const struct qn_onepaxos *p,
                          const struct qn_bulk_reply *a)
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
                    struct qn_bulk_reply *a)
{
    QN_ASSERT(a->kind == QN_MSG_STAGE);
    QN_ASSERT(a->next == a->base + 1); /* before any slot (T17) */
    struct qn_refbuf *b = qn_utility_suffix(&p->ul, p->cfg.tenure);
    if (b == NULL) {
        return false;
    }
    struct qn_out *o = qn_step_emit(t, QN_OUT_SEND);
    o->to = to;
    o->msg = head(p, a);
    o->msg.flags |= QN_MSG_UL;
    qn_msg_refer(&o->msg, b);
    qn_refbuf_unref(b);
    a->ul_first = false;
    return true;
}

static void send_next(struct qn_onepaxos *p, struct qn_step *t, qn_node_t to)
{
    struct qn_bulk_reply *a = &p->change.answer[to];
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
        QN_ASSERT(a->kind != QN_MSG_PREPARED || e->state == QN_SLOT_LEARNED);
        o->msg.slot = a->next++;
        qn_msg_refer(&o->msg, e->batch);
    }
    if (!more || a->next > a->hi) {
        o->msg.flags |= QN_MSG_LAST;
        qn_bulk_reply_end(p, to);
    }
}

void qn_bulk_reply_on_room(struct qn_onepaxos *p, struct qn_step *t,
                           uint64_t peers)
{
    for (uint64_t left = peers & p->change.answers; left != 0;
         left &= left - 1) {
        send_next(p, t, (qn_node_t)__builtin_ctzll(left));
    }
}
