/*
 * Flow control: flow.h says what it promises, flow_slow.c which member is slow
 * and for how long it is not awaited.
 *
 * A member's window. Its progress over `timeout` is compared with a floor, from
 * the moment at which the member shuts the gate. The window ends early only
 * when the member's lag has fallen below half its mark. If it ended as soon as
 * the gate opens, a member that applies one slot now and then would begin a new
 * window with each slot, and would delay all others for ever.
 *
 * Lags are kept here and grow with each decided slot, so that the gate costs
 * one comparison per member and batch.
 */
#include "paxos/flow/flow_internal.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "paxos/mutant.h"

#define FLOOR 16u /* of lag_*, in `timeout` */

/* At first the shut gate lets a stamp through every QN_FLOW_STAMP, until
 * stop_slots / STAMPS of them have passed. From then on the same number of
 * stamps passes for each factor of e by which the time since the first one
 * grows. A third of stop_slots is left for stamps, which is enough for a
 * factor of e^31. */
#define STAMPS 96u

void qn_flow_init(struct qn_flow *f, qn_node_t self, uint32_t nodes,
                  const struct qn_flow_limits *l)
{
    QN_ASSERT(l->lag_bytes != 0);
    QN_ASSERT(l->lag_bytes <= l->stop_bytes);
    QN_ASSERT(l->lag_slots != 0);
    QN_ASSERT(l->lag_slots <= l->stop_slots);
    QN_ASSERT(nodes <= QN_NODES_MAX);
    QN_ASSERT(self < nodes);
    *f = (struct qn_flow){
        .limits = *l, .self = self, .nodes = nodes, .voters = UINT64_MAX};
}

void qn_flow_voters(struct qn_flow *f, uint64_t voters)
{
    if (f->voters != voters) {
        f->voters = voters;
        f->held = false; /* the next look sets it */
    }
}

void qn_flow_change(struct qn_flow *f, qn_time_t timeout, uint32_t min_awaited)
{
    f->limits.timeout = timeout;
    f->limits.min_awaited = min_awaited;
    f->held = false; /* the next look sets it */
}

static bool quiet(const struct qn_flow_member *m, qn_time_t now)
{
    return now - QN_MIN(now, m->moved_at) > QN_FLOW_QUIET;
}

static uint64_t mark_bytes(const struct qn_flow *f,
                           const struct qn_flow_member *m, qn_time_t now)
{
    return quiet(m, now) ? f->limits.stop_bytes : m->mark_bytes;
}

static uint64_t mark_slots(const struct qn_flow *f,
                           const struct qn_flow_member *m, qn_time_t now)
{
    return quiet(m, now) ? f->limits.stop_slots : m->mark_slots;
}

/** Set the marks of a member that has just applied something and lacked
 *  `bytes` and `slots` before. What it lacked above lag_* falls half as fast
 *  as the member applies, so the leader goes on meanwhile at half the
 *  member's pace. */
static void marks_set(const struct qn_flow *f, struct qn_flow_member *m,
                      qn_time_t now, uint64_t bytes, uint64_t slots)
{
    const struct qn_flow_limits *l = &f->limits;
    QN_ASSERT(bytes >= m->at.bytes); /* its lag does not grow by a report */
    QN_ASSERT(slots >= m->slots);
    uint64_t most_bytes = QN_MIN(mark_bytes(f, m, now), bytes);
    uint64_t most_slots = QN_MIN(mark_slots(f, m, now), slots);
    most_bytes -= QN_MIN(most_bytes, (bytes - m->at.bytes) / 2);
    most_slots -= QN_MIN(most_slots, (slots - m->slots) / 2);
    m->mark_bytes = QN_MAX(most_bytes, l->lag_bytes);
    m->mark_slots = QN_MAX(most_slots, l->lag_slots);
}

static void window_begin(struct qn_flow_member *m, qn_time_t now)
{
    m->waiting = true;
    m->since = now;
    m->bytes = m->applied = m->read = 0;
}

static void open(struct qn_flow_member *m, qn_time_t now)
{
    if (m->shut_at != 0) {
        m->shut += now - QN_MIN(now, m->shut_at);
    }
    m->shut_at = 0;
}

