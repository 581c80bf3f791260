/*
 * A group of members, which meet as processes do: each sends the descriptor of
 * its outbox to the others. A member waits for its doorbell's descriptor.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/place/commons.h"
#include "core/rendezvous/fd_message.h"
#include "loadgen/bench/nodes.h"
#include "loadgen/commit/commit_node.h"
#include "paxos/member/member.h"

#define MEET_LOOK_MS 100 /* then it looks whether a node has failed */
#define KEEP_BYTES   (UINT64_C(1) << 20) /* of log, for members that lag */

/* All of its descriptors exist before a node starts. */
struct group {
    const struct qn_commit_turn *t;
    int commons_fd;
    int doorbell_fd[QN_NODES_MAX];
    int inbox[QN_NODES_MAX][2]; /* sockets: the node reads from the first one,
                                   the others write to the second */
};

struct seat {
    struct group *g;
    qn_node_t self;
    struct qn_member *member;
    struct qn_commit_node node;
};

/* ---- what it does around a turn ------------------------------------------ */

static qn_time_t begin(void *ctx, qn_time_t now)
{
    return qn_member_turn_begin(((struct seat *)ctx)->member, now);
}

static qn_time_t end(void *ctx, qn_time_t now)
{
    return qn_member_turn_end(((struct seat *)ctx)->member, now);
}

static void arm(void *ctx)
{
    qn_member_arm(((struct seat *)ctx)->member);
}

static bool again(void *ctx)
{
    return qn_member_again(((struct seat *)ctx)->member);
}

static void sleep_until(void *ctx, qn_time_t until)
{
    const struct seat *s = ctx;
    const qn_time_t now = qn_clock_now();
    const qn_time_t left = until > now ? until - now : 0;
    struct pollfd p = {.fd = s->g->doorbell_fd[s->self], .events = POLLIN};
    const struct timespec timeout = {.tv_sec = (time_t)(left / QN_S),
                                     .tv_nsec = (long)(left % QN_S)};
    if (ppoll(&p, 1, &timeout, NULL) > 0) {
        qn_member_drain(s->member);
    }
}

static void wake(void *ctx)
{
    qn_member_wake(((struct seat *)ctx)->member);
}

static void ring(void *ctx, qn_node_t peer)
{
    struct seat *s = ctx;
    if ((qn_member_peers(s->member) >> peer & 1) != 0) {
        qn_member_ring(s->member, peer);
    }
}

static const struct qn_commit_ways ways = {.begin = begin,
                                           .end = end,
                                           .arm = arm,
                                           .again = again,
                                           .sleep = sleep_until,
                                           .wake = wake,
                                           .ring = ring};

/* ---- they meet ----------------------------------------------------------- */

static void nothing_ended(void *ctx, qn_node_t node, uint64_t incarnation,
                          qn_time_t now)
{
    (void)ctx;
    (void)node;
    (void)incarnation;
    (void)now;
}

static void nothing_recorded(void *ctx, qn_node_t node, uint64_t incarnation,
                             const void *flight)
{
    (void)ctx;
    (void)node;
    (void)incarnation;
    (void)flight;
}

static void nothing_resumed(void *ctx, qn_node_t node, qn_time_t timeout)
{
    (void)ctx;
    (void)node;
    (void)timeout;
}

static void superseded(void *ctx, uint64_t incarnation)
{
    (void)ctx;
    (void)incarnation;
    abort(); /* each node has one incarnation */
}

static uint64_t incarnation_of(qn_node_t node)
{
    return 1 + (uint64_t)node;
}

static struct qn_device_opts device_opts(const struct qn_commit_turn *t)
{
    return (struct qn_device_opts){
        .nodes = t->nodes, .lanes = QN_LANES, .seed = 1};
}

static int make(struct seat *s)
{
    const struct qn_commit_turn *t = s->g->t;
    int anywhere[QN_NODES_MAX];
    for (qn_node_t i = 0; i < t->nodes; i++) {
        anywhere[i] = -1;
    }
    const struct qn_member_opts o = {.self = s->self,
                                     .nodes = t->nodes,
                                     .incarnation = incarnation_of(s->self),
                                     .first = true,
                                     .seed = incarnation_of(s->self),
                                     .commons_fd = s->g->commons_fd,
                                     .hold_fd = s->g->commons_fd,
                                     .record_fd = -1,
                                     .doorbell_fd = s->g->doorbell_fd,
                                     .transport = t->transport,
                                     .cells = QN_COMMIT_CELLS,
                                     .device = device_opts(t),
                                     .shares = true,
                                     .memory_acceptor = t->memory_acceptor,
                                     .ring_bytes = 2 * KEEP_BYTES,
                                     .arena_bytes = KEEP_BYTES,
                                     .backlog_bytes = KEEP_BYTES,
                                     .lag_timeout = 10 * QN_S,
                                     .own_cores = t->backoff.look_ns > 0,
                                     .numa_node = anywhere,
                                     .topology = "sequential",
                                     .callbacks = {.superseded = superseded,
                                                   .ended = nothing_ended,
                                                   .recorded = nothing_recorded,
                                                   .resumed = nothing_resumed,
                                                   .ctx = s}};
    return qn_member_create(&s->member, &o);
}

