/*
 * How a member meets its peers (peers.h), and what follows when one of them
 * begins or ends. member_detect.c finds a peer that is stalled, or that has
 * ended before the program says so.
 *
 *     begins   map the outbox, allocate the lanes to its seat, open two
 *              queuepairs (direct and tree)
 *     ends     by the kernel's mark in the commons, or by the program,
 *              whichever comes first: close the queuepairs; the outbox stays
 *              mapped while the driver needs it (its ring may hold the last
 *              slots)
 *     begins   in the order of incarnations
 */
#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/place/liveness.h"
#include "paxos/member/member_internal.h"

/* ---- a peer -------------------------------------------------------------- */

/* Map its outbox, with ring and arena, and allocate the lanes to it. */
static int map(struct qn_member *m, struct qn_mapped_peer **out,
               const struct qn_member_peer *p)
{
    const struct qn_mapped_peer like = {.alloc = m->o.alloc,
                                        .node = p->node,
                                        .incarnation = p->incarnation,
                                        .pid = p->pid};
    struct qn_outbox_opts expect = qn_member_shape(m);
    struct qn_outbox *outbox = NULL;
    QN_ASSERT(p->node < m->o.nodes);
    QN_ASSERT(p->incarnation != 0);
    if (p->node == m->o.self && p->incarnation == m->o.incarnation) {
        return QN_ECORRUPT;
    }
    expect.node = p->node;
    expect.incarnation = p->incarnation;
    int err = qn_outbox_map(&outbox, p->fd, &expect);
    if (err == QN_OK) {
        qn_outbox_keep_from_children(outbox);
        err = qn_peer_create(out, &like, outbox, p->fd);
    }
    if (err == QN_OK) {
        qn_member_ring_open(m, &(*out)->ring, outbox);
        qn_arena_open(&(*out)->arena, qn_outbox_region(outbox, QN_REGION_ARENA),
                      m->o.arena_bytes);
    }
    if (err == QN_OK && p->node != m->o.self) {
        err = qn_outbox_seat(m->outbox, p->node);
        if (err != QN_OK) {
            qn_peer_destroy(*out);
        }
    }
    return err;
}

static void queuepairs_close(struct qn_member *m, qn_node_t i)
{
    if (m->device != NULL) {
        qn_device_down(m->device, i);
    }
    qn_peers_close_queuepairs(&m->peers, i);
}

static int queuepairs_open(struct qn_member *m, qn_node_t i)
{
    struct qn_peers *p = &m->peers;
    const struct qn_mapped_peer *peer = p->present[i];
    struct qn_qp *qp[QN_LANES];
    QN_ASSERT(i != m->o.self);
    QN_ASSERT(p->direct[i] == NULL);
    QN_ASSERT(p->tree[i] == NULL);
    if (!qn_outbox_seated(peer->outbox, m->o.self)) {
        return QN_EAGAIN; /* what is no memory yet must not be read */
    }
    qn_doorbell_handle_init(&p->doorbell[i], qn_outbox_doorbell(peer->outbox),
                            m->doorbell_fd[i]);
    if (m->device != NULL) {
        qn_device_up(m->device, i, peer->incarnation);
    }
    const struct qn_outbox_connect_opts o = {.transport = m->o.transport,
                                             .own = m->outbox,
                                             .peer = peer->outbox,
                                             .lanes = QN_LANES,
                                             .each = {.device = m->device,
                                                      .cells = m->o.cells,
                                                      .self = m->o.self,
                                                      .peer = i,
                                                      .doorbell = &m->doorbell,
                                                      .ringer = &p->doorbell[i],
                                                      .alloc = m->o.alloc}};
    int err = qn_outbox_connect(qp, &o);
    if (err == QN_OK) {
        p->direct[i] = qp[QN_LANE_DIRECT];
        p->tree[i] = qp[QN_LANE_TREE];
    } else {
        queuepairs_close(m, i);
    }
    return err;
}

static void tell_recorded(const struct qn_member *m,
                          const struct qn_mapped_peer *peer)
{
    m->o.callbacks.recorded(m->o.callbacks.ctx, peer->node, peer->incarnation,
                            qn_outbox_flight(peer->outbox));
}

/* ---- before there is a driver -------------------------------------------- */

