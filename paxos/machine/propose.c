/*
 * The proposer: requests become batches, batches get slots (PROTOCOL.md 3.3).
 *
 * What waits for a slot is in the queue (queue.h). The leader fills a slot: it
 * opens the oldest batch, stamps it and sends ACCEPT.
 *
 * A session accepts sequence last + 1 only. `seen` is the newest sequence of an
 * origin that is applied, in the log or in the queue. Commands at or below it
 * are dropped here (apply would drop them, too). Commands that leave a gap are
 * refused with REDIRECT to the leader itself, which makes the origin send
 * everything unapplied again, in order.
 */
#include "paxos/machine/onepaxos_internal.h"
#include "paxos/mutant.h"

#define ROOM_KEPT 8u /* outputs left for apply and fetch */

/** While there is an interval between slots, a late turn makes up for the
 *  slots that it has missed within this time. */
#define LATE_MOST (10 * QN_MS)

/** While the gate is shut: the longest time from one look at it to the next. */
#define SHUT_LOOK (10 * QN_MS)

/* ------------------------------------------------------------ requests -- */

static struct qn_session *seen_of(struct qn_onepaxos *p, qn_node_t origin)
{
    struct qn_session *seen = &p->leader.seen[origin];
    const struct qn_session *applied = &p->session[origin];
    if (seen->inc != p->incarnation[origin]) {
        *seen = (struct qn_session){.inc = p->incarnation[origin]};
    }
    if (applied->inc == seen->inc && applied->last > seen->last &&
        !QN_MUTANT(NO_SESSION)) {
        seen->last = applied->last;
    }
    return seen;
}

/**
 * Queue commands of `from`, the first of which has sequence `first`.
 * *again set if there is a gap before them.
 * @return QN_OK: queued, duplicate or gap; QN_EAGAIN: the queue is full;
 *         QN_ENOMEM. Then nothing has changed.
 */
int qn_propose_request(struct qn_onepaxos *p, qn_node_t from, uint64_t first,
                       struct qn_slice commands, bool *again)
{
    struct qn_wants w;
    int checked = qn_wanted_check(commands, &w);
    uint32_t count = w.count;
    QN_ASSERT(p->leader.role == QN_ACTIVE);
    QN_ASSERT(checked == QN_OK);
    QN_ASSERT(count != 0);
    struct qn_session *seen = seen_of(p, from);
    uint64_t last = first + count - 1;
    if (QN_MUTANT(NO_SEEN)) {
        seen->last = first - 1;
    }
    if (last <= seen->last) {
        return QN_OK;
    }
    *again = first > seen->last + 1;
    if (*again) {
        return QN_OK;
    }
    if (p->leader.queue.commands + count > p->params.queue) {
        return QN_EAGAIN;
    }
    struct qn_wanted dropped;
    bool overlaps = first <= seen->last;
    for (; first <= seen->last; first++, count--) {
        qn_wanted_next(&commands, &dropped);
    }
    if (overlaps) {
        (void)qn_wanted_check(commands, &w);
    }
    struct qn_command_run g = {.origin = from,
                               .inc = seen->inc,
                               .first = first,
                               .count = count,
                               .commands = commands};
    QN_ASSERT(first == seen->last + 1); /* no gap, no command twice */
    QN_ASSERT(count == last - seen->last);
    int err = qn_queue_add(&p->leader.queue, p->alloc, &p->params, &g, &w);
    if (err == QN_OK) {
        QN_ASSERT(p->leader.queue.commands <= p->params.queue);
        seen->last = last;
        p->leader.asked &= ~QN_BIT(from);
    }
    return err;
}

static void redirect(struct qn_onepaxos *p, struct qn_step *t, qn_node_t to)
{
    struct qn_msg *m = qn_step_send(t, to, QN_MSG_REDIRECT);
    m->epoch = p->cfg.index;
    m->redirect.leader = p->cfg.leader;
    m->redirect.leader_inc = p->cfg.leader_inc;
}

/** Of a removed member, that its membership has ended: its entry begins no
 * epoch, so if that is lost nothing else tells it. It gets the log, once. */
