/*
 * The memory acceptor: the leader decides by itself, and whoever is next takes
 * over what it left in memory (PROTOCOL.md 5, the direct form).
 *
 *     accept      ring[s] = batch;  CAS word (ep, s-1) -> (ep, s);  LEARN
 *     take over   copy what the old leader's ring keeps into the own one,
 *                 CAS word (e, h) -> (ep, h)
 *
 * The CAS of a take-over is promise, adoption and hand-off in one: it fails if
 * the old leader has decided anything since the copy was made, and afterwards
 * every CAS of the old leader fails, however late, for it names a smaller
 * epoch. Nothing is asked of anybody, so nobody's death is in the way.
 *
 * What somebody living has not applied is copied, and no more: the ring keeps
 * far more than that as long as there is room, and clients wait meanwhile. So
 * nobody falls out of sync by it, and who comes later brings a snapshot. Who
 * lags behind what the ring keeps is out of sync already, and a copy does not
 * help it (a snapshot does, or the others' logs): nothing is copied for it. But
 * that is believed only of who says so now. What was heard last may be old:
 * that one may have caught up since, and then it needs what lies between.
 * Copying goes on for as many turns as it takes, COPIES slots in each; what the
 * old leader decides meanwhile is copied, too. A slot that cannot be read (the
 * ring went on) begins the take-over again from the top.
 *
 * A follower that misses LEARNs reads the same ring.
 *
 * A new life waits, T_LEAD at most, until every living peer has mapped its ring
 * (M11, epoch.c).
 */
#include "paxos/machine/onepaxos_internal.h"
#include "paxos/mutant.h"

#define COPIES 16u   /* slots of one step */
#define SHORT  1024u /* slots that are copied for a life that has none */

/** The ring that holds what is decided as of `w`; NULL: its owner is not known
 *  here, or its memory not mapped. */
static const struct qn_ring *ring_of(const struct qn_onepaxos *p,
                                     struct qn_word w)
{
    const struct qn_shared *s = p->shared;
    qn_node_t owner;
    uint64_t inc;
    if (!qn_shared_owner(s, &p->ul, w.epoch, &owner, &inc)) {
        return NULL;
    }
    return qn_epoch_is(p, (uint8_t)owner, inc) ? &s->own
                                               : s->ring(s->ctx, owner, inc);
}

/** Bytes that one step may copy. */
size_t qn_takeover_step_bytes(const struct qn_onepaxos *p)
{
    return p->params.copy_bytes != 0 ? p->params.copy_bytes : SIZE_MAX;
}

static void stop_reading(struct qn_reading *x)
{
    qn_ring_copy_drop(&x->copy);
    x->whole = false;
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
        stop_reading(x);
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
            stop_reading(x); /* damaged */
            return QN_EAGAIN;
        }
    }
    return left;
}

/** The word names an epoch that this node has not heard of: somebody knows. */
static void behind(struct qn_onepaxos *p, struct qn_step *t)
{
    qn_epoch_behind(p, t, (p->self + 1) % p->nodes,
                    (qn_epoch_t)qn_shared_word(p->shared).epoch);
}

/** Could this node take over, as far as it knows? (In sync.) If the word's
 *  epoch is unknown here, proposing is how to learn of it. */
bool qn_takeover_may(const struct qn_onepaxos *p)
{
    struct qn_word w = qn_shared_word(p->shared);
    const struct qn_ring *r = ring_of(p, w);
    return w.epoch >= qn_utility_len(&p->ul) ||
           (r != NULL &&
            (qn_ring_lo(r) <= p->applied + 1 || QN_MUTANT(TAKE_BEHIND)));
}

/* --------------------------------------------------------------- accept -- */

/** What may not be overwritten: what this node has not applied (M10), nor who
 *  is awaited, nor what is held for a joiner; and if it can be helped, what a
 *  living node has not. While it takes over nobody is awaited yet: what they
 *  need lies in the ring that is copied. */
