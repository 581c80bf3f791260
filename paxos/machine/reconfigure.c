/*
 * The configuration: entries of the utility log as they are learned, and what
 * follows from them (PROTOCOL.md 6.2, "learn UL entries").
 *
 * Entries arrive in any message that carries some, and are taken in order. Each
 * one is looked at by itself first, for what it means for ever: an epoch that
 * this node led or was appointed in, even if the node hears of it late. Only
 * the newest entry decides what this node does now.
 *
 * A new epoch makes every origin wait. Its leader sends REDIRECT to all when it
 * has applied what it adopted, and then each origin sends everything that is
 * unapplied again, in order. So the leader's filter needs the sessions only,
 * and no request finds a leader that is not ready.
 *
 * Members come and go by the leader's order (4.4). It proposes only what leaves
 * the group able to go on: a newcomer is in sync before it counts, a majority
 * of the new voters is alive, and the leader, whose ring has what was decided
 * last, is never removed in its role. The order is kept until its entry is
 * learned, or the leader leads no more, or the newcomer ends. Entries are kept
 * for a bounded time, and one that names roles must be among them: so the
 * leader begins an epoch of its own when many changes follow the last one.
 */
#include "paxos/machine/onepaxos_internal.h"
#include "paxos/mutant.h"

bool qn_epoch_is(const struct qn_onepaxos *p, uint8_t node, uint64_t inc)
{
    return node == p->self && inc == p->incarnation[p->self];
}

bool qn_epoch_leads(const struct qn_onepaxos *p)
{
    return qn_epoch_is(p, p->cfg.leader, p->cfg.leader_inc);
}

/** That incarnation has ended for certain. An incarnation that is not known
 *  here yet has not. */
bool qn_epoch_life_over(const struct qn_onepaxos *p, uint8_t node, uint64_t inc)
{
    return p->incarnation[node] > inc ||
           (p->incarnation[node] == inc && node != p->self &&
            (p->alive & QN_BIT(node)) == 0);
}

/** This incarnation is the acceptor that the newest entry names. */
bool qn_epoch_accepts(const struct qn_onepaxos *p)
{
    return qn_epoch_is(p, p->cfg.acceptor, p->cfg.acceptor_inc);
}

/** Entry `e` names another incarnation than the present one of `from` as its
 *  leader, or as its acceptor. False for an entry that is not known here. */
bool qn_epoch_led_by_other(const struct qn_onepaxos *p, qn_epoch_t e,
                           qn_node_t from)
{
    const struct qn_ul_entry *x = qn_utility_entry(&p->ul, e);
    return x != NULL &&
           (x->leader != from || x->leader_inc != p->incarnation[from]);
}

bool qn_epoch_accepted_by_other(const struct qn_onepaxos *p, qn_epoch_t e,
                                qn_node_t from)
{
    const struct qn_ul_entry *x = qn_utility_entry(&p->ul, e);
    return x != NULL &&
           (x->acceptor != from || x->acceptor_inc != p->incarnation[from]);
}

/** Epoch before `e` in the same log: skips entries that name no roles. */
qn_epoch_t qn_epoch_before(const struct qn_onepaxos *p, qn_epoch_t e)
{
    const struct qn_ul_entry *x;
    do {
        if (e == 0 || (x = qn_utility_entry(&p->ul, e - 1)) == NULL) {
            return QN_EPOCH_NONE;
        }
        e--;
    } while (!qn_ul_begins_epoch(x));
    return e;
}

/** The leader accepts by itself: with the memory acceptor always, otherwise
 *  never (2). */
static bool same_life(const struct qn_ul_entry *e)
{
    return e->leader == e->acceptor && e->leader_inc == e->acceptor_inc;
}

/** Could that entry be of this group? What a peer sends is asked first. */
bool qn_reconfigure_fits(const struct qn_onepaxos *p,
                         const struct qn_ul_entry *e)
{
    return qn_ul_within(e, p->nodes) && (p->memory != NULL || e->voters == 0) &&
           (p->nodes == 1 || same_life(e) == (p->memory != NULL));
}