static void tell(struct qn_onepaxos *p, struct qn_step *t, qn_node_t to)
{
    struct qn_refbuf *b = (p->leader.told & QN_BIT(to)) == 0
                              ? qn_utility_suffix(&p->ul, 0)
                              : NULL;
    if (b != NULL) {
        struct qn_msg *m = qn_step_send(t, to, QN_MSG_U_CHOSEN);
        m->epoch = p->ul.lo;
        qn_msg_refer(m, b);
        qn_refbuf_unref(b);
        p->leader.told |= QN_BIT(to);
    }
}

static bool is_removed(const struct qn_onepaxos *p, qn_node_t n)
{
    return p->incarnation[n] <= p->change.ended[n];
}

/** What is queued of removed members goes, but for a batch of which a part is
 *  in the ring: that one is decided. Those that live may wait for it, and are
 *  told. */
static void forget(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_leader *l = &p->leader;
    for (uint64_t left = l->begun ? 0 : l->removed; left != 0;
         left &= left - 1) {
        qn_node_t n = (qn_node_t)__builtin_ctzll(left);
        qn_queue_drop(&l->queue, n, p->change.ended[n]);
        bool hears = l->role == QN_ACTIVE && is_removed(p, n) &&
                     (p->alive & QN_BIT(n)) != 0;
        if (hears) {
            tell(p, t, n);
        }
        if (!hears || (l->told & QN_BIT(n)) != 0) {
            l->removed &= ~QN_BIT(n);
        }
    }
}

/** Leader: take what follows the origin's last command, drop what is taken
 *  already, and ask for everything again if there is a gap (3.3). A node that
 *  does not lead, or has not applied all that it took over, takes nothing. */
int qn_propose_on_request(struct qn_onepaxos *p, struct qn_step *t,
                          qn_node_t from, const struct qn_msg *m)
{
    struct qn_wants w;
    if (is_removed(p, from)) {
        tell(p, t, from);
        return QN_OK;
    }
    int checked = qn_queue_check(&p->params, p->uploads, from,
                                 p->incarnation[from], m->body, &w);
    if (checked != QN_OK) {
        return checked == QN_ESTALE ? QN_OK : checked; /* it has ended */
    }
    if (p->leader.role != QN_ACTIVE || p->origin.ready != p->cfg.index) {
        return QN_OK; /* REDIRECT tells origins when to send, and to which node
                       */
    }
    if (w.count == 0) {
        p->leader.want_stamp = true;
        return QN_OK;
    }
    bool again = false;
    int err = qn_propose_request(p, from, m->slot, m->body, &again);
    if (err != QN_OK) {
        /* Not refused: messages behind it in the channel (ACCEPTED, FILL)
         * may make room. The origin sends it again when there is some. */
        p->leader.owed |= QN_BIT(from);
        p->leader.asked |= QN_BIT(from);
        p->retry_at = err == QN_ENOMEM ? t->now + p->params.t_gap : p->retry_at;
    } else if (again && (p->leader.asked & QN_BIT(from)) == 0) {
        /* Once: the origin's requests behind this one have a gap, too. */
        p->leader.asked |= QN_BIT(from);
        redirect(p, t, from);
    }
    return QN_OK;
}

/** The oldest batch takes more than one turn: the next part in the next. */
bool qn_propose_is_busy(const struct qn_onepaxos *p)
{
    return p->leader.begun || p->leader.queue.opening.whole != NULL;
}

/** True if origins whose requests found no room may send them again. */
bool qn_propose_may_ask(const struct qn_onepaxos *p)
{
    const struct qn_leader *l = &p->leader;
    return l->owed != 0 && l->queue.commands <= p->params.queue / 2;
}

static void ask_again(struct qn_onepaxos *p, struct qn_step *t)
{
    while (qn_propose_may_ask(p) && qn_step_room(t) > ROOM_KEPT) {
        qn_node_t n = (qn_node_t)__builtin_ctzll(p->leader.owed);
        QN_ASSERT(n < p->nodes);
        p->leader.owed &= p->leader.owed - 1;
        redirect(p, t, n);
    }
}

/* --------------------------------------------------------------- slots -- */

static uint64_t in_flight(const struct qn_onepaxos *p)
{
    return p->leader.next - 1 - p->learned_hi;
}

/** What would fill the next slot now. */
enum next { NOTHING, STAMP, BATCH };

