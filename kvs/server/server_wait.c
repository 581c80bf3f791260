/*
 * WAIT: the shell of the wait queue (kvs/frontend/wait_queue.h).
 */
#include <poll.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "kvs/frontend/wait_queue.h"
#include "kvs/resp/reply.h"
#include "kvs/server/server.h"

/* What each living peer has applied, as it says. @return peers. */
static uint32_t applied_by(const struct qn_driver *driver, uint32_t nodes,
                           qn_slot_t *applied)
{
    uint32_t peers = 0;
    for (qn_node_t i = 0; i < nodes; i++) {
        struct qn_position at;
        if (qn_driver_peer_says(driver, i, &at)) {
            applied[peers++] = at.applied;
        }
    }
    QN_ASSERT(peers < nodes);
    return peers;
}

enum { CHECKS = 64 }; /* sockets per system call */

static void check_some(struct qn_waiter *const *w, struct pollfd *fds,
                       nfds_t count)
{
    int found = poll(fds, count, 0);
    for (nfds_t i = 0; i < count && found > 0; i++) {
        w[i]->ended = fds[i].revents != 0;
        found -= w[i]->ended;
    }
}

/* A waiting session does not read its socket, so the loop does not tell that
 * its client has ended. */
static void check_clients(struct qn_wait_queue *q)
{
    struct pollfd fds[CHECKS];
    struct qn_waiter *of[CHECKS];
    nfds_t count = 0;
    for (struct qn_waiter *w = q->first; w != NULL; w = w->next) {
        struct qn_conn *c = QN_CONTAINER_OF(w, struct qn_conn, waiter);
        struct pollfd *p = &fds[count];
        *p = (struct pollfd){.events = POLLRDHUP};
        if (w->cancelled ||
            uv_fileno((const uv_handle_t *)&c->uv, &p->fd) != 0) {
            continue; /* it is closed already */
        }
        of[count++] = w;
        if (count == CHECKS) {
            check_some(of, fds, count);
            count = 0;
        }
    }
    check_some(of, fds, count);
}

/* May free its connection. */
static void answer(struct qn_waiter *w)
{
    struct qn_conn *c = QN_CONTAINER_OF(w, struct qn_conn, waiter);
    QN_ASSERT(!w->queued);
    QN_ASSERT(qn_conn_is_closed(c) == w->cancelled);
    if (!w->cancelled) {
        qn_reply_int(qn_conn_answer(c), w->have);
    }
    qn_conn_answered(c);
}

qn_time_t qn_server_wait_turn(struct qn_wait_queue *q,
                              const struct qn_driver *driver, uint32_t nodes,
                              bool draining, qn_time_t now)
{
    qn_slot_t applied[QN_NODES_MAX];
    if (!qn_wait_queue_active(q)) {
        return QN_TIME_NEVER;
    }
    const struct qn_wait_view view = {.applied = applied,
                                      .peers =
                                          applied_by(driver, nodes, applied),
                                      .draining = draining};
    if (qn_wait_queue_check(q, now)) {
        check_clients(q);
    }
    struct qn_waiter *w = qn_wait_queue_step(q, &view, now);
    while (w != NULL) {
        struct qn_waiter *next = w->next;
        answer(w);
        w = next;
    }
    return qn_wait_queue_active(q) ? now + QN_WAIT_INTERVAL : QN_TIME_NEVER;
}

void qn_server_wait(struct qn_wait_queue *q, struct qn_conn *c, int64_t want,
                    uint64_t ms)
{
    qn_session_block_remote(&c->session);
    qn_wait_queue_add(q, &c->waiter, c->session.last_write, want, ms,
                      qn_clock_now());
}