/** The vote of that incarnation has ended, and with it its membership. */
void qn_reconfigure_note(struct qn_onepaxos *p, const struct qn_ul_entry *e)
{
    if (e->kind == QN_UL_SEAT && (e->voters & QN_BIT(e->voter)) == 0) {
        uint64_t *ended = &p->change.ended[e->voter];
        *ended = QN_MAX(*ended, e->voter_inc);
        p->leader.removed |= QN_BIT(e->voter);
        p->leader.told &= ~QN_BIT(e->voter);
    }
}

/** A snapshot says of each seat which incarnation's vote has ended: its giver
 *  has seen entries that are kept no more. */
void qn_reconfigure_ended(struct qn_onepaxos *p, const uint64_t *ended)
{
    for (qn_node_t n = 0; n < p->nodes && p->memory != NULL; n++) {
        p->change.ended[n] = QN_MAX(p->change.ended[n], ended[n]);
    }
}

static void take(struct qn_onepaxos *p, struct qn_step *t,
                 const struct qn_ul_entry *e)
{
    qn_reconfigure_note(p, e);
    if (!qn_ul_begins_epoch(e)) {
        return;
    }
    QN_ASSERT(qn_reconfigure_fits(p, e));
    QN_ASSERT(e->index == p->change.seen); /* in order, each once */
    QN_ASSERT(e->index >= p->cfg.index);
    if (qn_epoch_is(p, e->leader, e->leader_inc)) {
        QN_ASSERT(e->index >= p->leader.ep);
        p->leader.ep = e->index;
        bool newest = e->index + 1 == qn_utility_len(&p->ul);
        if (e->kind == QN_UL_ACCEPTOR && (newest || !QN_MUTANT(SKIP_OWN))) {
            p->change.cep = e->index; /* the frozen log is the staged log */
        }
    }
    if (e->kind == QN_UL_ACCEPTOR &&
        qn_epoch_is(p, e->acceptor, e->acceptor_inc)) {
        qn_acceptor_change_appointed(p, t, e);
    }
    p->cfg = *e;
}

/** Act on entries that the utility log has learned since the last time. */
void qn_reconfigure_learn(struct qn_onepaxos *p, struct qn_step *t)
{
    qn_epoch_t before = p->cfg.index;
    for (; p->change.seen < qn_utility_len(&p->ul); p->change.seen++) {
        const struct qn_ul_entry *e = qn_utility_entry(&p->ul, p->change.seen);
        if (e != NULL) {
            take(p, t, e);
        }
    }
    QN_ASSERT(p->cfg.index >= before); /* an epoch never ends in an older one */
    if (qn_utility_len(&p->ul) != 0) {
        qn_flow_voters(&p->leader.flow, qn_utility_voters(&p->ul));
    }
    if (p->cfg.index == before) {
        return;
    }
    p->change.lead_at = QN_TIME_NEVER;
    p->change.certain = p->change.refused = false;
    if (!QN_MUTANT(NO_RESEND)) {
        p->origin.sent = p->origin.head;
    }
    p->origin.blocked = false;
    if (qn_epoch_leads(p)) {
        (p->memory != NULL ? qn_memory_leader_begin
                           : qn_leader_change_begin)(p, t);
    } else if (p->leader.role != QN_FOLLOWER && !QN_MUTANT(NO_STEP_DOWN)) {
        qn_propose_step_down(p);
    }
}

/** Entries that came along with another message. */
void qn_reconfigure_suffix(struct qn_onepaxos *p, struct qn_step *t,
                           struct qn_slice entries)
{
    qn_utility_learn(&p->ul, entries);
    qn_reconfigure_learn(p, t);
}

/** `peer` knows a later epoch than this node: ask it, at the end of the turn
 *  and again if nothing comes. */