static struct qn_ring_need need_of(const struct qn_onepaxos *p, bool alone)
{
    qn_slot_t all = qn_learner_applied_by_all(p, p->shared->own.lo);
    qn_slot_t own = QN_MUTANT(TAKE_BEHIND) || QN_MUTANT(OWNER_DROPS)
                        ? UINT64_MAX
                        : p->applied + 1;
    if (p->leader.role == QN_ACTIVE && !alone) {
        own = QN_MIN(own, qn_flow_first(&p->leader.flow));
    }
    return (struct qn_ring_need){.own = own, .all = QN_MIN(all + 1, own)};
}

/** The group begins, and this node leads it. */
void qn_takeover_first(struct qn_onepaxos *p)
{
    qn_shared_claim(p->shared, true);
    (void)qn_shared_own(p->shared, p->leader.ep); /* nobody else can */
}

/** True if there is room for `len` bytes as slot `next`, once there is
 *  memory; `alone`: whatever the others need. */
bool qn_takeover_fits(const struct qn_onepaxos *p, size_t len, bool alone)
{
    return p->leader.next <= p->applied + p->log.mask &&
           qn_ring_fits(&p->shared->own, len, need_of(p, alone));
}

/** Make that room. @return false: it must wait. */
bool qn_takeover_make_room(struct qn_onepaxos *p, struct qn_step *t, size_t len)
{
    int rc = qn_ring_reserve(&p->shared->own, len, need_of(p, false));
    p->retry_at = rc == QN_OK ? p->retry_at : t->now + p->params.t_gap;
    return rc == QN_OK;
}

/** Write a part of the batch that there is room for. @return true: all of it is
 *  in the ring. */
bool qn_takeover_put(struct qn_onepaxos *p, const struct qn_blob *batch)
{
    struct qn_slice bytes = {batch->bytes, batch->len};
    return qn_ring_put(&p->shared->own, bytes, qn_takeover_step_bytes(p)) == 0;
}

/** The machine ends: give back what is held here. */
void qn_takeover_end(struct qn_onepaxos *p)
{
    stop_reading(&p->change.reading);
    stop_reading(&p->fetch.reading);
}

/** Leader: decide `slot`, for which there is room. Takes the reference.
 *  @return false: deposed, and the batch is not decided. */
bool qn_takeover_accept(struct qn_onepaxos *p, struct qn_step *t,
                        qn_slot_t slot, struct qn_blob *batch)
{
    if (qn_acceptor_accept(&p->acceptor, p->leader.ep, slot, batch) !=
        QN_ACCEPT_DONE) {
        qn_blob_unref(batch);
        qn_leader_step_down(p);
        behind(p, t);
        return false;
    }
    qn_learner_settle(p, t, slot, batch);
    qn_blob_unref(batch);
    qn_learner_tell(p, t, slot);
    return true;
}

/* ------------------------------------------------------------ take over -- */

void qn_takeover_begin(struct qn_onepaxos *p, struct qn_step *t)
{
    qn_leader_step_down(p);
    p->leader.role = QN_PREPARING;
    qn_shared_claim(p->shared, true);
    p->change.copy_epoch = QN_EPOCH_NONE;
    p->change.came_by = QN_TIME_NEVER;
    p->change.prepare_at = t->now;
}

/** Ask where `n` is. @return false: it may be further than is known here. */
static bool look_at(struct qn_onepaxos *p, qn_node_t n)
{
    const struct qn_shared *s = p->shared;
    struct qn_peer *x = &p->peer[n];
    struct qn_position now;
    if (s->position == NULL || !s->position(s->ctx, n, &now)) {
        return QN_MUTANT(LAG_UNHEARD);
    }
    x->applied = QN_MAX(x->applied, now.applied);
    x->learned = QN_MAX(x->learned, now.learned);
    return true;
}

/** Nothing from slot `lo` on helps `n`: it lacks earlier ones. Those that it
 *  has learned it will apply. After `lo` was loaded, which does not fall: so
 *  this one was out of sync at that moment. */
static bool lags(struct qn_onepaxos *p, qn_node_t n, qn_slot_t lo)
{
    return look_at(p, n) && p->peer[n].learned + 1 < lo;
}