void qn_flow_begin(struct qn_flow *f, qn_time_t now, uint64_t living,
                   const struct qn_flow_place *at)
{
    f->held = false;
    f->shut_at = f->looked = f->stamp_at = f->passed_at = 0;
    for (qn_node_t n = 0; n < f->nodes; n++) {
        struct qn_flow_member *m = &f->member[n];
        bool lives = n != f->self && (living & QN_FLOW_BIT(n)) != 0;
        *m = (struct qn_flow_member){
            .living = lives,
            .awaited = lives && at[n].kept,
            .at = at[n],
            .shut = m->shut,
            .moved_at = now,
            .mark_bytes = QN_MAX(f->limits.lag_bytes, at[n].bytes),
            .mark_slots = f->limits.stop_slots,
        };
    }
    /* The leader waits for other members only. */
    QN_ASSERT(!f->member[f->self].awaited);
}

/* Take a report of the slots that the member has applied. */
static void lag_set(struct qn_flow_member *m, qn_time_t now,
                    struct qn_flow_place at)
{
    QN_ASSERT(at.applied >= m->at.applied); /* applied never falls */
    uint64_t moved = at.applied - m->at.applied;
    uint64_t bytes = m->at.bytes - QN_MIN(m->at.bytes, at.bytes);
    uint64_t read = at.read - QN_MIN(at.read, m->at.read);
    m->bytes += bytes;
    m->applied += moved;
    m->read += read;
    m->pace.bytes += bytes;
    m->pace.read += read;
    m->pace.lacked += m->slots != 0 ? now - QN_MIN(now, m->pace.heard) : 0;
    m->pace.heard = now;
    m->slots -= QN_MIN(m->slots, moved);
    m->at = at;
}

static bool below_floor(const struct qn_flow *f, const struct qn_flow_member *m)
{
    return QN_MAX(m->bytes, m->read) < f->limits.lag_bytes / FLOOR &&
           m->applied < QN_MAX(f->limits.lag_slots / FLOOR, 1u);
}

/** May the member be awaited again? It applies again, and its next slot is
 *  kept. A member that was given up has to apply as much as an awaited member
 *  must, or lack nearly nothing. Otherwise two members that apply a slot now
 *  and then would delay all others in turn, each with a new window. After a
 *  pause it has to have caught up while no member waited for it. */
static bool returns(const struct qn_flow *f, const struct qn_flow_member *m,
                    qn_time_t now)
{
    bool near =
        m->at.bytes < f->limits.lag_bytes && m->slots < f->limits.lag_slots;
    bool well = m->pause == 0 ? !m->given || !below_floor(f, m) || near
                              : near && now >= m->pause_over;
    return (well || QN_MUTANT(FLOW_NO_PAUSE)) &&
           (m->at.kept || QN_MUTANT(FLOW_RETURN));
}

void qn_flow_heard(struct qn_flow *f, qn_time_t now, qn_node_t n,
                   struct qn_flow_place at)
{
    struct qn_flow_member *m = &f->member[n];
    bool moved = at.applied > m->at.applied;
    uint64_t bytes = QN_MAX(m->at.bytes, at.bytes);
    uint64_t slots = m->slots;
    if (n == f->self || at.applied < m->at.applied) {
        return;
    }
    m->living = true;
    lag_set(m, now, at);
    if (!moved) {
        return;
    }
    if (!m->awaited && returns(f, m, now)) {
        m->awaited = true;
        m->back_at = now;
        m->slow = 0;
        m->behind = false;
        m->waiting = m->given = false;
        m->moved_at = 0; /* as after a stop: its mark is the lag that it has */
        f->held = false;
    }
    marks_set(f, m, now, bytes, slots);
    QN_ASSERT(m->mark_bytes >= f->limits.lag_bytes);
    QN_ASSERT(m->mark_slots >= f->limits.lag_slots);
    m->moved_at = now;
    if (m->at.bytes < m->mark_bytes / 2 && m->slots < m->mark_slots / 2) {
        m->waiting = false;
    }
}

