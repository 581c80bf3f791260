/*
 * Which peers' accept queues to serve (stall_detector.h).
 *
 * A check compares every turn counter with the last check's. The time of a
 * pending connection counts from the first check that saw it, and again from
 * each check that saw the peer make a turn: a peer that makes a turn empties
 * its queue. So an idle peer, whose counter need not move, is given its time
 * from the moment a connection comes.
 *
 * If this replica serves only because those before it in order did nothing,
 * they are stalled, too: they had the same news at the same time.
 */
#include "kvs/detector/stall_detector.h"

#include "core/base/assert.h"
#include "core/base/bits.h"

enum { STEPS_MAX = 3 };

static uint64_t bit(qn_node_t i)
{
    return (uint64_t)1 << i;
}

static bool in(uint64_t mask, qn_node_t i)
{
    return (mask & bit(i)) != 0;
}

void qn_stall_detector_init(struct qn_stall_detector *d, qn_node_t self,
                            uint32_t nodes)
{
    QN_ASSERT(nodes <= QN_NODES_MAX);
    QN_ASSERT(self < nodes);
    *d = (struct qn_stall_detector){.self = self, .nodes = nodes};
}

uint64_t qn_stall_detector_available(const struct qn_stall_detector *d,
                                     const struct qn_stall_view *view)
{
    uint64_t available = bit(d->self);
    for (qn_node_t i = 0; i < d->nodes; i++) {
        available |= (uint64_t)(view[i].serves && !in(d->stalled, i)) << i;
    }
    return available;
}

/* The available replicas between `i` and this one in the order of ids: they
 * should serve the queue of `i` before this one does. */
static uint64_t ahead_of_self(const struct qn_stall_detector *d,
                              const struct qn_stall_view *view, qn_node_t i)
{
    uint64_t available = qn_stall_detector_available(d, view);
    uint64_t mask = 0;
    for (qn_node_t k = (i + 1) % d->nodes; k != d->self;
         k = (k + 1) % d->nodes) {
        mask |= available & bit(k);
    }
    QN_DASSERT(!in(mask, d->self));
    return mask;
}

static void see_turns(struct qn_stall_detector *d,
                      const struct qn_stall_view *view, qn_time_t now)
{
    for (qn_node_t i = 0; i < d->nodes; i++) {
        if (i == d->self || view[i].turns == d->turns[i]) {
            continue;
        }
        d->turns[i] = view[i].turns;
        d->moved_at[i] = now;
        d->pending_since[i] = now;
        d->stalled &= ~bit(i);
    }
}

/* Is it for this replica, now, to serve the queue of `i`? */
static bool serve_now(struct qn_stall_detector *d,
                      const struct qn_stall_view *view, qn_node_t i,
                      qn_time_t now)
{
    uint64_t others = ahead_of_self(d, view, i);
    uint32_t steps = QN_MIN((uint32_t)__builtin_popcountll(others), STEPS_MAX);
    qn_time_t timeout = steps * QN_STALL_STAGGER;
    if (view[i].serves && !in(d->stalled, i)) {
        timeout += QN_STALL_TIMEOUT;
    }
    QN_ASSERT(now >= d->pending_since[i]);
    if (now - d->pending_since[i] < timeout) {
        return false;
    }
    d->stalled |= (uint64_t)view[i].serves << i;
    for (qn_node_t k = 0; k < d->nodes; k++) {
        if (in(others, k) && d->moved_at[k] <= d->pending_since[i]) {
            d->stalled |= bit(k);
        }
    }
    return true;
}

uint64_t qn_stall_detector_check(struct qn_stall_detector *d,
                                 const struct qn_stall_view *view,
                                 uint64_t pending, qn_time_t now)
{
    uint64_t serve = 0;
    see_turns(d, view, now);
    for (qn_node_t i = 0; i < d->nodes; i++) {
        if (i == d->self || !in(pending, i)) {
            continue;
        }
        if (!in(d->pending, i)) {
            d->pending_since[i] = now;
        }
        serve |= (uint64_t)serve_now(d, view, i, now) << i;
    }
    d->pending = pending;
    QN_ASSERT((serve & ~pending) == 0);
    QN_ASSERT(!in(serve, d->self));
    QN_ASSERT(!in(d->stalled, d->self));
    return serve;
}