void qn_reconfigure_behind(struct qn_onepaxos *p, struct qn_step *t,
                           qn_node_t peer, qn_epoch_t epoch)
{
    struct qn_reconfiguration *c = &p->change;
    if (epoch > p->cfg.index && epoch > c->later) {
        c->later = epoch;
        c->knower = peer;
        c->ask_at = t->now;
    }
}

/** Node `n` votes on the next entry. */
bool qn_reconfigure_votes(const struct qn_onepaxos *p, qn_node_t n)
{
    return (qn_utility_voters(&p->ul) & QN_BIT(n)) != 0;
}

/* A newcomer by what it knows. The entry that makes it a voter begins no epoch,
 * so that nothing else tells it that it has missed it; and the others count
 * it by then. */
static bool awaits_its_vote(const struct qn_onepaxos *p)
{
    return qn_utility_len(&p->ul) > 0 && !qn_reconfigure_votes(p, p->self) &&
           !qn_utility_removed(&p->ul);
}

static bool behind(const struct qn_onepaxos *p)
{
    return p->change.later > p->cfg.index || awaits_its_vote(p);
}

static void check_behind(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_reconfiguration *c = &p->change;
    if (behind(p) && t->now >= c->ask_at) {
        c->ask_at = t->now + p->params.t_acc;
        if (c->knower != p->self && (p->alive & QN_BIT(c->knower)) != 0) {
            qn_utility_ask(&p->ul, t, c->knower);
        }
        QN_ASSERT(c->knower < p->nodes);
        c->knower = (c->knower + 1) % p->nodes; /* or the next one knows */
    }
}

/* ------------------------------------------------------------ suspicion -- */

static bool suspected(const struct qn_onepaxos *p, qn_node_t n)
{
    return n != p->self && ((p->change.suspected | ~p->alive) & QN_BIT(n)) != 0;
}

/** Rank of this node among the nodes that may lead next. The leader's own id,
 *  in a new incarnation, is last. */
static uint32_t rank(const struct qn_onepaxos *p)
{
    uint32_t r = 0;
    for (uint32_t k = 1; k < p->nodes; k++) {
        qn_node_t n = (p->cfg.leader + k) % p->nodes;
        if (n == p->self) {
            QN_ASSERT(r < p->nodes);
            return r;
        }
        r += n != p->cfg.acceptor && !suspected(p, n) &&
             qn_reconfigure_votes(p, n);
    }
    return r;
}

/** The leader is gone: suspected, ended, or this node is told to replace it. */
static bool leader_gone(const struct qn_onepaxos *p)
{
    return suspected(p, p->cfg.leader) || p->change.forced ||
           p->incarnation[p->cfg.leader] != p->cfg.leader_inc ||
           p->change.relieve == p->cfg.index ||
           p->change.later > p->cfg.index; /* another one, unknown here */
}

/** Told to lead: as if the leader had ended, but no other node assumes so.
 *  Valid until there is another epoch. An order is no reason to be quicker
 *  than M11 allows: the leader lives and goes on meanwhile. */
void qn_reconfigure_relieve(struct qn_onepaxos *p, const struct qn_step *t)
{
    if (p->cfg.leader != p->self) {
        p->change.relieve = p->cfg.index;
        p->change.certain = true;
        p->change.lead_at = t->now;
        p->change.map_by = t->now + p->params.t_lead;
    }
}

/** The incarnation that leads has ended for certain. */
static bool leader_dead(const struct qn_onepaxos *p)
{
    return p->incarnation[p->cfg.leader] != p->cfg.leader_inc ||
           (p->cfg.leader != p->self &&
            (p->alive & QN_BIT(p->cfg.leader)) == 0);
}

bool qn_epoch_acceptor_gone(const struct qn_onepaxos *p)
{
    return suspected(p, p->cfg.acceptor) || p->change.refused ||
           p->incarnation[p->cfg.acceptor] != p->cfg.acceptor_inc;
}

/* -------------------------------------------------------- mapped peers -- */

