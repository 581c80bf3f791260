/*
 * Positions: see the header. Where shared memory is read in the right order,
 * and why that order is right, is said in driver_positions.c.
 *
 * Nothing that a peer says is asserted here: it is checked, and a claim that is
 * not possible is not taken. Asserted is what follows from the checks.
 */
#include "paxos/driver/positions.h"

#include "core/base/assert.h"
#include "core/base/bits.h"

static uint64_t bit(qn_node_t i)
{
    return (uint64_t)1 << i;
}

/* The relations that hold between two calls. */
static void check(const struct qn_positions *p)
{
    QN_ASSERT(p->self < p->nodes);
    QN_ASSERT(p->applied <= p->visible_slot);
    QN_ASSERT(p->visible_slot - p->applied <= 1);
    QN_ASSERT(p->published <= p->visible_slot);
    QN_ASSERT((p->lagging & bit(p->self)) == 0);
    QN_ASSERT(p->nodes == QN_NODES_MAX || p->lagging >> p->nodes == 0);
}

static bool is_peer(const struct qn_positions *p, qn_node_t i)
{
    return i < p->nodes && i != p->self;
}

void qn_positions_init(struct qn_positions *p, qn_node_t self, uint32_t nodes,
                       qn_time_t now)
{
    QN_ASSERT(nodes <= QN_NODES_MAX);
    *p = (struct qn_positions){
        .self = self, .nodes = nodes, .heartbeat_at = QN_TIME_NEVER};
    for (qn_node_t i = 0; i < nodes; i++) {
        p->peer[i].moved_at = now;
    }
    check(p);
}

void qn_positions_peer_up(struct qn_positions *p, qn_node_t peer, qn_time_t now)
{
    QN_ASSERT(is_peer(p, peer));
    QN_ASSERT((p->lagging & bit(peer)) == 0);
    p->peer[peer] = (struct qn_peer_position){.moved_at = now};
}

void qn_positions_peer_down(struct qn_positions *p, qn_node_t peer)
{
    QN_ASSERT(is_peer(p, peer));
    p->lagging &= ~bit(peer);
    check(p);
}

void qn_positions_forgive(struct qn_positions *p)
{
    p->lagging = 0;
    check(p);
}

/* ---- own ----------------------------------------------------------------- */

void qn_positions_slot_begin(struct qn_positions *p, qn_slot_t slot)
{
    QN_DASSERT(slot == p->applied + 1);
    QN_DASSERT(slot >= p->visible_slot);
    p->visible_slot = slot;
}

void qn_positions_slot_end(struct qn_positions *p, qn_slot_t slot)
{
    QN_ASSERT(slot == p->visible_slot);
    QN_ASSERT(slot == p->applied + 1);
    p->applied = slot;
}

void qn_positions_jump(struct qn_positions *p, qn_slot_t slot)
{
    QN_ASSERT(p->visible_slot == p->applied);
    qn_positions_replace(p, slot);
}

void qn_positions_replace(struct qn_positions *p, qn_slot_t slot)
{
    QN_ASSERT(slot >= p->visible_slot);
    p->applied = p->visible_slot = slot;
    check(p);
}

bool qn_positions_index_due(const struct qn_positions *p, qn_time_t now)
{
    return p->visible_slot > p->published ||
           now - p->index_looked_at >= QN_INDEX_LOOK;
}

void qn_positions_published(struct qn_positions *p, qn_time_t now)
{
    QN_DASSERT(p->visible_slot >= p->published);
    QN_DASSERT(now >= p->index_looked_at);
    p->published = p->visible_slot;
    p->index_looked_at = now;
}

enum qn_index_check qn_positions_index_check(const struct qn_positions *p,
                                             qn_slot_t index)
{
    if (index < p->published) {
        return QN_INDEX_LOWERED;
    }
    if (index < p->visible_slot) {
        return QN_INDEX_LOW;
    }
    return index <= p->applied ? QN_INDEX_APPLIED : QN_INDEX_AHEAD;
}

/* ---- the bound ----------------------------------------------------------- */

static qn_slot_t accepted(const struct qn_bound_facts *f)
{
    bool acceptor_speaks = f->lives && f->no_later_vote && f->knows_tenure;
    return f->memory || acceptor_speaks ? f->accepted : QN_POSITIONS_UNBOUNDED;
}

/* What is applied here is decided: a bound below that was written by a process
 * that has run wild, and bounds nothing. */
qn_slot_t qn_positions_bound(const struct qn_positions *p,
                             const struct qn_bound_facts *f)
{
    qn_slot_t bound = accepted(f);
    return bound < p->applied ? QN_POSITIONS_UNBOUNDED : bound;
}

bool qn_positions_no_later_vote(const struct qn_positions *p, uint64_t voters,
                                const uint64_t *voted, uint64_t present,
                                uint32_t ul_len)
{
    int sure = 0;
    QN_ASSERT(p->nodes == QN_NODES_MAX || present >> p->nodes == 0);
    for (qn_node_t i = 0; i < p->nodes; i++) {
        sure += (present & voters & bit(i)) != 0 && voted[i] < ul_len;
    }
    QN_ASSERT(sure <= __builtin_popcountll(voters));
    return 2 * sure > __builtin_popcountll(voters);
}

bool qn_positions_all_at(const struct qn_positions *p, const qn_slot_t *learned,
                         uint64_t living, uint64_t present, qn_slot_t position)
{
    QN_ASSERT((present & ~living) == 0);
    for (qn_node_t i = 0; i < p->nodes; i++) {
        bool lives = i != p->self && (living & bit(i)) != 0;
        if (lives && ((present & bit(i)) == 0 || learned[i] != position)) {
            return false;
        }
    }
    return true;
}

