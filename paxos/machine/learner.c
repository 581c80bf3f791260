/*
 * Deciding, learning, applying (PROTOCOL.md 3.3, 3.4, 3.5).
 *
 * The acceptor decides and announces. Every node, the acceptor included, learns
 * slots in any order and applies them in slot order:
 *
 *     lo ........ applied ........ learned_hi ....... decided_hi
 *     | kept, applied | learned, to apply | gaps and learned slots |
 *
 * Exactly once: a session per origin, keyed by (node, incarnation), holds the
 * last sequence applied. The commands of a run have consecutive sequences, so
 * the duplicates of a run are a prefix of it; they are cut off before the
 * run is put out. Apply runs inside the step but puts out at most what fits
 * into the outputs, and goes on at the same byte in the next step. The shell
 * may also bound it (qn_onepaxos_set_apply_budget): learned slots then wait in
 * the log.
 *
 * A LEARN is never owed to a learner: without memory or room in the ring it is
 * forgotten, and fetched later (catch_up.c). What was learned twice must be the
 * same batch; they are compared as long as the slot is kept.
 */
#include "paxos/machine/onepaxos_internal.h"
#include "paxos/mutant.h"

#define ROOM_KEPT   4u    /* outputs left for what follows in a step */
#define DROPS_STEP  1024u /* slots dropped in one step, 50 ns to 2 us each */
#define DROPS_BYTES (512u << 10) /* ... or bytes, beyond what was learned */

/* ---------------------------------------------------------- truncation -- */

/** Drop old slots until the ring holds `slot`. Slots above applied stay.
 *  @return false: it cannot. */
bool qn_learner_make_room(struct qn_onepaxos *p, qn_slot_t slot)
{
    if (slot < p->log.lo || slot > p->applied + 1 + p->log.mask) {
        return false;
    }
    if (!qn_log_holds(&p->log, slot)) {
        qn_log_drop(&p->log, slot - p->log.mask, UINT32_MAX);
    }
    QN_ASSERT(qn_log_holds(&p->log, slot));
    QN_ASSERT(p->log.lo <= p->applied + 1);
    return true;
}

/** Make room for a batch of `bytes`: old slots are dropped before LOG_BYTES is
 *  exceeded. Slots above applied stay, so that what keeps the log within
 *  LOG_BYTES is AHEAD_BYTES and the window for a leader, beyond_bounds() for a
 *  learner. */
static void make_bytes(struct qn_onepaxos *p, uint64_t bytes)
{
    while (p->log.bytes + bytes > p->params.log_bytes &&
           p->log.lo <= p->applied) {
        qn_log_drop(&p->log, p->log.lo + 1, 1);
    }
}

static void put(struct qn_onepaxos *p, qn_slot_t slot, struct qn_refbuf *batch,
                enum qn_slot_state state)
{
    make_bytes(p, batch->cap);
    qn_log_put(&p->log, slot, batch, state);
}

/** The last slot that all nodes believed alive have applied. Nodes that lack
 *  slots below `lo` do not count: they will need a snapshot. */
qn_slot_t qn_learner_applied_by_all(const struct qn_onepaxos *p, qn_slot_t lo)
{
    qn_slot_t all = p->applied;
    for (qn_node_t n = 0; n < p->nodes; n++) {
        bool counts = n != p->self && (p->alive & QN_BIT(n)) != 0;
        if (counts && p->peer[n].applied + 1 >= lo) {
            all = QN_MIN(all, p->peer[n].applied);
        }
    }
    QN_ASSERT(all <= p->applied);
    return all;
}

/** Drop what all nodes believed alive have applied, and what exceeds
 *  LOG_BYTES and has been applied here since. */
void qn_learner_truncate(struct qn_onepaxos *p)
{
    qn_slot_t all =
        QN_MUTANT(TRUNCATE) ? p->applied : qn_learner_applied_by_all(p, 0);
    uint64_t bytes = p->log.bytes;
    uint64_t most = DROPS_BYTES + (bytes > p->kept ? bytes - p->kept : 0);
    for (uint32_t i = 0;
         i < DROPS_STEP && p->log.lo <= all && bytes - p->log.bytes < most;
         i++) {
        qn_log_drop(&p->log, p->log.lo + 1, 1);
    }
    make_bytes(p, 0);
    QN_ASSERT(p->log.lo <= p->applied + 1); /* what is to apply is kept */
    p->kept = p->log.bytes;
}