/** `from` has mapped this incarnation: what it sends shows that. */
void qn_reconfigure_heard(struct qn_onepaxos *p, struct qn_step *t,
                          qn_node_t from)
{
    struct qn_reconfiguration *c = &p->change;
    if ((c->heard & QN_BIT(from)) == 0) {
        c->heard |= QN_BIT(from);
        c->prepare_at = QN_MIN(c->prepare_at, t->now);
    }
}

/** Tell a peer, or all (QN_NODES_MAX), that this incarnation has mapped them.
 */
void qn_reconfigure_greet(struct qn_onepaxos *p, struct qn_step *t,
                          qn_node_t peer)
{
    if (p->memory == NULL) {
        return;
    }
    struct qn_out *o =
        qn_step_emit(t, peer == QN_NODES_MAX ? QN_OUT_SEND_ALL : QN_OUT_SEND);
    o->to = peer;
    o->msg = (struct qn_msg){.kind = QN_MSG_BEAT,
                             .epoch = p->cfg.index,
                             .beat = {.applied = p->applied,
                                      .learned = p->learned_hi,
                                      .decided = p->learned_hi,
                                      .ul_len = qn_utility_len(&p->ul)}};
}

/** M11: a living peer has not mapped this incarnation's ring yet. If this
 *  node took over now and ended, the slots that the peer lacks would be gone.
 */
bool qn_reconfigure_unmapped(const struct qn_onepaxos *p, qn_time_t now)
{
    const struct qn_reconfiguration *c = &p->change;
    uint64_t others = p->alive & ~c->suspected & ~QN_BIT(p->self);
    return p->memory != NULL && (others & ~c->heard) != 0 && now < c->map_by;
}

/* ------------------------------------------------------------- proposing -- */

static qn_time_t random_below(struct qn_onepaxos *p, qn_time_t n)
{
    uint64_t *x = &p->change.random; /* xorshift64 */
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return n == 0 ? 0 : *x % n;
}

static bool may_lead(const struct qn_onepaxos *p)
{
    if (p->apply_suspended) {
        return false; /* it could answer no command of its own */
    }
    if (p->memory != NULL) {
        return qn_utility_may_propose(&p->ul) &&
               p->leader.role == QN_FOLLOWER && qn_memory_leader_may(p);
    }
    return !qn_epoch_accepts(p) && !qn_epoch_leads(p);
}

static void propose_self(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_ul_entry e = p->cfg;
    e.kind = QN_UL_LEADER;
    e.leader = (uint8_t)p->self;
    e.leader_inc = p->incarnation[p->self];
    if (p->memory != NULL) {
        e.acceptor = e.leader;
        e.acceptor_inc = e.leader_inc;
        e.tenure = qn_utility_len(&p->ul);
    }
    QN_ASSERT(same_life(&e) == (p->memory != NULL));
    if (qn_utility_propose(&p->ul, t, &e)) {
        qn_reconfigure_learn(p, t);
    }
}

/** The leader is gone: the node whose rank comes first proposes itself. */
static void check_leader(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_reconfiguration *c = &p->change;
    /* In this order: may_lead looks at lines that a leader writes per slot. */
    if (!leader_gone(p) || !may_lead(p)) {
        c->lead_at = QN_TIME_NEVER;
        c->certain = false;
        return;
    }
    if (c->lead_at == QN_TIME_NEVER) {
        c->map_by = t->now + p->params.t_lead;
    }
    if (leader_dead(p) && !c->certain) {
        c->certain = true;
        c->lead_at = t->now + rank(p) * p->params.t_rank;
    } else if (c->lead_at == QN_TIME_NEVER) {
        const struct qn_params *v = &p->params;
        c->lead_at =
            t->now + rank(p) * v->t_lead / 2 + random_below(p, v->jitter);
    }
    bool busy =
        qn_utility_proposing(&p->ul) && !qn_utility_proposing_voter(&p->ul);
    if (t->now < c->lead_at || busy || qn_reconfigure_unmapped(p, t->now)) {
        return;
    }
    QN_ASSERT(p->leader.role == QN_FOLLOWER || QN_MUTANT(NO_STEP_DOWN));
    propose_self(p, t);
}

