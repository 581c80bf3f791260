/*
 * The lives of a replica's peers, as this replica meets them. Who stands still,
 * or has ended before anybody says so, is server_watch.c's to find.
 *
 *     PEER_UP    map the outbox, open two queuepairs (direct and tree)
 *     DEAD       by the kernel's mark in the commons, or PEER_DOWN, whichever
 *                comes first: close the queuepairs; the outbox stays mapped
 *                while the driver keeps it (its ring may hold the last slots)
 *     PEER_UP    of a later life, in the order of lives
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/log.h"
#include "core/place/hold.h"
#include "core/place/liveness.h"
#include "kvs/resources/budget.h"
#include "kvs/server/server.h"
#include "kvs/server/server_settings.h"
#include "transports/registry.h"

#define RING_SPAN (UINT64_C(4) << 20) /* of a lap at first */

bool qn_server_by_memory(const struct qn_server *s)
{
    return s->boot->config->memory_acceptor && s->boot->nodes > 1;
}

/* ---- rings --------------------------------------------------------------- */

static int ring_grow(void *ctx, uint64_t bytes)
{
    struct qn_server *s = ctx;
    return qn_outbox_grow(s->outbox, QN_REGION_RING, bytes);
}

static struct qn_ring_opts ring_opts(struct qn_server *s)
{
    return (struct qn_ring_opts){.slots = QN_RING,
                                 .capacity = qn_budget_ring(s->boot->config),
                                 .span = RING_SPAN,
                                 .keep = s->boot->config->repl_backlog_size,
                                 .grow = ring_grow,
                                 .ctx = s};
}

static void ring_open(struct qn_server *s, struct qn_ring *r,
                      const struct qn_outbox *o)
{
    const struct qn_ring_opts opts = ring_opts(s);
    if (qn_server_by_memory(s)) {
        qn_ring_open(r, qn_outbox_region(o, QN_REGION_RING), &opts);
    }
}

/* ---- arenas -------------------------------------------------------------- */

static int arena_grow(void *ctx, uint64_t bytes)
{
    struct qn_server *s = ctx;
    return qn_outbox_grow(s->outbox, QN_REGION_ARENA, bytes);
}

/* The own one, empty. */
static int arena_begin(struct qn_server *s)
{
    const struct qn_arena_opts o = {.capacity =
                                        qn_budget_arena(s->boot->config),
                                    .grow = arena_grow,
                                    .ctx = s};
    void *mem = qn_outbox_region(s->outbox, QN_REGION_ARENA);
    int err = mem == NULL ? QN_OK : arena_grow(s, qn_arena_bytes(0));
    return mem == NULL || err != QN_OK ? err
                                       : qn_arena_begin(&s->arena, mem, &o);
}

static void arena_open(struct qn_server *s, struct qn_server_life *l)
{
    const void *mem = qn_outbox_region(l->outbox, QN_REGION_ARENA);
    qn_arena_open(&l->arena, mem, qn_budget_arena(s->boot->config));
}

/* ---- lives --------------------------------------------------------------- */

/* `outbox` is taken, also on failure; its descriptor `fd` is not. */
static int life_new(struct qn_server *s, struct qn_server_life **out,
                    const struct qn_ctl_peer_up *e, struct qn_outbox *outbox,
                    int fd)
{
    struct qn_server_life *l = calloc(1, sizeof *l);
    int own = l == NULL ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) {
        int err = l == NULL ? QN_ENOMEM : QN_EMFILE;
        qn_outbox_destroy(outbox);
        free(l);
        return err;
    }
    l->fd = own;
    l->node = e->node;
    l->inc = e->incarnation;
    l->pid = (int)e->pid;
    l->outbox = outbox;
    ring_open(s, &l->ring, outbox);
    arena_open(s, l);
    *out = l;
    return QN_OK;
}

static void life_free(struct qn_server_life *l)
{
    if (l != NULL) {
        qn_outbox_destroy(l->outbox);
        close(l->fd);
        free(l);
    }
}

static void keep(struct qn_server *s, struct qn_server_life *l)
{
    qn_server_events_keep(s, l->node, l->outbox);
    l->next = s->kept;
    s->kept = l;
}

static void qps_close(struct qn_server *s, qn_node_t i)
{
    qn_qp_close(s->direct[i]);
    qn_qp_close(s->tree[i]);
    s->direct[i] = s->tree[i] = NULL;
}

