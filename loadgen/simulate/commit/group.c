/*
 * The memory of a group, its channels and its drivers, made before the run: as
 * kvs/server makes them, in the private form and in one process.
 */
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/place/liveness.h"
#include "loadgen/simulate/commit/commit_internal.h"
#include "transports/registry.h"

#define RING_SLOTS    QN_RING /* as shipped: flow control counts with it */
#define RING_CAPACITY ((uint64_t)64 << 20)
#define RING_LAP      ((uint64_t)4 << 20) /* as kvs/server */
#define CLAIM_NS      1000u /* of an mprotect (core/place/commons.h) */

/* ---- memory -------------------------------------------------------------- */

static struct qn_ring_opts ring_opts(void)
{
    return (struct qn_ring_opts){
        .slots = RING_SLOTS, .capacity = RING_CAPACITY, .span = RING_LAP};
}

static size_t ring_bytes(void)
{
    return qn_ring_bytes(RING_SLOTS, RING_CAPACITY);
}

static int open_memory(struct qn_sim_replica *r,
                       const struct qn_transport *transport)
{
    struct qn_sim_group *g = r->group;
    const struct qn_outbox_opts o = {
        .node = r->self,
        .nodes = g->o.replicas,
        .incarnation = qn_sim_incarnation(r->self),
        .lane_bytes = transport->lane_bytes(g->o.cells),
        .ring_bytes = g->o.memory ? ring_bytes() : 0,
        .numa_node = -1,
    };
    int err = qn_outbox_create(&r->outbox, &o);
    if (err == QN_OK && g->o.memory) {
        const struct qn_ring_opts ring = ring_opts();
        err = qn_outbox_grow(r->outbox, QN_REGION_RING, ring_bytes());
        qn_ring_open(&r->ring, qn_outbox_region(r->outbox, QN_REGION_RING),
                     &ring);
    }
    if (err == QN_OK) {
        qn_doorbell_init(&r->doorbell, qn_outbox_doorbell(r->outbox),
                         (int)r->self);
        err = qn_commons_own(g->commons, r->self);
    }
    return err != QN_OK ? err
                        : qn_liveness_begin(g->commons, r->self,
                                            qn_sim_incarnation(r->self));
}

static int open_clients(struct qn_sim_replica *r)
{
    const struct qn_sim_commit_opts *o = &r->group->o;
    r->random = o->seed ^ (uint64_t)r->self << 32;
    if (o->load != 0 && (o->load >> r->self & 1) == 0) {
        return QN_OK;
    }
    r->client = calloc(o->clients, sizeof *r->client);
    r->of_seq = calloc(QN_SIM_CLIENTS_MAX, sizeof *r->of_seq);
    return r->client == NULL || r->of_seq == NULL ? QN_ENOMEM : QN_OK;
}

/* ---- channels ------------------------------------------------------------ */

static int open_channel(struct qn_sim_replica *r, struct qn_sim_replica *peer,
                        const struct qn_transport *transport)
{
    struct qn_qp *qp[QN_LANES] = {0};
    struct qn_doorbell_handle *ringer = &r->ringer[peer->self];
    qn_doorbell_handle_init(ringer, qn_outbox_doorbell(peer->outbox),
                            (int)peer->self);
    const struct qn_outbox_connect_opts o = {
        .transport = transport,
        .own = r->outbox,
        .peer = peer->outbox,
        .lanes = QN_LANES,
        .each = {.cells = r->group->o.cells,
                 .self = r->self,
                 .peer = peer->self,
                 .doorbell = &r->doorbell,
                 .ringer = ringer}};
    int err = qn_outbox_connect(qp, &o);
    r->direct[peer->self] = qp[QN_LANE_DIRECT];
    r->tree[peer->self] = qp[QN_LANE_TREE];
    return err;
}

static int open_channels(struct qn_sim_replica *r,
                         const struct qn_transport *transport)
{
    int err = QN_OK;
    for (qn_node_t p = 0; p < r->group->o.replicas && err == QN_OK; p++) {
        if (p != r->self) {
            err = open_channel(r, &r->group->replica[p], transport);
        }
    }
    return err;
}

/* ---- drivers ------------------------------------------------------------- */

static void on_claim(void *ctx, bool writable)
{
    struct qn_sim_replica *r = ctx;
    if (r->claimed != writable) {
        qn_work(CLAIM_NS);
    }
    r->claimed = writable;
    qn_commons_claim(r->group->commons, writable);
}

static bool on_owner(void *ctx, qn_epoch_t epoch)
{
    const struct qn_sim_replica *r = ctx;
    return qn_commons_owner_set(r->group->commons, epoch, r->self,
                                qn_sim_incarnation(r->self));
}

static bool on_owned_by(void *ctx, uint64_t epoch, qn_node_t *node,
                        uint64_t *inc)
{
    const struct qn_sim_replica *r = ctx;
    return qn_commons_owner(r->group->commons, epoch, node, inc);
}

static bool on_dead(void *ctx, qn_node_t node, uint64_t inc)
{
    const struct qn_sim_replica *r = ctx;
    return inc != qn_sim_incarnation(node) ||
           qn_sim_replica_is_dead(r->group, node);
}

