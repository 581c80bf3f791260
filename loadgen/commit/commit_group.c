/*
 * A group as programs embed it (paxos/group/group.h): processes or threads that
 * meet at a socket, each with a loop of its own over one descriptor. The next
 * command is proposed where the end of the last one is told.
 *
 * A node's number is its seat, which is known when it serves: the one that
 * founds has seat 0, and leads.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/err.h"
#include "loadgen/bench/nodes.h"
#include "loadgen/commit/commit_node.h"
#include "paxos/group/group.h"

#define LOOK_MS 100 /* then it looks whether a node has failed */

struct meeting {
    const struct qn_commit_turn *t;
    int place;              /* a socket, at which they meet: no file is left */
    int bell[QN_NODES_MAX]; /* eventfd of each seat: look at the end */
};

struct seat {
    struct meeting *m;
    struct qn_group *group;
    struct qn_commit_node node;
    bool serves;
    bool waits; /* for the end of a proposal */
};

/* ---- the service --------------------------------------------------------- */

static int on_apply(void *ctx, const struct qn_group_command *c,
                    uint64_t *result)
{
    struct seat *s = ctx;
    qn_commit_node_apply(&s->node, c->seat, c->number, c->mine,
                         (struct qn_slice){c->bytes, c->len});
    *result = 0;
    return QN_OK;
}

/* All begin together, so none needs the state of another one. */
static int no_begin(void *ctx)
{
    (void)ctx;
    return QN_EAGAIN;
}

static int no_next(void *ctx, void *bytes, size_t cap, size_t *len)
{
    (void)ctx;
    (void)bytes;
    (void)cap;
    (void)len;
    return QN_ENOENT;
}

static int no_read(void *ctx, const void *bytes, size_t len)
{
    (void)ctx;
    (void)bytes;
    (void)len;
    return QN_EIO;
}

static int no_finish(void *ctx)
{
    (void)ctx;
    return QN_EIO;
}

static void nothing(void *ctx)
{
    (void)ctx;
}

static int join(struct seat *s)
{
    const struct qn_commit_turn *t = s->m->t;
    const struct qn_group_opts o = {.socket_fd = s->m->place,
                                    .application = "quoin bench commit",
                                    .transport = t->transport,
                                    .capacity = t->nodes,
                                    .members = t->nodes,
                                    .cells = QN_COMMIT_CELLS,
                                    .log_bytes = (uint64_t)1 << 20,
                                    .command_max = 4096,
                                    .spin_ns = t->backoff.look_ns,
                                    .yields = t->backoff.yields,
                                    .service = {.apply = on_apply,
                                                .begin = no_begin,
                                                .next = no_next,
                                                .end = nothing,
                                                .read = no_read,
                                                .finish = no_finish,
                                                .install = nothing,
                                                .abandon = nothing,
                                                .ctx = s}};
    return qn_group_join(&s->group, &o);
}

/* ---- the loop ------------------------------------------------------------ */

static void propose(struct seat *s);

static void on_done(void *ctx, int err, uint64_t result)
{
    struct seat *s = ctx;
    (void)err; /* what is not applied is missed at the end */
    (void)result;
    s->waits = false;
    propose(s);
}

static void propose(struct seat *s)
{
    uint64_t words[2];
    if (!s->waits && qn_commit_node_due(&s->node, words)) {
        s->waits = qn_commit_node_proposed(
            &s->node, qn_group_propose(s->group, words, sizeof words,
                                       QN_GROUP_FOREVER, on_done, s));
    }
}

static void ring(void *ctx, qn_node_t peer)
{
    const struct seat *s = ctx;
    (void)eventfd_write(s->m->bell[peer], 1);
}

static void sleep_a_while(struct seat *s)
{
    struct pollfd p[] = {
        {.fd = qn_group_fd(s->group), .events = POLLIN},
        {.fd = s->serves ? s->m->bell[s->node.self] : -1, .events = POLLIN}};
    eventfd_t rings;
    if (poll(p, 2, LOOK_MS) > 0 && p[1].revents != 0) {
        (void)eventfd_read(p[1].fd, &rings);
    }
}

/* @return as qn_group_turn; a seat is known when all of the group serve. */
static int enter(struct seat *s)
{
    struct qn_group_status st;
    int rc = qn_group_turn(s->group);
    qn_group_status(s->group, &st);
    if (st.phase == QN_GROUP_SERVING) {
        s->serves = true;
        s->node.self = st.seat;
    }
    return rc;
}

static int serve(struct seat *s)
{
    int rc = qn_group_turn(s->group);
    if (rc >= 0) {
        propose(s); /* the first one, or one that had no room */
        qn_commit_node_look(&s->node, ring, s);
    }
    return rc;
}

static int run(struct seat *s)
{
    int rc = QN_GROUP_AGAIN;
    while (rc >= 0 && !qn_commit_node_over(&s->node)) {
        rc = s->serves ? serve(s) : enter(s);
        if (rc == QN_GROUP_ARMED && !qn_commit_node_over(&s->node)) {
            sleep_a_while(s);
        }
    }
    return rc >= 0 ? QN_OK : rc;
}

/* ---- a turn -------------------------------------------------------------- */

static int run_node(qn_node_t self, void *arg)
{
    struct meeting *m = arg;
    struct seat *s = calloc(1, sizeof *s);
    int rc = s == NULL ? QN_ENOMEM : QN_OK;
    if (rc == QN_OK) {
        s->m = m;
        qn_commit_node_init(&s->node, m->t, QN_NODES_MAX); /* no seat yet */
        qn_commit_node_begin(&s->node);
        rc = join(s);
    }
    if (rc == QN_OK) {
        struct qn_group_status st;
        rc = run(s);
        qn_group_status(s->group, &st);
        rc = rc == QN_OK ? qn_commit_node_end(&s->node, st.failovers) : rc;
    }
    if (rc != QN_OK) {
        qn_commit_node_failed(m->t, self, rc);
    }
    if (s != NULL) {
        qn_group_leave(s->group);
        free(s);
    }
    return rc;
}

int qn_commit_group_run(const struct qn_commit_turn *t)
{
    struct meeting m = {
        .t = t, .place = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const struct qn_nodes_opts o = {
        .nodes = t->nodes, .processes = t->processes, .core = t->core};
    int rc = !t->memory_acceptor ? QN_ENOSYS : m.place < 0 ? QN_EMFILE : QN_OK;
    for (qn_node_t i = 0; i < t->nodes; i++) {
        m.bell[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        rc = rc == QN_OK && m.bell[i] < 0 ? QN_EMFILE : rc;
    }
    if (rc == QN_OK) {
        rc = qn_nodes_run(&o, run_node, &m) == 0 ? QN_OK : QN_EIO;
    }
    for (qn_node_t i = 0; i < t->nodes; i++) {
        if (m.bell[i] >= 0) {
            close(m.bell[i]);
        }
    }
    if (m.place >= 0) {
        close(m.place);
    }
    return rc;
}
