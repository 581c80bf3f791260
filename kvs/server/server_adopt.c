/*
 * A replica without a supervisor, and how it gets the next one.
 *
 * The socket for adopters is there before anybody has heard of this replica, so
 * an adopter finds all that may be known to others. Nobody is let in while the
 * supervisor lives: connections wait. An adopter's connection takes the place
 * of the old control socket, under its number, which nothing else needs to
 * know. It is told all that a supervisor holds (kvs/control/adopt.h) at once:
 * about two messages per node, for which the socket has room; if not, it is
 * hung up on.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/log.h"
#include "kvs/control/adopt.h"
#include "kvs/listen/listen.h"
#include "kvs/server/server.h"

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
    c.replicas = s->boot->nodes;
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
    if (!s->draining) {
        give_listen(g, s->boot->self, QN_LISTEN_SOCKET, s->boot->listen_own);
    }
    for (qn_node_t i = 0; !s->draining && i < s->boot->nodes; i++) {
        give_listen(g, i, QN_LISTEN_SOCKET, s->boot->listen_shared[i]);
        give_listen(g, i, QN_LISTEN_PASS_FROM, s->boot->pass_from[i]);
        give_listen(g, i, QN_LISTEN_PASS_TO, s->boot->pass_to[i]);
    }
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        const struct qn_control_msg doorbell = {.kind = QN_CTL_DOORBELL,
                                                .u.doorbell.node = i};
        give(g, doorbell, s->boot->doorbell_fd[i]);
    }
}

static void give_life(struct giving *g, const struct qn_server_life *l)
{
    const struct qn_control_msg e = {.kind = QN_CTL_PEER_UP,
                                     .u.peer_up = {.node = l->node,
                                                   .incarnation = l->inc,
                                                   .pid = (uint32_t)l->pid}};
    give(g, e, l->fd);
}

static void give_lives(struct giving *g)
{
    const struct qn_server *s = g->s;
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        if (s->peer[i] != NULL) {
            give_life(g, s->peer[i]);
        } else if (i != s->boot->self) {
            const struct qn_control_msg dead = {
                .kind = QN_CTL_PEER_DOWN,
                .u.peer_down = {.node = i, .incarnation = s->peer_inc[i]}};
            give(g, dead, -1);
        }
    }
    for (const struct qn_server_life *l = s->kept; l != NULL; l = l->next) {
        give_life(g, l);
    }
}

static void tell(struct qn_server *s, uint32_t version)
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
    if (version != 0) {
        give_formats(&g);
        give_config(&g);
        give_sockets(&g);
        give_lives(&g);
        give(&g, hello, qn_outbox_fd(s->outbox));
        if (s->ready) {
            give_kind(&g, QN_CTL_READY, -1);
        }
        give_kind(&g, QN_CTL_START, -1);
    }
    if (g.err != QN_OK && g.err != QN_EPEERDEAD) {
        qn_log(QN_LOG_WARN, "replica %u cannot be adopted: %s", s->boot->self,
               qn_strerror(g.err));
        (void)shutdown(s->boot->control, SHUT_RDWR);
    }
}

void qn_server_adopt_event(struct qn_server *s, const struct qn_control_msg *e)
{
    if (!s->alone) {
        return;
    }
    if (e->kind == QN_CTL_ADOPT) {
        tell(s, qn_adopt_version(e->u.adopt.oldest, e->u.adopt.newest));
    } else {
        s->alone = false;
        qn_log(QN_LOG_INFO, "replica %u: process %d is the supervisor now",
               s->boot->self, (int)s->adopter);
    }
}

/* ---- who comes ----------------------------------------------------------- */

static void on_adopter(uv_poll_t *h, int status, int events)
{
    struct qn_server *s = h->data;
    (void)status;
    (void)events;
    qn_frontend_wake(&s->frontend);
    int fd = qn_adopt_accept(s->adopt_fd, &s->adopter);
    if (fd < 0) {
        return;
    }
    if (dup3(fd, s->boot->control, O_CLOEXEC) >= 0) {
        uv_poll_stop(&s->adopt_poll);
        qn_server_control_start(s);
    }
    close(fd);
}

void qn_server_adopt_open(struct qn_server *s)
{
    if (s->boot->lock < 0) {
        return; /* nobody could find it */
    }
    s->adopt_fd = qn_adopt_listen(s->boot->config, s->boot->self);
    if (s->adopt_fd < 0) {
        qn_log(QN_LOG_WARN,
               "replica %u could not be adopted by another supervisor: %s",
               s->boot->self, qn_strerror(s->adopt_fd));
    }
}

int qn_server_adopt_begin(struct qn_server *s)
{
    if (s->adopt_fd < 0) {
        return QN_OK;
    }
    s->adopt_poll.data = s;
    return uv_poll_init(&s->loop, &s->adopt_poll, s->adopt_fd) == 0 ? QN_OK
                                                                    : QN_EIO;
}

void qn_server_adopt_wait(struct qn_server *s)
{
    if (!s->alone) {
        s->alone = true;
        qn_log(QN_LOG_WARN,
               "replica %u: the supervisor has ended; it goes on, but who ends "
               "is not started again%s",
               s->boot->self,
               s->adopt_fd >= 0 ? " until quoind is started again" : "");
    }
    if (s->adopt_fd >= 0 && !s->stopping) {
        uv_poll_start(&s->adopt_poll, UV_READABLE, on_adopter);
    }
}

void qn_server_adopt_fini(struct qn_server *s)
{
    if (s->adopt_fd >= 0) {
        close(s->adopt_fd);
    }
}