/** This node has voted for an entry, and its proposer ended before it was
 *  chosen. The entry may name a leader that has ended. If it stayed open, it
 *  would be chosen by the next node that needs an entry; that may be the leader
 *  whose acceptor has ended, and then both would be lost (6.4). If the entry's
 *  acceptor has ended already, it stays open: the leader is about to replace
 *  the acceptor, and may find a majority without a vote for the entry. With the
 *  memory acceptor no such entry does harm. */
static bool left_open(const struct qn_onepaxos *p)
{
    const struct qn_vote *v = &p->ul.vote;
    return p->memory == NULL && !p->ul.non_voting &&
           v->index == qn_utility_len(&p->ul) && v->vbal.round != 0 &&
           qn_ul_begins_epoch(&v->value) && !QN_MUTANT(LEFT_OPEN) &&
           qn_epoch_life_over(p, v->vbal.node, v->vbal.inc) &&
           (!qn_epoch_life_over(p, v->value.acceptor, v->value.acceptor_inc) ||
            QN_MUTANT(LEFT_OPEN_LATE));
}

/** It is finished soon after its proposer ended, by one node after the other,
 * so that ballots seldom meet. A proposer takes its own vote over. */
static void check_open(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_reconfiguration *c = &p->change;
    const struct qn_vote *v = &p->ul.vote;
    if (!left_open(p)) {
        c->finish_at = QN_TIME_NEVER;
        return;
    }
    if (c->finish_at == QN_TIME_NEVER) {
        uint32_t behind = (p->self + p->nodes - v->vbal.node) % p->nodes;
        c->finish_at = t->now + behind * p->params.t_rank;
    }
    if (t->now >= c->finish_at && !qn_utility_proposing(&p->ul)) {
        const struct qn_ul_entry value = v->value;
        if (qn_utility_propose(&p->ul, t, &value)) {
            qn_reconfigure_learn(p, t);
        }
    }
}

/** Entries are kept for a bounded time, and one that names roles must be among
 *  them, because a later incarnation needs it: at most half of them name none
 *  (4.3). */
static bool entries_left(const struct qn_onepaxos *p)
{
    return qn_utility_len(&p->ul) - p->cfg.index <= QN_UL_KEPT / 2;
}

/** This node's record was lost: it asks for a vote, while no other entry is
 *  to be decided and a majority that may agree lives. */
static void check_voter(struct qn_onepaxos *p, struct qn_step *t)
{
    if (!p->ul.non_voting || !qn_reconfigure_votes(p, p->self)) {
        return; /* as a rule; the majority would be counted in each step */
    }
    uint64_t others = p->alive & ~p->change.suspected & ~QN_BIT(p->self);
    if (qn_utility_len(&p->ul) == 0 || !qn_utility_majority(&p->ul, others) ||
        leader_gone(p) || !entries_left(p) || qn_utility_proposing(&p->ul)) {
        return;
    }
    if (qn_utility_propose_voter(&p->ul, t, &p->cfg)) {
        qn_reconfigure_learn(p, t);
    }
}

/* --------------------------------------------------------------- members -- */

/** It has all that was decided, or can have it from this node's ring, which it
 *  has mapped. */
static bool in_sync(const struct qn_onepaxos *p, qn_node_t n)
{
    struct qn_position now = {p->peer[n].applied, p->peer[n].learned};
    bool lives = (p->alive & ~p->change.suspected & QN_BIT(n)) != 0;
    bool mapped =
        (p->change.heard & QN_BIT(n)) != 0 || QN_MUTANT(SEAT_UNMAPPED);
    if (p->memory->position != NULL) {
        (void)p->memory->position(p->memory->ctx, n, &now);
    }
    return n == p->self || (lives && mapped &&
                            (now.applied + 1 >= qn_ring_lo(&p->memory->own) ||
                             QN_MUTANT(SEAT_EARLY)));
}

