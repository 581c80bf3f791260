/*
 * A group that has stopped is recovered by force: a replica's part.
 *
 * A client says from which replica, and what that one has (`quoin recover`
 * chooses the one with the longest log, and has asked its user). The replica
 * that is asked looks whether the group has really stopped, in the epoch that
 * the client means, and passes the wish on. The supervisor asks the chosen one
 * whether it could, ends all others (supervisor_recover.c), and then orders it
 * to go on; by then it has been told of every end, on the same socket. The
 * client waits meanwhile: for a refusal, for the order, or for the end of the
 * replica that it had asked.
 *
 * The position is what the user has agreed to: a later life of the chosen one,
 * with a snapshot of somebody who had less, must not go on in its name.
 *
 * A snapshot that is on its way here when the order comes is of the group that
 * was: it is thrown away, for its slots are decided anew.
 */
#include "core/base/err.h"
#include "core/base/log.h"
#include "kvs/base/number.h"
#include "kvs/control/recovery_error.h"
#include "kvs/resp/reply.h"
#include "kvs/server/server.h"

/* Could the group go on from here, in this epoch and with all up to this
 * position? */
static enum qn_recovery_error recoverable(const struct qn_server *s,
                                          uint64_t epoch, qn_slot_t position)
{
    struct qn_driver_status d;
    struct qn_state_transfer_status join;
    const struct qn_driver *driver = qn_replica_driver(s->replica);
    qn_driver_status(driver, &d);
    qn_state_transfer_status(s->rejoin, &join);
    if (qn_driver_recoverable(driver) != QN_OK || d.epoch != epoch) {
        return QN_RECOVERY_ERROR_CHANGED;
    }
    if (!s->ready || join.comes) {
        return QN_RECOVERY_ERROR_COMES;
    }
    return d.learned >= position ? QN_RECOVERY_ERROR_NONE
                                 : QN_RECOVERY_ERROR_LESS;
}

static enum qn_recovery_error objection(struct qn_server *s, uint64_t epoch,
                                        qn_node_t node, qn_slot_t position)
{
    struct qn_driver_status d;
    qn_driver_status(qn_replica_driver(s->replica), &d);
    if (s->boot->nodes == 1) {
        return QN_RECOVERY_ERROR_SINGLE;
    }
    if (!d.stopped) {
        return QN_RECOVERY_ERROR_RUNS;
    }
    if (d.epoch != epoch) {
        return QN_RECOVERY_ERROR_CHANGED;
    }
    if (s->alone) {
        return QN_RECOVERY_ERROR_ALONE;
    }
    if (qn_frontend_find(&s->frontend, s->recovers) != NULL) {
        return QN_RECOVERY_ERROR_TWICE;
    }
    return node == s->boot->self ? recoverable(s, epoch, position)
                                 : QN_RECOVERY_ERROR_NONE;
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
    int err = qn_control_send(s->boot->control, e, -1);
    if (err == QN_OK) {
        c->hold = QN_HOLD_ANSWER;
        s->recovers = c->id;
        s->recovers_from = e->u.recover.node;
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
    enum qn_recovery_error why =
        objection(s, e.u.recover.epoch, e.u.recover.node, e.u.recover.position);
    if (why != QN_RECOVERY_ERROR_NONE) {
        say_no(call->reply, e.u.recover.node, why);
    } else {
        pass_on(s, c, call, &e);
    }
}

/* To the client that waits, if it still does. */
static void answer(struct qn_server *s, int64_t why)
{
    struct qn_conn *c = qn_frontend_find(&s->frontend, s->recovers);
    s->recovers = 0;
    if (c == NULL) {
        return;
    }
    if (why == QN_RECOVERY_ERROR_NONE) {
        qn_reply_ok(qn_conn_answer(c));
    } else {
        say_no(qn_conn_answer(c), s->recovers_from, why);
    }
    qn_conn_answered(c);
}

void qn_server_refused(struct qn_server *s,
                       const struct qn_ctl_recover_refused *e)
{
    if (e->client == s->recovers) {
        answer(s, e->refusal);
    }
}

void qn_server_recover_alone(struct qn_server *s)
{
    answer(s, QN_RECOVERY_ERROR_ALONE);
}

void qn_server_recoverable(struct qn_server *s,
                           const struct qn_ctl_recover_query *e)
{
    struct qn_driver_status d;
    qn_driver_status(qn_replica_driver(s->replica), &d);
    const struct qn_control_msg answer = {
        .kind = QN_CTL_RECOVERABLE,
        .u.recoverable = {.question = e->question,
                          .refusal = recoverable(s, e->epoch, e->position),
                          .position = d.learned}};
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
        qn_state_transfer_forget(s->rejoin);
    }
    if (err == QN_OK && d.said > d.learned) {
        qn_log(QN_LOG_WARN,
               "replica %u goes on from position %llu; %llu to %llu are lost",
               s->boot->self, (unsigned long long)d.learned,
               (unsigned long long)d.learned + 1, (unsigned long long)d.said);
    } else if (err == QN_OK) {
        qn_log(QN_LOG_WARN,
               "replica %u goes on from position %llu; nothing above it is "
               "known to have been decided",
               s->boot->self, (unsigned long long)d.learned);
    }
    answer(s,
           err == QN_OK ? QN_RECOVERY_ERROR_NONE : QN_RECOVERY_ERROR_CHANGED);
    (void)qn_control_send(s->boot->control, &e,
                          -1); /* it knows if it is there */
    s->turn_wanted = true;
}
