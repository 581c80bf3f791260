/*
 * The read index by message (PROTOCOL.md 8.3). Process acceptor.
 *
 *     origin -> leader      READ_INDEX{n}
 *     leader -> acceptor    READ_INDEX{n, origin}, if it is ACTIVE
 *     acceptor -> origin    READ_AT{n, acc_hi}, if it has promised the leader's
 *                           epoch and nothing later
 *
 * Why both are asked. Let the leader of epoch e forward at t1, and the acceptor
 * answer at t2 > t1. At t1 the leader is ACTIVE: it has neither been sealed nor
 * frozen its log, so no later tenure has begun, and all that is decided by t1
 * was accepted by this acceptor. At t2 the acceptor has promised e, so it has
 * accepted nothing of a later epoch. Hence acc_hi at t2 is at least all that
 * was decided, hence acknowledged or read, before t1. The leader's word alone
 * is wrong: a later leader may have been adopted, and have decided, and this
 * one has not heard of it. The acceptor's alone is wrong, too: it may have been
 * replaced.
 *
 * The leader asks in its own name, too, while it has no question of its own: if
 * the acceptor does not answer, the leader waits for it as well, and it is the
 * leader which replaces it.
 */
#include "paxos/machine/read_index.h"

#include "core/base/bits.h"
#include "paxos/machine/onepaxos_internal.h"
#include "paxos/mutant.h"

/* ---- the origin's part, pure --------------------------------------------- */

uint64_t qn_read_index_ask(struct qn_read_index *r)
{
    r->sent_in = QN_EPOCH_NONE;
    return ++r->asked;
}

bool qn_read_index_due(const struct qn_read_index *r, qn_epoch_t epoch,
                       qn_time_t now)
{
    return qn_read_index_waits(r) &&
           (r->sent_in != epoch || now >= r->again_at);
}

void qn_read_index_sent(struct qn_read_index *r, qn_epoch_t epoch,
                        qn_time_t again_at)
{
    QN_ASSERT(qn_read_index_waits(r));
    r->sent_in = epoch;
    r->again_at = again_at;
}

static void advance(struct qn_read_index *r, qn_slot_t applied)
{
    if (r->oldest.number == 0 || r->oldest.slot > applied) {
        return;
    }
    r->reached = r->oldest.number;
    r->oldest = r->newest;
    r->newest = (struct qn_read_answer){0};
    if (r->oldest.number != 0 && r->oldest.slot <= applied) {
        r->reached = r->oldest.number;
        r->oldest = (struct qn_read_answer){0};
    }
    QN_ASSERT(r->reached <= r->answered);
}

void qn_read_index_answer(struct qn_read_index *r, uint64_t number,
                          qn_slot_t slot, qn_slot_t applied)
{
    if (number <= r->answered || number > r->asked) {
        return;
    }
    const struct qn_read_answer a = {number, slot};
    advance(r, applied);
    r->answered = number;
    *(r->oldest.number == 0 ? &r->oldest : &r->newest) = a;
    QN_ASSERT(r->oldest.number > r->reached);
}

void qn_read_index_void(struct qn_read_index *r)
{
    r->oldest = r->newest = (struct qn_read_answer){0};
    r->answered = r->reached;
    r->sent_in = QN_EPOCH_NONE;
}

uint64_t qn_read_index_reached(struct qn_read_index *r, qn_slot_t applied)
{
    advance(r, applied);
    return r->reached;
}

/* ---- messages ------------------------------------------------------------ */

static void answer(struct qn_onepaxos *p, struct qn_step *t, qn_epoch_t epoch,
                   const struct qn_msg *m, qn_slot_t slot)
{
    qn_node_t origin = m->read_index.origin;
    if (origin == p->self) {
        qn_read_index_answer(&p->reads, m->read_index.number, slot, p->applied);
        return;
    }
    if ((p->alive & QN_BIT(origin)) == 0) {
        return;
    }
    struct qn_msg *a = qn_step_send(t, origin, QN_MSG_READ_AT);
    a->epoch = epoch;
    a->slot = slot;
    a->read_at.number = m->read_index.number;
    a->read_at.inc = m->read_index.inc;
}