bool qn_onepaxos_decides(const struct qn_onepaxos *p, uint64_t voters,
                         bool suspected_too)
{
    uint64_t stalled = suspected_too ? 0 : p->change.suspected;
    uint64_t living = (p->alive & ~stalled) | QN_BIT(p->self);
    return 2 * __builtin_popcountll(voters & living) >
               __builtin_popcountll(voters) ||
           QN_MUTANT(SEAT_MINORITY);
}

/** The accept register is this node's. */
static bool owns_register(const struct qn_onepaxos *p)
{
    return p->leader.role == QN_ACTIVE &&
           qn_memory_acceptor_load(p->memory).epoch == p->leader.ep;
}

/** The present incarnation of `n` was removed, and has not ended: it may not
 *  know that yet. Its seat is taken again by a later one. */
static bool was_removed(const struct qn_onepaxos *p, qn_node_t n)
{
    return p->incarnation[n] != 0 && p->incarnation[n] <= p->change.ended[n] &&
           !QN_MUTANT(SEAT_LIVES);
}

/** May the change begin now? What the seat is to be is in `s`. */
static int may_change(const struct qn_onepaxos *p,
                      const struct qn_voter_change *s)
{
    if (p->incarnation[s->node] != s->inc) {
        return p->incarnation[s->node] > s->inc ? QN_ESTALE : QN_EAGAIN;
    }
    if (s->votes && was_removed(p, s->node)) {
        return QN_EBUSY;
    }
    if (s->votes && !in_sync(p, s->node)) {
        return QN_EAGAIN;
    }
    const uint64_t now = qn_utility_voters(&p->ul);
    const uint64_t then = now ^ QN_BIT(s->node);
    return qn_onepaxos_decides(p, now, s->forced) &&
                   (s->forced || qn_onepaxos_decides(p, then, false))
               ? QN_OK
               : QN_ENOQUORUM;
}

static bool same_seat(const struct qn_voter_change *a,
                      const struct qn_voter_change *b)
{
    return a->node == b->node && a->votes == b->votes && a->inc == b->inc;
}

bool qn_onepaxos_changes(const struct qn_onepaxos *p,
                         const struct qn_voter_change *c)
{
    return p->change.wanted && same_seat(&p->change.seat, c);
}

int qn_reconfigure_member(struct qn_onepaxos *p, struct qn_voter_change s)
{
    struct qn_reconfiguration *c = &p->change;
    if (p->memory == NULL) {
        return QN_ENOSYS;
    }
    if (qn_utility_removed(&p->ul)) {
        return QN_EREMOVED;
    }
    bool prepares = p->leader.role == QN_PREPARING;
    if (!prepares && !owns_register(p)) {
        return QN_ENOTLEADER;
    }
    if (s.node >= p->nodes ||
        (!s.votes && s.node == p->self && !QN_MUTANT(SEAT_ROLE))) {
        return QN_EINVAL;
    }
    s.inc = s.inc != 0 ? s.inc : p->incarnation[s.node];
    if (c->wanted) {
        bool same = same_seat(&c->seat, &s);
        c->seat.forced |= same && s.forced;
        return same ? QN_OK : QN_EBUSY;
    }
    bool done = qn_reconfigure_votes(p, s.node) == s.votes;
    int err = done ? QN_OK : prepares ? QN_EAGAIN : may_change(p, &s);
    if (err == QN_OK) {
        c->seat = s;
        c->wanted = !done;
        c->ended_as = done ? QN_OK : QN_EBUSY;
    }
    return err;
}

/** The change is over; this is how. */
static void change_ends(struct qn_onepaxos *p, int how)
{
    p->change.wanted = false;
    p->change.ended_as = how;
}

/** The entry is about an incarnation that has ended, and no voter knows of it
 *  yet: it is not proposed any more. */