/** A later life that has applied nothing gets a snapshot, unless the log is so
 *  short that it may as well be copied for it. Of a first life that was not
 *  heard yet nothing is known: it may lack all. */
static bool fresh(const struct qn_onepaxos *p, qn_node_t n, qn_slot_t hi)
{
    return p->peer[n].later && p->peer[n].applied == 0 && hi > SHORT;
}

/** First slot at or above `lo` that somebody living lacks whom it helps. */
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

/** Those living that nothing is copied for, as of now. */
static uint64_t left_out(struct qn_onepaxos *p, qn_slot_t lo, qn_slot_t hi)
{
    uint64_t out = 0;
    for (qn_node_t n = 0; n < p->nodes; n++) {
        bool other = n != p->self && (p->alive & QN_BIT(n)) != 0;
        out |= other && (lags(p, n, lo) || fresh(p, n, hi)) ? QN_BIT(n) : 0;
    }
    return out;
}

/** One that nothing was copied for has brought a snapshot meanwhile, and goes
 * on from the old ring: it would fall out of sync. It is given T_LEAD at most
 * to get to what is copied, which does not take it longer than one needs for a
 *  copy; if it stands still, the others do not. */
static bool somebody_came(struct qn_onepaxos *p, const struct qn_ring *old,
                          struct qn_word w, qn_time_t now)
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

/** From the top: where to copy from, and from which slot. @return false: not
 *  now. */
