/*
 * The doors of the common address (doors.h).
 *
 * The others' listening sockets are in an epoll of their own, which libuv polls
 * as one descriptor. Whatever comes there wakes this process, once: then it is
 * not polled until the next look, QN_WATCH_LOOK later, which is usually the
 * last one as the owner has accepted. While something waits, looks go on; when
 * nothing does, the epoll is polled again, and since it is asked for levels,
 * not edges, nothing that came in between is missed. So a server without new
 * connections is never woken, and one with thousands a second has 67 looks.
 *
 *     polled --a connection--> look --nothing waits, LOOK later--> polled
 *                               | \
 *                               |  due (kvs/listen/watch.h): accept, serve
 *                               LOOK later
 *
 * Who is out is judged again at every look and at news of a life; what changes
 * is given to the kernel, by everybody who sees it. Two may see different
 * things for a moment, and the last one to say it wins: so as long as somebody
 * who lives is out, looks go on, OUT apart, and everybody whose view has
 * changed says it again. Whoever gets connections by mistake meanwhile is
 * helped by the watch.
 */
#include "kvs/server/doors.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/log.h"
#include "core/place/liveness.h"
#include "kvs/listen/fd_passing.h"
#include "kvs/server/server.h"

#define OUT (100 * QN_MS)

enum { TAKE_MAX = 128 /* connections in one turn, of one other's */ };

static bool is_unix(const struct qn_replica_spec *b)
{
    return b->config->unixsocket[0] != '\0';
}

/* ---- what is seen -------------------------------------------------------- */

static void see(const struct qn_server *s, struct qn_watch_seen *seen)
{
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        const struct qn_server_life *l = s->peer[i];
        seen[i] = (struct qn_watch_seen){0};
        if (l == NULL ||
            qn_liveness_check(s->commons, i, l->inc) == QN_LIVENESS_DEAD) {
            continue;
        }
        /* relaxed: signs of life; nothing is read through them. */
        struct qn_outbox_state *st = qn_outbox_state(l->outbox);
        seen[i].turns = qn_load(&st->turns, QN_RELAXED);
        /* A founder's are opened at the same moment as the own ones. */
        seen[i].serves = qn_load(&st->phase, QN_RELAXED) == QN_SERVER_SERVING;
    }
}