/* Leader, to its acceptor. */
static void forward(struct qn_onepaxos *p, struct qn_step *t, uint64_t number,
                    qn_node_t origin, uint64_t inc)
{
    struct qn_msg *m = qn_step_send(t, p->cfg.acceptor, QN_MSG_READ_INDEX);
    m->epoch = p->leader.ep;
    m->read_index.number = number;
    m->read_index.origin = (uint8_t)origin;
    m->read_index.inc = inc;
}

/* Neither sealed nor frozen. */
static bool may_forward(const struct qn_onepaxos *p)
{
    enum qn_role role = p->leader.role;
    return role == QN_ACTIVE ||
           (role == QN_HANDING_OVER && QN_MUTANT(READ_FROZEN));
}

/* The newest question of this node, to the leader; or by the leader itself. A
 * former incarnation of this node may still be named as the leader. */
static void question_send(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_read_index *r = &p->reads;
    uint64_t inc = p->incarnation[p->self];
    if (may_forward(p)) {
        forward(p, t, r->asked, p->self, inc);
    } else if (p->cfg.leader != p->self) {
        struct qn_msg *m = qn_step_send(t, p->cfg.leader, QN_MSG_READ_INDEX);
        m->epoch = p->cfg.index;
        m->read_index.number = r->asked;
        m->read_index.origin = (uint8_t)p->self;
        m->read_index.inc = inc;
    } else {
        return;
    }
    qn_read_index_sent(r, p->cfg.index, t->now + p->params.t_read);
}

/** Origin: ask for the reads that have come, or again what is not answered; of
 *  a leader that is known to take requests (8.3). */
void qn_read_index_on_read(struct qn_onepaxos *p, struct qn_step *t, bool fresh)
{
    QN_ASSERT(p->memory == NULL);
    if (fresh) {
        (void)qn_read_index_ask(&p->reads);
    }
    bool served = p->origin.ready == p->cfg.index;
    if (served && qn_read_index_due(&p->reads, p->cfg.index, t->now)) {
        question_send(p, t);
    }
}

/* Leader: to the acceptor, if this node may still say so. */
static void on_question(struct qn_onepaxos *p, struct qn_step *t,
                        const struct qn_msg *m)
{
    struct qn_read_index *r = &p->reads;
    if (QN_MUTANT(READ_ALONE)) {
        answer(p, t, p->leader.ep, m, p->learned_hi);
        return;
    }
    forward(p, t, m->read_index.number, m->read_index.origin,
            m->read_index.inc);
    if (!qn_read_index_waits(r)) {
        (void)qn_read_index_ask(r);
        question_send(p, t);
    }
}

/** Leader: pass a question on while ACTIVE. Acceptor: answer it if exactly the
 *  leader's epoch is promised. Others: it will be asked again (8.3). */
void qn_read_index_on_question(struct qn_onepaxos *p, struct qn_step *t,
                               qn_node_t from, const struct qn_msg *m)
{
    qn_node_t origin = m->read_index.origin;
    bool is_its =
        p->incarnation[origin] == m->read_index.inc || QN_MUTANT(READ_ANY_LIFE);
    if (origin == from && is_its && may_forward(p)) {
        on_question(p, t, m);
        return;
    }
    const struct qn_acceptor *a = &p->acceptor;
    bool promised = m->epoch == a->promised || QN_MUTANT(READ_ANY_EPOCH);
    if (is_its && a->active && promised &&
        !qn_epoch_led_by_other(p, m->epoch, from)) {
        answer(p, t, m->epoch, m, a->hi);
    }
}

/** Origin: the answer to a question of this incarnation, by the acceptor of the
 *  epoch that it names. Of an epoch that is not known here it says nothing: the
 *  question is asked again (8.3). */
void qn_read_index_on_answer(struct qn_onepaxos *p, struct qn_step *t,
                             qn_node_t from, const struct qn_msg *m)
{
    bool mine =
        m->read_at.inc == p->incarnation[p->self] || QN_MUTANT(READ_ANY_LIFE);
    bool known = qn_utility_entry(&p->ul, m->epoch) != NULL;
    if (mine && known && !qn_epoch_accepted_by_other(p, m->epoch, from)) {
        qn_learner_decided(p, m->slot, t->now); /* its LEARN may be lost */
        qn_read_index_answer(&p->reads, m->read_at.number, m->slot, p->applied);
    }
    qn_reconfigure_behind(p, t, from, m->epoch);
}
