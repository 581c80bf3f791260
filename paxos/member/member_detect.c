/*
 * The shell of the failure detector (paxos/member/detector/failure_detector.h):
 * gives it the facts that it asks for, and carries out what it decides.
 *
 * A peer that has died frees its memory on the core that it had, perhaps that
 * of the next leader, for 0.1 ms per MB. So the dying process gets the longest
 * time slice, and this one does not yield to it: a member that wakes there
 * runs first. A process that is gone already has nothing to free, and its id
 * may be another process's.
 */
#include "core/base/assert.h"
#include "core/place/hold.h"
#include "core/place/liveness.h"
#include "core/place/process.h"
#include "paxos/member/member_internal.h"

/* ---- facts --------------------------------------------------------------- */

/* The kernel is asked about a peer that is silent, not about one that makes
 * turns. */
static bool is_gone(struct qn_member *m, qn_node_t i, uint64_t inc)
{
    const uint64_t turns = qn_member_turns(m, i);
    const bool silent = turns == m->signs[i];
    m->signs[i] = turns;
    return silent && qn_liveness_look(m->commons, m->o.hold_fd, i, inc) ==
                         QN_LIVENESS_DEAD;
}

static bool is_dead(void *ctx, qn_node_t i, bool asks)
{
    struct qn_member *m = ctx;
    if (!m->o.shares) {
        return false; /* the program says so */
    }
    uint64_t inc = m->peers.present[i]->incarnation;
    if (qn_liveness_is_held(m->commons, i, inc)) {
        return asks && is_gone(m, i, inc);
    }
    return qn_liveness_check(m->commons, i, inc) == QN_LIVENESS_DEAD;
}

static uint64_t turns_of(void *ctx, qn_node_t i)
{
    const struct qn_member *m = ctx;
    return m->o.shares ? qn_member_turns(m, i) : qn_driver_signs(m->driver, i);
}

static qn_time_t cpu_time_of(void *ctx, qn_node_t i)
{
    const struct qn_member *m = ctx;
    return qn_process_ran(m->peers.present[i]->pid);
}

static bool is_stopped(void *ctx, qn_node_t i)
{
    const struct qn_member *m = ctx;
    const struct qn_mapped_peer *p = m->peers.present[i];
    return p != NULL && qn_process_stopped(p->pid);
}

struct qn_peer_facts qn_member_facts(struct qn_member *m)
{
    return (struct qn_peer_facts){.dead = is_dead,
                                  .turns = turns_of,
                                  .cpu_time = cpu_time_of,
                                  .stopped = is_stopped,
                                  .ctx = m};
}

/* ---- what is decided ----------------------------------------------------- */

static void retire(struct qn_member *m, qn_node_t i)
{
    const struct qn_mapped_peer *p = m->peers.present[i];
    QN_ASSERT((m->detector.present >> i & 1) == 0);
    if (qn_hold_by(m->o.hold_fd, i, p->pid)) {
        (void)qn_process_slice(p->pid, QN_SLICE_LONGEST);
    }
    qn_spin_yield_not(&m->yield, qn_clock_now());
    qn_member_retire(m, i);
}

static void carry_out(struct qn_member *m, const struct qn_detector_actions *a)
{
    for (uint64_t s = a->deaths; s != 0; s &= s - 1) {
        retire(m, (qn_node_t)__builtin_ctzll(s));
    }
    for (uint64_t s = a->false_suspicions; s != 0; s &= s - 1) {
        m->o.callbacks.resumed(m->o.callbacks.ctx,
                               (qn_node_t)__builtin_ctzll(s), a->timeout);
    }
    for (uint64_t s = a->ring; s != 0; s &= s - 1) {
        qn_member_ring(m, (qn_node_t)__builtin_ctzll(s));
    }
    if (a->suspects_changed) {
        m->again = true;
        qn_driver_suspect(m->driver, a->suspects, qn_clock_now());
    }
}

static bool is_over(struct qn_member *m, qn_node_t i, bool asks)
{
    const uint64_t inc = m->peers.present[i]->incarnation;
    const enum qn_liveness is =
        asks ? qn_liveness_look(m->commons, m->o.hold_fd, i, inc)
             : qn_liveness_check(m->commons, i, inc);
    return is == QN_LIVENESS_DEAD;
}

void qn_member_look(struct qn_member *m, bool asks)
{
    uint64_t ended = 0;
    QN_ASSERT(m->driver != NULL);
    if (m->stopped || !m->o.shares) {
        return;
    }
    for (uint64_t s = qn_peers_present(&m->peers); s != 0; s &= s - 1) {
        const qn_node_t i = (qn_node_t)__builtin_ctzll(s);
        if (is_over(m, i, asks)) {
            qn_failure_detector_down(&m->detector, i);
            retire(m, i);
            ended |= UINT64_C(1) << i;
        }
    }
    for (uint64_t s = qn_peers_present(&m->peers); ended != 0 && s != 0;
         s &= s - 1) { /* one of them may not have heard of it */
        qn_member_ring(m, (qn_node_t)__builtin_ctzll(s));
    }
}

/* ---- the member's side --------------------------------------------------- */

void qn_member_detector_begin(struct qn_member *m)
{
    qn_failure_detector_init(&m->detector, m->o.self, m->o.nodes,
                             m->o.own_cores);
    QN_ASSERT((qn_peers_present(&m->peers) >> m->o.self & 1) == 0);
    for (uint64_t s = qn_peers_present(&m->peers); s != 0; s &= s - 1) {
        qn_failure_detector_up(&m->detector, (qn_node_t)__builtin_ctzll(s));
    }
}

void qn_member_deposed(struct qn_member *m, qn_node_t node, qn_time_t now)
{
    const struct qn_peer_facts facts = qn_member_facts(m);
    qn_failure_detector_deposed(&m->detector, node, &facts, now);
}

qn_time_t qn_member_suspicion_timeout(const struct qn_member *m, qn_time_t now)
{
    return qn_failure_detector_timeout(&m->detector, now);
}

qn_time_t qn_member_turn_end(struct qn_member *m, qn_time_t now)
{
    struct qn_failure_detector *d = &m->detector;
    struct qn_detector_actions actions;
    if (!qn_failure_detector_due(d, now)) {
        return d->next_check;
    }
    const struct qn_peer_facts facts = qn_member_facts(m);
    QN_DASSERT(d->present == qn_peers_present(&m->peers));
    qn_failure_detector_check(d, qn_driver_waits_for(m->driver), &facts, now,
                              &actions);
    carry_out(m, &actions);
    QN_ASSERT((actions.suspects & ~d->present) == 0);
    QN_ASSERT((actions.deaths & d->present) == 0);
    qn_member_sweep(m);
    return qn_failure_detector_next(d, m->peers.retained != NULL);
}

void qn_member_own_cores(struct qn_member *m, bool own_cores)
{
    if (own_cores != m->o.own_cores) {
        m->o.own_cores = own_cores;
        qn_failure_detector_own_cores(&m->detector, own_cores);
        qn_driver_own_cores(m->driver, own_cores);
    }
}
