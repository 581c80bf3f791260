/*
 * The acceptor is replaced (PROTOCOL.md 6.3).
 *
 *     leader, complete           FROZEN: no ACCEPT in this epoch ever again
 *       STAGE -> candidates      the utility log, then its log above what each
 *                                of them has learned
 *       <- STAGED
 *       ACCEPTOR entry           with the first candidate that answered
 *     candidate, appointed       what was staged is decided now
 *       <- PREPARE               from its leader, or from the next one
 *
 * The old acceptor may live on and accept what was on its way: all of that is
 * in the frozen log. A candidate that was appointed but has not heard of it
 * keeps its staged set until a later STAGE, and a STAGE brings the utility log
 * first, so it hears of it before the set is replaced.
 *
 * The staged set lies in a ring of its own. What it holds beyond learned_hi
 * becomes learned at appointment; one LEARN tells everybody how far, and they
 * fetch what they lack.
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
    uint64_t all = p->nodes == QN_NODES_MAX ? UINT64_MAX : QN_BIT(p->nodes) - 1;
    return all & ~no;
}

static void stage(struct qn_onepaxos *p, qn_node_t to, qn_slot_t base)
{
    p->change.staging &= ~QN_BIT(to);
    if (base + 1 < p->log.lo) {
        return; /* it lags beyond the log: a snapshot first */
    }
    p->change.staging |= QN_BIT(to);
    qn_slot_t hi = p->leader.next - 1;
    qn_transfer_begin(p, to,
                      &(struct qn_long_answer){
                          .kind = QN_MSG_STAGE,
                          .epoch = p->leader.ep,
                          .base = base,
                          .next = base + 1,
                          .hi = QN_MUTANT(NO_HANDOFF) ? base : hi,
                          .ul_first = true,
                      });
}

static void freeze(struct qn_onepaxos *p)
{
    struct qn_reconfiguration *c = &p->change;
    QN_ASSERT(c->cep == p->leader.ep || QN_MUTANT(UNADOPTED));
    qn_slot_t next = p->leader.next;
    if (!QN_MUTANT(NO_FREEZE)) {
        qn_leader_step_down(p);
        p->leader.role = QN_HANDING_OVER; /* final for this epoch */
    }
    p->leader.next = next;
    c->freezing = true;
    c->staging = 0;
    c->candidate = QN_NODES_MAX;
}

static void appoint(struct qn_onepaxos *p, struct qn_step *t)
{
    const struct qn_reconfiguration *c = &p->change;
    QN_ASSERT(p->leader.role == QN_HANDING_OVER || QN_MUTANT(NO_FREEZE));
    QN_ASSERT(c->cep == p->leader.ep || QN_MUTANT(UNADOPTED));
    QN_ASSERT(c->candidate != p->self); /* leader != acceptor */
    struct qn_ul_entry e = p->cfg;
    e.kind = QN_UL_ACCEPTOR;
    e.from = p->leader.ep;
    e.acceptor = (uint8_t)c->candidate;
    e.acceptor_inc = p->incarnation[c->candidate];
    qn_utility_propose(&p->ul, t, &e);
    qn_epoch_learn(p, t);
}

/** Leader, frozen: the first candidate that has all of it is the one to appoint
 *  (6.3); one that had learned less than was believed gets the rest, too. */
void qn_handoff_on_staged(struct qn_onepaxos *p, qn_node_t from,
                          const struct qn_msg *m)
{
    struct qn_reconfiguration *c = &p->change;
    if (!c->freezing || m->epoch != p->leader.ep ||
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
void qn_handoff_check(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_reconfiguration *c = &p->change;
    bool leads = qn_epoch_leads(p) && p->cfg.index == p->leader.ep;
    bool complete = c->cep == p->leader.ep || QN_MUTANT(UNADOPTED);
    bool frozen = p->leader.role == QN_HANDING_OVER || QN_MUTANT(NO_FREEZE);
    c->freezing = c->freezing && leads && frozen; /* else deposed */
    if (!leads) {
        return;
    }
    if (!c->freezing && complete && qn_epoch_acceptor_gone(p) &&
        (p->leader.role == QN_ACTIVE || p->leader.role == QN_PREPARING)) {
        freeze(p);
    }
    if (!c->freezing) {
        return;
    }
    uint64_t who = candidates(p);
    for (uint64_t left = who & ~c->staging; left != 0; left &= left - 1) {
        qn_node_t n = (qn_node_t)__builtin_ctzll(left);
        stage(p, n, p->peer[n].learned);
    }
    c->staging &= who;
    if (c->candidate != QN_NODES_MAX && (who & QN_BIT(c->candidate)) == 0) {
        c->candidate = QN_NODES_MAX; /* it went, too */
        c->staging = 0;              /* the others may be appointed instead */
    }
    if (c->candidate != QN_NODES_MAX && !qn_utility_proposing(&p->ul)) {
        appoint(p, t);
    }
}

/** A candidate's next life has nothing of what was staged. */
void qn_handoff_restarted(struct qn_onepaxos *p, qn_node_t peer)
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

/** The last slot has come: is the set whole? */
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
        struct qn_blob *b = qn_learner_body(p, m);
        if (b != NULL) {
            qn_log_put(st, m->slot, b, QN_SLOT_PROPOSED);
        }
    }
}

/** T18: of leaders that stage at once, each on its own channel, only the newest
 *  counts; and a set that is whole stays, for its leader may have heard so and
 *  appoint this node: an epoch has one frozen log. */
void qn_handoff_on_stage(struct qn_onepaxos *p, struct qn_step *t,
                         qn_node_t from, const struct qn_msg *m)
{
    struct qn_reconfiguration *c = &p->change;
    bool brings_ul = (m->flags & QN_MSG_UL) != 0;
    if (brings_ul && !QN_MUTANT(STAGE_LOST)) {
        qn_epoch_suffix(p, t, m->body); /* first: it may appoint me (T17) */
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

/** This life is named acceptor by entry e. If its leader staged here, what it
 *  staged is decided now. */
void qn_handoff_appointed(struct qn_onepaxos *p, struct qn_step *t,
                          const struct qn_ul_entry *e)
{
    struct qn_reconfiguration *c = &p->change;
    if (c->st_from != e->from) {
        return; /* another life's set, or none: never active */
    }
    QN_ASSERT(e->index > p->acceptor.promised); /* never falls */
    p->acceptor.active = true;
    p->acceptor.tenure = p->acceptor.promised = e->index;
    p->acceptor.hi = c->st_hi;
    qn_slot_t before = p->learned_hi;
    for (qn_slot_t s = c->st_base + 1; s <= c->st_hi; s++) {
        const struct qn_log_entry *x = qn_log_at(&c->staged, s);
        qn_learner_settle(p, t, s, x->batch);
    }
    QN_ASSERT(p->learned_hi >= c->st_hi);
    if (before < c->st_hi && qn_log_holds(&p->log, c->st_hi)) {
        qn_learner_tell(p, t, c->st_hi);
    }
    forget_staged(p, c->st_hi);
}
