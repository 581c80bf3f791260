/*
 * The acceptor is replaced (PROTOCOL.md 6.3).
 *
 *     leader, complete           hands over (FROZEN): no ACCEPT in this epoch
 *                                ever again
 *       STAGE -> candidates      the utility log, then its log above what each
 *                                of them has learned
 *       <- STAGED
 *       ACCEPTOR entry           with the first candidate that answered
 *     candidate, appointed       what was staged is decided now
 *       <- PREPARE               from its leader, or from the next one
 *
 * The old acceptor may live on and accept what was on its way: all of that is
 * in the frozen log. A candidate that was appointed but has not heard of it
 * keeps its staged set until a later STAGE. A STAGE brings the utility log
 * first, so the candidate hears of its appointment before the set is replaced.
 *
 * The staged set lies in a ring of its own. What it holds beyond learned_hi
 * becomes learned at the appointment. One LEARN tells all nodes how far the
 * decided slots reach, and they fetch what they lack.
 */
#include "paxos/machine/onepaxos_internal.h"
#include "paxos/mutant.h"

/* --------------------------------------------------------------- leader -- */

static uint64_t candidates(const struct qn_onepaxos *p)
{
    uint64_t no = p->change.suspected | ~p->alive | QN_BIT(p->self);
    if (qn_epoch_acceptor_gone(p)) {
        no |= QN_BIT(p->cfg.acceptor) *
              (p->incarnation[p->cfg.acceptor] == p->cfg.acceptor_inc);
    }
    return qn_group_mask(p->nodes) & ~no;
}

static void stage(struct qn_onepaxos *p, qn_node_t to, qn_slot_t base)
{
    QN_ASSERT(p->change.handing_over);
    QN_ASSERT(to != p->self); /* leader != acceptor */
    p->change.staging &= ~QN_BIT(to);
    if (base + 1 < p->log.lo) {
        return; /* it lags beyond the log: a snapshot first */
    }
    p->change.staging |= QN_BIT(to);
    qn_slot_t hi = p->leader.next - 1;
    qn_bulk_reply_begin(p, to,
                        &(struct qn_bulk_reply){
                            .kind = QN_MSG_STAGE,
                            .epoch = p->leader.ep,
                            .base = base,
                            .next = base + 1,
                            .hi = QN_MUTANT(NO_HANDOFF) ? base : hi,
                            .ul_first = true,
                        });
}

static void hand_over(struct qn_onepaxos *p)
{
    struct qn_reconfiguration *c = &p->change;
    QN_ASSERT(c->cep == p->leader.ep || QN_MUTANT(UNADOPTED));
    qn_slot_t next = p->leader.next;
    if (!QN_MUTANT(NO_FREEZE)) {
        qn_propose_step_down(p);
        p->leader.role = QN_HANDING_OVER; /* final for this epoch */
    }
    QN_ASSERT(p->cfg.index == p->leader.ep);
    p->leader.next = next;
    c->handing_over = true;
    c->staging = 0;
    c->candidate = QN_NODES_MAX;
}

static void appoint(struct qn_onepaxos *p, struct qn_step *t)
{
    const struct qn_reconfiguration *c = &p->change;
    QN_ASSERT(p->leader.role == QN_HANDING_OVER || QN_MUTANT(NO_FREEZE));
    QN_ASSERT(c->cep == p->leader.ep || QN_MUTANT(UNADOPTED));
    QN_ASSERT(c->candidate != p->self); /* leader != acceptor */
    QN_ASSERT(c->candidate < p->nodes);
    QN_ASSERT((p->alive & QN_BIT(c->candidate)) != 0);
    QN_ASSERT(p->cfg.index == p->leader.ep);
    struct qn_ul_entry e = p->cfg;
    e.kind = QN_UL_ACCEPTOR;
    e.from = p->leader.ep;
    e.acceptor = (uint8_t)c->candidate;
    e.acceptor_inc = p->incarnation[c->candidate];
    qn_utility_propose(&p->ul, t, &e);
    qn_reconfigure_learn(p, t);
}

/** Leader that hands over: appoint the first candidate that has the whole log
 *  (6.3). A candidate that had learned less than was believed gets the rest,
 *  too. */
void qn_acceptor_change_on_staged(struct qn_onepaxos *p, qn_node_t from,
                                  const struct qn_msg *m)
{
    struct qn_reconfiguration *c = &p->change;
    if (!c->handing_over || m->epoch != p->leader.ep ||
        p->cfg.index != p->leader.ep) {
        return;
    }
    if ((m->flags & QN_MSG_OK) != 0) {
        c->candidate = c->candidate == QN_NODES_MAX ? from : c->candidate;
    } else {
        stage(p, from, m->staged.have);
    }
}

/** Once per TICK. */
void qn_acceptor_change_check(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_reconfiguration *c = &p->change;
    bool leads = qn_epoch_leads(p) && p->cfg.index == p->leader.ep;
    bool complete = c->cep == p->leader.ep || QN_MUTANT(UNADOPTED);
    bool frozen = p->leader.role == QN_HANDING_OVER || QN_MUTANT(NO_FREEZE);
    c->handing_over = c->handing_over && leads && frozen; /* else deposed */
    if (!leads) {
        return;
    }
    if (!c->handing_over && complete && qn_epoch_acceptor_gone(p) &&
        (p->leader.role == QN_ACTIVE || p->leader.role == QN_PREPARING)) {
        hand_over(p);
    }
    if (!c->handing_over) {
        return;
    }
    uint64_t able = candidates(p);
    for (uint64_t left = able & ~c->staging; left != 0; left &= left - 1) {
        qn_node_t n = (qn_node_t)__builtin_ctzll(left);
        stage(p, n, p->peer[n].learned);
    }
    c->staging &= able;
    if (c->candidate != QN_NODES_MAX && (able & QN_BIT(c->candidate)) == 0) {
        c->candidate = QN_NODES_MAX; /* it has ended or is suspected, too */
        c->staging = 0;              /* the others may be appointed instead */
    }
    if (c->candidate != QN_NODES_MAX && !qn_utility_proposing(&p->ul)) {
        appoint(p, t);
    }
}

