/*
 * The driver by itself: queuepairs of a mesh, and what the memory acceptor
 * needs. No failure detector, no state transfer, no peer that comes or goes.
 */
#include <stdlib.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/place/area.h"
#include "core/place/commons.h"
#include "loadgen/bench/mesh.h"
#include "loadgen/commit/commit_node.h"
#include "paxos/log/ring.h"

/* As members have it: what a command costs depends on it. */
#define RING_SLOTS    QN_RING
#define RING_CAPACITY (UINT64_C(2) << 20)

struct group {
    const struct qn_commit_turn *t;
    struct qn_commons *commons;
    struct qn_area rings; /* one behind the other */
};

struct bare {
    struct group *g;
    struct qn_mesh_end *end;
    struct qn_driver *driver;
    struct qn_commit_node node;
    struct qn_ring ring[QN_NODES_MAX]; /* as seen from here; [self]: own */
};

/* ---- what it does around a turn ------------------------------------------ */

static qn_time_t nothing(void *ctx, qn_time_t now)
{
    (void)ctx;
    (void)now;
    return QN_TIME_NEVER;
}

static void arm(void *ctx)
{
    qn_doorbell_arm(&((struct bare *)ctx)->end->doorbell);
}

static bool again(void *ctx)
{
    return qn_driver_pending(((struct bare *)ctx)->driver);
}

static void sleep_until(void *ctx, qn_time_t until)
{
    (void)qn_doorbell_wait(&((struct bare *)ctx)->end->doorbell, until);
}

static void wake(void *ctx)
{
    qn_doorbell_disarm(&((struct bare *)ctx)->end->doorbell);
}

static void ring(void *ctx, qn_node_t peer)
{
    (void)qn_doorbell_ring(&((struct bare *)ctx)->end->ringer[peer]);
}

static const struct qn_commit_ways ways = {.begin = nothing,
                                           .end = nothing,
                                           .arm = arm,
                                           .again = again,
                                           .sleep = sleep_until,
                                           .wake = wake,
                                           .ring = ring};

/* ---- its driver ---------------------------------------------------------- */

static void on_claim(void *ctx, bool writable)
{
    qn_commons_claim(((struct bare *)ctx)->g->commons, writable);
}

static bool on_owner(void *ctx, qn_epoch_t epoch)
{
    const struct bare *b = ctx;
    return qn_commons_owner_set(b->g->commons, epoch, b->end->self,
                                qn_mesh_incarnation(b->end->self));
}

static bool on_owned_by(void *ctx, uint64_t epoch, qn_node_t *node,
                        uint64_t *inc)
{
    return qn_commons_owner(((struct bare *)ctx)->g->commons, epoch, node, inc);
}

static void open_rings(struct bare *b)
{
    const struct qn_ring_opts o = {.slots = RING_SLOTS,
                                   .capacity = RING_CAPACITY};
    uint8_t *at = b->g->rings.memory;
    for (qn_node_t i = 0; i < b->end->nodes; i++) {
        qn_ring_open(&b->ring[i], at, &o);
        at += qn_ring_bytes(RING_SLOTS, RING_CAPACITY);
    }
}

static int open_driver(struct bare *b)
{
    const struct qn_commit_turn *t = b->g->t;
    const struct qn_mesh_end *end = b->end;
    uint64_t incarnation[QN_NODES_MAX];
    struct qn_qp *direct[QN_NODES_MAX], *tree[QN_NODES_MAX];
    const struct qn_outbox_state *state[QN_NODES_MAX] = {0};
    const struct qn_ring *peer_ring[QN_NODES_MAX] = {0};
    for (qn_node_t i = 0; i < end->nodes; i++) {
        incarnation[i] = qn_mesh_incarnation(i);
        direct[i] = end->qp[i][QN_LANE_DIRECT];
        tree[i] = end->qp[i][QN_LANE_TREE];
        if (i != end->self) {
            state[i] = qn_outbox_state(end->view[i]);
            peer_ring[i] = t->memory_acceptor ? &b->ring[i] : NULL;
        }
    }
    const struct qn_driver_opts o = {
        .self = end->self,
        .nodes = end->nodes,
        .incarnation = incarnation,
        .direct = direct,
        .tree = tree,
        .topology = "sequential",
        .service = qn_commit_node_service(&b->node),
        .read_index = qn_commons_read_index(b->g->commons),
        .state = qn_outbox_state(end->view[end->self]),
        .peer_state = state,
        .memory = {.word = t->memory_acceptor ? qn_commons_word(b->g->commons)
                                              : NULL,
                   .ring = b->ring[end->self],
                   .claim = on_claim,
                   .owner = on_owner,
                   .owned_by = on_owned_by,
                   .ctx = b,
                   .peer_ring = peer_ring},
        .first = true,
        .own_cores = t->backoff.look_ns > 0,
        .seed = 1,
        .now = qn_clock_now(),
    };
    return qn_driver_create(&b->driver, &o);
}

/* ---- a turn -------------------------------------------------------------- */

static int run_node(struct qn_mesh_end *end, void *arg)
{
    struct group *g = arg;
    struct bare *b = calloc(1, sizeof *b);
    int rc = b == NULL ? QN_ENOMEM : QN_OK;
    if (rc == QN_OK) {
        b->g = g;
        b->end = end;
        qn_commit_node_init(&b->node, g->t, end->self);
        if (g->t->memory_acceptor) {
            open_rings(b);
        }
        rc = open_driver(b);
    }
    if (rc == QN_OK) {
        rc = qn_commit_node_run(&b->node, b->driver, &ways, b);
    }
    if (rc != QN_OK) {
        qn_commit_node_failed(g->t, end->self, rc);
    }
    if (b != NULL) {
        qn_driver_destroy(b->driver);
        free(b);
    }
    return rc;
}

static int run_mesh(struct group *g)
{
    const struct qn_commit_turn *t = g->t;
    struct qn_mesh m;
    const struct qn_mesh_opts o = {.transport = t->transport,
                                   .nodes = t->nodes,
                                   .cells = QN_COMMIT_CELLS,
                                   .processes = t->processes,
                                   .read_only = true,
                                   .seed = 1,
                                   .core = t->core};
    int rc = qn_mesh_create(&m, &o);
    if (rc == QN_OK) {
        rc = qn_mesh_run(&m, run_node, g) == 0 ? QN_OK : QN_EIO;
        qn_mesh_destroy(&m);
    }
    return rc;
}

int qn_commit_bare_run(const struct qn_commit_turn *t)
{
    struct group g = {.t = t, .rings = QN_AREA_NONE};
    int fd = -1;
    int rc = qn_commons_create(&g.commons, t->nodes, 0, t->processes, &fd);
    if (rc == QN_OK && t->memory_acceptor) {
        rc = qn_area_create(&g.rings, "quoin-rings",
                            t->nodes * qn_ring_bytes(RING_SLOTS, RING_CAPACITY),
                            t->processes);
    }
    if (rc == QN_OK) {
        rc = run_mesh(&g);
    }
    qn_area_destroy(&g.rings);
    qn_commons_destroy(g.commons);
    if (fd >= 0) {
        close(fd);
    }
    return rc;
}
