/*
 * What others say of how far the log is decided, and what of it is believed
 * (PROTOCOL.md 8.2). A peer's positions are what it wrote, perhaps in its last
 * agony, and everybody writes the commons. So there is a bound: nothing above
 * it is decided.
 *
 *     memory acceptor     hi of the word, which lies where only a leader
 *                         writes
 *     process acceptor    what the acceptor says that it has learned, if there
 *                         is no later acceptor
 *
 * The bound must never cut a true index p: one that was stored by who had
 * learned slot p. Such a slot was decided before, so word.hi is at or above it;
 * or the acceptor of that time had said in its outbox that it has accepted it
 * (driver_send.c). Was that the acceptor of my epoch, or of one before? Each
 * says what it has learned before it says that it knows the epoch that
 * appointed it, so its successors have p in `learned`, too, once their `epoch`
 * is not older than their tenure. Was it a later one? Then a majority had voted
 * for the entry that appointed it, and each of them had said so in its outbox
 * (`voted`) before its vote left; so if a majority of all nodes says now that
 * it never voted beyond what is known here, there was none (entries above my
 * epoch that are known here name no roles). Otherwise, or if the acceptor
 * has ended, nothing bounds the index: a true one is soon learned, and a wrong
 * one holds reads up until the change of roles has ended.
 *
 * It holds for lives: a later life begins with `voted` from its record. But
 * this node may have been stopped while lives ended and the next ones voted,
 * which it has not heard of; so only who has not ended counts, by a look at
 * that moment.
 */
#include "paxos/driver/driver_internal.h"

static const struct qn_outbox_state *state_of(const struct qn_driver *d,
                                              qn_node_t i)
{
    return i == d->o.self ? d->o.state : d->peer[i].state;
}

/** What it says is all that a node of its id has said. After the index was
 *  loaded: whoever voted before that, did so in a life that is known here. */
static bool is_present(const struct qn_driver *d, qn_node_t i)
{
    return i == d->o.self || d->o.ended == NULL ||
           !d->o.ended(d->o.ended_ctx, i, d->peer[i].life.inc);
}

bool qn_driver_newest_epoch(const struct qn_driver *d)
{
    uint32_t sure = 0;
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        if (qn_driver_lives(d, i)) {
            /* acquire <- release in qn_driver_persist. */
            sure += qn_load(&state_of(d, i)->voted, QN_ACQUIRE) < d->ul_len &&
                    is_present(d, i);
        }
    }
    return 2 * sure > d->o.nodes;
}

bool qn_driver_all_at(const struct qn_driver *d, qn_slot_t position)
{
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        /* acquire <- release in qn_driver_learned. */
        if (i != d->o.self && qn_driver_lives(d, i) &&
            (!is_present(d, i) ||
             qn_load(&state_of(d, i)->learned, QN_ACQUIRE) != position)) {
            return false;
        }
    }
    return true;
}

static qn_slot_t bound_told(const struct qn_driver *d)
{
    if (d->memory) {
        return qn_shared_word(&d->shared).hi;
    }
    if (!qn_driver_acceptor_lives(d) || !qn_driver_newest_epoch(d)) {
        return UINT64_MAX;
    }
    const struct qn_outbox_state *s = state_of(d, d->cfg.acceptor);
    /* acquire <- release in qn_driver_roles: `learned` was stored before. */
    bool active = qn_load(&s->epoch, QN_ACQUIRE) >= d->cfg.tenure;
    /* acquire <- release in qn_driver_learned. */
    return active ? qn_load(&s->learned, QN_ACQUIRE) : UINT64_MAX;
}

/* What is applied here is decided: a bound below that comes from who has run
 * wild, and bounds nothing. */
qn_slot_t qn_driver_bound(const struct qn_driver *d)
{
    qn_slot_t bound = bound_told(d);
    return bound < d->applied ? UINT64_MAX : bound;
}

/* ---- the peers' positions ------------------------------------------------ */

