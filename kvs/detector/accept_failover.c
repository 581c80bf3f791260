/* See accept_failover.h. */
#include "kvs/detector/accept_failover.h"

#include "core/base/assert.h"

static uint64_t bit(qn_node_t i)
{
    return (uint64_t)1 << i;
}

static uint64_t group(const struct qn_accept_failover *a)
{
    return UINT64_MAX >> (QN_NODES_MAX - a->stall.nodes);
}

static void check_invariants(const struct qn_accept_failover *a)
{
    QN_ASSERT((a->available & ~group(a)) == 0);
    QN_ASSERT(a->watching || a->next_check == QN_TIME_NEVER);
    QN_ASSERT(a->watching || !a->woken);
    QN_ASSERT(!a->woken || a->next_check != QN_TIME_NEVER);
}

void qn_accept_failover_init(struct qn_accept_failover *a, qn_node_t self,
                             uint32_t nodes)
{
    *a = (struct qn_accept_failover){.next_check = QN_TIME_NEVER};
    qn_stall_detector_init(&a->stall, self, nodes);
    check_invariants(a);
}

void qn_accept_failover_start(struct qn_accept_failover *a)
{
    QN_ASSERT(!a->watching);
    a->watching = true;
    a->next_check = 0;
}

bool qn_accept_failover_peers_changed(struct qn_accept_failover *a)
{
    if (a->watching) {
        a->next_check = 0;
    }
    return a->watching;
}

void qn_accept_failover_wake(struct qn_accept_failover *a)
{
    QN_ASSERT(a->watching);
    a->woken = true;
    a->next_check = 0;
}

bool qn_accept_failover_due(const struct qn_accept_failover *a, qn_time_t now)
{
    return a->watching && now >= a->next_check;
}

/* The kernel is told what changed; and the first time, when 0 was told. */
static void judge(struct qn_accept_failover *a,
                  const struct qn_stall_view *view,
                  struct qn_accept_actions *out)
{
    uint64_t available = qn_stall_detector_available(&a->stall, view);
    QN_ASSERT((available & bit(a->stall.self)) != 0);
    out->tell_kernel = available != a->available;
    a->available = available;
}

void qn_accept_failover_check(struct qn_accept_failover *a,
                              const struct qn_stall_view *view,
                              uint64_t pending, uint64_t present, qn_time_t now,
                              struct qn_accept_actions *out)
{
    QN_ASSERT(qn_accept_failover_due(a, now));
    *out = (struct qn_accept_actions){0};
    out->serve = qn_stall_detector_check(&a->stall, view, pending, now);
    judge(a, view, out);
    out->ring = a->stall.stalled & present;
    if (pending != 0 || a->woken) {
        a->next_check = now + QN_STALL_CHECK_INTERVAL;
    } else {
        out->poll = true;
        bool may_return = (present & ~a->available) != 0;
        a->next_check =
            may_return ? now + QN_ACCEPT_RECHECK_INTERVAL : QN_TIME_NEVER;
    }
    a->woken = false;
    check_invariants(a);
}

bool qn_accept_failover_stop(struct qn_accept_failover *a)
{
    bool watched = a->watching;
    a->watching = false;
    a->woken = false;
    a->next_check = QN_TIME_NEVER;
    if (watched) {
        a->available &= ~bit(a->stall.self);
    }
    check_invariants(a);
    return watched && a->available != 0;
}

bool qn_accept_failover_all(const struct qn_accept_failover *a)
{
    return a->available == group(a);
}

qn_node_t qn_accept_failover_pick(uint64_t mask, uint64_t random)
{
    QN_ASSERT(mask != 0);
    uint64_t nth = random % (uint32_t)__builtin_popcountll(mask);
    for (; nth > 0; nth--) {
        mask &= mask - 1;
    }
    return (qn_node_t)__builtin_ctzll(mask);
}
