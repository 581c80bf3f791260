/*
 * The replica of a process and its front end: made when the peers were met, and
 * what is logged of its roles.
 */
#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/log.h"
#include "kvs/replica/snapshot_content_ops.h"
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
    qn_fanout_on_message(s->ask, from, bytes);
}

/* ---- snapshots ----------------------------------------------------------- */

static void on_lags(void *ctx, qn_slot_t slot)
{
    struct qn_server *s = ctx;
    char more[QN_RATE_LIMIT_TEXT];
    if (qn_rate_limit(&s->lags, "lags", qn_clock_now(), more)) {
        qn_log(QN_LOG_INFO,
               "replica %u lags behind what others keep, slot %llu: it gets a "
               "snapshot%s",
               s->boot->self, (unsigned long long)slot, more);
    }
}

static void on_covered(void *ctx, uint64_t seq)
{
    struct qn_server *s = ctx;
    qn_replica_covered(s->replica, seq);
}

static void on_caught_up(void *ctx, qn_slot_t position)
{
    struct qn_server *s = ctx;
    qn_replica_caught_up(s->replica, position);
}

static int content_make(struct qn_server *s)
{
    const struct qn_snapshot_content_opts o = {
        .nodes = s->boot->nodes,
        .config = s->boot->config,
        .log_bytes = s->boot->config->repl_backlog_size,
        .ops = qn_snapshot_content_ops_of(s->replica)};
    return qn_snapshot_content_create(&s->content, &o);
}

static int member_start(struct qn_server *s)
{
    const struct qn_service service = qn_replica_service(s->replica);
    const struct qn_member_state state = {
        .user = qn_snapshot_content_user(s->content),
        .lags = on_lags,
        .covered = on_covered,
        .caught_up = on_caught_up,
        .ctx = s};
    int err = qn_member_start(s->member, &service, &state);
    return err == QN_OK
               ? qn_replica_begin(s->replica, qn_member_driver(s->member))
               : err;
}

/* ---- its making ---------------------------------------------------------- */

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

/* A node that is dead from the beginning is asked nothing. */
static void acquaint(struct qn_server *s)
{
    uint64_t peers = qn_member_peers(s->member);
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        if (i != s->boot->self && (peers >> i & 1) == 0) {
            qn_fanout_peer_down(s->ask, i);
        }
    }
}

int qn_server_replica_make(struct qn_server *s)
{
    const struct qn_replica_opts o = {
        .self = s->boot->self,
        .nodes = s->boot->nodes,
        .incarnation = s->boot->incarnation,
        .first = s->boot->first,
        .seed = s->seed,
        .config = s->boot->config,
        .submits_first = s->boot->first && s->boot->self == 0,
        .told = on_told,
        .deferred_read = on_mark,
        .take = on_take,
        .configured = on_configured,
        .ctx = s,
    };
    int err = qn_replica_create(&s->replica, &o);
    if (err == QN_OK) {
        err = content_make(s);
    }
    if (err == QN_OK) {
        err = member_start(s);
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
    uint64_t epoch = qn_member_epoch(s->member);
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
        qn_member_deposed(s->member, d.lost, qn_clock_now());
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
