/*
 * The leader with the memory acceptor: it decides by itself, and the next
 * leader takes over what it left in memory (PROTOCOL.md 5, the direct form).
 *
 *     accept      ring[s] = batch;  CAS register (ep, s-1) -> (ep, s);  LEARN
 *     take over   copy what the old leader's ring keeps into the own one,
 *                 CAS register (e, h) -> (ep, h)
 *
 * The CAS of a take-over is promise, adoption and hand-off in one. It fails if
 * the old leader has decided anything since the copy was made, and afterwards
 * every CAS of the old leader fails, however late, because it names a smaller
 * epoch. No node is asked for anything, so no death is in the way.
 *
 * Only slots that a living node has not applied are copied: the ring keeps far
 * more as long as there is room, and clients wait meanwhile. So no node falls
 * out of sync by a take-over, and a node that starts later brings a snapshot. A
 * node that lags behind what the ring keeps is out of sync already, and a copy
 * does not help it (a snapshot does, or the logs of the others): nothing is
 * copied for it. This is trusted only from a position that is read now. The
 * last position that was heard may be old: the node may have caught up since,
 * and would then need the slots in between. Copying takes as many turns as it
 * needs, COPIES slots in each; what the old leader decides meanwhile is copied,
 * too. If a slot cannot be read, because the ring has overwritten it, the
 * take-over begins again.
 *
 * A follower that misses LEARNs reads the same ring.
 *
 * A new incarnation waits, T_LEAD at most, until every living peer has mapped
 * its ring (M11, reconfigure.c).
 */
#include "paxos/machine/onepaxos_internal.h"
#include "paxos/mutant.h"

#define COPIES 16u   /* slots of one step */
#define SHORT  1024u /* slots that are copied for a new incarnation */

/** No leader has stored this: the memory was overwritten. What this node has
 *  learned was decided before, and hi never falls. */
static bool is_damaged(const struct qn_onepaxos *p, struct qn_accept_register w)
{
    return w.epoch >= QN_EPOCH_NONE || w.hi < p->learned_hi ||
           w.hi > QN_SLOT_MAX;
}

/** The ring with the slots that are decided as of `w`; NULL: its owner is not
 *  known here, or its memory is not mapped. */
static const struct qn_ring *ring_of(const struct qn_onepaxos *p,
                                     struct qn_accept_register w)
{
    const struct qn_memory_acceptor *s = p->memory;
    qn_node_t owner;
    uint64_t inc;
    if (!qn_memory_acceptor_owner(s, &p->ul, w.epoch, &owner, &inc)) {
        return NULL;
    }
    return qn_epoch_is(p, (uint8_t)owner, inc) ? &s->own
                                               : s->ring(s->ctx, owner, inc);
}

/** Go on to read slot `s` of `r`, the ring of `epoch`'s owner, with at most
 *  *budget bytes. @return > 0: more to come; 0: x->copy.batch is that batch;
 *  QN_EAGAIN: what is there is none; QN_ENOMEM. */
static int64_t read_slot(const struct qn_onepaxos *p, const struct qn_ring *r,
                         uint64_t epoch, qn_slot_t s, struct qn_reading *x,
                         size_t *budget)
{
    struct qn_ring_copy *c = &x->copy;
    if (c->batch != NULL && (c->slot != s || x->epoch != epoch)) {
        qn_reading_stop(x);
    }
    if (x->whole) {
        return 0;
    }
    int rc = QN_OK;
    if (c->batch == NULL) {
        rc = qn_ring_read_begin(r, s, p->alloc, c);
        x->epoch = epoch;
    }
    if (rc != QN_OK) {
        return rc;
    }
    uint32_t before = c->batch->len;
    int64_t left = qn_ring_read_some(r, c, *budget);
    if (left == 0) {
        *budget -= c->batch->len - before;
        x->whole = qn_batch_check((struct qn_slice){c->batch->bytes,
                                                    c->batch->len}) == QN_OK;
        if (!x->whole) {
            qn_reading_stop(x); /* damaged */
            return QN_EAGAIN;
        }
    }
    return left;
}

