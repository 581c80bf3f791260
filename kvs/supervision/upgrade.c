/*
 * A running group gets the processes of another build, one replica after the
 * other.
 *
 *     SETTLE   until every replica is complete, all agree which one leads and
 *              which accepts, and nothing would be lost without one of them
 *     LEAVE    the next one drains, as if an operator had told it, and ends
 *     COME     it is started again, of this program, and becomes complete
 *
 * So at any moment one replica at most is missing, and the next step begins
 * only when that is over. Those without a role go first, then the acceptor
 * (process), then the leader: another replica is told to relieve it, since that
 * takes a round of messages where a death must be noticed first. If none has
 * within HAND_OVER_MS, it leaves as it is: the others take over as from a dead
 * one.
 *
 * A replica is replaced unless its process runs this very file, so an upgrade
 * that was interrupted goes on where it was, and the way back is the former
 * program's `--upgrade`.
 *
 * A failure stops the upgrade, and nothing else: the group goes on as it is. A
 * new replica that ends or is not complete in time is not started again: the
 * next one would do the same.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "kvs/supervision/supervision_internal.h"

enum {
    HAND_OVER_MS = 5000,
    GRACE_S = 5, /* beyond shutdown-timeout, as in drain.c */
};

static double seconds_since(const struct qn_sv_step *x, qn_time_t then)
{
    return (double)(x->now - then) / 1e9;
}

static void enter(const struct qn_sv_step *x, enum qn_upgrade_step to,
                  qn_time_t limit_s)
{
    struct qn_upgrade *u = &x->s->upgrade;
    QN_ASSERT(to != QN_UPGRADE_LEAVE || u->step == QN_UPGRADE_SETTLE);
    QN_ASSERT(to != QN_UPGRADE_COME || u->step == QN_UPGRADE_LEAVE);
    u->step = to;
    u->since = x->now;
    u->until = u->since + limit_s * QN_S;
    u->asked_at = 0;
    u->token++; /* answers to former questions are not taken any more */
    memset(u->roles, 0, sizeof u->roles);
}

