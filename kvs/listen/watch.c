/*
 * The watch over others' doors (watch.h).
 *
 * A look compares every turn counter with the last look's. What waits before a
 * node is counted from the first look that saw it, and again from each look
 * that saw the node turn: a node that turns empties its queue. So an idle node,
 * whose counter stands still by right, is given its time from the moment a
 * connection comes.
 *
 * When the turn of this node comes only because those before it did nothing,
 * they are still, too: they had the same news at the same time.
 */
#include "kvs/listen/watch.h"

#include "core/base/assert.h"
#include "core/base/bits.h"

enum { STEPS_MAX = 3 };

void qn_watch_init(struct qn_watch *w, qn_node_t self, uint32_t nodes)
{
    QN_ASSERT(nodes <= QN_NODES_MAX && self < nodes);
    *w = (struct qn_watch){.self = self, .nodes = nodes};
}

static bool in(uint64_t mask, qn_node_t i)
{
    return (mask >> i & 1) != 0;
}

uint64_t qn_watch_open(const struct qn_watch *w,
                       const struct qn_watch_seen *seen)
{
    uint64_t open = (uint64_t)1 << w->self;
    for (qn_node_t i = 0; i < w->nodes; i++) {
        open |= (uint64_t)(seen[i].serves && !in(w->still, i)) << i;
    }
    return open;
}

/* The others whose turn comes before this node's, to help `i`. */
static uint64_t before(const struct qn_watch *w,
                       const struct qn_watch_seen *seen, qn_node_t i)
{
    uint64_t open = qn_watch_open(w, seen);
    uint64_t mask = 0;
    for (qn_node_t k = (i + 1) % w->nodes; k != w->self;
         k = (k + 1) % w->nodes) {
        mask |= open & (uint64_t)1 << k;
    }
    return mask;
}

static void see(struct qn_watch *w, const struct qn_watch_seen *seen,
                qn_time_t now)
{
    for (qn_node_t i = 0; i < w->nodes; i++) {
        if (i == w->self || seen[i].turns == w->turns[i]) {
            continue;
        }
        w->turns[i] = seen[i].turns;
        w->moved[i] = now;
        w->since[i] = now;
        w->still &= ~((uint64_t)1 << i);
    }
}

/* Is it this node's turn to help `i`? */
static bool due(struct qn_watch *w, const struct qn_watch_seen *seen,
                qn_node_t i, qn_time_t now)
{
    uint64_t others = before(w, seen, i);
    uint32_t steps = QN_MIN((uint32_t)__builtin_popcountll(others), STEPS_MAX);
    qn_time_t patience = steps * QN_WATCH_STEP;
    if (seen[i].serves && !in(w->still, i)) {
        patience += QN_WATCH_STILL;
    }
    if (now - w->since[i] < patience) {
        return false;
    }
    w->still |= (uint64_t)seen[i].serves << i;
    for (qn_node_t k = 0; k < w->nodes; k++) {
        if (in(others, k) && w->moved[k] <= w->since[i]) {
            w->still |= (uint64_t)1 << k;
        }
    }
    return true;
}

uint64_t qn_watch_look(struct qn_watch *w, const struct qn_watch_seen *seen,
                       uint64_t waiting, qn_time_t now)
{
    uint64_t take = 0;
    see(w, seen, now);
    for (qn_node_t i = 0; i < w->nodes; i++) {
        if (i == w->self || !in(waiting, i)) {
            continue;
        }
        if (!in(w->waiting, i)) {
            w->since[i] = now;
        }
        take |= (uint64_t)due(w, seen, i, now) << i;
    }
    w->waiting = waiting;
    return take;
}
