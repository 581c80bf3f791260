/*
 * A snapshot replaces the state between two slots. The log will not bring own
 * commands that it contains; the service is told which ones these are, before
 * it installs the state.
 */
#include "paxos/member/driver_transfer.h"

#include "core/base/err.h"
#include "paxos/machine/params.h"

static int tell(void *ctx, qn_node_t to, struct qn_slice bytes)
{
    const struct qn_driver_transfer *t = ctx;
    return qn_driver_send_peer_message(t->driver, to, bytes);
}

/* The leader has the most work. */
static uint64_t busy(void *ctx)
{
    const struct qn_driver_transfer *t = ctx;
    struct qn_driver_status st;
    qn_driver_status(t->driver, &st);
    return st.leader < QN_NODES_MAX ? UINT64_C(1) << st.leader : 0;
}

static bool cut(void *ctx, struct qn_library_state *s)
{
    const struct qn_driver_transfer *t = ctx;
    if (!qn_driver_cut(t->driver, &s->resume)) {
        return false;
    }
    s->nodes = t->nodes;
    s->ul_count = qn_driver_ul(t->driver, s->ul, QN_UL_KEPT);
    return true;
}

static bool whole(void *ctx)
{
    const struct qn_driver_transfer *t = ctx;
    return qn_apply_failure_whole(qn_driver_apply_failure(t->driver));
}

static int resume(void *ctx, const struct qn_library_state *s, qn_time_t now)
{
    const struct qn_driver_transfer *t = ctx;
    const struct qn_session *own = &s->resume.session[t->self];
    int err = qn_driver_install(t->driver, &s->resume, s->ul, s->ul_count, now);
    if (err == QN_ESTALE && whole(ctx)) { /* the log was faster */
        t->state->caught_up(t->state->ctx, s->resume.position);
    }
    if (err == QN_OK && own->inc == t->incarnation) {
        t->state->covered(t->state->ctx, own->last);
    }
    return err;
}

/* A member that leads applies what it decides, unless it alone can give a
 * state; and one without a leader may have to lead. */
static bool may_suspend(void *ctx, bool alone)
{
    const struct qn_driver_transfer *t = ctx;
    struct qn_driver_status st;
    qn_driver_status(t->driver, &st);
    if (st.leader >= t->nodes || (st.alive >> st.leader & 1) == 0) {
        return false;
    }
    return st.leader != t->self || alone;
}

static uint32_t log_used(void *ctx, qn_slot_t position)
{
    const struct qn_driver_transfer *t = ctx;
    struct qn_driver_status st;
    qn_driver_status(t->driver, &st);
    uint64_t slots = st.applied > position ? st.applied - position : 0;
    uint64_t bytes = qn_driver_bytes_above(t->driver, position);
    const struct qn_flow_limits l =
        qn_flow_default(2, QN_RING, t->backlog_bytes);
    uint64_t used =
        QN_MAX(100 * bytes / l.stop_bytes, 100 * slots / l.stop_slots);
    return (uint32_t)QN_MIN(used, 100u);
}

static void hold(void *ctx, qn_node_t joiner, qn_slot_t position, uint32_t done)
{
    const struct qn_driver_transfer *t = ctx;
    qn_driver_hold(t->driver, joiner, position, done);
}

static void release(void *ctx, qn_node_t joiner)
{
    const struct qn_driver_transfer *t = ctx;
    (void)joiner; /* a donor serves one joiner at a time */
    qn_driver_release(t->driver);
}

struct qn_state_transfer_ops qn_driver_transfer_ops(
    struct qn_driver_transfer *t)
{
    return (struct qn_state_transfer_ops){.tell = tell,
                                          .busy = busy,
                                          .cut = cut,
                                          .whole = whole,
                                          .resume = resume,
                                          .may_suspend = may_suspend,
                                          .log_used = log_used,
                                          .hold = hold,
                                          .release = release,
                                          .cpu = qn_clock_cpu,
                                          .ctx = t};
}
