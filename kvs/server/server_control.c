/*
 * What the supervisor tells a replica, and what is done when the supervisor has
 * ended: replicas go on without it.
 */
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/log.h"
#include "kvs/server/server.h"

/* `fd` is taken; -1: none. */
static void on_event(struct qn_server *s, const struct qn_control_msg *e,
                     int fd)
{
    switch (e->kind) {
    case QN_CTL_READY:
        qn_startup_all_joined(&s->startup);
        s->turn_wanted = true;
        break;
    case QN_CTL_DRAIN:
        qn_server_drain(s);
        break;
    case QN_CTL_STOP:
        qn_server_stop(s);
        break;
    case QN_CTL_ADOPT:
    case QN_CTL_START:
        qn_server_adopt_event(s, e);
        break;
    case QN_CTL_ROLES_QUERY:
        qn_server_roles_tell(s, e->u.roles_query.token);
        break;
    case QN_CTL_LEAD:
        qn_driver_lead(qn_replica_driver(s->replica), e->u.lead.node,
                       qn_clock_now());
        s->turn_wanted = true;
        break;
    case QN_CTL_RECOVER_QUERY:
        qn_server_recoverable(s, &e->u.recover_query);
        break;
    case QN_CTL_RECOVER_ORDER:
        qn_server_recover(s);
        break;
    case QN_CTL_VOTER_CHANGE:
        qn_server_voter_change(s, &e->u.voter_change);
        break;
    case QN_CTL_MEMBER_SEAT:
        qn_server_member_seat(s, &e->u.member_seat);
        break;
    case QN_CTL_MEMBER_ANSWER:
        qn_server_member_answer(s, &e->u.member_answer);
        break;
    case QN_CTL_RECOVER_REFUSED:
        qn_server_refused(s, &e->u.recover_refused);
        break;
    case QN_CTL_PEER_DOWN:
        qn_server_peer_down(s, &e->u.peer_down);
        break;
    case QN_CTL_PEER_UP:
        qn_server_peer_up(s, &e->u.peer_up, fd);
        break;
    default:
        break;
    }
    if (fd >= 0) {
        close(fd);
    }
}

static void on_control(uv_poll_t *h, int status, int events)
{
    (void)status;
    (void)events;
    struct qn_server *s = h->data;
    char fault[QN_CONTROL_FAULT_MAX];
    struct qn_control_msg e;
    int fd = -1;
    int err = QN_OK;
    qn_frontend_wake(&s->frontend);
    while ((err = qn_control_next(s->boot, &e, &fd)) == QN_OK ||
           err == QN_ECORRUPT) {
        if (err == QN_OK) {
            on_event(s, &e, fd);
        } else {
            qn_log(QN_LOG_ERROR, "replica %u: %s", s->boot->self,
                   qn_control_fault_text(&e, fault));
        }
    }
    if (err != QN_EAGAIN) {
        QN_ASSERT(!s->adoptee.listening);
        /* The supervisor is gone. Replicas go on without it. */
        uv_poll_stop(&s->uv.control_poll);
        qn_startup_all_joined(&s->startup);
        s->turn_wanted = true;
        qn_server_recover_alone(s);
        qn_server_member_alone(s);
        qn_server_adopt_wait(s);
        qn_server_drain_alone(s);
    }
}

void qn_server_control_start(struct qn_server *s)
{
    uv_poll_start(&s->uv.control_poll, UV_READABLE, on_control);
}
