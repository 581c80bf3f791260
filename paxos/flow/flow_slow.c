/*
 * Flow control: which members are given up as slow, and for how long (flow.h).
 *
 * How to tell a member that alone has too little of a core from members that
 * all share one? Not by the member that shuts the gate: under full load one
 * always does, and where the leader has much to send it is the same one for
 * long. Nor by how far the leader could go: while it waits it does nothing, and
 * needs no time. But another member applies the same batches, on the same
 * machine, at the same moment, and the member in question can only influence
 * when they come. So paces are compared, each over the time in which its member
 * lacked something. That time is counted from one report to the next. So it is
 * too long for a member that lacked something for a moment only: the member
 * seems slower than it is, and must not be given up for that.
 *
 * So two members that are equally slow are never given up for it. Neither is a
 * single follower: with the usual min-replicas-to-write it could not be given
 * up anyway.
 *
 * The cost of a trial is bounded by the pause. A member that is awaited again
 * and is still slow is given up at the first look. Before that, a hold for its
 * join may shut the gate for a quarter of its last pause. So a large snapshot
 * under full load gets its time, too, after some pauses.
 */
#include "core/base/assert.h"
#include "core/base/bits.h"
#include "paxos/flow/flow_internal.h"
#include "paxos/mutant.h"

bool qn_flow_joiners_pause(const struct qn_flow *f, qn_time_t until)
{
    bool one = false;
    for (qn_node_t n = 0; n < f->nodes; n++) {
        const struct qn_flow_member *m = &f->member[n];
        if (n == f->self || m->awaited) {
            continue;
        }
        if (!m->living || m->pause == 0 || until >= m->pause_over) {
            return false;
        }
        one = true;
    }
    return one;
}

static bool votes(const struct qn_flow *f, qn_node_t n)
{
    return (f->voters & QN_FLOW_BIT(n)) != 0 || QN_MUTANT(FLOW_NON_VOTER);
}

static uint32_t min_awaited(const struct qn_flow *f)
{
    QN_ASSERT(f->nodes >= 1);
    uint64_t all = UINT64_MAX >> (QN_NODES_MAX - f->nodes);
    int voters = __builtin_popcountll(f->voters & all);
    return f->limits.min_awaited != QN_FLOW_MINORITY ? f->limits.min_awaited
           : voters == 0                             ? 0
                         : (uint32_t)(voters - 1) / 2;
}

bool qn_flow_may_give_up(const struct qn_flow *f,
                         const struct qn_flow_member *m)
{
    uint32_t awaited = 0;
    uint32_t living = 0;
    for (qn_node_t n = 0; n < f->nodes; n++) {
        awaited += f->member[n].awaited && votes(f, n);
        living += f->member[n].living && votes(f, n);
    }
    return !votes(f, (qn_node_t)(m - f->member)) ||
           awaited > QN_MIN(min_awaited(f), living) || QN_MUTANT(FLOW_MIN);
}

/** The next pause of a member: twice the last one, if it has not been awaited
 *  for long since. One that was not slow has none at first. */
static void pause_begin(const struct qn_flow *f, struct qn_flow_member *m,
                        qn_time_t now, bool slow)
{
    qn_time_t first = QN_FLOW_PAUSE * f->limits.timeout;
    qn_time_t most = QN_FLOW_PAUSE_MOST * f->limits.timeout;
    bool soon = m->back_at != 0 && now - m->back_at < QN_MAX(m->pause, first);
    qn_time_t before = soon ? m->pause : 0;
    m->pause = soon || slow ? QN_MIN(QN_MAX(2 * before, first), most) : 0;
    QN_ASSERT(m->pause <= most);
    QN_ASSERT(!slow || m->pause >= first);
    m->pause_over = now + m->pause;
}

void qn_flow_give_up(struct qn_flow *f, struct qn_flow_member *m, qn_time_t now,
                     bool slow)
{
    QN_ASSERT(m->awaited);
    QN_ASSERT(m != &f->member[f->self]);
    QN_ASSERT(qn_flow_may_give_up(f, m)); /* min_awaited stay */
    pause_begin(f, m, now, slow);
    m->awaited = m->waiting = false;
    m->behind = slow;
    m->given = true;
    m->bytes = m->applied = m->read = 0;
    f->given++;
}

bool qn_flow_hold_costs(const struct qn_flow *f, qn_node_t giver, qn_time_t now)
{
    qn_time_t least = QN_TIME_NEVER;
    for (qn_node_t n = 0; n < f->nodes; n++) {
        const struct qn_flow_member *m = &f->member[n];
        if (m->living && !m->awaited) {
            least = QN_MIN(least, m->pause);
        }
    }
    return qn_flow_joiners_pause(f, 0) &&
           qn_flow_shut_by(f, giver, now) - f->member[giver].hold_shut >=
               least / 4;
}

