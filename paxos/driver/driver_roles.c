/*
 * What follows from the newest entry of the utility log (PROTOCOL.md 3.4, 5):
 * roles, the tree, which peers this node needs, and the status.
 *
 * The entry is acted upon before anything that rests on it is sent. The tree
 * itself is dissemination.h's.
 */
#include "core/base/assert.h"
#include "paxos/driver/driver_internal.h"
#include "paxos/mutant.h"

/* ---- which nodes live ---------------------------------------------------- */

uint64_t qn_driver_living(const struct qn_driver *d)
{
    QN_DASSERT((d->living & qn_driver_bit(d->o.self)) != 0);
    return d->living;
}

/** This incarnation is the newest known of its node, and has not ended. */
static bool life_lives(const struct qn_driver *d, qn_node_t node, uint64_t inc)
{
    return qn_driver_lives(d, node) && d->peer[node].incarnation.inc == inc;
}

bool qn_driver_acceptor_lives(const struct qn_driver *d)
{
    return life_lives(d, d->roles.cfg.acceptor, d->roles.cfg.acceptor_inc);
}

/* ---- the tree ------------------------------------------------------------ */

static bool is_root(const struct qn_driver *d)
{
    return d->roles.cfg.acceptor == d->o.self;
}

static int tree_build(struct qn_driver *d, struct qn_tree *t)
{
    const struct qn_dissemination_source source = {
        .plan = d->o.plan, .costs = d->o.costs, .topology = d->o.topology};
    qn_node_t order[QN_NODES_MAX];
    const struct qn_dissemination_shape *shape = &d->dissemination.shape;
    uint32_t n = qn_dissemination_order(&d->dissemination, shape->members,
                                        d->roles.cfg.leader,
                                        d->roles.cfg.acceptor, order);
    int err = qn_dissemination_plan(t, &source, shape->ring, order, n);
    if (err == QN_OK) {
        QN_ASSERT(t->root == d->roles.cfg.acceptor);
        QN_ASSERT(t->n == n);
        qn_dissemination_adopt(&d->dissemination, t, qn_driver_living(d));
    }
    return err;
}

int qn_driver_tree_make(struct qn_driver *d)
{
    struct qn_tree t;
    if (d->o.nodes == 1) {
        return QN_OK;
    }
    const struct qn_dissemination_shape shape = {.members =
                                                     qn_driver_living(d)};
    bool now = qn_dissemination_change(&d->dissemination, shape);
    QN_ASSERT(now);
    int err = tree_build(d, &t);
    if (err != QN_OK) {
        return QN_EINVAL; /* no such topology */
    }
    const struct qn_context_opts o = {.self = d->o.self,
                                      .members = QN_NODES_MAX,
                                      .tree = &t,
                                      .qp = d->tree,
                                      .deliver = qn_driver_deliver,
                                      .ctx = d,
                                      .alloc = d->o.alloc};
    return qn_context_create(&d->context, &o);
}

/* What was queued for the children of another tree is forgotten: they fetch it.
 * A child that has got a part of it drops that. */
static void tree_change(struct qn_driver *d,
                        struct qn_dissemination_shape shape)
{
    struct qn_tree t;
    if (d->context == NULL ||
        !qn_dissemination_change(&d->dissemination, shape)) {
        return;
    }
    int err = tree_build(d, &t);
    if (err == QN_OK) {
        err = qn_context_reroot(d->context, &t);
    }
    QN_ASSERT(err == QN_OK);
    if (t.root != d->o.self) {
        qn_sendq_free(&d->bcast);
    }
}

void qn_driver_tree(struct qn_driver *d, uint64_t members)
{
    tree_change(d, (struct qn_dissemination_shape){
                       members, d->dissemination.shape.ring});
}

void qn_driver_tree_announced(struct qn_driver *d)
{
    tree_change(d, d->dissemination.announced);
}

/* ---- ring or tree -------------------------------------------------------- */

/* What all living peers that learn by LEARN have learned; and those that have
 * learned least. */
static void least_find(const struct qn_driver *d, struct qn_ring_facts *f)
{
    f->learned = UINT64_MAX;
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        const struct qn_driver_peer *p = &d->peer[i];
        if (p->qp == NULL || i == d->roles.cfg.leader) {
            continue;
        }
        /* relaxed: nothing else is read by it. */
        qn_slot_t learned =
            p->state == NULL ? 0 : qn_load(&p->state->learned, QN_RELAXED);
        f->behind = learned < f->learned ? 0 : f->behind;
        f->behind |= learned <= f->learned ? qn_driver_bit(i) : 0;
        f->learned = QN_MIN(f->learned, learned);
    }
}

