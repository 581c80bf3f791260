/*
 * The failure detector (failure_detector.h).
 *
 * The masks say which entries of peer[] mean something:
 *
 *     present  contains  silent  contains  suspects
 *     present  contains  deposed
 *     waited_for (of the last check)  contains  silent
 *
 * A peer that ends leaves all of them at once; `announced` may still name it,
 * which makes the next check tell the shell.
 *
 * Cost: without a peer that is waited for, suspected or deposed, a check is a
 * few comparisons, and one load per peer each QN_DETECTOR_INTERVAL.
 */
#include "paxos/member/detector/failure_detector.h"

#include "core/base/assert.h"
#include "core/base/bits.h"

static uint64_t bit(qn_node_t i)
{
    return UINT64_C(1) << i;
}

static void check_invariants(const struct qn_failure_detector *d)
{
    QN_ASSERT((d->present & bit(d->self)) == 0);
    QN_ASSERT((d->silent & ~d->present) == 0);
    QN_ASSERT((d->suspects & ~d->silent) == 0);
    QN_ASSERT((d->deposed & ~d->present) == 0);
    QN_ASSERT((d->silent & ~d->waited_for) == 0);
    QN_ASSERT(d->next_check >= d->last_check);
}

static qn_time_t least_of(bool own_cores)
{
    return own_cores ? QN_DETECTOR_TIMEOUT_OWN_CORES : QN_DETECTOR_TIMEOUT;
}

void qn_failure_detector_own_cores(struct qn_failure_detector *d,
                                   bool own_cores)
{
    d->own_cores = own_cores;
    qn_suspicion_timeout_least(&d->timeout, least_of(own_cores));
}

void qn_failure_detector_init(struct qn_failure_detector *d, qn_node_t self,
                              uint32_t nodes, bool own_cores)
{
    QN_ASSERT(nodes <= QN_NODES_MAX);
    QN_ASSERT(self < nodes);
    *d = (struct qn_failure_detector){
        .self = self, .nodes = nodes, .own_cores = own_cores};
    qn_suspicion_timeout_init(&d->timeout, least_of(own_cores));
}

qn_time_t qn_failure_detector_timeout(const struct qn_failure_detector *d,
                                      qn_time_t now)
{
    return qn_suspicion_timeout_at(&d->timeout, now);
}

/* ---- peers come and go --------------------------------------------------- */

void qn_failure_detector_up(struct qn_failure_detector *d, qn_node_t peer)
{
    QN_ASSERT(peer < d->nodes);
    QN_ASSERT((d->present & bit(peer)) == 0);
    QN_ASSERT(d->peer[peer].silence_ns == 0);
    d->present |= bit(peer);
    check_invariants(d);
}

/* Out of all masks at once, so that no mask names an absent peer. */
static void forget_peer(struct qn_failure_detector *d, qn_node_t peer)
{
    d->present &= ~bit(peer);
    d->silent &= ~bit(peer);
    d->suspects &= ~bit(peer);
    d->deposed &= ~bit(peer);
    d->peer[peer] = (struct qn_watched_peer){0};
}

void qn_failure_detector_down(struct qn_failure_detector *d, qn_node_t peer)
{
    QN_ASSERT(peer < d->nodes);
    forget_peer(d, peer);
    check_invariants(d);
}

void qn_failure_detector_deposed(struct qn_failure_detector *d, qn_node_t peer,
                                 const struct qn_peer_facts *facts,
                                 qn_time_t now)
{
    QN_ASSERT(peer < d->nodes);
    if ((d->present & bit(peer)) != 0 && !facts->stopped(facts->ctx, peer)) {
        d->deposed |= bit(peer);
        d->peer[peer].deposed_at = now;
        d->peer[peer].turns = facts->turns(facts->ctx, peer);
    }
}

/* What a check knows besides the state. */
struct check {
    const struct qn_peer_facts *facts;
    qn_time_t passed;       /* ns since the last check that count */
    uint64_t waited_before; /* mask: waited for since the last check */
    struct qn_detector_actions *out;
};

/* ---- deaths -------------------------------------------------------------- */

/* May the kernel be asked now? */
static bool asks(struct qn_failure_detector *d, qn_node_t i, qn_time_t now)
{
    struct qn_watched_peer *p = &d->peer[i];
    const qn_time_t apart = (d->waited_for & bit(i)) != 0
                                ? QN_DETECTOR_INTERVAL
                                : QN_DETECTOR_INTERVAL_RETAINED;
    if (now - p->asked_at < apart) {
        return false;
    }
    p->asked_at = now;
    return true;
}

static void find_deaths(struct qn_failure_detector *d, const struct check *c,
                        qn_time_t now)
{
    d->next_deaths = now + (d->own_cores ? QN_DETECTOR_DEATHS_OWN_CORES
                                         : QN_DETECTOR_INTERVAL);
    for (uint64_t m = d->present; m != 0; m &= m - 1) {
        qn_node_t i = (qn_node_t)__builtin_ctzll(m);
        if (c->facts->dead(c->facts->ctx, i, asks(d, i, now))) {
            c->out->deaths |= bit(i);
            forget_peer(d, i);
        }
    }
    if (c->out->deaths != 0) {
        c->out->ring |= d->present;
    }
}

/* ---- stalls -------------------------------------------------------------- */

/* Was it right to depose the peer? It was if the peer has been silent for
 * longer than any timeout. It was not if the peer makes turns before that. */
