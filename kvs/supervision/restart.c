/*
 * The next incarnation after the end of a process.
 *
 * A replica that ends without having been asked to is started again: after
 * BACKOFF_MIN_MS when it had lived for a while, in which the others have the
 * cores for themselves and elect a leader; else after a back-off that doubles,
 * so that one that cannot live costs little. While no majority runs, no replica
 * can take over from a dead leader: then it is started at once, and so are
 * those in back-off. A replica that was stopped by a signal is no help either:
 * it does not count as running.
 *
 * The number of an incarnation is asked of the shell, since the group's memory
 * counts them, too. What is there can have been overwritten, so this side knows
 * the highest number that it has seen, and no lower one is accepted.
 */
#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "kvs/supervision/supervision_internal.h"

enum {
    BACKOFF_MIN_MS = 30,
    BACKOFF_MAX_MS = 5000,
    BACKOFF_NEEDED_MS = 50, /* while no majority runs */
    LONG_LIFE_S = 10,       /* then it did not die of being started */
    RETAINED_LOOK_MS = 1000,
    RECOVERY_LOOK_MS = 100,
};

void qn_sv_spawn(const struct qn_sv_step *x, qn_node_t i)
{
    struct qn_replica_slot *r = &x->s->replica[i];
    QN_ASSERT(r->state == QN_REPLICA_ENDED);
    QN_ASSERT(!r->spawning);
    QN_ASSERT(!x->s->draining);
    QN_ASSERT(qn_sv_taken(x->s, i));
    QN_ASSERT(!qn_sv_recovery_holds(x->s));
    r->spawning = true;
    r->restart_at = QN_TIME_NEVER;
    r->ordered = ++x->s->incarnations; /* two of one step have two numbers */
    const struct qn_supervision_action a = {
        .kind = QN_DO_SPAWN, .node = i, .incarnation = r->ordered};
    qn_supervision_do(x->out, &a);
}

void qn_sv_on_start(const struct qn_sv_step *x)
{
    QN_ASSERT(!x->s->served);
    QN_ASSERT(x->s->incarnations == 0);
    for (qn_node_t i = 0; i < x->s->opts.replicas; i++) {
        if (qn_sv_taken(x->s, i)) {
            qn_sv_spawn(x, i);
        }
    }
}

void qn_sv_on_spawned(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    struct qn_replica_slot *r = &s->replica[x->e->node];
    QN_ASSERT(r->spawning);
    QN_ASSERT(r->state == QN_REPLICA_ENDED);
    QN_ASSERT(x->e->incarnation >= r->ordered);
    s->incarnations = QN_MAX(s->incarnations, x->e->incarnation);
    r->spawning = false;
    r->state = QN_REPLICA_STARTING;
    r->pid = x->e->pid;
    r->incarnation = x->e->incarnation;
    r->adopted = false;
    r->reachable = true;
    r->error = QN_OK;
    r->killed = r->leaves = false;
    r->informed = !s->served; /* initial members hear of each as it comes */
    r->lacks = 0;
    memset(r->knows, 0, sizeof r->knows);
    r->started_at = x->now;
}

/* ---- back-off ------------------------------------------------------------ */

/* So few voters run that one more is needed for a majority. */
static bool is_needed(const struct qn_sv_step *x)
{
    uint32_t running = 0;
    for (qn_node_t i = 0; i < x->s->opts.replicas; i++) {
        const struct qn_replica_slot *r = &x->s->replica[i];
        running += r->state != QN_REPLICA_ENDED && qn_sv_votes(x->s, i) &&
                   (x->e->facts.stopped & qn_sv_bit(i)) == 0;
    }
    return 2 * running <= (uint32_t)__builtin_popcountll(x->s->voters);
}

/* How long until it is started again, ns; QN_TIME_NEVER: it is not. */
static qn_time_t next_backoff(const struct qn_sv_step *x,
                              struct qn_replica_slot *r, bool stays)
{
    const struct qn_supervision *s = x->s;
    if (!s->opts.restart || s->draining || stays || qn_sv_members(s) == 1) {
        return QN_TIME_NEVER;
    }
    if (x->now - r->started_at >= LONG_LIFE_S * QN_S) {
        r->backoff_ms = 0;
    }
    const bool first = r->backoff_ms == 0;
    uint32_t backoff_ms = first ? BACKOFF_MIN_MS : r->backoff_ms;
    if (is_needed(x)) {
        backoff_ms = first ? 0 : QN_MIN(backoff_ms, BACKOFF_NEEDED_MS);
    }
    r->backoff_ms =
        first ? BACKOFF_MIN_MS : QN_MIN(2 * r->backoff_ms, BACKOFF_MAX_MS);
    return backoff_ms * QN_MS;
}

