/*
 * The member of the group that a replica is (paxos/member/member.h): made of
 * what the supervisor has given, told of its peers as the supervisor tells of
 * them, and what the server does when one of them begins or ends.
 */
#include <inttypes.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/log.h"
#include "kvs/resources/budget.h"
#include "kvs/server/server.h"
#include "kvs/server/server_settings.h"
#include "transports/registry.h"

bool qn_server_by_memory(const struct qn_server *s)
{
    return s->boot->config->memory_acceptor && s->boot->nodes > 1;
}

bool qn_server_shares(const struct qn_server *s)
{
    return s->boot->config->shared_state || s->boot->nodes == 1;
}

/* ---- what the member tells ----------------------------------------------- */

static void on_superseded(void *ctx, uint64_t incarnation)
{
    const struct qn_server *s = ctx;
    qn_log(QN_LOG_ERROR,
           "replica %u (process %d): a later incarnation has begun (%" PRIu64
           " after %" PRIu64 "); this one ends itself",
           s->boot->self, (int)getpid(), incarnation, s->boot->incarnation);
    _exit(1);
}

static void on_ended(void *ctx, qn_node_t i, uint64_t incarnation,
                     qn_time_t now)
{
    struct qn_server *s = ctx;
    qn_fanout_peer_down(s->ask, i);
    if (s->boot->config->events_dir[0] != '\0') {
        qn_server_events_ended(&s->events, i, incarnation, now);
    }
    qn_settings_take(s, i); /* no replica may have read them yet */
    qn_server_accept_news(s);
}

static void on_recorded(void *ctx, qn_node_t node, uint64_t incarnation,
                        const void *flight)
{
    struct qn_server *s = ctx;
    qn_server_events_keep(&s->events, node, incarnation, flight);
}

static void on_resumed(void *ctx, qn_node_t node, qn_time_t timeout)
{
    const struct qn_server *s = ctx;
    qn_log(QN_LOG_INFO,
           "replica %u: replica %u resumed; suspicion timeout is now %" PRIu64
           " ms",
           s->boot->self, node, timeout / QN_MS);
}

/* ---- its making ---------------------------------------------------------- */

static int member_make(struct qn_server *s)
{
    const struct qn_replica_spec *b = s->boot;
    const struct qn_config *c = b->config;
    const struct qn_member_opts o = {
        .self = b->self,
        .nodes = b->nodes,
        .seats = b->seats,
        .voters = qn_config_taken(c), /* also of a newcomer: they began it */
        .incarnation = b->incarnation,
        .first = b->first,
        .seed = s->seed,
        .born_ms = s->started_wall_ms,
        .commons_fd = b->commons_fd,
        .hold_fd = b->commons_fd,
        .record_fd = b->record_fd,
        .doorbell_fd = b->doorbell_fd,
        .transport = s->transport,
        .cells = c->cells,
        .device = qn_budget_device(c),
        .shares = qn_server_shares(s),
        .memory_acceptor = qn_server_by_memory(s),
        .ring_bytes = qn_budget_ring(c),
        .arena_bytes = qn_budget_arena(c),
        .backlog_bytes = c->repl_backlog_size,
        .lag_timeout = c->lag_timeout * QN_MS,
        .min_awaited = c->min_replicas_to_write,
        .own_cores = qn_server_own_cores(s, b->seats),
        .numa_node = b->numa_node,
        .topology = b->topology->name,
        .costs = b->topology->anew ? b->topology->costs : NULL,
        .plan = b->topology->made ? &b->topology->plan : NULL,
        .ring = b->topology->ring,
        .ring_from = b->topology->ring_from,
        .callbacks = {.superseded = on_superseded,
                      .ended = on_ended,
                      .recorded = on_recorded,
                      .resumed = on_resumed,
                      .ctx = s},
    };
    int err = qn_member_create(&s->member, &o);
    if (err == QN_EBUSY) {
        qn_log(QN_LOG_ERROR,
               "replica %u: another process is this replica; end that process",
               b->self);
    }
    return err;
}

static struct qn_member_peer peer_of(const struct qn_ctl_peer_up *e, int fd)
{
    return (struct qn_member_peer){.node = e->node,
                                   .incarnation = e->incarnation,
                                   .pid = (int)e->pid,
                                   .fd = fd};
}

/* The same again is met already. */
static int met(struct qn_server *s, const struct qn_ctl_peer_up *e, int err)
{
    struct qn_member_peer present;
    return err == QN_ESTALE && qn_member_peer(s->member, e->node, &present) &&
                   present.incarnation == e->incarnation
               ? QN_OK
               : err;
}

/* May that incarnation start? (Without a supervisor none does.) */
static void met_tell(struct qn_server *s, const struct qn_ctl_peer_up *e,
                     int err)
{
    const struct qn_control_msg m = {
        .kind = QN_CTL_PEER_MET,
        .u.peer_met = {.node = e->node,
                       .incarnation = e->incarnation,
                       .error = met(s, e, err)}};
    (void)qn_control_send(s->boot->control, &m, -1);
}

static int on_heard(void *ctx, const struct qn_control_msg *m, int fd)
{
    struct qn_server *s = ctx;
    if (m->kind == QN_CTL_PEER_DOWN) {
        qn_member_meet_ended(s->member, m->u.peer_down.node,
                             m->u.peer_down.incarnation);
        return QN_OK;
    }
    const struct qn_member_peer p = peer_of(&m->u.peer_up, fd);
    int err = qn_member_meet(s->member, &p);
    met_tell(s, &m->u.peer_up, err);
    return err;
}

/* One that has no lanes for this replica yet was stopped when the others met it
 * (kvs/supervision/membership.c). It is absent until it has met it, too. */
static void drop_unseated(struct qn_server *s)
{
    struct qn_member_peer p;
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        if (qn_member_peer(s->member, i, &p)) {
            const struct qn_ctl_peer_up e = {.node = i,
                                             .incarnation = p.incarnation};
            qn_member_meet_unless_seated(s->member, i);
            if (!qn_member_peer(s->member, i, &p)) {
                met_tell(s, &e, QN_EAGAIN);
            }
        }
    }
}

int qn_server_peers_meet(struct qn_server *s)
{
    int err = member_make(s);
    if (err == QN_OK) {
        qn_server_adopt_open(s);
        err = qn_control_exchange(s->boot, qn_member_outbox_fd(s->member),
                                  on_heard, s);
    }
    if (err == QN_OK) {
        drop_unseated(s);
    }
    return err;
}

/* ---- while serving ------------------------------------------------------- */

void qn_server_peer_down(struct qn_server *s, const struct qn_ctl_peer_down *e)
{
    qn_member_peer_down(s->member, e->node, e->incarnation);
}

void qn_server_peer_up(struct qn_server *s, const struct qn_ctl_peer_up *e,
                       int fd)
{
    const struct qn_member_peer p = peer_of(e, fd);
    int err = qn_member_peer_up(s->member, &p);
    met_tell(s, e, err);
    if (err == QN_EAGAIN || (err == QN_ESTALE && met(s, e, err) == QN_OK)) {
        return; /* it is told again, or was told before */
    }
    if (err != QN_OK) {
        qn_log(QN_LOG_ERROR, "replica %u: cannot reach replica %u again: %s",
               s->boot->self, e->node, qn_strerror(err));
        return;
    }
    qn_fanout_peer_up(s->ask, e->node);
    qn_server_accept_news(s);
}
