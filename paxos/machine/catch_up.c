/*
 * Gaps: FETCH and FILL (PROTOCOL.md 3.4; 3.1, Slow learners).
 *
 * The acceptor accepts in slot order, so a gap is a LEARN that was lost or is
 * late, never an open slot. A node learns of it by decided_hi (in LEARN, FILL
 * and BEAT). When learned_hi has not moved for T_GAP below decided_hi, the node
 * asks one peer for the first hole: first the parent that should have sent it,
 * then the acceptor and the leader, then the other peers in turn. The peer that
 * answered last is asked first next time. Each answer ends with LAST. A peer
 * that is silent for T_FETCH is given up, and its late answers do no harm.
 *
 * A FILL decides, like a LEARN. So a FILL is believed only if its sender was
 * asked and has not said LAST yet, and only for slots that are known to be
 * decided: no peer can push one. How far slots are decided is believed only of
 * the acceptor and the parent.
 *
 * A batch may be longer than what passes in T_GAP or T_FETCH. Its fragments
 * count: while those of the first missing slot arrive in a LEARN the gap is not
 * old, and while those of a FILL arrive its sender is not silent.
 *
 * Answering is a transfer: one batch per step and peer with room, so that a
 * laggard costs the others a bounded share of each turn. Only learned slots are
 * given out. A node that has dropped the slot, or has not learned it either,
 * answers with an empty FILL. When every peer has answered so or was silent,
 * and one of them has dropped the slot, a snapshot is needed. FETCH goes on at
 * a slower pace, because a peer that was behind, too, may have the slot later.
 */
#include "paxos/machine/onepaxos_internal.h"
#include "paxos/mutant.h"

/* Slots asked for at once. Bounds the search for the end of a hole; the next
 * FETCH leaves when the answer has ended, one round trip per 1024 batches. */
#define FETCH_SLOTS 1024u

_Static_assert(QN_OUTS_MAX >= QN_NODES_MAX, "ROOM: one output per peer");

/* ----------------------------------------------------------------- ask -- */

static bool gap(const struct qn_onepaxos *p)
{
    return p->learned_hi < p->decided_hi && !QN_MUTANT(NO_FETCH);
}

static uint64_t others(const struct qn_onepaxos *p)
{
    return p->alive & ~QN_BIT(p->self);
}

static uint32_t ranks_of(const struct qn_onepaxos *p)
{
    return p->nodes + 3;
}

/** The peer to ask: from place f->rank on in the order parent, acceptor,
 *  leader, then round robin. Peers that have said that they cannot answer are
 *  left out, and so are those in `silent` (a mask), unless no other peer is
 *  left. f->rank stays where the peer was found. */
static qn_node_t choose(struct qn_onepaxos *p, uint64_t silent)
{
    struct qn_catch_up *f = &p->catch_up;
    QN_ASSERT(others(p) != 0); /* else the loop below has no end */
    QN_ASSERT((others(p) & QN_BIT(p->self)) == 0);
    uint64_t able = others(p) & ~f->unable;
    uint64_t best = (able & ~silent) != 0 ? able & ~silent
                    : able != 0           ? able
                                          : others(p);
    for (;; f->rank = (f->rank + 1) % ranks_of(p)) {
        qn_node_t n = f->rank == 0   ? p->parent
                      : f->rank == 1 ? p->cfg.acceptor
                      : f->rank == 2 ? p->cfg.leader
                                     : (p->self + f->rank - 2) % p->nodes;
        if ((best & QN_BIT(n)) != 0) {
            return n;
        }
    }
}

/** Last slot of the hole that begins at learned_hi + 1. */
static qn_slot_t hole_end(const struct qn_onepaxos *p)
{
    qn_slot_t first = p->learned_hi + 1;
    qn_slot_t last = QN_MIN(p->decided_hi, first + FETCH_SLOTS - 1);
    for (qn_slot_t s = first + 1; s <= last; s++) {
        if (!qn_log_holds(&p->log, s) ||
            qn_log_at(&p->log, s)->state == QN_SLOT_LEARNED) {
            return s - 1;
        }
    }
    return last;
}

