/*
 * A node becomes leader (PROTOCOL.md 6.2).
 *
 *     entry e names this node   PREPARING
 *       PREPARE -> acceptor, SEAL -> the leader before, in parallel
 *     PREPARED: adopted         its log is what was accepted; ACTIVE
 *     SEALED, complete          its log is all that was ever proposed: it may
 *                               replace the acceptor if that does not answer
 *     SEALED, not complete      it asks the leader before that one
 *
 * Adoption. What the acceptor has accepted is decided, so its entries are
 * learned like any others, as they arrive. When all slots up to its `hi` are
 * learned, the other P slots are dropped, because no acceptor will ever accept
 * them, and the node is ACTIVE. A slot that was learned here and is missing in
 * a stale answer stays. If a slot is decided that is not learned here, another
 * node leads already.
 *
 * SEALED is the opposite: its P slots are proposals and nothing more, so they
 * are kept aside until the last one has arrived.
 */
#include "paxos/machine/onepaxos_internal.h"
#include "paxos/mutant.h"

/* -------------------------------------------------------------- PREPARE -- */

static void send_suffix(struct qn_onepaxos *p, struct qn_step *t, qn_node_t to,
                        struct qn_msg m)
{
    struct qn_refbuf *b = qn_utility_suffix(&p->ul, p->cfg.tenure);
    if (b == NULL) {
        return; /* asked again later */
    }
    struct qn_out *o = qn_step_emit(t, QN_OUT_SEND);
    o->to = to;
    o->msg = m;
    qn_msg_refer(&o->msg, b);
    qn_refbuf_unref(b);
}

static void prepare(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_reconfiguration *c = &p->change;
    QN_ASSERT(p->leader.role == QN_PREPARING);
    c->first = p->learned_hi + 1;
    c->prepare_at = t->now + p->params.t_acc;
    if (p->incarnation[p->cfg.acceptor] == p->cfg.acceptor_inc) {
        send_suffix(p, t, p->cfg.acceptor,
                    (struct qn_msg){.kind = QN_MSG_PREPARE,
                                    .epoch = p->leader.ep,
                                    .slot = c->first});
    }
}

/** Acceptor: promise; what was accepted goes back. Refuse below the promise,
 *  and when another tenure is meant. */
void qn_leader_change_on_prepare(struct qn_onepaxos *p, struct qn_step *t,
                                 qn_node_t from, const struct qn_msg *m)
{
    if (!QN_MUTANT(PREPARE_NO_UL)) {
        qn_reconfigure_suffix(p, t, m->body); /* may appoint this node */
    }
    const struct qn_ul_entry *e = qn_utility_entry(&p->ul, m->epoch);
    if (e == NULL && QN_MUTANT(PREPARE_NO_UL)) {
        return;
    }
    if (e == NULL) {
        qn_utility_ask(&p->ul, t, from); /* the leader asks again later */
        return;
    }
    if (qn_epoch_led_by_other(p, m->epoch, from)) {
        return;
    }
    qn_slot_t hi = 0;
    bool promised =
        QN_MUTANT(NO_PROMISE)
            ? (hi = p->acceptor.hi, p->acceptor.active)
            : qn_acceptor_promise(&p->acceptor, m->epoch, e->tenure, &hi);
    if (!promised) {
        qn_acceptor_nack(p, t, from, 0);
        return;
    }
    QN_ASSERT(p->acceptor.promised == m->epoch || QN_MUTANT(NO_PROMISE));
    QN_ASSERT(hi <= p->learned_hi); /* accepted is learned */
    qn_bulk_reply_begin(p, from,
                        &(struct qn_bulk_reply){.kind = QN_MSG_PREPARED,
                                                .epoch = m->epoch,
                                                .next = m->slot,
                                                .hi = hi});
}

/** All that the acceptor had is learned: this node leads now. */
static void adopt(struct qn_onepaxos *p, qn_time_t now)
{
    struct qn_reconfiguration *c = &p->change;
    QN_ASSERT(p->leader.role == QN_PREPARING);
    QN_ASSERT(c->prepared);
    QN_ASSERT(p->learned_hi >= c->adopt_hi); /* T1 */
    qn_slot_t hi = QN_MAX(c->adopt_hi, p->learned_hi);
    qn_bulk_reply_void(p);
    qn_learner_forget_proposed(p, hi + 1, UINT64_MAX);
    /* I4: no P slot is left, every slot below `next` is decided. */
    QN_ASSERT(p->leader.inflight_bytes == 0);
    p->leader.next = hi + 1;
    p->leader.role = QN_ACTIVE;
    p->leader.want_stamp = true; /* a no-op: laggards see the gap */
    c->cep = p->leader.ep;
    c->serve_from = hi;
    for (qn_node_t n = 0; n < p->nodes; n++) {
        p->leader.seen[n] = (struct qn_session){0};
    }
    p->leader.asked = 0;
    qn_propose_begin(p, now);
}

