/*
 * The shell of the failure detector (paxos/member/detector/failure_detector.h):
 * gives it the facts that it asks for, and carries out what it decides.
 *
 * A peer that has died frees its memory on the core that it had, perhaps that
 * of the next leader, for 0.1 ms per MB. So the dying process gets the longest
 * time slice, and this one does not yield to it: a replica that wakes there
 * runs first. A process that is gone already has nothing to free, and its id
 * may be another process's.
 */
#include <inttypes.h>

#include "core/base/assert.h"
#include "core/base/log.h"
#include "core/place/hold.h"
#include "core/place/liveness.h"
#include "core/place/process.h"
#include "kvs/server/server.h"

/* ---- facts --------------------------------------------------------------- */

static bool is_dead(void *ctx, qn_node_t i)
{
    const struct qn_server *s = ctx;
    if (!qn_server_shares(s)) {
        return false; /* the supervisor says so */
    }
    return qn_liveness_check(s->commons, i, s->peers.present[i]->incarnation) ==
           QN_LIVENESS_DEAD;
}

static uint64_t turns_of(void *ctx, qn_node_t i)
{
    const struct qn_server *s = ctx;
    if (!qn_server_shares(s)) {
        return qn_driver_signs(qn_replica_driver(s->replica), i);
    }
    /* relaxed: a sign of life; nothing is read through it. */
    return qn_load(&qn_outbox_state(s->peers.present[i]->outbox)->turns,
                   QN_RELAXED);
}

static qn_time_t cpu_time_of(void *ctx, qn_node_t i)
{
    const struct qn_server *s = ctx;
    return qn_process_ran(s->peers.present[i]->pid);
}

static bool is_stopped(void *ctx, qn_node_t i)
{
    const struct qn_server *s = ctx;
    const struct qn_mapped_peer *p = s->peers.present[i];
    return p != NULL && qn_process_stopped(p->pid);
}

struct qn_peer_facts qn_server_facts(struct qn_server *s)
{
    return (struct qn_peer_facts){.dead = is_dead,
                                  .turns = turns_of,
                                  .cpu_time = cpu_time_of,
                                  .stopped = is_stopped,
                                  .ctx = s};
}

/* ---- what is decided ----------------------------------------------------- */

static void retire_peer(struct qn_server *s, qn_node_t i)
{
    const struct qn_mapped_peer *p = s->peers.present[i];
    QN_ASSERT((s->detector.present >> i & 1) == 0);
    if (qn_hold_by(s->boot->commons_fd, i, p->pid)) {
        (void)qn_process_slice(p->pid, QN_SLICE_LONGEST);
    }
    qn_spin_yield_not(&s->yield, qn_clock_now());
    qn_server_peer_ended(s, i);
}

static void log_false_suspicion(const struct qn_server *s, qn_node_t i,
                                qn_time_t timeout)
{
    qn_log(QN_LOG_INFO,
           "replica %u: replica %u resumed; suspicion timeout is now %" PRIu64
           " ms",
           s->boot->self, i, timeout / QN_MS);
}

static void carry_out(struct qn_server *s, const struct qn_detector_actions *a)
{
    for (uint64_t m = a->deaths; m != 0; m &= m - 1) {
        retire_peer(s, (qn_node_t)__builtin_ctzll(m));
    }
    for (uint64_t m = a->false_suspicions; m != 0; m &= m - 1) {
        log_false_suspicion(s, (qn_node_t)__builtin_ctzll(m), a->timeout);
    }
    for (uint64_t m = a->ring; m != 0; m &= m - 1) {
        (void)qn_doorbell_ring(&s->peers.doorbell[__builtin_ctzll(m)]);
    }
    if (a->suspects_changed) {
        s->turn_wanted = true;
        qn_driver_suspect(qn_replica_driver(s->replica), a->suspects,
                          qn_clock_now());
    }
}

/* ---- the server's side --------------------------------------------------- */

void qn_server_watch_begin(struct qn_server *s)
{
    const struct qn_replica_spec *b = s->boot;
    qn_failure_detector_init(&s->detector, b->self, b->nodes, b->own_cores);
    QN_ASSERT((qn_peers_present(&s->peers) >> b->self & 1) == 0);
    for (uint64_t m = qn_peers_present(&s->peers); m != 0; m &= m - 1) {
        qn_failure_detector_up(&s->detector, (qn_node_t)__builtin_ctzll(m));
    }
}

void qn_server_deposed(struct qn_server *s, qn_node_t i, qn_time_t now)
{
    const struct qn_peer_facts facts = qn_server_facts(s);
    qn_failure_detector_deposed(&s->detector, i, &facts, now);
}

qn_time_t qn_server_watch_turn(struct qn_server *s, qn_time_t now)
{
    struct qn_failure_detector *d = &s->detector;
    struct qn_detector_actions actions;
    if (!qn_failure_detector_due(d, now)) {
        return d->next_check;
    }
    const struct qn_peer_facts facts = qn_server_facts(s);
    QN_DASSERT(d->present == qn_peers_present(&s->peers));
    qn_failure_detector_check(
        d, qn_driver_waits_for(qn_replica_driver(s->replica)), &facts, now,
        &actions);
    carry_out(s, &actions);
    QN_ASSERT((actions.suspects & ~d->present) == 0);
    QN_ASSERT((actions.deaths & d->present) == 0);
    qn_server_peers_sweep(s);
    return qn_failure_detector_next(d, s->peers.retained != NULL);
}