/** No peer can give `slot` any more. Emitted once, until learned_hi moves. */
void qn_catch_up_need_snapshot(struct qn_onepaxos *p, struct qn_step *t,
                               qn_slot_t slot)
{
    QN_ASSERT(slot > p->applied);
    if (!p->catch_up.need_snapshot) {
        p->catch_up.need_snapshot = true;
        struct qn_out *o = qn_step_emit(t, QN_OUT_NEED_SNAPSHOT);
        o->apply = (struct qn_apply){.slot = slot};
    }
}

/** Memory acceptor: read the ring. @return false: it has not what is missing,
 *  a peer is to be asked. */
static bool ring_serves(struct qn_onepaxos *p, struct qn_step *t)
{
    int rc = p->memory != NULL ? qn_memory_leader_catch_up(p, t) : QN_EAGAIN;
    if (rc == QN_EAGAIN) {
        return false;
    }
    p->catch_up.active = false;
    p->catch_up.gap_since = t->now;
    if (rc == QN_OK) { /* go on with it at once */
        p->catch_up.gap_since -= QN_MIN(t->now, p->params.t_gap);
    }
    return true;
}

/** Were all peers asked in vain? A silent peer may be stalled for ever. It
 *  may have the slot, but a snapshot of another peer is as good. */
static bool hopeless(const struct qn_onepaxos *p)
{
    const struct qn_catch_up *f = &p->catch_up;
    uint64_t hope = others(p) & ~f->unable & ~f->silent;
    return gap(p) && f->dropped && hope == 0 && !qn_memory_leader_unknown(p);
}

static void ask(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_catch_up *f = &p->catch_up;
    if (f->active) {
        f->silent |= QN_BIT(f->peer);
        if (hopeless(p)) {
            qn_catch_up_need_snapshot(p, t, p->learned_hi + 1);
        }
    }
    f->peer = choose(p, f->active ? QN_BIT(f->peer) : 0);
    f->active = true;
    f->until = t->now + p->params.t_fetch;
    f->asked |= QN_BIT(f->peer);
    f->count++;
    struct qn_msg *m = qn_step_send(t, f->peer, QN_MSG_FETCH);
    m->slot = p->learned_hi + 1;
    m->fetch.last = hole_end(p);
    QN_ASSERT(m->slot <= m->fetch.last);
    QN_ASSERT(m->fetch.last <= p->decided_hi); /* an open slot is no gap */
    QN_ASSERT(m->fetch.last - m->slot < FETCH_SLOTS);
}

qn_time_t qn_catch_up_deadline(const struct qn_onepaxos *p)
{
    if (!gap(p) || others(p) == 0) {
        return QN_TIME_NEVER;
    }
    const struct qn_catch_up *f = &p->catch_up;
    qn_time_t wait = f->need_snapshot ? p->params.t_fetch : p->params.t_gap;
    return f->active ? f->until : f->gap_since + wait;
}

void qn_catch_up_check(struct qn_onepaxos *p, struct qn_step *t)
{
    if (!gap(p)) {
        p->catch_up.active = false;
    } else if (t->now >= qn_catch_up_deadline(p) && !ring_serves(p, t)) {
        ask(p, t);
    }
}

/** The peer has sent all that it has. */
static void answered(struct qn_onepaxos *p, struct qn_step *t,
                     const struct qn_msg *m)
{
    struct qn_catch_up *f = &p->catch_up;
    f->active = false;
    if (m->body.len != 0) { /* it serves: go on with it at once */
        f->gap_since = t->now - QN_MIN(t->now, p->params.t_gap);
        return;
    }
    f->gap_since = t->now;
    f->unable |= QN_BIT(f->peer);
    f->rank =
        (f->rank + 1) %
        ranks_of(
            p); /* if all are unable, each in turn: one may have it by now */
    f->dropped |= m->fill.log_lo > p->learned_hi + 1;
    /* Peers were asked for their logs. The ring keeps more, and could not be
     * read as long as the entry that names its owner was unknown here. */
    if (hopeless(p) && !ring_serves(p, t)) {
        qn_catch_up_need_snapshot(p, t, p->learned_hi + 1);
    }
}

/** Would the peer be believed if it said so in a LEARN? */
static bool may_tell(const struct qn_onepaxos *p, qn_node_t from)
{
    return from == p->parent ||
           !qn_epoch_accepted_by_other(p, p->cfg.index, from);
}

/** Learner: believe a peer that was asked, for slots that are known to be
 *  decided (3.4). */