static int qps_open(struct qn_server *s, qn_node_t i)
{
    const struct qn_replica_spec *b = s->boot;
    const struct qn_server_life *l = s->peer[i];
    struct qn_qp **qp[QN_LANES] = {&s->direct[i], &s->tree[i]};
    qn_doorbell_handle_init(&s->ringer[i], qn_outbox_doorbell(l->outbox),
                            b->doorbell_fd[i]);
    for (enum qn_lane lane = 0; lane < QN_LANES; lane++) {
        const struct qn_qp_opts o = {
            .tx = qn_outbox_lane(s->outbox, i, lane),
            .rx = qn_outbox_lane(l->outbox, b->self, lane),
            .cells = b->config->cells,
            .self = b->self,
            .peer = i,
            .self_inc = b->incarnation,
            .peer_inc = l->inc,
            .doorbell = &s->doorbell,
            .ringer = &s->ringer[i],
        };
        int err = s->transport->open(qp[lane], &o);
        if (err != QN_OK) {
            qps_close(s, i);
            return err;
        }
    }
    return QN_OK;
}

/* ---- before there is a driver -------------------------------------------- */

static void on_heard_down(struct qn_server *s, const struct qn_ctl_peer_down *e)
{
    struct qn_server_life **peer = &s->peer[e->node];
    s->peer_inc[e->node] = e->incarnation;
    if (*peer != NULL && (*peer)->inc == e->incarnation) {
        keep(s, *peer);
        *peer = NULL;
    }
}

static int on_heard(void *ctx, const struct qn_control_msg *m,
                    struct qn_outbox *outbox, int fd)
{
    struct qn_server *s = ctx;
    struct qn_server_life *l = NULL;
    if (m->kind == QN_CTL_PEER_DOWN) {
        on_heard_down(s, &m->u.peer_down);
        return QN_OK;
    }
    const struct qn_ctl_peer_up *e = &m->u.peer_up;
    struct qn_server_life **peer = &s->peer[e->node];
    int err = life_new(s, &l, e, outbox, fd);
    if (err != QN_OK) {
        return err;
    }
    if (e->node == s->boot->self) { /* our predecessor */
        keep(s, l);
    } else if (*peer != NULL) {
        life_free(l);
        return QN_ECORRUPT;
    } else {
        s->peer_inc[e->node] = l->inc;
        *peer = l;
    }
    return QN_OK;
}

static struct qn_outbox_opts shape(const struct qn_server *s)
{
    const struct qn_replica_spec *b = s->boot;
    return (struct qn_outbox_opts){
        .node = b->self,
        .nodes = b->nodes,
        .incarnation = b->incarnation,
        .lane_bytes = s->transport->lane_bytes(b->config->cells),
        .ring_bytes =
            qn_server_by_memory(s)
                ? qn_ring_bytes(QN_RING, qn_budget_ring(s->boot->config))
                : 0,
        .arena_bytes =
            b->nodes > 1 ? qn_arena_bytes(qn_budget_arena(b->config)) : 0,
        .numa_node = b->numa_node[b->self],
        .reader_numa_node = b->numa_node,
        .shared = true,
    };
}

static int outbox_make(struct qn_server *s)
{
    const struct qn_outbox_opts o = shape(s);
    int err = qn_outbox_create(&s->outbox, &o);
    if (err == QN_OK && qn_server_by_memory(s)) {
        err = ring_grow(s, qn_ring_bytes(QN_RING, 0));
    }
    if (err == QN_OK) {
        ring_open(s, &s->ring, s->outbox);
        err = arena_begin(s);
    }
    return err;
}

/* This process lives as its node from here on: the kernel says when not. Of two
 * processes that would, however that came about, only one gets the lock. */
static int live(struct qn_server *s)
{
    const struct qn_replica_spec *b = s->boot;
    int err = qn_hold_take(b->commons_fd, b->self);
    if (err == QN_EBUSY) {
        qn_log(QN_LOG_ERROR,
               "replica %u: another process lives as it; end that one",
               b->self);
    }
    if (err == QN_OK) {
        err = qn_commons_map(&s->commons, b->commons_fd, b->nodes);
    }
    if (err == QN_OK) {
        err = qn_commons_own(s->commons, b->self);
    }
    return err == QN_OK ? qn_liveness_begin(s->commons, b->self, b->incarnation)
                        : err;
}

/* The lock keeps a second process from living as this node as long as this one
 * has it; this is for when it was lost, and for a supervisor that knows
 * nothing of it. */
void qn_server_fence(void *ctx)
{
    const struct qn_server *s = ctx;
    uint64_t present;
    pid_t tid;
    (void)qn_liveness_incarnation(s->commons, s->boot->self, &present, &tid);
    if (present <= s->boot->incarnation) {
        return;
    }
    qn_log(QN_LOG_ERROR,
           "replica %u (process %d): a later life of it has begun (%" PRIu64
           " after %" PRIu64 "); this one ends itself",
           s->boot->self, (int)getpid(), present, s->boot->incarnation);
    _exit(1);
}