static bool waiting(const struct qn_leader *l)
{
    return !qn_queue_empty(&l->queue);
}

/** Bytes of the batch that would fill the next slot if the gate were open. */
static uint64_t next_bytes(const struct qn_leader *l)
{
    return waiting(l) ? qn_queue_bytes(&l->queue) : QN_BATCH_HEAD;
}

/** The members that shut the gate for a batch of `bytes` (3.6). The ring may
 *  have no place for it either, as long as a member needs the slots that lie
 *  there. */
static struct qn_flow_by shut_by(const struct qn_onepaxos *p, qn_time_t now,
                                 uint64_t bytes)
{
    const struct qn_flow *f = &p->leader.flow;
    struct qn_flow_by by = qn_flow_shuts(f, now, bytes);
    if (by.members == 0 && by.holds == 0 && p->memory != NULL &&
        !qn_memory_leader_fits(p, bytes, false) &&
        qn_memory_leader_fits(p, bytes, true)) {
        by = qn_flow_oldest(f);
    }
    return by;
}

static bool fits(const struct qn_onepaxos *p, uint64_t bytes)
{
    return p->memory != NULL
               ? qn_memory_leader_fits(p, bytes, false)
               : in_flight(p) == 0 ||
                     p->leader.inflight_bytes + bytes <= p->params.window_bytes;
}

static bool is_open(const struct qn_onepaxos *p, qn_time_t now, uint64_t bytes)
{
    struct qn_flow_by by = qn_flow_shuts(&p->leader.flow, now, bytes);
    return by.members == 0 && by.holds == 0 && fits(p, bytes);
}

/** The leader has enough to apply: clients that wait for a reply wait for
 *  that. */
static bool ahead(const struct qn_onepaxos *p)
{
    return qn_log_bytes_above(&p->log, p->applied) >= p->params.ahead_bytes;
}

static enum next next_fill(const struct qn_onepaxos *p, qn_time_t now)
{
    const struct qn_leader *l = &p->leader;
    if (l->role != QN_ACTIVE || in_flight(p) >= p->params.window) {
        return NOTHING;
    }
    if (l->begun) {
        return fits(p, next_bytes(l)) ? BATCH : NOTHING;
    }
    if ((waiting(l) || l->want_stamp) && !ahead(p) &&
        is_open(p, now, next_bytes(l))) {
        return waiting(l) ? BATCH : STAMP;
    }
    /* Time goes on in the log though the gate is shut, or nothing expires. */
    bool passes =
        l->want_stamp && now >= l->flow.stamp_at && fits(p, QN_BATCH_HEAD);
    return passes ? STAMP : NOTHING;
}

/** When a slot can be filled, as far as only time is missing. While the gate
 *  is shut, the members that shut it are looked at again. */
qn_time_t qn_propose_deadline(const struct qn_onepaxos *p, qn_time_t now)
{
    const struct qn_leader *l = &p->leader;
    if (next_fill(p, now) != NOTHING) {
        return QN_MAX(QN_MAX(p->retry_at, l->fill_at), now);
    }
    return l->role == QN_ACTIVE && l->flow.shut_at != 0 ? now + SHUT_LOOK
                                                        : QN_TIME_NEVER;
}

/** The position of a peer, as it reported last. */
static struct qn_flow_place place_of(const struct qn_onepaxos *p, qn_node_t n)
{
    qn_slot_t applied = p->peer[n].applied;
    qn_slot_t lo = p->memory != NULL ? p->memory->own.lo : p->log.lo;
    return (struct qn_flow_place){.applied = applied,
                                  .bytes = qn_log_bytes_above(&p->log, applied),
                                  .kept = applied + 1 >= lo,
                                  .read = p->peer[n].read};
}

/** This node leads from now on. */
void qn_propose_begin(struct qn_onepaxos *p, qn_time_t now)
{
    struct qn_flow_place at[QN_NODES_MAX];
    QN_ASSERT(p->leader.role == QN_ACTIVE);
    QN_ASSERT(qn_queue_empty(&p->leader.queue)); /* of an older epoch nothing */
    for (qn_node_t n = 0; n < p->nodes; n++) {
        at[n] = place_of(p, n);
    }
    qn_flow_begin(&p->leader.flow, now, p->alive, at);
}