static void stop(const struct qn_sv_step *x, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void stop(const struct qn_sv_step *x, const char *fmt, ...)
{
    struct qn_upgrade *u = &x->s->upgrade;
    char why[120];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    QN_ASSERT(u->step != QN_UPGRADE_NONE);
    u->step = QN_UPGRADE_NONE;
    qn_supervision_progress(x->out,
                            "stopped: %s; %u of %u replaced, the others go on "
                            "as they were. The way back: the former quoind "
                            "with --upgrade",
                            why, u->done, u->total);
    qn_supervision_log(x->out, QN_LOG_ERROR, "the upgrade has stopped: %s",
                       why);
}

/* A client may have asked for another operation as soon as the group was ours.
 */
static bool refuse_during_another(const struct qn_sv_step *x)
{
    const char *other = qn_sv_recovers(x->s) ? "a recovery is going on"
                        : qn_sv_member_changes(x->s)
                            ? "a member is being added or removed"
                            : NULL;
    if (other != NULL) {
        qn_supervision_progress(
            x->out, "stopped: %s; start --upgrade again after it", other);
        qn_supervision_log(x->out, QN_LOG_ERROR, "no upgrade: %s", other);
    }
    return other != NULL;
}

void qn_sv_on_upgrade(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    struct qn_upgrade *u = &s->upgrade;
    QN_ASSERT(u->step == QN_UPGRADE_NONE);
    if (refuse_during_another(x)) {
        return;
    }
    for (qn_node_t i = 0; i < s->opts.replicas; i++) {
        const struct qn_replica_slot *r = &s->replica[i];
        if (r->state == QN_REPLICA_ENDED || !qn_sv_votes(s, i)) {
            continue;
        }
        if ((x->e->same_program & qn_sv_bit(i)) != 0) {
            qn_supervision_progress(
                x->out, "replica %u (process %d) runs this quoind already", i,
                (int)r->pid);
        } else {
            u->to_replace |= qn_sv_bit(i);
            u->total++;
        }
    }
    u->began = x->now;
    enter(x, QN_UPGRADE_SETTLE, s->opts.upgrade_timeout_s);
}

/* ---- SETTLE -------------------------------------------------------------- */

/* The next one to leave: the leader last. */
static qn_node_t next_of(const struct qn_supervision *s,
                         const struct qn_roles *r)
{
    const uint64_t to_replace = s->upgrade.to_replace & qn_sv_serving(s);
    const uint64_t followers = to_replace & ~qn_sv_bit(r->leader);
    const uint64_t idle = followers & ~qn_sv_bit(r->acceptor);
    return qn_sv_lowest(idle != 0        ? idle
                        : followers != 0 ? followers
                                         : to_replace);
}

/* Replicas that can relieve the leader: all but it and the acceptor. */
static uint64_t relievers(const struct qn_supervision *s,
                          const struct qn_roles *r)
{
    return qn_sv_serving(s) & ~qn_sv_bit(r->leader) & ~qn_sv_bit(r->acceptor);
}

static void relieve(const struct qn_sv_step *x, const struct qn_roles *r)
{
    struct qn_upgrade *u = &x->s->upgrade;
    const qn_node_t next = qn_sv_lowest(relievers(x->s, r));
    QN_ASSERT(next != r->leader);
    qn_supervision_progress(x->out, "replica %u leads; replica %u relieves it",
                            r->leader, next);
    u->ordered = true;
    u->epoch = r->epoch;
    u->ordered_at = x->now;
    qn_sv_say_lead(x, next);
}

static void dismiss(const struct qn_sv_step *x, qn_node_t i)
{
    struct qn_upgrade *u = &x->s->upgrade;
    QN_ASSERT((u->to_replace & qn_sv_bit(i)) != 0);
    QN_ASSERT(x->s->replica[i].state == QN_REPLICA_SERVING);
    u->node = i;
    qn_supervision_progress(x->out, "replica %u (process %d), %u of %u, leaves",
                            i, (int)x->s->replica[i].pid, u->done + 1,
                            u->total);
    enter(x, QN_UPGRADE_LEAVE, x->s->opts.shutdown_timeout_s + GRACE_S);
    qn_sv_say(x, i, QN_CTL_DRAIN);
}

static void finish(const struct qn_sv_step *x)
{
    struct qn_upgrade *u = &x->s->upgrade;
    u->step = QN_UPGRADE_NONE;
    qn_supervision_progress(x->out, "done: %u replica%s replaced in %.2f s",
                            u->done, u->done == 1 ? "" : "s",
                            seconds_since(x, u->began));
}

/* All is well: what comes next? */
static void proceed(const struct qn_sv_step *x, const struct qn_roles *r)
{
    const struct qn_supervision *s = x->s;
    const struct qn_upgrade *u = &s->upgrade;
    const uint64_t serving = qn_sv_serving(s);
    if ((u->to_replace & serving) == 0) {
        finish(x);
        return;
    }
    if (qn_is_pow2(serving)) {
        stop(x, "one replica is left, no other has the data");
        return;
    }
    const qn_node_t i = next_of(s, r);
    const bool waits = u->ordered && u->epoch == r->epoch;
    if (i != r->leader || relievers(s, r) == 0 ||
        (waits && x->now >= u->ordered_at + HAND_OVER_MS * QN_MS)) {
        dismiss(x, i);
    } else if (!waits) {
        relieve(x, r);
    }
}

static void settle(const struct qn_sv_step *x)
{
    struct qn_upgrade *u = &x->s->upgrade;
    const qn_node_t missing = qn_sv_roles_missing(x->s);
    const struct qn_roles *r =
        missing == QN_NODES_MAX ? qn_sv_roles_agreed(x->s) : NULL;
    if (r != NULL) {
        proceed(x, r);
    } else if (x->now >= u->until && missing < QN_NODES_MAX) {
        stop(x, "replica %u is not complete, or does not answer, after %u s",
             missing, x->s->opts.upgrade_timeout_s);
    } else if (x->now >= u->until) {
        stop(x, "the replicas do not agree which one leads, after %u s",
             x->s->opts.upgrade_timeout_s);
    }
    if (u->step == QN_UPGRADE_SETTLE) {
        qn_sv_roles_ask(x);
    }
}

/* ---- LEAVE, COME --------------------------------------------------------- */

static void leaving(const struct qn_sv_step *x)
{
    struct qn_upgrade *u = &x->s->upgrade;
    if (x->now >= u->until) {
        u->until = QN_TIME_NEVER; /* SIGKILL needs no second one */
        qn_supervision_log(x->out, QN_LOG_WARN,
                           "replica %u does not drain; it is killed", u->node);
        x->s->replica[u->node].killed = true;
        qn_sv_kill(x, u->node);
    }
}

/* The end of a process is what stops the upgrade; if there is none, this. */
static void give_up(const struct qn_sv_step *x, struct qn_replica_slot *r)
{
    if (r->state == QN_REPLICA_ENDED) {
        r->restart_at = QN_TIME_NEVER;
        stop(x, "replica %u cannot be started", x->s->upgrade.node);
    } else {
        r->killed = true;
        qn_sv_kill(x, x->s->upgrade.node);
    }
}

static void coming(const struct qn_sv_step *x)
{
    struct qn_upgrade *u = &x->s->upgrade;
    struct qn_replica_slot *r = &x->s->replica[u->node];
    if (r->state == QN_REPLICA_SERVING) {
        u->done++;
        u->to_replace &= ~qn_sv_bit(u->node);
        qn_supervision_progress(
            x->out,
            "replica %u is complete, process %d of this quoind, after %.2f s",
            u->node, (int)r->pid, seconds_since(x, u->since));
        enter(x, QN_UPGRADE_SETTLE, x->s->opts.upgrade_timeout_s);
    } else if (x->now >= u->until) {
        u->until = QN_TIME_NEVER;
        give_up(x, r);
    }
}

bool qn_sv_upgrade_ended(const struct qn_sv_step *x, qn_node_t i, bool *stays)
{
    struct qn_upgrade *u = &x->s->upgrade;
    const struct qn_replica_slot *r = &x->s->replica[i];
    u->roles[i] = (struct qn_roles){0}; /* its successor is asked anew */
    if (x->s->draining || i != u->node) {
        return false;
    }
    if (u->step == QN_UPGRADE_LEAVE) {
        enter(x, QN_UPGRADE_COME, x->s->opts.upgrade_timeout_s);
        return true;
    }
    if (u->step == QN_UPGRADE_COME) {
        *stays = true;
        stop(x, "the new replica %u (process %d) %s", i, (int)r->pid,
             r->killed ? "was not complete in time; it is ended"
                       : "has ended before it was complete");
    }
    return false;
}

/* ---- turns --------------------------------------------------------------- */

void qn_sv_upgrade_turn(const struct qn_sv_step *x)
{
    if (x->s->draining) {
        return;
    }
    switch (x->s->upgrade.step) {
    case QN_UPGRADE_NONE:
        break;
    case QN_UPGRADE_SETTLE:
        settle(x);
        break;
    case QN_UPGRADE_LEAVE:
        leaving(x);
        break;
    case QN_UPGRADE_COME:
        coming(x);
        break;
    }
}

qn_time_t qn_sv_upgrade_deadline(const struct qn_supervision *s, qn_time_t now)
{
    const struct qn_upgrade *u = &s->upgrade;
    if (u->step == QN_UPGRADE_NONE || s->draining) {
        return QN_TIME_NEVER;
    }
    return u->step == QN_UPGRADE_SETTLE ? now + QN_SV_ROLES_LOOK : u->until;
}