/** The register names an epoch that this node has not heard of: a peer knows
 *  it. */
static void behind(struct qn_onepaxos *p, struct qn_step *t)
{
    qn_reconfigure_behind(p, t, (p->self + 1) % p->nodes,
                          (qn_epoch_t)qn_memory_acceptor_load(p->memory).epoch);
}

/** Could this node take over, as far as it knows? (It is in sync.) If the
 *  epoch of the register is unknown here, a proposal is the way to learn of
 *  it. */
bool qn_memory_leader_may(const struct qn_onepaxos *p)
{
    struct qn_accept_register w = qn_memory_acceptor_load(p->memory);
    const struct qn_ring *r = ring_of(p, w);
    return w.epoch >= qn_utility_len(&p->ul) ||
           (r != NULL &&
            (qn_ring_lo(r) <= p->applied + 1 || QN_MUTANT(TAKE_BEHIND)));
}

/* --------------------------------------------------------------- accept -- */

/** Slots that may not be overwritten: those that this node has not applied
 *  (M10), that an awaited member lacks, or that are held for a joiner; and if
 *  possible those that a living node lacks. During a take-over no member is
 *  awaited yet: the slots that members need lie in the ring that is copied. */
static struct qn_ring_need need_of(const struct qn_onepaxos *p, bool alone)
{
    qn_slot_t all = qn_learner_applied_by_all(p, p->memory->own.lo);
    qn_slot_t own = QN_MUTANT(TAKE_BEHIND) || QN_MUTANT(OWNER_DROPS)
                        ? UINT64_MAX
                        : p->applied + 1;
    if (p->leader.role == QN_ACTIVE && !alone) {
        const qn_slot_t first = qn_flow_first(&p->leader.flow);
        own = QN_MIN(own, first);
    }
    return (struct qn_ring_need){.own = own, .all = QN_MIN(all + 1, own)};
}

/** The group begins, and this node leads it. */
void qn_memory_leader_first(struct qn_onepaxos *p)
{
    QN_ASSERT(p->cfg.kind == QN_UL_INIT);
    QN_ASSERT(p->leader.next == 1);
    qn_memory_acceptor_claim(p->memory, true);
    /* No other node can own the first epoch. */
    (void)qn_memory_acceptor_own(p->memory, p->leader.ep);
}

/** True if there is room for `len` bytes as slot `next`, once there is
 *  memory. `alone`: whatever the other members need. */
bool qn_memory_leader_fits(const struct qn_onepaxos *p, size_t len, bool alone)
{
    return p->leader.next <= p->applied + p->log.mask &&
           qn_ring_fits(&p->memory->own, len, need_of(p, alone));
}

/** Make that room. @return false: it must wait. */
bool qn_memory_leader_make_room(struct qn_onepaxos *p, struct qn_step *t,
                                size_t len)
{
    QN_ASSERT(p->leader.role == QN_ACTIVE);
    int rc = qn_ring_reserve(&p->memory->own, len, need_of(p, false));
    p->retry_at = rc == QN_OK ? p->retry_at : t->now + p->params.t_gap;
    return rc == QN_OK;
}

/** Write a part of the batch that there is room for. @return true: all of it is
 *  in the ring. */
bool qn_memory_leader_put(struct qn_onepaxos *p, const struct qn_refbuf *batch)
{
    struct qn_slice bytes = {batch->bytes, batch->len};
    QN_ASSERT(p->leader.role != QN_FOLLOWER); /* one writer: the ring's owner */
    return qn_ring_put(&p->memory->own, bytes,
                       qn_memory_leader_step_bytes(p)) == 0;
}

/** The machine ends: release the copies that were begun. */
void qn_memory_leader_end(struct qn_onepaxos *p)
{
    qn_reading_stop(&p->change.reading);
    qn_reading_stop(&p->catch_up.reading);
}

