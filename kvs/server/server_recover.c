/*
 * A group that has stopped is recovered by force: a replica's part. The shell
 * of kvs/server/machine/recovery_request.h.
 *
 * The supervisor asks the chosen replica whether it could go on, ends all
 * others (kvs/supervision/recovery.c), and then orders it to go on. By
 * then the replica has been told of every end, on the same socket.
 *
 * A snapshot that is on its way here when the order comes is of the group as it
 * was: it is discarded, because its slots are decided anew.
 */
#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/log.h"
#include "kvs/base/number.h"
#include "kvs/control/recovery_error.h"
#include "kvs/resp/reply.h"
#include "kvs/server/server.h"

static struct qn_recovery_view view_of(struct qn_server *s)
{
    struct qn_driver_status d;
    struct qn_state_transfer_status join;
    const struct qn_driver *driver = qn_replica_driver(s->replica);
    const struct qn_recovery_request *r = &s->recovery;
    qn_driver_status(driver, &d);
    qn_member_transfer_status(s->member, &join);
    return (struct qn_recovery_view){
        .self = s->boot->self,
        .nodes = s->boot->nodes,
        .stopped = d.halted,
        .recoverable = qn_driver_recoverable(driver) == QN_OK,
        .ready = s->startup.ready,
        .snapshot_comes = join.comes,
        .alone = s->adoptee.alone,
        .client_waits =
            r->client != 0 && qn_frontend_find(&s->frontend, r->client) != NULL,
        .epoch = d.epoch,
        .learned = d.learned};
}

static void say_no(struct qn_buf *reply, qn_node_t node, int64_t why)
{
    qn_reply_error(reply, "ERR not recovered from replica %u: %s", node,
                   qn_recovery_error_text(why));
}

/* Hold the client until the supervisor has said something. */
static void pass_on(struct qn_server *s, struct qn_conn *c,
                    struct qn_cmd_call *call, const struct qn_control_msg *e)
{
    QN_ASSERT(c->session.state == QN_SESSION_RUN);
    QN_ASSERT(e->u.recover.client == c->id);
    int err = qn_control_send(s->boot->control, e, -1);
    if (err == QN_OK) {
        qn_session_block_remote(&c->session);
        qn_recovery_hold(&s->recovery, c->id, e->u.recover.node);
    } else {
        qn_reply_error(call->reply, "ERR cannot tell the supervisor: %s",
                       qn_strerror(err));
    }
}

void qn_quoin_recover(struct qn_conn *c, struct qn_cmd_call *call)
{
    struct qn_server *s = c->fe->o.ctx;
    int64_t epoch = 0;
    int64_t node = 0;
    int64_t position = 0;
    if (!qn_number_parse(call->argv[2], &epoch) ||
        !qn_number_parse(call->argv[3], &node) ||
        !qn_number_parse(call->argv[4], &position) || position < 0) {
        qn_reply_error(call->reply,
                       "ERR value is not an integer or out of range");
        return;
    }
    if (node < 0 || node >= s->boot->nodes) {
        qn_reply_error(call->reply, "ERR no such replica: there are 0 to %u",
                       s->boot->nodes - 1);
        return;
    }
    const struct qn_control_msg e = {
        .kind = QN_CTL_RECOVER,
        .u.recover = {.node = (qn_node_t)node,
                      .epoch = (uint64_t)epoch,
                      .client = c->id,
                      .position = (uint64_t)position}};
    const struct qn_recovery_view v = view_of(s);
    const struct qn_recovery_goal goal = {.epoch = e.u.recover.epoch,
                                          .node = e.u.recover.node,
                                          .position = e.u.recover.position};
    enum qn_recovery_error why = qn_recovery_check(&s->recovery, &v, &goal);
    if (why != QN_RECOVERY_ERROR_NONE) {
        say_no(call->reply, goal.node, why);
    } else {
        pass_on(s, c, call, &e);
    }
}

/* To the client that waits, if it is still connected. */
static void answer(struct qn_server *s, const struct qn_recovery_answer *a)
{
    QN_ASSERT(s->recovery.client == 0); /* it is answered once */
    struct qn_conn *c = qn_frontend_find(&s->frontend, a->client);
    if (c == NULL) {
        return;
    }
    if (a->why == QN_RECOVERY_ERROR_NONE) {
        qn_reply_ok(qn_conn_answer(c));
    } else {
        say_no(qn_conn_answer(c), a->node, a->why);
    }
    qn_conn_answered(c);
}

static void end(struct qn_server *s, enum qn_recovery_error why)
{
    struct qn_recovery_answer a;
    if (qn_recovery_end(&s->recovery, why, &a)) {
        answer(s, &a);
    }
}

void qn_server_refused(struct qn_server *s,
                       const struct qn_ctl_recover_refused *e)
{
    struct qn_recovery_answer a;
    if (qn_recovery_refused(&s->recovery, e->client, e->refusal, &a)) {
        answer(s, &a);
    }
}

void qn_server_recover_alone(struct qn_server *s)
{
    end(s, QN_RECOVERY_ERROR_ALONE);
}

void qn_server_recoverable(struct qn_server *s,
                           const struct qn_ctl_recover_query *e)
{
    const struct qn_recovery_view v = view_of(s);
    const struct qn_recovery_goal goal = {.epoch = e->epoch,
                                          .position = e->position};
    const struct qn_control_msg answer = {
        .kind = QN_CTL_RECOVERABLE,
        .u.recoverable = {.question = e->question,
                          .refusal = qn_recovery_possible(&v, &goal),
                          .position = v.learned}};
    (void)qn_control_send(s->boot->control, &answer, -1);
}

void qn_server_recover(struct qn_server *s)
{
    struct qn_driver_status d;
    struct qn_driver *driver = qn_replica_driver(s->replica);
    qn_driver_status(driver, &d);
    const int err = qn_driver_recover(driver, qn_clock_now());
    const struct qn_control_msg e = {
        .kind = QN_CTL_RECOVERED,
        .u.recovered = {.error = err, .position = d.learned}};
    if (err == QN_OK) {
        qn_member_transfer_forget(s->member);
    }
    if (err == QN_OK && d.highest_announced > d.learned) {
        qn_log(QN_LOG_WARN,
               "replica %u goes on from position %llu; %llu to %llu are lost",
               s->boot->self, (unsigned long long)d.learned,
               (unsigned long long)d.learned + 1,
               (unsigned long long)d.highest_announced);
    } else if (err == QN_OK) {
        qn_log(QN_LOG_WARN,
               "replica %u goes on from position %llu; nothing above it is "
               "known to have been decided",
               s->boot->self, (unsigned long long)d.learned);
    }
    end(s, err == QN_OK ? QN_RECOVERY_ERROR_NONE : QN_RECOVERY_ERROR_CHANGED);
    /* A supervisor that has gone need not know. */
    (void)qn_control_send(s->boot->control, &e, -1);
    s->turn_wanted = true;
}