/* Does anybody live who gets no connections? He may come back unheard. */
static bool somebody_may_return(const struct qn_server *s)
{
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        if (s->peer[i] != NULL && (s->doors.open >> i & 1) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- who gets new connections -------------------------------------------- */

/* All of them, evenly: that is what the kernel does without a program. */
static uint32_t program_of(const struct qn_server *s, struct sock_filter *to)
{
    QN_ASSERT(s->boot->nodes > 0 && s->boot->nodes <= QN_NODES_MAX);
    uint64_t all = UINT64_MAX >> (QN_NODES_MAX - s->boot->nodes);
    if (s->boot->placement.map == NULL && s->doors.open == all) {
        return 0;
    }
    return qn_connection_placement_program(&s->boot->placement, s->doors.open,
                                           to);
}

static void tell_kernel(const struct qn_server *s)
{
    if (is_unix(s->boot)) {
        return; /* it has no say */
    }
    struct sock_filter *to = calloc(QN_CONNECTION_PLACEMENT_INSNS, sizeof *to);
    if (to != NULL) {
        int own = s->boot->listen_shared[s->boot->self];
        (void)qn_connection_placement_attach(own, to, program_of(s, to));
    }
    free(to);
}

static void place(struct qn_server *s, const struct qn_watch_seen *seen)
{
    struct qn_doors *d = &s->doors;
    uint64_t open = qn_watch_open(&d->watch, seen);
    if (open != d->open) { /* 0 at first */
        d->open = open;
        tell_kernel(s);
    }
}

/* ---- helping ------------------------------------------------------------- */

static uint64_t waiting_of(const struct qn_server *s)
{
    struct epoll_event e[QN_NODES_MAX];
    uint64_t mask = 0;
    int n = epoll_wait(s->doors.set, e, QN_NODES_MAX, 0);
    for (int i = 0; i < n; i++) {
        mask |= (uint64_t)1 << e[i].data.u32;
    }
    return mask;
}

static int accept_from(int listener)
{
    return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* Where what is to be served by `i` waits. */
static int queue_of(const struct qn_replica_spec *b, qn_node_t i)
{
    return is_unix(b) ? b->pass_from[i] : b->listen_shared[i];
}

static void take(struct qn_server *s, qn_node_t from)
{
    const struct qn_replica_spec *b = s->boot;
    for (int i = 0; i < TAKE_MAX; i++) {
        int queue = queue_of(b, from);
        int fd = is_unix(b) ? qn_fd_passing_recv(queue) : accept_from(queue);
        if (fd < 0) {
            return; /* no more; or no descriptor is left: the next look */
        }
        qn_frontend_take(&s->frontend, fd, is_unix(b));
    }
}

/* ---- passing on ---------------------------------------------------------- */

static bool passes(const struct qn_replica_spec *b)
{
    return is_unix(b) && b->placement.map != NULL && b->nodes > 1 &&
           b->pass_from[b->self] >= 0;
}

/* One of those that are nearest to the client, at random. */
static qn_node_t choose(struct qn_server *s, int connection)
{
    const struct qn_replica_spec *b = s->boot;
    struct qn_watch_seen seen[QN_NODES_MAX];
    see(s, seen);
    uint64_t near = qn_connection_placement_near(
        &b->placement, (uint32_t)qn_fd_passing_cpu(connection),
        qn_watch_open(&s->doors.watch, seen));
    s->frontend.random = s->frontend.random * 6364136223846793005u + 1;
    uint64_t nth =
        (s->frontend.random >> 32) % (uint32_t)__builtin_popcountll(near);
    for (; nth > 0; nth--) {
        near &= near - 1;
    }
    return (qn_node_t)__builtin_ctzll(near);
}

static void on_connections(uv_poll_t *h, int status, int events)
{
    struct qn_server *s = h->data;
    const struct qn_replica_spec *b = s->boot;
    int fd;
    (void)status;
    (void)events;
    qn_frontend_wake(&s->frontend);
    for (int i = 0;
         i < TAKE_MAX && (fd = accept_from(b->listen_shared[b->self])) >= 0;
         i++) {
        qn_node_t to = choose(s, fd);
        if (to != b->self && b->pass_to[to] >= 0 &&
            qn_fd_passing_send(b->pass_to[to], fd) == QN_OK) {
            close(fd);
        } else {
            qn_frontend_take(&s->frontend, fd, true);
        }
    }
}

static void on_passed(uv_poll_t *h, int status, int events)
{
    struct qn_server *s = h->data;
    (void)status;
    (void)events;
    qn_frontend_wake(&s->frontend);
    take(s, s->boot->self);
}

bool qn_doors_pass(struct qn_server *s)
{
    const struct qn_replica_spec *b = s->boot;
    struct qn_doors *d = &s->doors;
    if (!passes(b) ||
        uv_poll_init(&s->loop, &d->accept, b->listen_shared[b->self]) != 0) {
        return false;
    }
    d->polls++;
    d->accept.data = d->passed.data = s;
    uv_poll_start(&d->accept, UV_READABLE, on_connections);
    if (uv_poll_init(&s->loop, &d->passed, b->pass_from[b->self]) == 0) {
        d->polls++;
        uv_poll_start(&d->passed, UV_READABLE, on_passed);
    }
    return true;
}

/* ---- looking ------------------------------------------------------------- */

static void on_waiting(uv_poll_t *h, int status, int events)
{
    struct qn_server *s = h->data;
    (void)status;
    (void)events;
    qn_frontend_wake(&s->frontend);
    uv_poll_stop(h);
    s->doors.woken = true;
    s->doors.look_at = 0; /* in this turn */
}

/* Who was still may only sleep by now, and have nothing else to wake for. */
static void ring_the_still(struct qn_server *s)
{
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        if ((s->doors.watch.still >> i & 1) != 0 && s->peer[i] != NULL) {
            (void)qn_doorbell_ring(&s->ringer[i]);
        }
    }
}

static void look(struct qn_server *s, qn_time_t now)
{
    struct qn_watch_seen seen[QN_NODES_MAX];
    struct qn_doors *d = &s->doors;
    uint64_t waiting = waiting_of(s);
    see(s, seen);
    uint64_t due = qn_watch_look(&d->watch, seen, waiting, now);
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        if ((due >> i & 1) != 0) {
            take(s, i);
        }
    }
    place(s, seen);
    ring_the_still(s);
    if (waiting != 0 || d->woken) {
        d->woken = false;
        d->look_at = now + QN_WATCH_LOOK;
        return;
    }
    uv_poll_start(&d->poll, UV_READABLE, on_waiting);
    d->look_at = somebody_may_return(s) ? now + OUT : QN_TIME_NEVER;
}

qn_time_t qn_doors_turn(struct qn_server *s, qn_time_t now)
{
    struct qn_doors *d = &s->doors;
    if (d->set >= 0 && now >= d->look_at) {
        look(s, now);
    }
    return d->look_at;
}

void qn_doors_news(struct qn_server *s)
{
    if (s->doors.set >= 0) {
        s->doors.look_at = 0;
        s->turn_wanted = true;
    }
}

/* ---- life ---------------------------------------------------------------- */

void qn_doors_init(struct qn_server *s)
{
    s->doors.set = -1;
    s->doors.look_at = QN_TIME_NEVER;
    qn_watch_init(&s->doors.watch, s->boot->self, s->boot->nodes);
}

static int set_make(const struct qn_replica_spec *b)
{
    int set = epoll_create1(EPOLL_CLOEXEC);
    for (qn_node_t i = 0; set >= 0 && i < b->nodes; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = i};
        if (i != b->self &&
            epoll_ctl(set, EPOLL_CTL_ADD, queue_of(b, i), &e) != 0) {
            close(set);
            return -1;
        }
    }
    return set;
}