bool qn_sv_long_backoff(const struct qn_supervision *s, qn_time_t now)
{
    const qn_time_t soon = now + BACKOFF_NEEDED_MS * QN_MS;
    for (qn_node_t i = 0; i < s->opts.replicas; i++) {
        const qn_time_t at = s->replica[i].restart_at;
        if (at != QN_TIME_NEVER && at > soon) {
            return true;
        }
    }
    return false;
}

/* No majority runs, since another one ended or was stopped: those in back-off
 * are needed. */
static void expedite_restarts(const struct qn_sv_step *x)
{
    const bool needed = is_needed(x);
    for (qn_node_t i = 0; needed && i < x->s->opts.replicas; i++) {
        struct qn_replica_slot *r = &x->s->replica[i];
        if (r->restart_at != QN_TIME_NEVER) {
            const qn_time_t most =
                r->backoff_ms > BACKOFF_MIN_MS ? BACKOFF_NEEDED_MS : 0;
            r->restart_at = QN_MIN(r->restart_at, x->now + most * QN_MS);
        }
    }
}

/* ---- ends ---------------------------------------------------------------- */

static void report_end(const struct qn_sv_step *x, qn_node_t i,
                       qn_time_t backoff)
{
    const struct qn_supervision *s = x->s;
    const struct qn_replica_slot *r = &s->replica[i];
    char how[96];
    char next[64] = "";
    qn_sv_describe_end(how, sizeof how, r, x->e->number);
    if (backoff != QN_TIME_NEVER && r->backoff_ms <= BACKOFF_MIN_MS) {
        snprintf(next, sizeof next, "; starting it again");
    } else if (backoff != QN_TIME_NEVER) {
        snprintf(next, sizeof next, "; starting it again in %u ms",
                 (unsigned)(backoff / QN_MS));
    }
    qn_supervision_log(x->out, QN_LOG_WARN,
                       "replica %u (process %d) %s; %u of %u go on%s", i,
                       (int)r->pid, how,
                       qn_sv_count(s, QN_REPLICA_SERVING, QN_REPLICA_DRAINED),
                       qn_sv_members(s), next);
}

/* The last complete replica to end is named if all data is lost. */
static void note_end(const struct qn_sv_step *x, qn_node_t i)
{
    char how[96];
    const struct qn_replica_slot *r = &x->s->replica[i];
    qn_sv_describe_end(how, sizeof how, r, x->e->number);
    snprintf(x->s->last_end, sizeof x->s->last_end,
             "replica %u (process %d) %s", i, (int)r->pid, how);
}

void qn_sv_reap(const struct qn_sv_step *x, qn_node_t i)
{
    struct qn_replica_slot *r = &x->s->replica[i];
    r->state = QN_REPLICA_ENDED;
    r->informed = false;
    r->reachable = false;
    qn_sv_forget_unmet(x->s, i);
    x->s->orphans.awaited &= ~qn_sv_bit(i);
    x->s->orphans.unreached &= ~qn_sv_bit(i);
    qn_supervision_do(x->out, &(struct qn_supervision_action){
                                  .kind = QN_DO_CLOSE_CONTROL, .node = i});
    if (r->has_outbox) { /* else no peer has heard of it */
        QN_ASSERT(r->incarnation > r->ended);
        r->ended = r->incarnation;
        qn_sv_outbox_ended(x, i);
        qn_sv_broadcast_down(x, i, r->incarnation);
    }
}

