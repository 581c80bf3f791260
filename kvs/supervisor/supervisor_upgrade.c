/*
 * A running group gets the processes of another build, one replica after the
 * other.
 *
 *     SETTLE   until every replica is complete and all agree who leads, who
 *              accepts, and that nothing would be lost with one of them
 *     LEAVE    the next one drains, as if an operator had told it to, and ends
 *     COME     it is started again, of this program, and becomes complete
 *
 * So at any moment one replica at most is missing, and the next step begins
 * only when that is over. Those without a role go first, then the acceptor
 * (process), then the leader: another one is told to relieve it, since that
 * takes a round of messages where a death must be noticed first. If nobody has
 * within HAND_OVER_MS, it leaves as it is: the others take over as from a dead
 * one.
 *
 * A replica is replaced unless its process runs this very file, so an upgrade
 * that was interrupted goes on where it stood, and the way back is the former
 * program's `--upgrade`.
 *
 * What goes wrong stops it, and nothing else: the group goes on as it is. A new
 * replica that ends or is not complete in time is not started again: the next
 * one would do the same.
 *
 * Replicas are asked about roles every LOOK_MS while it settles; an upgrade is
 * rare, and over in seconds.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/log.h"
#include "kvs/supervisor/supervisor_internal.h"

enum {
    LOOK_MS = 2,
    HAND_OVER_MS = 5000,
    GRACE_S = 5, /* beyond shutdown-timeout, as in supervisor_drain.c */
};

/* Of a mask that is not empty. */
static qn_node_t lowest(uint64_t mask)
{
    return (qn_node_t)__builtin_ctzll(mask);
}

static uint64_t bit(qn_node_t i)
{
    return (uint64_t)1 << i;
}

static void tell(struct qn_supervisor *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A line of progress. */
static void tell(struct qn_supervisor *s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("upgrade: ", s->opts->ready);
    vfprintf(s->opts->ready, fmt, args);
    va_end(args);
    fputc('\n', s->opts->ready);
    fflush(s->opts->ready);
}

static double seconds_since(qn_time_t then)
{
    return (double)(qn_clock_now() - then) / 1e9;
}

static void step(struct qn_supervisor *s, enum qn_upgrade_step to,
                 qn_time_t limit_s)
{
    struct qn_upgrade *u = &s->upgrade;
    u->step = to;
    u->since = qn_clock_now();
    u->until = u->since + limit_s * QN_S;
    u->asked_at = 0;
    u->token++; /* what was asked before is not heard any more */
    memset(u->roles, 0, sizeof u->roles);
}

static void stop(struct qn_supervisor *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void stop(struct qn_supervisor *s, const char *fmt, ...)
{
    struct qn_upgrade *u = &s->upgrade;
    char why[160];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    u->step = QN_UPGRADE_NONE;
    tell(s,
         "stopped: %s; %u of %u replaced, the others go on as they were. The "
         "way back: the former quoind with --upgrade",
         why, u->done, u->total);
    qn_log(QN_LOG_ERROR, "the upgrade has stopped: %s", why);
}

/* ---- who is replaced ----------------------------------------------------- */

int qn_supervisor_upgrade_fits(struct qn_supervisor *s,
                               const struct qn_config *group)
{
    if (group->replicas > 1) {
        return QN_OK;
    }
    snprintf(s->why, sizeof s->why,
             "a server of one replica cannot be upgraded while it runs: nobody "
             "else has its data; end it, and start this quoind");
    return QN_EINVAL;
}

/* Does that process run the same file as this one? */
static bool same_program(pid_t pid)
{
    char path[48];
    struct stat own;
    struct stat its;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    return stat("/proc/self/exe", &own) == 0 && stat(path, &its) == 0 &&
           own.st_dev == its.st_dev && own.st_ino == its.st_ino;
}

void qn_supervisor_upgrade_begin(struct qn_supervisor *s)
{
    struct qn_upgrade *u = &s->upgrade;
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        const struct qn_supervised *r = &s->replica[i];
        if (r->state == QN_SUPERVISED_ENDED) {
            continue;
        }
        if (same_program(r->pid)) {
            tell(s, "replica %u (process %d) runs this quoind already", i,
                 (int)r->pid);
        } else {
            u->todo |= bit(i);
            u->total++;
        }
    }
    u->began = qn_clock_now();
    step(s, QN_UPGRADE_SETTLE, s->config.upgrade_timeout);
}

/* ---- SETTLE -------------------------------------------------------------- */

void qn_supervisor_upgrade_roles(struct qn_supervisor *s, qn_node_t from,
                                 const struct qn_ctl_roles *e)
{
    if (e->token == s->upgrade.token) {
        s->upgrade.roles[from] = (struct qn_roles){.heard = true,
                                                   .active = e->active,
                                                   .epoch = e->epoch,
                                                   .leader = e->leader,
                                                   .acceptor = e->acceptor,
                                                   .in_sync = e->in_sync};
    }
}

/* One question at a time: who stands still is not told hundreds of them. */
static void ask(struct qn_supervisor *s)
{
    struct qn_upgrade *u = &s->upgrade;
    const struct qn_control_msg e = {.kind = QN_CTL_ROLES_QUERY,
                                     .u.roles_query.token = u->token};
    if (qn_clock_now() < u->asked_at + LOOK_MS * QN_MS) {
        return;
    }
    u->asked_at = qn_clock_now();
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        if (s->replica[i].state == QN_SUPERVISED_SERVING &&
            s->replica[i].control >= 0 && !u->roles[i].asked) {
            u->roles[i].asked = true;
            qn_supervisor_send(s, i, &e, -1);
        }
    }
}

