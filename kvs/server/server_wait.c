/*
 * WAIT: connections that wait until other replicas have applied their last
 * write.
 */
#include "kvs/resp/reply.h"
#include "kvs/server/server.h"

static int64_t replicas_at(struct qn_server *s, qn_slot_t slot)
{
    int64_t n = 0;
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        /* acquire <- release in the peer's driver: it has applied them. */
        if (s->peer[i] != NULL &&
            qn_load(&qn_outbox_state(s->peer[i]->outbox)->applied,
                    QN_ACQUIRE) >= slot) {
            n++;
        }
    }
    return n;
}

/* Peers do not ring when they have applied, so WAIT looks again every ms. */
qn_time_t qn_server_wait_turn(struct qn_server *s, qn_time_t now)
{
    struct qn_conn **at = &s->waiting;
    while (*at != NULL) {
        struct qn_conn *c = *at;
        int64_t have = replicas_at(s, c->last_write);
        if (c->closed || have >= c->wait_want || now >= c->wait_until ||
            s->draining) {
            *at = c->wait_next;
            c->waiting = false;
            if (!c->closed) {
                qn_reply_int(qn_conn_answer(c), have);
            }
            qn_conn_answered(c);
        } else {
            at = &c->wait_next;
        }
    }
    return s->waiting != NULL ? now + QN_MS : QN_TIME_NEVER;
}

void qn_server_wait(struct qn_server *s, struct qn_conn *c, int64_t want,
                    uint64_t ms)
{
    c->hold = QN_HOLD_ANSWER;
    c->waiting = true;
    c->wait_want = want;
    c->wait_until =
        ms == 0 ? QN_TIME_NEVER : qn_clock_now() + (qn_time_t)ms * QN_MS;
    c->wait_next = s->waiting;
    s->waiting = c;
}
