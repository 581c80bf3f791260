/*
 * How a whole server ends in order.
 *
 * Replicas judge themselves how long they try (kvs/server/server_drain.c): they
 * know the limit in force, and say it when they are told to drain. The
 * supervisor waits as long and a grace longer; who has said nothing by then is
 * stopped or stuck, and is killed: what it held cannot be counted. When the
 * last process has ended one line tells what was not answered, and so does the
 * status.
 */
#include <signal.h>
#include <string.h>

#include "core/base/log.h"
#include "kvs/supervisor/supervisor_internal.h"

enum {
    GRACE_S = 5, /* from the limit of a replica to its saying so; generous,
                    since only one that hangs needs it */
};

static bool waited_for(const struct qn_supervised *r)
{
    return r->state == QN_SUPERVISED_STARTING ||
           r->state == QN_SUPERVISED_SERVING;
}

void qn_supervisor_drain(struct qn_supervisor *s)
{
    s->draining = true;
    s->drain_began = qn_clock_now();
    qn_supervisor_drain_limit(s, s->config.shutdown_timeout);
    qn_log(QN_LOG_INFO, "draining; once more to end at once");
    qn_listen_close(&s->listen);
    qn_supervisor_say_all(s, QN_CTL_DRAIN);
}

void qn_supervisor_drain_limit(struct qn_supervisor *s, uint64_t limit)
{
    uint64_t seconds = QN_MIN(limit, (uint64_t)INT32_MAX) + GRACE_S;
    s->drain_until = s->drain_began + seconds * QN_S;
}

int qn_supervisor_drain_wait_ms(const struct qn_supervisor *s)
{
    if (!s->draining || s->drain_until == QN_TIME_NEVER) {
        return -1;
    }
    qn_time_t now = qn_clock_now();
    qn_time_t left = s->drain_until - QN_MIN(now, s->drain_until);
    return (int)QN_MIN((left + QN_MS - 1) / QN_MS, (qn_time_t)INT32_MAX);
}

void qn_supervisor_drain_turn(struct qn_supervisor *s)
{
    if (qn_supervisor_drain_wait_ms(s) != 0) {
        return;
    }
    s->drain_until = QN_TIME_NEVER; /* SIGKILL needs no second one */
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        struct qn_supervised *r = &s->replica[i];
        if (waited_for(r)) {
            r->killed = true;
            qn_supervisor_kill(r, SIGKILL);
        }
    }
}

void qn_supervisor_drained(struct qn_supervisor *s, qn_node_t i,
                           uint64_t unanswered)
{
    s->replica[i].state = QN_MAX(s->replica[i].state, QN_SUPERVISED_DRAINED);
    s->unanswered += unanswered;
    if (s->draining) {
        qn_supervisor_drain_check(s);
        return;
    }
    if (unanswered > 0) {
        qn_log(QN_LOG_WARN,
               "replica %u: shutdown-timeout is over; replies not given: %llu",
               i, (unsigned long long)unanswered);
    }
    qn_supervisor_say(s, i, QN_CTL_STOP);
}

void qn_supervisor_drain_check(struct qn_supervisor *s)
{
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        if (waited_for(&s->replica[i])) {
            return;
        }
    }
    qn_supervisor_say_all(s, QN_CTL_STOP);
}

/* "; killed, since silent: replicas 1 2", or nothing. */
static void name_killed(const struct qn_supervisor *s, char *text, size_t cap)
{
    size_t n = 0;
    text[0] = '\0';
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        if (s->replica[i].killed && n < cap) {
            n += (size_t)snprintf(
                text + n, cap - n, "%s %u",
                n == 0 ? "; killed, since silent: replicas" : "", i);
        }
    }
}

int qn_supervisor_drain_status(const struct qn_supervisor *s)
{
    char killed[256];
    name_killed(s, killed, sizeof killed);
    if (s->unanswered > 0 || killed[0] != '\0') {
        qn_log(QN_LOG_WARN,
               "shutdown-timeout is over; replies not given: %llu%s",
               (unsigned long long)s->unanswered, killed);
    }
    if (s->stopped) {
        qn_log(QN_LOG_ERROR,
               "the group had stopped and was not recovered: what it had is "
               "gone");
    }
    return s->unanswered > 0 || s->undrained || s->stopped
               ? QN_SUPERVISOR_LOST
               : QN_SUPERVISOR_DRAINED;
}
