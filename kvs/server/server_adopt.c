/*
 * A replica without a supervisor, and how it gets the next one: the shell of
 * kvs/server/machine/adoptee.h.
 *
 * The socket for adopters is open before any other process has heard of this
 * replica, so an adopter finds every replica that others may know. An adopter's
 * connection takes the place of the old control socket, under its number, which
 * nothing else needs to know. The adopter is told at once all that a supervisor
 * holds (kvs/control/adopt.h): about two messages per node, for which the
 * socket has room. If the room is too small, the connection is closed.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/log.h"
#include "kvs/control/adopt.h"
#include "kvs/listen/listen.h"
#include "kvs/server/server.h"
#include "kvs/server/server_settings.h"

#define ROOM_BYTES (1 << 20) /* for 64 nodes: 200 messages of about 1.3 KiB */

/* ---- hand over ----------------------------------------------------------- */

struct giving {
    const struct qn_server *s;
    int err; /* the first; nothing is sent after it */
};

static void give(struct giving *g, struct qn_control_msg e, int fd)
{
    if (g->err == QN_OK) {
        g->err = qn_control_send(g->s->boot->control, &e, fd);
    }
}

/* A message without fields. */
static void give_kind(struct giving *g, enum qn_control_kind kind, int fd)
{
    give(g, (struct qn_control_msg){.kind = kind}, fd);
}

static void give_formats(struct giving *g)
{
    if (g->err == QN_OK) {
        g->err = qn_adopt_give_formats(g->s->boot->control);
    }
}

static void give_config(struct giving *g)
{
    const struct qn_server *s = g->s;
    struct qn_config c = *qn_replica_config(s->replica);
    c.replicas = s->boot->config->replicas;
    c.replicas_max = s->boot->nodes;
    c.min_replicas_auto = qn_settings_min_is_auto(s);
    int fd = qn_adopt_config_write(&c);
    if (fd < 0) {
        g->err = fd;
        return;
    }
    give_kind(g, QN_CTL_CONFIG, fd);
    close(fd);
}

static void give_listen(struct giving *g, qn_node_t node,
                        enum qn_listen_kind kind, int fd)
{
    const struct qn_control_msg e = {.kind = QN_CTL_LISTEN,
                                     .u.listen = {.node = node, .kind = kind}};
    if (fd >= 0) {
        give(g, e, fd);
    }
}

static void give_sockets(struct giving *g)
{
    const struct qn_server *s = g->s;
    if (s->boot->lock >= 0) {
        give_kind(g, QN_CTL_LOCK, s->boot->lock);
    }
    if (!s->drain.draining) {
        give_listen(g, s->boot->self, QN_LISTEN_SOCKET, s->boot->listen_own);
    }
    for (qn_node_t i = 0; !s->drain.draining && i < s->boot->nodes; i++) {
        give_listen(g, i, QN_LISTEN_SOCKET, s->boot->listen_shared[i]);
        give_listen(g, i, QN_LISTEN_PASS_FROM, s->boot->pass_from[i]);
        give_listen(g, i, QN_LISTEN_PASS_TO, s->boot->pass_to[i]);
    }
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        const struct qn_control_msg doorbell = {.kind = QN_CTL_DOORBELL,
                                                .u.doorbell.node = i};
        give(g, doorbell, s->boot->doorbell_fd[i]);
    }
    if (s->boot->record_fd >= 0) {
        give_kind(g, QN_CTL_RECORD, s->boot->record_fd);
    }
}

static void give_peer(void *ctx, const struct qn_member_peer *l)
{
    struct giving *g = ctx;
    const struct qn_control_msg e = {
        .kind = QN_CTL_PEER_UP,
        .u.peer_up = {.node = l->node,
                      .incarnation = l->incarnation,
                      .pid = (uint32_t)l->pid}};
    give(g, e, l->fd);
}

static void give_peers(struct giving *g)
{
    const struct qn_server *s = g->s;
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        struct qn_member_peer p;
        if (qn_member_peer(s->member, i, &p)) {
            give_peer(g, &p);
        } else if (i != s->boot->self) {
            const struct qn_control_msg dead = {
                .kind = QN_CTL_PEER_DOWN,
                .u.peer_down = {.node = i, .incarnation = p.incarnation}};
            give(g, dead, -1);
        }
    }
    qn_member_each_retained(s->member, give_peer, g);
}