static void shape_take(struct qn_driver *d)
{
    tree_change(d,
                (struct qn_dissemination_shape){
                    qn_driver_living(d) & ~d->positions.lagging, d->ring_said});
}

/* Those for which the ring was left and which have nodes below them in the
 * tree, too: they would hold them up there. */
static uint64_t hold_up(const struct qn_driver *d)
{
    const struct qn_ring_choice *c = &d->ring_choice;
    uint64_t mask = 0;
    for (uint64_t m = c->members & ~qn_driver_bit(d->o.self); m != 0;
         m &= m - 1) {
        qn_node_t i = (qn_node_t)__builtin_ctzll(m);
        mask |=
            d->dissemination.tree.child_count[i] != 0 ? qn_driver_bit(i) : 0;
    }
    return mask;
}

static void ring_take(struct qn_driver *d)
{
    bool other = (d->ring_said != 0) != (d->dissemination.shape.ring != 0);
    shape_take(d);
    uint64_t still = d->ring_said == 0 ? hold_up(d) : 0;
    if (still != 0 && !QN_MUTANT(RING_INNER)) {
        qn_positions_lag(&d->positions, still);
        shape_take(d);
    }
    if (other) {
        qn_driver_note_ring(d, d->ring_said);
    }
}

void qn_driver_ring_say(struct qn_driver *d)
{
    d->ring_said = d->ring_choice.ring ? d->o.ring : 0;
}

void qn_driver_ring_was_said(struct qn_driver *d)
{
    if (d->ring_said != d->dissemination.shape.ring && is_root(d)) {
        ring_take(d);
    }
}

void qn_driver_ring_look(struct qn_driver *d)
{
    struct qn_ring_choice *c = &d->ring_choice;
    if (c->from == 0 || !is_root(d) || d->context == NULL) {
        return;
    }
    struct qn_ring_facts f = {
        .suspected = d->suspected & qn_driver_living(d),
        .left_out = d->positions.lagging & qn_driver_living(d),
        .learned = UINT64_MAX,
    };
    if (qn_ring_choice_watches(c)) { /* else the peers' lines are not read */
        least_find(d, &f);
    }
    bool other = qn_ring_choice_look(c, &f, d->now);
    if (other && c->members != 0) { /* of which one holds up others */
        d->ring_said = 0;
        if (f.suspected != 0 || !qn_sendq_begun(&d->bcast)) {
            ring_take(d);
        }
    }
    qn_driver_ring_tell(d, d->dissemination.shape.ring != 0);
}

void qn_driver_ring_expect(struct qn_driver *d)
{
    qn_ring_choice_sent(&d->ring_choice, qn_onepaxos_learned(d->machine),
                        d->now);
}

/* ---- a new epoch --------------------------------------------------------- */

/* Which node has lost its role, and why, as far as it is known here. */
static void reason_find(struct qn_driver *d, const struct qn_ul_entry *old,
                        const struct qn_ul_entry *e)
{
    bool accepts = e->kind == QN_UL_ACCEPTOR;
    d->roles.lost = accepts ? old->acceptor : old->leader;
    d->roles.lost_inc = accepts ? old->acceptor_inc : old->leader_inc;
    bool ordered = !accepts && d->roles.relieved == (uint64_t)old->index + 1;
    d->roles.reason = !life_lives(d, d->roles.lost, d->roles.lost_inc)
                          ? QN_REASON_DEATH
                      : ordered ? QN_REASON_ORDER
                                : QN_REASON_SUSPECTED;
    QN_ASSERT(d->now >= d->roles.changed_at);
    d->roles.changed_at = d->now;
    d->roles.failovers++;
}

/* The newest entry that names roles; NULL: it is not kept any more. */
static const struct qn_ul_entry *newest(const struct qn_utility *u)
{
    for (uint32_t i = qn_utility_len(u); i-- > 0;) {
        const struct qn_ul_entry *e = qn_utility_entry(u, i);
        if (e == NULL || qn_ul_begins_epoch(e)) {
            return e;
        }
    }
    return NULL;
}