bool qn_onepaxos_forget(struct qn_onepaxos *p)
{
    const uint64_t bytes = p->log.bytes;
    while (p->log.bytes > bytes / 2 && p->log.lo <= p->applied) {
        qn_log_drop(&p->log, p->log.lo + 1, 1);
    }
    p->kept = p->log.bytes;
    return p->log.bytes != bytes;
}

/* --------------------------------------------------------------- learn -- */

void qn_learner_decided(struct qn_onepaxos *p, qn_slot_t hi, qn_time_t now)
{
    if (hi <= p->decided_hi) {
        return;
    }
    if (p->decided_hi <= p->learned_hi) {
        p->catch_up.gap_since = now;
    }
    p->decided_hi = hi;
}

static void advance(struct qn_onepaxos *p, qn_time_t now)
{
    qn_slot_t before = p->learned_hi;
    while (qn_log_holds(&p->log, p->learned_hi + 1) &&
           qn_log_at(&p->log, p->learned_hi + 1)->state == QN_SLOT_LEARNED) {
        p->learned_hi++;
        qn_log_count(&p->log);
        if (p->leader.role == QN_ACTIVE) {
            qn_flow_decided(&p->leader.flow,
                            qn_log_at(&p->log, p->learned_hi)->batch->len);
        }
    }
    QN_ASSERT(p->learned_hi < p->log.end);
    if (p->learned_hi != before) {
        p->catch_up.gap_since = now;
        p->catch_up.unable = p->catch_up.silent = 0;
        p->catch_up.dropped = p->catch_up.need_snapshot = false;
    }
    qn_learner_decided(p, p->learned_hi, now);
}

/* Stamps never go back along the log. */
static void note_stamp(struct qn_onepaxos *p, uint64_t stamp)
{
    p->stamp = QN_MAX(p->stamp, stamp);
}

/** A P slot is learned or forgotten: the window of the leader opens by its
 *  bytes. */
static void release_inflight(struct qn_onepaxos *p,
                             const struct qn_log_entry *e)
{
    QN_ASSERT(e->state == QN_SLOT_PROPOSED);
    QN_ASSERT(p->leader.inflight_bytes >= e->batch->len);
    p->leader.inflight_bytes -= e->batch->len;
}

/** Log a proposal of this node, not known to be decided. Takes the reference.
 */
void qn_learner_propose(struct qn_onepaxos *p, qn_slot_t slot,
                        struct qn_refbuf *batch)
{
    QN_ASSERT(p->memory == NULL); /* the memory acceptor decides at once */
    QN_ASSERT(slot > p->learned_hi);
    put(p, slot, batch, QN_SLOT_PROPOSED);
    p->leader.inflight_bytes += batch->len;
    struct qn_slice bytes = {batch->bytes, batch->len};
    note_stamp(p, qn_batch_stamp(bytes));
}

/** Forget the proposals in the slots `first` .. `last`: no acceptor will ever
 *  accept them, or their slots are known by other means. */
void qn_learner_forget_proposed(struct qn_onepaxos *p, qn_slot_t first,
                                qn_slot_t last)
{
    for (qn_slot_t s = first; s <= last && s < p->log.end; s++) {
        struct qn_log_entry *e = qn_log_at(&p->log, s);
        if (e->state == QN_SLOT_PROPOSED) {
            release_inflight(p, e);
            qn_log_erase(&p->log, s);
        }
    }
}

/** The refbuf that holds m's body: the one in which it arrived, or a copy. */
struct qn_refbuf *qn_learner_body(struct qn_onepaxos *p, const struct qn_msg *m)
{
    return m->refbuf != NULL
               ? qn_refbuf_ref(m->refbuf)
               : qn_refbuf_copy(p->alloc, m->body.data, m->body.len);
}

/** Store a learned batch in a slot that is not learned yet, with room for it.
 */
