/*
 * How a whole server ends in order.
 *
 * Replicas judge themselves how long they try (kvs/server/server_drain.c): they
 * know the limit in force, and say it when they are told to drain. The
 * supervisor waits as long and GRACE_S longer. A replica that has said nothing
 * by then is stalled, and is killed: what it held cannot be counted. When the
 * last process has ended, one line tells what was not answered, and so does the
 * exit status.
 *
 * A replica that says DRAINED without being asked was told by an operator
 * (SIGTERM to its process). It is let go at once.
 */
#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "kvs/supervision/supervision_internal.h"

enum {
    GRACE_S = 5, /* from the limit of a replica to its saying so; generous,
                    since only a stalled one needs it */
};

static bool is_waited_for(const struct qn_replica_slot *r)
{
    return r->state == QN_REPLICA_STARTING || r->state == QN_REPLICA_SERVING;
}

static void set_limit(const struct qn_sv_step *x, uint64_t limit_s)
{
    const uint64_t seconds = QN_MIN(limit_s, (uint64_t)INT32_MAX) + GRACE_S;
    QN_ASSERT(x->s->draining);
    x->s->drain_until = x->s->drain_began + seconds * QN_S;
}

void qn_sv_drain(const struct qn_sv_step *x)
{
    QN_ASSERT(!x->s->draining);
    x->s->draining = true;
    x->s->drain_began = x->now;
    /* The last complete one may have ended just now. */
    x->s->undrained |=
        qn_sv_count(x->s, QN_REPLICA_SERVING, QN_REPLICA_DRAINED) == 0;
    set_limit(x, x->s->opts.shutdown_timeout_s);
    qn_supervision_log(x->out, QN_LOG_INFO,
                       "draining; a second signal ends the server at once");
    qn_supervision_do(
        x->out, &(struct qn_supervision_action){.kind = QN_DO_CLOSE_LISTENERS});
    qn_sv_say_all(x, QN_CTL_DRAIN);
}

void qn_sv_on_signal(const struct qn_sv_step *x)
{
    if (x->s->draining) {
        qn_sv_finish(x, 128 + x->e->number);
    } else if (x->s->served) {
        qn_sv_drain(x);
    } else {
        qn_sv_finish(x, QN_SUPERVISOR_DRAINED); /* nothing was served */
    }
}

/* Each replica knows the limit in force, which CONFIG SET may have changed. */
void qn_sv_on_draining(const struct qn_sv_step *x, uint64_t limit_s)
{
    if (x->s->draining && x->s->drain_until != QN_TIME_NEVER) {
        set_limit(x, limit_s);
    }
}

void qn_sv_on_drained(const struct qn_sv_step *x, qn_node_t from,
                      uint64_t unanswered, bool group_stopped)
{
    struct qn_supervision *s = x->s;
    struct qn_replica_slot *r = &s->replica[from];
    s->stopped = s->stopped || group_stopped;
    r->state = QN_MAX(r->state, QN_REPLICA_DRAINED);
    s->unanswered += unanswered;
    if (s->draining) {
        qn_sv_drain_check(x);
        return;
    }
    if (unanswered > 0) {
        qn_supervision_log(
            x->out, QN_LOG_WARN,
            "replica %u: shutdown-timeout is over; replies not given: %llu",
            from, (unsigned long long)unanswered);
    }
    if (!r->leaves) { /* else voters.c says when */
        qn_sv_say(x, from, QN_CTL_STOP);
    }
}

void qn_sv_drain_check(const struct qn_sv_step *x)
{
    QN_ASSERT(x->s->draining);
    for (qn_node_t i = 0; i < x->s->opts.replicas; i++) {
        if (is_waited_for(&x->s->replica[i])) {
            return;
        }
    }
    qn_sv_say_all(x, QN_CTL_STOP);
}

void qn_sv_drain_turn(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    if (!s->draining || x->now < s->drain_until) {
        return;
    }
    s->drain_until = QN_TIME_NEVER; /* SIGKILL needs no second one */
    for (qn_node_t i = 0; i < s->opts.replicas; i++) {
        if (is_waited_for(&s->replica[i])) {
            s->replica[i].killed = true;
            qn_sv_kill(x, i);
        }
    }
}

/* "; killed, since silent: replicas 1 2", or nothing. */
static void name_killed(const struct qn_supervision *s, char *text, size_t cap)
{
    size_t n = 0;
    text[0] = '\0';
    for (qn_node_t i = 0; i < s->opts.replicas; i++) {
        if (s->replica[i].killed && n < cap) {
            n += (size_t)snprintf(
                text + n, cap - n, "%s %u",
                n == 0 ? "; killed, since silent: replicas" : "", i);
        }
    }
}

int qn_sv_drain_status(const struct qn_sv_step *x)
{
    const struct qn_supervision *s = x->s;
    char killed[160];
    name_killed(s, killed, sizeof killed);
    if (s->unanswered > 0 || killed[0] != '\0') {
        qn_supervision_log(x->out, QN_LOG_WARN,
                           "shutdown-timeout is over; replies not given: "
                           "%llu%s",
                           (unsigned long long)s->unanswered, killed);
    }
    if (s->stopped) {
        qn_supervision_log(x->out, QN_LOG_ERROR,
                           "the group had stopped and was not recovered: what "
                           "it had is gone");
    }
    return s->unanswered > 0 || s->undrained || s->stopped
               ? QN_SUPERVISOR_LOST
               : QN_SUPERVISOR_DRAINED;
}
