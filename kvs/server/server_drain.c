/*
 * How a replica leaves: it drains, then it stops.
 *
 * Draining it listens no more, and reads what has come by then and no more;
 * that is answered as if each client had closed its sending side. When nothing
 * of its own is left it says DRAINED but goes on turning until it is told to
 * stop, because others may still need it as leader or acceptor.
 *
 * That may never happen: writes wait for a leader, an acceptor or a quorum that
 * is gone, reads for an index that is never applied, replies for a client that
 * does not read. So after `shutdown-timeout` it gives up: it counts the replies
 * that it owes, closes, and says DRAINED with their number. The limit is judged
 * here and not by the supervisor, since CONFIG SET changes it in the log and
 * since a replica may outlive its supervisor; that one only learns how long it
 * has to be patient (kvs/supervisor/supervisor_drain.c).
 */
#include "core/base/log.h"
#include "kvs/server/server.h"

void qn_server_phase_set(struct qn_server *s, enum qn_server_phase phase)
{
    /* relaxed: shown to people only. */
    qn_store(&qn_outbox_state(s->outbox)->phase, phase, QN_RELAXED);
    if (phase == QN_SERVER_SERVING || phase == QN_SERVER_DRAINING) {
        qn_server_events_note(s,
                              phase == QN_SERVER_SERVING ? QN_EVENT_SERVING
                                                         : QN_EVENT_DRAINING,
                              s->boot->self, qn_replica_applied(s->replica), 0);
    }
}

void qn_server_stop(struct qn_server *s)
{
    s->stopping = true;
    qn_server_phase_set(s, QN_SERVER_ENDED);
    uv_stop(&s->loop);
}

void qn_server_drain(struct qn_server *s)
{
    uint32_t limit = qn_replica_config(s->replica)->shutdown_timeout;
    (void)qn_control_draining(s->boot, limit);
    if (s->draining) {
        return;
    }
    s->draining = true;
    s->drain_until = qn_clock_now() + limit * QN_S;
    qn_server_phase_set(s, QN_SERVER_DRAINING);
    qn_doors_close(s);
    for (int i = 0; i < s->listeners; i++) {
        uv_close((uv_handle_t *)&s->listener[i], NULL);
    }
    qn_frontend_drain(&s->frontend);
    s->turn_wanted = true;
}

static void drained(struct qn_server *s, uint64_t missing)
{
    s->drained = true;
    bool stopped = qn_driver_stopped(qn_replica_driver(s->replica));
    if (qn_control_drained(s->boot, missing, stopped) == QN_OK) {
        return;
    }
    if (missing > 0) { /* nobody else is there to say so */
        qn_log(QN_LOG_WARN,
               "replica %u: shutdown-timeout is over; replies not given: %llu",
               s->boot->self, (unsigned long long)missing);
    }
    qn_server_stop(s);
}

qn_time_t qn_server_drain_turn(struct qn_server *s, qn_time_t now)
{
    if (!s->draining || s->drained) {
        return QN_TIME_NEVER;
    }
    if (qn_frontend_drained(&s->frontend) &&
        qn_replica_pending(s->replica) == 0) {
        drained(s, 0);
    } else if (now >= s->drain_until) {
        drained(s, qn_frontend_give_up(&s->frontend));
    } else {
        return s->drain_until;
    }
    return QN_TIME_NEVER;
}