int qn_member_meet(struct qn_member *m, const struct qn_member_peer *p)
{
    struct qn_mapped_peer *peer = NULL;
    QN_ASSERT(m->driver == NULL);
    int err = map(m, &peer, p);
    if (err != QN_OK) {
        return err;
    }
    if (p->node == m->o.self) { /* this node's previous incarnation */
        QN_ASSERT(m->peers.present[p->node] == NULL);
        tell_recorded(m, peer);
        qn_peers_retain(&m->peers, peer);
    } else if (m->peers.present[p->node] != NULL) {
        qn_peer_destroy(peer);
        return QN_ECORRUPT;
    } else {
        peer->former = m->peers.incarnation[p->node];
        qn_peers_add(&m->peers, peer);
    }
    return QN_OK;
}

void qn_member_meet_unless_seated(struct qn_member *m, qn_node_t node)
{
    const struct qn_mapped_peer *peer = m->peers.present[node];
    QN_ASSERT(m->driver == NULL);
    QN_ASSERT(peer != NULL);
    if (!qn_outbox_seated(peer->outbox, m->o.self)) {
        const uint64_t former = peer->former;
        qn_peers_drop(&m->peers, node);
        m->peers.incarnation[node] = former;
    }
}

int qn_member_seat(struct qn_member *m, qn_node_t node)
{
    QN_ASSERT(node < m->o.nodes && node != m->o.self);
    return qn_outbox_seat(m->outbox, node);
}

void qn_member_meet_ended(struct qn_member *m, qn_node_t node,
                          uint64_t incarnation)
{
    struct qn_peers *p = &m->peers;
    QN_ASSERT(m->driver == NULL);
    QN_ASSERT(node < m->o.nodes);
    const struct qn_mapped_peer *peer = p->present[node];
    if (peer != NULL && peer->incarnation <= incarnation) {
        tell_recorded(m, peer);
        (void)qn_peers_retire(p, node);
    }
    p->incarnation[node] = QN_MAX(p->incarnation[node], incarnation);
}

/* Peers are told one by one, when their queuepairs are opened. */
static int device_attach(struct qn_member *m)
{
    uint64_t incarnation[QN_NODES_MAX] = {0};
    const struct qn_device_attach_opts o = {
        .memory = qn_commons_device(m->commons),
        .opts = &m->o.device,
        .self = m->o.self,
        .incarnation = incarnation,
        .doorbell = &m->doorbell,
        .ringer = m->peers.doorbell,
    };
    incarnation[m->o.self] = m->o.incarnation;
    return m->o.transport->device == NULL
               ? QN_OK
               : m->o.transport->device->attach(&m->device, &o);
}

int qn_member_connect(struct qn_member *m)
{
    qn_doorbell_init(&m->doorbell, qn_outbox_doorbell(m->outbox),
                     m->doorbell_fd[m->o.self]);
    int err = device_attach(m);
    for (qn_node_t i = 0; err == QN_OK && i < m->o.nodes; i++) {
        err = m->peers.present[i] == NULL ? QN_OK : queuepairs_open(m, i);
    }
    return err;
}

/* ---- while it takes turns ------------------------------------------------ */

void qn_member_retire(struct qn_member *m, qn_node_t i)
{
    const struct qn_mapped_peer *peer = m->peers.present[i];
    qn_time_t now = qn_clock_now();
    QN_ASSERT(i != m->o.self);
    QN_ASSERT(peer->incarnation == m->peers.incarnation[i]);
    if (m->device != NULL) {
        qn_device_down(m->device, i);
    }
    qn_driver_down(m->driver, i, now);
    if (m->transfer != NULL) {
        qn_state_transfer_peer_down(m->transfer, i, now);
    }
    m->o.callbacks.ended(m->o.callbacks.ctx, i, peer->incarnation, now);
    tell_recorded(m, peer);
    (void)qn_peers_retire(&m->peers, i);
    qn_failure_detector_down(&m->detector, i);
    QN_ASSERT((qn_peers_present(&m->peers) >> i & 1) == 0);
    m->again = true;
}

void qn_member_peer_down(struct qn_member *m, qn_node_t node,
                         uint64_t incarnation)
{
    QN_ASSERT(m->driver != NULL);
    QN_ASSERT(node < m->o.nodes);
    uint64_t *known = &m->peers.incarnation[node];
    if (m->stopped) {
        return; /* what the lanes of a dead peer bring has no receiver */
    }
    if (m->peers.present[node] != NULL && *known <= incarnation) {
        qn_member_retire(m, node);
    }
    *known = QN_MAX(*known, incarnation);
}