void qn_doors_open(struct qn_server *s)
{
    struct qn_doors *d = &s->doors;
    const struct qn_replica_spec *b = s->boot;
    if (b->nodes == 1 || (is_unix(b) && !passes(b))) {
        return;
    }
    d->set = set_make(b);
    if (d->set >= 0 && uv_poll_init(&s->loop, &d->poll, d->set) != 0) {
        close(d->set);
        d->set = -1;
    }
    if (d->set < 0) {
        qn_log(QN_LOG_WARN,
               "replica %u is out of descriptors: it does not help others with "
               "their connections",
               b->self);
        return;
    }
    d->poll.data = s;
    qn_doors_news(s);
}

/* At once and not when libuv calls back: what is polled no more may be closed,
 * and nobody takes it for open meanwhile. */
static void poll_end(uv_poll_t *poll, int fd)
{
    uv_close((uv_handle_t *)poll, NULL);
    close(fd);
}

/* What was passed on to this replica is answered like the rest. */
static void pass_no_more(struct qn_server *s)
{
    struct qn_doors *d = &s->doors;
    if (d->polls > 0) {
        poll_end(&d->accept, s->boot->listen_shared[s->boot->self]);
    }
    if (d->polls > 1) {
        take(s, s->boot->self);
        uv_close((uv_handle_t *)&d->passed, NULL);
    }
    d->polls = 0;
}

void qn_doors_close(struct qn_server *s)
{
    struct qn_doors *d = &s->doors;
    const struct qn_replica_spec *b = s->boot;
    if (d->set >= 0) {
        d->look_at = QN_TIME_NEVER;
        d->open &= ~((uint64_t)1 << b->self);
        if (d->open != 0) {
            tell_kernel(s); /* while its own socket is there */
        }
        poll_end(&d->poll, d->set);
        d->set = -1;
    }
    bool listened = s->accepts; /* libuv closes its own */
    for (qn_node_t i = 0; i < b->nodes; i++) {
        if (i == b->self ? !listened : !is_unix(b)) {
            close(b->listen_shared[i]);
        }
    }
    pass_no_more(s);
}