static struct qn_flow_hold hold_of(const struct qn_outbox_state *s)
{
    /* acquire <- release in qn_driver_hold: `done` was stored before. */
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

/* An acceptor that has run wild is its own bound, but no slot is ever as high
 * as what garbage says. */
static bool possible(const struct qn_driver_peer *p, const struct qn_input *in,
                     qn_slot_t bound)
{
    return in->beat.applied >= p->applied && in->beat.learned >= p->learned &&
           in->beat.applied <= in->beat.learned &&
           in->beat.learned <= QN_MIN(bound, QN_SLOT_MAX);
}

bool qn_driver_position(void *ctx, qn_node_t node, struct qn_position *out)
{
    const struct qn_driver *d = ctx;
    const struct qn_driver_peer *p = &d->peer[node];
    if (p->qp == NULL || p->state == NULL) {
        return false;
    }
    const struct qn_input in = position(d, node);
    *out = (struct qn_position){in.beat.applied, in.beat.learned};
    return possible(p, &in, qn_driver_bound(d)); /* loaded after them */
}

/* What this node says to itself: a reader may wait for a slot whose LEARN died
 * with the leader, which lies in the ring; and it may hold something. */
static void self_read(struct qn_driver *d)
{
    struct qn_input in = {.kind = QN_IN_BEAT};
    in.beat.peer = d->o.self;
    in.beat.decided = d->memory ? qn_driver_bound(d) : 0;
    in.beat.hold = hold_of(d->o.state);
    qn_driver_step(d, &in);
}

/* Root of a tree with inner nodes: a member that stands still with something
 * to learn holds up who hangs below it. It leaves the tree until it has caught
 * up with what the root had learned at the last look. */
static void laggards_find(struct qn_driver *d)
{
    qn_slot_t before = d->learned_before;
    d->learned_before = qn_onepaxos_learned(d->machine);
    if (!d->inner || d->cfg.acceptor != d->o.self) {
        return;
    }
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        struct qn_driver_peer *p = &d->peer[i];
        if (p->qp == NULL) {
            continue;
        }
        if (p->learned >= before) {
            d->lagging &= ~qn_driver_bit(i);
            p->moved_at = d->now;
        } else if (d->now - p->moved_at >= QN_DRIVER_LAG) {
            d->lagging |= qn_driver_bit(i);
        }
    }
    uint64_t members = qn_driver_living(d) & ~d->lagging;
    if (members != d->members) {
        qn_driver_tree(d, members);
    }
}

/* A leader goes no faster than who works can follow, and is worth it. */
static void tempo_look(struct qn_driver *d)
{
    if (qn_onepaxos_role(d->machine) != QN_ACTIVE) {
        d->tempo = (struct qn_tempo){0};
    } else if (qn_tempo_due(&d->tempo, d->now)) {
        qn_slot_t applied[QN_NODES_MAX] = {0};
        for (qn_node_t i = 0; i < d->o.nodes; i++) {
            applied[i] = d->peer[i].applied;
        }
        uint64_t peers = qn_driver_living(d) &
                         qn_flow_followed(qn_onepaxos_flow(d->machine));
        qn_onepaxos_slow(d->machine,
                         qn_tempo_look(&d->tempo, d->now,
                                       qn_onepaxos_learned(d->machine), applied,
                                       peers));
    }
}

void qn_driver_beats_read(struct qn_driver *d)
{
    struct qn_input in[QN_NODES_MAX];
    uint32_t n = 0;
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        if (d->peer[i].qp != NULL && d->peer[i].state != NULL) {
            in[n++] = position(d, i);
        }
    }
    qn_slot_t bound = qn_driver_bound(d); /* after them: it does not fall */
    for (uint32_t k = 0; k < n; k++) {
        struct qn_driver_peer *p = &d->peer[in[k].beat.peer];
        if (possible(p, &in[k], bound)) {
            p->moved_at =
                p->learned != in[k].beat.learned ? d->now : p->moved_at;
            p->applied = in[k].beat.applied;
            p->learned = in[k].beat.learned;
            qn_driver_step(d, &in[k]);
        }
    }
    qn_driver_hold_look(d);
    laggards_find(d);
    tempo_look(d);
    self_read(d);
    if (d->memory) {
        qn_driver_mapped(d);
    }
}

/* ---- how long a broadcast takes ------------------------------------------ */

void qn_driver_reach_begin(struct qn_driver *d, qn_slot_t slot)
{
    if (d->reach_slot == 0 && d->now - d->reach_at >= QN_REACH_EVERY) {
        d->reach_slot = slot;
        d->reach_at = d->reach_looked = d->now;
    }
}

void qn_driver_reach_look(struct qn_driver *d)
{
    uint64_t members = d->members & ~qn_driver_bit(d->o.self);
    bool late = d->now - d->reach_looked > QN_REACH_LOOK;
    d->reach_looked = d->now;
    for (uint64_t m = members; m != 0; m &= m - 1) {
        const struct qn_driver_peer *p = &d->peer[__builtin_ctzll(m)];
        if (p->state == NULL ||
            qn_load(&p->state->learned, QN_RELAXED) < d->reach_slot) {
            return;
        }
    }
    if (!late && members != 0) {
        qn_time_t took = QN_MAX(d->now - d->reach_at, 1);
        d->reach = d->reach == 0 ? took : (7 * d->reach + took) / 8;
    }
    d->reach_slot = 0;
}