static void judge(struct qn_failure_detector *d, qn_node_t i, bool turned,
                  const struct check *c)
{
    qn_time_t since = d->peer[i].deposed_at;
    QN_ASSERT(d->last_check >= since);
    bool late = d->last_check - since >= qn_suspicion_timeout_most(&d->timeout);
    if (turned && !late) {
        (void)qn_suspicion_timeout_raise(&d->timeout, d->last_check);
        c->out->false_suspicions |= bit(i);
    }
    if (turned || late) {
        d->deposed &= ~bit(i);
    }
}

static void silence_ends(struct qn_failure_detector *d, qn_node_t i)
{
    d->peer[i].silence_ns = 0;
    d->silent &= ~bit(i);
    d->suspects &= ~bit(i);
}

/* Count the time in which the peer has made no turn, while it was waited for.
 */
static void count_silence(struct qn_failure_detector *d, qn_node_t i,
                          const struct check *c)
{
    struct qn_watched_peer *p = &d->peer[i];
    const struct qn_peer_facts *facts = c->facts;
    uint64_t turns = facts->turns(facts->ctx, i);
    bool turned = turns != p->turns;
    if ((d->deposed & bit(i)) != 0) {
        judge(d, i, turned, c);
    }
    if (turned || (d->waited_for & bit(i)) == 0) {
        p->turns = turns;
        silence_ends(d, i);
        return;
    }
    bool rung_before = p->silence_ns >= QN_DETECTOR_RING_AFTER;
    p->silence_ns += (c->waited_before & bit(i)) != 0 ? c->passed : 0;
    d->silent |= p->silence_ns > 0 ? bit(i) : 0;
    if (p->silence_ns >= QN_DETECTOR_RING_AFTER) {
        if (!rung_before) {
            p->cpu_time = facts->cpu_time(facts->ctx, i);
        }
        c->out->ring |= bit(i);
    }
}

/* The peer is stalled, or in a turn that is too long to be waited for. */
static bool is_stalled(const struct qn_failure_detector *d, qn_node_t i,
                       const struct qn_peer_facts *facts)
{
    const struct qn_watched_peer *p = &d->peer[i];
    if (p->silence_ns >= QN_DETECTOR_STOPPED && facts->stopped(facts->ctx, i)) {
        return true;
    }
    if (p->silence_ns < qn_suspicion_timeout_at(&d->timeout, d->last_check)) {
        return false;
    }
    return p->silence_ns >= QN_DETECTOR_LONG_TURN ||
           facts->cpu_time(facts->ctx, i) < p->cpu_time + QN_DETECTOR_RUNS;
}

static void find_stalls(struct qn_failure_detector *d, const struct check *c)
{
    for (uint64_t m = d->present; m != 0; m &= m - 1) {
        qn_node_t i = (qn_node_t)__builtin_ctzll(m);
        count_silence(d, i, c);
        bool stalled = is_stalled(d, i, c->facts);
        d->suspects = (d->suspects & ~bit(i)) | (stalled ? bit(i) : 0);
    }
}

/* Nothing waits any more: a later silence starts from zero. */
static void forget_silence(struct qn_failure_detector *d)
{
    for (uint64_t m = d->silent; m != 0; m &= m - 1) {
        silence_ends(d, (qn_node_t)__builtin_ctzll(m));
    }
}

/* ---- a check ------------------------------------------------------------- */

/* Peers whose judgement may change, though nothing waits for them. */
static uint64_t unsettled(const struct qn_failure_detector *d)
{
    return d->suspects | d->announced | d->deposed;
}

static void begin(struct qn_failure_detector *d, struct check *c,
                  uint64_t waited_for, qn_time_t now)
{
    if (d->waited_for != 0) {
        qn_suspicion_timeout_delayed(&d->timeout, now - d->next_check, now);
    }
    c->passed = QN_MIN(now - d->last_check, QN_DETECTOR_CHECK_MOST);
    c->waited_before = d->waited_for;
    d->waited_for = waited_for;
    d->last_check = now;
    d->next_check = now;
}

void qn_failure_detector_check(struct qn_failure_detector *d,
                               uint64_t waited_for,
                               const struct qn_peer_facts *facts, qn_time_t now,
                               struct qn_detector_actions *out)
{
    struct check c = {.facts = facts, .out = out};
    const bool whole = now >= d->next_check;
    QN_ASSERT(qn_failure_detector_due(d, now));
    *out = (struct qn_detector_actions){0};
    if (whole) {
        begin(d, &c, waited_for, now);
    }
    if ((whole && waited_for != 0) || now >= d->next_deaths) {
        find_deaths(d, &c, now);
    }
    if (whole && (waited_for != 0 || unsettled(d) != 0)) {
        find_stalls(d, &c);
    } else if (whole) {
        forget_silence(d);
    }
    out->timeout = qn_suspicion_timeout_at(&d->timeout, now);
    out->suspects = d->suspects;
    out->suspects_changed = d->suspects != d->announced;
    d->announced = d->suspects;
    check_invariants(d);
}

qn_time_t qn_failure_detector_next(struct qn_failure_detector *d, bool retained)
{
    if (d->waited_for == 0 && unsettled(d) == 0 && !retained) {
        return QN_TIME_NEVER; /* `next_check`: with the next turn */
    }
    d->next_check =
        d->last_check + (d->waited_for != 0 ? QN_DETECTOR_INTERVAL
                                            : QN_DETECTOR_INTERVAL_RETAINED);
    check_invariants(d);
    return d->next_check;
}