/** Leader: decide `slot`, for which there is room. Takes the reference.
 *  @return false: deposed, and the batch is not decided. */
bool qn_memory_leader_accept(struct qn_onepaxos *p, struct qn_step *t,
                             qn_slot_t slot, struct qn_refbuf *batch)
{
    QN_ASSERT(p->leader.role == QN_ACTIVE);
    QN_ASSERT(slot < p->leader.next || QN_MUTANT(REUSE_SLOT));
    if (qn_acceptor_accept(&p->acceptor, p->leader.ep, slot, batch) !=
        QN_ACCEPT_DONE) {
        qn_refbuf_unref(batch);
        qn_propose_step_down(p);
        behind(p, t);
        return false;
    }
    qn_learner_settle(p, t, slot, batch);
    qn_refbuf_unref(batch);
    qn_learner_tell(p, t, slot);
    return true;
}

/* ------------------------------------------------------------ take over -- */

void qn_memory_leader_begin(struct qn_onepaxos *p, struct qn_step *t)
{
    QN_ASSERT(qn_epoch_leads(p));
    QN_ASSERT(p->leader.ep == p->cfg.index);
    qn_propose_step_down(p);
    p->leader.role = QN_PREPARING;
    qn_memory_acceptor_claim(p->memory, true);
    p->change.copy_epoch = QN_EPOCH_NONE;
    p->change.came_by = QN_TIME_NEVER;
    p->change.prepare_at = t->now;
}

/** Read the position of `n`. @return false: it may be further than is known
 *  here. */
static bool read_position(struct qn_onepaxos *p, qn_node_t n)
{
    const struct qn_memory_acceptor *s = p->memory;
    struct qn_peer *x = &p->peer[n];
    struct qn_position now;
    if (s->position == NULL || !s->position(s->ctx, n, &now)) {
        return QN_MUTANT(LAG_UNHEARD);
    }
    x->applied = QN_MAX(x->applied, now.applied);
    x->learned = QN_MAX(x->learned, now.learned);
    return true;
}

/** No slot from `lo` on helps `n`: it lacks earlier ones. It will apply the
 *  slots that it has learned. Read after `lo` was loaded, and `lo` does not
 *  fall: so `n` was out of sync at that moment. */
static bool lags(struct qn_onepaxos *p, qn_node_t n, qn_slot_t lo)
{
    return read_position(p, n) && p->peer[n].learned + 1 < lo;
}

/** A later incarnation that has applied nothing gets a snapshot, unless the
 *  log is so short that it can be copied for it. Of a first incarnation that
 *  was not heard yet nothing is known: it may lack all slots. */
static bool fresh(const struct qn_onepaxos *p, qn_node_t n, qn_slot_t hi)
{
    return p->peer[n].later && p->peer[n].applied == 0 && hi > SHORT;
}

/** First slot at or above `lo` that a living node lacks and that helps it. */
static qn_slot_t first_needed(struct qn_onepaxos *p, qn_slot_t lo, qn_slot_t hi)
{
    qn_slot_t all = p->applied;
    for (qn_node_t n = 0; n < p->nodes; n++) {
        bool other = n != p->self && (p->alive & QN_BIT(n)) != 0;
        if (other && !lags(p, n, lo) && !fresh(p, n, hi)) {
            all = QN_MIN(all, p->peer[n].applied);
        }
    }
    return QN_MAX(lo, all + 1);
}

/** The living nodes that nothing is copied for, as of now. */
static uint64_t left_out(struct qn_onepaxos *p, qn_slot_t lo, qn_slot_t hi)
{
    uint64_t out = 0;
    for (qn_node_t n = 0; n < p->nodes; n++) {
        bool other = n != p->self && (p->alive & QN_BIT(n)) != 0;
        out |= other && (lags(p, n, lo) || fresh(p, n, hi)) ? QN_BIT(n) : 0;
    }
    return out;
}

