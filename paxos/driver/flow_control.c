/*
 * One look compares three numbers of a peer, all in slots: what it has applied
 * since the last look (its pace), what the leader has learned since (the pace
 * that it would have to keep), and what it lacks. While there is a delay the
 * leader's pace is of its own choice, so only what a peer lacks counts then.
 */
#include "paxos/driver/flow_control.h"

#include "core/base/assert.h"
#include "core/base/bits.h"

enum {
    LOOKS = 2 /* in a row */
};

static bool anew(const struct qn_flow_control *t, qn_time_t now)
{
    return t->last_check == 0 ||
           now - t->last_check > 2 * QN_FLOW_CONTROL_INTERVAL;
}

bool qn_flow_control_due(const struct qn_flow_control *t, qn_time_t now)
{
    return t->last_check == 0 ||
           now - t->last_check >= QN_FLOW_CONTROL_INTERVAL;
}

/* @return its pace if it cannot follow; else UINT64_MAX. */
static uint64_t applied_rate(const struct qn_flow_control *t,
                             struct qn_flow_control_peer *p, qn_slot_t learned,
                             qn_slot_t applied)
{
    /* A new incarnation begins below. */
    uint64_t done = applied > p->applied ? applied - p->applied : 0;
    uint64_t lacks = learned > applied ? learned - applied : 0;
    bool slow = done != 0 && lacks > done &&
                (t->delay != 0 || done < learned - t->learned);
    p->slow = slow ? p->slow + 1 : 0;
    return p->slow >= LOOKS ? done : UINT64_MAX;
}

qn_time_t qn_flow_control_look(struct qn_flow_control *t, qn_time_t now,
                               qn_slot_t learned, const qn_slot_t *applied,
                               uint64_t peers)
{
    uint64_t slowest = UINT64_MAX;
    QN_ASSERT(now >= t->last_check);
    QN_ASSERT(learned >= t->learned);
    bool begins = anew(t, now);
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        struct qn_flow_control_peer *p = &t->peer[i];
        if (begins || (peers >> i & 1) == 0) {
            p->slow = 0;
        } else {
            uint64_t done = applied_rate(t, p, learned, applied[i]);
            slowest = QN_MIN(slowest, done);
        }
        p->applied = applied[i];
    }
    t->delay = slowest == UINT64_MAX
                   ? 0
                   : QN_MIN((now - t->last_check) * 4 / (3 * slowest),
                            QN_FLOW_CONTROL_DELAY_MAX);
    QN_ASSERT(slowest != 0);
    QN_ASSERT(t->delay <= QN_FLOW_CONTROL_DELAY_MAX);
    QN_ASSERT(t->delay == 0 || qn_flow_control_for(t) != 0);
    QN_ASSERT((qn_flow_control_for(t) & ~peers) == 0);
    t->last_check = now;
    t->learned = learned;
    return t->delay;
}

uint64_t qn_flow_control_for(const struct qn_flow_control *t)
{
    uint64_t mask = 0;
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        mask |= (uint64_t)(t->peer[i].slow >= LOOKS) << i;
    }
    return mask;
}