static void store(struct qn_onepaxos *p, struct qn_log_entry *e,
                  const struct qn_msg *m)
{
    if (e->state == QN_SLOT_PROPOSED && qn_entry_is(e, m->body)) {
        release_inflight(p, e);
        e->state = QN_SLOT_LEARNED;
        return;
    }
    struct qn_refbuf *b = qn_learner_body(p, m);
    if (b == NULL) {
        return;
    }
    if (e->state == QN_SLOT_PROPOSED) {
        release_inflight(p, e);
    }
    bool leads =
        p->leader.role == QN_ACTIVE || p->leader.role == QN_HANDING_OVER;
    if (leads && (e->state == QN_SLOT_PROPOSED || m->slot >= p->leader.next)) {
        qn_propose_step_down(p); /* deposed, and has not heard of it */
    }
    put(p, m->slot, b, QN_SLOT_LEARNED);
}

/** Too far ahead, or too many bytes kept beyond a gap: fetch it later. */
static bool beyond_bounds(struct qn_onepaxos *p, const struct qn_msg *m)
{
    bool next = m->slot == p->learned_hi + 1;
    return !qn_learner_make_room(p, m->slot) ||
           (!next && p->log.bytes + m->body.len > p->params.log_bytes);
}

/** Learn m->body as the batch of m->slot (LEARN or FILL). No epoch check: an
 *  accept is final, whichever node leads now. */
void qn_learner_learn(struct qn_onepaxos *p, struct qn_step *t,
                      const struct qn_msg *m)
{
    if (m->slot < p->log.lo ||
        (m->slot > p->learned_hi && beyond_bounds(p, m)) ||
        (QN_MUTANT(EPOCH_CHECK) && m->epoch != p->cfg.index)) { /* T11 */
        return;
    }
    struct qn_log_entry *e = qn_log_at(&p->log, m->slot);
    if (e->state == QN_SLOT_LEARNED) {
        QN_ASSERT(qn_entry_is(e, m->body)); /* I1: one batch per slot */
        return;
    }
    store(p, e, m);
    if (e->state == QN_SLOT_LEARNED) {
        note_stamp(p, qn_batch_stamp(m->body));
    }
    if (QN_MUTANT(NO_ORDER) && e->state == QN_SLOT_LEARNED) {
        p->learned_hi = QN_MAX(p->learned_hi, m->slot);
        p->applied = m->slot - 1;
    }
    advance(p, t->now);
}

/** Learner: a batch that is announced is decided, whichever node leads now
 *  (3.3, T11), and so are all slots up to `hi`: gaps are fetched (3.4). A
 *  long batch is only named: it is read from the ring at once (5). */
void qn_learner_on_learn(struct qn_onepaxos *p, struct qn_step *t,
                         qn_node_t from, const struct qn_msg *m)
{
    if (m->body.len != 0) {
        qn_learner_learn(p, t, m);
    }
    qn_learner_decided(p, QN_MAX(m->learn.hi, m->slot), t->now);
    if (m->body.len == 0) {
        p->catch_up.gap_since = t->now - QN_MIN(t->now, p->params.t_gap);
    }
    qn_reconfigure_behind(p, t, from, m->epoch);
}

/** A staged slot is decided now. */
void qn_learner_settle(struct qn_onepaxos *p, struct qn_step *t, qn_slot_t slot,
                       struct qn_refbuf *batch)
{
    struct qn_slice bytes = {batch->bytes, batch->len};
    if (slot < p->log.lo) {
        return;
    }
    bool room = qn_learner_make_room(p, slot);
    QN_ASSERT(room); /* window + lag fit in the ring */
    struct qn_log_entry *e = qn_log_at(&p->log, slot);
    if (e->state == QN_SLOT_LEARNED) {
        QN_ASSERT(qn_entry_is(e, bytes)); /* I1 */
        return;
    }
    if (e->state == QN_SLOT_PROPOSED) {
        release_inflight(p, e);
    }
    put(p, slot, qn_refbuf_ref(batch), QN_SLOT_LEARNED);
    note_stamp(p, qn_batch_stamp(bytes));
    advance(p, t->now);
}

/** All slots <= position are in the application's state. */
void qn_learner_restart(struct qn_onepaxos *p, qn_slot_t position,
                        qn_time_t now)
{
    qn_learner_forget_proposed(p, p->learned_hi + 1, position);
    if (position >= p->log.end) {
        qn_log_clear(&p->log, position + 1);
    } else {
        qn_log_drop(&p->log, position + 1, UINT32_MAX);
    }
    p->applied = position;
    if (position > p->learned_hi) {
        p->learned_hi = position;
        qn_log_count_from(&p->log, position);
    }
    QN_ASSERT(p->log.lo == position + 1);
    qn_learner_decided(p, p->learned_hi, now);
    qn_ring_copy_drop(&p->catch_up.reading.copy);
    p->catch_up = (struct qn_catch_up){
        .asked = p->catch_up.asked, .read = p->catch_up.read, .gap_since = now};
    advance(p, now);
}