/** A peer, or this node, has reported its position and what it holds. */
void qn_propose_heard(struct qn_onepaxos *p, qn_time_t now, qn_node_t peer)
{
    if (p->leader.role != QN_ACTIVE) {
        return;
    }
    struct qn_flow_hold hold = p->peer[peer].hold;
    qn_slot_t before = hold.slot - (hold.slot != 0);
    qn_slot_t lo = p->memory != NULL ? p->memory->own.lo : p->log.lo;
    qn_flow_heard(&p->leader.flow, now, peer, place_of(p, peer));
    struct qn_flow_kept since = {.bytes = qn_log_bytes_above(&p->log, before),
                                 .slots = p->learned_hi -
                                          QN_MIN(before, p->learned_hi),
                                 .kept = hold.slot >= lo};
    qn_flow_keep(&p->leader.flow, now, peer, hold, since);
}

/** A command of that incarnation cannot be had, so the commands behind it
 *  cannot either. An origin that lives sends them again: they have not been
 *  applied. */
static void drop(struct qn_onepaxos *p, struct qn_step *t,
                 const struct qn_command_run *lost)
{
    struct qn_session *seen = &p->leader.seen[lost->origin];
    bool lives = p->incarnation[lost->origin] == lost->inc &&
                 (p->alive & QN_BIT(lost->origin)) != 0;
    qn_queue_drop(&p->leader.queue, lost->origin, lost->inc);
    if (seen->inc == lost->inc) {
        seen->last = QN_MIN(seen->last, lost->first - 1);
    }
    if (lives && lost->origin != p->self) {
        p->leader.asked |= QN_BIT(lost->origin);
        redirect(p, t, lost->origin);
    }
}

/** The oldest batch is open: all of its commands are here. A long one takes
 *  more than one turn. @return false: not now. */
static bool is_whole(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_command_run lost;
    size_t most = qn_memory_leader_step_bytes(p);
    int64_t left =
        qn_queue_open(&p->leader.queue, p->alloc, p->uploads, most, &lost);
    if (left == QN_ESTALE) {
        drop(p, t, &lost);
    } else if (left == QN_ENOMEM) {
        p->retry_at = t->now + p->params.t_gap;
    }
    return left == 0;
}

static void stamp(struct qn_onepaxos *p, struct qn_step *t, struct qn_refbuf *b)
{
    p->stamp =
        QN_MUTANT(STAMP_BACK) ? t->wall_ms : QN_MAX(p->stamp, t->wall_ms);
    qn_batch_set_stamp(b, p->stamp);
}

/** Memory acceptor: the next batch is in the ring except for its entry, or
 *  there is at least a place for it. A long batch takes more than one turn.
 *  @return false: not now. */
static bool in_ring(struct qn_onepaxos *p, struct qn_step *t, enum next next)
{
    struct qn_leader *l = &p->leader;
    size_t len = next == STAMP ? QN_BATCH_HEAD : next_bytes(l);
    if (!l->begun && !qn_memory_leader_make_room(p, t, len)) {
        return false;
    }
    if (next == STAMP) {
        return true;
    }
    struct qn_refbuf *b = qn_queue_head(&l->queue);
    QN_ASSERT(b->len <= len); /* there is room for all of it */
    if (!l->begun) {
        l->begun = true;
        stamp(p, t, b);
    }
    return qn_memory_leader_put(p, b);
}