void qn_flow_keep(struct qn_flow *f, qn_time_t now, qn_node_t n,
                  struct qn_flow_hold hold, struct qn_flow_kept since)
{
    QN_ASSERT(n < f->nodes);
    struct qn_flow_member *m = &f->member[n];
    bool same = hold.slot == m->hold.slot;
    if (!since.kept || hold.slot == m->hold_over ||
        qn_flow_joiners_pause(f, now)) {
        hold.slot = 0;
    }
    if (!same) {
        m->hold_shut = qn_flow_shut_by(f, n, now);
    }
    if (!same || hold.done != m->hold.done) {
        m->hold_moved = now;
    }
    m->hold = hold;
    m->hold_bytes = since.bytes;
    m->hold_slots = since.slots;
}

void qn_flow_down(struct qn_flow *f, qn_time_t now, qn_node_t n)
{
    QN_ASSERT(n < f->nodes);
    QN_ASSERT(n != f->self);
    struct qn_flow_member *m = &f->member[n];
    open(m, now);
    f->held = false;
    *m = (struct qn_flow_member){.shut = m->shut};
}

void qn_flow_decided(struct qn_flow *f, uint64_t bytes)
{
    for (qn_node_t n = 0; n < f->nodes; n++) {
        struct qn_flow_member *m = &f->member[n];
        m->at.bytes += bytes;
        m->slots++;
        m->hold_bytes += bytes;
        m->hold_slots++;
    }
}

/* ---- the gate ------------------------------------------------------------ */

static bool member_shuts(const struct qn_flow *f,
                         const struct qn_flow_member *m, qn_time_t now,
                         uint64_t bytes)
{
    return m->awaited && m->at.bytes != 0 &&
           (m->at.bytes + bytes > mark_bytes(f, m, now) ||
            m->slots + 1 > mark_slots(f, m, now));
}

static bool hold_shuts(const struct qn_flow *f, const struct qn_flow_member *m,
                       uint64_t bytes)
{
    const struct qn_flow_limits *l = &f->limits;
    uint64_t done = QN_MIN(m->hold.done, QN_HOLD_DONE);
    QN_DASSERT(qn_flow_hold_mark(l->stop_bytes, done) <= l->stop_bytes);
    return m->hold.slot != 0 && m->hold_bytes != 0 &&
           (m->hold_bytes + bytes > qn_flow_hold_mark(l->stop_bytes, done) ||
            m->hold_slots + 1 > qn_flow_hold_mark(l->stop_slots, done));
}

struct qn_flow_by qn_flow_shuts(const struct qn_flow *f, qn_time_t now,
                                uint64_t bytes)
{
    struct qn_flow_by by = {0, 0};
    for (qn_node_t n = 0; n < f->nodes && !QN_MUTANT(FLOW_BLIND); n++) {
        const struct qn_flow_member *m = &f->member[n];
        by.members |= member_shuts(f, m, now, bytes) ? QN_FLOW_BIT(n) : 0;
        by.holds |= hold_shuts(f, m, bytes) ? QN_FLOW_BIT(n) : 0;
    }
    QN_ASSERT((by.members & QN_FLOW_BIT(f->self)) == 0);
    return by;
}

struct qn_flow_by qn_flow_oldest(const struct qn_flow *f)
{
    struct qn_flow_by by = {0, 0};
    qn_slot_t first = qn_flow_first(f);
    for (qn_node_t n = 0; n < f->nodes; n++) {
        const struct qn_flow_member *m = &f->member[n];
        bool lacks = m->awaited && m->at.applied + 1 == first;
        by.members |= lacks ? QN_FLOW_BIT(n) : 0;
        by.holds |=
            m->hold.slot != 0 && m->hold.slot == first ? QN_FLOW_BIT(n) : 0;
    }
    return by;
}

/** The member forbids a batch. @return true: it is given up. */
static bool member_look(struct qn_flow *f, struct qn_flow_member *m,
                        qn_time_t now)
{
    if (qn_flow_is_slow(m) && qn_flow_may_give_up(f, m)) {
        qn_flow_give_up(f, m, now, true);
        return true;
    }
    if (!m->waiting) {
        window_begin(m, now);
    }
    if (now - m->since < f->limits.timeout) {
        return false;
    }
    if (!below_floor(f, m)) {
        window_begin(m, now);
        return false;
    }
    if (!qn_flow_may_give_up(f, m)) {
        f->held = true;
        return false;
    }
    qn_flow_give_up(f, m, now, false);
    return true;
}

