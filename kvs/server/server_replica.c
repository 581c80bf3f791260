/*
 * The replica of a process and its front end: made on what the peers have
 * given, and what is logged of its roles.
 *
 * The memory acceptor's part of the commons is writable only for the leader and
 * for a replica that is about to lead: the driver says when (claim). It writes
 * down which replica will own an epoch before the accept register can name that
 * epoch (owner).
 */
#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/log.h"
#include "core/place/liveness.h"
#include "kvs/replica/state_transfer_ops.h"
#include "kvs/server/server.h"

static void on_configured(void *ctx)
{
    struct qn_server *s = ctx;
    qn_frontend_configured(&s->frontend);
}

static void on_mark(void *ctx, struct qn_store *store, struct qn_cmd_call *call)
{
    struct qn_server *s = ctx;
    qn_frontend_deferred_read(&s->frontend, store, call);
}

static void on_take(void *ctx)
{
    struct qn_server *s = ctx;
    qn_frontend_completions(&s->frontend);
}

static void on_told(void *ctx, qn_node_t from, struct qn_slice bytes)
{
    struct qn_server *s = ctx;
    if (qn_state_transfer_on_message(s->rejoin, from, bytes, qn_clock_now())) {
        s->turn_wanted = true;
    } else {
        qn_fanout_on_message(s->ask, from, bytes);
    }
}

static void on_need_snapshot(void *ctx, qn_slot_t slot)
{
    struct qn_server *s = ctx;
    struct qn_state_transfer_status st;
    char more[QN_RATE_LIMIT_TEXT];
    qn_time_t now = qn_clock_now();
    qn_state_transfer_status(s->rejoin, &st);
    if (!st.joining && qn_rate_limit(&s->lags, "lags", now, more)) {
        qn_log(QN_LOG_INFO,
               "replica %u lags behind what others keep, slot %llu: it gets a "
               "snapshot%s",
               s->boot->self, (unsigned long long)slot, more);
    }
    qn_state_transfer_begin(s->rejoin, slot, now);
    s->turn_wanted = true;
}

static void on_claim(void *ctx, bool writable)
{
    struct qn_server *s = ctx;
    qn_commons_claim(s->commons, writable);
}

static bool on_owner(void *ctx, qn_epoch_t epoch)
{
    struct qn_server *s = ctx;
    return qn_commons_owner_set(s->commons, epoch, s->boot->self,
                                s->boot->incarnation);
}

static bool on_owned_by(void *ctx, uint64_t epoch, qn_node_t *node,
                        uint64_t *inc)
{
    const struct qn_server *s = ctx;
    return qn_commons_owner(s->commons, epoch, node, inc);
}

static bool on_ended(void *ctx, qn_node_t node, uint64_t inc)
{
    const struct qn_server *s = ctx;
    return qn_liveness_check(s->commons, node, inc) == QN_LIVENESS_DEAD;
}

/* What is borrowed by the making of a driver. */
struct lent {
    uint64_t incarnation[QN_NODES_MAX];
    const struct qn_outbox_state *state[QN_NODES_MAX];
    const struct qn_ring *ring[QN_NODES_MAX];
    const struct qn_arena *arena[QN_NODES_MAX];
};

static struct qn_flow_limits flow_limits(const struct qn_replica_spec *b)
{
    struct qn_flow_limits l =
        qn_flow_default(b->nodes, QN_RING, b->config->repl_backlog_size);
    l.timeout = b->config->lag_timeout * QN_MS;
    l.min_awaited = b->config->min_replicas_to_write;
    return l;
}

static struct qn_driver_opts driver_opts(struct qn_server *s, struct lent *l)
{
    const struct qn_replica_spec *b = s->boot;
    bool memory = qn_server_by_memory(s);
    bool shares = qn_server_shares(s);
    for (qn_node_t i = 0; i < b->nodes; i++) {
        const struct qn_mapped_peer *p = s->peers.present[i];
        QN_ASSERT(p == NULL || i != b->self);
        QN_ASSERT(p == NULL || p->incarnation == s->peers.incarnation[i]);
        l->incarnation[i] =
            i == b->self ? b->incarnation : s->peers.incarnation[i];
        l->state[i] = p != NULL ? qn_outbox_state(p->outbox) : NULL;
        l->ring[i] = p != NULL && memory ? &p->ring : NULL;
        l->arena[i] = p != NULL ? &p->arena : NULL;
    }
    return (struct qn_driver_opts){
        .self = b->self,
        .nodes = b->nodes,
        .incarnation = l->incarnation,
        .direct = s->peers.direct,
        .tree = s->peers.tree,
        .topology = b->topology->name,
        .costs = b->topology->anew ? b->topology->costs : NULL,
        .plan = b->topology->made ? &b->topology->plan : NULL,
        .ring = b->topology->ring,
        .ring_from = b->topology->ring_from,
        .read_index = shares ? qn_commons_read_index(s->commons) : NULL,
        .state = qn_outbox_state(s->outbox),
        .peer_state = shares ? l->state : NULL,
        .memory = {.word = memory ? qn_commons_word(s->commons) : NULL,
                   .ring = s->ring,
                   .peer_ring = l->ring,
                   .claim = on_claim,
                   .owner = on_owner,
                   .owned_by = on_owned_by,
                   .ctx = s},
        .arena = shares && b->nodes > 1 ? &s->arena : NULL,
        .peer_arena = l->arena,
        .vote_record = s->record.memory != NULL
                           ? s->record.memory
                           : qn_commons_record(s->commons, b->self),
        .vote_record_bytes = QN_COMMONS_RECORD_BYTES,
        .fence = qn_server_fence,
        .fence_ctx = s,
        .first = b->first,
        .ended = shares ? on_ended : NULL,
        .ended_ctx = s,
        .events = &s->events.own,
        .own_cores = b->own_cores,
        .flow = flow_limits(b),
        .backlog_bytes = b->config->repl_backlog_size,
        .seed = b->incarnation ^ qn_clock_now(),
        .now = qn_clock_now(),
    };
}