/* ---- peers --------------------------------------------------------------- */

/* An acceptor that has run wild is its own bound; but no slot is ever as high
 * as what garbage says. */
bool qn_positions_credible(const struct qn_positions *p, qn_node_t peer,
                           const struct qn_position *claim, qn_slot_t bound)
{
    const struct qn_peer_position *x = &p->peer[peer];
    QN_DASSERT(is_peer(p, peer));
    QN_DASSERT(x->applied <= x->learned);
    return claim->applied >= x->applied && claim->learned >= x->learned &&
           claim->applied <= claim->learned &&
           claim->learned <= QN_MIN(bound, QN_SLOT_MAX);
}

void qn_positions_take(struct qn_positions *p, qn_node_t peer,
                       const struct qn_position *claim, qn_time_t now)
{
    struct qn_peer_position *x = &p->peer[peer];
    QN_ASSERT(is_peer(p, peer));
    QN_ASSERT(claim->applied >= x->applied);
    QN_ASSERT(claim->learned >= x->learned);
    QN_ASSERT(claim->applied <= claim->learned);
    QN_ASSERT(claim->learned <= QN_SLOT_MAX);
    QN_ASSERT(now >= x->moved_at);
    if (claim->learned != x->learned) {
        x->moved_at = now;
    }
    x->applied = claim->applied;
    x->learned = claim->learned;
}

static void peer_judge(struct qn_positions *p, qn_node_t i, qn_slot_t before,
                       bool suspected, qn_time_t now)
{
    struct qn_peer_position *x = &p->peer[i];
    QN_ASSERT(now >= x->moved_at);
    if (x->learned >= before) {
        p->lagging &= ~bit(i);
        x->moved_at = now; /* it has nothing to learn: no reason to move */
    }
    if (suspected || now - x->moved_at >= QN_DRIVER_LAG) {
        p->lagging |= bit(i);
    }
}

uint64_t qn_positions_laggards(struct qn_positions *p, qn_slot_t learned,
                               uint64_t peers, uint64_t suspected, bool judge,
                               qn_time_t now)
{
    qn_slot_t before = p->learned_before;
    QN_ASSERT(learned >= before);
    p->learned_before = learned;
    for (qn_node_t i = 0; judge && i < p->nodes; i++) {
        if (i != p->self && (peers & bit(i)) != 0) {
            peer_judge(p, i, before, (suspected & bit(i)) != 0, now);
        }
    }
    check(p);
    return p->lagging;
}

void qn_positions_lag(struct qn_positions *p, uint64_t peers)
{
    QN_ASSERT((peers & bit(p->self)) == 0);
    p->lagging |= peers;
    check(p);
}

static bool lacks(const struct qn_peer_position *x, qn_slot_t learned)
{
    return x->learned < learned && x->reminded != x->learned + 1;
}

uint64_t qn_positions_remind(struct qn_positions *p, uint64_t peers)
{
    uint64_t mask = 0;
    peers &= ~bit(p->self);
    for (qn_node_t i = 0; i < p->nodes; i++) {
        struct qn_peer_position *x = &p->peer[i];
        bool still = x->learned == x->looked;
        x->looked = x->learned;
        if ((peers & bit(i)) != 0 && still && lacks(x, p->learned_before)) {
            x->reminded = x->learned + 1;
            mask |= bit(i);
        }
    }
    return mask;
}

bool qn_positions_may_remind(const struct qn_positions *p, uint64_t peers,
                             qn_slot_t learned)
{
    bool may = false;
    peers &= ~bit(p->self);
    for (qn_node_t i = 0; i < p->nodes; i++) {
        may |= (peers & bit(i)) != 0 && lacks(&p->peer[i], learned);
    }
    return may;
}

/* ---- the hold ------------------------------------------------------------ */

void qn_positions_hold(struct qn_positions *p, qn_node_t joiner, uint64_t inc,
                       qn_slot_t position)
{
    QN_ASSERT(is_peer(p, joiner));
    QN_ASSERT(position < QN_SLOT_MAX);
    p->hold = (struct qn_log_hold){
        .slot = position + 1, .joiner = joiner, .inc = inc};
}

bool qn_positions_hold_over(struct qn_positions *p, bool lives, qn_time_t now)
{
    struct qn_log_hold *h = &p->hold;
    if (h->slot == 0) {
        QN_ASSERT(h->over_at == 0);
        return false;
    }
    QN_ASSERT(is_peer(p, h->joiner));
    if (!lives) {
        return true;
    }
    if (h->over_at == 0 && p->peer[h->joiner].applied + 1 >= h->slot) {
        h->over_at = now + QN_HOLD_REST;
    }
    return h->over_at != 0 && now >= h->over_at;
}

void qn_positions_hold_end(struct qn_positions *p)
{
    p->hold = (struct qn_log_hold){0};
}

/* ---- when to look -------------------------------------------------------- */

void qn_positions_look_once(struct qn_positions *p, qn_time_t at)
{
    if (p->heartbeat_at == QN_TIME_NEVER) {
        p->heartbeat_at = at;
    }
}

void qn_positions_look_by(struct qn_positions *p, qn_time_t at)
{
    p->heartbeat_at = QN_MIN(p->heartbeat_at, at);
    QN_ASSERT(p->heartbeat_at <= at);
}

bool qn_positions_look_due(struct qn_positions *p, qn_time_t now)
{
    bool due = now >= p->heartbeat_at;
    if (due) {
        p->heartbeat_at = QN_TIME_NEVER;
    }
    return due;
}