static void hold_end(struct qn_flow *f, struct qn_flow_member *m)
{
    QN_ASSERT(m->hold.slot != 0);
    m->hold_over = m->hold.slot;
    m->hold.slot = 0;
    f->holds++;
}

static bool hold_look(struct qn_flow *f, qn_node_t giver, qn_time_t now)
{
    struct qn_flow_member *m = &f->member[giver];
    if (m->hold.slot == 0) {
        return false;
    }
    if (now - m->hold_moved >= 2 * f->limits.timeout) {
        hold_end(f, m);
        return true;
    }
    if (!qn_flow_hold_costs(f, giver, now)) {
        return false;
    }
    hold_end(f, m);
    qn_flow_pause_joiners(f, now);
    return true;
}

/** Count how long each member has shut the gate, and how long the gate was
 *  shut. */
static void time_count(struct qn_flow *f, qn_time_t now, struct qn_flow_by by)
{
    uint64_t all = by.members | by.holds;
    for (qn_node_t n = 0; n < f->nodes; n++) {
        struct qn_flow_member *m = &f->member[n];
        if ((all & QN_FLOW_BIT(n)) == 0) {
            open(m, now);
        } else if (m->shut_at == 0) {
            m->shut_at = now;
        }
    }
    if (all != 0) {
        f->shut_at = f->shut_at != 0 ? f->shut_at : now;
    } else if (f->shut_at != 0) {
        f->shut += now - QN_MIN(now, f->shut_at);
        f->shut_at = 0;
        f->held = false;
    }
}

bool qn_flow_look(struct qn_flow *f, qn_time_t now, struct qn_flow_by by)
{
    time_count(f, now, by);
    bool changed = qn_flow_paces_look(f, now);
    for (qn_node_t n = 0; n < f->nodes; n++) {
        struct qn_flow_member *m = &f->member[n];
        if ((by.members & QN_FLOW_BIT(n)) != 0 && m->awaited &&
            member_look(f, m, now)) {
            changed = true;
        }
        if ((by.holds & QN_FLOW_BIT(n)) != 0 && hold_look(f, n, now)) {
            changed = true;
        }
    }
    return changed;
}

/* ---- what is kept -------------------------------------------------------- */

qn_slot_t qn_flow_first(const struct qn_flow *f)
{
    qn_slot_t first = UINT64_MAX;
    for (qn_node_t n = 0; n < f->nodes && !QN_MUTANT(FLOW_OVERWRITE); n++) {
        const struct qn_flow_member *m = &f->member[n];
        if (m->awaited) {
            first = QN_MIN(first, m->at.applied + 1);
        }
        if (m->hold.slot != 0) {
            first = QN_MIN(first, m->hold.slot);
        }
    }
    return first;
}

uint64_t qn_flow_awaited(const struct qn_flow *f)
{
    uint64_t mask = 0;
    for (qn_node_t n = 0; n < f->nodes; n++) {
        mask |= f->member[n].awaited ? QN_FLOW_BIT(n) : 0;
    }
    return mask;
}

void qn_flow_stamped(struct qn_flow *f, qn_time_t now, bool passes)
{
    uint64_t part = QN_MAX(f->limits.stop_slots / STAMPS, 1u);
    if (!passes) {
        f->passed_at = 0;
    } else if (f->passed_at == 0) {
        f->passed_at = now;
    }
    qn_time_t since =
        passes && !QN_MUTANT(FLOW_STAMPS) ? now - f->passed_at : 0;
    f->stamp_at = now + QN_MAX(QN_FLOW_STAMP, since / part);
}

uint64_t qn_flow_shut_by(const struct qn_flow *f, qn_node_t n, qn_time_t now)
{
    const struct qn_flow_member *m = &f->member[n];
    return m->shut + (m->shut_at != 0 ? now - QN_MIN(now, m->shut_at) : 0);
}

uint64_t qn_flow_shut(const struct qn_flow *f, qn_time_t now)
{
    return f->shut + (f->shut_at != 0 ? now - QN_MIN(now, f->shut_at) : 0);
}