void qn_driver_roles(struct qn_driver *d)
{
    const struct qn_utility *u = qn_onepaxos_utility(d->machine);
    const struct qn_ul_entry *e = newest(u);
    struct qn_ul_entry old = d->roles.cfg;
    bool begin = d->roles.ul_len == 0;
    QN_ASSERT(qn_utility_len(u) >= d->roles.ul_len);
    if (d->order.state == QN_CHANGE_PENDING) {
        qn_driver_order_learn(d, d->roles.ul_len);
    }
    d->roles.ul_len = qn_utility_len(u);
    if (e == NULL || (!begin && e->index == old.index)) {
        return;
    }
    QN_ASSERT(begin || e->index > old.index);
    QN_ASSERT(e->index < d->roles.ul_len);
    QN_ASSERT(e->tenure <= e->index);
    QN_ASSERT(qn_ul_within(e, d->o.nodes));
    d->roles.cfg = *e;
    qn_driver_note_epoch(d);
    if (!begin) {
        reason_find(d, &old, e);
        qn_positions_look_by(&d->positions, d->now);
    }
    qn_driver_learned(d, qn_onepaxos_learned(d->machine));
    QN_ASSERT(qn_load(&d->o.state->epoch, QN_RELAXED) <= e->index);
    /* release -> acquire in facts (driver_positions.c): an acceptor that is
     * appointed has learned all that its predecessors have accepted. */
    qn_store(&d->o.state->epoch, e->index, QN_RELEASE);
    qn_dissemination_forgive(&d->dissemination);
    qn_positions_forgive(&d->positions);
    bool ring = d->dissemination.shape.ring != 0 && old.acceptor == d->o.self;
    qn_ring_choice_begin(&d->ring_choice, qn_onepaxos_learned(d->machine),
                         d->now);
    d->ring_said = 0;
    d->shape_slot = 0;
    tree_change(d, (struct qn_dissemination_shape){qn_driver_living(d), 0});
    if (ring) { /* that of this root: it may not be the next one */
        d->noted.ring_told = 0;
        qn_driver_note_ring(d, 0);
    }
}

/* ---- which nodes are waited for ------------------------------------------ */

/* Process acceptor: a leader needs its acceptor to begin its epoch, and while
 * slots are proposed that are not decided. */
static bool acceptor_needed(const struct qn_driver *d,
                            const struct qn_onepaxos_status *st)
{
    return !d->memory && st->role != QN_FOLLOWER &&
           (st->role != QN_ACTIVE || st->next - 1 > st->learned_hi);
}

uint64_t qn_driver_waits_for(const struct qn_driver *d)
{
    struct qn_onepaxos_status st;
    uint64_t mask = 0;
    if (d->o.nodes == 1 || qn_driver_removed(d)) {
        return 0;
    }
    qn_onepaxos_status(d->machine, &st);
    if (st.unapplied != 0 || d->order.state == QN_CHANGE_PENDING) {
        mask |= qn_driver_bit(d->roles.cfg.leader);
    }
    if (acceptor_needed(d, &st)) {
        mask |= qn_driver_bit(d->roles.cfg.acceptor);
    }
    if (qn_onepaxos_read_waits(d->machine)) { /* by message */
        mask |= qn_driver_bit(st.role == QN_FOLLOWER ? d->roles.cfg.leader
                                                     : d->roles.cfg.acceptor);
    }
    return mask & qn_driver_living(d) & ~qn_driver_bit(d->o.self);
}

void qn_driver_suspect(struct qn_driver *d, uint64_t peers, qn_time_t now)
{
    if (peers == d->suspected) {
        return;
    }
    uint64_t before = d->suspected;
    QN_ASSERT((peers & ~qn_driver_group(d)) == 0);
    qn_driver_time(d, now);
    d->suspected = peers;
    qn_driver_note_suspects(d, before);
    const struct qn_input in = {.kind = QN_IN_SUSPECT, .suspect = {peers}};
    qn_driver_step(d, &in);
    qn_driver_ring_look(d);
    qn_driver_laggards_find(d);
    qn_driver_publish(d);
}

void qn_driver_lead(struct qn_driver *d, qn_node_t heir, qn_time_t now)
{
    const struct qn_input in = {.kind = QN_IN_LEAD};
    qn_driver_time(d, now);
    d->roles.relieved = (uint64_t)d->roles.cfg.index + 1;
    if (heir == d->o.self && d->o.nodes > 1) {
        qn_driver_step(d, &in);
        qn_driver_publish(d);
    }
}

/* ---- status -------------------------------------------------------------- */