/* What is borrowed by the making of a driver. */
struct lent {
    uint64_t incarnation[QN_NODES_MAX];
    const struct qn_outbox_state *state[QN_NODES_MAX];
    const struct qn_ring *ring[QN_NODES_MAX];
};

static struct qn_driver_memory memory_opts(struct qn_sim_replica *r,
                                           struct lent *l)
{
    struct qn_commons *c = r->group->commons;
    return (struct qn_driver_memory){
        .word = r->group->o.memory ? qn_commons_word(c) : NULL,
        .ring = r->ring,
        .peer_ring = l->ring,
        .claim = on_claim,
        .owner = on_owner,
        .owned_by = on_owned_by,
        .ctx = r};
}

static struct qn_driver_opts driver_opts(struct qn_sim_replica *r,
                                         struct lent *l)
{
    struct qn_sim_group *g = r->group;
    const struct qn_sim_commit_opts *o = &g->o;
    for (qn_node_t p = 0; p < o->replicas; p++) {
        l->incarnation[p] = qn_sim_incarnation(p);
        if (p != r->self) {
            l->state[p] = qn_outbox_state(g->replica[p].outbox);
            l->ring[p] = o->memory ? &g->replica[p].ring : NULL;
        }
    }
    return (struct qn_driver_opts){
        .self = r->self,
        .nodes = o->replicas,
        .incarnation = l->incarnation,
        .direct = r->direct,
        .tree = r->tree,
        .topology = o->topology != NULL ? o->topology : "sequential",
        .costs = o->tree == QN_SIM_TREE_COSTS ? g->costs : NULL,
        .plan = g->plan.n > 0 ? &g->plan : NULL,
        .service = {.apply = qn_sim_history_apply,
                    .applied = qn_sim_history_applied,
                    .ctx = r},
        .read_index = qn_commons_read_index(g->commons),
        .state = qn_outbox_state(r->outbox),
        .peer_state = l->state,
        .memory = memory_opts(r, l),
        .vote_record = qn_commons_record(g->commons, r->self),
        .vote_record_bytes = QN_COMMONS_RECORD_BYTES,
        .first = true,
        .ended = on_dead,
        .ended_ctx = r,
        .own_cores = true,
        .flow = qn_flow_default(o->replicas, RING_SLOTS, RING_CAPACITY),
        .batch_commands = o->batch_commands,
        .seed = o->seed,
        .now = QN_S,
    };
}

static int open_driver(struct qn_sim_replica *r)
{
    struct lent lent = {0};
    const struct qn_driver_opts o = driver_opts(r, &lent);
    qn_failure_detector_init(&r->detector, r->self, o.nodes, true);
    for (qn_node_t p = 0; p < o.nodes; p++) {
        if (p != r->self) {
            qn_failure_detector_up(&r->detector, p);
        }
    }
    qn_spin_init(&r->spin, qn_doorbell_spin_budget(&(struct qn_spin_opts){
                               .nodes = o.nodes, .cores = o.nodes}));
    return qn_driver_create(&r->driver, &o);
}

/* ---- all ----------------------------------------------------------------- */

int qn_sim_group_open(struct qn_sim_group *g)
{
    const struct qn_transport *transport =
        g->o.transport != NULL ? g->o.transport : qn_transport_find("ump");
    uint32_t n = g->o.replicas;
    int fd;
    int err = qn_commons_create(&g->commons, n, 0, false, &fd);
    g->replica = calloc(n, sizeof *g->replica);
    if (g->replica == NULL && err == QN_OK) {
        err = QN_ENOMEM;
    }
    for (qn_node_t i = 0; i < n && err == QN_OK; i++) {
        g->replica[i].group = g;
        g->replica[i].self = i;
        err = open_memory(&g->replica[i], transport);
    }
    for (qn_node_t i = 0; i < n && err == QN_OK; i++) {
        err = open_clients(&g->replica[i]);
    }
    for (qn_node_t i = 0; i < n && err == QN_OK; i++) {
        err = open_channels(&g->replica[i], transport);
    }
    return err;
}

int qn_sim_group_open_drivers(struct qn_sim_group *g)
{
    int err = QN_OK;
    for (qn_node_t i = 0; i < g->o.replicas && err == QN_OK; i++) {
        err = open_driver(&g->replica[i]);
    }
    return err;
}

static void close_replica(struct qn_sim_replica *r)
{
    qn_driver_destroy(r->driver);
    for (qn_node_t p = 0; p < r->group->o.replicas; p++) {
        qn_qp_close(r->direct[p]);
        qn_qp_close(r->tree[p]);
    }
    free(r->client);
    free(r->of_seq);
}

void qn_sim_group_close(struct qn_sim_group *g)
{
    uint32_t n = g->replica == NULL ? 0 : g->o.replicas;
    for (qn_node_t i = 0; i < n && g->replica[i].group != NULL; i++) {
        close_replica(&g->replica[i]);
    }
    for (qn_node_t i = 0; i < n; i++) {
        qn_outbox_destroy(g->replica[i].outbox);
    }
    free(g->replica);
    g->replica = NULL;
    qn_commons_destroy(g->commons);
    g->commons = NULL;
}