int qn_server_peers_meet(struct qn_server *s)
{
    const struct qn_replica_spec *b = s->boot;
    const struct qn_outbox_opts like = shape(s);
    int err = outbox_make(s);
    if (err == QN_OK) {
        err = live(s);
    }
    if (err == QN_OK) {
        qn_server_adopt_open(s);
        err = qn_control_exchange(b, s->outbox, &like, on_heard, s);
    }
    if (err == QN_OK) {
        qn_doorbell_init(&s->doorbell, qn_outbox_doorbell(s->outbox),
                         b->doorbell_fd[b->self]);
    }
    for (qn_node_t i = 0; err == QN_OK && i < b->nodes; i++) {
        err = s->peer[i] == NULL ? QN_OK : qps_open(s, i);
    }
    return err;
}

int qn_server_peers_remember(struct qn_server *s)
{
    int err = QN_OK;
    for (struct qn_server_life *l = s->kept; err == QN_OK && l != NULL;
         l = l->next) {
        err = qn_server_by_memory(s)
                  ? qn_driver_remember(qn_replica_driver(s->replica), l->node,
                                       l->inc, &l->ring)
                  : QN_OK;
    }
    return err;
}

/* ---- while serving ------------------------------------------------------- */

void qn_server_life_down(struct qn_server *s, qn_node_t i)
{
    struct qn_server_life *l = s->peer[i];
    qn_driver_down(qn_replica_driver(s->replica), i, qn_clock_now());
    qps_close(s, i);
    qn_fanout_peer_down(s->ask, i);
    qn_state_transfer_peer_down(s->rejoin, i, qn_clock_now());
    qn_server_events_ended(s, i, l->inc, qn_clock_now());
    qn_settings_take(s, l->outbox); /* no replica may have read it yet */
    s->peer[i] = NULL;
    s->doubts &= ~(UINT64_C(1) << i);
    keep(s, l);
    qn_doors_news(s);
    s->turn_wanted = true;
}

void qn_server_peer_down(struct qn_server *s, const struct qn_ctl_peer_down *e)
{
    if (s->peer[e->node] != NULL && s->peer[e->node]->inc == e->incarnation) {
        qn_server_life_down(s, e->node);
    }
}

static int up(struct qn_server *s, struct qn_server_life *l)
{
    qn_node_t i = l->node;
    s->peer[i] = l;
    s->peer_inc[i] = l->inc;
    int err = qps_open(s, i);
    if (err == QN_OK) {
        const struct qn_driver_peer_opts o = {
            .node = i,
            .inc = l->inc,
            .direct = s->direct[i],
            .tree = s->tree[i],
            .state = qn_outbox_state(l->outbox),
            .ring = qn_server_by_memory(s) ? &l->ring : NULL,
            .arena = &l->arena};
        err = qn_driver_up(qn_replica_driver(s->replica), &o, qn_clock_now());
    }
    if (err != QN_OK) {
        qps_close(s, i);
        s->peer[i] = NULL;
        life_free(l);
    }
    return err;
}

void qn_server_peer_up(struct qn_server *s, const struct qn_ctl_peer_up *e,
                       int fd)
{
    const struct qn_outbox_opts like = shape(s);
    struct qn_outbox *outbox = NULL;
    struct qn_server_life *l = NULL;
    int err = e->node == s->boot->self
                  ? QN_ECORRUPT
                  : qn_control_map_outbox(s->boot, e, fd, &like, &outbox);
    if (err == QN_OK) {
        err = life_new(s, &l, e, outbox, fd);
    }
    if (err == QN_OK) {
        if (s->peer[e->node] != NULL) {
            qn_server_life_down(s, e->node);
        }
        err = up(s, l);
    }
    if (err != QN_OK) {
        qn_log(QN_LOG_ERROR, "replica %u: cannot reach replica %u again: %s",
               s->boot->self, e->node, qn_strerror(err));
        return;
    }
    qn_fanout_peer_up(s->ask, e->node);
    qn_state_transfer_peer_up(s->rejoin, e->node);
    qn_doors_news(s);
    s->turn_wanted = true;
}

void qn_server_lives_forget(struct qn_server *s)
{
    struct qn_server_life **at = &s->kept;
    while (*at != NULL) {
        struct qn_server_life *l = *at;
        if (qn_driver_keeps(qn_replica_driver(s->replica), l->node, l->inc)) {
            at = &l->next;
        } else {
            *at = l->next;
            life_free(l);
        }
    }
}

void qn_server_peers_fini(struct qn_server *s)
{
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        qps_close(s, i);
        life_free(s->peer[i]);
    }
    while (s->kept != NULL) {
        struct qn_server_life *l = s->kept;
        s->kept = l->next;
        life_free(l);
    }
    if (s->commons != NULL) {
        (s->leaves ? qn_liveness_leave : qn_liveness_end)(
            s->commons, s->boot->self, s->boot->incarnation);
    }
    qn_commons_destroy(s->commons);
    qn_arena_end(&s->arena);
    qn_outbox_destroy(s->outbox);
}