/* Voters that could each go on alone from the ring of the word's owner. */
static uint64_t in_sync_memory(const struct qn_driver *d, uint64_t voters)
{
    struct qn_accept_register w = qn_memory_acceptor_load(&d->shared);
    qn_node_t owner;
    uint64_t inc;
    const struct qn_ring *r =
        qn_driver_owner(d, w, &owner, &inc)
            ? qn_driver_ring((void *)(uintptr_t)d, owner, inc)
            : NULL;
    uint64_t mask = 0;
    for (; voters != 0 && r != NULL; voters &= voters - 1) {
        qn_node_t i = (qn_node_t)__builtin_ctzll(voters);
        const struct qn_outbox_state *s =
            i == d->o.self ? d->o.state : d->peer[i].state;
        /* acquire <- release in the peer's driver. */
        if (qn_driver_lives(d, i) && s != NULL &&
            qn_load(&s->mapped, QN_ACQUIRE) >= w.epoch &&
            (qn_load(&s->applied, QN_ACQUIRE) + 1 >= qn_ring_lo(r) ||
             QN_MUTANT(FALSE_SYNC))) {
            mask |= qn_driver_bit(i);
        }
    }
    return mask;
}

/* One whose state is lost has the log, but not what was cut of it. */
uint64_t qn_driver_in_sync(const struct qn_driver *d, uint64_t voters)
{
    const uint64_t lost = qn_driver_lost_states(d);
    if (d->memory) {
        return in_sync_memory(d, voters & ~lost);
    }
    const uint64_t roles =
        (life_lives(d, d->roles.cfg.leader, d->roles.cfg.leader_inc)
             ? qn_driver_bit(d->roles.cfg.leader)
             : 0) |
        (qn_driver_acceptor_lives(d) ? qn_driver_bit(d->roles.cfg.acceptor)
                                     : 0);
    return roles & ~lost;
}

/* Those whose votes count: what they may have voted for is known. */
static uint64_t voting(const struct qn_driver *d, uint64_t voters)
{
    uint64_t mask = 0;
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        const struct qn_outbox_state *s =
            i == d->o.self ? d->o.state : d->peer[i].state;
        /* acquire <- release in qn_driver_persist. */
        if ((voters & qn_driver_bit(i)) != 0 && qn_driver_lives(d, i) &&
            s != NULL && qn_load(&s->voted, QN_ACQUIRE) != UINT64_MAX) {
            mask |= qn_driver_bit(i);
        }
    }
    return mask;
}

void qn_driver_status(const struct qn_driver *d, struct qn_driver_status *out)
{
    struct qn_onepaxos_status st;
    qn_onepaxos_status(d->machine, &st);
    QN_ASSERT(d->positions.applied <= st.learned_hi);
    QN_ASSERT(st.learned_hi <= st.decided_hi);
    QN_ASSERT(st.ul_len >= d->roles.ul_len);
    *out = (struct qn_driver_status){
        .role = st.role,
        .epoch = st.epoch,
        .leader = st.leader,
        .acceptor = st.acceptor,
        .alive = qn_driver_living(d),
        .voters = st.voters,
        .entries = st.ul_len,
        .is_voter = (st.voters & qn_driver_bit(d->o.self)) != 0,
        .voting = voting(d, st.voters),
        .in_sync = qn_driver_in_sync(
            d, QN_MUTANT(SYNC_NON_VOTER) ? qn_driver_group(d) : st.voters),
        .lost_states = qn_driver_lost_states(d),
        .change = d->order.state,
        .change_error = d->order.error,
        .failovers = d->roles.failovers,
        .reason = d->roles.reason,
        .lost = d->roles.lost,
        .need_snapshot = st.need_snapshot,
        .served = qn_onepaxos_served(d->machine),
        .halted = qn_driver_halted(d),
        .log_incomplete = qn_driver_log_incomplete(d),
        .waiting = qn_driver_waiting(d),
        .verdict = d->halt.verdict,
        .highest_announced = qn_driver_highest_announced(d),
        .non_voting = d->non_voting,
        .applied = d->positions.applied,
        .learned = st.learned_hi,
        .decided_hi = st.decided_hi,
        .batches = d->batches,
        .commands = d->commands,
        .unapplied = st.unapplied,
        .fetches = st.fetches,
        .log_bytes = st.log_bytes,
        .broadcast_latency_ns = d->dissemination.broadcast_latency_ns,
        .ring = d->dissemination.shape.ring,
        .is_root = is_root(d),
        .ring_choice = d->ring_choice,
        .flow_control_delay_ns = d->flow_control.delay,
        .flow_control_for = qn_flow_control_for(&d->flow_control),
    };
}

