/*
 * Reads what the others publish in shared memory, in the order that makes it
 * mean something, and gives it to the positions (positions.h), to the machine
 * and to flow control.
 *
 * Why the bound never cuts a true read index p (PROTOCOL.md 8.2). A true index
 * was stored by a replica that had learned slot p, so p was decided before.
 *
 *     memory acceptor     the bound is hi of the accept register, which only a
 *                         leader can write; p was decided, so hi >= p
 *     process acceptor    the bound is what the acceptor says it has learned,
 *                         if there is no later acceptor
 *
 * The acceptor of that time had said in its outbox that it has accepted p,
 * before any replica could learn p (driver_send.c). If it was the acceptor of
 * the newest epoch known here, or an earlier one: each acceptor says what it
 * has learned before it says that it knows the epoch that appointed it, so its
 * successors have p in `learned` once their `epoch` is not older than their
 * tenure. If it was a later one: a majority had voted for the entry that
 * appointed it, and each voter had said so in its outbox (`voted`) before its
 * vote left. So if a majority of the voters says now that it never voted for an
 * entry that is not known here, there was none. (Entries above the epoch that
 * are known here name no roles.) Otherwise, or if the acceptor has ended,
 * nothing bounds the index: a true one is learned soon, and a wrong one holds
 * reads up until the change of roles has ended.
 *
 * This holds across incarnations: a later one begins with `voted` from its
 * vote record. But this node may have been stopped while incarnations ended and
 * the next ones voted, which it has not heard of. So a word counts only if the
 * incarnation that wrote it has not ended, by a look after the word was loaded.
 */
#include "core/base/assert.h"
#include "paxos/driver/driver_internal.h"

static const struct qn_outbox_state *state_of(const struct qn_driver *d,
                                              qn_node_t i)
{
    return i == d->o.self ? d->o.state : d->peer[i].state;
}

/* Living nodes whose newest incarnation is the one known here, by a look at
 * this moment. What they say is then all that a node of their id has said. By
 * message: those that have answered the last question. */
static uint64_t present(const struct qn_driver *d)
{
    uint64_t mask = 0;
    if (d->told != NULL) {
        return qn_driver_state_fresh(d);
    }
    if (d->o.ended == NULL) {
        return d->living;
    }
    for (uint64_t m = qn_driver_peers(d); m != 0; m &= m - 1) {
        const qn_node_t i = (qn_node_t)__builtin_ctzll(m);
        if (!d->o.ended(d->o.ended_ctx, i, d->peer[i].incarnation.inc)) {
            mask |= qn_driver_bit(i);
        }
    }
    return mask | qn_driver_bit(d->o.self);
}

bool qn_driver_newest_epoch(const struct qn_driver *d)
{
    uint64_t voted[QN_NODES_MAX];
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        /* acquire <- release in qn_driver_persist. */
        voted[i] = qn_driver_lives(d, i)
                       ? qn_load(&state_of(d, i)->voted, QN_ACQUIRE)
                       : UINT64_MAX;
    }
    /* After the words were loaded. */
    return qn_positions_no_later_vote(
        &d->positions, qn_utility_voters(qn_onepaxos_utility(d->machine)),
        voted, present(d), d->roles.ul_len);
}

bool qn_driver_all_at(const struct qn_driver *d, qn_slot_t position)
{
    qn_slot_t learned[QN_NODES_MAX];
    uint64_t living = qn_driver_living(d);
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        /* acquire <- release in qn_driver_learned. */
        learned[i] = (living & qn_driver_bit(i)) != 0
                         ? qn_load(&state_of(d, i)->learned, QN_ACQUIRE)
                         : 0;
    }
    return qn_positions_all_at(&d->positions, learned, living, present(d),
                               position);
}

static struct qn_bound_facts facts(const struct qn_driver *d)
{
    struct qn_bound_facts f = {.memory = d->memory};
    if (d->memory) {
        f.accepted = qn_memory_acceptor_load(&d->shared).hi;
        return f;
    }
    /* By message nothing bounds an index: no node but the acceptor says it. */
    f.lives = d->told == NULL && qn_driver_acceptor_lives(d);
    f.no_later_vote = f.lives && qn_driver_newest_epoch(d);
    if (f.no_later_vote) {
        const struct qn_outbox_state *s = state_of(d, d->roles.cfg.acceptor);
        /* acquire <- release in qn_driver_roles: `learned` was stored
         * before. */
        f.knows_tenure = qn_load(&s->epoch, QN_ACQUIRE) >= d->roles.cfg.tenure;
        /* acquire <- release in qn_driver_learned. */
        f.accepted = qn_load(&s->learned, QN_ACQUIRE);
    }
    return f;
}