/* `peer` is taken, also on failure. */
static int up(struct qn_member *m, struct qn_mapped_peer *peer)
{
    qn_node_t i = peer->node;
    const uint64_t former = m->peers.incarnation[i];
    qn_peers_add(&m->peers, peer);
    int err = queuepairs_open(m, i);
    bool opened = err == QN_OK;
    if (err == QN_OK) {
        const struct qn_driver_peer_opts o = {
            .node = i,
            .inc = peer->incarnation,
            .direct = m->peers.direct[i],
            .tree = m->peers.tree[i],
            .state = m->o.shares ? qn_outbox_state(peer->outbox) : NULL,
            .ring = qn_member_by_memory(m) ? &peer->ring : NULL,
            .arena = m->o.shares ? &peer->arena : NULL};
        err = qn_driver_up(m->driver, &o, qn_clock_now());
    }
    if (err != QN_OK) { /* it was never there */
        if (opened) {
            queuepairs_close(m, i);
        }
        qn_peers_drop(&m->peers, i);
        m->peers.incarnation[i] = former;
    } else {
        qn_failure_detector_up(&m->detector, i);
        if (m->transfer != NULL) {
            qn_state_transfer_peer_up(m->transfer, i);
        }
    }
    QN_ASSERT(m->detector.present == qn_peers_present(&m->peers));
    return err;
}

int qn_member_peer_up(struct qn_member *m, const struct qn_member_peer *p)
{
    struct qn_mapped_peer *peer = NULL;
    QN_ASSERT(m->driver != NULL);
    if (m->stopped) {
        return QN_EINVAL;
    }
    if (p->node == m->o.self) {
        return QN_ECORRUPT;
    }
    QN_ASSERT(p->node < m->o.nodes);
    const struct qn_mapped_peer *former = m->peers.present[p->node];
    if (p->incarnation < m->peers.incarnation[p->node] ||
        (former != NULL && p->incarnation == former->incarnation)) {
        return QN_ESTALE;
    }
    int err = map(m, &peer, p);
    if (former != NULL) { /* its successor says that it has ended */
        qn_member_retire(m, p->node);
    }
    m->again = true;
    return err == QN_OK ? up(m, peer) : err;
}

static bool needed(const void *ctx, const struct qn_mapped_peer *peer)
{
    const struct qn_member *m = ctx;
    return qn_driver_keeps(m->driver, peer->node, peer->incarnation);
}

void qn_member_sweep(struct qn_member *m)
{
    qn_peers_sweep(&m->peers, needed, m);
}

/* ---- questions ----------------------------------------------------------- */

static struct qn_member_peer told(const struct qn_mapped_peer *p)
{
    return (struct qn_member_peer){.node = p->node,
                                   .incarnation = p->incarnation,
                                   .pid = p->pid,
                                   .fd = p->fd};
}

bool qn_member_peer(const struct qn_member *m, qn_node_t node,
                    struct qn_member_peer *p)
{
    QN_ASSERT(node < m->o.nodes);
    const struct qn_mapped_peer *peer = m->peers.present[node];
    *p = (struct qn_member_peer){
        .node = node, .incarnation = m->peers.incarnation[node], .fd = -1};
    if (peer != NULL) {
        *p = told(peer);
    }
    return peer != NULL;
}

uint64_t qn_member_peers(const struct qn_member *m)
{
    return qn_peers_present(&m->peers);
}

void qn_member_each_retained(const struct qn_member *m,
                             void (*each)(void *ctx,
                                          const struct qn_member_peer *p),
                             void *ctx)
{
    for (const struct qn_mapped_peer *l = m->peers.retained; l != NULL;
         l = l->next) {
        const struct qn_member_peer p = told(l);
        each(ctx, &p);
    }
}

bool qn_member_lives(const struct qn_member *m, qn_node_t node)
{
    const struct qn_mapped_peer *p = m->peers.present[node];
    return p != NULL && qn_liveness_check(m->commons, node, p->incarnation) !=
                            QN_LIVENESS_DEAD;
}

void qn_member_ring(struct qn_member *m, qn_node_t node)
{
    QN_ASSERT(m->peers.present[node] != NULL);
    (void)qn_doorbell_ring(&m->peers.doorbell[node]);
}

struct qn_qp_traffic qn_member_traffic(const struct qn_member *m,
                                       const struct qn_qp_ops *ops)
{
    return qn_peers_traffic(&m->peers, ops);
}
