/*
 * How a replica meets its peers (peers.h), and what follows when one of them
 * starts or ends. server_watch.c finds a peer that is stalled, or that has
 * ended before the supervisor says so.
 *
 *     PEER       map the outbox, open two queuepairs (direct and tree)
 *     DEAD       by the kernel's mark in the commons, or PEER_DOWN, whichever
 *                comes first: close the queuepairs; the outbox stays mapped
 *                while the driver needs it (its ring may hold the last slots)
 *     PEER       of a later incarnation, in the order of incarnations
 */
#include <inttypes.h>
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

bool qn_server_shares(const struct qn_server *s)
{
    return s->boot->config->shared_state || s->boot->nodes == 1;
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

static void arena_open(const struct qn_server *s, struct qn_mapped_peer *peer)
{
    const void *mem = qn_outbox_region(peer->outbox, QN_REGION_ARENA);
    qn_arena_open(&peer->arena, mem, qn_budget_arena(s->boot->config));
}

/* ---- a peer -------------------------------------------------------------- */

/* `outbox` is taken, also on failure; its descriptor `fd` is not. */
static int peer_map(struct qn_server *s, struct qn_mapped_peer **out,
                    const struct qn_ctl_peer_up *e, struct qn_outbox *outbox,
                    int fd)
{
    const struct qn_mapped_peer like = {
        .node = e->node, .incarnation = e->incarnation, .pid = (int)e->pid};
    int err = qn_peer_create(out, &like, outbox, fd);
    if (err == QN_OK) {
        ring_open(s, &(*out)->ring, outbox);
        arena_open(s, *out);
    }
    return err;
}

static int qps_open(struct qn_server *s, qn_node_t i)
{
    const struct qn_replica_spec *b = s->boot;
    struct qn_peers *p = &s->peers;
    const struct qn_mapped_peer *peer = p->present[i];
    struct qn_qp **qp[QN_LANES] = {&p->direct[i], &p->tree[i]};
    QN_ASSERT(i != b->self);
    QN_ASSERT(p->direct[i] == NULL);
    QN_ASSERT(p->tree[i] == NULL);
    qn_doorbell_handle_init(&p->doorbell[i], qn_outbox_doorbell(peer->outbox),
                            b->doorbell_fd[i]);
    if (s->device != NULL) {
        qn_device_up(s->device, i, peer->incarnation);
    }
    for (enum qn_lane lane = 0; lane < QN_LANES; lane++) {
        const struct qn_qp_opts o = {
            .tx = qn_outbox_lane(s->outbox, i, lane),
            .rx = qn_outbox_lane(peer->outbox, b->self, lane),
            .device = s->device,
            .lane = lane,
            .cells = b->config->cells,
            .self = b->self,
            .peer = i,
            .self_inc = b->incarnation,
            .peer_inc = peer->incarnation,
            .doorbell = &s->doorbell,
            .ringer = &p->doorbell[i],
        };
        int err = s->transport->open(qp[lane], &o);
        if (err != QN_OK) {
            qn_peers_close_queuepairs(p, i);
            return err;
        }
    }
    return QN_OK;
}

/* ---- before there is a driver -------------------------------------------- */

/* The end of an earlier incarnation than the present one says nothing new. */
static void on_heard_down(struct qn_server *s, const struct qn_ctl_peer_down *e)
{
    struct qn_peers *p = &s->peers;
    const struct qn_mapped_peer *peer = p->present[e->node];
    if (peer == NULL) {
        p->incarnation[e->node] = e->incarnation;
    } else if (peer->incarnation == e->incarnation) {
        qn_server_events_keep(&s->events, peer->node, peer->outbox);
        (void)qn_peers_retire(p, e->node);
    }
}

static int on_heard(void *ctx, const struct qn_control_msg *m,
                    struct qn_outbox *outbox, int fd)
{
    struct qn_server *s = ctx;
    struct qn_mapped_peer *peer = NULL;
    if (m->kind == QN_CTL_PEER_DOWN) {
        on_heard_down(s, &m->u.peer_down);
        return QN_OK;
    }
    const struct qn_ctl_peer_up *e = &m->u.peer_up;
    int err = peer_map(s, &peer, e, outbox, fd);
    if (err != QN_OK) {
        return err;
    }
    if (e->node == s->boot->self) { /* this node's previous incarnation */
        QN_ASSERT(s->peers.present[peer->node] == NULL);
        qn_server_events_keep(&s->events, peer->node, peer->outbox);
        qn_peers_retain(&s->peers, peer);
    } else if (s->peers.present[e->node] != NULL) {
        qn_peer_destroy(peer);
        return QN_ECORRUPT;
    } else {
        qn_peers_add(&s->peers, peer);
    }
    return QN_OK;
}

static struct qn_transport_bytes channels(const struct qn_server *s)
{
    const struct qn_device_opts o = qn_budget_device(s->boot->config);
    return qn_transport_needs(s->transport, s->boot->config->cells, &o);
}

static struct qn_outbox_opts shape(const struct qn_server *s)
{
    const struct qn_replica_spec *b = s->boot;
    return (struct qn_outbox_opts){
        .node = b->self,
        .nodes = b->nodes,
        .incarnation = b->incarnation,
        .lane_bytes = channels(s).lane,
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

/* This process is its node's live incarnation from here on, until the kernel
 * marks its end. Of two processes that try, for whatever reason, only one gets
 * the lock. */
static int live(struct qn_server *s)
{
    const struct qn_replica_spec *b = s->boot;
    int err = qn_hold_take(b->commons_fd, b->self);
    if (err == QN_EBUSY) {
        qn_log(QN_LOG_ERROR,
               "replica %u: another process is this replica; end that process",
               b->self);
    }
    if (err == QN_OK) {
        err = qn_commons_map(&s->commons, b->commons_fd, b->nodes,
                             channels(s).device);
    }
    if (err == QN_OK) {
        err = qn_commons_own(s->commons, b->self);
    }
    if (err == QN_OK && b->record_fd >= 0) {
        err = qn_area_map(&s->record, b->record_fd, QN_COMMONS_RECORD_BYTES);
    }
    return err == QN_OK ? qn_liveness_begin(s->commons, b->self, b->incarnation)
                        : err;
}

/* While this process holds the lock, no second one can be the same node. The
 * fence is for a lock that was lost, and for a supervisor that knows nothing of
 * locks. */
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
           "replica %u (process %d): a later incarnation has begun (%" PRIu64
           " after %" PRIu64 "); this one ends itself",
           s->boot->self, (int)getpid(), present, s->boot->incarnation);
    _exit(1);
}

/* Peers are told one by one, when their queuepairs are opened. */
static int device_attach(struct qn_server *s)
{
    const struct qn_device_opts opts = qn_budget_device(s->boot->config);
    uint64_t incarnation[QN_NODES_MAX] = {0};
    const struct qn_device_attach_opts o = {
        .memory = qn_commons_device(s->commons),
        .opts = &opts,
        .self = s->boot->self,
        .incarnation = incarnation,
        .doorbell = &s->doorbell,
        .ringer = s->peers.doorbell,
    };
    incarnation[s->boot->self] = s->boot->incarnation;
    return s->transport->device == NULL
               ? QN_OK
               : s->transport->device->attach(&s->device, &o);
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
    if (err == QN_OK) {
        err = device_attach(s);
    }
    for (qn_node_t i = 0; err == QN_OK && i < b->nodes; i++) {
        err = s->peers.present[i] == NULL ? QN_OK : qps_open(s, i);
    }
    return err;
}

int qn_server_peers_remember(struct qn_server *s)
{
    int err = QN_OK;
    if (!qn_server_by_memory(s)) {
        return QN_OK;
    }
    for (struct qn_mapped_peer *p = s->peers.retained;
         err == QN_OK && p != NULL; p = p->next) {
        err = qn_driver_remember(qn_replica_driver(s->replica), p->node,
                                 p->incarnation, &p->ring);
    }
    return err;
}

/* ---- while serving ------------------------------------------------------- */

const struct qn_outbox_state *qn_server_state_of(const struct qn_server *s,
                                                 qn_node_t i)
{
    const struct qn_mapped_peer *p = s->peers.present[i];
    if (i == s->boot->self) {
        return qn_outbox_state(s->outbox);
    }
    if (p == NULL) {
        return NULL;
    }
    return qn_server_shares(s)
               ? qn_outbox_state(p->outbox)
               : qn_driver_said(qn_replica_driver(s->replica), i);
}

void qn_server_peer_ended(struct qn_server *s, qn_node_t i)
{
    const struct qn_mapped_peer *peer = s->peers.present[i];
    qn_time_t now = qn_clock_now();
    QN_ASSERT(i != s->boot->self);
    QN_ASSERT(peer->incarnation == s->peers.incarnation[i]);
    if (s->device != NULL) {
        qn_device_down(s->device, i);
    }
    qn_driver_down(qn_replica_driver(s->replica), i, now);
    qn_fanout_peer_down(s->ask, i);
    qn_state_transfer_peer_down(s->rejoin, i, now);
    if (s->boot->config->events_dir[0] != '\0') {
        qn_server_events_ended(&s->events, i, peer->incarnation, now);
    }
    qn_settings_take(s, i); /* no replica may have read them yet */
    qn_server_events_keep(&s->events, i, peer->outbox);
    (void)qn_peers_retire(&s->peers, i);
    qn_failure_detector_down(&s->detector, i);
    QN_ASSERT((qn_peers_present(&s->peers) >> i & 1) == 0);
    qn_server_accept_news(s);
    s->turn_wanted = true;
}

void qn_server_peer_down(struct qn_server *s, const struct qn_ctl_peer_down *e)
{
    const struct qn_mapped_peer *peer = s->peers.present[e->node];
    if (peer != NULL && peer->incarnation == e->incarnation) {
        qn_server_peer_ended(s, e->node);
    }
}

/* `peer` is taken, also on failure. */
static int up(struct qn_server *s, struct qn_mapped_peer *peer)
{
    qn_node_t i = peer->node;
    qn_peers_add(&s->peers, peer);
    int err = qps_open(s, i);
    if (err == QN_OK) {
        const struct qn_driver_peer_opts o = {
            .node = i,
            .inc = peer->incarnation,
            .direct = s->peers.direct[i],
            .tree = s->peers.tree[i],
            .state = qn_server_shares(s) ? qn_outbox_state(peer->outbox) : NULL,
            .ring = qn_server_by_memory(s) ? &peer->ring : NULL,
            .arena = qn_server_shares(s) ? &peer->arena : NULL};
        err = qn_driver_up(qn_replica_driver(s->replica), &o, qn_clock_now());
    }
    if (err == QN_OK) {
        qn_failure_detector_up(&s->detector, i);
    } else {
        qn_peers_drop(&s->peers, i);
    }
    QN_ASSERT(s->detector.present == qn_peers_present(&s->peers));
    return err;
}

void qn_server_peer_up(struct qn_server *s, const struct qn_ctl_peer_up *e,
                       int fd)
{
    const struct qn_outbox_opts like = shape(s);
    struct qn_outbox *outbox = NULL;
    struct qn_mapped_peer *peer = NULL;
    int err = e->node == s->boot->self
                  ? QN_ECORRUPT
                  : qn_control_map_outbox(s->boot, e, fd, &like, &outbox);
    if (err == QN_OK) {
        err = peer_map(s, &peer, e, outbox, fd);
    }
    if (err == QN_OK) {
        if (s->peers.present[e->node] != NULL) {
            qn_server_peer_ended(s, e->node);
        }
        err = up(s, peer);
    }
    if (err != QN_OK) {
        qn_log(QN_LOG_ERROR, "replica %u: cannot reach replica %u again: %s",
               s->boot->self, e->node, qn_strerror(err));
        return;
    }
    qn_fanout_peer_up(s->ask, e->node);
    qn_state_transfer_peer_up(s->rejoin, e->node);
    qn_server_accept_news(s);
    s->turn_wanted = true;
}

static bool needed(const void *ctx, const struct qn_mapped_peer *peer)
{
    const struct qn_server *s = ctx;
    return qn_driver_keeps(qn_replica_driver(s->replica), peer->node,
                           peer->incarnation);
}

void qn_server_peers_sweep(struct qn_server *s)
{
    qn_peers_sweep(&s->peers, needed, s);
}

void qn_server_peers_fini(struct qn_server *s)
{
    qn_peers_fini(&s->peers);
    qn_device_detach(s->device);
    if (s->commons != NULL) {
        (s->drain.shutdown_requested ? qn_liveness_leave : qn_liveness_end)(
            s->commons, s->boot->self, s->boot->incarnation);
    }
    qn_area_destroy(&s->record);
    qn_commons_destroy(s->commons);
    qn_arena_end(&s->arena);
    qn_outbox_destroy(s->outbox);
}