static void check_proposed(struct qn_onepaxos *p)
{
    const struct qn_ul_entry *e = &p->ul.want;
    const struct qn_voter_change *s = &p->change.seat;
    bool over = p->incarnation[s->node] != s->inc ||
                (s->votes && (p->alive & QN_BIT(s->node)) == 0);
    if (over && e->kind == QN_UL_SEAT && e->voter == s->node &&
        !QN_MUTANT(SEAT_STALE) && qn_utility_withdraw(&p->ul)) {
        change_ends(p, may_change(p, s));
    }
}

/** The order is looked at again in each TICK, until its entry is chosen. Once
 *  voters may have voted for the entry it can only be waited for. */
static void check_member(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_reconfiguration *c = &p->change;
    if (!c->wanted || p->leader.role == QN_PREPARING) {
        return;
    }
    if (qn_reconfigure_votes(p, c->seat.node) == c->seat.votes) {
        change_ends(p, QN_OK);
    } else if (!owns_register(p)) {
        change_ends(p, QN_ENOTLEADER);
    } else if (!qn_utility_proposing(&p->ul)) {
        int err = QN_MUTANT(SEAT_ONCE) ? QN_OK : may_change(p, &c->seat);
        if (err != QN_OK) {
            change_ends(p, err);
        } else if (qn_utility_propose_seat(&p->ul, t, &p->cfg, c->seat.node,
                                           c->seat.inc)) {
            qn_reconfigure_learn(p, t);
        } else {
            change_ends(p, QN_EREMOVED); /* this node has no vote */
        }
    } else {
        check_proposed(p);
    }
}

/** Many entries in a row name no roles: the leader names its own again. With
 * the process acceptor they are votes that were lost, and wait. */
static bool renews(const struct qn_onepaxos *p)
{
    return p->memory != NULL && !entries_left(p) && owns_register(p);
}

/** It begins an epoch of its own. */
static void check_epoch(struct qn_onepaxos *p, struct qn_step *t)
{
    if (renews(p) && !qn_utility_proposing(&p->ul)) {
        propose_self(p, t);
    }
}

/** The next TICK proposes something, or ends a change. */
static bool is_due(const struct qn_onepaxos *p)
{
    return (renews(p) ||
            (p->change.wanted && p->leader.role != QN_PREPARING)) &&
           !qn_utility_proposing(&p->ul);
}

/** Once per TICK. */
void qn_reconfigure_check(struct qn_onepaxos *p, struct qn_step *t)
{
    if (p->nodes == 1) {
        return;
    }
    if (!p->change.said) {
        p->change.said = true;
        qn_reconfigure_greet(p, t, QN_NODES_MAX);
    }
    qn_utility_tick(&p->ul, t);
    qn_reconfigure_learn(p, t);
    check_behind(p, t);
    check_open(p, t);
    check_leader(p, t);
    check_epoch(p, t);
    check_voter(p, t);
    check_member(p, t);
    if (p->memory != NULL) {
        qn_memory_leader_check(p, t);
        qn_leader_change_serve(p, t);
    } else {
        qn_leader_change_check(p, t);
        qn_acceptor_change_check(p, t);
    }
}

qn_time_t qn_reconfigure_deadline(const struct qn_onepaxos *p, qn_time_t now)
{
    const struct qn_reconfiguration *c = &p->change;
    if (is_due(p)) {
        return now;
    }
    qn_time_t at = qn_utility_deadline(&p->ul);
    bool busy =
        qn_utility_proposing(&p->ul) && !qn_utility_proposing_voter(&p->ul);
    qn_time_t lead_at =
        qn_reconfigure_unmapped(p, c->lead_at) ? c->map_by : c->lead_at;
    at = QN_MIN(at, busy ? QN_TIME_NEVER : lead_at);
    at = QN_MIN(at, busy ? QN_TIME_NEVER : c->finish_at);
    at = QN_MIN(at, behind(p) ? c->ask_at : QN_TIME_NEVER);
    return p->leader.role == QN_PREPARING ? QN_MIN(at, c->prepare_at) : at;
}