/** Leader: what was accepted is decided, and learned before anything is
 *  proposed (6.2, T1). An answer of another epoch, or of another acceptor,
 *  counts for nothing. */
void qn_leader_change_on_prepared(struct qn_onepaxos *p, struct qn_step *t,
                                  qn_node_t from, const struct qn_msg *m)
{
    struct qn_reconfiguration *c = &p->change;
    bool stale = m->epoch != p->leader.ep && !QN_MUTANT(STALE_PREPARED);
    if (p->leader.role != QN_PREPARING || stale ||
        qn_epoch_accepted_by_other(p, m->epoch, from)) {
        return;
    }
    c->prepare_at =
        t->now + p->params.t_acc; /* it answers: no second question */
    if (m->body.len != 0 && !QN_MUTANT(NO_ADOPT)) {
        qn_learner_learn(p, t, m); /* accepted is decided */
    }
    if ((m->flags & QN_MSG_LAST) != 0) {
        c->prepared = true;
        c->adopt_hi = QN_MUTANT(NO_ADOPT) ? p->learned_hi : m->prepared.hi;
        qn_learner_decided(p, c->adopt_hi, t->now); /* gaps are fetched */
    }
}

/* ----------------------------------------------------------------- SEAL -- */

static void seal_step(struct qn_onepaxos *p, struct qn_step *t);

/** The next older epoch of this tenure, if there is one. */
static void seal_older(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_reconfiguration *c = &p->change;
    c->sk = qn_epoch_before(p, c->sk);
    if (c->sk != QN_EPOCH_NONE && c->sk >= p->cfg.tenure) {
        seal_step(p, t);
    } else {
        c->sk = QN_EPOCH_NONE;
    }
}

/** The own log is complete. It was not adopted, but that is enough to appoint
 *  an acceptor. */
static void recovered(struct qn_onepaxos *p, qn_slot_t hi)
{
    QN_ASSERT(p->leader.role == QN_PREPARING);
    QN_ASSERT(p->leader.ep == p->cfg.index);
    p->leader.next = hi + 1;
    p->change.cep = p->leader.ep;
    p->change.sk = QN_EPOCH_NONE;
}

static void seal_step(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_reconfiguration *c = &p->change;
    const struct qn_ul_entry *e = qn_utility_entry(&p->ul, c->sk);
    QN_ASSERT(c->sk < p->leader.ep); /* an older epoch is sealed */
    if (e == NULL) {
        c->sk = QN_EPOCH_NONE;
        return;
    }
    if (!qn_epoch_is(p, e->leader, e->leader_inc)) {
        if (p->incarnation[e->leader] == e->leader_inc) {
            send_suffix(p, t, e->leader,
                        (struct qn_msg){.kind = QN_MSG_SEAL,
                                        .epoch = p->leader.ep,
                                        .slot = p->learned_hi + 1,
                                        .seal = {.target = c->sk}});
        }
        return;
    }
    if (c->cep == c->sk) {
        recovered(p, p->leader.next - 1);
    } else if (c->cep == QN_EPOCH_NONE || c->cep < c->sk) {
        seal_older(p, t);
    }
}

/** Older leader: stop for good, and send what was proposed, or say that
 *  nothing was ever proposed in that epoch. */
void qn_leader_change_on_seal(struct qn_onepaxos *p, struct qn_step *t,
                              qn_node_t from, const struct qn_msg *m)
{
    qn_epoch_t target = m->seal.target;
    if (!QN_MUTANT(OLD_SEAL)) {
        /* It names the asker, so this node follows (T8). */
        qn_reconfigure_suffix(p, t, m->body);
    }
    if (p->cfg.index < m->epoch && !QN_MUTANT(OLD_SEAL)) {
        qn_utility_ask(&p->ul, t, from);
        return;
    }
    if (qn_epoch_led_by_other(p, m->epoch, from)) {
        return;
    }
    struct qn_reconfiguration *c = &p->change;
    bool complete = c->cep == target || QN_MUTANT(SEAL_LIES);
    if (!complete && c->cep != QN_EPOCH_NONE && c->cep > target) {
        return; /* a stale question */
    }
    struct qn_bulk_reply a = {.kind = QN_MSG_SEALED,
                              .flags = complete ? QN_MSG_OK : 0,
                              .epoch = m->epoch,
                              .target = target,
                              .next = m->slot,
                              .hi = complete ? p->leader.next - 1 : 0};
    qn_bulk_reply_begin(p, from, &a);
}