/* @return QN_OK; the first error. */
static int tell(struct qn_server *s, bool all)
{
    struct giving g = {.s = s};
    int room = ROOM_BYTES;
    (void)setsockopt(s->boot->control, SOL_SOCKET, SO_SNDBUF, &room,
                     sizeof room);
    const struct qn_control_msg adopt = {
        .kind = QN_CTL_ADOPT,
        .u.adopt = {.node = s->boot->self,
                    .incarnation = s->boot->incarnation,
                    .newest = QN_ADOPT_VERSION}};
    const struct qn_control_msg hello = {
        .kind = QN_CTL_HELLO,
        .u.hello = {.node = s->boot->self,
                    .incarnation = s->boot->incarnation}};
    give(&g, adopt, s->boot->commons_fd);
    if (all) {
        give_formats(&g);
        give_config(&g);
        give_sockets(&g);
        give_peers(&g);
        give(&g, hello, qn_member_outbox_fd(s->member));
        if (s->startup.ready) {
            give_kind(&g, QN_CTL_READY, -1);
        }
        g.err = g.err == QN_OK ? qn_server_voters_tell(s) : g.err;
        give_kind(&g, QN_CTL_START, -1);
    }
    return g.err;
}

/* ---- what is decided ----------------------------------------------------- */

static void on_adopter(uv_poll_t *h, int status, int events);

static void log_alone(const struct qn_server *s)
{
    qn_log(QN_LOG_WARN,
           "replica %u: supervisor exited; this replica keeps serving, but "
           "failed replicas will not be restarted%s",
           s->boot->self,
           s->adoptee.reachable ? " until quoind is started again" : "");
}

static void tell_adopter(struct qn_server *s, bool all)
{
    int err = tell(s, all);
    bool failed = err != QN_OK && err != QN_EPEERDEAD;
    if ((qn_adoptee_told(&s->adoptee, failed) & QN_ADOPTEE_HANG_UP) != 0) {
        qn_log(QN_LOG_WARN, "replica %u cannot be adopted: %s", s->boot->self,
               qn_strerror(err));
        (void)shutdown(s->boot->control, SHUT_RDWR);
    }
}

static void carry_out(struct qn_server *s, unsigned actions)
{
    if ((actions & QN_ADOPTEE_LOG_ALONE) != 0) {
        log_alone(s);
    }
    if ((actions & QN_ADOPTEE_LISTEN) != 0) {
        QN_ASSERT(s->adopt_fd >= 0);
        uv_poll_start(&s->uv.adopt_poll, UV_READABLE, on_adopter);
    }
    if ((actions & QN_ADOPTEE_TALK) != 0) {
        uv_poll_stop(&s->uv.adopt_poll);
        qn_server_control_start(s);
    }
    if ((actions & QN_ADOPTEE_TELL) != 0) {
        tell_adopter(s, (actions & QN_ADOPTEE_TELL_ALL) != 0);
    }
    if ((actions & QN_ADOPTEE_LOG_ADOPTED) != 0) {
        qn_log(QN_LOG_INFO, "replica %u: process %d is the supervisor now",
               s->boot->self, s->adoptee.adopter);
    }
}

void qn_server_adopt_event(struct qn_server *s, const struct qn_control_msg *e)
{
    struct qn_adoptee *a = &s->adoptee;
    if (e->kind == QN_CTL_ADOPT) {
        carry_out(s,
                  qn_adoptee_greeted(a, qn_adopt_version(e->u.adopt.oldest,
                                                         e->u.adopt.newest)));
    } else {
        carry_out(s, qn_adoptee_started(a));
    }
}

/* ---- adopters ------------------------------------------------------------ */

static void on_adopter(uv_poll_t *h, int status, int events)
{
    struct qn_server *s = h->data;
    pid_t pid;
    (void)status;
    (void)events;
    qn_frontend_wake(&s->frontend);
    int fd = qn_adopt_accept(s->adopt_fd, &pid);
    if (fd < 0) {
        return;
    }
    QN_ASSERT(s->adoptee.alone);
    QN_ASSERT(!uv_is_active((const uv_handle_t *)&s->uv.control_poll));
    if (dup3(fd, s->boot->control, O_CLOEXEC) >= 0) {
        carry_out(s, qn_adoptee_came(&s->adoptee, (int)pid));
    }
    close(fd);
}

void qn_server_adopt_open(struct qn_server *s)
{
    if (s->boot->lock < 0) {
        return; /* no adopter could find it */
    }
    s->adopt_fd = qn_adopt_listen(s->boot->config, s->boot->self);
    if (s->adopt_fd < 0) {
        qn_log(QN_LOG_WARN,
               "replica %u could not be adopted by another supervisor: %s",
               s->boot->self, qn_strerror(s->adopt_fd));
    }
    qn_adoptee_init(&s->adoptee, s->adopt_fd >= 0);
}

int qn_server_adopt_begin(struct qn_server *s)
{
    if (s->adopt_fd < 0) {
        return QN_OK;
    }
    s->uv.adopt_poll.data = s;
    return uv_poll_init(&s->uv.loop, &s->uv.adopt_poll, s->adopt_fd) == 0
               ? QN_OK
               : QN_EIO;
}

void qn_server_adopt_wait(struct qn_server *s)
{
    carry_out(s, qn_adoptee_lost(&s->adoptee, s->drain.stopping));
}

void qn_server_adopt_fini(struct qn_server *s)
{
    if (s->adopt_fd >= 0) {
        close(s->adopt_fd);
    }
}