void qn_flow_pause_joiners(struct qn_flow *f, qn_time_t now)
{
    for (qn_node_t n = 0; n < f->nodes; n++) {
        if (f->member[n].living && !f->member[n].awaited) {
            f->member[n].back_at = now; /* its chance was that hold */
            pause_begin(f, &f->member[n], now, true);
        }
    }
}

/* ---------------------------------------------------------- slow members -- */

/** What it has shown since the last look; if it lacked nothing, what it had
 *  shown before. What was read counts only for a member that is amid a long
 *  batch: it may read a batch more than once, or one that it cannot apply yet.
 */
static void pace_set(struct qn_flow_member *m)
{
    uint64_t bytes = m->pace.bytes != 0 ? m->pace.bytes : m->pace.read;
    if (m->pace.lacked >= QN_US) {
        m->shown = bytes * 1000000 / (m->pace.lacked / QN_US);
    }
}

/** Is another awaited member QN_FLOW_SLOW times as fast? */
static bool is_behind(const struct qn_flow *f, qn_node_t it)
{
    uint64_t best = 0;
    for (qn_node_t n = 0; n < f->nodes; n++) {
        if (n != it && f->member[n].awaited) {
            best = QN_MAX(best, f->member[n].shown);
        }
    }
    return f->member[it].shown < best / QN_FLOW_SLOW;
}

/** It is on its way to shut the gate. */
static bool lacks_much(const struct qn_flow *f, const struct qn_flow_member *m)
{
    return m->at.bytes > f->limits.stop_bytes / 2 ||
           m->slots > f->limits.stop_slots / 2;
}

bool qn_flow_is_slow(const struct qn_flow_member *m)
{
    return m->slow >= (m->pause != 0 ? 1 : QN_FLOW_SLOW_LOOKS) &&
           !QN_MUTANT(FLOW_SLOW);
}

/** The member has neither shut the gate nor applied anything: it is stalled,
 * and this look says nothing of its pace. */
static bool says_nothing(const struct qn_flow *f,
                         const struct qn_flow_member *m, uint64_t shut,
                         qn_time_t now)
{
    return shut <= (now - f->looked) / 2 && lacks_much(f, m) &&
           m->pace.bytes == 0 && m->pace.read == 0;
}

/** What a look finds of one member. @return true: it is slow, and has shut the
 *  gate since the last one. */
static bool slow_look(struct qn_flow *f, qn_node_t n, qn_time_t now)
{
    struct qn_flow_member *m = &f->member[n];
    uint64_t shut = qn_flow_shut_by(f, n, now) - m->pace.shut;
    if (!m->awaited || says_nothing(f, m, shut, now)) {
        return false;
    }
    bool behind = is_behind(f, n);
    bool slow = behind && (shut > (now - f->looked) / 2 || lacks_much(f, m));
    m->slow = slow ? m->slow + 1 : 0;
    m->behind = behind && (slow || m->behind);
    return shut != 0 && qn_flow_is_slow(m);
}

static void paces_begin(struct qn_flow *f, qn_time_t now)
{
    f->looked = now;
    for (qn_node_t n = 0; n < f->nodes; n++) {
        f->member[n].pace = (struct qn_flow_pace){
            .heard = now, .shut = qn_flow_shut_by(f, n, now)};
    }
}

bool qn_flow_paces_look(struct qn_flow *f, qn_time_t now)
{
    uint64_t slow = 0;
    qn_time_t since = now - QN_MIN(now, f->looked);
    uint64_t given = f->given;
    if (f->looked != 0 && since < f->limits.timeout) {
        return false;
    }
    bool due = f->looked != 0 && since < 2 * f->limits.timeout;
    for (qn_node_t n = 0; n < f->nodes && due; n++) {
        pace_set(&f->member[n]);
    }
    for (qn_node_t n = 0; n < f->nodes && due; n++) {
        slow |= slow_look(f, n, now) ? QN_FLOW_BIT(n) : 0;
    }
    for (qn_node_t n = 0; n < f->nodes && !due; n++) {
        f->member[n].slow = 0;
        f->member[n].behind = false;
    }
    for (; slow != 0; slow &= slow - 1) {
        struct qn_flow_member *m = &f->member[__builtin_ctzll(slow)];
        if (qn_flow_may_give_up(f, m)) {
            qn_flow_give_up(f, m, now, true);
        }
    }
    paces_begin(f, now);
    return f->given != given;
}

uint64_t qn_flow_followed(const struct qn_flow *f)
{
    uint64_t mask = 0;
    for (qn_node_t n = 0; n < f->nodes; n++) {
        const struct qn_flow_member *m = &f->member[n];
        mask |= n != f->self && !m->behind ? QN_FLOW_BIT(n) : 0;
    }
    return mask;
}