/** A node that nothing was copied for has brought a snapshot meanwhile, and
 *  goes on from the old ring: it would fall out of sync. It has T_LEAD at
 *  most to reach the slots that are copied, which takes it no longer than a
 *  copy takes. If it is stalled, the others go on without it. */
static bool joiner_came(struct qn_onepaxos *p, const struct qn_ring *old,
                        struct qn_accept_register w, qn_time_t now)
{
    struct qn_reconfiguration *c = &p->change;
    uint64_t came = c->left_out & p->alive & ~c->suspected &
                    ~left_out(p, qn_ring_lo(old), w.hi);
    bool wait = false;
    for (qn_node_t n = 0; n < p->nodes; n++) {
        wait = wait || ((came & QN_BIT(n)) != 0 &&
                        p->peer[n].applied + 1 < c->copy_first);
    }
    if (!wait || QN_MUTANT(NO_SECOND_LOOK)) {
        return false;
    }
    c->came_by = QN_MIN(c->came_by, now + p->params.t_lead);
    return now < c->came_by;
}

/** Begin the copy: which ring, and from which slot. @return false: not now. */
static bool begin_copy(struct qn_onepaxos *p, struct qn_step *t,
                       const struct qn_ring *old, struct qn_accept_register w)
{
    struct qn_reconfiguration *c = &p->change;
    struct qn_ring *own = &p->memory->own;
    c->copy_next = w.hi + 1;
    c->writing = false;
    qn_reading_stop(&c->reading);
    if (old != own) {
        qn_slot_t lo = QN_MAX(qn_ring_lo(old), own->lo);
        if (lo > p->applied + 1 && !QN_MUTANT(TAKE_BEHIND)) {
            /* Behind the ring (M10): a snapshot first. */
            qn_catch_up_need_snapshot(p, t, p->applied + 1);
            c->prepare_at = t->now + p->params.t_acc;
            return false;
        }
        c->left_out = left_out(p, lo, w.hi);
        lo = QN_MAX(first_needed(p, lo, w.hi), c->void_hi + 1);
        qn_ring_begin(own, lo); /* M7 */
        c->copy_first = c->copy_next = lo;
    }
    c->copy_epoch = (qn_epoch_t)w.epoch;
    return true;
}

/** Slot copy_next is read: into the own ring, as much as fits into a step.
 *  @return > 0: more to come; 0: done; QN_ENOMEM: it must wait. */
static int64_t write_slot(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_reconfiguration *c = &p->change;
    struct qn_ring *own = &p->memory->own;
    QN_ASSERT(c->reading.whole);
    QN_ASSERT(c->reading.copy.slot == c->copy_next);
    QN_ASSERT(c->copy_next == own->end); /* slots are copied in order */
    struct qn_refbuf *b = c->reading.copy.batch;
    struct qn_slice bytes = {b->bytes, b->len};
    if (c->copy_next > p->learned_hi && qn_learner_make_room(p, c->copy_next)) {
        qn_learner_settle(p, t, c->copy_next, b); /* it is decided */
    }
    if (!c->writing &&
        qn_ring_reserve(own, b->len, need_of(p, false)) != QN_OK) {
        return QN_ENOMEM;
    }
    c->writing = true;
    if (!qn_memory_leader_put(p, b)) {
        return 1;
    }
    qn_ring_write(own, c->copy_next++, c->reading.copy.epoch, bytes);
    c->writing = false;
    qn_reading_stop(&c->reading);
    return 0;
}

/** Copy slots copy_next .. w.hi, as many as fit into this step. @return
 *  false: begin again. */
static bool copy_some(struct qn_onepaxos *p, struct qn_step *t,
                      const struct qn_ring *old, struct qn_accept_register w)
{
    struct qn_reconfiguration *c = &p->change;
    QN_ASSERT(c->copy_epoch == w.epoch); /* one ring, from its own first slot */
    size_t budget = qn_memory_leader_step_bytes(p);
    int64_t rc = 0;
    for (uint32_t n = 0;
         n < COPIES && c->copy_next <= w.hi && rc == 0 && budget != 0; n++) {
        rc = read_slot(p, old, w.epoch, c->copy_next, &c->reading, &budget);
        rc = rc == 0 ? write_slot(p, t) : rc;
    }
    if (rc == QN_ENOMEM) {
        c->prepare_at = t->now + p->params.t_gap;
    }
    return rc != QN_EAGAIN;
}

