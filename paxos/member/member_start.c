/*
 * The driver of a member, made on what its peers have given.
 *
 * The memory acceptor's part of the commons is writable only for the leader and
 * for a member that is about to lead: the driver says when (claim). It writes
 * down which member will own an epoch before the accept register can name that
 * epoch (owner).
 */
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/place/liveness.h"
#include "paxos/machine/params.h"
#include "paxos/member/member_internal.h"

/* ---- what the driver asks ------------------------------------------------ */

static void on_claim(void *ctx, bool writable)
{
    struct qn_member *m = ctx;
    qn_commons_claim(m->commons, writable);
}

static bool on_owner(void *ctx, qn_epoch_t epoch)
{
    struct qn_member *m = ctx;
    return qn_commons_owner_set(m->commons, epoch, m->o.self, m->o.incarnation);
}

static bool on_owned_by(void *ctx, uint64_t epoch, qn_node_t *node,
                        uint64_t *inc)
{
    const struct qn_member *m = ctx;
    return qn_commons_owner(m->commons, epoch, node, inc);
}

static bool on_ended(void *ctx, qn_node_t node, uint64_t inc)
{
    const struct qn_member *m = ctx;
    return qn_liveness_check(m->commons, node, inc) == QN_LIVENESS_DEAD;
}

/* ---- its making ---------------------------------------------------------- */

/* What is borrowed by the making of a driver. */
struct lent {
    uint64_t incarnation[QN_NODES_MAX];
    const struct qn_outbox_state *state[QN_NODES_MAX];
    const struct qn_ring *ring[QN_NODES_MAX];
    const struct qn_arena *arena[QN_NODES_MAX];
};

static void lend(const struct qn_member *m, struct lent *l)
{
    for (qn_node_t i = 0; i < m->o.nodes; i++) {
        const struct qn_mapped_peer *p = m->peers.present[i];
        QN_ASSERT(p == NULL || i != m->o.self);
        QN_ASSERT(p == NULL || p->incarnation == m->peers.incarnation[i]);
        l->incarnation[i] =
            i == m->o.self ? m->o.incarnation : m->peers.incarnation[i];
        l->state[i] = p != NULL ? qn_outbox_state(p->outbox) : NULL;
        l->ring[i] = p != NULL && qn_member_by_memory(m) ? &p->ring : NULL;
        l->arena[i] = p != NULL ? &p->arena : NULL;
    }
}

static struct qn_flow_limits flow_limits(const struct qn_member_opts *o)
{
    struct qn_flow_limits l =
        qn_flow_default(o->nodes, QN_RING, o->backlog_bytes);
    l.timeout = o->lag_timeout;
    l.min_awaited = o->min_awaited;
    return l;
}

static struct qn_driver_opts driver_opts(struct qn_member *m, struct lent *l,
                                         const struct qn_service *service)
{
    const struct qn_member_opts *o = &m->o;
    bool memory = qn_member_by_memory(m);
    return (struct qn_driver_opts){
        .self = o->self,
        .nodes = o->nodes,
        .voters = o->voters,
        .incarnation = l->incarnation,
        .direct = m->peers.direct,
        .tree = m->peers.tree,
        .topology = o->topology,
        .costs = o->costs,
        .plan = o->plan,
        .ring = o->ring,
        .ring_from = o->ring_from,
        .service = *service,
        .snapshots = qn_member_snapshots(m),
        .read_index = o->shares ? qn_commons_read_index(m->commons) : NULL,
        .state = qn_outbox_state(m->outbox),
        .peer_state = o->shares ? l->state : NULL,
        .memory = {.word = memory ? qn_commons_word(m->commons) : NULL,
                   .ring = m->ring,
                   .peer_ring = l->ring,
                   .claim = on_claim,
                   .owner = on_owner,
                   .owned_by = on_owned_by,
                   .ctx = m},
        .arena = o->shares && o->nodes > 1 ? &m->arena : NULL,
        .peer_arena = l->arena,
        .vote_record = m->record.memory != NULL
                           ? m->record.memory
                           : qn_commons_record(m->commons, o->self),
        .vote_record_bytes = QN_COMMONS_RECORD_BYTES,
        .fence = qn_member_fence,
        .fence_ctx = m,
        .alloc = o->alloc,
        .log = o->log,
        .feed = m->feed,
        .first = o->first,
        .ended = o->shares ? on_ended : NULL,
        .ended_ctx = m,
        .events = &m->events,
        .own_cores = o->own_cores,
        .flow = flow_limits(o),
        .backlog_bytes = o->backlog_bytes,
        .seed = o->seed,
        .now = qn_clock_now(),
    };
}

/* Incarnations that ended before this one began: the accept register may still
 * name one of them. */
static int remember(struct qn_member *m)
{
    int err = QN_OK;
    if (!qn_member_by_memory(m)) {
        return QN_OK;
    }
    for (struct qn_mapped_peer *p = m->peers.retained;
         err == QN_OK && p != NULL; p = p->next) {
        err = qn_driver_remember(m->driver, p->node, p->incarnation, &p->ring);
    }
    return err;
}

static void events_begin(struct qn_member *m)
{
    const struct qn_flight_event e = {.kind = QN_EVENT_BEGIN,
                                      .b = (uint16_t)m->o.nodes,
                                      .a = (uint64_t)getpid()};
    qn_events_init(&m->events, qn_outbox_flight(m->outbox), qn_clock_now,
                   m->o.born_ms);
    qn_events_note(&m->events, &e);
}

void qn_member_set_first(struct qn_member *m)
{
    QN_ASSERT(m->driver == NULL);
    m->o.first = true;
}

void qn_member_set_voters(struct qn_member *m, uint64_t voters)
{
    QN_ASSERT(m->driver == NULL);
    m->o.voters = voters;
}

/* In a mapping of its own: that of this member lets it write its own only. */
static int begin_record(const struct qn_member *m, qn_node_t node)
{
    struct qn_commons *c = NULL;
    int err = qn_commons_map(&c, m->o.commons_fd, m->o.nodes,
                             qn_member_device_bytes(m));
    if (err == QN_OK) {
        err = qn_commons_own(c, node);
    }
    if (err == QN_OK) {
        qn_driver_begin_record(m->driver, qn_commons_record(c, node),
                               QN_COMMONS_RECORD_BYTES);
    }
    qn_commons_destroy(c);
    return err;
}

int qn_member_begin_records(const struct qn_member *m, uint64_t voters)
{
    int err = QN_OK;
    QN_ASSERT(m->driver != NULL && m->o.first);
    QN_ASSERT((voters >> m->o.self & 1) == 0);
    for (; err == QN_OK && voters != 0; voters &= voters - 1) {
        err = begin_record(m, (qn_node_t)__builtin_ctzll(voters));
    }
    return err;
}

int qn_member_start(struct qn_member *m, const struct qn_service *service,
                    const struct qn_member_state *state)
{
    struct lent lent = {0};
    QN_ASSERT(m->driver == NULL);
    if (state != NULL) {
        m->has_state = true;
        m->state = *state;
    }
    int err = qn_member_connect(m);
    if (err == QN_OK && m->o.feed != NULL) {
        err = qn_feed_create(&m->feed, m->o.feed);
    }
    if (err == QN_OK) {
        events_begin(m);
        qn_member_detector_begin(m);
        lend(m, &lent);
        const struct qn_driver_opts o = driver_opts(m, &lent, service);
        err = qn_driver_create(&m->driver, &o);
    }
    if (err == QN_OK) {
        err = remember(m);
    }
    return err == QN_OK ? qn_member_transfer_begin(m) : err;
}
