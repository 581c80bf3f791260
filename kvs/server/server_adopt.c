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

static void give(struct giving *g, struct qn_boot_event e, int fd)
{
    if (g->err == QN_OK) {
        g->err = qn_boot_send(g->s->boot->control, &e, fd);
    }
}

static struct qn_boot_event own(const struct qn_server *s,
                                enum qn_boot_kind kind, uint64_t value)
{
    return (struct qn_boot_event){.kind = kind,
                                  .node = s->boot->self,
                                  .incarnation = s->boot->incarnation,
                                  .value = value};
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
    give(g, own(s, QN_BOOT_CONFIG, 0), fd);
    close(fd);
}

static void give_pass(struct giving *g, qn_node_t node,
                      enum qn_listen_kind kind, int fd)
{
    const struct qn_boot_event e = {
        .kind = QN_BOOT_LISTEN, .node = node, .value = kind};
    if (fd >= 0) {
        give(g, e, fd);
    }
}

static void give_sockets(struct giving *g)
{
    const struct qn_server *s = g->s;
    if (s->boot->lock >= 0) {
        give(g, own(s, QN_BOOT_LOCK, 0), s->boot->lock);
    }
    if (!s->draining && s->boot->listen_own >= 0) {
        give(g, own(s, QN_BOOT_LISTEN, 0), s->boot->listen_own);
    }
    for (qn_node_t i = 0; !s->draining && i < s->boot->nodes; i++) {
        const struct qn_boot_event door = {.kind = QN_BOOT_LISTEN, .node = i};
        give(g, door, s->boot->listen_shared[i]);
        give_pass(g, i, QN_LISTEN_PASS_FROM, s->boot->pass_from[i]);
        give_pass(g, i, QN_LISTEN_PASS_TO, s->boot->pass_to[i]);
    }
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        const struct qn_boot_event doorbell = {.kind = QN_BOOT_BELL, .node = i};
        give(g, doorbell, s->boot->doorbell_fd[i]);
    }
}

static void give_life(struct giving *g, const struct qn_server_life *l)
{
    const struct qn_boot_event e = {.kind = QN_BOOT_PEER,
                                    .node = l->node,
                                    .incarnation = l->inc,
                                    .value = (uint64_t)l->pid};
    give(g, e, l->fd);
}

static void give_lives(struct giving *g)
{
    const struct qn_server *s = g->s;
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        if (s->peer[i] != NULL) {
            give_life(g, s->peer[i]);
        } else if (i != s->boot->self) {
            const struct qn_boot_event dead = {.kind = QN_BOOT_PEER_DOWN,
                                               .node = i,
                                               .incarnation = s->peer_inc[i]};
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
    give(&g, own(s, QN_BOOT_ADOPT, QN_ADOPT_VERSION), s->boot->commons_fd);
    if (version != 0) {
        give_formats(&g);
        give_config(&g);
        give_sockets(&g);
        give_lives(&g);
        give(&g, own(s, QN_BOOT_HELLO, 0), qn_outbox_fd(s->outbox));
        if (s->ready) {
            give(&g, own(s, QN_BOOT_READY, 0), -1);
        }
        give(&g, own(s, QN_BOOT_GO, 0), -1);
    }
    if (g.err != QN_OK && g.err != QN_EPEERDEAD) {
        qn_log(QN_LOG_WARN, "replica %u cannot be adopted: %s", s->boot->self,
               qn_strerror(g.err));
        (void)shutdown(s->boot->control, SHUT_RDWR);
    }
}

void qn_server_adopt_event(struct qn_server *s, const struct qn_boot_event *e)
{
    if (!s->alone) {
        return;
    }
    if (e->kind == QN_BOOT_ADOPT) {
        tell(s, qn_adopt_version((uint64_t)e->error, e->value));
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