/** Everything is copied. The CAS of the register succeeds if that is still
 *  all. */
static void promise(struct qn_onepaxos *p, struct qn_accept_register w,
                    qn_time_t now)
{
    struct qn_reconfiguration *c = &p->change;
    qn_slot_t hi;
    QN_ASSERT(p->leader.role == QN_PREPARING);
    QN_ASSERT(c->copy_next == w.hi + 1 || QN_MUTANT(STALE_HI));
    QN_ASSERT(p->learned_hi >= w.hi || QN_MUTANT(STALE_HI) ||
              QN_MUTANT(TAKE_BEHIND)); /* M10 */
    p->acceptor.copied = w;
    if (!qn_acceptor_promise(&p->acceptor, p->leader.ep, p->leader.ep, &hi)) {
        return; /* more was decided, or another node was faster, perhaps with an
                   entry that it takes for its own: look again */
    }
    QN_ASSERT(hi == w.hi);
    p->leader.role = QN_ACTIVE;
    p->leader.next = hi + 1;
    p->leader.want_stamp = true; /* a no-op: laggards see the gap */
    c->serve_from = hi;
    p->leader.asked = 0;
    for (qn_node_t n = 0; n < p->nodes; n++) {
        p->leader.seen[n] = (struct qn_session){0};
        /* As of now, if it can be read. */
        (void)(n != p->self && read_position(p, n));
    }
    qn_propose_begin(p, now);
}

static void take_over(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_reconfiguration *c = &p->change;
    struct qn_accept_register w = qn_memory_acceptor_load(p->memory);
    if (is_damaged(p, w)) {
        /* Slots that are decided must not be decided again. */
        c->prepare_at = t->now + p->params.t_acc;
        return;
    }
    if (w.epoch >= p->leader.ep + QN_MUTANT(EQUAL_EPOCH)) {
        qn_propose_step_down(p); /* another one has it, or a later epoch */
        return;
    }
    const struct qn_ring *old = ring_of(p, w);
    qn_learner_decided(p, w.hi, t->now);
    if (old == NULL) {
        c->prepare_at = t->now + p->params.t_acc;
        behind(p, t);
        return;
    }
    if (c->copy_epoch != w.epoch && !begin_copy(p, t, old, w)) {
        return;
    }
    if (old != &p->memory->own && !copy_some(p, t, old, w)) {
        c->copy_epoch = QN_EPOCH_NONE;
        return;
    }
    bool copied = c->copy_next == w.hi + 1 &&
                  (p->learned_hi >= w.hi || QN_MUTANT(TAKE_BEHIND));
    if (copied && qn_reconfigure_unmapped(p, t->now)) {
        c->prepare_at = c->map_by; /* or when the last one is heard */
        return;
    }
    if (copied && old != &p->memory->own && joiner_came(p, old, w, t->now)) {
        c->prepare_at = t->now + p->params.t_gap;
        return;
    }
    if (copied || (QN_MUTANT(STALE_HI) && c->copy_next > COPIES)) { /* M3 */
        promise(p, w, t->now);
    }
}

/** Forced recovery (5.7): no node has the slots between this node's log and
 *  the ring, so the slots of both are void for ever, as if they had been
 *  empty. The state is that of position hi. So this node is in sync and takes
 *  over like any other, the register and all positions continue as they were,
 *  and nothing of the ring is applied on top of a gap. The entry of the
 *  register's epoch may be unknown here: it is learned before the own one. */