/** Forced recovery: nothing above learned_hi was ever decided. */
void qn_learner_cut(struct qn_onepaxos *p, qn_time_t now)
{
    qn_learner_forget_proposed(p, p->learned_hi + 1, UINT64_MAX);
    QN_ASSERT(p->leader.inflight_bytes == 0); /* no P slot is left */
    qn_log_cut(&p->log, p->learned_hi + 1);
    p->decided_hi = p->learned_hi;
    p->catch_up =
        (struct qn_catch_up){.read = p->catch_up.read, .gap_since = now};
}

/** Leader: its proposal of this epoch for m->slot is decided. An epoch has
 *  one leader, and its leader proposes one batch for a slot, so the slot
 *  names the batch, which is here. To a node that does not lead this epoch
 *  any more the message only says how far the decided slots reach: it fetches
 *  what it has not learned. */
void qn_learner_on_accepted(struct qn_onepaxos *p, struct qn_step *t,
                            qn_node_t from, const struct qn_msg *m)
{
    qn_reconfigure_behind(p, t, from, m->epoch);
    if (qn_utility_entry(&p->ul, m->epoch) == NULL ||
        qn_epoch_accepted_by_other(p, m->epoch, from)) {
        return;
    }
    const struct qn_leader *l = &p->leader;
    bool leads = l->role == QN_ACTIVE || l->role == QN_HANDING_OVER;
    bool mine = leads && m->epoch == l->ep && m->slot < l->next;
    if (mine && qn_log_holds(&p->log, m->slot)) {
        struct qn_log_entry *e = qn_log_at(&p->log, m->slot);
        if (e->state == QN_SLOT_PROPOSED) {
            release_inflight(p, e);
            e->state = QN_SLOT_LEARNED;
            advance(p, t->now);
        }
    }
    qn_learner_decided(p, m->slot, t->now);
}

/* -------------------------------------------------------------- accept -- */

static struct qn_msg learn_msg(const struct qn_onepaxos *p, qn_slot_t slot,
                               struct qn_refbuf *batch)
{
    struct qn_msg m = {
        .kind = QN_MSG_LEARN,
        .epoch = p->acceptor.promised,
        .slot = slot,
        .learn = {.hi = p->acceptor.hi, .alive = p->alive},
    };
    if (p->memory == NULL || batch->len <= p->params.learn_bytes) {
        qn_msg_refer(&m, batch);
    }
    return m;
}

/** The leader of the epoch that this acceptor has promised. */
static qn_node_t promised_leader(const struct qn_onepaxos *p)
{
    if (p->memory != NULL) {
        return p->self;
    }
    const struct qn_ul_entry *e =
        qn_utility_entry(&p->ul, p->acceptor.promised);
    return e != NULL ? e->leader : p->cfg.leader;
}

/** Announce a slot that this node's acceptor holds to all but its leader, and
 *  with it all slots before. */
void qn_learner_tell(struct qn_onepaxos *p, struct qn_step *t, qn_slot_t slot)
{
    QN_ASSERT(slot <= p->acceptor.hi); /* only accepted slots are announced */
    QN_ASSERT(qn_log_at(&p->log, slot)->state == QN_SLOT_LEARNED);
    struct qn_out *o = qn_step_emit(t, QN_OUT_BCAST);
    o->to = promised_leader(p);
    o->msg = learn_msg(p, slot, qn_log_at(&p->log, slot)->batch);
}

/** Tell the leader of the promised epoch that `slot` is accepted. */
void qn_learner_accepted(struct qn_onepaxos *p, struct qn_step *t,
                         qn_slot_t slot)
{
    QN_ASSERT(slot <= p->acceptor.hi || QN_MUTANT(ACK_EARLY));
    struct qn_msg *m = qn_step_send(t, promised_leader(p), QN_MSG_ACCEPTED);
    m->epoch = p->acceptor.promised;
    m->slot = slot;
}