static bool begin_copy(struct qn_onepaxos *p, struct qn_step *t,
                       const struct qn_ring *old, struct qn_word w)
{
    struct qn_reconfiguration *c = &p->change;
    struct qn_ring *own = &p->shared->own;
    c->copy_next = w.hi + 1;
    c->writing = false;
    stop_reading(&c->reading);
    if (old != own) {
        qn_slot_t lo = QN_MAX(qn_ring_lo(old), own->lo);
        if (lo > p->applied + 1 && !QN_MUTANT(TAKE_BEHIND)) {
            /* Behind the ring (M10): a snapshot first. */
            qn_fetch_need_snapshot(p, t, p->applied + 1);
            c->prepare_at = t->now + p->params.t_acc;
            return false;
        }
        c->left_out = left_out(p, lo, w.hi);
        lo = first_needed(p, lo, w.hi);
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
    struct qn_ring *own = &p->shared->own;
    struct qn_blob *b = c->reading.copy.batch;
    struct qn_slice bytes = {b->bytes, b->len};
    if (c->copy_next > p->learned_hi && qn_learner_make_room(p, c->copy_next)) {
        qn_learner_settle(p, t, c->copy_next, b); /* it is decided */
    }
    if (!c->writing &&
        qn_ring_reserve(own, b->len, need_of(p, false)) != QN_OK) {
        return QN_ENOMEM;
    }
    c->writing = true;
    if (!qn_takeover_put(p, b)) {
        return 1;
    }
    qn_ring_write(own, c->copy_next++, c->reading.copy.epoch, bytes);
    c->writing = false;
    stop_reading(&c->reading);
    return 0;
}

/** Slots copy_next .. w.hi, so many as fit into this step. @return false: from
 *  the top. */
static bool copy_some(struct qn_onepaxos *p, struct qn_step *t,
                      const struct qn_ring *old, struct qn_word w)
{
    struct qn_reconfiguration *c = &p->change;
    size_t budget = qn_takeover_step_bytes(p);
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

/** Everything is copied: the word says whether it still is. */
static void promise(struct qn_onepaxos *p, struct qn_word w, qn_time_t now)
{
    struct qn_reconfiguration *c = &p->change;
    qn_slot_t hi;
    p->acceptor.copied = w;
    if (!qn_acceptor_promise(&p->acceptor, p->leader.ep, p->leader.ep, &hi)) {
        return; /* more was decided, or somebody was faster, also with an entry
                   that he takes for his: look again */
    }
    p->leader.role = QN_ACTIVE;
    p->leader.next = hi + 1;
    p->leader.want_stamp = true; /* a no-op: laggards see the gap */
    c->serve_from = hi;
    for (qn_node_t n = 0; n < p->nodes; n++) {
        p->leader.seen[n] = (struct qn_session){0};
    }
    p->leader.asked = 0;
    for (qn_node_t n = 0; n < p->nodes; n++) {
        (void)(n != p->self && look_at(p, n)); /* as of now, if it says */
    }
    qn_leader_begin(p, now);
}

static void take_over(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_reconfiguration *c = &p->change;
    struct qn_word w = qn_shared_word(p->shared);
    if (w.epoch >= p->leader.ep + QN_MUTANT(EQUAL_EPOCH)) {
        qn_leader_step_down(p); /* a later leader has it; or another one who
                                   takes this entry for his */
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
    if (old != &p->shared->own && !copy_some(p, t, old, w)) {
        c->copy_epoch = QN_EPOCH_NONE;
        return;
    }
    bool copied = c->copy_next == w.hi + 1 &&
                  (p->learned_hi >= w.hi || QN_MUTANT(TAKE_BEHIND));
    if (copied && qn_epoch_unmapped(p, t->now)) {
        c->prepare_at = c->map_by; /* or when the last one is heard */
        return;
    }
    if (copied && old != &p->shared->own && somebody_came(p, old, w, t->now)) {
        c->prepare_at = t->now + p->params.t_gap;
        return;
    }
    if (copied || (QN_MUTANT(STALE_HI) && c->copy_next > COPIES)) { /* M3 */
        promise(p, w, t->now);
    }
}

/* --------------------------------------------------------------- force -- */

/** Forced recovery (5.7): nobody has what lies between this node's log and the
 *  ring, so the slots of both are void for ever, as if they had been empty: the
 *  state is that of position hi. So it is in sync and takes over like anybody,
 *  the word and all positions go on as they were, and nothing of the ring is
 *  applied on top of a gap. */
int qn_takeover_force(struct qn_onepaxos *p, qn_time_t now)
{
    struct qn_word w = qn_shared_word(p->shared);
    const struct qn_ring *r = ring_of(p, w);
    bool lacks = r != NULL && r != &p->shared->own &&
                 qn_ring_lo(r) > p->learned_hi + 1 && w.hi > p->learned_hi &&
                 w.hi <= QN_SLOT_MAX;
    if (!lacks || p->applied != p->learned_hi || p->apply_at != 0) {
        return QN_EBUSY;
    }
    qn_learner_restart(p, w.hi, now);
    p->change.copy_epoch = QN_EPOCH_NONE;
    p->change.prepare_at = now;
    return QN_OK;
}

/* ---------------------------------------------------------------- turn -- */

/** Read missing slots from the ring, so much as fits into this step. @return
 *  QN_OK: something was read; QN_ENOMEM: it is there, later perhaps; QN_EAGAIN:
 *  the ring cannot help. */
int qn_takeover_catch_up(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_word w = qn_shared_word(p->shared);
    const struct qn_ring *r = ring_of(p, w);
    struct qn_reading *x = &p->fetch.reading;
    size_t budget = qn_takeover_step_bytes(p);
    int64_t rc = 0;
    uint32_t n = 0;
    qn_learner_decided(p, w.hi, t->now);
    if (r == NULL) {
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
            stop_reading(x);
        }
    }
    p->fetch.read += qn_takeover_step_bytes(p) - (rc > 0 ? 0 : budget);
    if (rc > 0) { /* the rest of it in the next turn */
        p->fetch.gap_since = t->now - QN_MIN(t->now, p->params.t_gap);
    }
    return n > (rc < 0 ? 1u : 0u) ? QN_OK
           : rc == QN_ENOMEM      ? QN_ENOMEM
                                  : QN_EAGAIN;
}

/** Once per TICK. */
void qn_takeover_check(struct qn_onepaxos *p, struct qn_step *t)
{
    if (p->leader.role == QN_PREPARING && t->now >= p->change.prepare_at) {
        take_over(p, t);
    }
    if (p->leader.role != QN_PREPARING) {
        stop_reading(&p->change.reading);
    }
    if (p->fetch.reading.copy.slot <= p->learned_hi) {
        stop_reading(&p->fetch.reading); /* it came another way */
    }
}