/* It is there, or will be: it was not told to leave for good. */
static bool counts(const struct qn_supervised *r)
{
    return r->state != QN_SUPERVISED_ENDED || r->restart_at != QN_TIME_NEVER;
}

/* Who is not complete, or has not answered; QN_NODES_MAX: nobody. */
static qn_node_t who_lacks(const struct qn_supervisor *s)
{
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        const struct qn_supervised *r = &s->replica[i];
        if (counts(r) &&
            (r->state != QN_SUPERVISED_SERVING || !s->upgrade.roles[i].heard)) {
            return i;
        }
    }
    return QN_NODES_MAX;
}

static uint64_t living(const struct qn_supervisor *s)
{
    uint64_t mask = 0;
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        mask |= s->replica[i].state == QN_SUPERVISED_SERVING ? bit(i) : 0;
    }
    return mask;
}

/* All see the same roles, the leader leads, and whoever leaves now takes
 * nothing along. @return the roles; NULL: not yet. */
static const struct qn_roles *agreed(const struct qn_supervisor *s)
{
    uint64_t there = living(s);
    const struct qn_roles *r = &s->upgrade.roles[lowest(there)];
    uint64_t needed =
        s->config.memory_acceptor ? there : bit(r->leader) | bit(r->acceptor);
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        const struct qn_roles *o = &s->upgrade.roles[i];
        if ((there & bit(i)) != 0 &&
            (o->epoch != r->epoch || o->leader != r->leader ||
             o->acceptor != r->acceptor || (o->in_sync & needed) != needed)) {
            return NULL;
        }
    }
    return s->upgrade.roles[r->leader].active ? r : NULL;
}

/* The next one to leave, the leader last; only it is left: the leader. */
static qn_node_t next_of(const struct qn_supervisor *s,
                         const struct qn_roles *r)
{
    uint64_t todo = s->upgrade.todo & living(s);
    uint64_t followers = todo & ~bit(r->leader);
    uint64_t idle = followers & ~bit(r->acceptor);
    return lowest(idle != 0 ? idle : followers != 0 ? followers : todo);
}

/* Who relieves the leader: any but it and the acceptor. */
static uint64_t heirs(const struct qn_supervisor *s, const struct qn_roles *r)
{
    return living(s) & ~bit(r->leader) & ~bit(r->acceptor);
}

static void hand_over(struct qn_supervisor *s, const struct qn_roles *r)
{
    struct qn_upgrade *u = &s->upgrade;
    const qn_node_t heir = lowest(heirs(s, r));
    const struct qn_control_msg e = {.kind = QN_CTL_LEAD, .u.lead.node = heir};
    tell(s, "replica %u leads; replica %u relieves it", r->leader, heir);
    u->ordered = true;
    u->epoch = r->epoch;
    u->ordered_at = qn_clock_now();
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        qn_supervisor_send(s, i, &e, -1);
    }
}

static void dismiss(struct qn_supervisor *s, qn_node_t i)
{
    struct qn_upgrade *u = &s->upgrade;
    u->node = i;
    tell(s, "replica %u (process %d), %u of %u, leaves", i,
         (int)s->replica[i].pid, u->done + 1, u->total);
    step(s, QN_UPGRADE_LEAVE, s->config.shutdown_timeout + GRACE_S);
    qn_supervisor_say(s, i, QN_CTL_DRAIN);
}

static void finish(struct qn_supervisor *s)
{
    struct qn_upgrade *u = &s->upgrade;
    u->step = QN_UPGRADE_NONE;
    tell(s, "done: %u replica%s replaced in %.2f s", u->done,
         u->done == 1 ? "" : "s", seconds_since(u->began));
}