qn_slot_t qn_driver_bound(const struct qn_driver *d)
{
    const struct qn_bound_facts f = facts(d);
    return qn_positions_bound(&d->positions, &f);
}

/* ---- the peers' positions ------------------------------------------------ */

static struct qn_flow_hold hold_of(const struct qn_outbox_state *s)
{
    /* acquire <- release in hold_say: `done` was stored before. */
    qn_slot_t slot = qn_load(&s->hold_slot, QN_ACQUIRE);
    uint64_t done = qn_load(&s->hold_done, QN_RELAXED);
    return (struct qn_flow_hold){slot, (uint32_t)QN_MIN(done, QN_HOLD_DONE)};
}

static struct qn_input position(const struct qn_driver *d, qn_node_t i)
{
    const struct qn_outbox_state *s = d->peer[i].state;
    struct qn_input in = {.kind = QN_IN_BEAT};
    in.beat.peer = i;
    /* acquire <- release in qn_driver_publish of the peer. */
    in.beat.applied = qn_load(&s->applied, QN_ACQUIRE);
    in.beat.learned = qn_load(&s->learned, QN_ACQUIRE);
    in.beat.read = qn_load(&s->read, QN_RELAXED); /* a sign of progress */
    in.beat.hold = hold_of(s);
    return in;
}

static struct qn_position claim_of(const struct qn_input *in)
{
    return (struct qn_position){in->beat.applied, in->beat.learned};
}

bool qn_driver_position(void *ctx, qn_node_t node, struct qn_position *out)
{
    const struct qn_driver *d = ctx;
    const struct qn_driver_peer *p = &d->peer[node];
    if (p->qp == NULL || p->state == NULL) {
        return false;
    }
    const struct qn_input in = position(d, node);
    *out = claim_of(&in);
    return qn_positions_credible(&d->positions, node, out,
                                 qn_driver_bound(d)); /* loaded after them */
}

/* What this node says to itself: a reader may wait for a slot whose LEARN was
 * lost with the leader, and which lies in the ring; and it may hold the log. */
static void self_read(struct qn_driver *d)
{
    struct qn_input in = {.kind = QN_IN_BEAT};
    in.beat.peer = d->o.self;
    in.beat.decided = d->memory ? qn_driver_bound(d) : 0;
    in.beat.hold = hold_of(d->o.state);
    qn_driver_step(d, &in);
}

/* The newest slot that members may be late with: its LEARN has left whole. */
static qn_slot_t told_up_to(const struct qn_driver *d)
{
    qn_slot_t learned = qn_onepaxos_learned(d->machine);
    qn_slot_t before = d->positions.learned_before;
    return qn_sendq_empty(&d->bcast)
               ? learned
               : QN_MAX(QN_MIN(qn_sendq_slot(&d->bcast) - 1, learned), before);
}

/* A member of a tree with inner nodes that is suspected, or stalled with
 * something to learn, holds up the nodes below it. The root leaves it out until
 * it has caught up with what the root had told at the look before. */
void qn_driver_laggards_find(struct qn_driver *d)
{
    /* One that was left out is judged though the tree of the others has no
     * inner nodes: else it would never come back. A ring is left sooner, or
     * by message when it is surer that a member is late (ring_choice.h). */
    bool inner = d->dissemination.inner && d->dissemination.shape.ring == 0;
    bool judge = (inner || d->positions.lagging != 0) &&
                 d->roles.cfg.acceptor == d->o.self;
    uint64_t living = qn_driver_living(d);
    uint64_t lagging = qn_positions_laggards(
        &d->positions, told_up_to(d), living, d->suspected, judge, d->now);
    uint64_t members = living & ~lagging;
    if (judge && members != d->dissemination.shape.members) {
        qn_driver_tree(d, members);
    }
}

/* The root sends LEARN, and it may be lost: a member that was left out of the
 * tree has caught up, and the root has not looked since; or a tree has just
 * changed. If that was the last slot, and the member sleeps, it would not learn
 * of it before the next one. Any message wakes it; it finds the read index
 * ahead then, and looks. (By message, each says by itself what it has learned.)
 */