/** The next incarnation of a candidate has nothing of what was staged. */
void qn_acceptor_change_restarted(struct qn_onepaxos *p, qn_node_t peer)
{
    struct qn_reconfiguration *c = &p->change;
    c->staging &= ~QN_BIT(peer);
    if (c->candidate == peer) {
        c->candidate = QN_NODES_MAX;
        c->staging = 0; /* the others may be appointed instead */
    }
}

/* ------------------------------------------------------------ candidate -- */

static void staged(struct qn_onepaxos *p, struct qn_step *t, qn_node_t to,
                   qn_epoch_t from, bool ok)
{
    struct qn_msg *m = qn_step_send(t, to, QN_MSG_STAGED);
    m->epoch = from;
    m->flags = ok ? QN_MSG_OK : 0;
    m->staged.have = p->learned_hi;
}

static void forget_staged(struct qn_onepaxos *p, qn_slot_t base)
{
    p->change.st_from = QN_EPOCH_NONE;
    qn_log_clear(&p->change.staged, base + 1);
}

/** The last slot has arrived: is the set whole? */
static bool whole(const struct qn_onepaxos *p, const struct qn_msg *m)
{
    const struct qn_log *st = &p->change.staged;
    if (p->learned_hi < m->stage.base) {
        return false;
    }
    for (qn_slot_t s = m->stage.base + 1; s <= m->stage.hi; s++) {
        if (!qn_log_holds(st, s) || qn_log_at(st, s)->state == QN_SLOT_EMPTY) {
            return false;
        }
    }
    return true;
}

static void keep_staged(struct qn_onepaxos *p, const struct qn_msg *m)
{
    struct qn_log *st = &p->change.staged;
    if (m->body.len != 0 && qn_log_holds(st, m->slot) &&
        qn_log_at(st, m->slot)->state == QN_SLOT_EMPTY) {
        struct qn_refbuf *b = qn_learner_body(p, m);
        if (b != NULL) {
            qn_log_put(st, m->slot, b, QN_SLOT_PROPOSED);
        }
    }
}

/** T18: several leaders may stage at once, each on its own channel; only the
 *  newest counts. A set that is whole stays: its leader may know that and may
 *  appoint this node. An epoch has one frozen log. */
void qn_acceptor_change_on_stage(struct qn_onepaxos *p, struct qn_step *t,
                                 qn_node_t from, const struct qn_msg *m)
{
    struct qn_reconfiguration *c = &p->change;
    bool brings_ul = (m->flags & QN_MSG_UL) != 0;
    if (brings_ul && !QN_MUTANT(STAGE_LOST)) {
        /* First: it may appoint this node (T17). */
        qn_reconfigure_suffix(p, t, m->body);
    }
    if (qn_epoch_led_by_other(p, m->epoch, from)) {
        return;
    }
    bool newest = m->epoch == p->cfg.index || QN_MUTANT(LATE_STAGE) ||
                  QN_MUTANT(STAGE_LOST);
    bool kept = c->st_from == m->epoch && !QN_MUTANT(STAGE_AGAIN);
    if (newest && !kept && brings_ul) {
        forget_staged(p, m->stage.base);
    } else if ((newest && !kept) || QN_MUTANT(STAGE_MIX)) {
        keep_staged(p, m);
    }
    if (brings_ul || (m->flags & QN_MSG_LAST) == 0) {
        return;
    }
    if (newest && !kept && whole(p, m)) {
        c->st_from = m->epoch;
        c->st_base = m->stage.base;
        c->st_hi = m->stage.hi;
    }
    staged(p, t, from, m->epoch, newest && c->st_from == m->epoch);
}

/** Entry e names this incarnation as the acceptor. If the entry's leader
 *  staged its log here, that log is decided now. */
void qn_acceptor_change_appointed(struct qn_onepaxos *p, struct qn_step *t,
                                  const struct qn_ul_entry *e)
{
    struct qn_reconfiguration *c = &p->change;
    if (c->st_from != e->from) {
        return; /* the set of another epoch, or none: this node never becomes
                   active */
    }
    QN_ASSERT(e->index > p->acceptor.promised); /* never falls */
    QN_ASSERT(p->learned_hi >= c->st_base);     /* I5: no gap below the set */
    p->acceptor.active = true;
    p->acceptor.tenure = p->acceptor.promised = e->index;
    p->acceptor.hi = c->st_hi;
    qn_slot_t before = p->learned_hi;
    for (qn_slot_t s = c->st_base + 1; s <= c->st_hi; s++) {
        const struct qn_log_entry *x = qn_log_at(&c->staged, s);
        QN_ASSERT(x->state == QN_SLOT_PROPOSED);
        qn_learner_settle(p, t, s, x->batch);
    }
    QN_ASSERT(p->learned_hi >= c->st_hi);
    if (before < c->st_hi && qn_log_holds(&p->log, c->st_hi)) {
        qn_learner_tell(p, t, c->st_hi);
    }
    forget_staged(p, c->st_hi);
}
