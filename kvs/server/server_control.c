/*
 * What the supervisor tells a replica, and what is done when the supervisor has
 * ended: replicas go on without it.
 */
#include <unistd.h>

#include "kvs/server/server.h"

/* `fd` is taken; -1: none. */
static void on_event(struct qn_server *s, const struct qn_boot_event *e, int fd)
{
    switch (e->kind) {
    case QN_BOOT_READY:
        s->founded = true;
        s->turn_wanted = true;
        break;
    case QN_BOOT_DRAIN:
        qn_server_drain(s);
        break;
    case QN_BOOT_STOP:
        qn_server_stop(s);
        break;
    case QN_BOOT_ADOPT:
    case QN_BOOT_GO:
        qn_server_adopt_event(s, e);
        break;
    case QN_BOOT_ROLES:
        qn_server_roles_tell(s, e->value);
        break;
    case QN_BOOT_LEAD:
        qn_driver_lead(qn_replica_driver(s->replica), e->node, qn_clock_now());
        s->turn_wanted = true;
        break;
    case QN_BOOT_RECOVERABLE:
        qn_server_recoverable(s, e);
        break;
    case QN_BOOT_RECOVER:
        qn_server_recover(s);
        break;
    case QN_BOOT_REFUSED:
        qn_server_refused(s, e);
        break;
    case QN_BOOT_PEER_DOWN:
        qn_server_peer_down(s, e);
        break;
    case QN_BOOT_PEER:
        qn_server_peer_up(s, e, fd);
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
    struct qn_boot_event e;
    int fd = -1;
    int err = QN_OK;
    qn_frontend_wake(&s->frontend);
    while ((err = qn_boot_next_event(s->boot, &e, &fd)) == QN_OK) {
        on_event(s, &e, fd);
    }
    if (err != QN_EAGAIN) {
        /* The supervisor is gone. Replicas go on without it. */
        uv_poll_stop(&s->control_poll);
        s->founded = true;
        s->turn_wanted = true;
        qn_server_recover_alone(s);
        qn_server_adopt_wait(s);
        if (s->drained) {
            qn_server_stop(s);
        }
    }
}

void qn_server_control_start(struct qn_server *s)
{
    uv_poll_start(&s->control_poll, UV_READABLE, on_control);
}
