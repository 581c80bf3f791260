/*
 * The replica of a process and its front end: made when the peers were met, and
 * what is logged of its roles.
 */
#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/log.h"
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
    uint64_t peers = qn_member_peers(s->member);
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        if (i != s->boot->self && (peers >> i & 1) == 0) {
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
        .need_snapshot = on_need_snapshot,
        .ctx = s,
    };
    int err = qn_replica_create(&s->replica, &o);
    if (err == QN_OK) {
        const struct qn_service service = qn_replica_service(s->replica);
        err = qn_member_start(s->member, &service);
    }
    if (err == QN_OK) {
        err = qn_replica_begin(s->replica, qn_member_driver(s->member));
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