/** A slot of the sealed log: kept aside until all have come. */
static void keep_sealed(struct qn_onepaxos *p, const struct qn_msg *m)
{
    struct qn_log *in = &p->change.incoming;
    if (!qn_log_holds(in, m->slot) ||
        qn_log_at(in, m->slot)->state != QN_SLOT_EMPTY) {
        return;
    }
    struct qn_refbuf *b = qn_learner_body(p, m);
    if (b != NULL) {
        qn_log_put(in, m->slot, b, QN_SLOT_PROPOSED);
    }
}

/**
 * @return true: every slot above learned_hi up to `hi` is here or learned; the
 *         own log is complete now.
 */
static bool take_sealed(struct qn_onepaxos *p, qn_slot_t hi)
{
    struct qn_log *in = &p->change.incoming;
    for (qn_slot_t s = p->learned_hi + 1; s <= hi; s++) {
        bool mine = qn_log_holds(&p->log, s) &&
                    qn_log_at(&p->log, s)->state == QN_SLOT_LEARNED;
        bool theirs =
            qn_log_holds(in, s) && qn_log_at(in, s)->state != QN_SLOT_EMPTY;
        if ((!mine && !theirs) || !qn_learner_make_room(p, s)) {
            return false;
        }
    }
    qn_bulk_reply_void(p);
    qn_learner_forget_proposed(p, p->learned_hi + 1, UINT64_MAX);
    for (qn_slot_t s = p->learned_hi + 1; s <= hi; s++) {
        if (qn_log_at(&p->log, s)->state != QN_SLOT_LEARNED) {
            const struct qn_log_entry *e = qn_log_at(in, s);
            qn_learner_propose(p, s, qn_refbuf_ref(e->batch));
        }
    }
    return true;
}

/** Leader, not adopted yet: a complete older log makes this log complete, so
 *  that the node may appoint an acceptor. Otherwise the leader before that
 *  one is asked (6.2). Only the answer to the present question counts. */
void qn_leader_change_on_sealed(struct qn_onepaxos *p, struct qn_step *t,
                                qn_node_t from, const struct qn_msg *m)
{
    struct qn_reconfiguration *c = &p->change;
    if (p->leader.role != QN_PREPARING || m->epoch != p->leader.ep ||
        c->cep == p->leader.ep || m->sealed.target != c->sk ||
        qn_epoch_led_by_other(p, m->sealed.target, from)) {
        return;
    }
    c->prepare_at = t->now + p->params.t_acc;
    if (m->body.len != 0) {
        keep_sealed(p, m);
    }
    if ((m->flags & QN_MSG_LAST) == 0) {
        return;
    }
    if ((m->flags & QN_MSG_OK) == 0) {
        seal_older(p, t);
    } else if (take_sealed(p, m->sealed.hi)) {
        recovered(p, m->sealed.hi);
    } /* else something is missing: asked again, with the PREPARE */
    qn_log_clear(&c->incoming, p->learned_hi + 1);
}

/* ----------------------------------------------------------------- lost -- */

/** The acceptor has ended, and so has the next leader that would have to be
 *  asked (6.4, the rows that stop). What they had sent is received before
 *  their ends are reported, and the leaders between have said that they were
 *  never adopted. The leader of a later epoch would meet the same two. */
static bool both_over(const struct qn_onepaxos *p)
{
    const struct qn_reconfiguration *c = &p->change;
    if (p->memory != NULL || p->leader.role != QN_PREPARING ||
        c->cep == p->leader.ep || c->sk == QN_EPOCH_NONE) {
        return false;
    }
    const struct qn_ul_entry *e = qn_utility_entry(&p->ul, c->sk);
    return e != NULL &&
           qn_epoch_life_over(p, p->cfg.acceptor, p->cfg.acceptor_inc) &&
           qn_epoch_life_over(p, e->leader, e->leader_inc);
}

/** This epoch cannot begin. */
bool qn_leader_change_lost(const struct qn_onepaxos *p)
{
    return both_over(p) && !p->change.prepared;
}

/** The acceptor had answered in full before it ended, but not with all that
 *  this node lacks: it kept less, or memory was short. Only other nodes may
 *  have the rest now. */
bool qn_leader_change_lacks(const struct qn_onepaxos *p)
{
    return both_over(p) && p->change.prepared && p->learned_hi < p->decided_hi;
}