struct greeting {
    qn_node_t node;
    int pid;
};

static int greet(const struct seat *s)
{
    const struct greeting g = {s->self, gettid()};
    const struct qn_slice bytes = {(const uint8_t *)&g, sizeof g};
    const int fd = qn_member_outbox_fd(s->member);
    int rc = QN_OK;
    for (qn_node_t i = 0; rc == QN_OK && i < s->g->t->nodes; i++) {
        if (i != s->self) {
            rc = qn_fd_message_send(s->g->inbox[i][1], bytes, &fd, 1);
        }
    }
    return rc;
}

/* Until a greeting is there, or a peer has failed. */
static int await_greeting(const struct seat *s)
{
    const qn_time_t deadline = qn_clock_now() + QN_COMMIT_DEADLINE_NS;
    struct pollfd p = {.fd = s->g->inbox[s->self][0], .events = POLLIN};
    int rc = QN_EAGAIN;
    while (rc == QN_EAGAIN) {
        rc = poll(&p, 1, MEET_LOOK_MS) > 0                        ? QN_OK
             : qn_load(&s->g->t->shared->failed, QN_SEQ_CST) != 0 ? QN_EPEERDEAD
             : qn_clock_now() > deadline                          ? QN_ETIMEDOUT
                                                                  : QN_EAGAIN;
    }
    return rc;
}

/* The greeting of one peer. */
static int meet(struct seat *s)
{
    struct greeting g;
    struct qn_fd_message m = {.bytes = (uint8_t *)&g, .cap = sizeof g};
    int rc = await_greeting(s);
    if (rc == QN_OK) {
        rc = qn_fd_message_recv(s->g->inbox[s->self][0], &m, 1, false);
    }
    if (rc == QN_OK) {
        const struct qn_member_peer peer = {.node = g.node,
                                            .incarnation =
                                                incarnation_of(g.node),
                                            .pid = g.pid,
                                            .fd = m.fds[0]};
        rc = qn_member_meet(s->member, &peer);
        qn_fd_message_close(&m);
    }
    return rc;
}

static int start(struct seat *s)
{
    const struct qn_service service = qn_commit_node_service(&s->node);
    int rc = make(s);
    rc = rc == QN_OK ? greet(s) : rc;
    for (uint32_t i = 1; rc == QN_OK && i < s->g->t->nodes; i++) {
        rc = meet(s);
    }
    return rc == QN_OK ? qn_member_start(s->member, &service, NULL) : rc;
}

/* ---- a turn -------------------------------------------------------------- */

static int run_node(qn_node_t self, void *arg)
{
    struct group *g = arg;
    struct seat *s = calloc(1, sizeof *s);
    int rc = s == NULL ? QN_ENOMEM : QN_OK;
    if (rc == QN_OK) {
        s->g = g;
        s->self = self;
        qn_commit_node_init(&s->node, g->t, self);
        rc = start(s);
    }
    if (rc == QN_OK) {
        rc =
            qn_commit_node_run(&s->node, qn_member_driver(s->member), &ways, s);
    }
    if (rc != QN_OK) {
        qn_commit_node_failed(g->t, self, rc);
    }
    if (s != NULL) {
        qn_member_destroy(s->member);
        free(s);
    }
    return rc;
}

static int open_commons(struct group *g)
{
    const struct qn_commit_turn *t = g->t;
    const struct qn_device_opts device = device_opts(t);
    const struct qn_transport_bytes needs =
        qn_transport_needs(t->transport, QN_COMMIT_CELLS, &device);
    struct qn_commons *c;
    int rc =
        qn_commons_create(&c, t->nodes, needs.device, true, &g->commons_fd);
    if (rc == QN_OK) {
        if (t->transport->device != NULL) {
            t->transport->device->format(qn_commons_device(c), &device);
        }
        qn_commons_destroy(c); /* each member maps it */
    }
    return rc;
}

static int open_node(struct group *g, qn_node_t i)
{
    g->doorbell_fd[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return g->doorbell_fd[i] >= 0 &&
                   socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
                              g->inbox[i]) == 0
               ? QN_OK
               : QN_EMFILE;
}

static void close_fd(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

int qn_commit_member_run(const struct qn_commit_turn *t)
{
    struct group g = {.t = t, .commons_fd = -1};
    const struct qn_nodes_opts o = {
        .nodes = t->nodes, .processes = t->processes, .core = t->core};
    for (qn_node_t i = 0; i < t->nodes; i++) {
        g.doorbell_fd[i] = g.inbox[i][0] = g.inbox[i][1] = -1;
    }
    int rc = open_commons(&g);
    for (qn_node_t i = 0; rc == QN_OK && i < t->nodes; i++) {
        rc = open_node(&g, i);
    }
    if (rc == QN_OK) {
        rc = qn_nodes_run(&o, run_node, &g) == 0 ? QN_OK : QN_EIO;
    }
    for (qn_node_t i = 0; i < t->nodes; i++) {
        close_fd(g.doorbell_fd[i]);
        close_fd(g.inbox[i][0]);
        close_fd(g.inbox[i][1]);
    }
    close_fd(g.commons_fd);
    return rc;
}