/** No ACCEPT is sent unless role == ACTIVE. */
static void propose(struct qn_onepaxos *p, struct qn_step *t,
                    struct qn_refbuf *b)
{
    struct qn_leader *l = &p->leader;
    QN_ASSERT(l->role == QN_ACTIVE);
    QN_ASSERT(in_flight(p) < p->params.window);
    qn_slot_t slot = l->next;
    QN_ASSERT(slot > p->learned_hi); /* a decided slot is not proposed again */
    QN_ASSERT(slot <= QN_SLOT_MAX);
    QN_ASSERT(qn_batch_count((struct qn_slice){b->bytes, b->len}) <=
              p->params.queue);
    l->next += QN_MUTANT(REUSE_SLOT) && slot % 7 == 0 ? 0 : 1;
    if (!l->begun) {
        stamp(p, t, b);
    }
    l->begun = false;
    bool room = qn_learner_make_room(p, slot);
    QN_ASSERT(room); /* the window is smaller than the ring */
    if (p->memory != NULL) {
        (void)qn_memory_leader_accept(p, t, slot, b);
        return;
    }
    qn_learner_propose(p, slot, b);
    if (p->cfg.acceptor == p->self) {
        qn_learner_accept(p, t, l->ep, slot, b);
        return;
    }
    struct qn_msg *m = qn_step_send(t, p->cfg.acceptor, QN_MSG_ACCEPT);
    m->epoch = l->ep;
    m->slot = slot;
    qn_msg_refer(m, b);
    if (QN_MUTANT(EARLY_DECIDE)) {
        m->kind = QN_MSG_LEARN;
        qn_learner_learn(p, t, m);
        m->kind = QN_MSG_ACCEPT;
    }
}

/** A slot was filled. */
static void interval_leave(struct qn_leader *l, qn_time_t now)
{
    qn_time_t due = l->fill_at != 0 ? l->fill_at : now;
    l->fill_at = QN_MAX(due, now - QN_MIN(now, LATE_MOST)) + l->interval;
    QN_ASSERT(l->fill_at >= due); /* a slot is never filled before its time */
}

/** What is next. Members that have shut the gate for too long are given up
 *  first. */
static enum next look(struct qn_onepaxos *p, qn_time_t now)
{
    struct qn_leader *l = &p->leader;
    struct qn_flow_by by;
    bool wants = l->role == QN_ACTIVE && !l->begun &&
                 (waiting(l) || l->want_stamp) && !ahead(p);
    do {
        by = wants ? shut_by(p, now, next_bytes(l)) : (struct qn_flow_by){0};
    } while (l->role == QN_ACTIVE && qn_flow_look(&l->flow, now, by));
    return next_fill(p, now);
}

void qn_propose_fill(struct qn_onepaxos *p, struct qn_step *t)
{
    struct qn_leader *l = &p->leader;
    enum next next;
    forget(p, t);
    ask_again(p, t);
    while ((next = look(p, t->now)) != NOTHING && t->now >= l->fill_at &&
           qn_step_room(t) > ROOM_KEPT) {
        if ((next == BATCH && !is_whole(p, t)) ||
            (p->memory != NULL && !in_ring(p, t, next))) {
            return;
        }
        struct qn_refbuf *b = next == STAMP ? qn_batch_create(p->alloc, 0)
                                            : qn_queue_take(&l->queue);
        if (b == NULL) {
            p->retry_at = t->now + p->params.t_gap;
            return;
        }
        qn_flow_stamped(&l->flow, t->now,
                        next == STAMP && !is_open(p, t->now, next_bytes(l)));
        l->want_stamp = false; /* any batch carries one */
        propose(p, t, b);
        if (l->interval != 0) {
            interval_leave(l, t->now);
        }
    }
}

/** Deposed: propose nothing more. The log stays, P slots included. What is
 *  queued was never begun, and its origins still keep it. */
void qn_propose_step_down(struct qn_onepaxos *p)
{
    struct qn_leader *l = &p->leader;
    if (p->memory != NULL && l->role != QN_FOLLOWER) {
        qn_memory_acceptor_claim(p->memory, false);
    }
    l->role = QN_FOLLOWER;
    qn_queue_clear(&l->queue);
    l->owed = l->removed = l->told = 0;
    l->want_stamp = l->begun = false;
}

/** A later epoch is promised: this node is deposed. If an acceptor that has
 *  promised nothing later refuses a PREPARE, it is not active, which counts
 *  as dead. */
void qn_propose_on_nack(struct qn_onepaxos *p, struct qn_step *t,
                        qn_node_t from, const struct qn_msg *m)
{
    if (qn_epoch_accepted_by_other(p, p->leader.ep, from)) {
        return;
    }
    if (m->epoch > p->leader.ep) {
        if (p->leader.role != QN_FOLLOWER) {
            qn_propose_step_down(p);
        }
        qn_reconfigure_behind(p, t, from, m->epoch);
    } else if (m->slot == 0 && from == p->cfg.acceptor) {
        p->change.refused = true;
    }
}
