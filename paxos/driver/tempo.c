/*
 * One look compares three numbers of a peer, all in slots: what it has applied
 * since the last look (its pace), what the leader has learned since (the pace
 * that it would have to keep), and what it lacks. While there is a pause the
 * leader's pace is its own doing, so only what a peer lacks counts then.
 */
#include "paxos/driver/tempo.h"

#include "core/base/bits.h"

enum {
    LOOKS = 2 /* on end */
};

static bool anew(const struct qn_tempo *t, qn_time_t now)
{
    return t->looked == 0 || now - t->looked > 2 * QN_TEMPO_LOOK;
}

bool qn_tempo_due(const struct qn_tempo *t, qn_time_t now)
{
    return t->looked == 0 || now - t->looked >= QN_TEMPO_LOOK;
}

/* @return its pace if it cannot follow; else UINT64_MAX. */
static uint64_t pace(const struct qn_tempo *t, struct qn_tempo_peer *p,
                     qn_slot_t learned, qn_slot_t applied)
{
    /* A new life begins below. */
    uint64_t done = applied > p->applied ? applied - p->applied : 0;
    uint64_t lacks = learned > applied ? learned - applied : 0;
    bool slow = done != 0 && lacks > done &&
                (t->gap != 0 || done < learned - t->learned);
    p->slow = slow ? p->slow + 1 : 0;
    return p->slow >= LOOKS ? done : UINT64_MAX;
}

qn_time_t qn_tempo_look(struct qn_tempo *t, qn_time_t now, qn_slot_t learned,
                        const qn_slot_t *applied, uint64_t peers)
{
    uint64_t slowest = UINT64_MAX;
    bool begins = anew(t, now);
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        struct qn_tempo_peer *p = &t->peer[i];
        if (begins || (peers >> i & 1) == 0) {
            p->slow = 0;
        } else {
            uint64_t done = pace(t, p, learned, applied[i]);
            slowest = QN_MIN(slowest, done);
        }
        p->applied = applied[i];
    }
    t->gap =
        slowest == UINT64_MAX
            ? 0
            : QN_MIN((now - t->looked) * 4 / (3 * slowest), QN_TEMPO_GAP_MOST);
    t->looked = now;
    t->learned = learned;
    return t->gap;
}

uint64_t qn_tempo_slow(const struct qn_tempo *t)
{
    uint64_t mask = 0;
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        mask |= (uint64_t)(t->peer[i].slow >= LOOKS) << i;
    }
    return mask;
}
