/*
 * A group that has stopped is recovered by force: a replica's part.
 *
 * A client says from which replica (`quoin recover` chooses the one with the
 * longest log, and has asked its user). The replica that is asked looks whether
 * the group has really stopped, in the epoch that the client means, and passes
 * the wish on. The supervisor ends all others (supervisor_recover.c), and then
 * orders the chosen one to go on; by then it has been told of every end, on the
 * same socket.
 */
#include "core/base/err.h"
#include "core/base/log.h"
#include "kvs/number.h"
#include "kvs/reply.h"
#include "kvs/server.h"

/* Why not; NULL: it may be. */
static const char *objection(const struct qn_server *s, int64_t epoch)
{
    struct qn_driver_status d;
    qn_driver_status(qn_replica_driver(s->replica), &d);
    if (!s->boot->config->memory_acceptor && s->boot->nodes > 1) {
        if (!d.stopped) {
            return "ERR the group has not stopped: there is nothing to recover";
        }
        if (d.epoch != (uint64_t)epoch) {
            return "ERR the group has changed meanwhile: look again";
        }
        return s->alone ? "ERR the supervisor has ended: start quoind again, "
                          "then recover"
                        : NULL;
    }
    return "ERR a group with the memory acceptor needs no recovery: it goes on "
           "while one replica that was in sync lives";
}

void qn_quoin_recover(struct qn_conn *c, struct qn_cmd_call *call)
{
    const struct qn_server *s = c->fe->o.server;
    int64_t epoch = 0;
    int64_t node = 0;
    if (!qn_number_parse(call->argv[2], &epoch) ||
        !qn_number_parse(call->argv[3], &node)) {
        qn_reply_error(call->reply,
                       "ERR value is not an integer or out of range");
        return;
    }
    if (node < 0 || node >= s->boot->nodes) {
        qn_reply_error(call->reply, "ERR no such replica: there are 0 to %u",
                       s->boot->nodes - 1);
        return;
    }
    const char *why = objection(s, epoch);
    if (why != NULL) {
        qn_reply_error(call->reply, "%s", why);
        return;
    }
    const struct qn_boot_event e = {.kind = QN_BOOT_RECOVER,
                                    .node = (qn_node_t)node,
                                    .incarnation = (uint64_t)epoch};
    int err = qn_boot_send(s->boot->control, &e, -1);
    if (err == QN_OK) {
        qn_reply_ok(call->reply);
    } else {
        qn_reply_error(call->reply, "ERR cannot tell the supervisor: %s",
                       qn_strerror(err));
    }
}

void qn_server_recover(struct qn_server *s)
{
    struct qn_driver_status d;
    struct qn_driver *driver = qn_replica_driver(s->replica);
    qn_driver_status(driver, &d);
    const int err = qn_driver_recover(driver, qn_clock_now());
    const struct qn_boot_event e = {.kind = QN_BOOT_RECOVERED,
                                    .node = s->boot->self,
                                    .error = err,
                                    .value = d.learned};
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
    (void)qn_boot_send(s->boot->control, &e, -1); /* it knows if it is there */
    s->turn_wanted = true;
}