void qn_sv_on_exit(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    const qn_node_t i = x->e->node;
    const int status = x->e->number;
    struct qn_replica_slot *r = &s->replica[i];
    const enum qn_replica_state was = r->state;
    bool stays = false;
    const bool planned = qn_sv_upgrade_ended(x, i, &stays);
    /* An operator asked it to shut down, not this supervisor. Of an adopted one
     * its liveness word says so: it may have drained for an upgrade of the
     * former supervisor. */
    const bool told = was == QN_REPLICA_DRAINED && status == 0;
    const bool asked = (r->adopted ? x->e->shut_down : told) && !r->leaves;
    const bool vacates = !qn_sv_votes(s, i);
    /* One that was not complete had no clients. */
    const bool wanted = s->draining && status == 0 && was != QN_REPLICA_SERVING;
    s->undrained = s->undrained || (s->draining && was == QN_REPLICA_SERVING);
    if (was == QN_REPLICA_SERVING || was == QN_REPLICA_DRAINED) {
        note_end(x, i);
    }
    qn_sv_reap(x, i);
    const qn_time_t backoff = vacates   ? QN_TIME_NEVER
                              : planned ? 0
                                        : next_backoff(x, r, stays || asked);
    r->restart_at = QN_TIME_NEVER;
    if (backoff == QN_TIME_NEVER) {
        qn_supervision_do(x->out, &(struct qn_supervision_action){
                                      .kind = QN_DO_CLOSE_LISTENER, .node = i});
    } else {
        r->restart_at = x->now + backoff;
        expedite_restarts(x);
    }
    if (r->leaves && vacates && !s->draining) {
        qn_supervision_log(x->out, QN_LOG_INFO,
                           "replica %u (process %d) has ended; its seat is "
                           "vacant",
                           i, (int)r->pid);
    } else if (!wanted && !planned && !r->killed) {
        report_end(x, i, backoff);
    }
}

void qn_sv_on_spawn_failed(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    const qn_node_t i = x->e->node;
    struct qn_replica_slot *r = &s->replica[i];
    QN_ASSERT(r->spawning);
    QN_ASSERT(r->state == QN_REPLICA_ENDED);
    r->spawning = false;
    if (!s->served) {
        const struct qn_supervision_action a = {
            .kind = QN_DO_BLAME, .node = i, .number = x->e->number};
        qn_supervision_do(x->out, &a);
        qn_sv_finish(x, QN_SUPERVISOR_NOT_BEGUN);
        return;
    }
    if (qn_sv_is_newcomer(s, i) && !qn_sv_votes(s, i)) {
        qn_sv_member_spawn_failed(x);
        return;
    }
    const qn_time_t backoff = next_backoff(x, r, false);
    if (!s->draining &&
        qn_sv_votes(s,
                    i)) { /* what ordered it wants it, also without --restart */
        r->restart_at = x->now + QN_MIN(QN_MAX(backoff, BACKOFF_MIN_MS * QN_MS),
                                        BACKOFF_MAX_MS * QN_MS);
    }
    qn_supervision_log(x->out, QN_LOG_ERROR,
                       "replica %u cannot be started again: %s", i,
                       qn_strerror(x->e->number));
}

/* ---- turns --------------------------------------------------------------- */

void qn_sv_restart_turn(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    if (qn_sv_long_backoff(s, x->now)) {
        expedite_restarts(x);
    }
    if (qn_sv_recovery_holds(s)) {
        return;
    }
    for (qn_node_t i = 0; i < s->opts.replicas; i++) {
        struct qn_replica_slot *r = &s->replica[i];
        if (s->draining) {
            r->restart_at = QN_TIME_NEVER;
        } else if (r->restart_at <= x->now && !qn_sv_member_holds(s, i)) {
            qn_sv_spawn(x, i);
        }
    }
}

qn_time_t qn_sv_restart_deadline(const struct qn_supervision *s, qn_time_t now)
{
    if (qn_sv_recovers(s)) {
        return now + RECOVERY_LOOK_MS * QN_MS;
    }
    qn_time_t at = qn_sv_long_backoff(s, now) ? now + BACKOFF_NEEDED_MS * QN_MS
                   : s->retained.incarnation != 0
                       ? now + RETAINED_LOOK_MS * QN_MS
                       : QN_TIME_NEVER;
    for (qn_node_t i = 0; i < s->opts.replicas; i++) {
        at = qn_sv_member_holds(s, i) ? at
                                      : QN_MIN(at, s->replica[i].restart_at);
    }
    return at;
}