/** Accept a slot that this node's acceptor must take: the decision. ACCEPTED
 *  and BCAST leave before APPLY, so that a slot whose effect any client can
 *  see is known to other nodes. */
void qn_learner_accept(struct qn_onepaxos *p, struct qn_step *t,
                       qn_epoch_t epoch, qn_slot_t slot,
                       struct qn_refbuf *batch)
{
    struct qn_slice bytes = {batch->bytes, batch->len};
    struct qn_log_entry *e = qn_log_at(&p->log, slot);
    if (e->state == QN_SLOT_PROPOSED) {
        release_inflight(p, e);
    }
    if (e->state != QN_SLOT_LEARNED) { /* else nothing is added, and what it
                                          compares with must stay */
        make_bytes(p, batch->cap);
    }
    enum qn_accept done = qn_acceptor_accept(&p->acceptor, epoch, slot, batch);
    QN_ASSERT(done == QN_ACCEPT_DONE);
    QN_ASSERT(e->state == QN_SLOT_LEARNED); /* accept = decide = learn */
    if (p->nodes > 1) {
        qn_learner_accepted(p, t, slot);
    }
    if (p->nodes > 2) {
        qn_learner_tell(p, t, slot);
    }
    note_stamp(p, qn_batch_stamp(bytes));
    advance(p, t->now);
}

/* --------------------------------------------------------------- apply -- */

/** Cut off what the session has seen; commands of an incarnation older than
 *  the session's are all dropped. @return false: nothing is left. */
static bool admit(struct qn_onepaxos *p, struct qn_command_run *g)
{
    struct qn_session *s = &p->session[g->origin];
    if (g->inc < s->inc) {
        return false;
    }
    if (g->inc > s->inc) {
        *s = (struct qn_session){.inc = g->inc};
    }
    uint64_t last = g->first + g->count - 1;
    if (last <= s->last) {
        return false;
    }
    struct qn_slice dropped;
    for (; g->first <= s->last; g->first++, g->count--) {
        qn_commands_next(&g->commands, &dropped);
    }
    QN_ASSERT(g->first == s->last + 1); /* the leader lets no gap in */
    QN_ASSERT(g->count == last - s->last);
    s->last = last;
    return true;
}

static struct qn_apply *emit_apply(struct qn_onepaxos *p, struct qn_step *t,
                                   struct qn_refbuf *batch)
{
    struct qn_apply *a = &qn_step_emit(t, QN_OUT_APPLY)->apply;
    *a = (struct qn_apply){
        .slot = p->applied + 1,
        .stamp_ms = qn_batch_stamp((struct qn_slice){batch->bytes, batch->len}),
        .refbuf = qn_refbuf_ref(batch),
    };
    QN_ASSERT(a->stamp_ms <= p->stamp || QN_MUTANT(STAMP_BACK));
    return a;
}

/** Put out the rest of slot applied + 1. @return false: no outputs left. */
static bool apply_slot(struct qn_onepaxos *p, struct qn_step *t)
{
    QN_ASSERT(qn_log_at(&p->log, p->applied + 1)->state == QN_SLOT_LEARNED);
    struct qn_refbuf *b = qn_log_at(&p->log, p->applied + 1)->batch;
    struct qn_slice batch = {b->bytes, b->len};
    uint64_t count = QN_MAX(qn_batch_count(batch), 1u);
    struct qn_apply *newest = NULL;
    struct qn_command_run g;
    while (qn_step_room(t) > ROOM_KEPT) {
        if (!qn_batch_next(batch, &p->apply_at, &g)) {
            newest = newest != NULL ? newest : emit_apply(p, t, b);
            newest->last = true;
            p->apply_at = 0;
            p->applied++;
            p->apply_budget -= QN_MIN(p->apply_budget, count);
            return true;
        }
        if (admit(p, &g)) {
            newest = emit_apply(p, t, b);
            newest->run = g;
            newest->mine =
                g.origin == p->self && g.inc == p->incarnation[p->self];
            if (newest->mine) {
                qn_origin_applied(p, g.first + g.count - 1);
            }
        }
    }
    return false;
}

void qn_learner_apply(struct qn_onepaxos *p, struct qn_step *t)
{
    while (p->applied < p->learned_hi && p->apply_budget != 0 &&
           !p->apply_suspended && apply_slot(p, t)) {
    }
}