static uint64_t rooted_peers(const struct qn_driver *d)
{
    bool root = d->roles.cfg.acceptor == d->o.self && d->told == NULL;
    return root ? qn_driver_living(d) : 0;
}

static void sleepers_remind(struct qn_driver *d)
{
    const struct qn_msg m = {.kind = QN_MSG_BEAT, .epoch = d->roles.cfg.index};
    uint64_t mask = qn_positions_remind(&d->positions, rooted_peers(d));
    for (; mask != 0; mask &= mask - 1) {
        qn_driver_send(d, (qn_node_t)__builtin_ctzll(mask), &m);
    }
}

bool qn_driver_may_remind(const struct qn_driver *d)
{
    return qn_positions_may_remind(&d->positions, rooted_peers(d),
                                   qn_onepaxos_learned(d->machine));
}

/* A leader goes no faster than a working replica can follow, if that one is
 * worth it. */
static void flow_control_look(struct qn_driver *d)
{
    if (qn_onepaxos_role(d->machine) != QN_ACTIVE) {
        d->flow_control = (struct qn_flow_control){0};
    } else if (qn_flow_control_due(&d->flow_control, d->now)) {
        qn_slot_t applied[QN_NODES_MAX] = {0};
        for (qn_node_t i = 0; i < d->o.nodes; i++) {
            applied[i] = d->positions.peer[i].applied;
        }
        uint64_t peers = qn_driver_living(d) &
                         qn_flow_followed(qn_onepaxos_flow(d->machine));
        qn_onepaxos_set_propose_interval(
            d->machine, qn_flow_control_look(&d->flow_control, d->now,
                                             qn_onepaxos_learned(d->machine),
                                             applied, peers));
    }
}

void qn_driver_positions_read(struct qn_driver *d)
{
    struct qn_input in[QN_NODES_MAX];
    uint32_t n = 0;
    for (uint64_t m = qn_driver_peers(d); m != 0; m &= m - 1) {
        const qn_node_t i = (qn_node_t)__builtin_ctzll(m);
        if (d->peer[i].state != NULL) {
            in[n++] = position(d, i);
        }
    }
    QN_ASSERT(n < d->o.nodes);
    qn_slot_t bound = qn_driver_bound(d); /* after them: it does not fall */
    for (uint32_t k = 0; k < n; k++) {
        const struct qn_position claim = claim_of(&in[k]);
        qn_node_t peer = in[k].beat.peer;
        if (qn_positions_credible(&d->positions, peer, &claim, bound)) {
            qn_positions_take(&d->positions, peer, &claim, d->now);
            qn_driver_step(d, &in[k]);
        }
    }
    qn_driver_hold_look(d);
    sleepers_remind(d);
    qn_driver_laggards_find(d);
    flow_control_look(d);
    self_read(d);
    if (d->memory) {
        qn_driver_mapped(d);
    }
}

/* ---- the hold ------------------------------------------------------------ */

static void hold_say(struct qn_driver *d, qn_slot_t slot, uint32_t done)
{
    /* relaxed: only this thread writes both. */
    qn_store(&d->o.state->hold_done, done, QN_RELAXED);
    /* release -> acquire in hold_of. */
    qn_store(&d->o.state->hold_slot, slot, QN_RELEASE);
}

void qn_driver_hold(struct qn_driver *d, qn_node_t joiner, qn_slot_t position,
                    uint32_t done)
{
    QN_ASSERT(joiner < d->o.nodes);
    QN_ASSERT(joiner != d->o.self);
    QN_ASSERT(done <= QN_HOLD_DONE);
    qn_positions_hold(&d->positions, joiner, d->peer[joiner].incarnation.inc,
                      position);
    hold_say(d, position + 1, done);
}

void qn_driver_release(struct qn_driver *d)
{
    if (d->positions.hold.slot != 0) {
        hold_say(d, 0, 0);
    }
    qn_positions_hold_end(&d->positions);
}

void qn_driver_hold_look(struct qn_driver *d)
{
    const struct qn_log_hold *h = &d->positions.hold;
    const struct qn_driver_peer *p = &d->peer[h->joiner];
    bool lives = p->qp != NULL && p->incarnation.inc == h->inc;
    if (qn_positions_hold_over(&d->positions, lives, d->now)) {
        qn_driver_release(d);
    }
}