int qn_memory_leader_force(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_accept_register w = qn_memory_acceptor_load(p->memory);
    const struct qn_ring *r = ring_of(p, w);
    bool lacks = r != NULL && r != &p->memory->own &&
                 qn_ring_lo(r) > p->learned_hi + 1 && w.hi > p->learned_hi &&
                 w.hi <= QN_SLOT_MAX;
    if (!lacks || p->applied != p->learned_hi || p->apply_at != 0) {
        return QN_EBUSY;
    }
    if (p->leader.role == QN_ACTIVE) {
        qn_propose_step_down(p); /* deposed, and has not heard of it */
    }
    behind(p, t);
    qn_learner_restart(p, w.hi, t->now);
    p->change.void_hi = w.hi;
    p->change.copy_epoch = QN_EPOCH_NONE;
    p->change.prepare_at = t->now;
    return QN_OK;
}

/* ---------------------------------------------------------------- turn -- */

/** The register has a value that no leader has stored: nothing can be decided
 *  any more. */
bool qn_memory_leader_damaged(const struct qn_onepaxos *p,
                              struct qn_accept_register w)
{
    QN_ASSERT(p->memory != NULL);
    return is_damaged(p, w);
}

/** The owner of the register lives, and the entry that made it so is unknown
 *  here: it is asked for. */
bool qn_memory_leader_unknown(const struct qn_onepaxos *p)
{
    qn_node_t owner;
    uint64_t inc;
    if (p->memory == NULL) {
        return false;
    }
    struct qn_accept_register w = qn_memory_acceptor_load(p->memory);
    return w.epoch >= qn_utility_len(&p->ul) &&
           qn_memory_acceptor_owner(p->memory, &p->ul, w.epoch, &owner, &inc) &&
           !qn_epoch_life_over(p, (uint8_t)owner, inc);
}

/** Read missing slots from the ring, as many as fit into this step. @return
 *  QN_OK: something was read; QN_ENOMEM: it is there, later perhaps;
 *  QN_EAGAIN: the ring cannot help. */
int qn_memory_leader_catch_up(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_accept_register w = qn_memory_acceptor_load(p->memory);
    const struct qn_ring *r = ring_of(p, w);
    struct qn_reading *x = &p->catch_up.reading;
    size_t budget = qn_memory_leader_step_bytes(p);
    int64_t rc = 0;
    uint32_t n = 0;
    if (is_damaged(p, w)) {
        return QN_EAGAIN;
    }
    qn_learner_decided(p, w.hi, t->now);
    /* Without the entry this node may still lead, in an older epoch. */
    if (r == NULL || w.epoch >= qn_utility_len(&p->ul)) {
        behind(p, t);
        return QN_EAGAIN;
    }
    for (; n < COPIES && rc == 0 && budget != 0 && p->learned_hi < w.hi; n++) {
        qn_slot_t s = p->learned_hi + 1;
        if (!qn_learner_make_room(p, s)) {
            break;
        }
        rc = read_slot(p, r, w.epoch, s, x, &budget);
        if (rc == 0) {
            qn_learner_settle(p, t, s, x->copy.batch);
            qn_reading_stop(x);
        }
    }
    p->catch_up.read += qn_memory_leader_step_bytes(p) - (rc > 0 ? 0 : budget);
    if (rc > 0) { /* the rest of it in the next turn */
        p->catch_up.gap_since = t->now - QN_MIN(t->now, p->params.t_gap);
    }
    return n > (rc < 0 ? 1u : 0u) ? QN_OK
           : rc == QN_ENOMEM      ? QN_ENOMEM
                                  : QN_EAGAIN;
}

/** Once per TICK. */
void qn_memory_leader_check(struct qn_onepaxos *p, struct qn_step *t)
{
    if (p->leader.role == QN_PREPARING && t->now >= p->change.prepare_at) {
        take_over(p, t);
    }
    if (p->leader.role != QN_PREPARING) {
        qn_reading_stop(&p->change.reading);
    }
    if (p->catch_up.reading.copy.slot <= p->learned_hi) {
        qn_reading_stop(&p->catch_up.reading); /* learned in another way */
    }
}
