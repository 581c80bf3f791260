/*
 * How a replica leaves: the shell of kvs/server/machine/drain.h.
 *
 * Draining it listens no more. It reads what has come by then, and answers that
 * as if each client had closed its sending side. The limit is judged here and
 * not by the supervisor, since CONFIG SET changes it in the log and since a
 * replica may outlive its supervisor. The supervisor only learns how long the
 * replica may take (kvs/supervision/drain.c).
 */
#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/log.h"
#include "kvs/server/server.h"

void qn_server_phase_set(struct qn_server *s, enum qn_server_phase phase)
{
    qn_member_phase_set(s->member, phase);
    if (phase == QN_SERVER_SERVING || phase == QN_SERVER_DRAINING) {
        qn_server_events_note(s,
                              phase == QN_SERVER_SERVING ? QN_EVENT_SERVING
                                                         : QN_EVENT_DRAINING,
                              s->boot->self, qn_replica_applied(s->replica), 0);
    }
}

static void close_listeners(struct qn_server *s)
{
    QN_ASSERT(qn_drain_active(&s->drain));
    QN_ASSERT(s->uv.listeners <= (int)QN_ARRAY_COUNT(s->uv.listener));
    qn_server_phase_set(s, QN_SERVER_DRAINING);
    qn_server_accept_close(s);
    for (int i = 0; i < s->uv.listeners; i++) {
        uv_close((uv_handle_t *)&s->uv.listener[i], NULL);
    }
    qn_frontend_drain(&s->frontend);
    s->turn_wanted = true;
}

static bool tell(struct qn_server *s)
{
    bool stopped = qn_driver_halted(qn_replica_driver(s->replica));
    return qn_control_drained(s->boot, s->drain.unanswered, stopped) == QN_OK;
}

/* In the order of the bits: GIVE_UP and TELL lead to further actions. */
static void carry_out(struct qn_server *s, unsigned actions)
{
    struct qn_drain *d = &s->drain;
    if ((actions & QN_DRAIN_CLOSE) != 0) {
        close_listeners(s);
    }
    if ((actions & QN_DRAIN_GIVE_UP) != 0) {
        actions |= qn_drain_gave_up(d, qn_frontend_give_up(&s->frontend));
    }
    if ((actions & QN_DRAIN_TELL) != 0) {
        actions |= qn_drain_told(d, tell(s));
    }
    if ((actions & QN_DRAIN_LOG) != 0) {
        qn_log(QN_LOG_WARN,
               "replica %u: shutdown-timeout expired with %llu replies unsent",
               s->boot->self, (unsigned long long)d->unanswered);
    }
    if ((actions & QN_DRAIN_LEAVE_LOOP) != 0) {
        QN_ASSERT(d->stopping);
        qn_server_phase_set(s, QN_SERVER_ENDED);
        uv_stop(&s->uv.loop);
    }
}

void qn_server_stop(struct qn_server *s)
{
    carry_out(s, qn_drain_stop(&s->drain));
}

void qn_server_drain_alone(struct qn_server *s)
{
    carry_out(s, qn_drain_supervisor_lost(&s->drain));
}

void qn_server_drain(struct qn_server *s)
{
    uint32_t limit = qn_replica_config(s->replica)->shutdown_timeout;
    (void)qn_control_draining(s->boot, limit);
    carry_out(s, qn_drain_begin(&s->drain, limit * QN_S, qn_clock_now()));
}

qn_time_t qn_server_drain_turn(struct qn_server *s, qn_time_t now)
{
    struct qn_drain *d = &s->drain;
    if (!qn_drain_active(d)) {
        return QN_TIME_NEVER;
    }
    bool answered = qn_frontend_drained(&s->frontend) &&
                    qn_replica_pending(s->replica) == 0;
    carry_out(s, qn_drain_turn(d, answered, now));
    return qn_drain_active(d) ? d->give_up_at : QN_TIME_NEVER;
}