static int frontend_make(struct qn_server *s)
{
    const struct qn_frontend_opts o = {
        .loop = &s->uv.loop,
        .replica = s->replica,
        .self = s->boot->self,
        .nodes = s->boot->nodes,
        .linearizable = s->boot->config->linearizable,
        .ops = {.takes = s->local->takes,
                .run_local = s->local->run,
                .clients_elsewhere = qn_server_clients_elsewhere,
                .publish_clients = qn_server_clients_publish},
        .ctx = s,
    };
    int err = qn_frontend_init(&s->frontend, &o);
    return err == QN_OK ? s->local->init(s) : err;
}

static int state_transfer_make(struct qn_server *s)
{
    const struct qn_snapshot_content_opts c = {
        .nodes = s->boot->nodes,
        .config = s->boot->config,
        .log_bytes = s->boot->config->repl_backlog_size,
        .ops = qn_snapshot_content_ops_of(s->replica)};
    int err = qn_snapshot_content_create(&s->content, &c);
    if (err != QN_OK) {
        return err;
    }
    const struct qn_state_transfer_opts o = {
        .self = s->boot->self,
        .nodes = s->boot->nodes,
        .ops = qn_state_transfer_ops_of(s->replica),
        .user = qn_snapshot_content_user(s->content)};
    return qn_state_transfer_create(&s->rejoin, &o);
}

/* A node that is dead from the beginning is asked nothing. A later incarnation
 * has no data of its own and asks the others. */
static void acquaint(struct qn_server *s)
{
    qn_time_t now = qn_clock_now();
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        if (i != s->boot->self && s->peers.present[i] == NULL) {
            qn_fanout_peer_down(s->ask, i);
            qn_state_transfer_peer_down(s->rejoin, i, now);
        }
    }
    if (!s->boot->first) {
        qn_state_transfer_begin(s->rejoin, 0, now);
    }
}

int qn_server_replica_make(struct qn_server *s)
{
    struct lent lent = {0};
    const struct qn_replica_opts o = {
        .driver = driver_opts(s, &lent),
        .config = s->boot->config,
        .submits_first = s->boot->first && s->boot->self == 0,
        .told = on_told,
        .deferred_read = on_mark,
        .take = on_take,
        .configured = on_configured,
        .need_snapshot = on_need_snapshot,
        .ctx = s,
    };
    int err = qn_replica_create(&s->replica, &o);
    if (err == QN_OK) {
        err = qn_server_peers_remember(s);
    }
    if (err == QN_OK) {
        err = state_transfer_make(s);
    }
    if (err == QN_OK) {
        err = frontend_make(s);
    }
    if (err == QN_OK) {
        acquaint(s);
    }
    return err;
}

const char *qn_server_reason(const struct qn_driver_status *d, char *text,
                             size_t cap)
{
    text[0] = '\0';
    if (d->reason == QN_REASON_DEATH) {
        snprintf(text, cap, "replica %u had ended", d->lost);
    } else if (d->reason == QN_REASON_SUSPECTED) {
        snprintf(text, cap, "replica %u was stalled", d->lost);
    } else if (d->reason == QN_REASON_ORDER) {
        snprintf(text, cap, "replica %u handed over", d->lost);
    }
    return text;
}

void qn_server_roles_turn(struct qn_server *s)
{
    struct qn_driver_status d;
    struct qn_role_actions actions;
    char why[64];
    qn_server_stop_turn(s);
    /* relaxed: published by this thread. */
    uint64_t epoch = qn_load(&qn_outbox_state(s->outbox)->epoch, QN_RELAXED);
    if (!qn_role_log_due(&s->role_log, epoch)) {
        return;
    }
    qn_driver_status(qn_replica_driver(s->replica), &d);
    const bool leads = d.leader == s->boot->self;
    const struct qn_role_view v = {.leads = leads,
                                   .active = leads && d.role == QN_ACTIVE,
                                   .suspected =
                                       d.reason == QN_REASON_SUSPECTED};
    qn_role_log_step(&s->role_log, epoch, &v, &actions);
    if (actions.deposed) {
        qn_server_deposed(s, d.lost, qn_clock_now());
    }
    if (actions.log_leads) {
        qn_log(QN_LOG_INFO, "replica %u leads, epoch %llu: %s", d.leader,
               (unsigned long long)d.epoch,
               qn_server_reason(&d, why, sizeof why));
    }
}

void qn_server_roles_tell(struct qn_server *s, uint32_t token)
{
    struct qn_driver_status d;
    qn_driver_status(qn_replica_driver(s->replica), &d);
    bool active = d.leader == s->boot->self && d.role == QN_ACTIVE;
    const struct qn_control_msg e = {.kind = QN_CTL_ROLES,
                                     .u.roles = {.token = token,
                                                 .epoch = d.epoch,
                                                 .leader = d.leader,
                                                 .acceptor = d.acceptor,
                                                 .active = active,
                                                 .in_sync = d.in_sync}};
    (void)qn_control_send(s->boot->control, &e,
                          -1); /* it knows if it is there */
}