/* All is well: what comes next? */
static void proceed(struct qn_supervisor *s, const struct qn_roles *r)
{
    struct qn_upgrade *u = &s->upgrade;
    if ((u->todo & living(s)) == 0) {
        finish(s);
        return;
    }
    if ((living(s) & (living(s) - 1)) == 0) {
        stop(s, "one replica is left, nobody else has the data");
        return;
    }
    qn_node_t i = next_of(s, r);
    bool waits = u->ordered && u->epoch == r->epoch;
    if (i != r->leader || heirs(s, r) == 0 ||
        (waits && qn_clock_now() >= u->ordered_at + HAND_OVER_MS * QN_MS)) {
        dismiss(s, i);
    } else if (!waits) {
        hand_over(s, r);
    }
}

static void settle(struct qn_supervisor *s)
{
    struct qn_upgrade *u = &s->upgrade;
    qn_time_t now = qn_clock_now();
    const qn_node_t lacks = who_lacks(s);
    const struct qn_roles *r = lacks == QN_NODES_MAX ? agreed(s) : NULL;
    if (r != NULL) {
        proceed(s, r);
    } else if (now >= u->until && lacks < QN_NODES_MAX) {
        stop(s, "replica %u is not complete, or does not answer, after %u s",
             lacks, s->config.upgrade_timeout);
    } else if (now >= u->until) {
        stop(s, "the replicas do not agree who leads, after %u s",
             s->config.upgrade_timeout);
    }
    if (u->step == QN_UPGRADE_SETTLE) {
        ask(s);
    }
}

/* ---- LEAVE, COME --------------------------------------------------------- */

static void leaving(struct qn_supervisor *s)
{
    struct qn_upgrade *u = &s->upgrade;
    struct qn_supervised *r = &s->replica[u->node];
    if (qn_clock_now() >= u->until) {
        u->until = QN_TIME_NEVER; /* SIGKILL needs no second one */
        qn_log(QN_LOG_WARN, "replica %u does not drain; it is killed", u->node);
        r->killed = true;
        qn_supervisor_kill(r, SIGKILL);
    }
}

/* The end of a process is what stops the upgrade; if there is none, this. */
static void give_up(struct qn_supervisor *s, struct qn_supervised *r)
{
    if (r->state == QN_SUPERVISED_ENDED) {
        r->restart_at = QN_TIME_NEVER;
        stop(s, "replica %u cannot be started", s->upgrade.node);
    } else {
        r->killed = true;
        qn_supervisor_kill(r, SIGKILL);
    }
}

static void coming(struct qn_supervisor *s)
{
    struct qn_upgrade *u = &s->upgrade;
    struct qn_supervised *r = &s->replica[u->node];
    if (r->state == QN_SUPERVISED_SERVING) {
        u->done++;
        u->todo &= ~bit(u->node);
        tell(s,
             "replica %u is complete, process %d of this quoind, after %.2f s",
             u->node, (int)r->pid, seconds_since(u->since));
        step(s, QN_UPGRADE_SETTLE, s->config.upgrade_timeout);
    } else if (qn_clock_now() >= u->until) {
        u->until = QN_TIME_NEVER;
        give_up(s, r);
    }
}

bool qn_supervisor_upgrade_ended(struct qn_supervisor *s, qn_node_t i,
                                 bool *stays)
{
    struct qn_upgrade *u = &s->upgrade;
    const struct qn_supervised *r = &s->replica[i];
    u->roles[i] = (struct qn_roles){0}; /* its next life is asked anew */
    if (s->draining || i != u->node) {
        return false;
    }
    if (u->step == QN_UPGRADE_LEAVE) {
        step(s, QN_UPGRADE_COME, s->config.upgrade_timeout);
        return true;
    }
    if (u->step == QN_UPGRADE_COME) {
        *stays = true;
        stop(s, "the new replica %u (process %d) %s", i, (int)r->pid,
             r->killed ? "was not complete in time; it is ended"
                       : "has ended before it was complete");
    }
    return false;
}

/* ---- turns --------------------------------------------------------------- */

void qn_supervisor_upgrade_turn(struct qn_supervisor *s)
{
    if (s->over || s->draining) {
        return;
    }
    switch (s->upgrade.step) {
    case QN_UPGRADE_NONE:
        break;
    case QN_UPGRADE_SETTLE:
        settle(s);
        break;
    case QN_UPGRADE_LEAVE:
        leaving(s);
        break;
    case QN_UPGRADE_COME:
        coming(s);
        break;
    }
}

int qn_supervisor_upgrade_wait_ms(const struct qn_supervisor *s)
{
    const struct qn_upgrade *u = &s->upgrade;
    if (u->step == QN_UPGRADE_NONE || s->draining) {
        return -1;
    }
    if (u->step == QN_UPGRADE_SETTLE) {
        return LOOK_MS;
    }
    qn_time_t now = qn_clock_now();
    qn_time_t left = u->until - QN_MIN(now, u->until);
    return (int)QN_MIN((left + QN_MS - 1) / QN_MS, (qn_time_t)INT32_MAX);
}
