/*
 * What a replica does on its core: turns, as kvs/main and kvs/server make them.
 */
#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/place/liveness.h"
#include "loadgen/simulate/commit/commit_internal.h"

/* ---- peers that have ended or are stalled -------------------------------- */

void qn_sim_replica_ended(void *ctx, uint32_t node, bool killed)
{
    struct qn_sim_group *g = ctx;
    struct qn_sim_replica *r = &g->replica[node];
    if (killed) {
        r->ended = true;
        r->died_at = qn_timed_clock_of(node);
        qn_liveness_end(g->commons, node, qn_sim_incarnation(node));
    }
}

bool qn_sim_replica_is_dead(const struct qn_sim_group *g, qn_node_t node)
{
    return qn_liveness_check(g->commons, node, qn_sim_incarnation(node)) ==
               QN_LIVENESS_DEAD &&
           qn_timed_clock() >=
               g->replica[node].died_at + g->o.death_ns * QN_PS_PER_NS;
}

static bool is_dead(void *ctx, qn_node_t peer, bool asks)
{
    const struct qn_sim_replica *r = ctx;
    (void)asks; /* its word is marked */
    return qn_sim_replica_is_dead(r->group, peer);
}

static uint64_t turns_of(void *ctx, qn_node_t peer)
{
    const struct qn_sim_replica *r = ctx;
    /* relaxed: a sign of life; nothing is read through it. */
    return qn_load(&qn_outbox_state(r->group->replica[peer].outbox)->turns,
                   QN_RELAXED);
}

/* A replica that makes no turn here is stopped: it does not run. */
static qn_time_t cpu_time_of(void *ctx, qn_node_t peer)
{
    (void)ctx;
    (void)peer;
    return 0;
}

static bool is_stopped(void *ctx, qn_node_t peer)
{
    const struct qn_sim_replica *r = ctx;
    const struct qn_sim_commit_opts *o = &r->group->o;
    uint64_t now = qn_timed_clock() / QN_PS_PER_NS;
    bool stopped = false;
    for (uint32_t i = 0; i < o->faults; i++) {
        const struct qn_sim_fault *f = &o->fault[i];
        stopped |= f->kind == QN_SIM_FAULT_STOP && f->node == peer &&
                   now >= f->from_ns && (f->until_ns == 0 || now < f->until_ns);
    }
    return stopped;
}

static struct qn_peer_facts facts(struct qn_sim_replica *r)
{
    return (struct qn_peer_facts){.dead = is_dead,
                                  .turns = turns_of,
                                  .cpu_time = cpu_time_of,
                                  .stopped = is_stopped,
                                  .ctx = r};
}

static void carry_out(struct qn_sim_replica *r,
                      const struct qn_detector_actions *a, qn_time_t now)
{
    for (uint64_t m = a->deaths; m != 0; m &= m - 1) {
        qn_driver_down(r->driver, (qn_node_t)__builtin_ctzll(m), now);
    }
    for (uint64_t m = a->ring; m != 0; m &= m - 1) {
        (void)qn_doorbell_ring(&r->ringer[__builtin_ctzll(m)]);
    }
    if (a->suspects_changed) {
        qn_driver_suspect(r->driver, a->suspects, now);
    }
    r->group->out->false_suspicions +=
        (uint64_t)__builtin_popcountll(a->false_suspicions);
}

/* @return when to look again. */
static qn_time_t watch_turn(struct qn_sim_replica *r, qn_time_t now, bool *did)
{
    struct qn_failure_detector *d = &r->detector;
    struct qn_detector_actions actions;
    if (!qn_failure_detector_due(d, now)) {
        return d->next_check;
    }
    const struct qn_peer_facts f = facts(r);
    qn_failure_detector_check(d, qn_driver_waits_for(r->driver), &f, now,
                              &actions);
    carry_out(r, &actions, now);
    *did |= actions.deaths != 0 || actions.suspects_changed;
    return qn_failure_detector_next(d, false);
}

/* Was it right that a replica has lost its role as stalled? */
static void roles_turn(struct qn_sim_replica *r, qn_time_t now)
{
    struct qn_driver_status st;
    /* relaxed: published by this replica. */
    uint64_t epoch = qn_load(&qn_outbox_state(r->outbox)->epoch, QN_RELAXED);
    if (epoch == r->epoch) {
        return;
    }
    r->epoch = epoch;
    qn_driver_status(r->driver, &st);
    if (st.reason == QN_REASON_SUSPECTED && st.lost != r->self) {
        const struct qn_peer_facts f = facts(r);
        qn_failure_detector_deposed(&r->detector, st.lost, &f, now);
    }
}

/* ---- the end ------------------------------------------------------------- */

/* Leave when all is applied everywhere: wake the others for that. */
static void settle_turn(struct qn_sim_replica *r)
{
    struct qn_sim_group *g = r->group;
    if (qn_timed_clock() < g->load_until || g->settled ||
        !qn_sim_history_settled(g)) {
        return;
    }
    g->settled = true;
    for (qn_node_t i = 0; i < g->o.replicas; i++) {
        if (i != r->self) {
            (void)qn_doorbell_ring(&r->ringer[i]);
        }
    }
}

/* ---- turns --------------------------------------------------------------- */

static void wait_for_work(struct qn_sim_replica *r, qn_time_t at)
{
    qn_time_t now = qn_clock_now();
    if (at <= now || qn_spin_again(&r->spin, now)) {
        return;
    }
    qn_doorbell_arm(&r->doorbell);
    if (!qn_driver_pending(r->driver) && !r->group->settled) {
        (void)qn_doorbell_wait(&r->doorbell, at);
    }
    qn_doorbell_disarm(&r->doorbell);
}

static void note_length(struct qn_sim_replica *r, qn_ps_t from)
{
    struct qn_sim_commit_result *out = r->group->out;
    uint64_t ns = (qn_timed_clock() - from) / QN_PS_PER_NS;
    out->turn_ns = QN_MAX(out->turn_ns, ns);
}

static void turn(struct qn_sim_replica *r)
{
    qn_ps_t from = qn_timed_clock();
    qn_time_t now = qn_clock_now();
    /* relaxed: a counter for peers; nothing is read through it. */
    qn_store(&qn_outbox_state(r->outbox)->turns, ++r->turns, QN_RELAXED);
    bool did = qn_driver_turn(r->driver, now, qn_clock_wall_ms());
    qn_sim_history_published(r);
    did |= qn_sim_clients_turn(r);
    (void)qn_driver_flush(r->driver, now);
    qn_sim_history_published(r);
    qn_time_t at = watch_turn(r, now, &did);
    roles_turn(r, now);
    settle_turn(r);
    note_length(r, from);
    if (did || r->unanswered > 0) { /* what was applied in the flush */
        qn_spin_reset(&r->spin);
    } else {
        wait_for_work(r, QN_MIN(at, qn_driver_deadline(r->driver)));
    }
}

void qn_sim_replica_main(void *ctx, uint32_t node)
{
    struct qn_sim_group *g = ctx;
    struct qn_sim_replica *r = &g->replica[node];
    QN_ASSERT(r->self == node);
    while (!g->settled) {
        turn(r);
    }
}