bool qn_driver_peer_says(const struct qn_driver *d, qn_node_t peer,
                         struct qn_position *out)
{
    const struct qn_driver_peer *p = &d->peer[peer];
    QN_ASSERT(peer < d->o.nodes);
    if (p->qp == NULL || p->state == NULL) {
        return false;
    }
    /* acquire <- release in the peer's driver: it has applied them. */
    *out = (struct qn_position){qn_load(&p->state->applied, QN_ACQUIRE),
                                qn_load(&p->state->learned, QN_RELAXED)};
    return true;
}

const struct qn_tree *qn_driver_topology(const struct qn_driver *d)
{
    return d->context != NULL ? &d->dissemination.tree : NULL;
}

/* ---- flow control -------------------------------------------------------- */

void qn_driver_limits(struct qn_driver *d, qn_time_t timeout,
                      uint32_t min_awaited)
{
    qn_onepaxos_limits(d->machine, timeout, min_awaited);
}

bool qn_driver_flow(const struct qn_driver *d, struct qn_driver_flow *out)
{
    const struct qn_flow *f = qn_onepaxos_flow(d->machine);
    *out = (struct qn_driver_flow){
        .awaited = qn_flow_awaited(f),
        .held = f->held,
        .shut = qn_flow_shut(f, d->now),
        .given_up = f->given,
        .holds_given_up = f->holds,
    };
    for (qn_node_t n = 0; n < d->o.nodes; n++) {
        out->shut_by[n] = qn_flow_shut_by(f, n, d->now);
        out->lag_bytes[n] = f->member[n].at.bytes;
        out->lag_slots[n] = f->member[n].slots;
        out->pace[n] = f->member[n].shown;
    }
    return qn_onepaxos_role(d->machine) == QN_ACTIVE;
}

bool qn_driver_has_role(const struct qn_driver *d)
{
    return d->roles.cfg.leader == d->o.self ||
           d->roles.cfg.acceptor == d->o.self;
}

bool qn_driver_held(const struct qn_driver *d)
{
    const struct qn_outbox_state *s = d->roles.cfg.leader == d->o.self
                                          ? d->o.state
                                          : d->peer[d->roles.cfg.leader].state;
    /* relaxed: nothing else is read by it. */
    return qn_driver_lives(d, d->roles.cfg.leader) && s != NULL &&
           qn_load(&s->held, QN_RELAXED) == (uint64_t)d->roles.cfg.index + 1;
}

uint64_t qn_driver_bytes_above(const struct qn_driver *d, qn_slot_t slot)
{
    return qn_onepaxos_bytes_above(d->machine, slot);
}

/* ---- what is kept -------------------------------------------------------- */

static struct qn_bytes_kept lanes_kept(const struct qn_driver *d)
{
    struct qn_bytes_kept l = {0, 0, 0};
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        const struct qn_driver_peer *p = &d->peer[i];
        l.now += p->control.bytes + p->bulk.bytes;
        l.most = QN_MAX(l.most, p->control.most + p->bulk.most);
    }
    return l;
}

static struct qn_bytes_kept arena_kept(const struct qn_arena *a)
{
    return a == NULL ? (struct qn_bytes_kept){0, 0, 0}
                     : (struct qn_bytes_kept){a->used, a->most, a->o.capacity};
}

void qn_driver_kept(const struct qn_driver *d, struct qn_driver_kept *out)
{
    struct qn_onepaxos_kept m = qn_onepaxos_kept(d->machine);
    const struct qn_ring *ring = &d->shared.own;
    uint64_t ring_bytes = d->memory ? ring->memory : 0;
    *out = (struct qn_driver_kept){
        .log = m.log,
        .requests = m.requests,
        .arena = arena_kept(d->o.arena),
        .ring = {ring_bytes, ring_bytes, d->memory ? ring->o.keep : 0},
        .bcast = {d->bcast.bytes, d->bcast.most, qn_driver_bcast_max(d)},
        .bcast_dropped = d->bcast_dropped,
        .lanes = lanes_kept(d),
    };
    /* What a lane waits with is this node's requests, or answers of one slot.
     */
    out->lanes.max = m.requests.max;
}
