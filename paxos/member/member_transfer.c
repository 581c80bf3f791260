/*
 * State transfer of a member (paxos/member/transfer): its messages are taken
 * out of those of peers before the service sees them, and the driver learns
 * what is on its way.
 */
#include "core/base/assert.h"
#include "core/base/err.h"
#include "paxos/member/member_internal.h"

/* ---- what the driver brings ---------------------------------------------- */

static bool on_message(void *ctx, qn_node_t from, struct qn_slice bytes)
{
    struct qn_member *m = ctx;
    QN_ASSERT(m->transfer != NULL);
    bool taken =
        qn_state_transfer_on_message(m->transfer, from, bytes, qn_clock_now());
    m->again = m->again || taken;
    return taken;
}

static void on_needed(void *ctx, qn_slot_t slot)
{
    struct qn_member *m = ctx;
    struct qn_state_transfer_status st;
    QN_ASSERT(m->transfer != NULL);
    qn_state_transfer_status(m->transfer, &st);
    if (!st.joining && !st.gave_up) {
        m->state.lags(m->state.ctx, slot);
        m->again = true;
    }
    qn_state_transfer_begin(m->transfer, slot, qn_clock_now());
}

struct qn_driver_snapshots qn_member_snapshots(struct qn_member *m)
{
    return m->has_state ? (struct qn_driver_snapshots){.on_message = on_message,
                                                       .needed = on_needed,
                                                       .ctx = m}
                        : (struct qn_driver_snapshots){0};
}

/* ---- begin and end ------------------------------------------------------- */

/* A node that is absent from the beginning is asked nothing. A later
 * incarnation has no state of its own and asks the others. */
static void acquaint(struct qn_member *m)
{
    qn_time_t now = qn_clock_now();
    for (qn_node_t i = 0; i < m->o.nodes; i++) {
        if (i != m->o.self && m->peers.present[i] == NULL) {
            qn_state_transfer_peer_down(m->transfer, i, now);
        }
    }
    if (!m->o.first) {
        qn_state_transfer_begin(m->transfer, 0, now);
    }
}

int qn_member_transfer_begin(struct qn_member *m)
{
    if (!m->has_state) {
        return QN_OK;
    }
    m->transfer_ops =
        (struct qn_driver_transfer){.driver = m->driver,
                                    .self = m->o.self,
                                    .nodes = m->o.nodes,
                                    .incarnation = m->o.incarnation,
                                    .backlog_bytes = m->o.backlog_bytes,
                                    .state = &m->state};
    const struct qn_state_transfer_opts o = {
        .self = m->o.self,
        .nodes = m->o.nodes,
        .ops = qn_driver_transfer_ops(&m->transfer_ops),
        .user = m->state.user,
        .rounds_max = m->state.rounds_max,
        .alloc = m->o.alloc,
        .log = m->o.log};
    int err = qn_state_transfer_create(&m->transfer, &o);
    if (err == QN_OK) {
        acquaint(m);
    }
    return err;
}

void qn_member_stop(struct qn_member *m)
{
    if (m != NULL) {
        m->stopped = true;
        qn_state_transfer_destroy(m->transfer);
        m->transfer = NULL;
    }
}

/* ---- turns, and questions ------------------------------------------------ */

qn_time_t qn_member_transfer_turn(struct qn_member *m, qn_time_t now)
{
    if (m->transfer == NULL) {
        return QN_TIME_NEVER;
    }
    const bool complete = m->state.user.complete(m->state.user.ctx);
    if (m->transfer_rests && m->complete == complete &&
        qn_state_transfer_rests(m->transfer)) {
        return QN_TIME_NEVER; /* as a rule */
    }
    qn_time_t at = qn_state_transfer_turn(m->transfer, now);
    m->complete = m->state.user.complete(m->state.user.ctx);
    qn_driver_coming(m->driver, qn_state_transfer_coming(m->transfer));
    qn_driver_has_state(m->driver, m->complete);
    if (qn_state_transfer_gave_up(m->transfer)) {
        struct qn_state_transfer_status st;
        qn_state_transfer_status(m->transfer, &st);
        qn_driver_apply_gave_up(m->driver, st.error);
    }
    if (m->state.user.no_cut) {
        qn_driver_suspend_apply(m->driver,
                                qn_state_transfer_suspends(m->transfer));
    }
    m->transfer_rests = qn_state_transfer_rests(m->transfer);
    return at;
}

void qn_member_transfer_status(const struct qn_member *m,
                               struct qn_state_transfer_status *out)
{
    QN_ASSERT(m->transfer != NULL);
    qn_state_transfer_status(m->transfer, out);
}

bool qn_member_transfer_gave_up(const struct qn_member *m)
{
    QN_ASSERT(m->transfer != NULL);
    return qn_state_transfer_gave_up(m->transfer);
}

void qn_member_transfer_forget(struct qn_member *m)
{
    QN_ASSERT(m->transfer != NULL);
    qn_state_transfer_forget(m->transfer);
}