void qn_catch_up_on_fill(struct qn_onepaxos *p, struct qn_step *t,
                         qn_node_t from, const struct qn_msg *m)
{
    struct qn_catch_up *f = &p->catch_up;
    if ((f->asked & QN_BIT(from)) == 0) {
        return;
    }
    f->silent &= ~QN_BIT(from);
    if (may_tell(p, from)) {
        qn_learner_decided(p, m->fill.hi, t->now);
    }
    if (m->body.len != 0 && m->slot <= p->decided_hi) {
        qn_learner_learn(p, t, m);
    }
    if ((m->flags & QN_MSG_LAST) != 0) {
        f->asked &= ~QN_BIT(from);
    }
    if (f->active && f->peer == from) {
        f->until = t->now + p->params.t_fetch;
        if ((m->flags & QN_MSG_LAST) != 0) {
            answered(p, t, m);
        }
    }
}

/** A fragment of a message has arrived. What else is missing behind the first
 *  missing slot has its own time when that slot is there. */
void qn_catch_up_on_fragment(struct qn_onepaxos *p, struct qn_step *t,
                             qn_node_t from, uint8_t kind, qn_slot_t slot)
{
    struct qn_catch_up *f = &p->catch_up;
    if (kind == QN_MSG_LEARN && slot == p->learned_hi + 1) {
        f->gap_since = t->now;
    } else if (kind == QN_MSG_FILL && f->active && f->peer == from) {
        f->until = t->now + p->params.t_fetch;
    }
}

/* -------------------------------------------------------------- answer -- */

static struct qn_msg *fill(struct qn_onepaxos *p, struct qn_step *t,
                           qn_node_t to)
{
    struct qn_msg *m = qn_step_send(t, to, QN_MSG_FILL);
    QN_ASSERT(to != p->self);
    m->fill.log_lo = p->log.lo;
    m->fill.hi = p->learned_hi;
    return m;
}

/** Any node: give out learned slots only, because a proposed slot is not
 *  decided (3.4). Answer at once if the first slot cannot be had here. */
void qn_catch_up_on_fetch(struct qn_onepaxos *p, struct qn_step *t,
                          qn_node_t from, const struct qn_msg *m)
{
    struct qn_catch_up *f = &p->catch_up;
    f->transfers &= ~QN_BIT(from);
    if (m->slot < p->log.lo || m->slot > p->learned_hi) {
        fill(p, t, from)->flags |= QN_MSG_LAST;
        return;
    }
    f->transfers |= QN_BIT(from);
    f->transfer[from] = (struct qn_fill_range){
        .next = m->slot, .last = QN_MIN(m->fetch.last, p->learned_hi)};
}

static void fill_next(struct qn_onepaxos *p, struct qn_step *t, qn_node_t to)
{
    struct qn_fill_range *x = &p->catch_up.transfer[to];
    QN_ASSERT(x->next <= x->last);
    QN_ASSERT(x->last <= p->learned_hi); /* a P slot is never given out */
    struct qn_msg *m = fill(p, t, to);
    bool kept = x->next >= p->log.lo; /* it may have been dropped meanwhile */
    if (kept) {
        const struct qn_log_entry *e = qn_log_at(&p->log, x->next);
        QN_ASSERT(e->state == QN_SLOT_LEARNED);
        m->slot = x->next;
        qn_msg_refer(m, e->batch);
    }
    if (!kept || x->next++ == x->last) {
        m->flags |= QN_MSG_LAST;
        p->catch_up.transfers &= ~QN_BIT(to);
    }
}

void qn_catch_up_on_room(struct qn_onepaxos *p, struct qn_step *t,
                         uint64_t peers)
{
    peers &= ~p->change.answers; /* served before */
    for (uint64_t left = peers & p->catch_up.transfers; left != 0;
         left &= left - 1) {
        fill_next(p, t, (qn_node_t)__builtin_ctzll(left));
    }
}

void qn_catch_up_on_down(struct qn_onepaxos *p, qn_node_t peer)
{
    p->catch_up.transfers &= ~QN_BIT(peer);
    p->catch_up.asked &= ~QN_BIT(peer);
    if (p->catch_up.active && p->catch_up.peer == peer) {
        p->catch_up.active = false;
    }
}