/* -------------------------------------------------------------- recovery -- */

/** Neither a complete leader nor the acceptor: alone it would wait for ever. */
bool qn_leader_change_needs_force(const struct qn_onepaxos *p)
{
    const struct qn_acceptor *a = &p->acceptor;
    bool complete = qn_epoch_leads(p) && p->change.cep == p->cfg.index;
    bool accepts = a->active && a->tenure == p->cfg.tenure;
    return p->memory == NULL && !complete && !accepts;
}

/** Forced recovery (9): the next epoch that this node leads, or the present
 *  one if it leads that in vain, begins with its log as it is. No other
 *  incarnation lives, so nothing of the former group comes after this: later
 *  incarnations begin with what they get from here. */
int qn_leader_change_recover(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_reconfiguration *c = &p->change;
    if ((p->alive & ~QN_BIT(p->self)) != 0) {
        return QN_EBUSY;
    }
    if (p->memory != NULL) {
        return qn_memory_leader_force(p, t);
    }
    if (!qn_leader_change_needs_force(p)) {
        return QN_EBUSY;
    }
    qn_learner_cut(p, t->now);
    qn_read_index_void(&p->reads);
    c->forced = c->certain = true;
    c->lead_at = t->now; /* before any node that starts now */
    return QN_OK;
}

/** An operator has said that the slots learned here are all there are. Then
 *  the acceptor is replaced as by any complete leader. */
static void declare(struct qn_onepaxos *p, qn_time_t now)
{
    struct qn_reconfiguration *c = &p->change;
    qn_bulk_reply_void(p);
    qn_learner_cut(p, now);
    recovered(p, p->learned_hi);
    c->forced = c->prepared = false;
}

/* ----------------------------------------------------------------- turn -- */

void qn_leader_change_begin(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_reconfiguration *c = &p->change;
    QN_ASSERT(qn_epoch_leads(p));
    QN_ASSERT(p->leader.ep == p->cfg.index);
    qn_propose_step_down(p); /* nothing of an older epoch is queued */
    p->leader.role = QN_PREPARING;
    c->prepared = false;
    c->sk = QN_EPOCH_NONE;
    qn_log_clear(&c->incoming, p->learned_hi + 1);
    prepare(p, t);
    if (c->cep != p->leader.ep && !QN_MUTANT(NO_SEAL)) {
        c->sk = p->leader.ep;
        seal_older(p, t);
    }
}

/** REDIRECT: send everything unapplied to me. */
static void serve(struct qn_onepaxos *p, struct qn_step *t,
                  enum qn_out_kind kind, qn_node_t to)
{
    struct qn_out *o = qn_step_emit(t, kind);
    o->to = to;
    o->msg = (struct qn_msg){
        .kind = QN_MSG_REDIRECT,
        .epoch = p->cfg.index,
        .redirect = {.leader = p->cfg.leader, .leader_inc = p->cfg.leader_inc}};
}

/** Once per TICK. */
void qn_leader_change_check(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_reconfiguration *c = &p->change;
    if (p->leader.role == QN_PREPARING && c->forced) {
        declare(p, t->now);
    }
    if (p->leader.role == QN_PREPARING) {
        if (c->prepared && p->learned_hi >= p->decided_hi) {
            adopt(p, t->now);
        } else if (t->now >= c->prepare_at) {
            prepare(p, t);
            if (c->sk != QN_EPOCH_NONE) {
                seal_step(p, t);
            }
        }
    }
    qn_leader_change_serve(p, t);
}

/** ACTIVE, and all that was taken over is applied: origins may send requests.
 */
void qn_leader_change_serve(struct qn_onepaxos *p, struct qn_step *t)
{
    const struct qn_reconfiguration *c = &p->change;
    bool ready = p->leader.role == QN_ACTIVE &&
                 (p->applied >= c->serve_from || QN_MUTANT(SERVE_EARLY));
    /* Below, not unequal: a later leader may have said so before this node has
     * heard of its epoch. */
    if (ready && p->origin.ready < p->cfg.index) {
        p->origin.ready = p->cfg.index;
        serve(p, t, QN_OUT_SEND_ALL, QN_NODES_MAX);
    }
}

/** A new incarnation of `peer` does not know that this node serves. */
void qn_leader_change_welcome(struct qn_onepaxos *p, struct qn_step *t,
                              qn_node_t peer)
{
    if (p->leader.role == QN_ACTIVE && p->origin.ready == p->cfg.index) {
        serve(p, t, QN_OUT_SEND, peer);
    }
}
