/*
 * Accept fail-over: the shell (server_accept.h).
 *
 * The peers' listening sockets are in an epoll of their own, which libuv polls
 * as one descriptor. Whatever comes there wakes this process, once; then libuv
 * does not poll it until a check asks for that. Since the epoll reports levels,
 * not edges, nothing that came in between is missed.
 */
#include "kvs/server/server_accept.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/log.h"
#include "kvs/listen/fd_passing.h"
#include "kvs/server/server.h"

enum { TAKE_MAX = 128 /* connections in one turn, of one peer's queue */ };

static bool is_unix(const struct qn_replica_spec *b)
{
    return b->config->unixsocket[0] != '\0';
}

/* ---- what is seen -------------------------------------------------------- */

static void see(const struct qn_server *s, struct qn_stall_view *view)
{
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        view[i] = (struct qn_stall_view){0};
        if (!qn_member_lives(s->member, i)) {
            continue;
        }
        view[i].turns = qn_member_turns(s->member, i);
        /* An initial member's are opened at the same moment as the own ones. */
        view[i].serves = qn_member_phase(s->member, i) == QN_SERVER_SERVING;
    }
}

/* ---- which replicas get new connections --------------------------------- */

/* All of them, evenly: that is what the kernel does without a program. */
static uint32_t program_of(const struct qn_server *s, struct sock_filter *to)
{
    const struct qn_accept_failover *a = &s->accept.failover;
    if (s->boot->placement.map == NULL && qn_accept_failover_all(a)) {
        return 0;
    }
    return qn_connection_placement_program(&s->boot->placement, a->available,
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

/* ---- serving a peer's queue --------------------------------------------- */

static uint64_t pending_of(const struct qn_server *s)
{
    struct epoll_event e[QN_NODES_MAX];
    uint64_t mask = 0;
    int n = epoll_wait(s->accept.set, e, QN_NODES_MAX, 0);
    for (int i = 0; i < n; i++) {
        mask |= (uint64_t)1 << e[i].data.u32;
    }
    return mask;
}

static int accept_from(int listener)
{
    return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* The socket in which connections for `i` are pending. */
static int queue_of(const struct qn_replica_spec *b, qn_node_t i)
{
    return is_unix(b) ? b->pass_from[i] : b->listen_shared[i];
}

static void take(struct qn_server *s, qn_node_t from)
{
    const struct qn_replica_spec *b = s->boot;
    QN_ASSERT(from < b->nodes);
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

/* One of the available replicas that are nearest to the client, at random. */
static qn_node_t choose(struct qn_server *s, int connection)
{
    const struct qn_replica_spec *b = s->boot;
    struct qn_stall_view view[QN_NODES_MAX];
    see(s, view);
    uint64_t near = qn_connection_placement_near(
        &b->placement, (uint32_t)qn_fd_passing_cpu(connection),
        qn_stall_detector_available(&s->accept.failover.stall, view));
    s->frontend.random = s->frontend.random * 6364136223846793005u + 1;
    qn_node_t node = qn_accept_failover_pick(near, s->frontend.random >> 32);
    QN_ASSERT(node == b->self || (qn_member_peers(s->member) >> node & 1) != 0);
    return node;
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

bool qn_server_accept_pass(struct qn_server *s)
{
    const struct qn_replica_spec *b = s->boot;
    struct qn_server_accept *d = &s->accept;
    if (!passes(b) ||
        uv_poll_init(&s->uv.loop, &d->accept, b->listen_shared[b->self]) != 0) {
        return false;
    }
    d->polls++;
    d->accept.data = d->passed.data = s;
    uv_poll_start(&d->accept, UV_READABLE, on_connections);
    if (uv_poll_init(&s->uv.loop, &d->passed, b->pass_from[b->self]) == 0) {
        d->polls++;
        uv_poll_start(&d->passed, UV_READABLE, on_passed);
    }
    return true;
}

/* ---- checking ------------------------------------------------------------ */

static void on_pending(uv_poll_t *h, int status, int events)
{
    struct qn_server *s = h->data;
    (void)status;
    (void)events;
    qn_frontend_wake(&s->frontend);
    uv_poll_stop(h);
    qn_accept_failover_wake(&s->accept.failover); /* a check in this turn */
}

static void carry_out(struct qn_server *s, const struct qn_accept_actions *a)
{
    for (uint64_t m = a->serve; m != 0; m &= m - 1) {
        take(s, (qn_node_t)__builtin_ctzll(m));
    }
    if (a->tell_kernel) {
        tell_kernel(s);
    }
    for (uint64_t m = a->ring; m != 0; m &= m - 1) {
        qn_member_ring(s->member, (qn_node_t)__builtin_ctzll(m));
    }
    if (a->poll) {
        uv_poll_start(&s->accept.poll, UV_READABLE, on_pending);
    }
}

static void check(struct qn_server *s, qn_time_t now)
{
    struct qn_stall_view view[QN_NODES_MAX];
    struct qn_accept_actions actions;
    uint64_t pending = pending_of(s);
    QN_ASSERT((pending >> s->boot->self & 1) == 0);
    see(s, view);
    qn_accept_failover_check(&s->accept.failover, view, pending,
                             qn_member_peers(s->member), now, &actions);
    carry_out(s, &actions);
}

qn_time_t qn_server_accept_turn(struct qn_server *s, qn_time_t now)
{
    struct qn_accept_failover *a = &s->accept.failover;
    if (qn_accept_failover_due(a, now)) {
        check(s, now);
    }
    return a->next_check;
}

void qn_server_accept_news(struct qn_server *s)
{
    if (qn_accept_failover_peers_changed(&s->accept.failover)) {
        s->turn_wanted = true;
    }
}

/* ---- begin and end
 * ---------------------------------------------------------------- */

void qn_server_accept_init(struct qn_server *s)
{
    s->accept.set = -1;
    qn_accept_failover_init(&s->accept.failover, s->boot->self, s->boot->nodes);
}

static int set_make(const struct qn_replica_spec *b)
{
    int set = epoll_create1(EPOLL_CLOEXEC);
    for (qn_node_t i = 0; set >= 0 && i < b->nodes; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = i};
        if (i != b->self && queue_of(b, i) >= 0 &&
            epoll_ctl(set, EPOLL_CTL_ADD, queue_of(b, i), &e) != 0) {
            close(set);
            return -1;
        }
    }
    return set;
}

void qn_server_accept_open(struct qn_server *s)
{
    struct qn_server_accept *d = &s->accept;
    const struct qn_replica_spec *b = s->boot;
    if (b->nodes == 1 || (is_unix(b) && !passes(b))) {
        return;
    }
    d->set = set_make(b);
    if (d->set >= 0 && uv_poll_init(&s->uv.loop, &d->poll, d->set) != 0) {
        close(d->set);
        d->set = -1;
    }
    if (d->set < 0) {
        qn_log(
            QN_LOG_WARN,
            "replica %u is out of descriptors: it does not accept connections "
            "for dead or stalled replicas",
            b->self);
        return;
    }
    d->poll.data = s;
    QN_ASSERT(s->startup.accepting);
    qn_accept_failover_start(&d->failover);
    s->turn_wanted = true;
}

/* The descriptor is closed at once, not when libuv calls back: libuv polls it
 * no more, and no other code takes it for open meanwhile. */
static void poll_end(uv_poll_t *poll, int fd)
{
    uv_close((uv_handle_t *)poll, NULL);
    close(fd);
}

/* What was passed on to this replica is answered like the rest. */
static void pass_no_more(struct qn_server *s)
{
    struct qn_server_accept *d = &s->accept;
    QN_ASSERT(d->polls == 0 || is_unix(s->boot));
    if (d->polls > 0) {
        poll_end(&d->accept, s->boot->listen_shared[s->boot->self]);
    }
    if (d->polls > 1) {
        take(s, s->boot->self);
        uv_close((uv_handle_t *)&d->passed, NULL);
    }
    d->polls = 0;
}

void qn_server_accept_close(struct qn_server *s)
{
    struct qn_server_accept *d = &s->accept;
    const struct qn_replica_spec *b = s->boot;
    if (qn_accept_failover_stop(&d->failover)) {
        tell_kernel(s); /* while its own socket is there */
    }
    if (d->set >= 0) {
        poll_end(&d->poll, d->set);
        d->set = -1;
    }
    QN_ASSERT(!d->failover.watching);
    bool listened = s->startup.accepting; /* libuv closes its own */
    for (qn_node_t i = 0; i < b->nodes; i++) {
        if (b->listen_shared[i] >= 0 &&
            (i == b->self ? !listened : !is_unix(b))) {
            close(b->listen_shared[i]);
        }
    }
    pass_no_more(s);
}
